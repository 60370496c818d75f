"""
Pages of a trail, the latest record first.
"""

import pytest

from issuer.audit.page import read_page, was_carried_out

from .stage import Chain, entry

pytestmark = pytest.mark.anyio


def numbers(page):
    return [row.record.seq for row in page.rows]


async def test_pages_lead_from_the_latest_record_to_the_first(trail):
    """
    Each says where the next one begins.
    """
    chain = Chain(7)
    await trail.append(1, chain.lines)

    pages, before = [], None
    while True:
        page = await read_page(trail, chain.head, before=before, limit=3)
        pages.append(numbers(page))
        before = page.before
        if before is None:
            break

    assert pages == [[7, 6, 5], [4, 3, 2], [1]]


async def test_a_row_has_the_record_and_its_hash(trail):
    """
    The hash of the first row of the first page is the head.
    """
    chain = Chain(2)
    await trail.append(1, chain.lines)

    page = await read_page(trail, chain.head, before=None, limit=50)

    assert [row.record for row in page.rows] == chain.records[::-1]
    assert [row.link for row in page.rows] == [chain.tips[2].head.link, chain.tips[1].head.link]
    assert [row.is_carried_out for row in page.rows] == [True, True]
    assert (page.head, page.unreadable, page.before) == (chain.head, 0, None)


async def test_an_empty_trail_has_one_empty_page(trail):
    """
    Nothing happened yet.
    """
    page = await read_page(trail, Chain(0).head, before=None, limit=10)

    assert (page.rows, page.before) == ((), None)


async def test_a_page_says_what_was_not_carried_out(trail):
    """
    Also when the record that says so stands behind the page; of what is behind the head nothing is known.
    """
    chain = Chain(2)
    chain.add(entry(reason="overtaken"))
    chain.add(follows=2)
    head = chain.head
    chain.add()
    await trail.append(1, chain.lines)

    last = await read_page(trail, head, before=None, limit=10)
    middle = await read_page(trail, head, before=4, limit=2)
    beyond = await read_page(trail, head, before=9, limit=10)

    assert [(row.record.seq, row.is_carried_out) for row in last.rows] == [
        (5, None),
        (4, True),
        (3, False),
        (2, True),
        (1, True),
    ]
    assert [(row.record.seq, row.is_carried_out) for row in middle.rows] == [(3, False), (2, True)]
    assert numbers(beyond) == [5, 4, 3, 2, 1]


async def test_what_is_no_record_is_counted(trail):
    """
    A page shows what can be read; a verification says what is wrong.
    """
    chain = Chain(3)
    await trail.append(1, [chain.lines[0], b"garbage", chain.lines[2]])

    page = await read_page(trail, chain.head, before=None, limit=10)

    assert (numbers(page), page.unreadable) == ([3, 1], 1)


async def test_a_page_far_from_the_end_does_not_read_all_of_it(trail, monkeypatch):
    """
    It looks ahead so far and no further.
    """
    monkeypatch.setattr("issuer.audit.page._MAX_AHEAD", 3)
    chain = Chain(20)
    await trail.append(1, chain.lines)
    read = []
    lines = trail.lines

    class Counted:
        async def lines(self, start):
            async for line in lines(start):
                read.append(line)
                yield line

    page = await read_page(Counted(), chain.head, before=5, limit=2)

    assert [(row.record.seq, row.is_carried_out) for row in page.rows] == [(4, True), (3, True)]
    assert read == chain.lines[2:8]


@pytest.mark.parametrize(("before", "limit"), [(None, 0), (None, 201), (0, 10), (-1, 10)])
async def test_a_page_has_bounds(trail, before, limit):
    """
    Of what a caller may ask for.
    """
    with pytest.raises(ValueError):
        await read_page(trail, Chain(0).head, before=before, limit=limit)


async def test_whether_a_change_is_in_force_can_be_read_off(trail):
    """
    For a writer whose answer got lost: its own record has to be there, on the way to the head.
    """
    chain = Chain(2)
    chain.add(entry(reason="overtaken"))
    chain.add(follows=2)
    chain.add()
    await trail.append(1, chain.lines)
    heads = [tip.head for tip in chain.tips]
    elsewhere = Chain(2)
    elsewhere.add(entry(reason="mine"))

    assert [await was_carried_out(trail, head, heads[4]) for head in heads[1:]] == [True, True, False, True, False]
    assert not await was_carried_out(trail, elsewhere.head, heads[5])


async def test_what_cannot_be_read_proves_nothing(trail):
    """
    A writer then starts again.
    """
    chain = Chain(3)
    await trail.append(1, [chain.lines[0], b"garbage", chain.lines[2]])

    assert not await was_carried_out(trail, chain.tips[1].head, chain.head)
