"""
What happens to one question: a connection, the exchange, perhaps a repetition, and what the answer does to the connection.

Both faces share all but what waits: making a connection on a thread or a task of its own, and waiting for one. A connection may
take longer to come up than a call has time; it is made aside and serves the next.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Thread
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from redis.exceptions import ClusterDownError, MovedError, NoScriptError, ReadOnlyError, ResponseError

from .replay import ReplayStoreUnavailable
from .replay_redis_connect import CLUSTER_TAGS, Connector, check_opening, name_refusal, new_attempt
from .replay_redis_pool import Pool, Waiter, Wire
from .replay_redis_script import AnswerOutOfStep, Question, ReplayQuarantine, judge, opening, waiting
from .replay_redis_settings import Settings
from .replay_redis_wires import FAREWELL_S, AsyncWire, BlockingWire, drive

__all__ = ["DIAL_LIMIT_S", "AsyncLinks", "BlockingLinks", "Links"]

DIAL_LIMIT_S: Final = 2.0
"""Longest that a connection may take to come up, in seconds; the calls that wait for it keep to their own deadline."""

_W = TypeVar("_W", bound=Wire)


_Put = Callable[[_W, float], Awaitable[list[Any]]]


class Links(ABC, Generic[_W]):
    """
    What one process or one event loop has to do with Redis; every *until* is an instant of the monotonic clock.
    """

    def __init__(self, settings: Settings, connector: Connector[_W], pool: Pool[_W]) -> None:
        self._clustered = settings.kind == "cluster"
        self._connector = connector
        self.pool = pool

    @abstractmethod
    async def wait(self, waiter: Waiter, until: float) -> _W | ReplayStoreUnavailable:
        """
        Wait for what a waiter is given.
        """

    async def claim(self, question: Question, until: float) -> bool:
        """
        Ask whether this is the first use.

        A lost connection, and an answer that takes more than half of the time left, are reason to ask once more, with the
        same attempt and on another connection.

        Raises:
            ReplayStoreUnavailable: when it cannot be told.
        """
        wire, replies = await self._ask_twice(question.tag, partial(self._put, question), until)
        if self._clustered and isinstance(replies[0], MovedError):
            # More than this tag is likely to have moved; whoever serves it now is asked where all of them are.
            moved = replies[0]
            self._connector.prefer(moved.host or wire.label.rpartition(":")[0], moved.port)
            self.pool.lost(wire)
            self.pool.forget(wire.label)
            wire, replies = await self._ask_twice(question.tag, partial(self._put, question), until)
        try:
            first = self._settle(wire, question, replies[0])
        except ReplayQuarantine:
            # The tags of a primary share its fate: their epochs begin now as well, and not with the next token of each.
            if self._clustered:
                with suppress(ReplayStoreUnavailable):
                    await self._open_tags(self._neighbours(question.tag), until)
            raise
        if first and question.replicas:
            await self._wait_for_replicas(wire, question.replicas, until)
        self.pool.give(wire)
        return first

    async def _ask_twice(self, tag: str, put: _Put[_W], until: float) -> tuple[_W, list[Any]]:
        wire = await self._take(tag, until)
        began = monotonic()
        try:
            return wire, await self._ask_once(wire, put, began + (until - began) / 2)
        except Exception:  # noqa: BLE001, S110 -- whatever a broken connection makes of itself; the next one tells
            pass
        wire = await self._take(tag, until)
        try:
            return wire, await self._ask_once(wire, put, until)
        except Exception as error:  # noqa: BLE001 -- the same
            raise _broken(error) from None

    async def _ask_once(self, wire: _W, put: _Put[_W], until: float) -> list[Any]:
        try:
            return await put(wire, until)
        except BaseException as error:
            self.pool.lost(wire)
            if isinstance(error, Exception):
                # What else is open to this primary has likely the same fate; whoever asks next shall not have to find out.
                self.pool.forget(wire.label)
            raise

    async def _put(self, question: Question, wire: _W, until: float) -> list[Any]:
        replies = await wire.exchange(question.packed(), 1, until)
        if isinstance(replies[0], NoScriptError):
            replies = await wire.exchange(question.packed(whole=True), 1, until)
        return replies

    def _settle(self, wire: _W, question: Question, reply: object) -> bool:
        try:
            if isinstance(reply, MovedError) and not self._clustered:
                raise ReplayStoreUnavailable("Redis is a cluster: give redis+cluster://, or a cluster client")
            if isinstance(reply, ResponseError):
                raise ReplayStoreUnavailable(f"Redis refused: {name_refusal(reply)}")
            return judge(reply, question)
        except AnswerOutOfStep:
            self.pool.lost(wire)
            raise
        except ReplayStoreUnavailable:
            if isinstance(reply, ReadOnlyError | ClusterDownError):
                # This is no primary, or none that decides: the next call asks again who is.
                self.pool.lost(wire)
                self.pool.forget(wire.label)
            else:
                self.pool.give(wire)
            raise

    async def _wait_for_replicas(self, wire: _W, replicas: int, until: float) -> None:
        asked = waiting(replicas, until - monotonic())
        try:
            (held_by,) = await self._ask_once(wire, lambda wire, limit: wire.exchange(asked, 1, limit), until)
        except Exception as error:  # noqa: BLE001 -- the same
            raise _broken(error) from None
        if type(held_by) is not int or held_by < replicas:
            self.pool.give(wire)
            raise ReplayStoreUnavailable("too few replicas hold the record")

    async def _take(self, tag: str, until: float) -> _W:
        found = self.pool.take(tag)
        answer = await self.wait(found, until) if isinstance(found, Waiter) else found
        if isinstance(answer, ReplayStoreUnavailable):
            raise answer
        return answer

    async def open(self, until: float) -> None:
        """
        Reach every primary and write the epoch records that are missing.

        Raises:
            ReplayStoreUnavailable: when one of them cannot be reached.
        """
        for tags in await self.primaries(until):
            await self._open_tags(tags, until)

    async def _open_tags(self, tags: tuple[str, ...], until: float) -> None:
        attempt = new_attempt()
        check_opening(await self.ask(tags[0], opening(tags, attempt), len(tags), until), attempt)

    def _neighbours(self, tag: str) -> tuple[str, ...]:
        routes = self.pool.routes
        return (tag, *(other for other, label in routes.items() if label == routes.get(tag) and other != tag))

    async def primaries(self, until: float) -> list[tuple[str, ...]]:
        """
        Return the tags that each primary serves; without a cluster there is one of each.

        Raises:
            ReplayStoreUnavailable: when that cannot be found out.
        """
        if not self._clustered:
            return [("",)]
        self.pool.give(await self._take(CLUSTER_TAGS[0], until))
        served: dict[str, list[str]] = {}
        for tag, label in self.pool.routes.items():
            served.setdefault(label, []).append(tag)
        return [tuple(tags) for tags in served.values()]

    async def ask(self, tag: str, packed: bytes, answers: int, until: float) -> list[Any]:
        """
        Send commands to the primary that serves *tag* and return that many answers, refusals as exceptions among them.

        Raises:
            ReplayStoreUnavailable: when the answers do not come.
        """
        wire, replies = await self._ask_twice(tag, lambda wire, limit: wire.exchange(packed, answers, limit), until)
        self.pool.give(wire)
        return replies

    async def join(self, waiter: Waiter) -> None:
        """
        Make the connection that was begun for *waiter*; raises nothing but what ends a program or a task.
        """
        try:
            wire, routes = await self._connector.connect(waiter.tag, self.pool.routes, monotonic() + DIAL_LIMIT_S)
        except ReplayStoreUnavailable as error:
            self.pool.failed(waiter, error)
        except BaseException as error:
            self.pool.failed(waiter, _broken(error))
            if not isinstance(error, Exception):
                raise
        else:
            self.pool.joined(waiter, wire, routes)


class BlockingLinks(Links[BlockingWire]):
    """
    The links of one process; safe between its threads.
    """

    def __init__(self, settings: Settings, limit: int) -> None:
        pool: Pool[BlockingWire] = Pool(limit, begin=self._begin, future=Future)
        super().__init__(settings, Connector(settings, BlockingWire.dial), pool)

    async def wait(self, waiter: Waiter, until: float) -> BlockingWire | ReplayStoreUnavailable:
        """
        Block the thread.
        """
        try:
            answer: BlockingWire | ReplayStoreUnavailable = waiter.future.result(max(0.0, until - monotonic()))
        except BaseException as error:
            self.pool.leave(waiter)
            if isinstance(error, TimeoutError):
                return ReplayStoreUnavailable("no connection to Redis within the deadline")
            raise
        return answer

    def _begin(self, waiter: Waiter) -> None:
        Thread(target=lambda: drive(self.join(waiter)), name="replay-redis", daemon=True).start()


class AsyncLinks(Links[AsyncWire]):
    """
    The links of one event loop.
    """

    def __init__(self, settings: Settings, limit: int) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        pool: Pool[AsyncWire] = Pool(limit, begin=self._begin, future=asyncio.get_running_loop().create_future)
        super().__init__(settings, Connector(settings, AsyncWire.dial), pool)

    async def wait(self, waiter: Waiter, until: float) -> AsyncWire | ReplayStoreUnavailable:
        """
        Let the event loop go on.
        """
        try:
            async with asyncio.timeout(until - monotonic()):
                answer: AsyncWire | ReplayStoreUnavailable = await waiter.future
        except BaseException as error:
            self.pool.leave(waiter)
            if isinstance(error, TimeoutError):
                return ReplayStoreUnavailable("no connection to Redis within the deadline")
            raise
        return answer

    def _begin(self, waiter: Waiter) -> None:
        task = asyncio.get_running_loop().create_task(self.join(waiter))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """
        Drop all connections and end those on their way.
        """
        self.pool.close()
        ended = tuple(self._tasks)
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        # The event loop closes what was dropped in its next turn, and may have none after this.
        await asyncio.sleep(2 * FAREWELL_S if ended else 0)


def _broken(error: BaseException) -> ReplayStoreUnavailable:
    return ReplayStoreUnavailable(f"the connection to Redis failed: {type(error).__name__}")
