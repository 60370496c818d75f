"""
One admin call, however often it is sent: the records behind `Idempotency-Key` (D12).

A record holds the answer that was given, for 24 hours. It belongs to one workspace, admin, method and path: nobody hears the
answer to somebody else's call. Calls that were refused changed nothing and are not remembered; the same key then asks again.
"""

from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final, Literal, NamedTuple, Protocol

__all__ = [
    "MAX_RECORDS",
    "RETENTION_S",
    "AdminRecords",
    "AdminScope",
    "Claim",
    "MemoryAdminRecords",
    "StoredAnswer",
]

RETENTION_S: Final = 24 * 3600
"""How long an answer is kept, in seconds."""

MAX_RECORDS: Final = 1000
"""Most records of one admin of one workspace at a time."""


class AdminScope(NamedTuple):
    """
    In what a key means one thing.
    """

    workspace: str
    admin: str
    method: str
    path: str
    key: str


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """
    What was answered.
    """

    status: int
    body: bytes


Claim = StoredAnswer | Literal["first", "in_progress", "conflict", "full"]
"""
What stands under a key: an answer; nothing yet, and it is the caller's now; the same call, which is going on; another call; or
nothing, and there is no room.
"""


class AdminRecords(Protocol):
    """
    Where it is remembered which calls were made. A store that fails raises; a call that needs a key is refused then.
    """

    def claim(self, scope: AdminScope, content: bytes, now: float) -> Awaitable[Claim]:
        """
        Find what stands under a key or take it, atomically; *content* is a hash of the body.
        """

    def finish(self, scope: AdminScope, answer: StoredAnswer) -> Awaitable[None]:
        """
        Keep the answer of a call that was claimed.
        """

    def release(self, scope: AdminScope) -> Awaitable[None]:
        """
        Forget a call that was claimed and changed nothing.
        """


@dataclass(slots=True)
class _Record:
    content: bytes
    expires_at: float
    answer: StoredAnswer | None = None


class MemoryAdminRecords:
    """
    Records for one process; they are gone when it ends.
    """

    def __init__(self, max_records: int = MAX_RECORDS) -> None:
        """
        Hold at most *max_records* of one admin of one workspace.
        """
        self._max_records = max_records
        # All are kept equally long, so the oldest come first.
        self._records: dict[AdminScope, _Record] = {}
        self._live: Counter[tuple[str, ...]] = Counter()

    async def claim(self, scope: AdminScope, content: bytes, now: float) -> Claim:
        """
        Find or take; nothing is awaited in here, so it is one step to every other task.
        """
        self._drop_old(now)
        record = self._records.get(scope)
        if record is not None:
            return (record.answer or "in_progress") if compare_digest(record.content, content) else "conflict"
        if self._live[scope[:2]] >= self._max_records:
            return "full"
        self._live[scope[:2]] += 1
        self._records[scope] = _Record(content, now + RETENTION_S)
        return "first"

    async def finish(self, scope: AdminScope, answer: StoredAnswer) -> None:
        """
        Keep an answer.
        """
        record = self._records.get(scope)
        # A call that took longer than its record is kept has none to put it into.
        if record is not None:
            record.answer = answer

    async def release(self, scope: AdminScope) -> None:
        """
        Forget a call.
        """
        if scope in self._records:
            self._drop(scope)

    def _drop_old(self, now: float) -> None:
        while self._records:
            oldest = next(iter(self._records))
            if self._records[oldest].expires_at > now:
                return
            self._drop(oldest)

    def _drop(self, scope: AdminScope) -> None:
        del self._records[scope]
        admin = scope[:2]
        self._live[admin] -= 1
        if not self._live[admin]:
            del self._live[admin]
