"""
What can happen to a Redis, each as a scene: where partners connect, and what strikes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from replay_stage import Link, RedisServer, read_reply

__all__ = ["FAULTS", "Scene"]

DOWN_S = 3.0
VOLATILE = ("--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0")
SENTINEL = """
sentinel monitor svc 127.0.0.1 {port} 1
sentinel down-after-milliseconds svc 1000
sentinel failover-timeout svc 5000
"""


@dataclass(frozen=True)
class Scene:
    """
    Where partners connect with which arguments, and what happens to their Redis; it has passed when `strike` returns.
    """

    url: str
    strike: Callable[[], Awaitable[None]]
    arguments: tuple[str, ...] = ()


def started(folder: Path, stack: AsyncExitStack, *options: str, config: str = "") -> Any:
    server = RedisServer(folder / f"server-{len(list(folder.iterdir()))}", *options, config=config)
    server.start()
    stack.callback(server.stop)
    return server


async def until(condition: Callable[[], object]) -> None:
    for _ in range(600):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise TimeoutError


async def calm(folder: Path, stack: AsyncExitStack) -> Scene:
    """
    Nothing happens.
    """
    server = started(folder, stack, *VOLATILE)
    return Scene(server.url, lambda: asyncio.sleep(0))


async def restarted_empty(folder: Path, stack: AsyncExitStack) -> Scene:
    """
    Killed, and started again at once, with nothing left.
    """
    server = started(folder, stack, *VOLATILE)

    async def strike() -> None:
        server.kill()
        server.start()

    return Scene(server.url, strike)


async def flushed(folder: Path, stack: AsyncExitStack) -> Scene:
    """
    FLUSHALL, which no connection notices.
    """
    server = started(folder, stack, *VOLATILE)

    async def strike() -> None:
        with server.client() as client:
            client.flushall()

    return Scene(server.url, strike)


async def paused(folder: Path, stack: AsyncExitStack) -> Scene:
    """
    Stopped for some seconds and let go on.
    """
    server = started(folder, stack, *VOLATILE)

    async def strike() -> None:
        server.pause()
        await asyncio.sleep(DOWN_S)
        server.resume()

    return Scene(server.url, strike)


async def killed(folder: Path, stack: AsyncExitStack) -> Scene:
    """
    Killed with a file that lacks the last moment, down for some seconds, and back with what the file holds.
    """
    server = started(folder, stack, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec")

    async def strike() -> None:
        server.kill()
        await asyncio.sleep(DOWN_S)
        server.start()

    return Scene(server.url, strike)


async def rolled_back(folder: Path, stack: AsyncExitStack) -> Scene:
    """
    Killed, and started from a snapshot of ten seconds before.
    """
    server = started(folder, stack, "--save", "3600 1", "--appendonly", "no")

    async def strike() -> None:
        with server.client() as client:
            client.save()
        await asyncio.sleep(10)
        server.kill()
        server.start()

    return Scene(server.url, strike)


async def failed_over(folder: Path, stack: AsyncExitStack) -> Scene:
    """
    Failed over by a Sentinel to a replica that lagged by some seconds.
    """
    primary = started(folder, stack, *VOLATILE)
    link = Link(primary.port, lambda reader: reader.read(65536))
    port = await link.start()
    stack.push_async_callback(link.stop)
    replica = started(folder, stack, *VOLATILE, "--replicaof", f"127.0.0.1 {port}")
    sentinel = started(folder, stack, "--sentinel", config=SENTINEL.format(port=primary.port))
    with sentinel.client() as client:
        await until(lambda: client.execute_command("SENTINEL", "REPLICAS", "svc"))

    async def strike() -> None:
        link.holding = True
        await asyncio.sleep(DOWN_S)
        primary.kill()
        with sentinel.client() as client:
            await until(lambda: client.sentinel_get_master_addr_by_name("svc")[1] == replica.port)

    return Scene(f"redis+sentinel://127.0.0.1:{sentinel.port}/svc", strike)


async def filled(folder: Path, stack: AsyncExitStack) -> Scene:
    """
    Filled to maxmemory, for some seconds.
    """
    server = started(folder, stack, *VOLATILE)

    async def strike() -> None:
        with server.client() as client:
            client.config_set("maxmemory", str(client.info("memory")["used_memory"] + 2**21))
            with suppress(redis.OutOfMemoryError):
                for number in range(10_000):
                    client.set(f"junk:{number}", b"x" * 100_000)
            # The buffers of the last writes are free again by now, and would leave room for many tokens.
            client.config_set("maxmemory", str(client.info("memory")["used_memory"] // 2))
            await asyncio.sleep(DOWN_S)
            client.config_set("maxmemory", "128mb")

    return Scene(server.url, strike)


async def dropped(folder: Path, stack: AsyncExitStack) -> Scene:
    """
    Behind a proxy that drops every tenth reply, all the time.
    """
    server = started(folder, stack, *VOLATILE)
    link = Link(server.port, read_reply)
    port = await link.start()
    stack.push_async_callback(link.stop)

    async def strike() -> None:
        link.drop_every = 10

    return Scene(f"redis://127.0.0.1:{port}", strike)


FAULTS: dict[str, Callable[[Path, AsyncExitStack], Awaitable[Scene]]] = {
    "calm": calm,
    "restarted": restarted_empty,
    "flushed": flushed,
    "paused": paused,
    "killed": killed,
    "rolledback": rolled_back,
    "failedover": failed_over,
    "filled": filled,
    "dropped": dropped,
}
