"""
What is particular to one face: event loops that come and go, threads that cannot start, a coroutine that must not wait.
"""

import asyncio
import gc
import socket
import time
import warnings

import pytest

from verifier import ReplayStoreUnavailable
from verifier.replay_redis import AsyncRedisReplayStore, RedisReplayStore
from verifier.replay_redis_script import AnswerOutOfStep, judge_opening
from verifier.replay_redis_wires import _Limit, _LimitedSocket, drive

NOW = 1_767_225_600.0


def test_event_loops_that_come_and_go(settled):
    """
    One store serves a loop after the other; connections of a loop that ended are not waited for.
    """
    store = AsyncRedisReplayStore.from_url(settled.url, deadline_ms=10_000, now=lambda: NOW)
    scope = store.scoped("i", "a")

    async def use(jti):
        return await scope.use(jti, int(NOW) + 50, NOW)

    async def end():
        answer = await use("c")
        await store.aclose()
        await store.aclose()
        return answer

    with warnings.catch_warnings():
        # The first two loops end without aclose, which leaves their connections to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        assert [asyncio.run(use("a")), asyncio.run(use("a")), asyncio.run(end())] == [True, False, True]
        gc.collect()
    with pytest.raises(ReplayStoreUnavailable):
        asyncio.run(use("d"))


def test_a_store_closed_while_it_connects(settled):
    """
    Closing ends what is on its way; whoever waits for it hears so.
    """

    async def close():
        settled.pause()
        store = AsyncRedisReplayStore.from_url(settled.url, deadline_ms=10_000, now=lambda: NOW)
        asked = asyncio.create_task(store.use("a", int(NOW) + 50))
        await asyncio.sleep(0.05)
        await store.aclose()
        with pytest.raises(ReplayStoreUnavailable):
            await asked

    try:
        asyncio.run(close())
    finally:
        settled.resume()


def test_a_caller_who_is_cancelled_while_waiting_for_a_connection(settled):
    """
    The connection comes up all the same and serves the next.
    """

    async def run():
        async with AsyncRedisReplayStore.from_url(settled.url, deadline_ms=10_000, now=lambda: NOW) as store:
            store._links().pool.forget("")
            asked = asyncio.create_task(store.use("a", int(NOW) + 50))
            await asyncio.sleep(0)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            return await store.scoped("i", "a").use("b", int(NOW) + 50, NOW)

    assert asyncio.run(run()) is True


def test_an_event_loop_that_is_held_up(settled):
    """
    An answer that came in time is heard, however long something else kept the loop from reading it.
    """

    async def run():
        async with AsyncRedisReplayStore.from_url(settled.url, now=lambda: NOW, deadline_ms=400) as store:
            scope = store.scoped("i", "a")
            first = await scope.use("a", int(NOW) + 50, NOW)
            asked = asyncio.create_task(scope.use("b", int(NOW) + 50, NOW))
            await asyncio.sleep(0)
            time.sleep(0.5)  # noqa: ASYNC251 -- this is what holds it up
            return first, await asked, len(store._links().pool._idle[""])

    assert asyncio.run(run()) == (True, True, 1)


@pytest.mark.parametrize("port", [None, 1], ids=["up", "down"])
def test_blocks_open_and_close(settled, port):
    """
    A `with` block opens the store and closes it; a Redis that is down keeps no program from starting.
    """
    url = settled.url if port is None else f"redis://127.0.0.1:{port}"

    async def block():
        async with AsyncRedisReplayStore.from_url(url, deadline_ms=10_000) as store:
            return store._closed, store._links()

    with RedisReplayStore.from_url(url, deadline_ms=10_000) as store:
        assert store._closed is False
    closed, links = asyncio.run(block())

    assert closed is False
    for pool in (links.pool,):
        with pytest.raises(ReplayStoreUnavailable):
            pool.take("")
    with pytest.raises(ReplayStoreUnavailable):
        store.use("a", int(NOW) + 50)


def test_no_thread_can_be_started(settled, monkeypatch):
    """
    Where no thread starts any more nothing is accepted.
    """

    def start(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", start)

    with RedisReplayStore.from_url(settled.url, deadline_ms=10_000) as store, pytest.raises(ReplayStoreUnavailable):
        store.use("a", int(time.time()) + 60)


def test_an_interrupt_while_waiting_for_a_connection(settled, monkeypatch):
    """
    What ends the program goes on, and the place in the queue is given up.
    """
    store = RedisReplayStore.from_url(settled.url, deadline_ms=10_000)
    pool = store._links().pool

    class Interrupted:
        def done(self):
            return False

        def result(self, *_):
            raise KeyboardInterrupt

    monkeypatch.setattr(pool, "_future", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.use("a", int(time.time()) + 60)

    assert pool._waiters == []
    store.close()


class Waiting:
    """
    Something that is never done.
    """

    def __await__(self):
        yield


def test_a_coroutine_of_the_blocking_face_does_not_wait():
    """
    What both faces share is run to its end at once; a wait would be a mistake of ours.
    """

    async def answer():
        return 7

    async def wait():
        await Waiting()

    assert drive(answer()) == 7
    with pytest.raises(RuntimeError, match="waited"):
        drive(wait())


def test_a_limit_that_has_passed():
    """
    No read or write begins after the limit, through either way of reading.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        limit = _Limit()
        limited = _LimitedSocket(ours, limit)
        theirs.sendall(b"hello")

        for act in (lambda: limited.recv(1), lambda: limited.recv_into(bytearray(1)), lambda: limited.sendall(b"x")):
            with pytest.raises(TimeoutError):
                act()

        limit.at = time.monotonic() + 5
        buffer = bytearray(2)
        assert limited.recv(1) == b"h"
        assert (limited.recv_into(buffer), bytes(buffer)) == (2, b"el")
        assert limited.fileno() == ours.fileno()


@pytest.mark.parametrize(
    "reply", [None, 1, b"", b"attempt", b"attempt new ", b"another new", "attempt new"], ids=range(7)
)
def test_opening_takes_one_answer_only(reply):
    """
    What is no answer to the question that opens a connection does not open it.
    """
    with pytest.raises(AnswerOutOfStep):
        judge_opening(reply, b"attempt")

    assert judge_opening(b"attempt new", b"attempt") is True
    assert judge_opening(b"attempt old", b"attempt") is False
