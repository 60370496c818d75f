"""
The asynchronous key source between tasks and event loops, and under cancellation.
"""

import asyncio
import gc
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from verifier.errors import CustomerContextError
from verifier.fetch import FetchError
from verifier.jwk import parse_key_set
from verifier.key_source import AsyncKeySource

URL = "https://issuer.test/.well-known/jwks.json"


def async_source(issuer, clock=lambda: 0.0, **options: Any) -> AsyncKeySource:
    return AsyncKeySource(URL, parse=parse_key_set, fetch=issuer.async_fetch, monotonic=clock, **options)


def test_many_tasks_share_one_fetch(scripted_issuer):
    """
    B16: tasks that need the same cold cache wait for one fetch, and all of them get the key.
    """

    async def main() -> list[object]:
        scripted_issuer.meanwhile = lambda: asyncio.sleep(0.01)
        source = async_source(scripted_issuer)
        return await asyncio.gather(*(source.key("k1") for _ in range(50)))

    keys = asyncio.run(main())

    assert len({id(key) for key in keys}) == 1
    assert len(keys) == 50
    assert len(scripted_issuer.asked) == 1


def test_the_first_waiter_may_be_cancelled(scripted_issuer):
    """
    B16: the caller that began the fetch goes away; the fetch goes on and the others get their key.
    """

    async def main() -> tuple[object, ...]:
        answered = asyncio.Event()
        scripted_issuer.meanwhile = answered.wait
        source = async_source(scripted_issuer)
        callers = [asyncio.create_task(source.key("k1")) for _ in range(50)]
        await asyncio.sleep(0.01)
        callers[0].cancel()
        callers[1].cancel()
        await asyncio.sleep(0)
        answered.set()
        return tuple(await asyncio.gather(*callers, return_exceptions=True))

    first, second, *others = asyncio.run(main())

    assert isinstance(first, asyncio.CancelledError)
    assert isinstance(second, asyncio.CancelledError)
    assert len({id(key) for key in others}) == 1
    assert not isinstance(others[0], BaseException)
    assert len(scripted_issuer.asked) == 1


def test_no_task_with_a_fresh_key_waits_for_a_fetch(scripted_issuer, still_clock):
    """
    B13, B17: while a fetch hangs, keys at hand are answered without giving way to anybody.
    """

    async def main() -> object:
        source = async_source(scripted_issuer, still_clock)
        await source.key("k1")
        scripted_issuer.meanwhile = asyncio.Event().wait
        still_clock.at = 100
        unknown = asyncio.create_task(source.key("k3"))
        await asyncio.sleep(0.01)
        try:
            source.key("k1").send(None)
        except StopIteration as returned:
            key = returned.value
        await source.aclose()
        with pytest.raises(CustomerContextError):
            await unknown
        return key

    assert asyncio.run(main()) is not None


def test_a_hanging_fetch_is_ended_at_the_limit(scripted_issuer, still_clock):
    """
    The caller's own HTTP is cancelled at the limit; when it does not let itself be, its callers leave it.
    """
    stubborn = []

    async def refuse_to_end() -> None:
        stubborn.append(True)
        while len(stubborn) < 3:
            try:
                await asyncio.sleep(0.2)
            except asyncio.CancelledError:
                stubborn.append(False)
                await asyncio.sleep(0.2)
                stubborn.append(False)

    async def main() -> list[str]:
        reasons = []
        source = async_source(scripted_issuer, still_clock, wait_limit_s=0.05)
        for at, meanwhile in ((0, asyncio.Event().wait), (40, refuse_to_end)):
            still_clock.at = at
            scripted_issuer.meanwhile = meanwhile
            with pytest.raises(CustomerContextError) as caught:
                await source.key("k1")
            reasons.append(f"{caught.value.reason} {source.state()['last_error']}")
        await asyncio.gather(*source._tasks)
        assert source.state()["kids"] == []
        return reasons

    assert asyncio.run(main()) == ["keys_unavailable TimeoutError"] * 2


def test_one_event_loop_after_the_other(scripted_issuer, still_clock):
    """
    A source outlives its event loops: what a loop took down with it, begun or not, is begun again on the next.
    """
    source = async_source(scripted_issuer, still_clock)
    key = asyncio.run(source.key("k1"))

    async def begin_aside_and_leave(*, step: bool) -> None:
        scripted_issuer.meanwhile = asyncio.Event().wait
        assert await source.key("k1") is key
        if step:
            await asyncio.sleep(0)

    still_clock.at = 100
    asyncio.run(begin_aside_and_leave(step=False))
    asyncio.run(begin_aside_and_leave(step=True))
    still_clock.at = 121
    scripted_issuer.meanwhile = lambda: None
    renewed = asyncio.run(source.key("k1"))

    assert renewed is not key
    assert source.state()["failures"] == 0


