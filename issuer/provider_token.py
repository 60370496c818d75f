"""
What each JWT of an identity provider has to be, ID token or logout token: its form, sender, recipient, times and signature.

OpenID Connect Core 1.0 section 3.1.3.7; Back-Channel Logout 1.0 section 2.6 asks for the same. Cheap checks that can only refuse
come first, and nothing is believed before the signature holds. Until then `iss` only tells whose keys to ask for: one of the
providers that are configured.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeGuard

from verifier.claims import is_time
from verifier.compact import MalformedToken, UnverifiedToken, parse_compact

from .id_token_signature import IDTokenAlgorithm, ProviderKey, signature_is_valid
from .provider import Provider
from .registry import Connection, ProviderClients, Workspace

__all__ = [
    "MAX_AGE_S",
    "MAX_PROVIDER_TOKEN_LENGTH",
    "IDTokenReason",
    "IDTokenRefused",
    "ProviderToken",
    "VerifiedProviderToken",
    "admit_provider_token",
    "is_provider_identifier",
    "read_audiences",
]

MAX_PROVIDER_TOKEN_LENGTH: Final = 16_384
"""Longest token that is looked at, in characters: with 200 groups in it, one is longer than this project's own may be."""

MAX_AGE_S: Final = 300
"""How long ago a token may have been issued."""

IDTokenReason = Literal[
    "malformed",
    "type",
    "algorithm",
    "issuer",
    "audience",
    "azp",
    "client",
    "exp",
    "iat",
    "nbf",
    "expired",
    "too_old",
    "not_yet_valid",
    "nonce",
    "auth_time",
    "sub",
    "sid",
    "jti",
    "events",
    "key",
    "signature",
    "used",
    "nonce_used",
    "logged_out",
]
"""Why an ID token or logout token is refused; a claim's name where it is missing or malformed."""

_MAX_IDENTIFIER_LENGTH: Final = 255
# How far a provider's clock may be ahead.
_MAX_AHEAD_S: Final = 5


class IDTokenRefused(Exception):
    """
    Raised for an ID token or a logout token that is not accepted.

    Attributes:
        reason: a closed word for the log.
    """

    reason: IDTokenReason

    def __init__(self, reason: IDTokenReason) -> None:
        """
        Refuse for *reason*.
        """
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderToken:
    """
    A token that nothing speaks against yet; its signature is still unchecked.

    `audience` is the client id by which the provider knows whom the token is for.
    """

    token: UnverifiedToken
    algorithm: IDTokenAlgorithm
    connection: Connection
    provider: Provider
    audience: str
    iat: float
    exp: float

    @property
    def claims(self) -> Mapping[str, Any]:
        """
        What it says, true or not.
        """
        return self.token.claims

    def check_signature(self, key: ProviderKey, now: float) -> None:
        """
        Check the signature with the key that the provider publishes, and once more that the token has not expired meanwhile.

        Raises:
            IDTokenRefused: `signature`, `expired`.
        """
        if not signature_is_valid(key, self.algorithm, self.token.signing_input, self.token.signature):
            raise IDTokenRefused("signature")
        if self.exp <= now:
            raise IDTokenRefused("expired")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedProviderToken:
    """
    What an ID token and a logout token have in common once everything about them holds.

    Attributes:
        connection: the connection whose customer it is about.
        provider: the identity provider of that connection.
        audience: the client id at the provider that it was issued to.
        iat, exp: when it was issued, and from when on it is void (epoch seconds).
    """

    connection: Connection
    provider: Provider
    audience: str
    iat: float
    exp: float

    @property
    def expires_at(self) -> int:
        """
        The first whole epoch second at which it can no longer be accepted.
        """
        return min(math.ceil(self.exp), math.floor(self.iat + MAX_AGE_S) + 1)


def admit_provider_token(
    token: object,
    workspace: Workspace,
    now: float,
    *,
    is_of_type: Callable[[str | None], bool],
    recipient: Callable[[Mapping[str, Any], ProviderClients], str],
) -> ProviderToken:
    """
    Check all of a token that both kinds have in common, but for its signature.

    *is_of_type* is asked about `typ` in lower case, None when it is absent. *recipient* returns the one of the known client ids
    that the token is for.

    Raises:
        IDTokenRefused: for the first thing that does not hold.
    """
    unverified = _parse(token)
    typ, claims = unverified.typ, unverified.claims
    if not isinstance(typ, str | None) or not is_of_type(typ and typ.lower()):
        raise IDTokenRefused("type")
    iss = claims.get("iss")
    known = workspace.provider_clients(iss) if isinstance(iss, str) else None
    if not known:
        raise IDTokenRefused("issuer")
    audience = recipient(claims, known)
    connection, provider = known[audience]
    if not _is_allowed(unverified.alg, provider):
        raise IDTokenRefused("algorithm")
    iat, exp = _times(claims, now)
    return ProviderToken(
        token=unverified,
        algorithm=unverified.alg,
        connection=connection,
        provider=provider,
        audience=audience,
        iat=iat,
        exp=exp,
    )


def read_audiences(claims: Mapping[str, Any]) -> list[str]:
    """
    Return the members of `aud`, which may be a string or an array (RFC 7519 section 4.1.3).

    Raises:
        IDTokenRefused: `audience`.
    """
    aud = claims.get("aud")
    audiences = [aud] if isinstance(aud, str) else aud
    if not isinstance(audiences, list) or not all(isinstance(each, str) for each in audiences):
        raise IDTokenRefused("audience")
    return audiences


def is_provider_identifier(value: object) -> TypeGuard[str]:
    """
    Tell whether *value* may be a `sub` or `sid`: 1 to 255 printable ASCII characters (OpenID Connect Core 1.0 section 2).
    """
    return (
        isinstance(value, str) and 1 <= len(value) <= _MAX_IDENTIFIER_LENGTH and value.isascii() and value.isprintable()
    )


def _parse(token: object) -> UnverifiedToken:
    try:
        return parse_compact(token, kid_required=False, longest=MAX_PROVIDER_TOKEN_LENGTH)
    except MalformedToken:
        raise IDTokenRefused("malformed") from None


def _is_allowed(alg: object, provider: Provider) -> TypeGuard[IDTokenAlgorithm]:
    return isinstance(alg, str) and alg in provider.algorithms


def _times(claims: Mapping[str, Any], now: float) -> tuple[float, float]:
    iat, exp, nbf = _time(claims, "iat"), _time(claims, "exp"), _time(claims, "nbf") if "nbf" in claims else 0
    if exp <= now:
        raise IDTokenRefused("expired")
    if iat < now - MAX_AGE_S:
        raise IDTokenRefused("too_old")
    if max(iat, nbf) > now + _MAX_AHEAD_S:
        raise IDTokenRefused("not_yet_valid")
    return iat, exp


def _time(claims: Mapping[str, Any], name: Literal["exp", "iat", "nbf"]) -> float:
    value = claims.get(name)
    if not is_time(value):
        raise IDTokenRefused(name)
    return value
