"""
An audit trail carried on in another place: what is there already must be how it begins, and the rest is added.
"""

from contextlib import aclosing

from .audit import AuditError, Trail, TrailUnavailable
from .audit.record import read_seq

__all__ = ["TrailsDiffer", "carry_trail"]


class TrailsDiffer(AuditError):
    """
    Raised when the other place has a record that the trail has not; nothing was added.
    """

    code = "trails_differ"

    def __init__(self, *, where: str, seq: int) -> None:
        """
        Name the place and the record.
        """
        super().__init__(f"{where} has another record {seq}: it is the trail of another history and is left as it is.")
        self.where = where
        self.seq = seq


async def carry_trail(source: Trail, target: Trail) -> int:
    """
    Add to *target* what *source* has beyond it, and return how many records that were. Ledgers must not write meanwhile.

    Nothing is verified here; the ring that goes with the trail says what it has to be.

    Raises:
        TrailsDiffer: when what *target* has is not how *source* begins.
        TrailUnavailable: when one of the two cannot be used.
    """
    added = seen = 0
    async with aclosing(source.lines()) as lines, aclosing(target.lines()) as present:
        async for line in lines:
            seen += 1
            there = await anext(present, None)
            if there is None:
                await target.append(_number(line, source), [line])
                added += 1
            elif there != line:
                raise TrailsDiffer(where=target.where, seq=seen)
        # Only reached with nothing added, since adding begins where these have ended.
        if await anext(present, None) is not None:
            raise TrailsDiffer(where=target.where, seq=seen + 1)
        end = await source.end()
    if end.confirmed is not None:
        await target.confirm(end.top, end.confirmed)
    return added


def _number(line: bytes, source: Trail) -> int:
    seq = read_seq(line)
    if seq is None:
        raise TrailUnavailable(where=source.where, problem="a line is no record")
    return seq
