"""
An ID token becomes the event it tells of: this customer signed in, this well, at this time. Once, and so does its nonce.

What a token says is held against its connection in `id_tokens`; here it is used up, wherever it was brought to: recorded as a
sign-in or exchanged at once. Reading it is one step and using it up another, so that a request may be refused for something else
in between and the customer need not sign in again.
"""

from hashlib import sha256
from math import ceil
from typing import Final

from .id_tokens import IDTokenRefused, IDTokens, VerifiedIDToken, VerifiedLogoutToken
from .provider_token import MAX_AGE_S, IDTokenReason
from .registry import Client, Workspace
from .sign_ins import SignInSummary
from .state import AssertionIds
from .store_answers import is_first_use

__all__ = ["SignInEvents"]

# A nonce is known to be used for twice as long as the ID token that answered it could be.
_NONCE_S: Final = 2 * MAX_AGE_S


class SignInEvents:
    """
    Reads the ID tokens of one workspace, each of them once, and logout tokens.
    """

    __slots__ = ("_tokens", "_used", "_workspace")

    def __init__(self, workspace: Workspace, tokens: IDTokens, used: AssertionIds) -> None:
        """
        Take the workspace, what verifies tokens, and what remembers those that were used.
        """
        self._workspace = workspace
        self._tokens = tokens
        self._used = used

    async def sign_in(self, token: str, *, client: Client, nonce: str | None, now: float) -> VerifiedIDToken:
        """
        Read an ID token that *client* brings, with the nonce it was asked for with; nothing may be done before `use_up`.

        Raises:
            IDTokenRefused: for one that is not acceptable.
            ProviderUnavailable: when the keys of its provider are out of reach.
        """
        return await self._tokens.verify(token, client=client, nonce=nonce, now=now)

    async def use_up(self, verified: VerifiedIDToken) -> None:
        """
        Use up an ID token and its nonce.

        Raises:
            IDTokenRefused: `used` or `nonce_used`.
            CannotTell: when it is not known whether they were used before; they may be used up then.
        """
        scope = f"{verified.provider.issuer} {verified.audience}"
        await self._use(scope, verified.once, verified.expires_at, verified.iat, reason="used")
        if verified.nonce is not None:
            once = f"nonce {sha256(verified.nonce.encode()).hexdigest()}"
            await self._use(scope, once, ceil(verified.iat) + _NONCE_S, verified.iat, reason="nonce_used")

    def stand_behind(self, sign_in: SignInSummary) -> bool:
        """
        Tell whether whoever vouched for a sign-in is configured still, as the provider of its connection and for its client.

        A provider that is taken out, or a client id there, takes its sign-ins with it: what is not listed is refused.
        """
        behind = self._workspace.provider_clients(sign_in.provider_issuer).get(sign_in.provider_client_id)
        if behind is None:
            return False
        connection, provider = behind
        return (
            connection.name == sign_in.connection and provider.clients[sign_in.provider_client_id] == sign_in.client_id
        )

    async def sign_out(self, token: str, now: float) -> VerifiedLogoutToken:
        """
        Read a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6); errors as with an ID token.

        It is not used up: it ends nothing that came after it, however often it is brought, and one that could not be heeded has
        to be taken when the provider sends it again.
        """
        return await self._tokens.verify_logout(token, now=now)

    async def _use(self, scope: str, once: str, expires_at: int, issued_at: float, *, reason: IDTokenReason) -> None:
        issuer = self._workspace.issuer
        if not await is_first_use(self._used, issuer, scope, once, expires_at=expires_at, issued_at=issued_at):
            raise IDTokenRefused(reason)
