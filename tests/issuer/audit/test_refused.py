"""
Refused attempts: one record a source and minute, whatever comes.
"""

import pytest

from issuer.audit import Actor, Attempts
from issuer.audit.refused import MAX_KINDS, MAX_SOURCES, MAX_WAITING, OTHERS

from .stage import NOW

MINUTE = NOW - NOW % 60


@pytest.fixture
def attempts():
    return Attempts()


def note(attempts, source="192.0.2.7", *, times=1, now=MINUTE, **kind):
    for _ in range(times):
        attempts.note(source, **{"call": "rotate", "reason": "secret", "name": "secops", **kind}, now=now)


def test_a_source_has_one_record_a_minute(attempts):
    """
    It says how often, and what was tried, the most frequent first.
    """
    note(attempts)
    note(attempts, times=3, now=MINUTE + 59.9, reason="assertion", name="")

    (refused,) = attempts.take(MINUTE + 60)

    assert (refused.event, refused.outcome, refused.at, refused.count) == ("attempts_refused", "refused", MINUTE, 4)
    assert refused.actor == Actor("service", "issuer", "192.0.2.7")
    assert refused.after == {
        "kinds": (
            {"call": "rotate", "reason": "assertion", "name": "", "count": 3},
            {"call": "rotate", "reason": "secret", "name": "secops", "count": 1},
        )
    }


def test_the_present_minute_is_not_over(attempts):
    """
    It comes with the next one.
    """
    note(attempts)
    note(attempts, now=MINUTE + 60)

    assert [each.at for each in attempts.take(MINUTE + 61)] == [MINUTE]
    assert [each.at for each in attempts.take(MINUTE + 119)] == []
    assert [each.at for each in attempts.take(MINUTE + 120)] == [MINUTE + 60]


def test_sources_beyond_the_bound_share_a_record(attempts):
    """
    A flood from everywhere makes no more records than the bound, and every attempt counts.
    """
    for number in range(1000):
        note(attempts, f"2001:db8::{number:x}")
    note(attempts, "2001:db8::0")

    taken = attempts.take(MINUTE + 60)

    assert len(taken) == MAX_SOURCES + 1
    assert sum(each.count for each in taken) == 1001
    assert taken[0].count == 2
    assert taken[-1].actor.source == OTHERS


def test_kinds_beyond_the_bound_are_in_the_count_alone(attempts):
    """
    A record stays short.
    """
    for number in range(100):
        note(attempts, reason=f"reason {number}")

    (refused,) = attempts.take(MINUTE + 60)

    assert refused.count == 100
    assert len(refused.after["kinds"]) == MAX_KINDS


def test_what_could_not_be_recorded_comes_again(attempts):
    """
    Before what was counted since.
    """
    note(attempts)
    first = attempts.take(MINUTE + 60)
    note(attempts, now=MINUTE + 60)

    attempts.give_back(first)

    assert [each.at for each in attempts.take(MINUTE + 120)] == [MINUTE, MINUTE + 60]
    assert attempts.take(MINUTE + 120) == ()


def test_what_waits_too_long_is_folded_into_one(attempts):
    """
    A trail that is down for hours costs a bounded memory and no attempt.
    """
    for number in range(3 * MAX_WAITING):
        note(attempts, now=MINUTE + 60 * number)
        attempts.give_back(attempts.take(MINUTE + 60 * number + 60))

    taken = attempts.take(MINUTE + 60 * 3 * MAX_WAITING)

    assert len(taken) == MAX_WAITING
    assert sum(each.count for each in taken) == 3 * MAX_WAITING
    assert (taken[0].actor.source, taken[0].count) == (OTHERS, 2 * MAX_WAITING + 1)
    assert taken[0].after == {"kinds": ()}


def test_nobody_has_to_take_anything(attempts):
    """
    Minutes that nobody asks for wait too.
    """
    for number in range(10_000):
        note(attempts, now=MINUTE + 60 * number)

    taken = attempts.take(MINUTE + 60 * 10_000)

    assert len(taken) <= MAX_WAITING + 11
    assert sum(each.count for each in taken) == 10_000
