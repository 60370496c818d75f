"""
Once means once: what a replay store is, and the one for a single process (D4).

A store answers exactly one question, "is this the first use of this identifier?". `True` says first use, `False` says replayed;
whatever else happens, an exception included, means that it cannot tell, and then nothing is accepted.
"""

import time
from collections.abc import Awaitable, Callable
from heapq import heappop, heappush
from typing import Protocol, runtime_checkable

from .process_lock import ProcessLock

__all__ = [
    "AsyncReplayStore",
    "MemoryReplayStore",
    "ReplayStore",
    "ReplayStoreUnavailable",
    "ScopedReplayStore",
    "SupportsScope",
]

_LEAST_RETENTION_S = 60


class ReplayStoreUnavailable(Exception):
    """
    Raised by a store that cannot tell whether an identifier was used before.
    """


class ReplayStore(Protocol):
    """
    Anything that can tell a first use from a second, atomically.
    """

    def use(self, jti: str, expires_at: int, /) -> bool:
        """
        Record *jti* until *expires_at* (epoch seconds) and tell whether that was its first use.
        """


class AsyncReplayStore(Protocol):
    """
    A replay store whose answer has to be awaited.
    """

    def use(self, jti: str, expires_at: int, /) -> Awaitable[bool]:
        """
        Record *jti* until *expires_at* (epoch seconds) and tell whether that was its first use.
        """


class ScopedReplayStore(Protocol):
    """
    A store's view for one issuer and one audience, which also learns when a token was issued.
    """

    def use(self, jti: str, expires_at: int, issued_at: float, /) -> bool | Awaitable[bool]:
        """
        Record *jti* within this scope and tell whether that was its first use.
        """


@runtime_checkable
class SupportsScope(Protocol):
    """
    A store that keeps issuers and audiences apart, as the built-in ones do.
    """

    def scoped(self, issuer: str, audience: str) -> ScopedReplayStore:
        """
        Return the view for one issuer and one audience.
        """


class MemoryReplayStore:
    """
    A replay store for one process; safe between its threads, unknown to every other process.

    Records are dropped only once they have expired. When *max_entries* live records are held it refuses instead of forgetting,
    and it refuses what it may have forgotten because a clock went backwards.
    """

    def __init__(self, max_entries: int = 100_000, now: Callable[[], float] = time.time) -> None:
        """
        Hold at most *max_entries* live records (about 300 octets each); *now* is the wall clock, in epoch seconds.
        """
        if type(max_entries) is not int or max_entries < 1:
            raise ValueError("max_entries is a positive int")
        self._max_entries = max_entries
        self._now = now
        self._lock = ProcessLock()
        self._live: set[tuple[str, str, str]] = set()
        self._queue: list[tuple[float, int, tuple[str, str, str]]] = []
        self._forgotten_until = 0

    def __len__(self) -> int:
        return len(self._live)

    def use(self, jti: str, expires_at: int) -> bool:
        """
        Record *jti* until *expires_at* (epoch seconds) and tell whether that was its first use.

        Raises:
            ReplayStoreUnavailable: when the store is full, or may have forgotten this identifier already.
        """
        return self._claim(("", "", jti), expires_at)

    def scoped(self, issuer: str, audience: str) -> "_Scoped":
        """
        Return the view for one issuer and one audience; equal identifiers in two scopes are two identifiers.
        """
        return _Scoped(self, issuer, audience)

    def _claim(self, key: tuple[str, str, str], expires_at: int) -> bool:
        now = self._now()
        with self._lock():
            self._drop_expired(now)
            if key in self._live:
                return False
            if expires_at <= self._forgotten_until:
                raise ReplayStoreUnavailable("the clock went backwards; this identifier may have been forgotten")
            if len(self._live) >= self._max_entries:
                raise ReplayStoreUnavailable("the store is full of live records; raise max_entries")
            self._live.add(key)
            # A clock that disagrees with the caller's must not make a record vanish at once.
            heappush(self._queue, (max(expires_at, now + _LEAST_RETENTION_S), expires_at, key))
            return True

    def _drop_expired(self, now: float) -> None:
        queue = self._queue
        while queue and queue[0][0] <= now:
            _, expires_at, key = heappop(queue)
            self._live.discard(key)
            self._forgotten_until = max(self._forgotten_until, expires_at)


class _Scoped:
    """
    One issuer's and one audience's share of a `MemoryReplayStore`.
    """

    __slots__ = ("_audience", "_issuer", "_store")

    def __init__(self, store: MemoryReplayStore, issuer: str, audience: str) -> None:
        self._store = store
        self._issuer = issuer
        self._audience = audience

    def use(self, jti: str, expires_at: int, _issued_at: float) -> bool:
        """
        Record *jti* within this scope and tell whether that was its first use.
        """
        return self._store._claim((self._issuer, self._audience, jti), expires_at)  # noqa: SLF001 -- same module
