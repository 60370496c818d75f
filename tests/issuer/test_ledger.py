"""
Ring and trail changed together: whatever dies, races or is missing, no change goes without its record and no record lies.
"""

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from redis.asyncio import Redis

from issuer.audit import (
    FileTrail,
    LedgerBusy,
    LineFile,
    RedisTrail,
    RingOlderThanTrail,
    Spill,
    TrailDamaged,
    TrailUnavailable,
    copy_trail,
    head_of,
)
from issuer.audit.chain import link_of
from issuer.audit.sealed_state import MAX_SPILLED, read_state
from issuer.ledger import Change, Ledger
from keys import (
    ActiveKeyMismatch,
    FileKeyStore,
    FileUnwritable,
    RevisionConflict,
    SealingKeys,
    SelfTestFailed,
    create_ring,
    revoke,
    rotate,
)

from .audit.stage import BEFORE, NEW, NOW, OLD, SEALING, SECOPS, TIMES, entry, read, redis_server

pytestmark = pytest.mark.anyio


BEFORE_AND_AFTER = SealingKeys(OLD, NEW)


class Crash(BaseException):
    """
    What ends a process: nothing of ours catches it.
    """


class Hooked:
    """
    The real thing, with something happening before or after one of its methods is called.
    """

    def __init__(self, real, method, *, before=None, after=None):
        self._real, self._method, self._before, self._after = real, method, before, after

    def __getattr__(self, name):
        real = getattr(self._real, name)
        if name != self._method:
            return real

        async def call(*args, **kwargs):
            if self._before:
                await self._before()
            result = await real(*args, **kwargs)
            if self._after:
                await self._after()
            return result

        return call


def once(action):
    """
    Take an action the first time alone.
    """
    left = [action]

    async def take():
        if left:
            await left.pop()()

    return take


def raising(error):
    async def action():
        raise error

    return action


class Desk:
    """
    One workspace: its ring in a real file, its trail, its spill file, and what was reported.
    """

    def __init__(self, folder, trail):
        self.folder, self.trail = folder, trail
        self.path = folder / "rings" / "acme.jwe"
        self.spilled = folder / "audit" / "acme.spill.jsonl"
        self.events = []

    def store(self, sealing=SEALING):
        return FileKeyStore(self.path, "acme", sealing)

    def ledger(self, *, store=None, trail=None, sealing=SEALING, spill=None):
        return Ledger(
            "acme",
            store=store or self.store(sealing),
            trail=trail or self.trail,
            spill=spill or Spill(LineFile(self.spilled)),
            sealing=sealing,
            now=lambda: NOW + 0.5,
            report=lambda event, **facts: self.events.append((event, facts)),
        )

    async def ring(self):
        return (await self.store().load())[0]

    async def events_recorded(self):
        return [json.loads(line)["event"] for line in await read(self.trail)]

    async def carried_out(self):
        """
        Verify the trail and return the numbers of the records that were carried out.
        """
        findings = await self.ledger().verify()
        assert findings.is_sound
        beside = {seq for each in findings.not_carried_out for seq in each}
        return [seq for seq in range(1, findings.head.seq - findings.beyond_head + 1) if seq not in beside]


@pytest.fixture(scope="module")
def ledger_redis():
    with redis_server() as server:
        yield server


@pytest.fixture(params=["file", "redis"])
async def desk(request, tmp_path, ledger_redis):
    if request.param == "file":
        trail, client = FileTrail(tmp_path / "audit" / "acme.jsonl"), None
    else:
        client = Redis(port=ledger_redis.port)
        await client.flushall()
        trail = RedisTrail(client, "acme")
    made = Desk(tmp_path, trail)
    await made.store().save(create_ring("acme", now=NOW, times=TIMES), expect=0)
    yield made
    if client:
        await client.aclose()


@pytest.fixture
async def file_desk(tmp_path):
    made = Desk(tmp_path, FileTrail(tmp_path / "audit" / "acme.jsonl"))
    await made.store().save(create_ring("acme", now=NOW, times=TIMES), expect=0)
    return made


def rotation(*, expected=None, reason="planned"):
    def decide(ring, now):
        rotated = rotate(ring, now=now, times=TIMES, expected_active=expected, force=True, reason=reason)
        said = entry(at=now, reason=reason, before={"active": rotated.old_kid}, after={"active": rotated.new_kid})
        return Change(ring=rotated.ring, entries=(said,), result=rotated.new_kid)

    return decide


def revocation(kid, reason="leaked"):
    def decide(ring, now):
        revoked = revoke(ring, kid, now=now, times=TIMES, reason=reason)
        said = entry(at=now, event="key_revoked", target=kid, reason=reason)
        return Change(ring=revoked.ring, entries=(said,), result=revoked.promoted_kid)

    return decide


def suspension(name):
    def decide(ring, now):
        suspended = (*ring.companion.get("suspensions", ()), name)
        said = entry(at=now, event="suspension_added", target=name)
        return Change(
            ring=replace(ring, companion={**ring.companion, "suspensions": suspended}), entries=(said,), result=name
        )

    return decide


# Changes and their records


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


# Crashes


