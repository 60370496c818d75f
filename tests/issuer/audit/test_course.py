"""
Which records were carried out: read off the trail, whatever crashed or raced.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from issuer.audit.course import Course

from .stage import Chain

RECORD = Chain(1).records[0]


def beside(parents, head):
    course = Course()
    for seq, follows in enumerate(parents, start=1):
        course.add(replace(RECORD, seq=seq, follows=follows))
    return [seq for each in course.beside(head) for seq in each]


def test_without_a_crash_everything_was_carried_out():
    """
    Each record follows the one before.
    """
    assert beside([0, 1, 2], 3) == []


def test_what_is_skipped_was_not_carried_out():
    """
    Record 3 was written for the ring that had record 1 as its head.
    """
    assert beside([0, 1, 1], 3) == [2]


def test_a_record_that_was_not_carried_out_says_nothing():
    """
    Record 3 took 2 for lost and was then overtaken by the ring that has 2; record 4 says so.
    """
    assert beside([0, 1, 1, 2], 4) == [3]
    assert beside([0, 1, 1, 2], 2) == []


@given(st.data())
def test_the_course_is_the_way_back_from_the_head(data):
    """
    For every shape that crashes and competing writers can leave, by another way of counting.
    """
    parents = [data.draw(st.integers(0, seq)) for seq in range(data.draw(st.integers(1, 12)))]
    head = data.draw(st.integers(1, len(parents)))

    course, at = set(), head
    while at:
        course.add(at)
        at = parents[at - 1]

    assert set(beside(parents, head)) == set(range(1, head)) - course
