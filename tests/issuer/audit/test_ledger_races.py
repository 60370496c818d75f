"""
Writers that overtake each other, and answers that get lost.
"""

import asyncio
import json
from dataclasses import replace

import pytest

from issuer.audit import (
    LedgerBusy,
    TrailUnavailable,
    head_of,
)
from keys import ActiveKeyMismatch, FileUnwritable, RevisionConflict, rotate

from .desk import (
    Hooked,
    Unlocked,
    once,
    raising,
    revocation,
    rotation,
    suspension,
)
from .stage import NOW, SECOPS, TIMES, entry, read

pytestmark = pytest.mark.anyio


async def test_a_writer_that_is_overtaken_starts_again(desk):
    """
    It decides about the ring that is there then; the record it had written is not carried out.
    """
    other = desk.ledger()

    async def overtake():
        ring, revision = await desk.store().load()
        await desk.store().save(replace(ring, companion={**ring.companion, "other": True}), expect=revision)

    done = await desk.ledger(store=Hooked(desk.store(), "save", before=once(overtake))).change(suspension("mine"))

    assert (await desk.ring()).companion["other"]
    assert (done.revision, done.records[0].seq, done.records[0].follows) == (3, 2, 0)
    assert await desk.carried_out() == [2]
    assert (await other.check()).unfinished == 0


async def test_a_writer_that_is_overtaken_may_be_refused(desk):
    """
    The rotation it wanted was made by somebody else.
    """
    active = (await desk.ring()).active.kid

    async def overtake():
        ring, revision = await desk.store().load()
        rotated = rotate(ring, now=NOW, times=TIMES, expected_active=active, force=True, reason="faster").ring
        await desk.store().save(rotated, expect=revision)

    with pytest.raises(ActiveKeyMismatch):
        await desk.ledger(store=Hooked(desk.store(), "save", before=once(overtake))).change(rotation(expected=active))

    assert (await desk.ledger().check()).unfinished == 1


async def test_a_writer_whose_answer_was_lost_is_not_carried_out_twice(desk):
    """
    The store says that another revision is there; it is the writer's own.
    """
    lost = Hooked(desk.store(), "save", after=once(raising(RevisionConflict(where="store", expected=1, found=2))))

    done = await desk.ledger(store=lost).change(suspension("once"))

    assert (await desk.ring()).companion["suspensions"] == ("once",)
    assert (done.revision, done.head) == (2, head_of(await desk.ring()))
    assert await desk.carried_out() == [1]


async def test_a_writer_whose_answer_was_lost_recognises_its_change_behind_others(desk):
    """
    Somebody else went on from it meanwhile.
    """

    async def go_on():
        await desk.ledger().change(suspension("other"))
        raise RevisionConflict(where="store", expected=1, found=2)

    trail = Unlocked(desk.trail)
    done = await desk.ledger(store=Hooked(desk.store(), "save", after=once(go_on)), trail=trail).change(
        suspension("once")
    )

    assert (await desk.ring()).companion["suspensions"] == ("once", "other")
    assert done.revision == 2
    assert await desk.carried_out() == [1, 2]


async def test_many_writers_at_once_each_make_their_change(desk):
    """
    Two ledgers, twenty changes: each is there once, in the order of the trail.
    """
    ledgers = [desk.ledger(), desk.ledger()]

    done = await asyncio.gather(*[ledgers[number % 2].change(suspension(f"c{number}")) for number in range(20)])

    names = [json.loads(line)["target"] for line in await read(desk.trail)]
    suspended = (await desk.ring()).companion["suspensions"]
    assert sorted(suspended) == sorted(f"c{number}" for number in range(20))
    assert tuple(names[seq - 1] for seq in await desk.carried_out()) == suspended
    assert {each.revision for each in done} == set(range(2, 22))


