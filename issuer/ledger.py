"""
The sealed document of a workspace and its audit trail, changed together: no change without its record, no record that lies.

A change goes this way: load the ring; hold the end of the trail against what the ring says about it; decide; put the records
into the trail, durably; save the ring with the new head, if it is still the one that was loaded; note beside the trail that it
was saved. A process that dies anywhere in between, or a writer that is overtaken, leaves records that were not carried out:
they stay, and the next one says so (`Record.follows`). A record that cannot be written stops the change, unless it is an
emergency: then the ring is saved all the same, the record goes to a local file, and the trail is told as soon as it can be.
"""

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from keys import KeyRing, KeyStore, RevisionConflict, SealingKeys, StoreError

from .audit.batch import compose, owed_entries, restart_entry, restart_tip
from .audit.chain import Head, Tip, confirmation
from .audit.change import Change, Decide, Done, Opened, Standing
from .audit.customers import customer_hash
from .audit.emergency import MAX_ATTEMPTS, Emergency
from .audit.errors import AuditError, LedgerBusy, PlaceTaken, TrailUnavailable
from .audit.findings import Findings
from .audit.page import Page, read_page, was_carried_out
from .audit.record import Actor, Entry
from .audit.sealed_state import TrailState, read_state, ring_with_state, state_or_start
from .audit.spill import Spill
from .audit.survey import Survey, survey_trail
from .audit.trail import Trail
from .audit.unbroken import Unbroken
from .audit.verify import TrailVerification
from .reports import Report

__all__ = ["Change", "Decide", "Done", "Ledger", "Standing"]

_T = TypeVar("_T")

_WAIT_S: Final = 10.0
_EMERGENCY_WAIT_S: Final = 1.0


class _Overtaken(Exception):
    """
    Raised when somebody else was first; `done` is what may be in force all the same, if an answer got lost.
    """

    def __init__(self, done: Done[Any] | None = None) -> None:
        super().__init__()
        self.done = done


