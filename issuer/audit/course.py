"""
Which records were carried out, found out from the records themselves and the head that the ring was saved with.

A writer puts its record into the trail before it saves the ring. When it crashes in between, is overtaken, or fails to save,
the record stays, and the next one says in `follows` which record was carried out last. From the head backwards, that gives the
course of what happened; everything beside it was not carried out.
"""

from .record import Record

__all__ = ["Course"]


class Course:
    """
    Collects the records of a trail in order; keeps only those that skip others.
    """

    __slots__ = ("_skips",)

    def __init__(self) -> None:
        self._skips: list[tuple[int, int]] = []

    def add(self, record: Record) -> None:
        """
        Take note of the next record.
        """
        if record.follows != record.seq - 1:
            self._skips.append((record.seq, record.follows))

    def beside(self, head_seq: int) -> tuple[range, ...]:
        """
        Return the numbers up to that of the head whose records were not carried out, as ranges in ascending order.
        """
        ranges = []
        at = head_seq
        for seq, follows in reversed(self._skips):
            # A record beside the course says nothing about what happened.
            if seq <= at:
                ranges.append(range(follows + 1, seq))
                at = follows
        return tuple(reversed(ranges))
