"""
Where the audit trail of one workspace is kept: lines in order, none of which is ever changed.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from .errors import TrailUnavailable
from .record import read_seq

__all__ = ["Trail", "TrailEnd", "confirmed_of", "copy_trail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailEnd:
    """
    How a trail ends.

    Attributes:
        top: the last number that was given, also to an entry that is gone, or that the last entry claims; 0 when there is none.
        confirmed: what was noted last about a saved ring, see `chain.confirmation`.
        torn_octets: how much of a line a crashed writer left without its end.
    """

    top: int
    confirmed: str | None
    torn_octets: int = 0


def confirmed_of(noted: bytes | None) -> str | None:
    """
    Return the confirmation in `<seq>.<confirmation>`, which is how both kinds of trail note it.
    """
    return None if noted is None else noted.decode("ascii", "replace").partition(".")[2]


class Trail(Protocol):
    """
    Keeps the lines of one workspace.

    Whatever is asked of it raises `TrailUnavailable` when the trail cannot be used; `lines` does so while it is read.
    """

    @property
    def where(self) -> str:
        """
        Its place in words, for messages.
        """
        ...

    def exclusive(self, *, wait_s: float) -> AbstractAsyncContextManager[None]:
        """
        Keep other writers out where that is possible, for the length of a whole change; wait for it at most *wait_s* seconds.
        """
        ...

    async def end(self) -> TrailEnd:
        """
        Return how the trail ends.
        """
        ...

    def lines(self, start: int = 1) -> AsyncGenerator[bytes, None]:
        """
        Read the lines from record *start* on, in order and without their newlines. A line without its end is left out.
        """
        ...

    async def append(self, seq: int, lines: Sequence[bytes]) -> None:
        """
        Add lines, the first as record *seq*; they are durable afterwards, all of them or none.

        Raises:
            PlaceTaken: when that number, or a later one, is taken.
        """
        ...

    async def confirm(self, seq: int, confirmation: str) -> None:
        """
        Note that a ring was saved with record *seq* as its head, in the place of what was noted for an earlier record.
        """
        ...


async def copy_trail(source: Trail, target: Trail) -> int:
    """
    Copy every record into a trail that has none, as it is, and return how many there were; *source* is left as it is.

    Nothing is verified here. Ledgers must not write meanwhile.

    Raises:
        TrailUnavailable: when one of the two cannot be used, or a line of *source* is no record.
        PlaceTaken: when *target* has records.
    """
    copied = 0
    async for line in source.lines():
        seq = read_seq(line)
        if seq is None:
            raise TrailUnavailable(where=source.where, problem=f"line {copied + 1} is no record")
        await target.append(seq, [line])
        copied += 1
    end = await source.end()
    if end.confirmed is not None:
        await target.confirm(end.top, end.confirmed)
    return copied