class Ledger:
    """
    Changes one workspace's ring and trail together. Safe to share between tasks, processes and, on Redis, machines.

    A change that has begun comes to its end, one way or the other, also when its caller is cancelled.
    """

    __slots__ = ("_emergency", "_now", "_report", "_sealing", "_spill", "_store", "_trail", "_unbroken", "_workspace")

    def __init__(
        self,
        workspace: str,
        *,
        store: KeyStore,
        trail: Trail,
        spill: Spill,
        sealing: SealingKeys,
        now: Callable[[], float],
        report: Report,
    ) -> None:
        """
        Take the parts; *sealing* are the keys that the store seals with, *now* is the wall clock in epoch seconds.

        *report* is told what an operator must know about the trail: `audit_spilled`, `audit_spill_failed`, `audit_unfinished`,
        `audit_confirmation_failed`, `trail_restarted`.
        """
        self._workspace = workspace
        self._store = store
        self._trail = trail
        self._spill = spill
        self._sealing = sealing
        self._now = now
        self._report = report
        self._unbroken = Unbroken()
        self._emergency = Emergency(workspace, store=store, spill=spill, now=now, report=report)

    async def change(self, decide: Decide[_T], *, emergency: bool = False) -> Done[_T]:
        """
        Carry out what *decide* decides, with its records; an *emergency* does not wait for the trail.

        Raises:
            Exception: whatever *decide* raises; nothing was changed.
            TrailUnavailable, TrailDamaged, RingOlderThanTrail: nothing was changed; never in an emergency.
            LedgerBusy: others were faster again and again; nothing was changed.
            StoreError, SealingKeyError, SelfTestFailed: the ring could not be loaded or saved; see the error.
        """
        return await self._unbroken.run(self._change(decide, emergency=emergency))

    async def note(self, *entries: Entry) -> Done[None]:
        """
        Put entries on record without changing anything else.

        Raises:
            AuditError, StoreError, SealingKeyError, SelfTestFailed: as `change` does; they are not on record.
        """
        return await self.change(lambda ring, _now: Change(ring=ring, entries=entries, result=None))

    async def restart(self, actor: Actor, reason: str) -> Done[None]:
        """
        Go on behind a trail that is damaged, or with a ring that is older than the trail; somebody answers for it by name.

        Nothing is removed: a record says what was found, and a verification goes on showing it, as acknowledged.

        Raises:
            TrailUnavailable, LedgerBusy, StoreError, SealingKeyError, SelfTestFailed: as `change` does.
            ValueError: when *reason* is not 1 to 500 printable characters.
        """
        return await self._unbroken.run(self._restart(actor, reason))

    async def check(self) -> Standing:
        """
        Hold the ring against the trail without changing anything; a service looks at this before it starts.

        Raises:
            RingOlderThanTrail: the service must not start.
            TrailUnavailable, TrailDamaged: no planned change is possible.
            StoreError, SealingKeyError, SelfTestFailed: when the ring cannot be loaded.
        """
        for _ in range(MAX_ATTEMPTS):
            with contextlib.suppress(_Overtaken):
                opened = await self._open()
                survey = await self._surveyed(opened)
                return opened.standing(survey)
        raise LedgerBusy(workspace=self._workspace)

    async def check_candidate(self, ring: KeyRing, revision: int) -> Standing:
        """
        Hold a ring that is not stored, a backup say, against the trail.

        Raises:
            RingOlderThanTrail, TrailUnavailable, TrailDamaged: as `check` does.
        """
        opened = Opened(ring=ring, revision=revision, state=read_state(ring), end=await self._trail.end())
        survey = await self._survey(opened)
        survey.finish()
        return opened.standing(survey)

    async def page(self, *, before: int | None = None, limit: int = 50) -> Page:
        """
        Read some records, the latest first; see `read_page`.
        """
        ring, _ = await self._store.load()
        return await read_page(self._trail, read_state(ring).tip.head, before=before, limit=limit)

    async def verify(self, expected: Iterable[Head] = ()) -> Findings:
        """
        Verify the whole trail against the ring and against heads that were noted at any time.

        Raises:
            TrailUnavailable: when the trail cannot be read.
            TrailDamaged: when the ring says nothing about it that can be read.
            StoreError, SealingKeyError, SelfTestFailed: when the ring cannot be loaded.
        """
        ring, _ = await self._store.load()
        verification = TrailVerification(
            self._workspace, sealing=self._sealing, ring_head=read_state(ring).tip.head, expected=expected
        )
        async for line in self._trail.lines():
            verification.feed(line)
        return verification.finish()

    def customer_hash(self, sub: str) -> str:
        """
        Return what stands for a customer in records and logs.
        """
        return customer_hash(self._sealing.current, self._workspace, sub)

    async def _change(self, decide: Decide[_T], *, emergency: bool) -> Done[_T]:
        hoped: Done[_T] | None = None
        for _ in range(MAX_ATTEMPTS):
            try:
                async with self._trail.exclusive(wait_s=_EMERGENCY_WAIT_S if emergency else _WAIT_S):
                    opened = await self._open()
                    if hoped and await was_carried_out(self._trail, hoped.head, opened.state.tip.head):
                        return hoped
                    return await self._decide(decide, opened)
            except _Overtaken as overtaken:
                hoped = overtaken.done or hoped
            except AuditError as error:
                if not emergency:
                    raise
                return await self._emergency.change(decide, error)
        raise LedgerBusy(workspace=self._workspace)

    async def _open(self) -> Opened:
        ring, revision = await self._store.load()
        return Opened(ring=ring, revision=revision, state=read_state(ring), end=await self._trail.end())

    async def _survey(self, opened: Opened) -> Survey:
        tip = opened.state.tip
        survey = Survey(tip, workspace=self._workspace, revision=opened.revision, end=opened.end, sealing=self._sealing)
        return await survey_trail(self._trail, survey, max(1, tip.head.seq))

    async def _surveyed(self, opened: Opened) -> Survey:
        """
        Survey the trail, and start again when what looks wrong is only that the ring was changed meanwhile.
        """
        survey = await self._survey(opened)
        try:
            survey.finish()
        except AuditError:
            if (await self._store.load())[1] != opened.revision:
                raise _Overtaken from None
            raise
        return survey

    async def _decide(self, decide: Decide[_T], opened: Opened) -> Done[_T]:
        survey = await self._surveyed(opened)
        change = decide(opened.ring, int(self._now()))
        if not change.entries:
            return Done(result=change.result, revision=opened.revision, head=opened.state.tip.head)
        if survey.seen:
            self._report("audit_unfinished", workspace=self._workspace, revision=opened.revision)
        return await self._carry_out(change, opened, survey.tip, follows=opened.state.tip.head.seq)

    async def _carry_out(
        self, change: Change[_T], opened: Opened, tip: Tip, *, follows: int, anew: bool = False
    ) -> Done[_T]:
        own = tuple((entry, opened.revision + 1) for entry in change.entries)
        owed = owed_entries(opened, await self._spilled_here(opened.state), now=int(self._now()))
        # A record that begins the trail anew stands before what the trail is owed.
        entries = (*own, *owed) if anew else (*owed, *own)
        try:
            batch = compose(tip, entries, workspace=self._workspace, follows=follows, sealing=self._sealing, anew=anew)
            ring = ring_with_state(change.ring, TrailState(tip=batch.tip))
        except ValueError as error:
            raise TrailUnavailable(where=self._trail.where, problem=f"there is no room ({error})") from error
        done = Done(result=change.result, revision=opened.revision + 1, head=batch.tip.head, records=batch.records)
        try:
            await self._trail.append(batch.records[0].seq, batch.lines)
            await self._store.save(ring, expect=opened.revision)
        except PlaceTaken:
            raise _Overtaken from None
        except RevisionConflict:
            raise _Overtaken(done) from None
        await self._confirm(batch.tip)
        return done

    async def _spilled_here(self, state: TrailState) -> dict[str, tuple[Entry, ...]]:
        try:
            return await self._spill.find([each.link for each in state.spilled])
        except StoreError as error:
            self._report("audit_spill_failed", workspace=self._workspace, problem=error.code)
            return {}

    async def _confirm(self, tip: Tip) -> None:
        try:
            await self._trail.confirm(tip.head.seq, confirmation(tip))
        except TrailUnavailable as error:
            # The change is in force and on record; until the next one, a ring put back by one revision would not be noticed.
            self._report("audit_confirmation_failed", workspace=self._workspace, problem=error.code)

    async def _restart(self, actor: Actor, reason: str) -> Done[None]:
        for _ in range(MAX_ATTEMPTS):
            with contextlib.suppress(_Overtaken):
                async with self._trail.exclusive(wait_s=_WAIT_S):
                    return await self._begin_anew(actor, reason)
        raise LedgerBusy(workspace=self._workspace)

    async def _begin_anew(self, actor: Actor, reason: str) -> Done[None]:
        ring, revision = await self._store.load()
        opened = Opened(ring=ring, revision=revision, state=state_or_start(ring), end=await self._trail.end())
        survey = await self._survey(opened)
        # What was written for a ring that is lost was carried out then; the record says what became of it.
        follows = survey.tip.head.seq if survey.recorded else opened.state.tip.head.seq
        entry = restart_entry(survey, opened, actor=actor, reason=reason, now=int(self._now()))
        change = Change(ring=ring, entries=(entry,), result=None)
        tip = restart_tip(survey, opened, where=self._trail.where)
        done = await self._carry_out(change, opened, tip, follows=follows, anew=True)
        self._report("trail_restarted", workspace=self._workspace, revision=done.revision)
        return done
