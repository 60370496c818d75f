"""
Customers' sign-ins of one workspace, without HTTP: recorded once from an ID token, shown, ended, and ended by their provider.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from verifier.conversation import is_conversation

from .id_tokens import IDTokenRefused, ProviderUnavailable, VerifiedIDToken
from .registry import Client, Workspace
from .reports import Report
from .sign_in_events import SignInEvents
from .sign_ins import SignIn, SignInEvent, SignInRecords, SignInSummary
from .store_answers import CannotTell

__all__ = ["Recorded", "Refusal", "SignInDesk", "SignInRefused"]

_T = TypeVar("_T")

Refusal = Literal["not_allowed", "id_token", "logout_token", "conversation", "full", "unavailable"]
"""What is wrong: the client, a token, a conversation's name, too many sign-ins of it, or something that does not answer."""


class SignInRefused(Exception):
    """
    Raised when a sign-in is not recorded, shown or ended.

    Attributes:
        refusal: its kind.
        reason: a closed word of our own.
        problem: for the log, the class of the exception that a dependency failed with, or None.
    """

    def __init__(self, refusal: Refusal, reason: str, *, problem: str | None = None) -> None:
        """
        Build one refusal.
        """
        super().__init__(reason)
        self.refusal = refusal
        self.reason = reason
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """
    A sign-in and its id, which is handed out this once and is stored nowhere.
    """

    sign_in_id: str = field(repr=False)
    sign_in: SignIn


class SignInDesk:
    """
    Look after the sign-ins of one workspace.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        events: SignInEvents,
        records: SignInRecords,
        report: Report,
        now: Callable[[], float],
    ) -> None:
        """
        Take the parts; *now* is the wall clock in epoch seconds.
        """
        self._name = workspace.name
        self._events = events
        self._records = records
        self._report = report
        self._now = now

    async def record(self, client: Client, id_token: str, *, nonce: str | None, conversation: str | None) -> Recorded:
        """
        Record what an ID token tells, for the client that brings it.

        Raises:
            SignInRefused: when it is not recorded.
        """
        if "sign_in" not in client.subject_tokens:
            raise SignInRefused("not_allowed", "sign_ins:not_allowed")
        if conversation is not None and not is_conversation(conversation):
            raise SignInRefused("conversation", "conversation")
        verified = await self._verified(client, id_token, nonce=nonce)
        # Keys may have taken seconds to get, in which a customer before was signed in still.
        now = self._now()
        event = _event(verified, client, conversation=conversation, now=now)
        added = await _told(self._records.add(self._name, event, now))
        if added == "full":
            raise SignInRefused("full", "sign_ins:full")
        if added == "logged_out":
            raise SignInRefused("id_token", "id_token:logged_out")
        sign_in_id, sign_in = added
        self._report(
            "sign_in_recorded",
            workspace=self._name,
            client_id=client.client_id,
            connection=sign_in.connection,
            handle=sign_in.handle,
            acr=sign_in.level,
        )
        return Recorded(sign_in_id=sign_in_id, sign_in=sign_in)

    async def describe(self, client: Client, handle: str) -> SignInSummary | None:
        """
        Return what may be said of a sign-in; None when the client has none with that handle, or none that serves still.

        Raises:
            SignInRefused: when it cannot be told.
        """
        found = await _told(self._records.describe(self._name, client.client_id, handle, self._now()))
        return found if found is not None and self._events.stand_behind(found) else None

    async def end(self, client: Client, handle: str) -> bool:
        """
        End a sign-in, and tell whether the client had one with that handle.

        Raises:
            SignInRefused: when it cannot be told; it may have ended then.
        """
        ended = await _told(self._records.end(self._name, client.client_id, handle, self._now()))
        if ended:
            self._report("sign_in_ended", workspace=self._name, client_id=client.client_id, handle=handle)
        return ended

    async def log_out(self, logout_token: str) -> None:
        """
        End what a provider says has ended (OpenID Connect Back-Channel Logout 1.0 section 2.7); nothing may have been left.

        Raises:
            SignInRefused: when the token is not acceptable, or it cannot be told.
        """
        now = self._now()
        try:
            verified = await self._events.sign_out(logout_token, now)
        except IDTokenRefused as refused:
            raise SignInRefused("logout_token", f"logout_token:{refused.reason}") from None
        except ProviderUnavailable as unknown:
            raise _unavailable("logout_token", unknown) from None
        client_id = verified.provider.clients[verified.audience]
        ended = await _told(
            self._records.end_at_logout(
                self._name,
                client_id,
                verified.provider.issuer,
                sub=verified.sub,
                sid=verified.sid,
                issued_at=int(verified.iat),
                now=now,
            )
        )
        self._report(
            "logout_received",
            workspace=self._name,
            client_id=client_id,
            connection=verified.connection.name,
            sign_ins=ended,
        )

    async def _verified(self, client: Client, id_token: str, *, nonce: str | None) -> VerifiedIDToken:
        try:
            verified = await self._events.sign_in(id_token, client=client, nonce=nonce, now=self._now())
            await self._events.use_up(verified)
        except IDTokenRefused as refused:
            raise SignInRefused("id_token", f"id_token:{refused.reason}") from None
        except (ProviderUnavailable, CannotTell) as unknown:
            raise _unavailable("id_token", unknown) from None
        return verified


def _event(verified: VerifiedIDToken, client: Client, *, conversation: str | None, now: float) -> SignInEvent:
    return SignInEvent(
        client_id=client.client_id,
        connection=verified.connection.name,
        namespace=verified.connection.namespace,
        provider_issuer=verified.provider.issuer,
        provider_client_id=verified.audience,
        issued_at=int(verified.iat),
        sub=verified.sub,
        sid=verified.sid,
        level=verified.level,
        auth_time=verified.auth_time,
        conversation=conversation,
        expires_at=int(now) + verified.provider.sign_in_lifetime_s,
    )


def _unavailable(what: str, unknown: ProviderUnavailable | CannotTell) -> SignInRefused:
    if isinstance(unknown, CannotTell):
        return SignInRefused("unavailable", f"{what}:cannot_tell", problem=unknown.problem)
    return SignInRefused("unavailable", f"{what}:{unknown.reason}")


async def _told(asked: Awaitable[_T]) -> _T:
    try:
        return await asked
    except Exception as error:  # noqa: BLE001 -- a store may fail in any way
        raise SignInRefused("unavailable", "sign_ins:cannot_tell", problem=type(error).__name__) from None
