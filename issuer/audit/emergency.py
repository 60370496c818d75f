"""
A change that does not wait for the trail: the ring is saved, the record goes to a local file, and the ring says that one is due.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from keys import KeyStore, RevisionConflict, StoreError

from ..reports import Report
from .batch import sealed_without_record
from .chain import link_of
from .change import Decide, Done
from .errors import AuditError, LedgerBusy
from .sealed_state import SpilledChange, state_or_start
from .spill import Spill, spill_line

__all__ = ["MAX_ATTEMPTS", "Emergency"]

_T = TypeVar("_T")

MAX_ATTEMPTS: Final = 100
"""How often a change starts again because somebody else was first; each time, somebody's change went through."""


class Emergency:
    """
    Changes the ring of one workspace without its trail. Nothing of the audit holds it up.
    """

    __slots__ = ("_now", "_report", "_spill", "_store", "_workspace")

    def __init__(
        self, workspace: str, *, store: KeyStore, spill: Spill, now: Callable[[], float], report: Report
    ) -> None:
        """
        Take the parts, as `Ledger` does.
        """
        self._workspace = workspace
        self._store = store
        self._spill = spill
        self._now = now
        self._report = report

    async def change(self, decide: Decide[_T], problem: AuditError) -> Done[_T]:
        """
        Carry out what *decide* decides; *problem* is why it cannot be recorded.

        Raises:
            Exception: whatever *decide* raises; nothing was changed.
            LedgerBusy: others were faster again and again; nothing was changed.
            StoreError, SealingKeyError, SelfTestFailed: the ring could not be loaded or saved; see the error.
        """
        hoped: tuple[SpilledChange, Done[_T]] | None = None
        for _ in range(MAX_ATTEMPTS):
            ring, revision = await self._store.load()
            state = state_or_start(ring)
            # The answer to an earlier save may have been lost on its way.
            if hoped and hoped[0] in state.spilled:
                return hoped[1]
            change = decide(ring, int(self._now()))
            if not change.entries:
                return Done(result=change.result, revision=revision, head=state.tip.head)
            line = spill_line(self._workspace, revision + 1, change.entries)
            await self._keep(line)
            spilled = SpilledChange(revision + 1, link_of(line))
            done = Done(result=change.result, revision=revision + 1, head=state.tip.head, is_recorded=False)
            try:
                await self._store.save(sealed_without_record(change.ring, spilled), expect=revision)
            except RevisionConflict:
                hoped = (spilled, done)
                continue
            self._report("audit_spilled", workspace=self._workspace, revision=revision + 1, problem=problem.code)
            return done
        raise LedgerBusy(workspace=self._workspace)

    async def _keep(self, line: bytes) -> None:
        try:
            await self._spill.append(line)
        except StoreError as error:
            # The ring and the log still say that a record is missing.
            self._report("audit_spill_failed", workspace=self._workspace, problem=error.code)
