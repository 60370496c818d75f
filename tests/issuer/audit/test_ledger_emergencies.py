"""
When the trail is out of reach, planned changes stop and revocations go on.
"""

import resource
from dataclasses import replace

import pytest

from issuer.audit import (
    LineFile,
    Spill,
    TrailDamaged,
    TrailUnavailable,
    head_of,
)
from issuer.audit.chain import link_of
from issuer.audit.sealed_state import MAX_SPILLED, read_state
from issuer.ledger import Change
from keys import ActiveKeyMismatch, RevisionConflict

from .desk import Hooked, broken, once, raising, revocation, rotation
from .stage import SECOPS, entry

pytestmark = pytest.mark.anyio


async def test_a_planned_change_without_its_record_does_not_happen(desk):
    """
    Nothing is saved, whatever part of the trail fails.
    """
    blob = desk.path.read_bytes()

    for method in ("end", "append"):
        with pytest.raises(TrailUnavailable):
            await desk.ledger(trail=broken(desk, method)).change(rotation())

    assert desk.path.read_bytes() == blob
    assert not desk.spilled.exists()


async def test_a_note_that_fails_after_the_change_does_not_undo_it(desk):
    """
    It is in force and on record; an operator is told.
    """
    done = await desk.ledger(trail=broken(desk, "confirm")).change(rotation())

    assert done.is_recorded
    assert desk.events == [("audit_confirmation_failed", {"workspace": "acme", "problem": "trail_unavailable"})]
    assert await desk.carried_out() == [1]


@pytest.mark.parametrize("method", ["end", "append"])
async def test_an_emergency_does_not_wait_for_the_trail(desk, method):
    """
    The key is gone, the record is in a local file, and its hash is in the sealed ring.
    """
    await desk.ledger().change(rotation())
    leaked = (await desk.ring()).active.kid

    done = await desk.ledger(trail=broken(desk, method)).change(revocation(leaked), emergency=True)

    ring, revision = await desk.store().load()
    assert ring.record(leaked).state == "revoked"
    assert (done.is_recorded, done.records, done.revision, done.result) == (False, (), revision, ring.active.kid)
    assert done.head == head_of(ring)
    (spilled,) = read_state(ring).spilled
    assert (spilled.revision, spilled.link) == (revision, link_of(desk.spilled.read_bytes().rstrip(b"\n")))
    assert (await desk.ledger().check()).spilled == 1
    assert desk.events == [
        ("audit_spilled", {"workspace": "acme", "revision": revision, "problem": "trail_unavailable"})
    ]


async def test_the_trail_is_told_as_soon_as_it_can_be(desk):
    """
    First that there was a gap, with the hash of what was spilled; then what it was; then the change itself.
    """
    await desk.ledger().change(rotation())
    leaked = (await desk.ring()).active.kid
    await desk.ledger(trail=broken(desk)).change(revocation(leaked), emergency=True)
    line = desk.spilled.read_bytes().rstrip(b"\n")

    done = await desk.ledger().change(rotation(reason="after"))

    gap, late, own = done.records
    assert (gap.entry.event, gap.entry.count, gap.revision) == ("audit_gap", 1, 4)
    assert gap.entry.after == {"changes": ({"revision": 3, "line": link_of(line)},)}
    assert (late.entry.event, late.entry.target, late.revision) == ("key_revoked", leaked, 3)
    assert (own.entry.reason, own.revision) == ("after", 4)
    assert (await desk.ledger().check()).spilled == 0
    assert [row.is_carried_out for row in (await desk.ledger().page()).rows] == [True] * 4
    assert (await desk.ledger().verify()).is_sound


async def test_another_instance_tells_what_it_can(desk):
    """
    The spill file lies elsewhere: the gap and the hash are on record, and what it was can be held against them later.
    """
    await desk.ledger(trail=broken(desk)).change(revocation((await desk.ring()).active.kid), emergency=True)
    elsewhere = Spill(LineFile(desk.folder / "elsewhere.jsonl"))

    done = await desk.ledger(spill=elsewhere).note(entry())

    assert [record.entry.event for record in done.records] == ["audit_gap", "keys_rotated"]
    assert link_of(desk.spilled.read_bytes().rstrip(b"\n")) == done.records[0].entry.after["changes"][0]["line"]


async def test_an_emergency_goes_on_when_nothing_at_all_can_be_written(desk):
    """
    Neither trail nor spill file: the ring and the log still say so.
    """
    leaked = (await desk.ring()).active.kid
    desk.spilled.parent.mkdir(exist_ok=True)
    desk.spilled.mkdir()

    done = await desk.ledger(trail=broken(desk)).change(revocation(leaked), emergency=True)

    assert not done.is_recorded
    assert (await desk.ring()).record(leaked).state == "revoked"
    assert [event for event, _ in desk.events] == ["audit_spill_failed", "audit_spilled"]

    desk.events.clear()
    told = await desk.ledger().note(entry())
    assert told.records[0].entry.event == "audit_gap"
    assert [event for event, _ in desk.events] == ["audit_spill_failed"]


