"""
JWTs that a client signs for this issuer: its own authentication, a subject token, an actor token (RFC 7523 section 3, D5, D7).

One strict reader for all three; what tells them apart is `typ` and whose key it is. Each kind is refused in every other place.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec

from verifier.claims import MAX_IDENTIFIER_LENGTH, MAX_JTI_LENGTH, is_time
from verifier.compact import MalformedToken, UnverifiedToken, parse_compact
from verifier.es256 import ALGORITHM, PublicKey, signature_is_valid

__all__ = [
    "ACTOR_TOKEN",
    "CLIENT_ASSERTION",
    "SUBJECT_TOKEN",
    "Assertion",
    "AssertionKind",
    "AssertionRefused",
    "verify_assertion",
]

_MAX_AHEAD_S: Final = 5
_MAX_LIFETIME_S: Final = 300
# A key nobody holds any more: an unknown client or kid costs what a wrong signature does.
_NOBODY: Final[PublicKey] = ec.generate_private_key(ec.SECP256R1()).public_key()


class AssertionRefused(Exception):
    """
    Raised for an assertion that is not accepted; the message is a closed word for the log.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionKind:
    """
    One kind of JWT that a client may sign: its parameter, the `typ` values it goes by in lower case, whether `iat` is required.
    """

    name: str
    types: frozenset[object]
    iat_required: bool


CLIENT_ASSERTION: Final = AssertionKind(
    name="client_assertion", types=frozenset({"client-authentication+jwt", "jwt", None}), iat_required=False
)
"""Typed since RFC 10070, which advises against refusing the older untyped ones."""
SUBJECT_TOKEN: Final = AssertionKind(name="subject_token", types=frozenset({"caplo-subject+jwt"}), iat_required=True)
ACTOR_TOKEN: Final = AssertionKind(name="actor_token", types=frozenset({"caplo-actor+jwt"}), iat_required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """
    A verified assertion: signed by the client, meant for this issuer alone, alive.
    """

    iss: str
    sub: str = field(repr=False)
    jti: str
    exp: float
    claims: Mapping[str, Any] = field(repr=False)

    @property
    def expires_at(self) -> int:
        """
        The first whole epoch second at which it can no longer be accepted.
        """
        return math.ceil(self.exp)

    @property
    def issued_at(self) -> float:
        """
        Its `iat`, or, without one, the first instant at which it can have been accepted.
        """
        issued_at: float = self.claims.get("iat", self.exp - _MAX_LIFETIME_S)
        return issued_at


def verify_assertion(
    token: str | UnverifiedToken,
    kind: AssertionKind,
    *,
    keys: Mapping[str, PublicKey],
    audience: str,
    now: float,
    checks: int = 1,
) -> Assertion:
    """
    Verify an assertion of one kind against the keys registered for its client.

    Checked: compact form, typ, ES256, signature by one of *keys* (that of its kid when it has one), `aud` being *audience* and
    nothing else, `exp` ahead by at most 300 s without tolerance, `iat` at most 300 s old, `iat` and `nbf` at most 5 s ahead,
    `iss`, `sub` and `jti` well formed. Not checked: who `iss` and `sub` are, and that `jti` is new.

    Without a kid every key is tried, and at least *checks* signatures are checked: with the most keys that any client has, the
    time does not tell whose keys were tried.

    Raises:
        AssertionRefused: for the first of these that does not hold.
    """
    if not isinstance(token, UnverifiedToken):
        token = _parse(token)
    _check_header(token, kind)
    _check_signature(token, keys, checks)
    claims = token.claims
    if claims.get("aud") not in (audience, [audience]):
        raise AssertionRefused("audience")
    exp = _check_times(claims, kind, now)
    return Assertion(
        iss=_text(claims, "iss"),
        sub=_text(claims, "sub"),
        jti=_text(claims, "jti", MAX_JTI_LENGTH),
        exp=exp,
        claims=claims,
    )


def _parse(token: str) -> UnverifiedToken:
    try:
        return parse_compact(token, kid_required=False)
    except MalformedToken:
        raise AssertionRefused("malformed") from None


def _check_header(token: UnverifiedToken, kind: AssertionKind) -> None:
    typ = token.typ.lower() if isinstance(token.typ, str) and token.typ.isascii() else token.typ
    if not isinstance(typ, str | None) or typ not in kind.types:
        raise AssertionRefused("type")
    if token.alg != ALGORITHM:
        raise AssertionRefused("algorithm")


def _check_signature(token: UnverifiedToken, keys: Mapping[str, PublicKey], checks: int) -> None:
    candidates = [key for kid, key in keys.items() if token.kid in (None, kid)]
    idle = [_NOBODY] * ((checks if token.kid is None else 1) - len(candidates))
    matches = [signature_is_valid(key, token.signing_input, token.signature) for key in (*candidates, *idle)]
    if not candidates:
        raise AssertionRefused("key")
    if not any(matches):
        raise AssertionRefused("signature")


def _check_times(claims: Mapping[str, Any], kind: AssertionKind, now: float) -> float:
    exp = _time(claims, "exp")
    if exp is None or exp <= now:
        raise AssertionRefused("expired")
    if exp - now > _MAX_LIFETIME_S:
        raise AssertionRefused("lifetime")
    iat, nbf = _time(claims, "iat"), _time(claims, "nbf")
    if iat is None and kind.iat_required:
        raise AssertionRefused("iat")
    if iat is not None and iat < now - _MAX_LIFETIME_S:
        raise AssertionRefused("lifetime")
    if max(iat or 0, nbf or 0) > now + _MAX_AHEAD_S:
        raise AssertionRefused("not_yet_valid")
    return exp


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    if name not in claims:
        return None
    value = claims[name]
    if not is_time(value):
        raise AssertionRefused(name)
    return value


def _text(claims: Mapping[str, Any], name: str, longest: int = MAX_IDENTIFIER_LENGTH) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise AssertionRefused(name)
    return value
