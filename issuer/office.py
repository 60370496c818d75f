"""
What a running service needs to let one workspace be administered: what is done, and the books about it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from keys import KeyTimes

from .administration import Administration, AuditedChanges, RingReader
from .bookkeeping import Bookkeeping, Notes
from .mint_counts import MintCounts
from .oauth import Report
from .registry import Workspace
from .rings import LiveRing

__all__ = ["Office", "OfficeLedger", "open_office"]


class OfficeLedger(AuditedChanges, Notes, Protocol):
    """
    A `Ledger`, as far as an office needs it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """
    The administration of a workspace, and its books.
    """

    administration: Administration
    books: Bookkeeping


def open_office(
    workspace: Workspace,
    *,
    ring: LiveRing,
    store: RingReader,
    ledger: OfficeLedger,
    times: KeyTimes,
    mints: MintCounts,
    now: Callable[[], float],
    report: Report,
) -> Office:
    """
    Put an office together: *ring* follows each change at once, *mints* tells what was minted under a key that is revoked.
    """
    administration = Administration(
        workspace, changes=ledger, ring=store, times=times, now=now, minted=mints.under, adopt=ring.poll
    )
    books = Bookkeeping(workspace.name, notes=ledger, head=lambda: ring.head, now=now, report=report)
    return Office(administration=administration, books=books)
