"""
The end of a trail held against what the sealed ring says about it, line by line, from the head on.
"""

import contextlib

from keys import SealingKeys

from .chain import DoesNotFollow, Tip, confirmation, follow, link_of
from .errors import Damage, RingOlderThanTrail, TrailDamaged
from .record import read_seq
from .trail import Trail, TrailEnd

__all__ = ["Survey", "survey_trail"]


async def survey_trail(trail: Trail, survey: "Survey", start: int) -> "Survey":
    """
    Feed *survey* from record *start* on, as far as records follow each other, and return it.

    Raises:
        TrailUnavailable: when the trail cannot be read.
    """
    async with contextlib.aclosing(trail.lines(start)) as lines:
        async for line in lines:
            if not survey.feed(line):
                break
    return survey


class Survey:
    """
    Reads a trail from the record that the ring has as its head, which comes first where there is one.

    `tip` is where the trail ends as far as its records follow each other, `seen` how many follow the head. A record beyond the
    head is what a crash, a competing writer or a change in progress leaves: it was written for the revision after the ring's. One
    for a later revision, or one that was noted as carried out, proves that the ring is older than the trail. A number that was
    given out behind the last record says that one was taken away.
    """

    __slots__ = (
        "_awaits_head",
        "_confirmed",
        "_revision",
        "_sealing",
        "_top",
        "_workspace",
        "damage",
        "recorded",
        "seen",
        "tip",
    )

    def __init__(self, tip: Tip, *, workspace: str, revision: int, end: TrailEnd, sealing: SealingKeys) -> None:
        """
        Take what the ring of that revision says, and how the trail ended before its lines were read.
        """
        self.tip = tip
        self.seen = 0
        self.damage: tuple[int, Damage] | None = None
        self.recorded = 0
        self._awaits_head = tip.head.seq > 0
        self._workspace = workspace
        self._revision = revision
        self._confirmed = end.confirmed
        self._top = end.top
        self._sealing = sealing

    def feed(self, line: bytes) -> bool:
        """
        Take the next line; False when it is not what has to follow, and nothing behind it matters.
        """
        if self._awaits_head:
            self._awaits_head = False
            return self._check_head(line)
        try:
            record, self.tip = follow(self.tip, line, workspace=self._workspace, sealing=self._sealing)
        except DoesNotFollow as error:
            self.damage = (self.tip.head.seq + 1, error.problem)
            return False
        self.seen += 1
        if record.revision > self._revision + 1 or confirmation(self.tip) == self._confirmed:
            self.recorded = max(self.recorded, record.revision)
        return True

    def finish(self) -> None:
        """
        Say what was found.

        Raises:
            TrailDamaged: when the trail does not end as the ring says.
            RingOlderThanTrail: when it goes on where the ring does not.
        """
        if self._awaits_head:
            self.damage = (self.tip.head.seq, "cut")
        elif self.damage is None and self._top > self.tip.head.seq:
            self.damage = (self.tip.head.seq + 1, "missing")
        # What is on record about a later ring says more than what comes behind it.
        if self.recorded:
            raise RingOlderThanTrail(workspace=self._workspace, revision=self._revision, recorded=self.recorded)
        if self.damage is not None:
            seq, problem = self.damage
            raise TrailDamaged(workspace=self._workspace, seq=seq, problem=problem)

    def _check_head(self, line: bytes) -> bool:
        head = self.tip.head
        if link_of(line) == head.link:
            return True
        self.damage = (head.seq, "missing" if (read_seq(line) or 0) > head.seq else "changed")
        return False
