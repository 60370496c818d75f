"""
The timer of planned rotations: looks every few seconds, asks two clocks, and has one rotation done however many instances look.

Whether a rotation is due is decided by `keys.due`. Who is second learns from the compare-and-set of the store that somebody was
first, which is no failure. A rotation that is due and does not happen is one: it shows in log, readiness and metrics.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn, Protocol

from keys import ActiveKeyMismatch, KeyRing, KeysError, KeyTimes, RevisionConflict, alarm, due

from .reports import Report

__all__ = [
    "CLOCK_AHEAD",
    "INTERVAL_S",
    "Clock",
    "Rotate",
    "RotationSchedule",
    "ScheduledRing",
    "StoreClock",
    "steady_clock",
]

INTERVAL_S: Final = 5.0
"""Seconds between two looks; a rotation is due for days."""

CLOCK_AHEAD: Final = "clock_ahead"
"""The problem of an instance whose clock is further ahead of the store's than clocks may differ."""

_SKEW_S: Final = KeyTimes().skew_s

Clock = Callable[[], float]
"""The wall clock of this process, in epoch seconds."""

StoreClock = Callable[[], Awaitable[float]]
"""Asks for the time of the store, in epoch seconds."""


class Rotate(Protocol):
    """
    Does a planned rotation, with its record in the audit trail.
    """

    def __call__(self, workspace: str, expected_active: str, /) -> Awaitable[object]:
        """
        Rotate the keys of *workspace* if *expected_active* is still the active one.

        Raises:
            ActiveKeyMismatch, RevisionConflict: when somebody else was first.
            Exception: when it is not possible.
        """
        ...


class ScheduledRing(Protocol):
    """
    The ring of one workspace in a running service: a `LiveRing`.
    """

    @property
    def workspace(self) -> str:
        """
        The workspace.
        """
        ...

    @property
    def ring(self) -> KeyRing:
        """
        The ring in use.
        """
        ...

    async def poll(self) -> None:
        """
        Look at the store; never raises.
        """
        ...


class RotationSchedule:
    """
    The schedule of one workspace. To be used from one event loop at a time.

    It reports once for each change: `rotation_failed`, `rotation_recovered`, and `key_age_alarm` where a key signs for too long.
    """

    __slots__ = ("_alarmed", "_now", "_problem", "_report", "_ring", "_rotate", "_store_now")

    def __init__(
        self, ring: ScheduledRing, *, rotate: Rotate, now: Clock, store_now: StoreClock, report: Report
    ) -> None:
        """
        Take the parts; nothing is done before `look`.
        """
        self._ring = ring
        self._rotate = rotate
        self._now = now
        self._store_now = store_now
        self._report = report
        self._problem: str | None = None
        self._alarmed: str | None = None

    @property
    def problem(self) -> str | None:
        """
        Why a rotation that is due did not happen at the last look, as a code; None when there is no such rotation.
        """
        return self._problem

    async def look(self) -> None:
        """
        Have the rotation done that is due, if there is one; a failure is noted and never raised.
        """
        self._look_at_age()
        try:
            self._note(await self._rotate_when_due())
        except (ActiveKeyMismatch, RevisionConflict):
            self._note(None)
        except Exception as error:  # noqa: BLE001 -- a store may fail in any way, and the timer must outlive it
            self._note(error.code if isinstance(error, KeysError) else type(error).__name__)

    async def watch(self, interval_s: float = INTERVAL_S) -> NoReturn:
        """
        Look every *interval_s* seconds until cancelled.
        """
        while True:
            await self.look()
            await asyncio.sleep(interval_s)

    async def _rotate_when_due(self) -> str | None:
        now = self._now()
        # Nothing is asked of the store while our own clock says that there is time.
        if due(self._ring.ring, now, now) is None:
            return None
        store_now = await self._store_now()
        if due(self._ring.ring, now, store_now) is None:
            return CLOCK_AHEAD if now - store_now > _SKEW_S else None
        # Another instance may have rotated since the ring was looked at.
        await self._ring.poll()
        found = due(self._ring.ring, now, store_now)
        if found is not None:
            await self._rotate(self._ring.workspace, found.kid)
        return None

    def _look_at_age(self) -> None:
        ring = self._ring.ring
        alarmed = ring.active.kid if alarm(ring, self._now()) else None
        if alarmed is not None and alarmed != self._alarmed:
            self._report("key_age_alarm", workspace=self._ring.workspace, kid=alarmed, since=ring.active.activated_at)
        self._alarmed = alarmed

    def _note(self, problem: str | None) -> None:
        if problem == self._problem:
            return
        self._problem = problem
        event = "rotation_recovered" if problem is None else "rotation_failed"
        self._report(event, workspace=self._ring.workspace, problem=problem)


def steady_clock(now: Clock, monotonic: Clock) -> StoreClock:
    """
    Make the time of a store that has none of its own: what *now* says at this moment, carried on by *monotonic*.

    It does not follow a wall clock that is set while the process runs, ahead or back, until a restart; so nothing rotates because
    of a clock that jumped.
    """
    started = now() - monotonic()

    async def store_now() -> float:
        return started + monotonic()

    return store_now
