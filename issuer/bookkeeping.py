"""
What goes into the audit trail from time to time instead of at once: refused attempts, calls that only read, the configuration.

A flood of requests must not become a flood of records, and what only reads must not wait for the trail: both are counted in
memory and put on record once a minute. The head of the trail goes to the log as often, so that whoever keeps the log can tell a
trail that was rewritten.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, NoReturn, Protocol

from keys import KeysError

from .audit import Actor, Attempts, Entry, Head
from .ledger import Done
from .reports import Report

__all__ = ["INTERVAL_S", "Bookkeeping", "Notes"]

INTERVAL_S: Final = 60.0
"""Seconds between two entries into the trail."""

_MAX_CALLS: Final = 256
_MAX_WAITING: Final = 64
_MINUTE_S: Final = 60


class Notes(Protocol):
    """
    Where entries are put on record: a `Ledger`.
    """

    def note(self, *entries: Entry) -> Awaitable[Done[None]]:
        """
        Put entries on record.
        """
        ...


class Bookkeeping:
    """
    The books of one workspace, in memory and bounded. To be used from one event loop at a time.

    They report the head once a minute as `audit_head`, and once for each change `audit_note_failed` and `audit_note_recovered`.
    """

    __slots__ = ("_attempts", "_calls", "_head", "_notes", "_now", "_problem", "_report", "_waiting", "_workspace")

    def __init__(
        self,
        workspace: str,
        *,
        notes: Notes,
        head: Callable[[], Head | None],
        now: Callable[[], float],
        report: Report,
    ) -> None:
        """
        Take the parts; *head* tells the end of the trail, *now* the wall clock in epoch seconds.
        """
        self._workspace = workspace
        self._notes = notes
        self._head = head
        self._now = now
        self._report = report
        self._attempts = Attempts()
        self._calls: Counter[tuple[Actor, str]] = Counter()
        self._waiting: list[Entry] = []
        self._problem: str | None = None

    def refused(self, source: str, *, call: str, reason: str, admin: str | None) -> None:
        """
        Count an attempt that was refused; *admin* is a configured one or None.
        """
        self._attempts.note(source, call=call, reason=reason, name=admin or "", now=self._now())

    def called(self, actor: Actor, call: str) -> None:
        """
        Count a call that changed nothing.
        """
        # Beyond the bound, which nobody reaches who is not let in, calls count for nobody in particular.
        key = (actor, call) if (actor, call) in self._calls or len(self._calls) < _MAX_CALLS else (_OTHERS, "others")
        self._calls[key] += 1

    def add(self, entry: Entry) -> None:
        """
        Have an entry put on record with the next ones; the oldest of too many that wait are given up.
        """
        self._waiting = [*self._waiting, entry][-_MAX_WAITING:]

    async def enter(self, *, is_last: bool = False) -> None:
        """
        Put on record what has come together, refused attempts of the minute that is going on only with *is_last*.

        A failure is reported and never raised; what could not be recorded waits for the next time.
        """
        now = self._now()
        attempts = self._attempts.take(now + _MINUTE_S if is_last else now)
        calls, self._calls = self._calls, Counter()
        waiting, self._waiting = self._waiting, []
        entries = [*waiting, *_entries(calls, int(now)), *attempts]
        head = self._head()
        try:
            if entries:
                head = (await self._notes.note(*entries)).head
        except Exception as error:  # noqa: BLE001 -- a store may fail in any way, and the books must go on
            self._attempts.give_back(attempts)
            self._calls += calls
            self._waiting = [*waiting, *self._waiting][-_MAX_WAITING:]
            self._note(error.code if isinstance(error, KeysError) else type(error).__name__)
        else:
            self._note(None)
        self._report("audit_head", workspace=self._workspace, head=None if head is None else str(head))

    async def watch(self, interval_s: float = INTERVAL_S) -> NoReturn:
        """
        Enter at once and then every *interval_s* seconds until cancelled, and once more then.
        """
        try:
            while True:
                await self.enter()
                await asyncio.sleep(interval_s)
        finally:
            await self.enter(is_last=True)

    def _note(self, problem: str | None) -> None:
        if problem == self._problem:
            return
        self._problem = problem
        event = "audit_note_recovered" if problem is None else "audit_note_failed"
        self._report(event, workspace=self._workspace, problem=problem)


_OTHERS: Final = Actor("service", "others")


def _entries(calls: Counter[tuple[Actor, str]], now: int) -> Iterator[Entry]:
    for (actor, call), count in calls.items():
        yield Entry(at=now, actor=actor, event="admin_called", target=call, count=count)
