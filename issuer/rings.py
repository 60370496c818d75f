"""
The key ring of a workspace as a running service sees it: read at the start, looked at twice a second, trusted for 15 seconds.

A `LiveRing` answers from memory. What it answers with was confirmed by its store within the ring lease ("Keys" in the design), by
the monotonic clock: a process that was paused, or whose ring can no longer be read, neither mints nor serves the key set.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable
from typing import Final, NoReturn, Protocol, Self

from keys import KeyRing, KeysError, KeyTimes, alarm

from .audit import Head
from .reports import Report
from .ring_succession import RingReplaced, is_successor
from .ring_view import AdoptedRing, RingStatus, RingView, self_test

__all__ = [
    "LEASE_S",
    "NO_KEY",
    "POLL_S",
    "LiveRing",
    "RingReplaced",
    "RingStatus",
    "RingStore",
    "RingUnavailable",
    "RingView",
]

LEASE_S: Final = KeyTimes().lease_s
"""Seconds for which a view is trusted after its store last confirmed it; `G` in the waiting times of the keys."""

POLL_S: Final = 0.5
"""Seconds between two looks at the store, so that a change is noticed within one."""

NO_KEY: Final = "no_key_may_sign"
"""The problem of a ring whose every key is among those that were revoked beside it."""


class RingUnavailable(Exception):
    """
    Raised when nothing may be signed or published: the store has not confirmed the ring within the lease.
    """

    def __init__(self, workspace: str) -> None:
        """
        Name the workspace.
        """
        super().__init__(f"The key ring of workspace {workspace!r} was not confirmed in time.")
        self.workspace = workspace


class RingStore(Protocol):
    """
    What a ring is read from.
    """

    async def load(self) -> tuple[KeyRing, int]:
        """
        Read the ring and its revision.
        """
        ...

    async def stamp(self) -> object:
        """
        Return something cheap that differs whenever the stored ring may have changed, or None when it cannot tell.
        """
        ...


class LiveRing:
    """
    The ring of one workspace in a running service; `open` makes one.

    All but `open`, `poll` and `watch` answers from memory. To be used from one event loop at a time.

    It reports `ring_adopted`, and once for each change `ring_poll_failed` and `ring_poll_recovered`.
    """

    __slots__ = (
        "_adopted",
        "_confirmed_at",
        "_failures",
        "_lease_s",
        "_looking",
        "_monotonic",
        "_now",
        "_problem",
        "_report",
        "_revoked",
        "_stamp",
        "_store",
        "_view",
        "_wake",
        "workspace",
    )

    def __init__(
        self,
        workspace: str,
        store: RingStore,
        *,
        now: Callable[[], float],
        monotonic: Callable[[], float],
        report: Report,
        lease_s: int = LEASE_S,
        revoked: frozenset[str] = frozenset(),
    ) -> None:
        """
        Keep the parts; nothing is usable before `open`.
        """
        self.workspace = workspace
        self._store = store
        self._now = now
        self._monotonic = monotonic
        self._report = report
        self._lease_s = lease_s
        self._revoked = revoked
        self._confirmed_at = -math.inf
        self._failures = 0
        self._problem: str | None = None
        self._stamp: object = None
        self._looking = asyncio.Lock()
        self._wake: asyncio.Event | None = None
        self._adopted: AdoptedRing
        self._view: RingView | None

    @classmethod
    async def open(
        cls,
        workspace: str,
        store: RingStore,
        *,
        now: Callable[[], float],
        monotonic: Callable[[], float],
        report: Report,
        lease_s: int = LEASE_S,
        revoked: frozenset[str] = frozenset(),
    ) -> Self:
        """
        Read the ring for the first time; *revoked* are keys that neither sign nor are published whatever it says.

        Raises:
            SelfTestFailed: when the active key does not sign for what partners would read in the key set.
            Exception: whatever the store raises; the service must not start then.
        """
        ring = cls(workspace, store, now=now, monotonic=monotonic, report=report, lease_s=lease_s, revoked=revoked)
        await ring._look(None)
        return ring

    def current(self, now: float) -> RingView:
        """
        Return the view that holds at *now* (epoch seconds).

        Raises:
            RingUnavailable: when the store has not confirmed the ring within the lease, or none of its keys may sign.
        """
        view = self._view
        if view is not None and not view.valid_from <= now < view.valid_until:
            view = self._view = self._adopted.view(now)
        if view is None or not self._is_leased():
            raise RingUnavailable(self.workspace)
        return view

    def confirm(self, view: RingView) -> bool:
        """
        Tell, after signing, whether the signature may leave: the lease still runs and the key of *view* is still the active one.
        """
        signer = self._adopted.signer
        return self._is_leased() and signer is not None and view.kid == signer.kid

    async def poll(self) -> None:
        """
        Look at the store once and adopt what changed; a failure is noted and never raised, so that the next look can succeed.

        A ring that fails its self-test, or is older than the one in use, is a failure too: the lease then runs out.
        """
        try:
            # One at a time: what an earlier look found late must not take the place of what a later one adopted.
            async with self._looking:
                await self._look(self._adopted)
        except Exception as error:  # noqa: BLE001 -- a store may fail in any way, and the loop must outlive it
            self._failures += 1
            self._note(_code(error))
        else:
            self._note(None)

    async def watch(self, interval_s: float = POLL_S) -> NoReturn:
        """
        Look at the store every *interval_s* seconds until cancelled, and earlier after `wake`.
        """
        woken = self._wake = asyncio.Event()
        while True:
            woken.clear()
            await self.poll()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval_s):
                    await woken.wait()

    def wake(self) -> None:
        """
        Have the store looked at now instead of at the end of the interval; nothing depends on whether anybody calls this.
        """
        if self._wake is not None:
            self._wake.set()

    async def withdraw(self, revoked: frozenset[str]) -> None:
        """
        Neither sign with those keys nor publish them from now on, whatever the ring says and whether or not its store answers.

        They take the place of those that were named before. When none is left to sign, nothing is signed or published.

        Raises:
            SelfTestFailed: when the key that would sign instead does not work; then nothing is signed or published either.
        """
        async with self._looking:
            self._revoked, self._view = revoked, None
            await self._adopt(AdoptedRing.of(self._adopted.ring, self._adopted.revision, revoked))

    @property
    def ring(self) -> KeyRing:
        """
        The ring in use.
        """
        return self._adopted.ring

    @property
    def head(self) -> Head | None:
        """
        The end of the audit trail as the ring in use has it, None when it says nothing about it that can be read.
        """
        return self._adopted.head

    def status(self, now: float) -> RingStatus:
        """
        Return what operations may know at *now* (epoch seconds).
        """
        active = self._adopted.ring.active
        due = active.rotation_due_at or 0
        return RingStatus(
            workspace=self.workspace,
            usable=self._is_leased() and self._view is not None,
            view_age_s=self._monotonic() - self._confirmed_at,
            active_age_s=max(0, int(now) - (active.activated_at or 0)),
            next_due=due,
            overdue=now >= due,
            alarm=alarm(self._adopted.ring, now),
            keys=self._adopted.by_state(int(now)),
            failures=self._failures,
            problem=self._problem or (None if self._view else NO_KEY),
        )

    def _is_leased(self) -> bool:
        return self._monotonic() - self._confirmed_at <= self._lease_s

    async def _look(self, present: AdoptedRing | None) -> None:
        # Counted from before the question: whatever happens while the store answers makes the view older, not younger.
        asked_at = self._monotonic()
        stamp = await self._store.stamp()
        # No stamp says nothing: only reading can tell what is wrong then.
        if present is None or stamp is None or stamp != self._stamp:
            ring, revision = await self._store.load()
            if is_successor(ring, revision, present):
                await self._adopt(AdoptedRing.of(ring, revision, self._revoked))
            self._stamp = stamp
        self._confirmed_at = asked_at

    async def _adopt(self, adopted: AdoptedRing) -> None:
        view = adopted.view(self._now())
        if view is not None:
            await self_test(view)
        self._adopted, self._view = adopted, view
        kid = None if view is None else view.kid
        self._report("ring_adopted", workspace=self.workspace, kid=kid, revision=adopted.revision)

    def _note(self, problem: str | None) -> None:
        if problem == self._problem:
            return
        self._problem = problem
        event = "ring_poll_recovered" if problem is None else "ring_poll_failed"
        self._report(event, workspace=self.workspace, problem=problem)


def _code(error: Exception) -> str:
    return error.code if isinstance(error, KeysError) else type(error).__name__
