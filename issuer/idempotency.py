"""
One confirmed action, however often it is asked for: the records behind idempotency keys (D12, D18).

A repeated request gets a new token for the same action, never the same token again; the same key with anything else in it is
refused. `IdempotencyRecords` is what the token endpoint needs; the record in memory serves one process.
"""

from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass
from heapq import heappop, heappush
from hmac import compare_digest
from typing import Final, Literal, Protocol

from verifier.claims import CONFIRMATION_LIFETIME_S, ConfirmedBy

__all__ = [
    "MAX_MINTS",
    "MAX_RECORDS",
    "RETENTION_S",
    "Claimed",
    "IdempotencyRecords",
    "MemoryIdempotencyRecords",
    "NotClaimed",
    "RecordForgotten",
    "RecordKey",
]

MAX_MINTS: Final = 20
"""Most tokens for one key (D12)."""

MAX_RECORDS: Final = 10_000
"""Most live records of one client of one workspace."""

RETENTION_S: Final = CONFIRMATION_LIFETIME_S + 120
"""How long a record is kept from the instant of its confirmation, in seconds: its life, and what clocks may disagree by."""

RecordKey = tuple[str, str, str, str]
"""Workspace, client, action, idempotency key: the scope in which a key means one thing."""

NotClaimed = Literal["conflict", "exhausted", "full"]
"""Why a claim fails: something else stands under the key, it was minted for too often, or too many records are alive."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """
    A mint that may go ahead; `confirmed_at` is the instant that the record pins (epoch seconds).
    """

    confirmed_at: int


class RecordForgotten(Exception):
    """
    Raised when a record may have been dropped before its time, because the clock went backwards since.
    """


class IdempotencyRecords(Protocol):
    """
    Where it is remembered which action stands under which key.
    """

    def claim(
        self, key: RecordKey, contents: tuple[bytes, ...], confirmed_by: ConfirmedBy, confirmed_at: int, now: float
    ) -> Awaitable[Claimed | NotClaimed]:
        """
        Count one mint under *key*, atomically: create the record or find it holding the same.

        *contents* are keyed hashes of one thing, under every sealing key: the first is stored, and any of them is the same.

        With `none` the first claim's *confirmed_at* is the instant of all later ones; otherwise it has to be the same each time.

        Any exception means that it cannot be told; then nothing is minted.
        """


@dataclass(slots=True)
class _Record:
    content: bytes
    confirmed_by: ConfirmedBy
    confirmed_at: int
    mints: int


class MemoryIdempotencyRecords:
    """
    Records for one process, dropped once their confirmation is 1800 s old plus 120 s; bounded for each client.
    """

    def __init__(self, max_per_client: int = MAX_RECORDS) -> None:
        """
        Hold at most *max_per_client* live records of one client of one workspace.
        """
        self._max_per_client = max_per_client
        self._records: dict[RecordKey, _Record] = {}
        self._queue: list[tuple[int, RecordKey]] = []
        self._live: Counter[tuple[str, str]] = Counter()
        self._forgotten_until = 0

    async def claim(
        self, key: RecordKey, contents: tuple[bytes, ...], confirmed_by: ConfirmedBy, confirmed_at: int, now: float
    ) -> Claimed | NotClaimed:
        """
        Count one mint under *key*; nothing is awaited in here, so it is one step to every other task.

        Raises:
            RecordForgotten: when it cannot be told what stood under the key.
        """
        self._drop_old(now)
        record = self._records.get(key)
        if record is None:
            return self._create(key, _Record(contents[0], confirmed_by, confirmed_at, 1))
        pinned = confirmed_by == "none" or confirmed_at == record.confirmed_at
        is_same = any(compare_digest(content, record.content) for content in contents)
        if not (is_same and confirmed_by == record.confirmed_by and pinned):
            return "conflict"
        if record.mints >= MAX_MINTS:
            return "exhausted"
        record.mints += 1
        return Claimed(record.confirmed_at)

    def _create(self, key: RecordKey, record: _Record) -> Claimed | NotClaimed:
        client, ends_at = key[:2], record.confirmed_at + RETENTION_S
        if ends_at <= self._forgotten_until:
            raise RecordForgotten
        if self._live[client] >= self._max_per_client:
            return "full"
        self._records[key] = record
        self._live[client] += 1
        heappush(self._queue, (ends_at, key))
        return Claimed(record.confirmed_at)

    def _drop_old(self, now: float) -> None:
        while self._queue and self._queue[0][0] <= now:
            self._forgotten_until, key = heappop(self._queue)
            del self._records[key]
            self._live[key[:2]] -= 1
            if not self._live[key[:2]]:
                del self._live[key[:2]]