@pytest.mark.parametrize(
    ("part", "method", "when"),
    [
        ("store", "load", "after"),
        ("trail", "end", "after"),
        ("trail", "append", "before"),
        ("trail", "append", "after"),
        ("store", "save", "before"),
        ("store", "save", "after"),
        ("trail", "confirm", "before"),
        ("trail", "confirm", "after"),
    ],
)
async def test_a_process_that_dies_leaves_nothing_wrong(desk, part, method, when):
    """
    At whichever step: the change is in force and on record, or neither; the next one goes on and says which.
    """
    await desk.ledger().change(suspension("before"))
    hooked = Hooked(getattr(desk, part)() if part == "store" else desk.trail, method, **{when: raising(Crash())})

    with pytest.raises(Crash):
        await desk.ledger(**{part: hooked}).change(suspension("crashed"))
    crashed = "crashed" in (await desk.ring()).companion["suspensions"]
    await desk.ledger().check()
    await desk.ledger().change(suspension("after"))

    ring = await desk.ring()
    names = [json.loads(line)["target"] for line in await read(desk.trail)]
    assert crashed == (
        (part, method, when)
        in [("store", "save", "after"), ("trail", "confirm", "before"), ("trail", "confirm", "after")]
    )
    assert [names[seq - 1] for seq in await desk.carried_out()] == list(ring.companion["suspensions"])
    assert ("audit_unfinished" in [event for event, _ in desk.events]) == (len(names) == 3 and not crashed)


async def test_several_crashes_leave_several_records(desk):
    """
    The next change skips all of them.
    """
    dying = Hooked(desk.store(), "save", before=raising(Crash()))
    for number in range(3):
        with pytest.raises(Crash):
            await desk.ledger(store=dying).note(entry(reason=f"crash {number}"), entry())

    standing = await desk.ledger().check()
    done = await desk.ledger().note(entry())

    assert standing.unfinished == 6
    assert (done.records[0].seq, done.records[0].follows) == (7, 0)
    assert await desk.carried_out() == [7]


async def test_a_half_written_line_is_set_aside_and_on_record(file_desk):
    """
    What a crash in the middle of a write left.
    """
    await file_desk.ledger().note(entry())
    trail = file_desk.folder / "audit" / "acme.jsonl"
    with trail.open("ab") as opened:
        opened.write(b'{"actor":{"ki')

    done = await file_desk.ledger().note(entry())

    torn, own = done.records
    assert (torn.entry.event, torn.entry.after, torn.entry.actor.kind) == ("audit_torn", {"octets": 13}, "service")
    assert own.follows == torn.seq == 2
    assert trail.with_name("acme.jsonl.torn").read_bytes() == b'{"actor":{"ki\n'
    assert await file_desk.carried_out() == [1, 2, 3]


def test_a_kill_at_any_system_call_leaves_nothing_wrong(tmp_path):
    """
    SIGKILL before, after and in the middle of each one that a rotation and a revocation make, in a process of its own.
    """
    child = Path(__file__).parent / "audit" / "ledger_child.py"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    run = subprocess.run(
        [sys.executable, str(child), str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    reports = [json.loads(line) for line in run.stdout.splitlines()]
    assert [report for report in reports if not report["is_right"]] == []
    assert {report["state"] for report in reports} == {"old", "new"}
    assert {"write", "fsync", "ftruncate", "flock", "rename", "open"} <= {report["call"] for report in reports}
    assert len(reports) > 80


# Competing writers


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


class Unlocked:
    """
    A trail whose lock somebody else holds: what happens inside a change comes from a writer that does not know of it.
    """

    def __init__(self, trail):
        self._trail = trail

    def __getattr__(self, name):
        return getattr(self._trail, name)

    def exclusive(self, *, wait_s):
        return RedisTrail(None, "acme").exclusive(wait_s=wait_s)


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


# The trail is out of reach


def broken(desk, method="append"):
    return Hooked(desk.trail, method, before=raising(TrailUnavailable(where="trail", problem="out of reach")))


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


# Rings and trails that were put back


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


async def rewrite(desk, change):
    """
    Put other lines in the place of the trail, as somebody with write access can.
    """
    lines = change(await read(desk.trail))
    if isinstance(desk.trail, FileTrail):
        (desk.folder / "audit" / "acme.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
        return
    client, stream = desk.trail._client, desk.trail.where
    await client.delete(stream)
    for number, line in enumerate(lines, start=1):
        await client.xadd(stream, {"record": line}, id=f"{number}-0")


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


async def test_a_trail_moves_with_its_ring(file_desk, ledger_redis):
    """
    From a file to Redis, record by record; changes go on there.
    """
    await file_desk.ledger().change(rotation())
    await file_desk.ledger().change(rotation())
    async with Redis(port=ledger_redis.port) as client:
        await client.flushall()
        moved = RedisTrail(client, "acme")
        await copy_trail(file_desk.trail, moved)
        shutil.rmtree(file_desk.folder / "audit")

        done = await file_desk.ledger(trail=moved).change(rotation())

        assert done.records[0].seq == 3
        assert (await file_desk.ledger(trail=moved).verify()).is_sound
