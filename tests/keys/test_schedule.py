"""
The schedule of rotations: due by two clocks that agree, planned as the rules say, alarming when nothing happens.
"""

from dataclasses import replace

import pytest

from keys import ALARM_S, Due, KeyRing, Planned, alarm, create_ring, due, generate_key, plan, revoke, rotate

DAY = 86_400
DUE = 30 * DAY


@pytest.fixture
def due_at(ring):
    return ring.active.rotation_due_at


def test_a_rotation_is_due_thirty_days_after_the_activation(ring, now, due_at):
    """
    Not a second earlier, and from then on until it happens.
    """
    assert due_at == now + DUE
    assert due(ring, due_at - 1, due_at - 1) is None
    assert due(ring, due_at, due_at) == Due(kid=ring.active.kid, since=due_at)
    assert due(ring, due_at + DAY, due_at + DAY) == Due(kid=ring.active.kid, since=due_at)


@pytest.mark.parametrize(("ours", "the_stores"), [(DUE + DAY, -1), (365 * DAY, DUE - 1), (DUE - 1, 365 * DAY)])
def test_a_clock_alone_rotates_nothing(ring, now, ours, the_stores):
    """
    Whichever of the two jumped ahead.
    """
    assert due(ring, now + ours, now + the_stores) is None


def test_a_due_instant_is_the_one_that_was_stored(ring, due_at):
    """
    It was decided with the times of back then: others today change nothing.
    """
    sooner = replace(ring, records=tuple(_due_later(record) for record in ring.records))

    assert due(sooner, due_at, due_at) is None
    assert due(sooner, due_at + 1, due_at + 1) == Due(kid=ring.active.kid, since=due_at + 1)


def _due_later(record):
    return replace(record, rotation_due_at=record.rotation_due_at + 1) if record.state == "active" else record


def test_a_rotation_is_not_due_before_a_standby_is_mature(ring, due_at, times):
    """
    A standby that was replaced shortly before has to be known everywhere first.
    """
    for standby in ring.standbys:
        ring = revoke(ring, standby.kid, now=due_at - 10, times=times, reason="drill").ring

    mature_at = due_at - 10 + times.maturity_s
    assert due(ring, mature_at - 1, mature_at - 1) is None
    assert due(ring, mature_at, mature_at) == Due(kid=ring.active.kid, since=mature_at)


def test_what_is_due_can_be_done(ring, due_at, times):
    """
    The planned rotation succeeds, and the next one is due thirty days after it.
    """
    found = due(ring, due_at, due_at)

    done = rotate(ring, now=due_at, times=times, expected_active=found.kid)

    assert due(done.ring, due_at + DUE - 1, due_at + DUE - 1) is None
    assert due(done.ring, due_at + DUE, due_at + DUE) == Due(kid=done.new_kid, since=due_at + DUE)


def test_ninety_days_raise_the_alarm(ring, now):
    """
    Long after a rotation should have replaced the key.
    """
    assert ALARM_S == 90 * DAY
    assert not alarm(ring, now + ALARM_S - 0.5)
    assert alarm(ring, now + ALARM_S)


def test_a_plan_shows_the_next_two_rotations(ring, now, due_at, times):
    """
    Every step with its instant, in order; keys that are not made yet have no kid.
    """
    first, second = ring.standbys

    steps = plan(ring, now, times)

    assert steps == (
        Planned(at=now + 350, what="may_activate", kid=first.kid),
        Planned(at=now + 350, what="may_activate", kid=second.kid),
        Planned(at=due_at, what="activate", kid=first.kid),
        Planned(at=due_at, what="retire", kid=ring.active.kid),
        Planned(at=due_at, what="publish", kid=None),
        Planned(at=due_at + 140, what="unpublish", kid=ring.active.kid),
        Planned(at=due_at + 350, what="may_activate", kid=None),
        Planned(at=due_at + DUE, what="activate", kid=second.kid),
        Planned(at=due_at + DUE, what="retire", kid=first.kid),
        Planned(at=due_at + DUE, what="publish", kid=None),
        Planned(at=due_at + DUE + 140, what="unpublish", kid=first.kid),
        Planned(at=due_at + DUE + 350, what="may_activate", kid=None),
        Planned(at=now + ALARM_S, what="alarm", kid=ring.active.kid),
    )


def test_a_plan_begins_now(ring, due_at, times):
    """
    What is past is left out; what is overdue happens now.
    """
    overdue = due_at + DAY

    steps = plan(ring, overdue, times)

    assert min(step.at for step in steps) == overdue
    assert [step.at for step in steps if step.what == "activate"] == [overdue, overdue + DUE]


def test_a_plan_shows_keys_that_are_about_to_leave(ring, now, times):
    """
    A retiring key stands there with its stored instant.
    """
    rotated = rotate(ring, now=now + 350, times=times, expected_active=None)

    steps = plan(rotated.ring, now + 360, times)

    assert steps[0] == Planned(at=rotated.unpublish_at, what="unpublish", kid=rotated.old_kid)


def test_a_plan_does_what_the_rules_say_when_a_standby_is_young(ring, due_at, times):
    """
    The rotation waits until the standby is mature.
    """
    for standby in ring.standbys:
        ring = revoke(ring, standby.kid, now=due_at - 10, times=times, reason="drill").ring

    steps = plan(ring, due_at, times)

    assert next(step.at for step in steps if step.what == "activate") == due_at - 10 + times.maturity_s


def test_a_plan_waits_for_room_in_the_key_set(ring, now, times):
    """
    With as many retiring keys as a ring can have, the next rotation is when the first of them has left.
    """
    record = rotate(ring, now=now + 350, times=times, expected_active=None).ring.retiring[0]
    pairs = [generate_key() for _ in range(16)]
    due_at = ring.active.rotation_due_at
    full = tuple(
        replace(
            record, kid=key.kid, public_jwk=key.public_jwk, deactivated_at=due_at, unpublish_at=due_at + 100 + number
        )
        for number, key in enumerate(pairs)
    )

    steps = plan(KeyRing("acme", (*ring.records, *full)), now, times)

    assert next(step.at for step in steps if step.what == "activate") == due_at + 100


def test_a_plan_holds_for_a_ring_that_is_ahead_of_the_clock(now, times):
    """
    It goes on from the latest instant that the ring has, as every step does.
    """
    ahead = create_ring("acme", now=now + DAY, times=times)

    steps = plan(ahead, now, times)

    assert next(step.at for step in steps if step.what == "activate") == now + DAY + DUE