def test_a_fetch_that_cancels_itself_is_a_failure(scripted_issuer):
    """
    A cancellation that nobody asked for is the caller's own HTTP failing, and counts as an attempt.
    """

    async def main() -> None:
        async def cancel() -> None:
            raise asyncio.CancelledError

        scripted_issuer.meanwhile = cancel
        source = async_source(scripted_issuer)
        for _ in range(2):
            with pytest.raises(CustomerContextError):
                await source.key("k1")
        assert source.state()["last_error"] == "CancelledError"

    asyncio.run(main())

    assert len(scripted_issuer.asked) == 1


def test_a_loop_that_was_closed_in_mid_flight(scripted_issuer, still_clock):
    """
    A fetch whose loop was closed over it is lost, and no caller waits for it.
    """
    source = async_source(scripted_issuer, still_clock)
    scripted_issuer.meanwhile = asyncio.Event().wait
    loop = asyncio.new_event_loop()
    caller = loop.create_task(source.key("k1"))
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()

    scripted_issuer.meanwhile = lambda: None
    key = asyncio.run(source.key("k1"))

    assert key is not None
    assert not caller.done()


def test_two_event_loops_at_once(scripted_issuer):
    """
    A task of one loop waits for a fetch that another loop runs.
    """
    source = async_source(scripted_issuer)
    asked, answered = threading.Event(), threading.Event()

    async def hang() -> None:
        asked.set()
        await asyncio.to_thread(answered.wait)

    async def join() -> object:
        caller = asyncio.create_task(source.key("k1"))
        await asyncio.sleep(0.01)
        answered.set()
        return await caller

    scripted_issuer.meanwhile = hang
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(asyncio.run, source.key("k1"))
        asked.wait()
        second = asyncio.run(join())

    assert second is first.result()
    assert len(scripted_issuer.asked) == 1


def test_ending_a_source_ends_its_fetch(scripted_issuer):
    """
    `aclose` takes down the fetch in flight and releases those who wait for it.
    """

    async def main() -> tuple[str, int]:
        scripted_issuer.meanwhile = asyncio.Event().wait
        source = async_source(scripted_issuer)
        caller = asyncio.create_task(source.key("k1"))
        await asyncio.sleep(0.01)
        await source.aclose()
        await source.aclose()
        with pytest.raises(CustomerContextError) as caught:
            await caller
        return caught.value.reason, len(source._tasks)

    assert asyncio.run(main()) == ("keys_unavailable", 0)


def test_failing_aside_leaves_no_trace_in_the_event_loop(scripted_issuer, still_clock, caplog):
    """
    A fetch that nobody waits for fails without "Task exception was never retrieved".
    """

    async def main() -> None:
        source = async_source(scripted_issuer, still_clock)
        await source.key("k1")
        scripted_issuer.answer = FetchError("down")
        still_clock.at = 100
        await source.key("k1")
        await asyncio.sleep(0.01)
        del source
        gc.collect()

    # What earlier tests left behind is not told of in here.
    gc.collect()
    caplog.clear()
    asyncio.run(main(), debug=True)

    assert [record for record in caplog.records if record.name == "asyncio" and record.levelno >= logging.ERROR] == []


def test_few_wait_where_only_few_may(scripted_issuer, still_clock):
    """
    Beyond the bound callers are refused at once while others wait; whoever finds a fresh key neither waits nor is refused.
    """

    async def main() -> tuple[list[str], object]:
        answered = asyncio.Event()
        source = async_source(scripted_issuer, still_clock, max_waiting=2)
        await source.refresh()
        still_clock.at += 30
        scripted_issuer.meanwhile = answered.wait
        callers = [asyncio.create_task(source.key(f"unknown-{number}")) for number in range(5)]
        await asyncio.sleep(0.01)
        at_once = [caller.exception().reason for caller in callers if caller.done()]
        known = await source.key("k1")
        answered.set()
        late = await asyncio.gather(*callers, return_exceptions=True)
        return [*at_once, *(error.reason for error in late[:2])], known

    reasons, known = asyncio.run(main())

    assert reasons == ["keys_unavailable"] * 3 + ["key"] * 2
    assert known is not None
