"""
The records of sign-ins of a single process; they are gone when it ends, and customers sign in again.

They are sealed here as they are in Redis: a copy of this memory without the ids tells of no customer.
"""

from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import Final, Literal

from keys import SealingKeys

from .sign_in_sealing import SignInSealing, handle_of, without_session
from .sign_ins import (
    CONVERSATION_MEMORY_S,
    LOGOUT_MEMORY_S,
    MAX_SIGN_INS,
    MAX_SIGN_INS_OF_CUSTOMER,
    SignIn,
    SignInEvent,
    SignInSummary,
    latest_confirmation,
    lifetime_s,
)

__all__ = ["MemorySignIns"]

_IDLE_DEADLINES: Final = 64


@dataclass(frozen=True, slots=True)
class _Record:
    sealed: bytes = field(repr=False)
    confirmed_after: int | None
    expires_at: int
    issued_at: int
    has_session: bool
    indexes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Conversation:
    """
    Who was the last one in a conversation, by a keyed hash, and what that means for confirmations.
    """

    customer: str
    confirmed_after: int | None
    remembered_until: int


class MemorySignIns:
    """
    Sign-ins of one process, bounded for each client; only what has expired or ended is dropped.

    Nothing is awaited in an operation, so each is one step to every other task.
    """

    def __init__(
        self,
        sealing: SealingKeys,
        *,
        max_per_client: int = MAX_SIGN_INS,
        max_per_customer: int = MAX_SIGN_INS_OF_CUSTOMER,
    ) -> None:
        """
        Seal with *sealing*; hold so many live sign-ins of one client of one workspace, and of one customer there.
        """
        self._sealing = sealing
        self._limits = (max_per_client, max_per_customer)
        # No more of them than clients are configured: nobody gets here who has not proved to be one.
        self._clients: dict[tuple[str, str], _Client] = {}

    async def add(
        self, workspace: str, event: SignInEvent, now: float
    ) -> tuple[str, SignIn] | Literal["full", "logged_out"]:
        """
        Record a sign-in; see `SignInRecords.add`.
        """
        lifetime_s(event, now)
        client = self._client(workspace, event.client_id)
        client.drop_old(now)
        return client.add(event, now)

    async def find(self, workspace: str, client_id: str, sign_in_id: str, now: float) -> SignIn | None:
        """
        Return the sign-in of that id; see `SignInRecords.find`.
        """
        client = self._client(workspace, client_id)
        record = client.records.get(handle_of(sign_in_id) or "")
        if record is None or now >= record.expires_at:
            return None
        return client.sealing.open(sign_in_id, record.sealed, record.confirmed_after)

    async def describe(self, workspace: str, client_id: str, handle: str, now: float) -> SignInSummary | None:
        """
        Return what may be said of a sign-in; see `SignInRecords.describe`.
        """
        client = self._client(workspace, client_id)
        record = client.records.get(handle)
        if record is None or now >= record.expires_at:
            return None
        return client.sealing.describe(handle, record.sealed, record.confirmed_after)

    async def end(self, workspace: str, client_id: str, handle: str, now: float) -> bool:
        """
        End a sign-in; see `SignInRecords.end`.
        """
        client = self._client(workspace, client_id)
        client.drop_old(now)
        return client.forget(handle)

    async def end_at_logout(
        self,
        workspace: str,
        client_id: str,
        provider_issuer: str,
        *,
        sub: str | None,
        sid: str | None,
        issued_at: int,
        now: float,
    ) -> int:
        """
        End what a logout is about; see `SignInRecords.end_at_logout`.
        """
        if sub is None and sid is None:
            raise ValueError("a logout names a customer or a session")
        client = self._client(workspace, client_id)
        client.drop_old(now)
        found: set[str] = set()
        if sid is not None:
            session = client.sealing.session(provider_issuer, sid)[0]
            client.note_logout(session, issued_at)
            found |= client.indexed(session)
        if sub is not None:
            customer = client.sealing.customer_of_provider(provider_issuer, sub)[0]
            client.note_logout(customer if sid is None else without_session(customer), issued_at)
            every = client.indexed(customer)
            found |= {handle for handle in every if sid is None or not client.records[handle].has_session}
        return sum(client.forget(handle) for handle in found if client.records[handle].issued_at <= issued_at)

    async def has_logged_out(
        self, workspace: str, client_id: str, provider_issuer: str, *, sub: str, sid: str | None, issued_at: int
    ) -> bool:
        """
        Tell whether a logout came in between; see `SignInRecords.has_logged_out`.
        """
        client = self._client(workspace, client_id)
        return client.has_logged_out(client.sealing.logouts(provider_issuer, sub, sid), issued_at)

    def _client(self, workspace: str, client_id: str) -> "_Client":
        client = self._clients.get((workspace, client_id))
        if client is None:
            sealing = SignInSealing(self._sealing, workspace, client_id)
            client = self._clients[workspace, client_id] = _Client(sealing, *self._limits)
        return client


