"""
ID tokens and logout tokens of one workspace's identity providers, verified: the rules, and the keys that they need.
"""

import time
from collections.abc import Callable

from .id_token import VerifiedIDToken, admit_id_token
from .id_token_signature import ProviderKey
from .logout_token import VerifiedLogoutToken, admit_logout_token
from .provider_keys import ProviderKeys, ProviderUnavailable
from .provider_token import IDTokenRefused, ProviderToken
from .registry import Client, Workspace

__all__ = ["IDTokenRefused", "IDTokens", "ProviderUnavailable", "VerifiedIDToken", "VerifiedLogoutToken"]


class IDTokens:
    """
    Verify what identity providers sign for one workspace.

    That a token, a nonce or a logout token is used once is the caller's to see to.
    """

    def __init__(
        self, workspace: Workspace, keys: ProviderKeys, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """
        Take the workspace and the keys; *monotonic* measures how long these take.
        """
        self._workspace = workspace
        self._keys = keys
        self._monotonic = monotonic

    async def verify(self, token: str, *, client: Client, nonce: str | None, now: float) -> VerifiedIDToken:
        """
        Verify an ID token that *client* brings, at the epoch second *now*; *nonce* was given out for it, if any was.

        Raises:
            IDTokenRefused: for a token that is not acceptable.
            ProviderUnavailable: when that cannot be told.
        """
        unverified = admit_id_token(token, self._workspace, client=client, nonce=nonce, now=now)
        key, later = await self._key(unverified.token, now)
        verified = unverified.establish(key, later)
        self._note_use(unverified.token)
        return verified

    async def verify_logout(self, token: str, now: float) -> VerifiedLogoutToken:
        """
        Verify a logout token at the epoch second *now*.

        Raises:
            IDTokenRefused: for a token that is not acceptable.
            ProviderUnavailable: when that cannot be told.
        """
        unverified = admit_logout_token(token, self._workspace, now)
        key, later = await self._key(unverified.token, now)
        verified = unverified.establish(key, later)
        self._note_use(unverified.token)
        return verified

    async def _key(self, token: ProviderToken, now: float) -> tuple[ProviderKey, float]:
        asked_at = self._monotonic()
        key = await self._keys.key(token.provider, token.algorithm, token.token.kid)
        return key, now + (self._monotonic() - asked_at)

    def _note_use(self, token: ProviderToken) -> None:
        self._keys.used(token.provider, token.algorithm, token.token.kid)
