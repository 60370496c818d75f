"""
What a replay store on Redis costs: a verification through it, against a raw `SET NX` of redis-py, and octets a token.

    python tests/bench/replay.py [--rounds 15] [--tokens 100000] [--json]

`over` is a verification with the asynchronous Redis store minus one with the memory store, as a multiple of a raw `SET NX PX`
through redis-py's own client with as many connections. Each figure is the median over rounds in which everything is measured
in turn, so that a machine that changes its speed changes all of them.
"""

import argparse
import asyncio
import importlib.util
import json
import secrets
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import redis.asyncio

from keys import LocalSigner, generate_key
from verifier import AsyncCustomerContextVerifier, MemoryReplayStore
from verifier.compact import b64url_encode
from verifier.replay_redis import AsyncRedisReplayStore

ISSUER, AUDIENCE = "https://id.example.com/w/acme", "https://api.shop.example"
CONCURRENCY = (1, 16, 64)
PER_ROUND = 256
CONNECTIONS = 16
TTL_MS = 180_000


def servers() -> Any:
    spec = importlib.util.spec_from_file_location("redis_server", Path(__file__).parents[1] / "redis_server.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Mint:
    """
    Tokens of one key.
    """

    def __init__(self) -> None:
        key = generate_key()
        self.jwks = {"keys": [dict(key.public_jwk)]}
        self._signer = LocalSigner(key)
        self._header = b64url_encode(json.dumps({"alg": "ES256", "typ": "at+jwt", "kid": key.kid}).encode())

    async def token(self) -> str:
        at = int(time.time())
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "cus_48213", "client_id": "orc_main", "acr": "standard"}
        claims |= {"jti": secrets.token_urlsafe(16), "iat": at, "exp": at + 60, "act": {"sub": "agt_support"}}
        signing_input = f"{self._header}.{b64url_encode(json.dumps(claims).encode())}"
        return f"{signing_input}.{b64url_encode(await self._signer.sign(signing_input.encode()))}"


async def timed(run: Callable[[str], Awaitable[object]], items: list[str], at_once: int) -> float:
    """
    Run over all items, *at_once* of them at any time, and return the seconds an item took.
    """
    left = iter(items)

    async def work() -> None:
        for item in left:
            await run(item)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return (time.perf_counter() - began) / len(items)


@asynccontextmanager
async def subjects(url: str, mint: Mint) -> AsyncIterator[dict[str, Callable[[str], Awaitable[object]]]]:
    """
    Yield what is measured: the raw command, and a verification with each store.
    """
    pool = redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=CONNECTIONS, timeout=10)
    options: dict[str, Any] = {"issuer": ISSUER, "audience": AUDIENCE, "jwks": mint.jwks}
    async with (
        redis.asyncio.Redis(connection_pool=pool) as raw,
        AsyncRedisReplayStore.from_url(url, deadline_ms=10_000, max_connections=CONNECTIONS) as store,
    ):
        await age_epoch(raw)
        shared = AsyncCustomerContextVerifier(replay_store=store, **options)
        alone = AsyncCustomerContextVerifier(replay_store=MemoryReplayStore(max_entries=10_000_000), **options)
        yield {
            "set": lambda item: raw.set(f"raw:{item[-27:]}", b"x" * 11, nx=True, px=TTL_MS),
            "redis": shared.verify,
            "memory": alone.verify,
        }


async def age_epoch(raw: Any) -> None:
    """
    Let an hour pass since the epoch, so that the tokens of this run are not refused.
    """
    identity, at = (await raw.get("cc:e")).decode().split()
    await raw.set("cc:e", f"{identity} {int(at) - 3_600_000}")


async def measure(url: str, rounds: int) -> dict[str, dict[str, float]]:
    mint, told = Mint(), {}
    async with subjects(url, mint) as runs:
        for at_once in CONCURRENCY:
            taken: dict[str, list[float]] = {name: [] for name in runs}
            for _ in range(rounds + 1):
                for name, run in runs.items():
                    items = [await mint.token() for _ in range(PER_ROUND)]
                    taken[name].append(await timed(run, items, at_once) * 1e6)
            # The first round makes the connections.
            middle = {name: statistics.median(times[1:]) for name, times in taken.items()}
            over = [
                (shared - alone) / raw
                for raw, shared, alone in zip(taken["set"][1:], taken["redis"][1:], taken["memory"][1:], strict=True)
            ]
            told[str(at_once)] = {name: round(us, 1) for name, us in middle.items()} | {
                "over": round((middle["redis"] - middle["memory"]) / middle["set"], 2),
                "over, median of rounds": round(statistics.median(over), 2),
            }
    return told


async def octets_a_token(url: str, tokens: int) -> float:
    """
    Return how much the memory of the server grows for each live token.
    """
    async with (
        redis.asyncio.from_url(url) as raw,
        AsyncRedisReplayStore.from_url(url, deadline_ms=60_000) as store,
    ):
        await raw.flushall()
        await store.open()
        await age_epoch(raw)
        scope = store.scoped(ISSUER, AUDIENCE)
        at = time.time()
        before = (await raw.info("memory"))["used_memory"]
        await timed(
            lambda item: scope.use(item, int(at) + 3600, at), [secrets.token_urlsafe(16) for _ in range(tokens)], 64
        )
        await asyncio.sleep(1)
        after = (await raw.info("memory"))["used_memory"]
        assert await raw.dbsize() == tokens + 1
    return (after - before) / tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    module = servers()
    binaries = {"valkey": module.redis_binary(), "redis": shutil.which("redis-server")}
    told: dict[str, Any] = {}
    for name, binary in binaries.items():
        if binary is None:
            continue
        module.redis_binary = lambda binary=binary: binary
        with tempfile.TemporaryDirectory() as folder:
            server = module.RedisServer(Path(folder) / name)
            server.start()
            try:
                told[name] = {"at once": asyncio.run(measure(server.url, options.rounds))}
                octets = asyncio.run(octets_a_token(server.url, options.tokens))
                told[name]["octets a live token"] = round(octets, 1)
            finally:
                server.stop()
        report(name, told[name], quiet=options.json)
    if options.json:
        print(json.dumps(told, indent=2))


def report(name: str, told: dict[str, Any], *, quiet: bool) -> None:
    out = sys.stderr if quiet else sys.stdout
    print(f"{name}", file=out)
    for at_once, figures in told["at once"].items():
        shown = "  ".join(f"{what} {value:>7}" for what, value in figures.items())
        print(f"  {at_once:>3} at once, us: {shown}", file=out)
    print(f"  octets a live token: {told['octets a live token']}", file=out, flush=True)


if __name__ == "__main__":
    main()
