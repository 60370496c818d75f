"""
The claims of a customer context token: one codec for both sides (RFC 9068 section 2.2, RFC 8693 section 4.1, D1, D5, D8, D16).

The issuer writes with `TokenClaims.to_payload`, the verifier reads with `TokenClaims.from_payload`; a name, a type or a bound
exists here once. Reading proves the form only: whether a claim is true is for `procedure` to find out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeGuard, get_args

from .action import is_action_name, is_idempotency_key

__all__ = [
    "ACTOR_DEPTH",
    "CONFIRMATIONS",
    "CONFIRMATION_LIFETIME_S",
    "MAX_AUTH_TIME_AHEAD_S",
    "MAX_CONFIRMATION_AHEAD_S",
    "MAX_IDENTIFIER_LENGTH",
    "MAX_JTI_LENGTH",
    "MAX_LIFETIME_S",
    "TOKEN_TYPE",
    "ActionClaim",
    "Actor",
    "ClaimsError",
    "Confirmation",
    "ConfirmedBy",
    "TokenClaims",
    "is_time",
    "read_actor",
]

TOKEN_TYPE: Final = "at+jwt"
"""The `typ` that is written (RFC 9068 section 2.1, D7)."""
MAX_LIFETIME_S: Final = 60
"""Longest `exp - iat`, in seconds (D5)."""
CONFIRMATION_LIFETIME_S: Final = 1800
"""How long after its instant a confirmation is good for minting, in seconds (D18)."""
MAX_CONFIRMATION_AHEAD_S: Final = 5
"""How far ahead of the issuer's clock the instant of a confirmation may lie, in seconds (D18)."""
MAX_AUTH_TIME_AHEAD_S: Final = 5
"""How far after `iat` the time of the sign-in may lie, in seconds (D9)."""
MAX_IDENTIFIER_LENGTH: Final = 1024
"""Longest `iss`, `sub`, `aud`, `client_id` or `acr`, in characters."""
MAX_JTI_LENGTH: Final = 256
"""Longest `jti`, in characters."""
ACTOR_DEPTH: Final = 4
"""Most actors in one `act`, the outermost counted (D8)."""

_MAX_TIME: Final = 2**53 - 1
_CAPLO: Final = "caplo"
_MEMBERS: Final = ("action", "actionDigest", "idempotencyKey", "confirmation")
_DOTTED: Final = {f"{_CAPLO}.{member}": member for member in _MEMBERS}
_NOT_IN_ACTOR: Final = frozenset({"exp", "nbf", "iat", "aud", "jti"})

ConfirmedBy = Literal["none", "client", "customer"]
CONFIRMATIONS: Final[tuple[ConfirmedBy, ...]] = get_args(ConfirmedBy)
"""What can stand behind an action, weakest first (D18)."""


class ClaimsError(ValueError):
    """
    Raised when a claim is missing or has the wrong form; the message names the claim, never its value.
    """


@dataclass(frozen=True, slots=True)
class Actor:
    """
    An agent, and the one it acts for, as RFC 8693 section 4.1 nests them: the outermost is the one that calls now.
    """

    sub: str
    iss: str | None = None
    act: "Actor | None" = None

    def to_payload(self) -> dict[str, Any]:
        """
        Write the `act` claim.
        """
        payload: dict[str, Any] = {"sub": self.sub}
        if self.iss is not None:
            payload["iss"] = self.iss
        if self.act is not None:
            payload["act"] = self.act.to_payload()
        return payload

    def history(self) -> tuple[str, ...]:
        """
        Return the earlier actors, latest first. Informational: RFC 8693 forbids deciding on them.
        """
        return () if self.act is None else (self.act.sub, *self.act.history())


@dataclass(frozen=True, slots=True)
class Confirmation:
    """
    What stands behind an action, and since when (epoch seconds).
    """

    by: ConfirmedBy
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionClaim:
    """
    The confirmed action of a write token: the members of the `caplo` claim (D1).
    """

    action: str
    digest: str
    idempotency_key: str | None
    confirmation: Confirmation | None

    def to_payload(self) -> dict[str, Any]:
        """
        Write the `caplo` claim.
        """
        payload: dict[str, Any] = {"action": self.action, "actionDigest": self.digest}
        if self.idempotency_key is not None:
            payload["idempotencyKey"] = self.idempotency_key
        if self.confirmation is not None:
            payload["confirmation"] = {"by": self.confirmation.by, "at": self.confirmation.at}
        return payload