async def test_of_many_rotations_at_once_one_is_made(desk):
    """
    All expect the same active key.
    """
    active = (await desk.ring()).active.kid
    ledgers = [desk.ledger(), desk.ledger()]

    results = await asyncio.gather(
        *[ledgers[number % 2].change(rotation(expected=active)) for number in range(50)], return_exceptions=True
    )

    assert sum(isinstance(each, ActiveKeyMismatch) for each in results) == 49
    assert len(await desk.carried_out()) == 1


async def test_a_place_that_was_taken_means_to_start_again(desk):
    """
    Another writer put its record there first.
    """
    trail = Unlocked(desk.trail)

    async def overtake():
        await desk.ledger(trail=trail).change(suspension("first"))

    done = await desk.ledger(trail=Hooked(trail, "append", before=once(overtake))).change(suspension("second"))

    assert (await desk.ring()).companion["suspensions"] == ("first", "second")
    assert done.records[0].follows == 1


async def test_a_ring_that_is_changed_while_the_trail_is_read_is_no_damage(desk):
    """
    What looks like an older ring is one that was loaded a moment too early.
    """
    trail = Unlocked(desk.trail)
    other = desk.ledger(trail=trail)

    async def change():
        await other.change(suspension("meanwhile"))
        await other.change(suspension("again"))

    await other.change(suspension("first"))
    early = Hooked(desk.store(), "load", after=once(change))
    done = await desk.ledger(store=early, trail=trail).change(suspension("own"))
    standing = await desk.ledger(store=Hooked(desk.store(), "load", after=once(change))).check()

    assert done.revision == 5
    assert standing.revision == 7


async def test_who_is_always_overtaken_gives_up(desk, monkeypatch):
    """
    With an error of its own, whatever it was about.
    """
    monkeypatch.setattr("issuer.ledger.MAX_ATTEMPTS", 3)
    monkeypatch.setattr("issuer.audit.emergency.MAX_ATTEMPTS", 3)

    async def overtake():
        ring, revision = await desk.store().load()
        await desk.store().save(ring, expect=revision)

    overtaken = Hooked(desk.store(), "save", before=overtake)
    ledger = desk.ledger(store=overtaken)
    without = desk.ledger(
        store=overtaken, trail=Hooked(desk.trail, "end", before=raising(TrailUnavailable(where="", problem="")))
    )
    moving = desk.ledger(store=Hooked(desk.store(), "load", after=overtake), trail=cut(desk))

    for work in (
        ledger.note(entry()),
        ledger.restart(SECOPS, "no reason"),
        without.change(revocation((await desk.ring()).standbys[0].kid), emergency=True),
        moving.check(),
    ):
        with pytest.raises(LedgerBusy):
            await work


async def test_a_change_that_has_begun_comes_to_its_end(desk):
    """
    A caller that is cancelled in the middle does not tear it.
    """
    reached, may_go_on = asyncio.Event(), asyncio.Event()

    async def wait():
        reached.set()
        await may_go_on.wait()

    ledger = desk.ledger(store=Hooked(desk.store(), "save", before=wait))
    caller = asyncio.create_task(ledger.change(suspension("cancelled")))
    await reached.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    may_go_on.set()
    await asyncio.wait(ledger._unbroken._running)

    assert (await desk.ring()).companion["suspensions"] == ("cancelled",)
    assert await desk.carried_out() == [1]


async def test_a_ring_that_cannot_be_saved_leaves_a_record_that_was_not_carried_out(desk):
    """
    The error of the store goes to the caller.
    """
    full = Hooked(
        desk.store(), "save", before=raising(FileUnwritable(path=desk.path, problem="full", outcome="unchanged"))
    )

    with pytest.raises(FileUnwritable):
        await desk.ledger(store=full).change(suspension("full"))
    await desk.ledger().change(suspension("later"))

    assert await desk.carried_out() == [2]


def cut(desk):
    """
    A trail that always says that the ring is older than it.
    """

    class Cut:
        where = "cut"

        async def end(self):
            return await desk.trail.end()

        async def lines(self, _start=1):
            yield b"garbage"

    return Cut()
