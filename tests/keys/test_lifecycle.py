"""
Create, rotate, revoke, settle: what each step does, what it refuses, and which instants it decides.
"""

import pytest

from keys import (
    MAX_HISTORY,
    MAX_RETIRING,
    ActiveKeyMismatch,
    ClockBehind,
    IllegalTransition,
    KeyTimes,
    ReasonRequired,
    StandbyNotMature,
    TooManyRetiring,
    UnknownKey,
    create_ring,
    generate_key,
    revoke,
    revoke_all,
    rotate,
    settle,
)

MATURITY = 350


@pytest.fixture
def rotated(ring, now, times):
    return rotate(ring, now=now + MATURITY, times=times, expected_active=ring.active.kid)


def test_a_new_ring_publishes_three_keys_at_once(ring, now):
    """
    One key signs from the first instant; two wait for as long as caches may take.
    """
    assert (ring.active.published_at, ring.active.mature_at, ring.active.activated_at) == (now, now, now)
    assert ring.active.rotation_due_at == now + 30 * 86_400
    assert [(key.created_at, key.published_at, key.mature_at) for key in ring.standbys] == [
        (now, now, now + MATURITY)
    ] * 2
    assert len(ring.published(now)) == 3


def test_a_rotation_promotes_retires_and_replaces(ring, rotated, now):
    """
    The standby that matures first signs, the old key retires without its private part, a new standby waits.
    """
    after = rotated.ring

    assert (rotated.old_kid, rotated.new_kid) == (ring.active.kid, ring.standbys[0].kid)
    assert (rotated.at, rotated.unpublish_at, rotated.early, rotated.notices) == (now + 350, now + 490, False, ())
    assert after.active.kid == rotated.new_kid
    assert after.active.activated_at == now + MATURITY
    old = after.record(rotated.old_kid)
    assert (old.state, old.private_jwk, old.deactivated_at) == ("retiring", None, now + 350)
    assert after.record(rotated.standby_kid).mature_at == now + 2 * MATURITY
    assert rotated.next_rotation_at == after.next_rotation_at == now + MATURITY


def test_a_step_leaves_its_ring_alone(ring, rotated):
    """
    Transitions are functions of a frozen value.
    """
    assert ring.active.private_jwk is not None
    assert ring.active.kid != rotated.ring.active.kid


def test_the_standby_that_matures_first_is_promoted(rotated, now, times):
    """
    The older standby goes first, also when the two were made at different times.
    """
    second = rotate(rotated.ring, now=now + 800, times=times, expected_active=None)

    assert second.new_kid != rotated.standby_kid
    third = rotate(second.ring, now=now + 801, times=times, expected_active=None)
    assert third.new_kid == rotated.standby_kid


def test_stored_instants_do_not_follow_later_configuration(ring, now):
    """
    A standby that was promised an instant may sign then, whatever the times are set to in between.
    """
    slow = KeyTimes(max_age_s=3600, stale_if_error_s=3600)

    rotation = rotate(ring, now=now + MATURITY, times=slow, expected_active=None)

    assert not rotation.early
    assert rotation.next_rotation_at == now + MATURITY


def test_a_rotation_names_the_key_it_expects(ring, now, times):
    """
    When another key is active, nothing happens and the present one is named.
    """
    with pytest.raises(ActiveKeyMismatch) as refusal:
        rotate(ring, now=now + MATURITY, times=times, expected_active=ring.standbys[0].kid)

    assert refusal.value.active == ring.active.kid


def test_a_rotation_before_its_time_is_refused(ring, now, times):
    """
    F03: the earliest instant comes with the refusal; one second before it is too early.
    """
    with pytest.raises(StandbyNotMature) as refusal:
        rotate(ring, now=now + MATURITY - 1, times=times, expected_active=None)

    assert (refusal.value.earliest, refusal.value.kid) == (now + MATURITY, ring.standbys[0].kid)


def test_a_forced_rotation_says_what_it_costs(ring, now, times):
    """
    F03: forced, with a reason, the rotation happens and the answer says that verifiers may refuse for up to 30 s.
    """
    rotation = rotate(ring, now=now + 1, times=times, expected_active=None, force=True, reason="drill")

    assert rotation.early
    assert "up to 30 s" in rotation.notices[0]
    assert rotation.ring.record(rotation.old_kid).reason == "drill"


