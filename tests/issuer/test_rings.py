"""
What a running service knows of its key ring: adopted after a self-test, trusted for a lease, given up when not confirmed.
"""

import asyncio
import json
from dataclasses import replace

import pytest

from issuer.rings import LEASE_S, NO_KEY, LiveRing, RingReplaced, RingUnavailable
from keys import (
    ALARM_S,
    FileKeyStore,
    KeyRing,
    KeyTimes,
    RingMissing,
    SealingKey,
    SealingKeys,
    SelfTestFailed,
    create_ring,
    revoke,
    revoke_all,
    rotate,
)
from verifier.es256 import signature_is_valid
from verifier.jwk import parse_key_set

pytestmark = pytest.mark.anyio

NOW = 1_796_040_000
TIMES = KeyTimes()


class Clock:
    """
    A clock that stands still until it is moved.
    """

    def __init__(self, at):
        self.at = at

    def __call__(self):
        return self.at


class Store:
    """
    A store that holds what the test puts there, counts how often it is read, and fails when told to.
    """

    def __init__(self, ring):
        self.ring = ring
        self.revision = 1
        self.failure = None
        self.blind = False
        self.loads = 0
        self.meanwhile = lambda: None

    async def stamp(self):
        return None if self.blind else (id(self.ring), self.revision)

    async def load(self):
        self.loads += 1
        self.meanwhile()
        if self.failure is not None:
            raise self.failure
        return self.ring, self.revision

    def put(self, ring):
        self.ring, self.revision = ring, self.revision + 1


class Setup:
    """
    A live ring and everything it was made of.
    """

    def __init__(self, store=None):
        self.now = Clock(NOW)
        self.monotonic = Clock(5000.0)
        self.events = []
        self.store = store or Store(create_ring("acme", now=NOW - 1000, times=TIMES))
        self.live: LiveRing

    async def opened(self):
        self.live = await LiveRing.open("acme", self.store, now=self.now, monotonic=self.monotonic, report=self.report)
        return self

    def report(self, event, **facts):
        self.events.append((event, facts))

    @property
    def names(self):
        return [event for event, _ in self.events]

    def view(self):
        return self.live.current(self.now())


def rotated(ring, now=NOW):
    return rotate(ring, now=now, times=TIMES, expected_active=None, force=True, reason="test").ring


def broken(ring, **changes):
    """
    Return *ring* with an active key whose members do not belong together.
    """
    others = tuple(record for record in ring.records if record is not ring.active)
    return KeyRing(ring.workspace, (replace(ring.active, **changes), *others))


async def test_what_is_opened_signs_and_publishes():
    """
    The first view has the active key's signer and the encoded key set with a strong tag.
    """
    setup = await Setup().opened()

    view = setup.view()
    signature = await view.signer.sign(b"input")

    assert view.kid == setup.store.ring.active.kid
    assert json.loads(view.jwks.body) == setup.store.ring.jwks(NOW)
    assert signature_is_valid(parse_key_set(view.jwks.body)[view.kid], b"input", signature)
    assert view.revision == 1
    assert setup.events == [("ring_adopted", {"workspace": "acme", "kid": view.kid, "revision": 1})]


async def test_what_cannot_be_read_is_not_opened():
    """
    The error of the store stops the start.
    """
    setup = Setup()
    setup.store.failure = RingMissing(where="there", workspace="acme")

    with pytest.raises(RingMissing):
        await setup.opened()


async def test_a_key_that_does_not_sign_for_what_is_published_is_not_opened():
    """
    The self-test verifies with the key that a partner would read.
    """
    ring = create_ring("acme", now=NOW, times=TIMES)
    other = create_ring("acme", now=NOW, times=TIMES)

    with pytest.raises(SelfTestFailed):
        await Setup(Store(broken(ring, private_jwk=other.active.private_jwk))).opened()


async def test_a_key_that_partners_would_ignore_is_not_opened():
    """
    An active key whose published point is not on the curve would be skipped by every partner.
    """
    ring = create_ring("acme", now=NOW, times=TIMES)
    public = {**ring.active.public_jwk, "y": ring.active.public_jwk["x"]}

    with pytest.raises(SelfTestFailed):
        await Setup(Store(broken(ring, public_jwk=public))).opened()


async def test_a_ring_that_partners_would_ignore_as_a_whole_is_not_opened():
    """
    The same holds when no key of the set is usable.
    """
    ring = create_ring("acme", now=NOW, times=TIMES)
    records = tuple(
        replace(record, public_jwk={**record.public_jwk, "y": record.public_jwk["x"]}) for record in ring.records
    )

    with pytest.raises(SelfTestFailed):
        await Setup(Store(KeyRing("acme", records))).opened()


