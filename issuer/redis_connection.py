"""
The only door of the service to Redis: bounded connections, one deadline for each operation, no second try behind one's back.

What goes wrong is one error, whose words are ours: an exception of the library may quote an address with its password.
"""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeVar, cast

from redis.asyncio import Redis, RedisCluster
from redis.exceptions import AuthenticationError, BusyLoadingError, RedisClusterException, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from verifier.replay_redis_wires import FAREWELL_S

from .redis_clients import build_clients
from .redis_url import RedisAddress

__all__ = ["DEADLINE_S", "MAX_CONNECTIONS", "RedisConnection", "RedisUnavailable", "out_of_step"]

_T = TypeVar("_T")

DEADLINE_S: Final = 0.25
"""Seconds that an operation may take in all: waiting for a connection, making one, asking, and the answer."""

MAX_CONNECTIONS: Final = 16
"""Connections to each server; operations beyond them wait for one."""

_SUBSCRIPTION_S: Final = 60.0
_PAUSE_S: Final = 1.0
_OPENING_S: Final = 5.0
_FAILURES: Final = (RedisError, RedisClusterException, OSError, EOFError)
# Servers begin an error with a word in capitals that says of which kind it is.
_KIND: Final = re.compile(r"[A-Z]{2,16}(?= )")


class RedisUnavailable(Exception):
    """
    Raised when an operation has no answer, or none that is one; `problem` says why in our own words.

    `is_refusal` is True when the server said no, so that nothing was carried out; otherwise a write may have been, or may yet be.
    """

    def __init__(self, where: str, problem: str, *, is_refusal: bool = False) -> None:
        """
        Name the place and the problem.
        """
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem
        self.is_refusal = is_refusal


def out_of_step(where: str) -> RedisUnavailable:
    """
    Return the error for an answer that is to another question, or that what was asked never gives.
    """
    return RedisUnavailable(where, "it gave another answer than was asked for")


@dataclass(slots=True)
class _Opened:
    """
    A client and what belongs to it; all of it serves one event loop.
    """

    loop: asyncio.AbstractEventLoop
    client: "Redis | RedisCluster"
    others: tuple["Redis", ...]
    slots: asyncio.Semaphore
    opening: asyncio.Task[Any] | None = None


@dataclass(slots=True)
class _Shared:
    opened: _Opened | None = None


