"""
The trail in a file: its lock, its folder, and what is wrong with a file that cannot be used.
"""

import asyncio
import stat

import pytest

from issuer.audit import FileTrail, TrailUnavailable
from issuer.audit.record import MAX_LINE_OCTETS, parse_record

from .stage import Chain, read

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "audit" / "acme.jsonl"


@pytest.fixture
def file_trail(path):
    return FileTrail(path)


async def test_everything_it_makes_is_private(file_trail, path):
    """
    The folder, the lines, the lock and the note.
    """
    async with file_trail.exclusive(wait_s=1):
        await file_trail.append(1, Chain(1).lines)
        await file_trail.confirm(1, "noted")

    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()} == {
        "acme.jsonl": 0o600,
        "acme.jsonl.lock": 0o600,
        "acme.jsonl.confirmed": 0o600,
    }


async def test_one_change_at_a_time_has_the_trail(file_trail, path):
    """
    Another one waits as long as it wants to, also in the same process; then it is told.
    """
    other = FileTrail(path)

    async with file_trail.exclusive(wait_s=1):
        with pytest.raises(TrailUnavailable):
            async with other.exclusive(wait_s=0):
                raise AssertionError
    async with other.exclusive(wait_s=0):
        pass


async def test_a_change_that_waits_goes_on_when_the_lock_is_free(file_trail):
    """
    The event loop runs meanwhile.
    """
    order = []

    async def second():
        async with file_trail.exclusive(wait_s=5):
            order.append("second")

    async with file_trail.exclusive(wait_s=1):
        waiting = asyncio.create_task(second())
        await asyncio.sleep(0)
        order.append("first")
    await waiting

    assert order == ["first", "second"]


async def test_a_cancelled_wait_holds_no_lock(file_trail):
    """
    Nobody waits for a change that was given up.
    """

    async def second():
        async with file_trail.exclusive(wait_s=5):
            raise AssertionError

    async with file_trail.exclusive(wait_s=1):
        waiting = asyncio.create_task(second())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with file_trail.exclusive(wait_s=0):
        pass


async def test_a_folder_that_cannot_be_made_makes_the_trail_unavailable(path):
    """
    A file stands where the folder should.
    """
    path.parent.parent.mkdir()
    path.parent.touch()
    trail = FileTrail(path)

    with pytest.raises(TrailUnavailable):
        async with trail.exclusive(wait_s=0):
            raise AssertionError
    with pytest.raises(TrailUnavailable):
        await trail.append(1, Chain(1).lines)
    with pytest.raises(TrailUnavailable):
        await trail.confirm(1, "noted")


async def test_a_file_that_others_may_read_makes_the_trail_unavailable(file_trail, path):
    """
    The message says which file it is.
    """
    await file_trail.append(1, Chain(1).lines)
    path.chmod(0o644)

    for use in (lambda: read(file_trail), file_trail.end, lambda: file_trail.append(2, [b"{}"])):
        with pytest.raises(TrailUnavailable) as refusal:
            await use()
        assert str(path) in str(refusal.value)


async def test_a_torn_line_is_seen_and_not_read(file_trail, path):
    """
    Its octets are counted until the next writer sets them aside.
    """
    chain = Chain(2)
    await file_trail.append(1, chain.lines[:1])
    with path.open("ab") as opened:
        opened.write(chain.lines[1])

    assert (await file_trail.end()).torn_octets == len(chain.lines[1])
    assert await read(file_trail) == chain.lines[:1]

    await file_trail.append(2, chain.lines[1:])

    assert (await file_trail.end()).torn_octets == 0
    assert await read(file_trail) == chain.lines


async def test_a_line_without_end_does_not_fill_the_memory(file_trail, path):
    """
    It is cut where it is too long for a record, and the line behind it is read as usual.
    """
    chain = Chain(1)
    await file_trail.append(1, chain.lines)
    with path.open("ab") as opened:
        opened.write(b"x" * 5 * MAX_LINE_OCTETS + b"\n" + chain.lines[0] + b"\n")

    first, long, last = await read(file_trail)

    assert first == last == chain.lines[0]
    assert MAX_LINE_OCTETS < len(long) < 3 * MAX_LINE_OCTETS
    with pytest.raises(ValueError):
        parse_record(long)
