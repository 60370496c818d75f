"""
For how long key sets may be kept: what a ring says about it, and what follows for standbys and revocations.
"""

import pytest

from keys import (
    CacheTimes,
    ClockBehind,
    KeyRing,
    KeyTimes,
    change_cache_times,
    create_ring,
    plan,
    revoke,
    revoke_all,
    rotate,
    settle,
)

LONG = KeyTimes(max_age_s=1800, stale_if_error_s=600)
SHORT = KeyTimes(max_age_s=60, stale_if_error_s=0)
LARGEST = KeyTimes(max_age_s=3600, stale_if_error_s=3600)


@pytest.fixture
def long_ring(now):
    """
    A ring that was made, and served, with long cache times.
    """
    return create_ring("acme", now=now, times=LONG)


@pytest.fixture
def shortened(long_ring, now):
    """
    The ring after 1000 s, when short times were put in their place.
    """
    return change_cache_times(long_ring, now=now + 1000, times=SHORT)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_age_s": -1},
        {"max_age_s": 3601},
        {"stale_if_error_s": -1},
        {"stale_if_error_s": 3601},
        {"earlier_until": -1},
    ],
)
def test_what_lies_out_of_bounds_is_refused(wrong):
    """
    Nothing is ever served with more than verifiers heed.
    """
    with pytest.raises(ValueError, match=next(iter(wrong))):
        CacheTimes(**wrong)


@pytest.mark.parametrize("name", ["max_age_s", "stale_if_error_s", "earlier_until"])
@pytest.mark.parametrize("wrong", [True, 60.0, "60", None])
def test_each_of_them_is_an_int(name, wrong):
    """
    Neither a bool nor anything that merely looks like a number is taken.
    """
    with pytest.raises(TypeError):
        CacheTimes(**{name: wrong})


def test_a_new_ring_may_be_served_with_what_is_configured(long_ring):
    """
    Nothing was served before it.
    """
    assert long_ring.cache_times == CacheTimes(max_age_s=1800, stale_if_error_s=600, earlier_until=0)


def test_nothing_changes_where_nothing_differs(long_ring, now):
    """
    The same ring comes back, whatever the clock says, so that nobody saves it for that.
    """
    assert change_cache_times(long_ring, now=now + 5, times=LONG) is long_ring
    assert change_cache_times(long_ring, now=now - 5000, times=LONG) is long_ring


def test_shorter_times_are_served_and_the_longer_ones_count_on(shortened, now):
    """
    A key set that was served at the end of the lease may be in use for all of the longer times.
    """
    assert shortened.cache_times == CacheTimes(
        max_age_s=60, stale_if_error_s=0, earlier_until=now + 1000 + 15 + 1800 + 600 + 30 + 65
    )


def test_a_bound_counts_with_what_was_served(shortened, now):
    """
    A revocation of one key or of all, right after the change, names an instant that was true before it too.
    """
    one = revoke(shortened, shortened.active.kid, now=now + 1001, times=SHORT, reason="leaked")
    every = revoke_all(shortened, now=now + 1001, times=SHORT, reason="stolen")

    assert one.trusted_until == every.trusted_until == shortened.cache_times.earlier_until
    assert one.trusted_until >= one.at + LONG.revocation_bound_s
    assert "2026-11-30T12:58:30Z" in one.notices[1]
    assert "2026-11-30T12:58:30Z" in every.notices[1]


def test_a_standby_waits_for_what_was_served(shortened, now):
    """
    Whether a rotation, a revocation or a revocation of all keys makes it.
    """
    rotation = rotate(shortened, now=now + 1001, times=SHORT, expected_active=None, force=True, reason="drill")
    one = revoke(shortened, shortened.active.kid, now=now + 1001, times=SHORT, reason="leaked")
    every = revoke_all(shortened, now=now + 1001, times=SHORT, reason="stolen")

    made = [
        rotation.ring.record(rotation.standby_kid),
        one.ring.record(one.standby_kid),
        *(every.ring.record(kid) for kid in every.standby_kids),
    ]
    assert {record.mature_at for record in made} == {shortened.cache_times.earlier_until}


def test_a_plan_waits_for_what_was_served(shortened, now):
    """
    The rotations of a plan are carried out on the ring, with everything it says.
    """
    forced = rotate(shortened, now=now + 1001, times=SHORT, expected_active=None, force=True, reason="drill").ring

    steps = plan(forced, now + 1002, SHORT)

    assert any((each.what, each.at) == ("may_activate", forced.cache_times.earlier_until) for each in steps)


def test_what_has_run_out_counts_no_more(shortened, now):
    """
    Then the shorter times are true.
    """
    until = shortened.cache_times.earlier_until

    last = revoke(shortened, shortened.active.kid, now=until - SHORT.revocation_bound_s, times=SHORT, reason="leaked")
    later = revoke(shortened, shortened.active.kid, now=until, times=SHORT, reason="leaked")

    assert last.trusted_until == until
    assert later.trusted_until == until + SHORT.revocation_bound_s
    assert later.ring.record(later.standby_kid).mature_at == until + SHORT.maturity_s


