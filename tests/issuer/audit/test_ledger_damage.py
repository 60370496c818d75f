"""
Rings and trails that were put back, cut off or touched, and how to go on from there.
"""

import shutil
from dataclasses import replace

import pytest
from redis.asyncio import Redis

from issuer.audit import (
    FileTrail,
    RedisTrail,
    RingOlderThanTrail,
    TrailDamaged,
    TrailUnavailable,
    copy_trail,
)
from issuer.ledger import Change
from keys import SealingKeys, SelfTestFailed

from .desk import BEFORE_AND_AFTER, Crash, Hooked, raising, revocation, rewrite, rotation
from .stage import NEW, SECOPS, entry

pytestmark = pytest.mark.anyio


async def test_a_ring_from_a_backup_is_older_than_the_trail(desk):
    """
    Two changes back or more: the trail has their records. The service does not start, and nothing planned goes on.
    """
    backup = desk.path.read_bytes()
    await desk.ledger().change(rotation())
    await desk.ledger().change(rotation())
    desk.path.write_bytes(backup)

    for work in (desk.ledger().check(), desk.ledger().change(rotation()), desk.ledger().note(entry())):
        with pytest.raises(RingOlderThanTrail) as refusal:
            await work
        assert (refusal.value.revision, refusal.value.recorded) == (1, 3)


async def test_a_ring_from_right_before_the_last_change_is_older_too(desk):
    """
    The revocation that somebody wants to undo: it was noted that the ring was saved, so this is no crash.
    """
    backup = desk.path.read_bytes()
    await desk.ledger().change(revocation((await desk.ring()).active.kid), emergency=True)
    desk.path.write_bytes(backup)

    with pytest.raises(RingOlderThanTrail):
        await desk.ledger().check()


async def test_a_backup_can_be_looked_at_before_it_is_restored(desk):
    """
    The present ring is fine, the older one is refused.
    """
    old, old_revision = await desk.store().load()
    await desk.ledger().change(rotation())
    present, revision = await desk.store().load()

    assert (await desk.ledger().check_candidate(present, revision)).revision == 2
    with pytest.raises(RingOlderThanTrail):
        await desk.ledger().check_candidate(old, old_revision)


async def test_an_emergency_goes_on_with_an_older_ring(desk):
    """
    What leaked must go, whatever is wrong with the trail.
    """
    backup = desk.path.read_bytes()
    leaked = (await desk.ring()).active.kid
    await desk.ledger().change(rotation())
    desk.path.write_bytes(backup)

    done = await desk.ledger().change(revocation(leaked), emergency=True)

    assert not done.is_recorded
    assert (await desk.ring()).record(leaked).state == "revoked"


async def test_an_older_ring_can_be_taken_on_purpose(desk):
    """
    Somebody answers for it; what the lost ring did stays on record as done, and everything goes on.
    """
    backup = desk.path.read_bytes()
    await desk.ledger().change(rotation())
    await desk.ledger().change(rotation())
    desk.path.write_bytes(backup)

    done = await desk.ledger().restart(SECOPS, "the disk was lost")

    (record,) = done.records
    assert (record.entry.event, record.entry.reason, record.entry.actor) == (
        "trail_restarted",
        "the disk was lost",
        SECOPS,
    )
    assert record.entry.after["problem"] == "ring_older_than_trail"
    assert record.entry.before["revision"] == 1
    await desk.ledger().change(rotation())
    assert await desk.carried_out() == [1, 2, 3, 4]
    assert [event for event, _ in desk.events] == ["trail_restarted"]
    assert (await desk.ledger().check()).revision == 3


DAMAGES = {
    "cut": (lambda lines: lines[:2], 3, "cut"),
    "gone": (lambda _lines: [], 3, "cut"),
    "changed": (lambda lines: [*lines[:2], lines[2].replace(b"planned", b"changed")], 3, "changed"),
    "garbage": (lambda lines: [*lines, b"garbage"], 4, "malformed"),
    "repeated": (lambda lines: [*lines, lines[1]], 4, "out_of_order"),
}


@pytest.mark.parametrize("kind", DAMAGES)
async def test_a_trail_that_does_not_end_as_the_ring_says_is_damaged(desk, kind):
    """
    Nothing planned is written behind it, an emergency goes on, and once somebody answers for it, everything does.
    """
    change, seq, problem = DAMAGES[kind]
    for _ in range(3):
        await desk.ledger().change(rotation())
    await rewrite(desk, change)

    for work in (desk.ledger().check(), desk.ledger().change(rotation())):
        with pytest.raises(TrailDamaged) as refusal:
            await work
        # A file is looked through from its end: a line of an earlier number there hides what stands before it.
        assert (refusal.value.seq, refusal.value.problem) in [(seq, problem), (3, "cut")]
    leaked = (await desk.ring()).active.kid
    assert not (await desk.ledger().change(revocation(leaked), emergency=True)).is_recorded
    assert not (await desk.ledger().verify()).is_sound

    done = await desk.ledger().restart(SECOPS, "found on Monday")
    await desk.ledger().change(rotation())

    findings = await desk.ledger().verify()
    assert [record.entry.event for record in done.records] == ["trail_restarted", "audit_gap", "key_revoked"]
    assert findings.is_sound
    assert findings.findings
    assert (await desk.ledger().check()).unfinished == 0


