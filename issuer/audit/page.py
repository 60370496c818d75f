"""
Pages of a trail for people, the latest record first, each with whether it was carried out.
"""

import contextlib
from collections import deque
from dataclasses import dataclass
from typing import Final

from .chain import Head, link_of
from .course import Course
from .record import Malformed, Record, parse_record
from .trail import Trail

__all__ = ["MAX_PAGE", "Page", "Row", "read_page", "was_carried_out"]

MAX_PAGE: Final = 200

_MAX_AHEAD: Final = 1000
"""Records that are read behind a page to find out which of its own were carried out; no writer is overtaken that often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    A record as it stands in the trail; a page verifies nothing.

    `link` is the hash of its line. `is_carried_out` is None for a record behind the head: that is not known before the next one.
    """

    record: Record
    link: str
    is_carried_out: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """
    Some records, the latest first.

    `before` gives the next page, and is None when there is none. `unreadable` is how many lines among them are no records.
    """

    rows: tuple[Row, ...]
    before: int | None
    unreadable: int
    head: Head


async def read_page(trail: Trail, head: Head, *, before: int | None, limit: int) -> Page:
    """
    Read the page of at most *limit* records whose numbers are smaller than *before*; *head* is what the ring knows.

    Raises:
        TrailUnavailable: when the trail cannot be read.
        ValueError: when *limit* is not 1 to `MAX_PAGE`, or *before* is not a number from 1 on.
    """
    if not 1 <= limit <= MAX_PAGE or (before is not None and before < 1):
        raise ValueError("a page has 1 to 200 records before a number")
    beyond = head.seq + 1 if before is None else min(before, head.seq + 1)
    found: deque[tuple[Record, str]] = deque(maxlen=limit)
    course, unreadable, at = Course(), 0, 0
    async with contextlib.aclosing(trail.lines(max(1, beyond - limit))) as lines:
        async for line in lines:
            try:
                record = parse_record(line).record
            except Malformed:
                unreadable += 1
                continue
            course.add(record)
            at = record.seq
            if before is None or at < before:
                found.append((record, link_of(line)))
            elif at >= min(head.seq, before + _MAX_AHEAD):
                break
    beside = course.beside(min(at, head.seq))
    rows = tuple(_row(record, link, head, beside) for record, link in reversed(found))
    return Page(
        rows=rows,
        before=rows[-1].record.seq if rows and rows[-1].record.seq > 1 else None,
        unreadable=unreadable,
        head=head,
    )


async def was_carried_out(trail: Trail, written: Head, head: Head) -> bool:
    """
    Tell whether the record that ended at *written* is among those that led to *head*, the one that the ring has.

    Raises:
        TrailUnavailable: when the trail cannot be read.
    """
    if written.seq > head.seq:
        return False
    course, is_there = Course(), False
    async with contextlib.aclosing(trail.lines(written.seq)) as lines:
        async for line in lines:
            try:
                record = parse_record(line).record
            except Malformed:
                return False
            is_there = is_there or (record.seq, link_of(line)) == (written.seq, written.link)
            course.add(record)
            if record.seq >= head.seq:
                break
    return is_there and not any(written.seq in each for each in course.beside(head.seq))


def _row(record: Record, link: str, head: Head, beside: tuple[range, ...]) -> Row:
    is_carried_out = None if record.seq > head.seq else not any(record.seq in each for each in beside)
    return Row(record=record, link=link, is_carried_out=is_carried_out)
