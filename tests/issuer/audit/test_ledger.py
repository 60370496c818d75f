"""
Ring and trail changed together: no change without its record, and no record of what did not happen.
"""

from dataclasses import replace

import pytest

from issuer.audit import (
    head_of,
)
from issuer.audit.chain import link_of
from issuer.ledger import Change
from keys import ActiveKeyMismatch, SealingKeys

from .desk import BEFORE_AND_AFTER, rotation, suspension
from .stage import BEFORE, NEW, NOW, entry, read

pytestmark = pytest.mark.anyio


async def test_a_change_and_its_record_are_there_together(desk):
    """
    The answer has the result, the revision, the record and the head that the ring was sealed with.
    """
    before = await desk.ring()

    done = await desk.ledger().change(rotation())

    ring, revision = await desk.store().load()
    (line,) = await read(desk.trail)
    assert (done.result, done.revision, done.is_recorded) == (ring.active.kid, revision, True)
    assert done.head == head_of(ring)
    assert str(done.head) == f"1.{link_of(line)}"
    (record,) = done.records
    assert (record.seq, record.revision, record.follows, record.epoch) == (1, 2, 0, 1)
    assert record.entry.before == {"active": before.active.kid}
    assert desk.events == []


async def test_changes_follow_each_other(desk):
    """
    Each one begins where the last one ended, also with another ledger, and the trail is sound.
    """
    for number in range(5):
        await desk.ledger().change(suspension(f"client {number}"))

    ring = await desk.ring()
    assert ring.companion["suspensions"] == tuple(f"client {number}" for number in range(5))
    assert await desk.carried_out() == [1, 2, 3, 4, 5]


async def test_what_is_refused_changes_nothing(desk):
    """
    The refusal goes to the caller as it is.
    """
    blob = desk.path.read_bytes()

    with pytest.raises(ActiveKeyMismatch):
        await desk.ledger().change(rotation(expected="another"))

    assert desk.path.read_bytes() == blob
    assert await read(desk.trail) == []


async def test_a_decision_without_entries_writes_nothing(desk):
    """
    What is in place already, say.
    """
    await desk.ledger().change(rotation())
    blob = desk.path.read_bytes()

    done = await desk.ledger().change(lambda ring, now: Change(ring=ring, entries=(), result=now))

    assert (done.result, done.revision, done.records) == (NOW, 2, ())
    assert done.head == head_of(await desk.ring())
    assert desk.path.read_bytes() == blob


async def test_entries_alone_can_be_put_on_record(desk):
    """
    Several at once; the keys stay as they are.
    """
    before = await desk.ring()

    done = await desk.ledger().note(entry(event="configuration_loaded"), entry(event="admin_called"))

    assert [record.entry.event for record in done.records] == ["configuration_loaded", "admin_called"]
    assert (await desk.ring()).records == before.records
    assert await desk.carried_out() == [1, 2]


async def test_the_ledger_keeps_its_part_of_the_companion_to_itself(desk):
    """
    What a decision says about the trail is replaced.
    """
    await desk.ledger().change(rotation())

    def decide(ring, _now):
        return Change(ring=replace(ring, companion={}), entries=(entry(),), result=None)

    done = await desk.ledger().change(decide)

    assert head_of(await desk.ring()) == done.head
    assert await desk.carried_out() == [1, 2]


async def test_a_customer_is_a_pseudonym(desk):
    """
    One and the same for everybody who has the sealing key.
    """
    assert desk.ledger().customer_hash("cus_1") == desk.ledger().customer_hash("cus_1") != "cus_1"


async def test_another_sealing_key_begins_another_epoch(desk):
    """
    A change under it reseals the ring; the old records stay verifiable, with the old key and without.
    """
    ring, revision = await desk.store().load()
    await desk.store(BEFORE_AND_AFTER).save(ring, expect=revision)
    await desk.ledger(sealing=BEFORE).change(suspension("a"))

    done = await desk.ledger().change(
        lambda ring, now: Change(ring=ring, entries=(entry(event="ring_resealed"),), result=now)
    )

    (record,) = done.records
    assert (record.epoch, record.sealing_key) == (2, NEW.id)
    assert (await desk.ledger().verify()).by_hash_alone == 0
    alone = await desk.ledger(sealing=SealingKeys(NEW)).verify()
    assert (alone.is_sound, alone.by_hash_alone) == (True, 1)


async def test_a_page_and_a_check_show_how_things_stand(desk):
    """
    For the list in the admin interface, and for a start.
    """
    await desk.ledger().change(rotation())
    done = await desk.ledger().change(rotation())

    page = await desk.ledger().page(limit=1)
    standing = await desk.ledger().check()

    assert [row.record for row in page.rows] == list(done.records)
    assert (page.head, page.before) == (done.head, 2)
    assert (standing.head, standing.revision, standing.unfinished, standing.spilled) == (done.head, 3, 0, 0)
