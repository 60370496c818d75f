"""
For whom a token is asked: the three kinds of subject token, told apart by their type (RFC 8693 section 2.1, D7, D21).

Each client may bring the kinds that it is configured for. Whatever the kind, level and time are those of the customer's sign-in,
never of the request.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from verifier.claims import MAX_AUTH_TIME_AHEAD_S

from .errors import TokenRefused, invalid_request, temporarily_unavailable
from .form import Form
from .id_tokens import IDTokenRefused, ProviderUnavailable
from .registry import Client, SubjectTokenKind, Workspace
from .sign_in_events import SignInEvents
from .sign_ins import SignInRecords
from .store_answers import CannotTell, answered, cannot_tell
from .subject import JWT_TOKEN_TYPE, Subject, read_asserted_subject

__all__ = ["ID_TOKEN_TYPE", "SIGN_IN_TYPE", "Subjects"]

ID_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:id_token"
SIGN_IN_TYPE: Final = "urn:caplo:params:oauth:token-type:sign-in"

_KINDS: Final[Mapping[str, SubjectTokenKind]] = {
    JWT_TOKEN_TYPE: "asserted",
    ID_TOKEN_TYPE: "id_token",
    SIGN_IN_TYPE: "sign_in",
}

_Read = Callable[[str, Form, Client, float], Awaitable[Subject]]


class Subjects:
    """
    Find out who the customer of a request is, in one workspace.
    """

    def __init__(self, workspace: Workspace, *, events: SignInEvents, sign_ins: SignInRecords) -> None:
        """
        Take the workspace, what reads ID tokens, and where sign-ins are remembered.
        """
        self._workspace = workspace
        self._events = events
        self._sign_ins = sign_ins
        self._readers: Mapping[SubjectTokenKind, _Read] = {
            "asserted": self._asserted,
            "id_token": self._id_token,
            "sign_in": self._sign_in,
        }

    async def read(self, form: Form, client: Client, now: float) -> Subject:
        """
        Verify the subject token of a request; an ID token is still to be used up.

        Raises:
            TokenRefused: `invalid_request` for a token that is missing or unacceptable; `unauthorized_client` for a kind of
                token that the client may not bring; `temporarily_unavailable` when it cannot be told.
        """
        token, token_type = form.require("subject_token"), form.require("subject_token_type")
        kind = _KINDS.get(token_type)
        if kind is None:
            raise invalid_request("The subject_token_type is not supported.", reason="subject_token:token_type")
        if kind not in client.subject_tokens:
            raise TokenRefused(
                "unauthorized_client",
                "The client may not bring this subject token.",
                reason="subject_token:not_allowed",
            )
        return await self._readers[kind](token, form, client, now)

    async def use_up(self, subject: Subject) -> None:
        """
        Use up the ID token that a subject came with, if it did.

        Raises:
            TokenRefused: `invalid_request` when it was used before, or its customer has logged out since,
                `temporarily_unavailable` when that cannot be told.
        """
        verified = subject.id_token
        if verified is None:
            return
        try:
            await self._events.use_up(verified)
        except IDTokenRefused as refused:
            raise _refused(refused) from None
        except CannotTell as unknown:
            raise cannot_tell(unknown, reason="id_token:cannot_tell") from None
        logged_out = self._sign_ins.has_logged_out(
            self._workspace.name,
            verified.provider.clients[verified.audience],
            verified.provider.issuer,
            sub=verified.sub,
            sid=verified.sid,
            issued_at=int(verified.iat),
        )
        if await answered(logged_out, reason="id_token:cannot_tell"):
            raise _refused(IDTokenRefused("logged_out"))

    async def _asserted(self, token: str, _form: Form, client: Client, now: float) -> Subject:
        return read_asserted_subject(token, client, self._workspace, now)

    async def _id_token(self, token: str, form: Form, client: Client, now: float) -> Subject:
        try:
            verified = await self._events.sign_in(token, client=client, nonce=form.get("nonce"), now=now)
        except IDTokenRefused as refused:
            raise _refused(refused) from None
        except ProviderUnavailable:
            raise temporarily_unavailable(
                "The keys of the identity provider are out of reach right now.", reason="id_token:keys_unavailable"
            ) from None
        return Subject(
            sub=verified.sub,
            namespace=verified.connection.namespace,
            connection=verified.connection.name,
            acr=verified.level,
            auth_time=verified.auth_time,
            expires_at=verified.exp,
            id_token=verified,
        )

    async def _sign_in(self, token: str, _form: Form, client: Client, now: float) -> Subject:
        found = await answered(
            self._sign_ins.find(self._workspace.name, client.client_id, token, now), reason="sign_in:cannot_tell"
        )
        if found is None:
            raise _no_sign_in(reason="sign_in:unknown")
        if not self._events.stand_behind(found):
            raise _no_sign_in(reason="sign_in:provider")
        # A customer must never be one of the workspace's own clients (RFC 9068 section 5), also one that came later.
        if found.sub in self._workspace.clients:
            raise _no_sign_in(reason="sign_in:sub")
        # Compared with the whole second that becomes iat, because that is what a verifier compares with.
        if found.auth_time > int(now) + MAX_AUTH_TIME_AHEAD_S:
            raise temporarily_unavailable("The sign-in lies ahead of the service's clock.", reason="sign_in:ahead")
        return Subject(
            sub=found.sub,
            namespace=found.namespace,
            connection=found.connection,
            acr=found.level,
            auth_time=found.auth_time,
            expires_at=found.expires_at,
            confirmed_after=found.confirmed_after,
        )


def _no_sign_in(*, reason: str) -> TokenRefused:
    return invalid_request("There is no such sign-in any more.", reason=reason)


def _refused(refused: IDTokenRefused) -> TokenRefused:
    return invalid_request("The ID token is not acceptable.", reason=f"id_token:{refused.reason}")
