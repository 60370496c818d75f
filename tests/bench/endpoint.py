"""
Requests per second of the token endpoint: one worker, sixteen connections, everything signed beforehand.

The load comes from a process of its own, a plain socket client, so that it takes as little of the machine as it can.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from issuer.orchestrator import Ask, RequestedWrite, load_orchestrator, new_idempotency_key

COMMAND = Path(sys.executable).with_name("customer-context")
CONNECTIONS = 16
PORT = 18_473
PREPARED_A_SECOND = 2500
UNLIMITED = {f"CUSTOMER_CONTEXT_LIMITS__{name}": "0" for name in ("CLIENT_PER_SECOND", "CUSTOMER_PER_MINUTE")}


def measure_endpoint(seconds: float) -> dict[str, float]:
    """
    Start a service, ask it for read and for write tokens for *seconds* each, and return requests per second.
    """
    with tempfile.TemporaryDirectory() as folder:
        dev = Path(folder) / "dev"
        origin = f"http://127.0.0.1:{PORT}"
        subprocess.run([COMMAND, "init", dev, "--origin", origin], check=True, stdout=subprocess.DEVNULL)
        config = dev / "customer-context.toml"
        serve = [COMMAND, "serve", "--config", config, "--port", str(PORT)]
        environ = os.environ | UNLIMITED
        with subprocess.Popen(serve, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as service:
            try:
                _wait()
                return {
                    "read tokens": asyncio.run(_rate(dev, seconds, write=False)),
                    "write tokens": asyncio.run(_rate(dev, seconds, write=True)),
                }
            finally:
                service.terminate()


def _wait() -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            asyncio.run(_connect())
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the service did not start")


async def _connect() -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", PORT)
    writer.close()
    await writer.wait_closed()


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
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the token endpoint answered {json.loads(body)}")
        done += 1
    writer.close()
    return done
