"""
One admin call, however often it is sent: the records behind `Idempotency-Key` (D12).

A record holds the answer that was given, for 24 hours. It belongs to one workspace, admin, method and path: nobody hears the
answer to somebody else's call. Calls that were refused changed nothing and are not remembered; the same key then asks again.
A call that never ends, because its instance died, stands in the way for two minutes.
"""

import secrets
from collections import defaultdict
from collections.abc import Awaitable
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final, Literal, NamedTuple, Protocol

__all__ = [
    "MAX_ANSWER_OCTETS",
    "MAX_RECORDS",
    "RETENTION_S",
    "RUNNING_S",
    "AdminRecords",
    "AdminScope",
    "Claim",
    "MemoryAdminRecords",
    "StoredAnswer",
    "Ticket",
    "check_size",
    "new_ticket",
]

RETENTION_S: Final = 24 * 3600
"""How long an answer is kept, in seconds."""

RUNNING_S: Final = 120
"""How long a call counts as going on, in seconds."""

MAX_RECORDS: Final = 1000
"""Most records of one admin of one workspace at a time."""

MAX_ANSWER_OCTETS: Final = 16 * 1024
"""Longest body that is kept, several times that of any answer."""


class AdminScope(NamedTuple):
    """
    In what a key means one thing.
    """

    workspace: str
    admin: str
    method: str
    path: str
    key: str


class Ticket(NamedTuple):
    """
    A call that may go ahead. Its id is its own: after a call that took too long, another one has its place.
    """

    scope: AdminScope
    id: str


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """
    What was answered.
    """

    status: int
    body: bytes


Claim = StoredAnswer | Ticket | Literal["in_progress", "conflict", "full"]
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

    def finish(self, ticket: Ticket, answer: StoredAnswer) -> Awaitable[None]:
        """
        Keep the answer of a call that was claimed, unless its place was lost.

        Raises:
            ValueError: when the answer is longer than is kept.
        """

    def release(self, ticket: Ticket) -> Awaitable[None]:
        """
        Forget a call that was claimed and changed nothing.
        """


def new_ticket(scope: AdminScope) -> Ticket:
    """
    Draw a ticket for a call.
    """
    return Ticket(scope, secrets.token_urlsafe(8))


def check_size(answer: StoredAnswer) -> None:
    """
    Let an answer pass that is short enough to be kept.

    Raises:
        ValueError: when it is not.
    """
    if len(answer.body) > MAX_ANSWER_OCTETS:
        raise ValueError("the answer is too long to be kept")


@dataclass(slots=True)
class _Record:
    content: bytes
    ticket: Ticket
    taken_at: float
    answer: StoredAnswer | None = None

    def is_over(self, now: float) -> bool:
        return now >= self.taken_at + (RUNNING_S if self.answer is None else RETENTION_S)


class MemoryAdminRecords:
    """
    Records for one process; they are gone when it ends.
    """

    def __init__(self, max_records: int = MAX_RECORDS) -> None:
        """
        Hold at most *max_records* of one admin of one workspace.
        """
        self._max_records = max_records
        # By workspace and admin, of whom there are no more than are configured.
        self._records: defaultdict[tuple[str, str], dict[AdminScope, _Record]] = defaultdict(dict)

    async def claim(self, scope: AdminScope, content: bytes, now: float) -> Claim:
        """
        Find or take; nothing is awaited in here, so it is one step to every other task.
        """
        live = {each: record for each, record in self._of(scope).items() if not record.is_over(now)}
        self._records[scope[:2]] = live
        record = live.get(scope)
        if record is not None:
            return (record.answer or "in_progress") if compare_digest(record.content, content) else "conflict"
        if len(live) >= self._max_records:
            return "full"
        ticket = new_ticket(scope)
        live[scope] = _Record(content, ticket, now)
        return ticket

    async def finish(self, ticket: Ticket, answer: StoredAnswer) -> None:
        """
        Keep an answer.
        """
        check_size(answer)
        record = self._of(ticket.scope).get(ticket.scope)
        if record is not None and record.ticket == ticket:
            record.answer = answer

    async def release(self, ticket: Ticket) -> None:
        """
        Forget a call.
        """
        record = self._of(ticket.scope).get(ticket.scope)
        if record is not None and record.ticket == ticket:
            del self._of(ticket.scope)[ticket.scope]

    def _of(self, scope: AdminScope) -> dict[AdminScope, _Record]:
        return self._records[scope[:2]]
