"""
A trail carried on elsewhere: line by line the same, or not at all.
"""

import asyncio

import pytest

from issuer.audit import FileTrail, TrailUnavailable
from issuer.trail_copy import TrailsDiffer, carry_trail


def line(seq, text=""):
    return f'{{"seq":{seq},"text":"{text}"}}'.encode()


@pytest.fixture
def trails(tmp_path):
    """
    A function that makes a trail with those lines.
    """

    def trail(name, *lines, confirmed=None):
        made = FileTrail(tmp_path / f"{name}.jsonl")

        async def fill():
            if lines:
                await made.append(1, lines)
            if confirmed:
                await made.confirm(len(lines), confirmed)

        asyncio.run(fill())
        return made

    return trail


def lines_of(trail):
    async def read():
        return [each async for each in trail.lines()]

    return asyncio.run(read())


def test_an_empty_trail_is_carried_nowhere(trails):
    """
    And nothing is noted.
    """
    target = trails("b")

    assert asyncio.run(carry_trail(trails("a"), target)) == 0
    assert lines_of(target) == []


@pytest.mark.parametrize("there", [0, 1, 3])
def test_what_is_missing_is_added(there, trails):
    """
    With what was noted about the last ring.
    """
    lines = [line(seq) for seq in (1, 2, 3)]
    source, target = trails("a", *lines, confirmed="c" * 43), trails("b", *lines[:there])

    assert asyncio.run(carry_trail(source, target)) == 3 - there

    assert lines_of(target) == lines
    assert asyncio.run(target.end()).confirmed == asyncio.run(source.end()).confirmed is not None


@pytest.mark.parametrize(
    ("there", "seq"),
    [([line(1, "other")], 1), ([line(1), line(2, "other")], 2), ([line(1), line(2), line(3), line(4)], 4)],
)
def test_another_history_is_left_as_it_is(there, seq, trails):
    """
    Also one that only goes on where this one ends.
    """
    target = trails("b", *there)

    with pytest.raises(TrailsDiffer) as refusal:
        asyncio.run(carry_trail(trails("a", line(1), line(2), line(3)), target))

    assert refusal.value.seq == seq
    assert lines_of(target) == there


def test_a_line_that_is_no_record_is_not_carried(trails):
    """
    What is before it is.
    """
    target = trails("b")

    with pytest.raises(TrailUnavailable):
        asyncio.run(carry_trail(trails("a", line(1), b"text"), target))

    assert lines_of(target) == [line(1)]