class TokenClaims(NamedTuple):
    """
    The claims this profile knows, well formed and not yet believed.

    Times are epoch seconds; the issuer writes integers, a reader accepts fractions. A named tuple, because one is made for every
    token on either side and a frozen dataclass of this size takes four times as long.
    """

    iss: str
    sub: str
    aud: str | tuple[object, ...]
    client_id: str
    iat: float
    exp: float
    jti: str
    acr: str
    act: Actor
    auth_time: float | None = None
    nbf: float | None = None
    scope: str | None = None
    action: ActionClaim | None = None

    def to_payload(self) -> dict[str, Any]:
        """
        Write the JWT payload.
        """
        payload: dict[str, Any] = {
            "iss": self.iss,
            "sub": self.sub,
            "aud": self.aud,
            "client_id": self.client_id,
            "iat": self.iat,
            "exp": self.exp,
            "jti": self.jti,
            "acr": self.acr,
            "act": self.act.to_payload(),
        }
        if self.auth_time is not None:
            payload["auth_time"] = self.auth_time
        if self.nbf is not None:
            payload["nbf"] = self.nbf
        if self.scope is not None:
            payload["scope"] = self.scope
        if self.action is not None:
            payload[_CAPLO] = self.action.to_payload()
        return payload

    def __repr__(self) -> str:
        return f"TokenClaims(jti={self.jti!r})"

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "TokenClaims":
        """
        Read a JWT payload; claims that are not known are ignored (RFC 7519 section 4).

        Raises:
            ClaimsError: for a required claim that is missing and for any known claim of the wrong form.
        """
        iat = _time(payload, "iat")
        auth_time = _time(payload, "auth_time") if "auth_time" in payload else None
        if auth_time is not None and auth_time > iat + MAX_AUTH_TIME_AHEAD_S:
            raise ClaimsError("auth_time")
        aud = payload.get("aud")
        scope = payload.get("scope", "")
        if not isinstance(scope, str):
            raise ClaimsError("scope")
        return cls(
            iss=_identifier(payload, "iss"),
            sub=_identifier(payload, "sub"),
            aud=tuple(aud) if isinstance(aud, list) else _identifier(payload, "aud"),
            client_id=_identifier(payload, "client_id"),
            iat=iat,
            exp=_time(payload, "exp"),
            jti=_jti(payload),
            acr=_identifier(payload, "acr"),
            act=read_actor(payload.get("act")),
            auth_time=auth_time,
            nbf=_time(payload, "nbf") if "nbf" in payload else None,
            scope=scope or None,
            action=_action(payload),
        )


def is_time(value: object) -> TypeGuard[float]:
    """
    Tell whether *value* is a time in epoch seconds: a number from 0 to 2^53-1 (RFC 7519 section 2, D5).
    """
    # A bool is an int to Python, not to the RFC; NaN lies in no range.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MAX_TIME


def read_actor(value: object, depth: int = ACTOR_DEPTH) -> Actor:
    """
    Read an `act` claim (RFC 8693 section 4.1): identity members only, nested at most *depth* deep.

    Raises:
        ClaimsError: for anything else.
    """
    if type(value) is not dict or depth < 1 or not _NOT_IN_ACTOR.isdisjoint(value):
        raise ClaimsError("act")
    sub, iss = value.get("sub"), value.get("iss", "-")
    if not (isinstance(sub, str) and 0 < len(sub) <= MAX_IDENTIFIER_LENGTH and isinstance(iss, str) and iss):
        raise ClaimsError("act")
    inner = read_actor(value["act"], depth - 1) if "act" in value else None
    return Actor(sub, value.get("iss"), inner)


def _identifier(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_IDENTIFIER_LENGTH:
        raise ClaimsError(name)
    return value


def _time(payload: Mapping[str, Any], name: str, claim: str | None = None) -> float:
    value = payload.get(name)
    if not is_time(value):
        raise ClaimsError(claim or name)
    return value


def _jti(payload: Mapping[str, Any]) -> str:
    value = payload.get("jti")
    if not isinstance(value, str) or not 0 < len(value) <= MAX_JTI_LENGTH or " " in value or not value.isprintable():
        raise ClaimsError("jti")
    return value


def _action(payload: Mapping[str, Any]) -> ActionClaim | None:
    """
    Read the action in either spelling, an object or dotted names, but never in both (D1).
    """
    if _CAPLO not in payload:
        dotted = {member: payload[name] for name, member in _DOTTED.items() if name in payload}
        return _read_action(dotted) if dotted else None
    members = payload[_CAPLO]
    if type(members) is not dict or any(name.startswith(f"{_CAPLO}.") for name in payload):
        raise ClaimsError(_CAPLO)
    return _read_action(members)


def _read_action(members: Mapping[str, Any]) -> ActionClaim:
    action, digest, key = members.get("action"), members.get("actionDigest"), members.get("idempotencyKey")
    if not isinstance(action, str) or not is_action_name(action) or not isinstance(digest, str) or not digest:
        raise ClaimsError(_CAPLO)
    if "idempotencyKey" in members and not is_idempotency_key(key):
        raise ClaimsError(_CAPLO)
    confirmation = _read_confirmation(members["confirmation"]) if "confirmation" in members else None
    return ActionClaim(action=action, digest=digest, idempotency_key=key, confirmation=confirmation)


def _read_confirmation(value: object) -> Confirmation:
    if type(value) is not dict or value.get("by") not in CONFIRMATIONS:
        raise ClaimsError(_CAPLO)
    return Confirmation(value["by"], _time(value, "at", _CAPLO))
