"""
Any sequence of configurations, rotations and revocations: what verifiers do that kept a key set as long as they were told.

One ring, saved by instances whose clocks differ and of which each has a configuration of its own. A key set that was replaced may
go out for one more lease; whoever has it keeps it for as long as it was served with, at worst.
"""

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from keys import (
    CacheTimes,
    KeyRing,
    KeyTimes,
    TransitionRefused,
    change_cache_times,
    create_ring,
    revoke,
    revoke_all,
    rotate,
)

START = 1_796_040_000
LEASE_S, COOLDOWN_S, FLOOR_S = KeyTimes().lease_s, KeyTimes().cooldown_s, 30

# The extremes come up again and again, so that a small time meets a large one.
cache_time = st.one_of(st.sampled_from([0, 120, 3600]), st.integers(0, 3600))
configured = st.builds(KeyTimes, max_age_s=cache_time, stale_if_error_s=cache_time)
skew = st.integers(-30, 30)
step = st.tuples(
    st.sampled_from(["restart", "rotate", "rotate", "force", "revoke", "revoke all"]),
    configured,
    skew,
    st.integers(0, 7),
    st.one_of(st.integers(0, 30), st.integers(0, 8000)),
)


@dataclass(frozen=True)
class Served:
    """
    A ring, and when it was replaced; None for the one that is in use.
    """

    ring: KeyRing
    replaced_at: int | None = None

    def in_use_until(self, kid=None):
        """
        Until when a verifier uses what was served of it, if all goes as badly as it can; for a key, as far as it is in there.
        """
        last = self.replaced_at + LEASE_S
        if kid is not None:
            last = min(last, self.ring.record(kid).gone_at)
        times = self.ring.cache_times
        return last + max(times.max_age_s, FLOOR_S) + times.stale_if_error_s + COOLDOWN_S

    def has(self, kid):
        return any(record.kid == kid for record in self.ring.published(self.replaced_at))


def taken(ring, kind, times, now, number):
    """
    Take one step, and return the ring with what was said about revoked keys and the key that was promoted as planned.
    """
    try:
        if kind == "restart":
            return change_cache_times(ring, now=now, times=times), {}, None
        if kind in ("rotate", "force"):
            done = rotate(ring, now=now, times=times, expected_active=None, force=kind == "force", reason="drill")
            return done.ring, {}, None if done.early else done.new_kid
        if kind == "revoke":
            kid = ring.records[number % len(ring.records)].kid
            done = revoke(ring, kid, now=now, times=times, reason="drill")
            return done.ring, {kid: done.trusted_until}, None if done.early else done.promoted_kid
        done = revoke_all(ring, now=now, times=times, reason="drill")
        return done.ring, dict.fromkeys(done.kids, done.trusted_until), None
    except TransitionRefused:
        return ring, {}, None


@settings(max_examples=300, deadline=None)
@given(configured, st.booleans(), st.lists(step, max_size=14))
def test_whatever_changes_verifiers_know_what_signs_and_forget_what_is_revoked_in_time(first, is_old, steps):
    """
    No verifier trusts a revoked key behind the stated instant, and none lacks the key that was promoted without a warning.

    Also where the ring was written before cache times were kept in it, and was served with any. An instant is stated by a clock,
    which is the right one here; the clocks that change cache times and rotate are up to 30 s off.
    """
    ring = create_ring("acme", now=START, times=first)
    now, earlier = START, []
    if is_old:
        ring = replace(ring, cache_times=CacheTimes())

    for kind, times, off, number, passed in steps:
        now += passed
        at = now if kind.startswith("revoke") else now + off
        before, (ring, stated, promoted) = ring, taken(ring, kind, times, at, number)
        if ring is not before:
            earlier.append(Served(before, now))

        for kid, until in stated.items():
            assert all(each.in_use_until(kid) <= until for each in earlier if each.has(kid))
        if promoted is not None:
            assert all(each.in_use_until() <= now for each in earlier if not each.has(promoted))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(configured, st.integers(0, 8000)), max_size=8), configured)
def test_a_bound_is_no_larger_than_what_was_ever_served(changes, last):
    """
    It is at most that of the largest times of the past and the skew of a clock, and that of the present ones when those are over.
    """
    ring, now, seen = create_ring("acme", now=START, times=last), START, [last]
    for times, passed in changes:
        now += passed
        seen.append(times)
        ring = change_cache_times(ring, now=now, times=times)

    present = seen[-1]
    at_once = revoke(ring, ring.active.kid, now=now, times=present, reason="drill")
    later = revoke(ring, ring.active.kid, now=now + 7400, times=present, reason="drill")

    assert at_once.trusted_until <= now + max(times.maturity_s for times in seen)
    assert later.trusted_until == now + 7400 + present.revocation_bound_s
