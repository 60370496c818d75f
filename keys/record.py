"""
One key of a ring: the state it is in, and every instant of its life as it was decided.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Literal, get_args

from .key import PrivateJWK, SigningKey, check_public_jwk
from .timing import MAX_INSTANT, check_instant

__all__ = ["MAX_REASON_LENGTH", "STATES", "KeyRecord", "State", "is_reason"]

State = Literal["standby", "active", "retiring", "retired", "revoked"]

STATES: Final[tuple[State, ...]] = get_args(State)

MAX_REASON_LENGTH: Final = 500

_KID: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_OPTIONAL: Final = (
    "private_jwk",
    "activated_at",
    "rotation_due_at",
    "deactivated_at",
    "unpublish_at",
    "revoked_at",
    "reason",
)
_SIGNED: Final = frozenset({"activated_at", "rotation_due_at", "deactivated_at"})
# What a record of each state has; `retiring`, `retired` and `revoked` never have a private part.
_NEEDED: Final[Mapping[State, frozenset[str]]] = {
    "standby": frozenset({"private_jwk"}),
    "active": frozenset({"private_jwk", "activated_at", "rotation_due_at"}),
    "retiring": _SIGNED | {"unpublish_at"},
    "retired": _SIGNED | {"unpublish_at"},
    "revoked": frozenset({"unpublish_at", "revoked_at", "reason"}),
}
# A revoked key may have signed once or never; a reason for leaving early stays with the key.
_ALLOWED: Final[Mapping[State, frozenset[str]]] = {
    "standby": frozenset(),
    "active": frozenset(),
    "retiring": frozenset({"reason"}),
    "retired": frozenset({"reason"}),
    "revoked": _SIGNED,
}
# Instants that follow each other in every life; those that are None are left out.
_ORDER: Final = ("created_at", "published_at", "activated_at", "deactivated_at", "unpublish_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """
    A key and its life so far. All instants are integer epoch seconds, stored when they were decided, never recomputed.

    Attributes:
        kid: the RFC 7638 thumbprint.
        alg: the JWS algorithm.
        state: see the key policy in `README.md`.
        public_jwk: the published form, read-only.
        private_jwk: None once it is destroyed.
        created_at: when the pair was made.
        published_at: from when on it stands in the key set.
        mature_at: from when on every verifier knows it, so that it may sign.
        activated_at: when it began to sign.
        rotation_due_at: when it is due to be replaced.
        deactivated_at: when it signed last.
        unpublish_at: from when on it no longer stands in the key set.
        revoked_at: when it was revoked.
        reason: why it left its last state in another way than planned.

    Raises:
        InvalidKey: when the public JWK is malformed or not of this kid and algorithm.
        TypeError, ValueError: when a member has a wrong type, lies outside its bounds or does not go with the state.
    """

    kid: str
    alg: str
    state: State
    public_jwk: Mapping[str, str] = field(repr=False)
    private_jwk: PrivateJWK | None = field(default=None, repr=False)
    created_at: int
    published_at: int
    mature_at: int
    activated_at: int | None = None
    rotation_due_at: int | None = None
    deactivated_at: int | None = None
    unpublish_at: int | None = None
    revoked_at: int | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise ValueError("state is not a state of a key")
        if not _KID.fullmatch(self.kid):
            raise ValueError("kid is not a thumbprint")
        object.__setattr__(self, "public_jwk", check_public_jwk(self.public_jwk, kid=self.kid, alg=self.alg))
        self._check_members()
        self._check_instants()
        if self.reason is not None and not is_reason(self.reason):
            raise ValueError("reason is not 1 to 500 printable characters")

    def _check_members(self) -> None:
        present = {name for name in _OPTIONAL if getattr(self, name) is not None}
        needed = _NEEDED[self.state]
        if not needed <= present <= needed | _ALLOWED[self.state]:
            raise ValueError(f"the members of a {self.state} key do not go together")
        if self.state == "revoked" and present & _SIGNED not in (frozenset(), _SIGNED):
            raise ValueError("a revoked key has all instants of its time as active key or none")
        if self.private_jwk is not None and not isinstance(self.private_jwk, PrivateJWK):
            raise TypeError("private_jwk must be a PrivateJWK")

    def _check_instants(self) -> None:
        for member in fields(self):
            value = getattr(self, member.name)
            if member.name.endswith("_at") and (value is not None or member.name not in _OPTIONAL):
                check_instant(value, member.name)
        line = [instant for name in _ORDER if (instant := getattr(self, name)) is not None]
        if line != sorted(line) or self.mature_at < self.published_at:
            raise ValueError("the instants are out of order")
        if self.revoked_at not in (None, self.unpublish_at):
            raise ValueError("a revoked key leaves the key set when it is revoked")

    def is_published(self, now: int) -> bool:
        """
        Tell whether the key stands in the key set at *now*; a retiring key drops out by itself when its time has come.
        """
        return self.state in ("active", "standby") or (self.state == "retiring" and now < self.gone_at)

    @property
    def gone_at(self) -> int:
        """
        The instant from which on the key does not stand in the key set; `MAX_INSTANT` while none is decided.
        """
        return MAX_INSTANT if self.unpublish_at is None else self.unpublish_at

    def signing_key(self) -> SigningKey:
        """
        Return the key pair.

        Raises:
            ValueError: when the private part is destroyed.
        """
        if self.private_jwk is None:
            raise ValueError("the private part is destroyed")
        return SigningKey(kid=self.kid, alg=self.alg, public_jwk=self.public_jwk, private_jwk=self.private_jwk)


def is_reason(value: object) -> bool:
    """
    Tell whether *value* is a text that says something and fits on one line of a log.
    """
    return isinstance(value, str) and value.isprintable() and 1 <= len(value.strip()) <= len(value) <= MAX_REASON_LENGTH
