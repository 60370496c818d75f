"""
How long each step in the life of a key must wait, as one frozen value.

The waiting times are sums over everything that may lie between a key set and its readers: caches, cooldowns, clocks and leases.
They are written once, here; what they give is stored on the key when it is decided and never recomputed.
"""

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Final

__all__ = ["MAX_CACHE_S", "MAX_INSTANT", "KeyTimes", "check_instant", "utc"]

MAX_INSTANT: Final = 253_370_764_800
"""Latest instant that is accepted, in epoch seconds: the start of the year 9999."""

MAX_CACHE_S: Final = 3600
"""Largest `max-age` and `stale-if-error`, in seconds: verifiers cap there what they are told."""

_FRESHNESS_FLOOR_S: Final = 30
"""A verifier serves a key set for at least this long, whatever `max-age` says."""

_DAY_S: Final = 86_400
# The lower bounds of cooldown and skew are what conforming verifiers do; smaller values would let a planned rotation
# overtake them.
_BOUNDS: Final[dict[str, tuple[int, int]]] = {
    "max_age_s": (0, MAX_CACHE_S),
    "stale_if_error_s": (0, MAX_CACHE_S),
    "cooldown_s": (30, 3600),
    "skew_s": (65, 3600),
    "token_lifetime_s": (1, 60),
    "lease_s": (0, 3600),
    "rotation_s": (_DAY_S, 365 * _DAY_S),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTimes:
    """
    The times that the life of a key depends on, in whole seconds.

    Attributes:
        max_age_s: the largest `max-age` the key set is to be served with; 0 to 3600. What counts beside it: `CacheTimes`.
        stale_if_error_s: the largest `stale-if-error` it is to be served with; 0 to 3600.
        cooldown_s: how long a verifier waits between two fetches for an unknown kid; at least 30.
        skew_s: the largest clock tolerance of a verifier plus what the clocks of two instances may differ; at least 65.
        token_lifetime_s: the longest life of a token; 1 to 60.
        lease_s: how old an instance's view of a shared ring may be; 0 to 3600.
        rotation_s: how long after its activation a key is due to be replaced; 1 to 365 days.

    Raises:
        TypeError: when a value is not an int.
        ValueError: when a value lies outside its bounds.
    """

    max_age_s: int = 120
    stale_if_error_s: int = 120
    cooldown_s: int = 30
    skew_s: int = 65
    token_lifetime_s: int = 60
    lease_s: int = 15
    rotation_s: int = 30 * _DAY_S

    def __post_init__(self) -> None:
        for member in fields(self):
            value = getattr(self, member.name)
            low, high = _BOUNDS[member.name]
            if type(value) is not int:
                raise TypeError(f"{member.name} must be an int")
            if not low <= value <= high:
                raise ValueError(f"{member.name} must be {low} to {high}")

    @property
    def maturity_s(self) -> int:
        """
        How long a standby must have been published before every verifier is sure to know it.
        """
        return self._cached_s + self.stale_if_error_s + self.cooldown_s + self.skew_s + self.lease_s

    @property
    def retirement_s(self) -> int:
        """
        How long a key stays published after it stopped signing, so that its last token is dead before the key is gone.
        """
        return self.token_lifetime_s + self.skew_s + self.lease_s

    @property
    def revocation_bound_s(self) -> int:
        """
        How long after its revocation a conforming verifier may still trust a key, at worst.
        """
        return self._cached_s + self.stale_if_error_s + self.cooldown_s + self.lease_s

    @property
    def _cached_s(self) -> int:
        return max(self.max_age_s, _FRESHNESS_FLOOR_S)


def check_instant(value: object, name: str) -> int:
    """
    Return *value* when it is an instant: an int (no bool) of epoch seconds between 0 and `MAX_INSTANT`.

    Raises:
        TypeError: when it is not an int.
        ValueError: when it lies outside the bounds.
    """
    if type(value) is not int:
        raise TypeError(f"{name} must be an int of epoch seconds")
    if not 0 <= value <= MAX_INSTANT:
        raise ValueError(f"{name} is out of range")
    return value


def utc(instant: int) -> str:
    """
    Write an instant the way people read it: `2026-11-30T12:00:00Z` (RFC 3339).
    """
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
