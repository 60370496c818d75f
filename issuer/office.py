"""
What a running service needs to let one workspace be administered: what is done, and the books about it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from keys import KeyTimes

from .administration import Administration, AuditedChanges, RingReader
from .audit import Actor
from .bookkeeping import Bookkeeping, Notes
from .mint_counts import MintCounts
from .registry import Workspace
from .reports import Report
from .rings import LiveRing
from .schedule import RotationSchedule, StoreClock

__all__ = ["Office", "OfficeLedger", "open_office"]


_SCHEDULE: Final = Actor("schedule", "rotation")


class OfficeLedger(AuditedChanges, Notes, Protocol):
    """
    A `Ledger`, as far as an office needs it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """
    The administration of a workspace, its books, and the schedule of its rotations.
    """

    administration: Administration
    books: Bookkeeping
    schedule: RotationSchedule


def open_office(
    workspace: Workspace,
    *,
    ring: LiveRing,
    store: RingReader,
    ledger: OfficeLedger,
    times: KeyTimes,
    mints: MintCounts,
    now: Callable[[], float],
    store_now: StoreClock,
    report: Report,
) -> Office:
    """
    Put an office together: *ring* follows each change at once, *mints* tells what was minted under a key that is revoked.

    *now* is the wall clock, *store_now* the time of the store, without which the schedule rotates nothing.
    """
    administration = Administration(
        workspace, changes=ledger, ring=store, times=times, now=now, minted=mints.under, adopt=ring.poll
    )
    books = Bookkeeping(workspace.name, notes=ledger, head=lambda: ring.head, now=now, report=report)

    async def rotate(_workspace: str, expected_active: str) -> None:
        await administration.rotate(_SCHEDULE, expected_active=expected_active)

    schedule = RotationSchedule(ring, rotate=rotate, now=now, store_now=store_now, report=report)
    return Office(administration=administration, books=books, schedule=schedule)