def test_force_on_a_mature_standby_is_an_ordinary_rotation(ring, now, times):
    """
    Nothing is early that need not be.
    """
    rotation = rotate(ring, now=now + MATURITY, times=times, expected_active=None, force=True, reason="drill")

    assert (rotation.early, rotation.notices) == (False, ())


@pytest.mark.parametrize("reason", [None, "", " ", "two\nlines", "x" * 501])
def test_force_without_a_reason_is_refused(ring, now, times, reason):
    """
    An early rotation is explained or does not happen.
    """
    with pytest.raises(ReasonRequired):
        rotate(ring, now=now, times=times, expected_active=None, force=True, reason=reason)


def test_a_planned_rotation_may_have_a_reason(ring, now, times):
    """
    It is kept when it is one, and refused when it is not.
    """
    rotation = rotate(ring, now=now + MATURITY, times=times, expected_active=None, reason="monthly")

    assert rotation.ring.record(rotation.old_kid).reason == "monthly"
    with pytest.raises(ReasonRequired):
        rotate(ring, now=now + MATURITY, times=times, expected_active=None, reason="")


def test_retiring_keys_do_not_pile_up(ring, now, times):
    """
    Forced rotations in a row stop at a bound, say when they may go on, and do go on then.
    """
    for second in range(MAX_RETIRING):
        ring = rotate(ring, now=now + second, times=times, expected_active=None, force=True, reason="drill").ring

    with pytest.raises(TooManyRetiring) as refusal:
        rotate(ring, now=now + 20, times=times, expected_active=None, force=True, reason="drill")

    assert refusal.value.earliest == now + times.retirement_s
    later = rotate(ring, now=refusal.value.earliest, times=times, expected_active=None, force=True, reason="drill")
    assert len(later.ring.retiring) == MAX_RETIRING


def test_settling_retires_what_has_left_the_key_set(rotated):
    """
    One second before the instant nothing changes; from the instant on the key is retired and keeps its record.
    """
    ring, old = rotated.ring, rotated.old_kid

    assert settle(ring, rotated.unpublish_at - 1) is ring
    settled = settle(ring, rotated.unpublish_at)

    assert settled.record(old).state == "retired"
    assert settled.record(old).deactivated_at == rotated.at


def test_a_step_settles_first(rotated, times):
    """
    The next rotation finds the old key retired.
    """
    later = rotate(rotated.ring, now=rotated.unpublish_at + MATURITY, times=times, expected_active=None)

    assert later.ring.record(rotated.old_kid).state == "retired"


def test_revoking_the_active_key_promotes_a_standby(ring, now, times):
    """
    The key is out of the key set in the same step in which a standby begins to sign and another is made.
    """
    at = now + MATURITY

    done = revoke(ring, ring.active.kid, now=at, times=times, reason="leaked")

    assert (done.was, done.promoted_kid, done.early) == ("active", ring.standbys[0].kid, False)
    assert done.ring.active.kid == done.promoted_kid
    assert done.standby_kid in {key.kid for key in done.ring.standbys}
    old = done.ring.record(ring.active.kid)
    assert (old.state, old.private_jwk, old.reason) == ("revoked", None, "leaked")
    assert (old.revoked_at, old.unpublish_at, old.deactivated_at) == (at, at, at)
    assert ring.active.kid not in {key["kid"] for key in done.ring.jwks(at)["keys"]}


def test_a_revocation_gives_the_bound_of_trust(ring, now, times):
    """
    285 s later no conforming verifier trusts the key, and its live tokens stop verifying: the answer says both.
    """
    done = revoke(ring, ring.active.kid, now=now + MATURITY, times=times, reason="leaked")

    assert done.trusted_until == now + MATURITY + 285
    assert any("stop verifying" in notice for notice in done.notices)
    assert len(done.notices) == 2


def test_an_emergency_does_not_wait_for_a_mature_standby(ring, now, times):
    """
    Revoking the active key of a fresh ring is possible and says that verifiers may refuse for up to 30 s.
    """
    done = revoke(ring, ring.active.kid, now=now, times=times, reason="leaked")

    assert done.early
    assert "up to 30 s" in done.notices[2]


def test_revoking_a_standby_replaces_it(ring, now, times):
    """
    The signing key stays, the two others are the remaining and a new one.
    """
    gone, stays = ring.standbys

    done = revoke(ring, gone.kid, now=now + 1, times=times, reason="leaked")

    assert (done.was, done.promoted_kid, done.early) == ("standby", None, False)
    assert done.ring.active == ring.active
    assert [key.kid for key in done.ring.standbys] == [stays.kid, done.standby_kid]
    assert done.ring.record(gone.kid).deactivated_at is None


