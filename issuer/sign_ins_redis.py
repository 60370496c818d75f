"""
The records of sign-ins that several instances share: sealed in Redis, each operation one step there.

What stands there, and under which keys, is in `sign_ins_script`.
"""

import re
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from secrets import token_urlsafe
from typing import Final, Literal

from keys import SealingKeys
from verifier.replay_redis_script import digester

from .redis_connection import RedisConnection, out_of_step
from .sign_in_sealing import SignInSealing, handle_of, is_handle
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
from .sign_ins_script import ADD, END, LAST_LOGOUT, LOGOUT

__all__ = ["RedisSignIns"]

_ADDED: Final = re.compile(rb"(\S+) (full|logged_out|\d{1,16})")
_RECORD: Final = re.compile(rb"(\d{1,16}) \d{1,16} \S+ \S+ \S+ (\S+ \S+ \S+)")
_TOLD: Final = re.compile(rb"(\S+) (-1|\d{1,16})")
_LEAST_MEMORY_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class _Client:
    """
    How the sign-ins of one client are sealed, and what their keys begin with.
    """

    sealing: SignInSealing
    key: str


class RedisSignIns:
    """
    Sign-ins in Redis, bounded for each client.

    What has ended is gone for every instance, and so is everything after a restart without data: customers sign in again. A
    failover to a replica that lagged brings back what ended in the meantime, until it expires; with `min-replicas-to-write` a
    primary that was left alone is not asked, since finding a record counts as a write.

    Raises:
        RedisUnavailable: from every operation that has no proper answer.
    """

    def __init__(
        self,
        connection: RedisConnection,
        sealing: SealingKeys,
        *,
        max_per_client: int = MAX_SIGN_INS,
        max_per_customer: int = MAX_SIGN_INS_OF_CUSTOMER,
    ) -> None:
        """
        Seal with *sealing*; hold so many live sign-ins of one client of one workspace, and of one customer there.
        """
        self._connection = connection
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
        remaining_s = lifetime_s(event, now)
        client = self._client(workspace, event.client_id)
        sign_in_id, sign_in, sealed = client.sealing.seal(event, now)
        names = ((name or "-").encode() for name in client.sealing.indexes(event))
        record = b" ".join([str(event.issued_at).encode(), *names, sealed])
        conversation = () if event.conversation is None else client.sealing.conversation(event.conversation)
        customer = client.sealing.customer(event.connection, event.sub)
        answer = await self._connection.eval(
            ADD,
            1,
            client.key,
            sign_in.handle,
            ceil(remaining_s * 1000),
            ceil((remaining_s + CONVERSATION_MEMORY_S) * 1000),
            *self._limits,
            latest_confirmation(now),
            record,
            *chain.from_iterable(zip(conversation, customer, strict=False)),
        )
        # The answer names the handle, so that an answer to another question cannot be taken for it.
        added = _ADDED.fullmatch(answer) if isinstance(answer, bytes) else None
        if added is None or added[1] != sign_in.handle.encode():
            raise out_of_step(self._connection.where)
        if added[2] == b"full":
            return "full"
        if added[2] == b"logged_out":
            return "logged_out"
        return sign_in_id, replace(sign_in, confirmed_after=int(added[2]) or None)

    async def find(self, workspace: str, client_id: str, sign_in_id: str, now: float) -> SignIn | None:
        """
        Return the sign-in of that id; see `SignInRecords.find`.
        """
        handle = handle_of(sign_in_id)
        if handle is None:
            return None
        client = self._client(workspace, client_id)
        stored = await self._stored(client, handle)
        sign_in = None if stored is None else client.sealing.open(sign_in_id, *stored)
        return sign_in if sign_in is not None and now < sign_in.expires_at else None

    async def describe(self, workspace: str, client_id: str, handle: str, now: float) -> SignInSummary | None:
        """
        Return what may be said of a sign-in; see `SignInRecords.describe`.
        """
        if not is_handle(handle):
            return None
        client = self._client(workspace, client_id)
        return _described(client, handle, await self._stored(client, handle), now)

    async def end(self, workspace: str, client_id: str, handle: str, now: float) -> bool:
        """
        End a sign-in; see `SignInRecords.end`.
        """
        if not is_handle(handle):
            return False
        client = self._client(workspace, client_id)
        ended = _read(await self._connection.eval(END, 1, client.key, handle))
        return _described(client, handle, ended, now) is not None

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
        session = () if sid is None else client.sealing.session(provider_issuer, sid)
        customer = () if sub is None else client.sealing.customer_of_provider(provider_issuer, sub)
        memory_ms = max(_LEAST_MEMORY_MS, ceil((issued_at + LOGOUT_MEMORY_S - now) * 1000))
        ended = await self._connection.eval(
            LOGOUT, 1, client.key, len(session[:1]), issued_at, memory_ms, *session, *customer
        )
        if type(ended) is not int:
            raise out_of_step(self._connection.where)
        return ended

    async def has_logged_out(
        self, workspace: str, client_id: str, provider_issuer: str, *, sub: str, sid: str | None, issued_at: int
    ) -> bool:
        """
        Tell whether a logout came in between; see `SignInRecords.has_logged_out`.
        """
        client = self._client(workspace, client_id)
        attempt, names = token_urlsafe(8), client.sealing.logouts(provider_issuer, sub, sid)
        answer = await self._connection.eval(LAST_LOGOUT, 1, client.key, attempt, *names)
        told = _TOLD.fullmatch(answer) if isinstance(answer, bytes) else None
        if told is None or told[1] != attempt.encode():
            raise out_of_step(self._connection.where)
        return issued_at <= int(told[2])

    async def _stored(self, client: _Client, handle: str) -> tuple[bytes, int | None] | None:
        # GETEX without an option is a GET that counts as a write: no replica answers it, nor a primary that lacks its replicas.
        return _read(await self._connection.call("GETEX", f"{client.key}:r:{handle}"))

    def _client(self, workspace: str, client_id: str) -> _Client:
        client = self._clients.get((workspace, client_id))
        if client is None:
            key = f"cc:s:{{{digester(workspace)(client_id)}}}"
            client = self._clients[workspace, client_id] = _Client(
                SignInSealing(self._sealing, workspace, client_id), key
            )
        return client


def _read(stored: object) -> tuple[bytes, int | None] | None:
    record = _RECORD.fullmatch(stored) if isinstance(stored, bytes) else None
    return None if record is None else (record[2], int(record[1]) or None)


def _described(
    client: _Client, handle: str, stored: tuple[bytes, int | None] | None, now: float
) -> SignInSummary | None:
    summary = None if stored is None else client.sealing.describe(handle, *stored)
    return summary if summary is not None and now < summary.expires_at else None
