"""
Work that comes to its end whatever happens to those who wait for it.
"""

import asyncio

import pytest

from issuer.audit.unbroken import Unbroken

pytestmark = pytest.mark.anyio


async def test_what_the_work_returns_or_raises_is_passed_on():
    """
    As if it had been awaited.
    """
    unbroken = Unbroken()

    async def good():
        return 1

    async def bad():
        raise KeyError

    assert await unbroken.run(good()) == 1
    with pytest.raises(KeyError):
        await unbroken.run(bad())


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancelled_caller_does_not_tear_it(fails):
    """
    It goes on, and a failure that nobody waits for any more is not complained about.
    """
    unbroken, begun, may_end, ended = Unbroken(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work():
        begun.set()
        await may_end.wait()
        ended.set()
        if fails:
            raise KeyError

    caller = asyncio.create_task(unbroken.run(work()))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    may_end.set()
    await ended.wait()
    await asyncio.sleep(0)


def test_a_loop_that_ends_takes_it_along():
    """
    Nothing is left over to complain about.
    """
    unbroken, cancelled = Unbroken(), []

    async def work():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def leave():
        caller = asyncio.create_task(unbroken.run(work()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        caller.cancel()

    asyncio.run(leave())

    assert cancelled == [True]
