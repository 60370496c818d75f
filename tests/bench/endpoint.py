"""
Requests per second of the token endpoint: sixteen connections, no limits, everything signed beforehand.

In one process with its memory, in one on a Redis, and in two on that Redis, a service of its own for each. The load comes from a
process of its own, a plain socket client, so that it takes as little of the machine as it can; the Redis takes some as well.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from replay import servers

from issuer.orchestrator import Ask, RequestedWrite, load_orchestrator, new_idempotency_key

COMMAND = Path(sys.executable).with_name("customer-context")
CONNECTIONS = 16
PORT = 18_473
PREPARED_A_SECOND = 2500
UNLIMITED = {f"CUSTOMER_CONTEXT_LIMITS__{name}": "0" for name in ("CLIENT_PER_SECOND", "CUSTOMER_PER_MINUTE")}
START_LIMIT_S = 30
# What was signed before a Redis was met first is refused: this one is as it would be an hour after that.
EPOCH_AGE_S = 3600


def measure_endpoint(seconds: float) -> dict[str, float]:
    """
    Ask each service for read and for write tokens for *seconds* each, and return requests per second.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        told = _measure(place / "memory", seconds, "1 worker in memory", workers=1)
        server = servers().RedisServer(place / "redis")
        server.start()
        try:
            for workers, words in ((1, "1 worker on Redis"), (2, "2 workers on Redis")):
                told |= _measure(place / str(workers), seconds, words, workers=workers, server=server)
        finally:
            server.stop()
        return told


def _measure(folder: Path, seconds: float, words: str, *, workers: int, server: Any = None) -> dict[str, float]:
    origin = f"http://127.0.0.1:{PORT}"
    subprocess.run([COMMAND, "init", folder, "--origin", origin], check=True, stdout=subprocess.DEVNULL)
    config = folder / "customer-context.toml"
    if server is not None:
        _move(config, server)
    with _served(config, workers):
        return {
            f"{words}, {kind} tokens": asyncio.run(_rate(folder, seconds, write=kind == "write"))
            for kind in ("read", "write")
        }


def _move(config: Path, server: Any) -> None:
    """
    Let the service of that configuration keep everything in the Redis, and nothing else be there.
    """
    config.write_text(f'redis_url = "{server.url}"\nkeys_redis_allow_volatile = true\n{config.read_text()}')
    with server.client() as client:
        client.flushall()
        seconds, _ = client.time()
        identity = client.info("replication")["master_replid"]
        client.set("cc:e", f"{identity} {(seconds - EPOCH_AGE_S) * 1000}")
    subprocess.run([COMMAND, "keys", "init", "--config", config], check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def _served(config: Path, workers: int) -> Iterator[None]:
    serve = [COMMAND, "serve", "--config", config, "--port", str(PORT), "--workers", str(workers)]
    environ = os.environ | UNLIMITED
    with subprocess.Popen(serve, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as service:
        try:
            _wait(service)
            yield
        finally:
            service.terminate()


def _wait(service: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and service.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health/ready", timeout=5).close()
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the service did not start")


async def _rate(dev: Path, seconds: float, *, write: bool) -> float:
    orchestrator = load_orchestrator(dev / "orchestrator")
    now = time.time()
    requests = []
    for _ in range(int(PREPARED_A_SECOND * seconds)):
        wanted = None
        if write:
            wanted = RequestedWrite(
                action="cancel_order",
                arguments={"orderId": "A-1001"},
                idempotency_key=new_idempotency_key(),
                confirmed_at=int(now),
            )
        ask = Ask(sub="cus_1", acr="standard", auth_time=int(now) - 60, audience=orchestrator.audience, write=wanted)
        form = await orchestrator.form(ask, time.time())
        requests.append(_encoded(orchestrator.token_endpoint, form))
    started = time.perf_counter()
    deadline = started + seconds
    done = await asyncio.gather(*(_ask_on_one_connection(requests, deadline) for _ in range(CONNECTIONS)))
    return sum(done) / (time.perf_counter() - started)


def _encoded(url: str, form: dict[str, str]) -> bytes:
    body = urlencode(form).encode()
    parts = urlsplit(url)
    head = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _ask_on_one_connection(requests: list[bytes], deadline: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    done = 0
    while requests and time.perf_counter() < deadline:
        writer.write(requests.pop())
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        if head.startswith(b"HTTP/1.1 200"):
            done += 1
        elif not head.startswith(b"HTTP/1.1 503"):
            # A Redis that did not answer in time is no answer, and not counted as one.
            raise RuntimeError(f"the token endpoint answered {json.loads(body)}")
    writer.close()
    return done
