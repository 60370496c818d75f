"""
What a verification of a trail found, and what of it somebody has answered for.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from .chain import Head
from .errors import Damage

__all__ = ["MAX_FINDINGS", "Finding", "FindingList", "Findings", "Problem"]

Problem = Damage | Literal["head", "unproven"]
"""
`missing`: records were removed; `out_of_order`: a record stands behind one of its number or a higher one; `changed`: the MAC is
not that of this service; `link`: the record before is another one than this one was written behind; `cut`: the trail ends
before a head that is known; `head`: the record is another one than a noted head stands for; `unproven`: nothing that can be
trusted stands behind records that are held by their hashes alone.
"""

MAX_FINDINGS: Final = 100
"""Findings that are listed; those beyond are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One thing that is wrong.

    Attributes:
        problem: what.
        seq: the number of the record; where a line claims none that can be believed, of the record that should stand there.
        last: the last number where several records are concerned; else `seq`.
        line: the line it was found at, from 1 on.
        acknowledged_by: the number of a later record by which somebody with a name and a reason restarted the trail, if any.
    """

    problem: Problem
    seq: int
    last: int
    line: int
    acknowledged_by: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """
    What came out of a verification.

    Attributes:
        is_sound: whether nothing is wrong but what somebody has answered for.
        records: how many lines there are.
        head: the end of the trail as it stands.
        findings: what is wrong, in order, the first `MAX_FINDINGS`.
        omitted: how many there are beyond.
        not_carried_out: numbers of records that were written and not carried out, see `Record.follows`.
        beyond_head: how many stand behind the head that the ring knows: crashed, failed or in progress; 0 without a ring.
        by_hash_alone: how many records could not be held against a key, since their sealing key is not at hand.
    """

    is_sound: bool
    records: int
    head: Head
    findings: tuple[Finding, ...]
    omitted: int
    not_carried_out: tuple[range, ...]
    beyond_head: int
    by_hash_alone: int


class FindingList:
    """
    Findings as they come: bounded, and answered for by those who restarted the trail after them.
    """

    __slots__ = ("_answered", "_listed", "added")

    def __init__(self) -> None:
        """
        Begin with none.
        """
        self._listed: list[Finding] = []
        self._answered = 0
        self.added = 0

    @property
    def listed(self) -> tuple[Finding, ...]:
        """
        The first ones.
        """
        return tuple(self._listed)

    @property
    def omitted(self) -> int:
        """
        How many are not listed.
        """
        return self.added - len(self._listed)

    @property
    def are_answered(self) -> bool:
        """
        Whether every finding was acknowledged, the omitted ones too.
        """
        return self._answered == self.added

    def add(self, problem: Problem, seq: int, *, line: int, last: int | None = None) -> None:
        """
        Take note of one more.
        """
        self.added += 1
        if len(self._listed) < MAX_FINDINGS:
            self._listed.append(Finding(problem=problem, seq=seq, last=seq if last is None else last, line=line))

    def acknowledge(self, by: int, *, added: int) -> None:
        """
        Have the record of that number answer for the first *added* findings, as far as nobody answers for them yet.
        """
        for at in range(self._answered, min(added, len(self._listed))):
            self._listed[at] = replace(self._listed[at], acknowledged_by=by)
        self._answered = max(self._answered, added)