async def test_an_unchanged_ring_is_not_read_again():
    """
    A look costs one stamp while nothing changed, and still renews the lease; the view stays the same object.
    """
    setup = await Setup().opened()
    before = setup.view()
    setup.monotonic.at += LEASE_S

    await setup.live.poll()
    setup.monotonic.at += LEASE_S

    assert setup.store.loads == 1
    assert setup.view() is before


async def test_a_rotation_is_adopted():
    """
    After a look the new key signs, the key set has another tag, and a signature of the old key is not confirmed.
    """
    setup = await Setup().opened()
    before = setup.view()

    setup.store.put(rotated(setup.store.ring))
    await setup.live.poll()
    after = setup.view()

    assert after.kid == setup.store.ring.active.kid != before.kid
    assert after.jwks.etag != before.jwks.etag
    assert after.revision == 2
    assert not setup.live.confirm(before)
    assert setup.live.confirm(after)
    assert setup.names == ["ring_adopted", "ring_adopted"]


async def test_a_revoked_key_leaves_the_key_set_with_the_next_look():
    """
    A standby signs, and the revoked key is not published any more.
    """
    setup = await Setup().opened()
    before = setup.view()

    setup.store.put(revoke(setup.store.ring, before.kid, now=NOW, times=TIMES, reason="stolen").ring)
    await setup.live.poll()

    assert before.kid not in parse_key_set(setup.view().jwks.body)
    assert setup.view().kid != before.kid


async def test_a_retiring_key_leaves_without_a_write():
    """
    At its instant, not before, and it is back when the clock is set back; the rest of the time the view is not built again.
    """
    setup = await Setup().opened()
    old = setup.view().kid
    setup.store.put(rotated(setup.store.ring))
    await setup.live.poll()
    gone_at = setup.store.ring.record(old).gone_at

    published = {}
    for instant in (NOW, gone_at - 0.5, gone_at, gone_at + 1000, gone_at - 1):
        setup.now.at = instant
        published[instant] = old in parse_key_set(setup.view().jwks.body)
        assert setup.view() is setup.view()

    assert list(published.values()) == [True, True, False, False, True]
    assert setup.store.loads == 2


async def test_a_view_is_trusted_for_the_lease():
    """
    At 15 seconds by the monotonic clock it still is, after that nothing is signed, published or confirmed.
    """
    setup = await Setup().opened()
    view = setup.view()

    setup.monotonic.at += LEASE_S
    assert setup.view() is view
    assert setup.live.confirm(view)

    setup.monotonic.at += 0.001
    with pytest.raises(RingUnavailable) as refused:
        setup.view()
    assert refused.value.workspace == "acme"
    assert not setup.live.confirm(view)


async def test_the_lease_counts_from_before_the_question():
    """
    A process that is paused while the store answers has an old view, not a new one.
    """
    setup = await Setup().opened()
    setup.store.put(rotated(setup.store.ring))
    setup.store.meanwhile = lambda: setattr(setup.monotonic, "at", setup.monotonic.at + LEASE_S + 1)

    await setup.live.poll()

    with pytest.raises(RingUnavailable):
        setup.view()


async def test_a_failing_store_is_noted_once_and_given_up_after_the_lease():
    """
    One line for each change of what is wrong; the service serves until the lease runs out and recovers by itself.
    """
    setup = await Setup().opened()
    setup.store.blind = True

    for failure in (RingMissing(where="there", workspace="acme"), OSError("secret text"), OSError("other text")):
        setup.store.failure = failure
        await setup.live.poll()
    status = setup.live.status(NOW)
    setup.monotonic.at += LEASE_S + 1
    with pytest.raises(RingUnavailable):
        setup.view()
    setup.store.failure = None
    await setup.live.poll()

    assert [event for event in setup.events if event[0] != "ring_adopted"] == [
        ("ring_poll_failed", {"workspace": "acme", "problem": "ring_missing"}),
        ("ring_poll_failed", {"workspace": "acme", "problem": "OSError"}),
        ("ring_poll_recovered", {"workspace": "acme", "problem": None}),
    ]
    assert (status.failures, status.problem, status.usable) == (3, "OSError", True)
    assert setup.live.status(NOW).problem is None
    assert setup.view().kid == setup.store.ring.active.kid


async def test_a_store_without_a_stamp_is_read_every_time():
    """
    No stamp means that it cannot be told whether something changed.
    """
    setup = await Setup().opened()
    setup.store.blind = True

    await setup.live.poll()
    await setup.live.poll()

    assert setup.store.loads == 3


