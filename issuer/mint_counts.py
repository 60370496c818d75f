"""
What was minted under each key in the last minutes, counted in memory: the first thing asked for when a key has leaked.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

__all__ = ["WINDOW_MINUTES", "MintCount", "MintCounts", "Minted"]

WINDOW_MINUTES: Final = 10
"""How many whole minutes are remembered beside the one that is going on; no token lives longer than one."""

_MINUTE_S: Final = 60


@dataclass(frozen=True, slots=True)
class MintCount:
    """
    How many tokens were minted for one audience, with one action or, for reads, with none.
    """

    audience: str
    action: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Minted:
    """
    What was minted since an instant (epoch seconds), by this process alone.
    """

    since: int
    counts: tuple[MintCount, ...]

    @property
    def total(self) -> int:
        """
        How many tokens that were.
        """
        return sum(each.count for each in self.counts)


class MintCounts:
    """
    Counts tokens by kid, minute, audience and action. All of these are configured or our own, so memory is bounded.
    """

    __slots__ = ("_began_at", "_minutes")

    def __init__(self, began_at: float) -> None:
        """
        Begin with none at that instant (epoch seconds).
        """
        self._began_at = int(began_at)
        self._minutes: dict[int, Counter[tuple[str, str, str | None]]] = {}

    def add(self, kid: str, audience: str, action: str | None, now: float) -> None:
        """
        Count one token, minted at *now*.
        """
        minute = int(now) // _MINUTE_S
        counter = self._minutes.get(minute)
        if counter is None:
            counter = self._minutes[minute] = Counter()
            # In the order of their coming: a clock that leaps about does not make them more.
            while len(self._minutes) > WINDOW_MINUTES + 1:
                del self._minutes[next(iter(self._minutes))]
        counter[kid, audience, action] += 1

    def under(self, kids: Collection[str], now: float) -> Minted:
        """
        Return what was minted under these keys in the last minutes before *now*.
        """
        first = int(now) // _MINUTE_S - WINDOW_MINUTES
        found: Counter[tuple[str, str | None]] = Counter()
        for minute, counter in self._minutes.items():
            if minute >= first:
                for (kid, audience, action), count in counter.items():
                    if kid in kids:
                        found[audience, action] += count
        counts = (MintCount(audience, action, count) for (audience, action), count in found.items())
        ordered = sorted(counts, key=lambda each: (each.audience, each.action or ""))
        return Minted(since=max(self._began_at, first * _MINUTE_S), counts=tuple(ordered))