@dataclass(frozen=True, slots=True)
class RedisConnection:
    """
    One Redis: a server, the primary behind Sentinels, or a cluster.

    It connects when it is first used, and anew in another event loop; it serves one loop at a time. `aclose` ends what is open,
    and it can be used again after that.

    Raises:
        RedisUnavailable: from every operation that has no proper answer within `deadline_s` seconds.
    """

    address: RedisAddress
    deadline_s: float = DEADLINE_S
    max_connections: int = MAX_CONNECTIONS
    _shared: _Shared = field(default_factory=_Shared, repr=False, compare=False)

    @property
    def where(self) -> str:
        """
        The address without credentials.
        """
        return self.address.where

    def within(self, deadline_s: float) -> "RedisConnection":
        """
        Return the same connection with another deadline.
        """
        return RedisConnection(self.address, deadline_s, self.max_connections, self._shared)

    async def call(self, command: str, *arguments: str | bytes | float) -> Any:
        """
        Run one command and return the answer: octets where it has text.
        """
        return await self._run(lambda client: client.execute_command(command, *arguments))

    async def eval(self, script: str, numkeys: int, /, *keys_and_args: Any) -> Any:
        """
        Run a Lua script.
        """
        return await self.call("EVAL", script, numkeys, *keys_and_args)

    async def xrange(self, name: Any, min: Any, max: Any, count: Any, /) -> Any:  # noqa: A002  the words of the command
        """
        Return entries of a stream in ascending order.
        """
        return await self.call("XRANGE", name, min, max, "COUNT", count)

    async def now(self) -> float:
        """
        Return the time of the server in epoch seconds; in a cluster that of one of them.
        """
        seconds, microseconds = await self.call("TIME")
        return int(seconds) + int(microseconds) / 1_000_000

    async def each_primary(self, command: str, *arguments: str | bytes | float) -> list[Any]:
        """
        Run one command on every server that takes writes, and return the answers.
        """

        async def ask(client: Any) -> list[Any]:
            if not isinstance(client, RedisCluster):
                return [await client.execute_command(command, *arguments)]
            nodes = client.get_primaries()
            return [await client.execute_command(command, *arguments, target_nodes=[node]) for node in nodes]

        return await self._run(ask)

    async def listen(self, channels: Sequence[str], heard: Callable[[str], None]) -> None:
        """
        Call *heard* with each channel that something is published on, until cancelled; in a cluster, return at once.

        After every new subscription it is called for all of them, since something may have been missed before. It is a hint that
        comes early, not one to rely on.
        """
        if self.address.kind == "cluster":
            return
        while True:
            try:
                async with asyncio.timeout(_SUBSCRIPTION_S):
                    await self._subscribed(channels, heard)
            except TimeoutError:
                # A connection that died without a word would never be noticed: each subscription is given up after a while.
                continue
            except _FAILURES:
                await asyncio.sleep(_PAUSE_S)

    async def aclose(self) -> None:
        """
        End all connections, if they belong to this event loop; those of another loop ended with it.
        """
        opened, self._shared.opened = self._shared.opened, None
        if opened is None or opened.loop is not asyncio.get_running_loop():
            return
        if opened.opening is not None:
            opened.opening.cancel()
            await asyncio.gather(opened.opening, return_exceptions=True)
        for client in (opened.client, *opened.others):
            with contextlib.suppress(*_FAILURES):
                await client.aclose()
        if self.address.is_tls:
            # What was cancelled in the moment its TLS came up ends within this, and the event loop may have no time after it.
            await asyncio.sleep(2 * FAREWELL_S)

    async def _subscribed(self, channels: Sequence[str], heard: Callable[[str], None]) -> NoReturn:
        client = cast("Redis", self._open().client)
        async with client.pubsub(ignore_subscribe_messages=True) as subscription:
            with _cancellable():
                async with asyncio.timeout(self.deadline_s):
                    await subscription.subscribe(*channels)
            for channel in channels:
                heard(channel)
            while True:
                message = await subscription.get_message(timeout=None)
                if message is not None:
                    heard(message["channel"].decode("utf-8", "replace"))

    async def _run(self, operation: Callable[[Any], Awaitable[_T]]) -> _T:
        try:
            with _cancellable():
                async with asyncio.timeout(self.deadline_s):
                    opened = self._open()
                    async with opened.slots:
                        await _ready(opened)
                        return await operation(opened.client)
        except _FAILURES as error:
            # The library's text may hold an address, a password or data: it goes no further, not even as the cause.
            raise RedisUnavailable(self.where, _problem(error), is_refusal=_is_refusal(error)) from None

    def _open(self) -> _Opened:
        loop = asyncio.get_running_loop()
        opened = self._shared.opened
        if opened is None or opened.loop is not loop:
            # One more for the subscription, which takes no slot.
            client, others = build_clients(self.address, self.max_connections + 1)
            opened = _Opened(loop, client, others, asyncio.Semaphore(self.max_connections))
            self._shared.opened = opened
        return opened


@contextlib.contextmanager
def _cancellable() -> Iterator[None]:
    """
    Raise the cancellation that the library swallowed, if it did: before Python 3.12 `asyncio.wait_for` does, which it sends with.

    Without it a task that is cancelled while a command is sent would run on for ever, and the service would not end.
    """
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    try:
        yield
    finally:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError


async def _ready(opened: _Opened) -> None:
    """
    Let a cluster client find out who serves what, in a task that outlives a caller whose deadline is over.
    """
    if not isinstance(opened.client, RedisCluster):
        return
    if opened.opening is None or opened.opening.done():
        opened.opening = asyncio.create_task(_initialize(opened.client))
        opened.opening.add_done_callback(_seen)
    await asyncio.shield(opened.opening)


def _seen(task: asyncio.Task[Any]) -> None:
    # Whoever waited has what it raised; when nobody waits any more, it must not be complained about.
    if not task.cancelled():
        task.exception()


async def _initialize(client: "RedisCluster") -> None:
    async with asyncio.timeout(_OPENING_S):
        await client.initialize()


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, ResponseError | AuthenticationError | BusyLoadingError)


def _problem(error: Exception) -> str:
    if isinstance(error, TimeoutError | RedisTimeoutError):
        return "no answer in time"
    if isinstance(error, AuthenticationError):
        return "it does not accept the credentials"
    if not _is_refusal(error):
        return f"no connection ({type(error).__name__})"
    kind = _KIND.match(str(error))
    return f"it answered {type(error).__name__ if kind is None else kind[0]}"