async def test_a_ring_that_fails_its_self_test_is_not_adopted():
    """
    The old view stays until its lease runs out.
    """
    setup = await Setup().opened()
    before = setup.view()
    ring = rotated(setup.store.ring)

    setup.store.put(broken(ring, private_jwk=ring.standbys[0].private_jwk))
    await setup.live.poll()

    assert setup.view() is before
    assert setup.live.status(NOW).problem == "self_test_failed"
    setup.monotonic.at += LEASE_S + 1
    assert not setup.live.status(NOW).usable


@pytest.mark.parametrize("revision", [1, 2])
async def test_a_ring_that_does_not_follow_is_not_adopted(revision):
    """
    Neither an older revision nor another ring of the same one: a restored backup could bring a revoked key back.
    """
    setup = await Setup().opened()
    setup.store.put(rotated(setup.store.ring))
    await setup.live.poll()
    before = setup.view()

    setup.store.ring, setup.store.revision = create_ring("acme", now=NOW, times=TIMES), revision
    await setup.live.poll()

    assert setup.view() is before
    assert setup.live.status(NOW).problem == RingReplaced.code


@pytest.mark.parametrize("steps", [1, 2, 5])
async def test_a_revoked_key_does_not_come_back_with_a_later_revision(steps):
    """
    An older copy that was rotated until its revision is the later one still holds the revoked key as a published one.
    """
    setup = await Setup().opened()
    older = setup.store.ring
    stolen = older.active.kid
    setup.store.put(revoke(older, stolen, now=NOW, times=TIMES, reason="test").ring)
    await setup.live.poll()

    for _ in range(steps):
        older = rotated(older)
        setup.store.put(older)
        await setup.live.poll()

    assert stolen not in parse_key_set(setup.view().jwks.body)
    assert setup.live.status(NOW).problem == RingReplaced.code


async def test_a_ring_that_was_only_touched_is_confirmed():
    """
    Another stamp over the same ring and revision changes nothing.
    """
    setup = await Setup().opened()
    before = setup.view()

    setup.store.ring = replace(setup.store.ring, records=(*setup.store.ring.records,))
    await setup.live.poll()
    setup.monotonic.at += 1

    assert setup.store.loads == 2
    assert setup.view() is before
    assert setup.names == ["ring_adopted"]


async def test_the_status_tells_operations_what_is_due():
    """
    Ages, the next rotation, keys by state and nothing else.
    """
    setup = await Setup().opened()
    setup.store.put(rotated(setup.store.ring))
    await setup.live.poll()
    setup.monotonic.at += 2

    early = setup.live.status(NOW + 100)
    late = setup.live.status(NOW + TIMES.rotation_s)
    far_too_late = setup.live.status(NOW + ALARM_S)

    assert (early.active_age_s, early.view_age_s, early.overdue) == (100, 2, False)
    assert early.next_due == NOW + TIMES.rotation_s
    assert early.keys == {"active": 1, "standby": 2, "retiring": 1}
    assert late.overdue
    assert not late.alarm
    assert far_too_late.alarm
    assert late.keys == {"active": 1, "standby": 2, "retired": 1}
    assert setup.live.status(NOW - 50).active_age_s == 0


async def test_watching_looks_again_and_again_until_cancelled():
    """
    A failure does not end it.
    """
    setup = await Setup().opened()
    third_look, stamps = asyncio.Event(), iter((None, None))

    async def stamp():
        if next(stamps, "third") == "third":
            third_look.set()

    setup.store.stamp, setup.store.failure = stamp, OSError()

    watching = asyncio.create_task(setup.live.watch(0))
    await third_look.wait()
    watching.cancel()

    with pytest.raises(asyncio.CancelledError):
        await watching


async def test_a_ring_that_says_nothing_readable_about_its_trail_has_no_head():
    """
    It serves all the same; the ledger is what refuses to go on.
    """
    ring = replace(create_ring("acme", now=NOW, times=TIMES), companion={"trail": {"seq": "x"}})
    setup = await Setup(Store(ring)).opened()

    assert setup.live.head is None
    assert setup.view().kid == ring.active.kid


async def test_a_ring_that_is_woken_looks_at_once():
    """
    A change that somebody tells of is adopted long before the interval ends; telling before anybody watches does no harm.
    """
    setup = await Setup().opened()
    setup.live.wake()
    adopted, looked = asyncio.Event(), asyncio.Event()
    setup.store.meanwhile = adopted.set
    stamp = setup.store.stamp

    async def stamped():
        looked.set()
        return await stamp()

    setup.store.stamp = stamped
    watching = asyncio.create_task(setup.live.watch(3600))
    await looked.wait()
    setup.store.put(rotated(setup.store.ring))

    setup.live.wake()
    await adopted.wait()
    watching.cancel()

    with pytest.raises(asyncio.CancelledError):
        await watching
    assert setup.store.loads == 2


