"""
The rules of OpenID Connect Back-Channel Logout 1.0 section 2.6, pure: a provider says that a customer has signed out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from verifier.claims import MAX_JTI_LENGTH

from .id_token_signature import ProviderKey
from .provider_token import (
    IDTokenRefused,
    ProviderToken,
    VerifiedProviderToken,
    admit_provider_token,
    is_provider_identifier,
    read_audiences,
)
from .registry import ProviderClients, Workspace

__all__ = ["UnverifiedLogoutToken", "VerifiedLogoutToken", "admit_logout_token"]

_TYPES: Final = frozenset({"logout+jwt", "application/logout+jwt"})
_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedLogoutToken(VerifiedProviderToken):
    """
    A sign-out that an identity provider vouches for: of one session, of all sessions of a customer, or both said.

    Attributes:
        sub: the customer there, or None; with it alone, all of their sessions have ended.
        sid: the session that has ended, or None; never both None.
        jti: its identifier; it may come more than once.
    """

    sub: str | None = field(repr=False)
    sid: str | None = field(repr=False)
    jti: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnverifiedLogoutToken:
    """
    A logout token that nothing speaks against yet; its signature is still unchecked.
    """

    token: ProviderToken
    sub: str | None = field(repr=False)
    sid: str | None = field(repr=False)
    jti: str

    def establish(self, key: ProviderKey, now: float) -> VerifiedLogoutToken:
        """
        Check the signature with the key that the provider publishes; the keys are those of its ID tokens.

        Raises:
            IDTokenRefused: `signature`, or `expired` when getting the key took that long.
        """
        token = self.token
        token.check_signature(key, now)
        return VerifiedLogoutToken(
            connection=token.connection,
            provider=token.provider,
            audience=token.audience,
            sub=self.sub,
            sid=self.sid,
            jti=self.jti,
            iat=token.iat,
            exp=token.exp,
        )


def admit_logout_token(token: object, workspace: Workspace, now: float) -> UnverifiedLogoutToken:
    """
    Check everything about a logout token but its signature.

    Its type is required (D7): section 4.1 of the specification leaves that open for the sake of older providers.

    Raises:
        IDTokenRefused: for the first thing that does not hold.
    """
    admitted = admit_provider_token(token, workspace, now, is_of_type=_TYPES.__contains__, recipient=_recipient)
    claims = admitted.claims
    events = claims.get("events")
    if not isinstance(events, dict) or not isinstance(events.get(_EVENT), dict):
        raise IDTokenRefused("events")
    if "nonce" in claims:
        raise IDTokenRefused("nonce")
    sub, sid, jti = claims.get("sub"), claims.get("sid"), claims.get("jti")
    if sub is not None and not is_provider_identifier(sub):
        raise IDTokenRefused("sub")
    if (sid is not None or sub is None) and not is_provider_identifier(sid):
        raise IDTokenRefused("sid")
    if not isinstance(jti, str) or not 1 <= len(jti) <= MAX_JTI_LENGTH:
        raise IDTokenRefused("jti")
    return UnverifiedLogoutToken(token=admitted, sub=sub, sid=sid, jti=jti)


def _recipient(claims: Mapping[str, Any], known: ProviderClients) -> str:
    ours = {audience for audience in read_audiences(claims) if audience in known}
    if len(ours) != 1:
        raise IDTokenRefused("audience")
    return ours.pop()
