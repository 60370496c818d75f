"""
What a rotation or a revocation did, as frozen values: everything that an answer, a log line or a trail needs to say.
"""

from dataclasses import dataclass, field

from .record import KeyRecord, State
from .ring import KeyRing

__all__ = ["FullRevocation", "Revocation", "Rotation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """
    What a rotation did. Nothing is in force before the ring is saved.

    Attributes:
        ring: the ring to save.
        old_kid: the key that signed until now and is retiring.
        new_kid: the key that signs from now on.
        standby_kid: the standby that was made to take its place.
        at: the instant of the rotation.
        unpublish_at: when the old key leaves the key set.
        next_rotation_at: from when on the next planned rotation is possible.
        early: whether the new key signs before every verifier is sure to know it.
        notices: sentences that the person who asked must read.
        pruned: the oldest ended records, which the ring no longer holds.
    """

    ring: KeyRing = field(repr=False)
    old_kid: str
    new_kid: str
    standby_kid: str
    at: int
    unpublish_at: int
    next_rotation_at: int
    early: bool
    notices: tuple[str, ...]
    pruned: tuple[KeyRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """
    What a revocation did. Nothing is in force before the ring is saved.

    Attributes:
        ring: the ring to save.
        kid: the revoked key.
        was: the state it was in.
        promoted_kid: the standby that signs from now on, when the active key was revoked.
        standby_kid: the standby that was made to take a place that became free, None when none did.
        at: the instant of the revocation.
        trusted_until: after this instant no conforming verifier trusts the key.
        next_rotation_at: from when on the next planned rotation is possible.
        early: whether the promoted key signs before every verifier is sure to know it.
        notices: sentences that the person who asked must read.
        pruned: the oldest ended records, which the ring no longer holds.
    """

    ring: KeyRing = field(repr=False)
    kid: str
    was: State
    promoted_kid: str | None
    standby_kid: str | None
    at: int
    trusted_until: int
    next_rotation_at: int
    early: bool
    notices: tuple[str, ...]
    pruned: tuple[KeyRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FullRevocation:
    """
    What a revocation of all published keys did. Nothing is in force before the ring is saved.

    Attributes:
        ring: the ring to save.
        kids: the revoked keys, the one that signed in front.
        active_kid: the new key that signs from now on; verifiers that have not seen it yet may refuse its tokens for a while.
        standby_kids: the new standbys.
        at: the instant of the revocation.
        trusted_until: after this instant no conforming verifier trusts one of the revoked keys.
        next_rotation_at: from when on the next planned rotation is possible.
        notices: sentences that the person who asked must read.
        pruned: the oldest ended records, which the ring no longer holds.
    """

    ring: KeyRing = field(repr=False)
    kids: tuple[str, ...]
    active_kid: str
    standby_kids: tuple[str, ...]
    at: int
    trusted_until: int
    next_rotation_at: int
    notices: tuple[str, ...]
    pruned: tuple[KeyRecord, ...]