@dataclass(slots=True)
class _Client:
    """
    The sign-ins of one client by handle, sets of handles by the keyed hashes they are found by, conversations and logouts.

    `_logged_out_until` stands for the logouts that are not remembered one by one.
    """

    sealing: SignInSealing
    max_sign_ins: int
    max_per_customer: int
    records: dict[str, _Record] = field(default_factory=dict)
    _indexes: dict[str, set[str]] = field(default_factory=dict)
    _conversations: dict[str, _Conversation] = field(default_factory=dict)
    _logouts: dict[str, int] = field(default_factory=dict)
    _deadlines: list[tuple[int, str]] = field(default_factory=list)
    _forgotten_until: int = 0
    _logged_out_until: int = -1

    def add(self, event: SignInEvent, now: float) -> tuple[str, SignIn] | Literal["full", "logged_out"]:
        if self.has_logged_out(self.sealing.logouts(event.provider_issuer, event.sub, event.sid), event.issued_at):
            return "logged_out"
        indexes = self.sealing.indexes(event)
        customer, session, conversation = indexes
        confirmed_after = None
        if conversation is not None:
            entered = self._enter(conversation, event, now)
            if entered is None:
                return "full"
            confirmed_after = entered.confirmed_after
        if len(self.records) >= self.max_sign_ins or len(self.indexed(customer)) >= self.max_per_customer:
            return "full"
        sign_in_id, sign_in, sealed = self.sealing.seal(event, now)
        names = tuple(name for name in indexes if name is not None)
        record = _Record(sealed, confirmed_after, event.expires_at, event.issued_at, session is not None, names)
        self.records[sign_in.handle] = record
        for name in names:
            self._indexes.setdefault(name, set()).add(sign_in.handle)
        self._expect(event.expires_at, sign_in.handle)
        return sign_in_id, replace(sign_in, confirmed_after=confirmed_after)

    def indexed(self, name: str) -> set[str]:
        return self._indexes.get(name, set())

    def forget(self, handle: str) -> bool:
        record = self.records.pop(handle, None)
        if record is None:
            return False
        for name in record.indexes:
            self._indexes[name].remove(handle)
            if not self._indexes[name]:
                del self._indexes[name]
        return True

    def has_logged_out(self, names: tuple[str, str], issued_at: int) -> bool:
        return issued_at <= max(self._logged_out_until, *(self._logouts.get(name, -1) for name in names))

    def note_logout(self, name: str, issued_at: int) -> None:
        if name not in self._logouts and len(self._logouts) >= 2 * self.max_sign_ins:
            self._logged_out_until = max(self._logged_out_until, issued_at)
            return
        if name not in self._logouts:
            self._expect(issued_at + LOGOUT_MEMORY_S, name)
        self._logouts[name] = max(self._logouts.get(name, -1), issued_at)

    def drop_old(self, now: float) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            _, name = heappop(self._deadlines)
            self.forget(name)
            self._forget_logout(name, now)
            conversation = self._conversations.get(name)
            if conversation is None:
                continue
            if conversation.remembered_until > now:
                self._expect(conversation.remembered_until, name)
            else:
                del self._conversations[name]
                self._forgotten_until = max(self._forgotten_until, conversation.remembered_until)

    def _forget_logout(self, name: str, now: float) -> None:
        issued_at = self._logouts.get(name)
        if issued_at is None:
            return
        if issued_at + LOGOUT_MEMORY_S > now:
            self._expect(issued_at + LOGOUT_MEMORY_S, name)
            return
        # No ID token is as old as this, unless the clock goes backwards.
        self._logged_out_until = max(self._logged_out_until, self._logouts.pop(name))

    def _enter(self, name: str, event: SignInEvent, now: float) -> _Conversation | None:
        """
        Make a customer the last one of a conversation; somebody else's sign-ins of it end. None when there are too many.
        """
        customer = self.sealing.customer(event.connection, event.sub)[0]
        until = event.expires_at + CONVERSATION_MEMORY_S
        known = self._conversations.get(name)
        if known is None:
            if len(self._conversations) >= 2 * self.max_sign_ins:
                return None
            # With a clock that went backwards, somebody may have been here and be forgotten.
            confirmed_after = latest_confirmation(now) if now < self._forgotten_until else None
            self._expect(until, name)
        else:
            until, confirmed_after = max(until, known.remembered_until), known.confirmed_after
            if customer != known.customer:
                for handle in tuple(self.indexed(name)):
                    self.forget(handle)
                confirmed_after = max(confirmed_after or 0, latest_confirmation(now))
        entered = self._conversations[name] = _Conversation(customer, confirmed_after, until)
        return entered

    def _expect(self, deadline: int, name: str) -> None:
        # What ended leaves its deadline behind.
        alive = len(self.records) + len(self._conversations) + len(self._logouts)
        if len(self._deadlines) > 2 * alive + _IDLE_DEADLINES:
            self._deadlines = [each for each in self._deadlines if self._is_alive(each[1])]
            heapify(self._deadlines)
        heappush(self._deadlines, (deadline, name))

    def _is_alive(self, name: str) -> bool:
        return name in self.records or name in self._conversations or name in self._logouts
