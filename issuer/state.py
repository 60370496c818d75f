"""
What the issuer remembers between requests, each kind behind an interface of its own; in memory for a single process.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from keys import SealingKeys
from verifier import MemoryReplayStore

from .admin_idempotency import AdminRecords, MemoryAdminRecords
from .fingerprints import Fingerprints
from .idempotency import IdempotencyRecords, MemoryIdempotencyRecords
from .limits import RequestLimits
from .reports import Report
from .sign_ins import SignInRecords
from .sign_ins_memory import MemorySignIns

__all__ = ["AssertionIds", "IssuerState", "MemoryAssertionIds", "StatePlace", "memory_state"]


class AssertionIds(Protocol):
    """
    Where it is remembered which assertions of clients and admins were used (RFC 7523 section 3 item 7).
    """

    def use(self, issuer: str, client_id: str, jti: str, expires_at: int, issued_at: float) -> Awaitable[bool]:
        """
        Record an identifier until *expires_at* (epoch seconds) and tell whether that was its first use, atomically.

        *issued_at* is the earliest instant at which it can have been used; a store that may have forgotten something since cannot
        tell. Any exception means that it cannot be told; then the request is refused.
        """


class MemoryAssertionIds:
    """
    Used assertions of one process, bounded for each client: one that asks too much takes no room of the others.
    """

    def __init__(self, now: Callable[[], float], max_per_client: int = 100_000) -> None:
        """
        Hold at most *max_per_client* live identifiers of one client of one issuer; *now* is the wall clock, in epoch seconds.
        """
        self._now = now
        self._max_per_client = max_per_client
        # No more of them than clients are configured: nobody gets here who has not proved to be one.
        self._stores: dict[tuple[str, str], MemoryReplayStore] = {}

    async def use(self, issuer: str, client_id: str, jti: str, expires_at: int, issued_at: float) -> bool:  # noqa: ARG002
        """
        Record an identifier and tell whether that was its first use.

        What was used before this process started is not known to it: it is the only one, and its memory its life.

        Raises:
            ReplayStoreUnavailable: when that cannot be told.
        """
        store = self._stores.get((issuer, client_id))
        if store is None:
            store = self._stores[issuer, client_id] = MemoryReplayStore(self._max_per_client, self._now)
        return store.use(jti, expires_at)


class StatePlace(Protocol):
    """
    Where a state lies that is not in memory.
    """

    async def open(self, report: Report) -> None:
        """
        See to it that it can be trusted; what is doubtful is reported.
        """
        ...

    async def aclose(self) -> None:
        """
        End what is open in this event loop.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerState:
    """
    Everything that requests of all workspaces leave behind for later ones.

    `id_tokens` remembers what identity providers signed, apart from assertions. `fingerprints` makes the contents that
    `idempotency` compares. `place` is where all of it lies, None for the memory of this process.
    """

    assertion_ids: AssertionIds
    id_tokens: AssertionIds
    fingerprints: Fingerprints
    idempotency: IdempotencyRecords
    admin_records: AdminRecords
    limits: RequestLimits
    sign_ins: SignInRecords
    place: StatePlace | None = None

    async def open(self, report: Report) -> None:
        """
        See to it that what remembers can be trusted with that, where it lies outside of this process.

        Raises:
            KeysError: when it cannot, or does not answer.
        """
        if self.place is not None:
            await self.place.open(report)

    async def aclose(self) -> None:
        """
        End what is open in this event loop; it is opened again when it is needed.
        """
        if self.place is not None:
            await self.place.aclose()


def memory_state(now: Callable[[], float], sealing: SealingKeys, limits: RequestLimits) -> IssuerState:
    """
    Build the state of a single process, in which *limits* count too; it is gone when the process ends.
    """
    return IssuerState(
        assertion_ids=MemoryAssertionIds(now),
        id_tokens=MemoryAssertionIds(now),
        fingerprints=Fingerprints(sealing, "idempotency"),
        idempotency=MemoryIdempotencyRecords(),
        admin_records=MemoryAdminRecords(),
        limits=limits,
        sign_ins=MemorySignIns(sealing),
    )