async def test_a_removed_head_is_told_from_a_changed_one(desk):
    """
    A later record stands in its place.
    """
    await desk.ledger().change(rotation())
    with pytest.raises(Crash):
        await desk.ledger(store=Hooked(desk.store(), "save", before=raising(Crash()))).change(rotation())
    if isinstance(desk.trail, FileTrail):
        await rewrite(desk, lambda lines: lines[1:])
    else:
        await desk.trail._client.xdel(desk.trail.where, "1-0")

    with pytest.raises(TrailDamaged) as refusal:
        await desk.ledger().check()

    assert (refusal.value.seq, refusal.value.problem) == (1, "missing")


async def test_an_unfinished_record_that_was_taken_away_is_noticed_on_redis(redis_desk):
    """
    The stream knows that it gave the number, and gives it to nobody again; a restart goes on behind it.
    """
    await redis_desk.ledger().change(rotation())
    with pytest.raises(Crash):
        await redis_desk.ledger(store=Hooked(redis_desk.store(), "save", before=raising(Crash()))).change(rotation())
    await redis_desk.trail._client.xdel(redis_desk.trail.where, "2-0")

    with pytest.raises(TrailDamaged) as refusal:
        await redis_desk.ledger().change(rotation())
    done = await redis_desk.ledger().restart(SECOPS, "found on Monday")

    assert (refusal.value.seq, refusal.value.problem) == (2, "missing")
    assert (done.records[0].seq, done.records[0].follows) == (3, 1)
    assert (await redis_desk.ledger().verify()).is_sound


async def test_a_trail_that_is_fine_can_be_restarted(desk):
    """
    After its file was moved to an archive, say; what a crash left before is still not carried out.
    """
    await desk.ledger().change(rotation())
    with pytest.raises(Crash):
        await desk.ledger(store=Hooked(desk.store(), "save", before=raising(Crash()))).change(rotation())

    done = await desk.ledger().restart(SECOPS, "new epoch")

    assert (done.records[0].seq, done.records[0].follows, done.records[0].epoch) == (3, 1, 2)
    assert done.records[0].entry.after["problem"] == "none"
    assert await desk.carried_out() == [1, 3]


async def test_the_last_numbers_are_not_used_up(desk):
    """
    Somebody put an entry there that claims the end of all numbers; it has to be moved away first.
    """
    await desk.ledger().change(rotation())
    claims = b'{"seq":%d}' % (2**53 - 1)
    if isinstance(desk.trail, FileTrail):
        await rewrite(desk, lambda lines: [*lines, claims])
    else:
        await desk.trail._client.xadd(desk.trail.where, {"record": claims}, id=f"{2**53 - 1}-0")

    with pytest.raises(TrailUnavailable):
        await desk.ledger().restart(SECOPS, "garbage")


async def test_a_ring_that_does_not_work_is_not_saved(desk):
    """
    Its record stays, as not carried out.
    """

    def decide(ring, now):
        wrong = replace(ring.active, private_jwk=ring.standbys[0].private_jwk)
        records = tuple(wrong if each is ring.active else each for each in ring.records)
        return Change(ring=replace(ring, records=records), entries=(entry(at=now),), result=None)

    with pytest.raises(SelfTestFailed):
        await desk.ledger().change(decide)
    await desk.ledger().change(rotation())

    assert await desk.carried_out() == [2]


async def test_the_old_sealing_key_is_needed_for_what_is_not_finished(desk):
    """
    A crash before the sealing key was changed left a record under the old one; without it nobody can tell whether it is one.
    """
    ring, revision = await desk.store().load()
    await desk.store(BEFORE_AND_AFTER).save(ring, expect=revision)
    dying = Hooked(desk.store(BEFORE_AND_AFTER), "save", before=raising(Crash()))
    with pytest.raises(Crash):
        await desk.ledger(store=dying, sealing=BEFORE_AND_AFTER).change(rotation())
    ring, revision = await desk.store().load()
    await desk.store().save(ring, expect=revision)

    with pytest.raises(TrailDamaged) as refusal:
        await desk.ledger(sealing=SealingKeys(NEW)).check()

    assert refusal.value.problem == "sealing_key"
    assert (await desk.ledger().check()).unfinished == 1


async def test_a_trail_moves_with_its_ring(file_desk, audit_redis):
    """
    From a file to Redis, record by record; changes go on there.
    """
    await file_desk.ledger().change(rotation())
    await file_desk.ledger().change(rotation())
    async with Redis(port=audit_redis.port) as client:
        await client.flushall()
        moved = RedisTrail(client, "acme")
        await copy_trail(file_desk.trail, moved)
        shutil.rmtree(file_desk.folder / "audit")

        done = await file_desk.ledger(trail=moved).change(rotation())

        assert done.records[0].seq == 3
        assert (await file_desk.ledger(trail=moved).verify()).is_sound
