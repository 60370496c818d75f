"""
The rules of OpenID Connect Core 1.0 section 3.1.3.7 for an ID token that a client brings, pure.

Beside what every token of a provider has to be (`provider_token`): it was issued to the client that brings it, answers the nonce
that was given out, and tells when and how the customer signed in. Who the customer is, are connection and `sub` together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from verifier.claims import MAX_AUTH_TIME_AHEAD_S, is_time
from verifier.compact import b64url_encode
from verifier.levels import LEVELS, Level

from .id_token_signature import ProviderKey
from .provider import Provider
from .provider_token import (
    IDTokenRefused,
    ProviderToken,
    VerifiedProviderToken,
    admit_provider_token,
    is_provider_identifier,
    read_audiences,
)
from .registry import Client, ProviderClients, Workspace

__all__ = ["IDTokenRefused", "UnverifiedIDToken", "VerifiedIDToken", "admit_id_token"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedIDToken(VerifiedProviderToken):
    """
    A sign-in that an identity provider vouches for.

    Attributes:
        sub: the customer there; unique within the connection only.
        level: what the way of signing in is worth, by the provider's map.
        auth_time: when the customer signed in, epoch seconds.
        nonce: the value that was given out for it, or None.
        sid: the customer's session at the provider, or None.
        once: identifies what was signed, to use it once; not the signature, which may be spelt in two ways.
    """

    sub: str = field(repr=False)
    level: Level
    auth_time: float
    nonce: str | None = field(repr=False)
    sid: str | None = field(repr=False)
    once: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnverifiedIDToken:
    """
    An ID token that nothing speaks against yet; its signature is still unchecked.
    """

    token: ProviderToken
    sub: str = field(repr=False)
    level: Level
    auth_time: float
    nonce: str | None = field(repr=False)
    sid: str | None = field(repr=False)

    def establish(self, key: ProviderKey, now: float) -> VerifiedIDToken:
        """
        Check the signature with the key that the provider publishes.

        Raises:
            IDTokenRefused: `signature`, or `expired` when getting the key took that long.
        """
        token = self.token
        token.check_signature(key, now)
        return VerifiedIDToken(
            connection=token.connection,
            provider=token.provider,
            audience=token.audience,
            sub=self.sub,
            level=self.level,
            auth_time=self.auth_time,
            iat=token.iat,
            exp=token.exp,
            nonce=self.nonce,
            sid=self.sid,
            once=b64url_encode(sha256(token.token.signing_input).digest()),
        )


def admit_id_token(
    token: object, workspace: Workspace, *, client: Client, nonce: str | None, now: float
) -> UnverifiedIDToken:
    """
    Check everything about an ID token but its signature; *client* brings it, *nonce* was given out for it.

    Raises:
        IDTokenRefused: for the first thing that does not hold.
    """
    admitted = admit_provider_token(token, workspace, now, is_of_type=_is_of_type, recipient=_recipient)
    claims = admitted.claims
    if "events" in claims:
        # What a security event token or logout token says is not that somebody signed in (RFC 8417 section 4.5).
        raise IDTokenRefused("type")
    if admitted.provider.clients[admitted.audience] != client.client_id:
        raise IDTokenRefused("client")
    if claims.get("nonce") != nonce or nonce == "":
        raise IDTokenRefused("nonce")
    sub, sid = claims.get("sub"), claims.get("sid")
    # A customer must never be one of the workspace's own clients (RFC 9068 section 5).
    if not is_provider_identifier(sub) or sub in workspace.clients:
        raise IDTokenRefused("sub")
    if sid is not None and not is_provider_identifier(sid):
        raise IDTokenRefused("sid")
    return UnverifiedIDToken(
        token=admitted,
        sub=sub,
        level=_level(claims, admitted.provider),
        auth_time=_auth_time(claims, min(admitted.iat, int(now))),
        nonce=nonce,
        sid=sid,
    )


def _is_of_type(typ: str | None) -> bool:
    # ID tokens have no type of their own. Each kind that has one, of this project or of a standard, says so by this ending (D7).
    return typ is None or "+jwt" not in typ


def _recipient(claims: Mapping[str, Any], known: ProviderClients) -> str:
    audiences = read_audiences(claims)
    ours = [audience for audience in audiences if audience in known]
    if not ours:
        raise IDTokenRefused("audience")
    if len(audiences) == 1 and "azp" not in claims:
        return ours[0]
    azp = claims.get("azp")
    if not isinstance(azp, str) or azp not in ours:
        raise IDTokenRefused("azp")
    return azp


def _level(claims: Mapping[str, Any], provider: Provider) -> Level:
    acr, amr = claims.get("acr"), claims.get("amr")
    reached: list[Level] = ["low"]
    if isinstance(acr, str) and acr in provider.acr:
        reached.append(provider.acr[acr])
    if isinstance(amr, list) and all(isinstance(each, str) for each in amr):
        reached.append(provider.amr.get(frozenset(amr), "low"))
    return max(reached, key=LEVELS.index)


def _auth_time(claims: Mapping[str, Any], latest: float) -> float:
    # A sign-in whose time is unknown can meet no demand for a recent one, so it is nobody's.
    auth_time = claims.get("auth_time")
    if not is_time(auth_time) or auth_time > latest + MAX_AUTH_TIME_AHEAD_S:
        raise IDTokenRefused("auth_time")
    return auth_time
