"""
Where a workspace keeps its keys and its audit trail, as the configuration says; the same for the service and for commands.
"""

from collections.abc import Callable
from dataclasses import dataclass

from keys import SealingKeys

from .audit import LineFile, Spill
from .ledger import Ledger
from .reports import Report
from .ring_stores import RingStores, StoredRing
from .settings import Settings
from .settings_sealing import spill_path

__all__ = ["WorkspaceStores", "open_stores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceStores:
    """
    The stores of one workspace: its ring, and the ledger that changes it together with its trail.
    """

    ring: StoredRing
    ledger: Ledger


def open_stores(
    place: RingStores,
    settings: Settings,
    workspace_name: str,
    sealing: SealingKeys,
    *,
    now: Callable[[], float],
    report: Report,
) -> WorkspaceStores:
    """
    Build the stores of a workspace in *place*; nothing is opened yet. *now* is the wall clock in epoch seconds.

    What could not be recorded is kept in the data folder, wherever ring and trail are: it must not depend on them.
    """
    ring = place.ring(workspace_name)
    ledger = Ledger(
        workspace_name,
        store=ring,
        trail=place.trail(workspace_name),
        spill=Spill(LineFile(spill_path(settings, workspace_name))),
        sealing=sealing,
        now=now,
        report=report,
    )
    return WorkspaceStores(ring=ring, ledger=ledger)