def kids(view):
    return [key["kid"] for key in json.loads(view.jwks.body)["keys"]]


async def test_a_key_that_is_withdrawn_neither_signs_nor_is_published():
    """
    Whether or not the store answers: the first standby signs in its place, as it does at every other instance.
    """
    setup = await Setup().opened()
    before, ring = setup.view(), setup.store.ring
    setup.store.failure = OSError()
    other = await LiveRing.open(
        "acme",
        Store(ring),
        now=setup.now,
        monotonic=setup.monotonic,
        report=setup.report,
        revoked=frozenset({before.kid}),
    )

    await setup.live.withdraw(frozenset({before.kid}))
    after = setup.view()
    signature = await after.signer.sign(b"input")

    assert after.kid == ring.standbys[0].kid == other.current(NOW).kid
    assert kids(after) == kids(other.current(NOW)) == [record.kid for record in ring.standbys]
    assert signature_is_valid(parse_key_set(after.jwks.body)[after.kid], b"input", signature)
    assert not setup.live.confirm(before)
    assert setup.live.status(NOW).keys == {"revoked": 1, "standby": 2}
    assert setup.live.ring == ring


async def test_what_is_withdrawn_stays_so_with_every_later_ring():
    """
    A rotation that somebody makes on the store does not bring it back as a retiring key.
    """
    setup = await Setup().opened()
    gone = setup.view().kid
    await setup.live.withdraw(frozenset({gone, "key of another ring"}))

    setup.store.put(rotated(setup.store.ring))
    await setup.live.poll()

    assert setup.view().kid == setup.store.ring.active.kid
    assert gone not in kids(setup.view())


async def test_without_a_key_that_may_sign_nothing_is_signed_or_published():
    """
    Until a ring comes that has one, or less is withdrawn; operations see why.
    """
    setup = await Setup().opened()
    view, ring = setup.view(), setup.store.ring
    await setup.live.withdraw(frozenset(record.kid for record in ring.records))

    with pytest.raises(RingUnavailable):
        setup.view()
    await setup.live.poll()
    with pytest.raises(RingUnavailable):
        setup.view()
    status = setup.live.status(NOW)
    assert (status.usable, status.problem, status.keys) == (False, NO_KEY, {"revoked": 3})
    assert not setup.live.confirm(view)
    assert setup.events[-1] == ("ring_adopted", {"workspace": "acme", "kid": None, "revision": 1})

    setup.store.put(revoke_all(ring, now=NOW, times=TIMES, reason="stolen").ring)
    await setup.live.poll()
    assert setup.view().kid == setup.store.ring.active.kid
    assert setup.live.status(NOW).problem is None


async def test_a_standby_that_does_not_work_does_not_take_the_place():
    """
    Then nothing is signed, rather than with the key that was withdrawn.
    """
    ring = create_ring("acme", now=NOW, times=TIMES)
    first, second = ring.standbys
    spoilt = replace(first, private_jwk=second.private_jwk)
    setup = await Setup(Store(KeyRing("acme", (ring.active, spoilt, second)))).opened()

    with pytest.raises(SelfTestFailed):
        await setup.live.withdraw(frozenset({ring.active.kid}))
    with pytest.raises(RingUnavailable):
        setup.view()


async def test_a_change_of_the_sealed_file_is_seen(tmp_path):
    """
    With the real store: a rotation is adopted, and a file that others may read, or that is gone, is not confirmed.
    """
    path = tmp_path / "rings" / "acme.jwe"
    store = FileKeyStore(path, "acme", SealingKeys(SealingKey("a", bytes(32))))
    ring = create_ring("acme", now=NOW, times=TIMES)
    await store.save(ring, expect=0)
    setup = await Setup(FileKeyStore(path, "acme", SealingKeys(SealingKey("a", bytes(32))))).opened()

    changed = rotated(ring)
    await store.save(changed, expect=1)
    await setup.live.poll()
    adopted = setup.view().kid
    path.chmod(0o644)
    await setup.live.poll()
    loose = setup.live.status(NOW).problem
    path.unlink()
    await setup.live.poll()
    missing = setup.live.status(NOW).problem

    assert adopted == changed.active.kid
    assert (loose, missing) == ("loose_permissions", "ring_missing")
