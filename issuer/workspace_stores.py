"""
Where a workspace keeps its keys and its audit trail, as the configuration says; the same for the service and for commands.
"""

from collections.abc import Callable
from dataclasses import dataclass

from keys import FileKeyStore, SealingKeys

from .audit import FileTrail, LineFile, Spill
from .ledger import Ledger, LedgerReport
from .settings import Settings
from .settings_sealing import ring_path

__all__ = ["WorkspaceStores", "open_stores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceStores:
    """
    The stores of one workspace: its ring, and the ledger that changes it together with its trail.
    """

    ring: FileKeyStore
    ledger: Ledger


def open_stores(
    settings: Settings, workspace_name: str, sealing: SealingKeys, *, now: Callable[[], float], report: LedgerReport
) -> WorkspaceStores:
    """
    Build the stores of a workspace; nothing is opened yet. *now* is the wall clock in epoch seconds.
    """
    ring = FileKeyStore(ring_path(settings, workspace_name), workspace_name, sealing)
    folder = settings.data_dir / "audit"
    ledger = Ledger(
        workspace_name,
        store=ring,
        trail=FileTrail(folder / f"{workspace_name}.jsonl"),
        spill=Spill(LineFile(folder / f"{workspace_name}.spilled.jsonl")),
        sealing=sealing,
        now=now,
        report=report,
    )
    return WorkspaceStores(ring=ring, ledger=ledger)
