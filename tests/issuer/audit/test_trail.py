"""
What both kinds of trail promise.
"""

import asyncio

import pytest

from issuer.audit import FileTrail, TrailUnavailable, copy_trail
from issuer.audit.errors import PlaceTaken
from issuer.audit.trail import TrailEnd

from .stage import Chain, read

pytestmark = pytest.mark.anyio


async def test_a_new_trail_is_empty(trail):
    """
    It has no end yet and no lines.
    """
    assert await trail.end() == TrailEnd(top=0, confirmed=None)
    assert await read(trail) == []


async def test_lines_come_back_in_order_from_any_place(trail):
    """
    As they were written, however many.
    """
    chain = Chain(6)
    await trail.append(1, chain.lines[:1])
    await trail.append(2, chain.lines[1:5])
    await trail.append(6, chain.lines[5:])

    assert await read(trail) == chain.lines
    assert [await read(trail, start) for start in range(1, 8)] == [chain.lines[at:] for at in range(7)]
    assert (await trail.end()).top == 6


async def test_many_lines_come_in_pages(trail):
    """
    More than one read brings.
    """
    lines = Chain(600).lines
    await trail.append(1, lines)

    assert await read(trail) == lines
    assert await read(trail, 300) == lines[299:]


async def test_a_place_is_given_once(trail):
    """
    Whoever comes second is told, and none of its lines is there.
    """
    chain = Chain(3)
    await trail.append(1, chain.lines[:2])

    with pytest.raises(PlaceTaken):
        await trail.append(2, chain.lines[1:])

    assert await read(trail) == chain.lines[:2]


async def test_what_was_noted_last_counts(trail):
    """
    About the ring that was saved.
    """
    await trail.append(1, Chain(3).lines)
    await trail.confirm(1, "first")
    await trail.confirm(3, "third")

    assert (await trail.end()).confirmed == "third"


async def test_a_trail_can_be_left_out_for_a_while(trail):
    """
    Whoever stops reading leaves nothing open.
    """
    await trail.append(1, Chain(3).lines)

    async for line in trail.lines(2):
        assert line
        break

    assert len(await read(trail)) == 3


async def test_a_whole_change_can_have_the_trail_for_itself(trail):
    """
    Entered and left, one after the other.
    """
    for _ in range(2):
        async with trail.exclusive(wait_s=1):
            await trail.end()


async def test_a_trail_can_be_copied(trail, tmp_path):
    """
    Octet for octet, with gaps in the numbers, and what was noted.
    """
    chain = Chain(3)
    await trail.append(1, chain.lines[:1])
    await trail.append(3, chain.lines[2:])
    await trail.confirm(3, "third")
    target = FileTrail(tmp_path / "copy" / "acme.jsonl")

    assert await copy_trail(trail, target) == 2

    assert await read(target) == [chain.lines[0], chain.lines[2]]
    assert await target.end() == await trail.end()
    with pytest.raises(PlaceTaken):
        await copy_trail(trail, target)


async def test_a_trail_can_be_copied_back(trail, tmp_path):
    """
    From a file into either kind, also when nothing was noted.
    """
    chain = Chain(2)
    source = FileTrail(tmp_path / "source" / "acme.jsonl")
    await source.append(1, chain.lines)

    assert await copy_trail(source, trail) == 2

    assert await read(trail) == chain.lines
    assert (await trail.end()).confirmed is None


async def test_what_is_no_record_is_not_copied(trail, tmp_path):
    """
    Somebody has to look at it first.
    """
    source = FileTrail(tmp_path / "source" / "acme.jsonl")
    await source.append(1, [Chain(1).lines[0], b"garbage"])

    with pytest.raises(TrailUnavailable):
        await copy_trail(source, trail)


async def test_writers_at_once_get_different_places_or_none(trail):
    """
    Twenty of them, each for the place behind the last.
    """
    chain = Chain(1)

    async def write():
        async with trail.exclusive(wait_s=5):
            top = (await trail.end()).top
            try:
                await trail.append(top + 1, [chain.lines[0].replace(b'"seq":1', b'"seq":%d' % (top + 1))])
            except PlaceTaken:
                return 0
        return 1

    written = sum(await asyncio.gather(*[write() for _ in range(20)]))

    assert len(await read(trail)) == written == (await trail.end()).top