def test_revoking_a_retiring_key_unpublishes_it_now(rotated, times):
    """
    F04: allowed while the key is published; nothing takes its place, its instants of signing stay.
    """
    done = revoke(rotated.ring, rotated.old_kid, now=rotated.at + 10, times=times, reason="leaked")

    assert (done.was, done.promoted_kid, done.standby_kid) == ("retiring", None, None)
    old = done.ring.record(rotated.old_kid)
    assert (old.state, old.deactivated_at, old.unpublish_at) == ("revoked", rotated.at, rotated.at + 10)
    assert len(done.ring.published(rotated.at + 10)) == 3


@pytest.mark.parametrize("later", [140, 10_000])
def test_a_key_that_left_the_key_set_is_not_revoked(rotated, times, later):
    """
    A retired key has nothing to take away; the refusal says since when, whether or not the ring was settled.
    """
    with pytest.raises(IllegalTransition) as refusal:
        revoke(rotated.ring, rotated.old_kid, now=rotated.at + later, times=times, reason="leaked")

    assert (refusal.value.state, refusal.value.unpublished_at) == ("retired", rotated.unpublish_at)


def test_a_revoked_key_stays_revoked(ring, now, times):
    """
    Compromised never returns: neither a second revocation nor a later rotation touches it.
    """
    done = revoke(ring, ring.active.kid, now=now, times=times, reason="leaked")

    with pytest.raises(IllegalTransition) as refusal:
        revoke(done.ring, ring.active.kid, now=now + 1, times=times, reason="again")

    assert refusal.value.state == "revoked"
    later = rotate(done.ring, now=now + 5_000, times=times, expected_active=None)
    assert later.ring.record(ring.active.kid) == done.ring.record(ring.active.kid)


def test_an_unknown_key_is_not_revoked(ring, now, times):
    """
    A typing mistake does nothing.
    """
    with pytest.raises(UnknownKey):
        revoke(ring, "nobody", now=now, times=times, reason="leaked")


@pytest.mark.parametrize("reason", ["", " \t", "two\nlines", None])
def test_a_revocation_needs_a_reason(ring, now, times, reason):
    """
    What is withdrawn for good is explained.
    """
    with pytest.raises(ReasonRequired):
        revoke(ring, ring.active.kid, now=now, times=times, reason=reason)


def test_a_stolen_ring_is_replaced_in_one_step(rotated, times):
    """
    Every published key goes, the one that signed in front; what signs and waits is new, what had ended stays as it is.
    """
    ended = revoke(rotated.ring, rotated.standby_kid, now=rotated.at + 5, times=times, reason="drill")
    before, at = ended.ring, rotated.at + 10

    done = revoke_all(before, now=at, times=times, reason="backup was stolen")

    assert done.kids == tuple(key.kid for key in before.published(at))
    assert done.kids[0] == before.active.kid
    assert len(done.kids) == 4
    gone = [done.ring.record(kid) for kid in done.kids]
    assert {(key.state, key.private_jwk, key.reason) for key in gone} == {("revoked", None, "backup was stolen")}
    assert {(key.revoked_at, key.unpublish_at) for key in gone} == {(at, at)}
    assert [key.deactivated_at for key in gone] == [at, None, None, rotated.at]
    assert done.ring.record(rotated.standby_kid) == before.record(rotated.standby_kid)
    assert [key["kid"] for key in done.ring.jwks(at)["keys"]] == [done.active_kid, *done.standby_kids]
    assert not {done.active_kid, *done.standby_kids} & {record.kid for record in before.records}
    done.ring.self_test()


def test_a_full_revocation_says_what_it_means(ring, now, times):
    """
    The bound of trust, the next rotation, that verifiers may refuse the new key for a while, and that the sealing key matters.
    """
    done = revoke_all(ring, now=now, times=times, reason="stolen")

    assert (done.at, done.trusted_until, done.next_rotation_at) == (now, now + 285, now + MATURITY)
    said = " ".join(done.notices)
    assert all(words in said for words in ("3 keys", "stop verifying", "up to 30 s", "sealing key"))


def test_after_a_full_revocation_life_goes_on(ring, now, times):
    """
    The next rotation is possible when the new standbys are mature, and a second theft is answered the same way.
    """
    done = revoke_all(ring, now=now, times=times, reason="stolen")

    rotated = rotate(done.ring, now=now + MATURITY, times=times, expected_active=done.active_kid)
    again = revoke_all(rotated.ring, now=now + MATURITY, times=times, reason="stolen again")

    assert rotated.new_kid == done.standby_kids[0]
    assert len(again.kids) == 4