async def test_many_emergencies_are_listed_and_counted(desk):
    """
    All of them are in the gap, those that have no room by number alone.
    """
    ledger = desk.ledger(trail=broken(desk))
    for _ in range(MAX_SPILLED + 2):
        await ledger.change(revocation((await desk.ring()).standbys[0].kid), emergency=True)

    standing = await desk.ledger().check()
    done = await desk.ledger().note(entry())

    assert standing.spilled == MAX_SPILLED + 2
    assert (done.records[0].entry.count, len(done.records)) == (MAX_SPILLED + 2, MAX_SPILLED + 2)
    assert (await desk.ledger().verify()).is_sound


async def test_an_emergency_is_refused_when_there_is_nothing_to_do(desk):
    """
    As any other change, with the trail and without; where the decision says that all is done, nothing is written.
    """
    blob = desk.path.read_bytes()
    without = desk.ledger(trail=broken(desk, "end"))

    with pytest.raises(ActiveKeyMismatch):
        await without.change(rotation(expected="another"), emergency=True)
    done = await without.change(lambda ring, _now: Change(ring=ring, entries=(), result="done"), emergency=True)

    assert (done.result, done.revision) == ("done", 1)
    assert desk.path.read_bytes() == blob


async def test_an_emergency_that_is_overtaken_starts_again(desk):
    """
    With the ring that is there then.
    """

    async def overtake():
        ring, revision = await desk.store().load()
        await desk.store().save(replace(ring, companion={"other": True}), expect=revision)

    leaked = (await desk.ring()).active.kid
    store = Hooked(desk.store(), "save", before=once(overtake))
    done = await desk.ledger(store=store, trail=broken(desk, "end")).change(revocation(leaked), emergency=True)

    ring = await desk.ring()
    assert (done.revision, ring.companion["other"], ring.record(leaked).state) == (3, True, "revoked")


async def test_an_emergency_whose_answer_was_lost_is_not_carried_out_twice(desk):
    """
    The ring lists its own spilled line.
    """
    leaked = (await desk.ring()).active.kid
    lost = Hooked(desk.store(), "save", after=once(raising(RevisionConflict(where="store", expected=1, found=2))))

    done = await desk.ledger(store=lost, trail=broken(desk, "end")).change(revocation(leaked), emergency=True)

    assert (done.revision, (await desk.store().load())[1]) == (2, 2)
    assert (await desk.ledger().check()).spilled == 1


async def test_an_emergency_goes_on_with_a_companion_that_cannot_be_read(desk):
    """
    A planned change does not.
    """
    ring, revision = await desk.store().load()
    await desk.store().save(replace(ring, companion={"trail": "text"}), expect=revision)

    with pytest.raises(TrailDamaged):
        await desk.ledger().change(rotation())
    done = await desk.ledger().change(revocation(ring.active.kid), emergency=True)

    assert (await desk.ring()).record(ring.active.kid).state == "revoked"
    assert not done.is_recorded

    await desk.ledger().restart(SECOPS, "the state was lost")
    assert (await desk.ledger().change(rotation())).is_recorded


async def test_an_emergency_goes_on_without_any_room_in_the_companion(desk):
    """
    Somebody filled it to the brim; a planned change says so.
    """
    ring, revision = await desk.store().load()
    await desk.store().save(replace(ring, companion={"a": "x" * (20 * 1024 - 8)}), expect=revision)

    with pytest.raises(TrailUnavailable):
        await desk.ledger().change(rotation())
    done = await desk.ledger().change(revocation(ring.active.kid), emergency=True)

    assert (await desk.ring()).record(ring.active.kid).state == "revoked"
    assert not done.is_recorded


async def test_a_record_that_is_too_long_stops_a_planned_change_alone(desk):
    """
    An emergency spills it.
    """
    leaked = (await desk.ring()).active.kid

    def decide(ring, now):
        change = revocation(leaked)(ring, now)
        return replace(change, entries=(entry(after={"a": "x" * 300_000}),))

    with pytest.raises(TrailUnavailable):
        await desk.ledger().change(decide)
    assert not (await desk.ledger().change(decide, emergency=True)).is_recorded


async def test_a_full_disk_stops_a_planned_change_before_anything(file_desk):
    """
    The trail takes no more: half a line is taken back, and the ring is as it was.
    """
    await file_desk.ledger().change(rotation())
    blob = file_desk.path.read_bytes()
    trail = file_desk.folder / "audit" / "acme.jsonl"
    content = trail.read_bytes()

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) + 20, before[1]))
    try:
        with pytest.raises(TrailUnavailable):
            await file_desk.ledger().change(rotation())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert (file_desk.path.read_bytes(), trail.read_bytes()) == (blob, content)
    await file_desk.ledger().change(rotation())
    assert await file_desk.carried_out() == [1, 2]


async def test_a_revocation_does_not_wait_for_a_change_that_hangs(file_desk, monkeypatch):
    """
    Somebody holds the lock: the revocation spills, and the other one starts again when it goes on.
    """
    monkeypatch.setattr("issuer.ledger._EMERGENCY_WAIT_S", 0)
    leaked = (await file_desk.ring()).active.kid

    async with file_desk.trail.exclusive(wait_s=0):
        done = await file_desk.ledger().change(revocation(leaked), emergency=True)

    assert not done.is_recorded
    assert (await file_desk.ledger().change(rotation())).records[0].entry.event == "audit_gap"
