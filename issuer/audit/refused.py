"""
Refused attempts, aggregated to one record a source and minute, so that a flood of them cannot flood the trail.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from .record import Actor, Entry

__all__ = ["MAX_KINDS", "MAX_SOURCES", "MAX_WAITING", "OTHERS", "Attempts"]

MAX_SOURCES: Final = 64
"""Sources a minute that get a record of their own; the rest share the one of `OTHERS`."""

MAX_KINDS: Final = 16
"""Kinds of attempt that a record lists; the rest are in its count alone."""

MAX_WAITING: Final = 256
"""Records that wait for a trail that cannot be written; the oldest beyond become one of `OTHERS`, with their counts."""

OTHERS: Final = "others"

_MINUTE_S: Final = 60
_MAX_MINUTES: Final = 10

_Kind = tuple[str, str, str]
_OTHER_KINDS: Final[_Kind] = ("", "", "")


class Attempts:
    """
    Counts refused attempts in memory, which is bounded whatever comes; no I/O, no clock of its own, no attempt uncounted.
    """

    __slots__ = ("_minutes", "_waiting")

    def __init__(self) -> None:
        """
        Begin with none.
        """
        self._minutes: dict[int, dict[str, Counter[_Kind]]] = {}
        self._waiting: list[Entry] = []

    def note(self, source: str, *, call: str, reason: str, name: str = "", now: float) -> None:
        """
        Count an attempt from an address.

        *call* and *reason* come from closed lists of the caller's own; *name* is that of a configured admin or empty, never a
        text that was sent.
        """
        sources = self._minutes.setdefault(int(now) // _MINUTE_S, {})
        kinds = sources.setdefault(source if source in sources or len(sources) < MAX_SOURCES else OTHERS, Counter())
        kind = (call, reason, name)
        kinds[kind if kind in kinds or len(kinds) < MAX_KINDS else _OTHER_KINDS] += 1
        if len(self._minutes) > _MAX_MINUTES:
            self.give_back(self.take(now))

    def take(self, now: float) -> tuple[Entry, ...]:
        """
        Remove and return what was counted in minutes that are over, oldest first; when it cannot be recorded, give it back.
        """
        over = sorted(minute for minute in self._minutes if minute < int(now) // _MINUTE_S)
        counted = [
            _entry(minute * _MINUTE_S, source, kinds)
            for minute in over
            for source, kinds in self._minutes.pop(minute).items()
        ]
        waiting, self._waiting = self._waiting, []
        return (*waiting, *counted)

    def give_back(self, entries: Iterable[Entry]) -> None:
        """
        Keep for the next time what `take` returned.
        """
        self._waiting.extend(entries)
        beyond = len(self._waiting) - MAX_WAITING
        if beyond > 0:
            folded = self._waiting[: beyond + 1]
            count = sum(entry.count for entry in folded)
            self._waiting[: beyond + 1] = [_entry(folded[-1].at, OTHERS, Counter({_OTHER_KINDS: count}))]


def _entry(at: int, source: str, kinds: Counter[_Kind]) -> Entry:
    listed = [
        {"call": call, "reason": reason, "name": name, "count": count}
        for (call, reason, name), count in kinds.most_common()
        if (call, reason, name) != _OTHER_KINDS
    ]
    return Entry(
        at=at,
        actor=Actor("service", "issuer", source),
        event="attempts_refused",
        outcome="refused",
        after={"kinds": listed},
        count=kinds.total(),
    )