def test_the_fullest_key_set_is_revoked_at_once(rotated, times):
    """
    Sixteen retiring keys, the active one and two standbys leave together and all stand in the history.
    """
    ring, at = rotated.ring, rotated.at
    while len(ring.retiring) < MAX_RETIRING:
        ring = rotate(ring, now=at, times=times, expected_active=None, force=True, reason="drill").ring

    done = revoke_all(ring, now=at, times=times, reason="stolen")

    assert len(done.kids) == MAX_RETIRING + 3
    assert {done.ring.record(kid).state for kid in done.kids} == {"revoked"}
    assert done.pruned == ()


@pytest.mark.parametrize("reason", ["", "two\nlines", None])
def test_a_full_revocation_needs_a_reason(ring, now, times, reason):
    """
    What is withdrawn for good is explained.
    """
    with pytest.raises(ReasonRequired):
        revoke_all(ring, now=now, times=times, reason=reason)


def test_a_clock_a_little_behind_counts_as_the_ring_time(rotated, times):
    """
    Two instances may differ by the skew: the second one's rotation goes on with the ring's latest instant.
    """
    again = rotate(rotated.ring, now=rotated.at - times.skew_s, times=times, expected_active=None)

    assert again.at == rotated.at
    assert again.ring.active.activated_at == rotated.at


def test_a_clock_far_behind_refuses_a_planned_rotation(rotated, times):
    """
    With an odd clock nothing planned happens, and both instants are named.
    """
    behind = rotated.at - times.skew_s - 1

    with pytest.raises(ClockBehind) as refusal:
        rotate(rotated.ring, now=behind, times=times, expected_active=None)

    assert (refusal.value.now, refusal.value.recorded) == (behind, rotated.at)


def test_an_emergency_goes_on_with_an_odd_clock(rotated, times):
    """
    A forced rotation and a revocation take the ring's latest instant, so that no instant lies before a stored one.
    """
    forced = rotate(rotated.ring, now=5, times=times, expected_active=None, force=True, reason="clock is broken")
    revoked = revoke(rotated.ring, rotated.new_kid, now=5, times=times, reason="leaked")
    replaced = revoke_all(rotated.ring, now=5, times=times, reason="stolen")

    assert forced.at == revoked.at == replaced.at == rotated.at


@pytest.mark.parametrize(("wrong", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_now_is_an_instant(ring, times, wrong, error):
    """
    A fraction or a bool as clock is a mistake of the programmer.
    """
    with pytest.raises(error):
        rotate(ring, now=wrong, times=times, expected_active=None)
    with pytest.raises(error):
        revoke(ring, ring.active.kid, now=wrong, times=times, reason="leaked")


def test_the_key_generator_is_a_parameter(now, times):
    """
    Every key of a ring comes from the function that is passed in.
    """
    keys = [generate_key() for _ in range(5)]
    supply = iter(keys)

    ring = create_ring("acme", now=now, times=times, generate=lambda: next(supply))
    ring = rotate(ring, now=now + MATURITY, times=times, expected_active=None, generate=lambda: next(supply)).ring
    ring = revoke(ring, keys[1].kid, now=now + 400, times=times, reason="leaked", generate=lambda: next(supply)).ring

    assert {record.kid for record in ring.records} == {key.kid for key in keys}


def test_a_generator_that_repeats_itself_is_found(now, times):
    """
    Two equal keys do not make a ring.
    """
    key = generate_key()

    with pytest.raises(ValueError, match="twice"):
        create_ring("acme", now=now, times=times, generate=lambda: key)


def test_the_oldest_history_is_handed_out(ring, now, times):
    """
    Beyond twenty ended records the oldest leave the ring, and the caller gets them for its trail.
    """
    gone = []
    for number in range(MAX_HISTORY + 2):
        done = revoke(ring, ring.standbys[0].kid, now=now + number, times=times, reason=f"drill {number}")
        ring, gone = done.ring, [*gone, *done.pruned]

    assert [record.reason for record in gone] == ["drill 0", "drill 1"]
    assert len(ring.records) == 3 + MAX_HISTORY
    rotation = rotate(ring, now=now + 9_000, times=times, expected_active=None)
    assert rotation.pruned == ()
