"""
The verification levels a customer can reach and their order (RFC 9470 section 4, profile D9).

RFC 9470 gives `acr` values no order; this profile does: low < standard < high, and a higher level meets a lower demand.
"""

from typing import Final, Literal, TypeGuard

__all__ = ["LEVELS", "Level", "acceptable_levels", "is_level", "satisfies"]

Level = Literal["low", "standard", "high"]

LEVELS: Final[tuple[Level, ...]] = ("low", "standard", "high")
_RANK: Final[dict[str, int]] = {level: rank for rank, level in enumerate(LEVELS)}


def is_level(value: object) -> TypeGuard[Level]:
    """
    Tell whether *value* is exactly one of the known levels: case matters, there is no normalisation.
    """
    return isinstance(value, str) and value in _RANK


def satisfies(acr: str, demanded: Level) -> bool:
    """
    Tell whether a token's `acr` meets the demanded level; an unknown `acr` meets none.
    """
    return _RANK.get(acr, -1) >= _RANK[demanded]


def acceptable_levels(demanded: Level) -> tuple[Level, ...]:
    """
    Return every level that meets the demand, lowest first, as `acr_values` lists them (RFC 9470 section 3).
    """
    return LEVELS[_RANK[demanded] :]
