"""
What a ledger is asked to do, and what it answers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from keys import KeyRing

from .chain import Head
from .record import Entry, Record
from .sealed_state import TrailState
from .survey import Survey
from .trail import TrailEnd

__all__ = ["Change", "Decide", "Done", "Opened", "Standing"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[_T]):
    """
    What was decided: the ring to save, what to put on record, and what to tell the caller.

    Without entries nothing is written, and the ring has to be the one that was there. The companion's member `trail` is the
    ledger's: whatever stands there is replaced.
    """

    ring: KeyRing = field(repr=False)
    entries: tuple[Entry, ...]
    result: _T


Decide = Callable[[KeyRing, int], Change[_T]]
"""Decides about a ring at an instant (epoch seconds); pure, since it is asked again when somebody else was first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[_T]):
    """
    A change that is in force.

    Attributes:
        result: what the decision said.
        revision: that of the ring.
        head: the end of the trail as the ring has it, for `Audit-Head`.
        records: what was put on record, in order; empty when nothing had to be.
        is_recorded: False when an emergency was carried out without its record.
    """

    result: _T
    revision: int
    head: Head
    records: tuple[Record, ...] = ()
    is_recorded: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    How ring and trail stand to each other when nothing is wrong.

    Attributes:
        head: the end of the trail as the ring has it.
        revision: that of the ring.
        unfinished: records behind the head, which a crash or a writer in progress left.
        spilled: emergencies whose records the trail still has to get.
    """

    head: Head
    revision: int
    unfinished: int
    spilled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """
    What a change begins from: the ring as it was loaded, and the trail as it ends.
    """

    ring: KeyRing
    revision: int
    state: TrailState
    end: TrailEnd

    def standing(self, survey: Survey) -> Standing:
        """
        Return how the two stand to each other.
        """
        return Standing(
            head=self.state.tip.head,
            revision=self.revision,
            unfinished=survey.seen,
            spilled=len(self.state.spilled) + self.state.unlisted,
        )
