"""
Any sequence of steps at any clock: what always holds of the ring, and what verifiers never notice.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from keys import MAX_HISTORY, KeyRing, KeyTimes, TransitionRefused, create_ring, revoke, revoke_all, rotate, settle
from keys.record import KeyRecord

TIMES = KeyTimes()
START = 1_796_040_000
LEGAL = {
    "standby": {"standby", "active", "revoked"},
    "active": {"active", "retiring", "revoked"},
    "retiring": {"retiring", "retired", "revoked"},
    "retired": {"retired"},
    "revoked": {"revoked"},
}
TOLERANCE_S = 60
CACHED_S = TIMES.max_age_s + TIMES.stale_if_error_s + TIMES.cooldown_s

step = st.one_of(
    st.tuples(st.just("rotate"), st.booleans()),
    st.tuples(st.just("revoke"), st.integers(0, 7)),
    st.tuples(st.just("revoke all"), st.none()),
    st.tuples(st.just("settle"), st.none()),
)


def taken(ring, kind, detail, now):
    """
    Take one step and return the ring with the kids that left its history; a refusal leaves the ring as it was.
    """
    try:
        if kind == "rotate":
            done = rotate(ring, now=now, times=TIMES, expected_active=None, force=detail, reason="drill")
        elif kind == "revoke":
            kid = ring.records[detail % len(ring.records)].kid
            done = revoke(ring, kid, now=now, times=TIMES, reason="drill")
        elif kind == "revoke all":
            done = revoke_all(ring, now=now, times=TIMES, reason="drill")
        else:
            return settle(ring, now), set()
    except TransitionRefused:
        return ring, set()
    return done.ring, {record.kid for record in done.pruned}


def held(before: KeyRing, after: KeyRing, pruned):
    """
    Only legal transitions, no instant that was stored changed or moved backwards, no private part came back.

    Only keys that had ended leave the history, and only when it is full.
    """
    assert all(before.record(kid).state in ("retired", "revoked", "retiring") for kid in pruned)
    assert not pruned or len(after.records) >= MAX_HISTORY
    for old in before.records:
        if old.kid in pruned:
            continue
        new: KeyRecord = after.record(old.kid)
        assert new.state in LEGAL[old.state]
        assert (new.created_at, new.published_at, new.mature_at) == (old.created_at, old.published_at, old.mature_at)
        assert old.activated_at in (None, new.activated_at)
        assert old.deactivated_at in (None, new.deactivated_at)
        assert new.private_jwk == (old.private_jwk if new.state in ("standby", "active") else None)
    assert after.latest_instant >= before.latest_instant


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(step, st.integers(0, 4_000_000_000)), max_size=12))
def test_any_steps_at_any_clock_keep_the_ring_whole(steps):
    """
    Whatever the clock says, a ring keeps one active key, two standbys and a life of each key that runs forwards.
    """
    ring = create_ring("acme", now=START, times=TIMES)

    for (kind, detail), now in steps:
        after, pruned = taken(ring, kind, detail, now)

        held(ring, after, pruned)
        assert (after.active.state, len(after.standbys)) == ("active", 2)
        assert len(after.published(now)) >= 3
        ring = after
    ring.self_test()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(step, st.integers(0, 400), st.integers(-5, 0)), max_size=25))
def test_no_token_outlives_its_published_key(steps):
    """
    A token stays verifiable until it has expired, tolerance included, unless its key was revoked.

    The clock runs, and the instances that take the steps may be up to 5 s behind it.
    """
    ring = create_ring("acme", now=START, times=TIMES)
    now, tokens, revoked = START, [], set()

    for (kind, detail), passed, behind in steps:
        now += passed
        tokens.append((ring.active.kid, now))
        ring, _ = taken(ring, kind, detail, now + behind)

        published = {record.kid for record in ring.published(now)}
        revoked |= {record.kid for record in ring.records if record.state == "revoked"}
        tokens = [(kid, iat) for kid, iat in tokens if now < iat + TIMES.token_lifetime_s + TOLERANCE_S]
        assert {kid for kid, _ in tokens} <= published | revoked


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 400)), max_size=25))
def test_planned_rotations_never_meet_a_verifier_that_lacks_the_key(steps):
    """
    Whoever fetched the key set as long ago as caches allow knows the key that signs now, when rotations are planned ones.
    """
    ring = create_ring("acme", now=START, times=TIMES)
    now, fetched = START, [(START, {record.kid for record in ring.published(START)})]

    for wanted, passed in steps:
        now += passed
        fetched.append((now, {record.kid for record in ring.published(now)}))
        ring, _ = taken(ring, "rotate" if wanted else "settle", False, now)
        fetched.append((now, {record.kid for record in ring.published(now)}))

        assert all(ring.active.kid in kids for when, kids in fetched if now - when <= CACHED_S)