def test_longer_times_count_at_once(long_ring, now):
    """
    They are in the ring before anything is served with them; what was served with less runs out sooner.
    """
    raised = change_cache_times(long_ring, now=now + 10, times=LARGEST)

    done = revoke(raised, raised.active.kid, now=now + 10, times=LARGEST, reason="leaked")

    assert (raised.cache_times.max_age_s, raised.cache_times.stale_if_error_s) == (3600, 3600)
    assert done.trusted_until == now + 10 + LARGEST.revocation_bound_s


def test_who_is_configured_otherwise_decides_by_the_ring(long_ring, now):
    """
    Less in the configuration of one instance is no reason to state less, and more there is counted with.
    """
    by_less = revoke(long_ring, long_ring.active.kid, now=now, times=SHORT, reason="leaked")
    by_more = revoke(long_ring, long_ring.active.kid, now=now, times=LARGEST, reason="leaked")

    assert by_less.trusted_until == now + LONG.revocation_bound_s
    assert by_less.ring.record(by_less.standby_kid).mature_at == now + LONG.maturity_s
    assert by_more.trusted_until == now + LARGEST.revocation_bound_s


def test_times_that_change_to_and_fro_count_with_the_longest(shortened, now):
    """
    What comes in between does not end what came before.
    """
    until = shortened.cache_times.earlier_until

    again = change_cache_times(shortened, now=now + 1100, times=KeyTimes(max_age_s=300, stale_if_error_s=0))
    back = change_cache_times(again, now=now + 1200, times=SHORT)
    late = change_cache_times(again, now=until, times=SHORT)

    assert again.cache_times.earlier_until == back.cache_times.earlier_until == until
    assert late.cache_times.earlier_until == until + 300 + 30 + 65 + 15


def test_only_a_time_that_grew_counts_at_once(long_ring, now):
    """
    Each of the two counts for itself: with one raised and one lowered, earlier sets may still outlast later ones.
    """
    mixed = change_cache_times(long_ring, now=now, times=KeyTimes(max_age_s=1900, stale_if_error_s=0))

    done = revoke(mixed, mixed.active.kid, now=now, times=SHORT, reason="leaked")

    assert done.trusted_until == mixed.cache_times.earlier_until == now + LONG.maturity_s


def test_where_nothing_is_known_the_largest_count(ring, now, times):
    """
    A ring that does not say how it was served may have been served with an hour each.
    """
    unknown = KeyRing("acme", ring.records)

    before = revoke(unknown, unknown.active.kid, now=now, times=times, reason="leaked")
    known = change_cache_times(unknown, now=now + 100, times=times)

    assert before.trusted_until == now + 3600 + 3600 + 30 + 15
    assert known.cache_times == CacheTimes(
        max_age_s=120, stale_if_error_s=120, earlier_until=now + 100 + LARGEST.maturity_s
    )


def test_every_step_keeps_them(shortened, now):
    """
    As it keeps everything that stands beside the keys.
    """
    rotated = rotate(shortened, now=now + 5000, times=SHORT, expected_active=None).ring
    settled = settle(rotated, now + 6000)
    revoked = revoke(settled, settled.active.kid, now=now + 6000, times=SHORT, reason="leaked").ring
    renewed = revoke_all(revoked, now=now + 6000, times=SHORT, reason="stolen").ring

    assert {each.cache_times for each in (rotated, settled, revoked, renewed)} == {shortened.cache_times}


def test_a_clock_that_is_a_little_behind_does_not_shorten_what_counts(long_ring, now):
    """
    The latest instant of the ring counts as now.
    """
    changed = change_cache_times(long_ring, now=now - 65, times=SHORT)

    assert changed.cache_times.earlier_until == now + LONG.maturity_s


def test_a_clock_that_is_far_behind_changes_nothing(long_ring, now):
    """
    It would say that earlier key sets have run out, which nobody knows.
    """
    with pytest.raises(ClockBehind):
        change_cache_times(long_ring, now=now - 66, times=SHORT)


def test_a_clock_that_was_far_ahead_does_not_count_on(long_ring, now):
    """
    Nothing that was served before now outlasts the largest times from now on.
    """
    ahead = change_cache_times(long_ring, now=now + 365 * 86_400, times=SHORT)

    done = revoke(ahead, ahead.active.kid, now=now + 1000, times=SHORT, reason="leaked")
    again = change_cache_times(ahead, now=now + 1000, times=LONG)

    assert done.trusted_until == done.ring.record(done.standby_kid).mature_at == now + 1000 + LARGEST.maturity_s
    assert again.cache_times.earlier_until == now + 1000 + LARGEST.maturity_s
