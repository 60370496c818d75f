"""
How long a JWK Set may be kept, read from the headers it came with (RFC 9111 sections 4.2, 5.1 and 5.2, RFC 5861 section 4; D19).

Libraries take the first or the last of two contradicting values, or a negative age. Here whatever cannot be read plainly means
the shortest time there is.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

__all__ = [
    "DEFAULT_LIFETIME_S",
    "LONGEST_LIFETIME_S",
    "SHORTEST_FRESHNESS_S",
    "CachePolicy",
    "parse_cache_control",
    "response_age",
]

LONGEST_LIFETIME_S: Final = 3600
"""Upper bound of `max-age` and of `stale-if-error`: how long a withdrawn key can be trusted at the very most."""

SHORTEST_FRESHNESS_S: Final = 30
"""Lower bound of freshness, so that no answer makes a verifier ask continuously. A deviation from no-store and no-cache (D19)."""

DEFAULT_LIFETIME_S: Final = 120
"""Stands for `max-age` where there is none; `Expires` is not read."""

_DELTA_SECONDS: Final = re.compile(r"[0-9]+")
_MAX_DIGITS: Final = 10
_MAX_CHARACTERS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePolicy:
    """
    What one answer said about keeping it, in seconds, with every bound of ours applied.

    Attributes:
        lifetime_s: `max-age`, 0 to 3600; 120 when absent; 0 when unreadable, or with no-store or no-cache.
        stale_if_error_s: how much longer it may serve while no better answer is to be had, 0 to 3600; 0 when absent,
            unreadable, or with must-revalidate, no-cache or no-store.
    """

    lifetime_s: int
    stale_if_error_s: int

    def fresh_for_s(self, age_s: float) -> float:
        """
        Return for how long an answer of this age is fresh: the rest of its lifetime, but at least 30 seconds.
        """
        return max(self.lifetime_s - age_s, SHORTEST_FRESHNESS_S)

    def usable_for_s(self, age_s: float) -> float:
        """
        Return for how long an answer of this age may serve although fetching fails.

        `stale-if-error` counts from the end of the lifetime, not of the 30 seconds, and may be over before they are.
        """
        return self.lifetime_s - age_s + self.stale_if_error_s


def parse_cache_control(lines: Iterable[str]) -> CachePolicy:
    """
    Read the values of all `Cache-Control` header lines of one response; whatever they hold, nothing is raised.

    Names are case-insensitive, values may be tokens or quoted strings, unknown directives are ignored. `s-maxage` is for shared
    caches, which a verifier is not. Two values that contradict each other are unreadable (RFC 9111 section 4.2.1).
    """
    text = ",".join(lines)
    directives = _directives(text) if len(text) <= _MAX_CHARACTERS else None
    if directives is None:
        return CachePolicy(lifetime_s=0, stale_if_error_s=0)
    lifetime_s = _seconds(directives["max-age"]) if "max-age" in directives else DEFAULT_LIFETIME_S
    stale_s = _seconds(directives["stale-if-error"]) if "stale-if-error" in directives else 0
    if "no-store" in directives or "no-cache" in directives:
        lifetime_s = stale_s = 0
    elif "must-revalidate" in directives:
        stale_s = 0
    return CachePolicy(lifetime_s=lifetime_s, stale_if_error_s=stale_s)


def response_age(headers: Mapping[str, str], now: float) -> float:
    """
    Return how old an answer was when it was asked for at *now*, in seconds: max(`Age`, *now* - `Date`), at least 0.

    *headers* has lower-case names. A header that cannot be read counts as absent (RFC 9111 section 5.1).
    """
    age = headers.get("age", "").strip()
    ages = [0.0]
    if _DELTA_SECONDS.fullmatch(age):
        ages.append(float(_bounded(age)))
    # A timestamp of 29 characters (RFC 9110 section 5.6.7); anything long is not one.
    date = headers.get("date", "")
    if 0 < len(date) <= 64:
        ages.append(now - _epoch(date, otherwise=now))
    return max(ages)


def _directives(text: str) -> dict[str, set[str]] | None:
    members = _members(text)
    if members is None:
        return None
    directives: dict[str, set[str]] = {}
    for member in members:
        name, _, value = member.partition("=")
        directives.setdefault(name.strip(" \t").lower(), set()).add(_unquoted(value.strip(" \t")))
    return directives


def _members(text: str) -> list[str] | None:
    """
    Cut a list at the commas outside of quoted strings (RFC 9110 section 5.6.1); None when a quote is never closed.
    """
    members: list[str] = []
    start, quoted, escaped = 0, False, False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == '"':
            quoted = not quoted
        elif quoted:
            escaped = character == "\\"
        elif character == ",":
            members.append(text[start:position])
            start = position + 1
    return None if quoted else [*members, text[start:]]


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL)
    return value


def _seconds(values: set[str]) -> int:
    if len(values) != 1:
        return 0
    (value,) = values
    return min(_bounded(value), LONGEST_LIFETIME_S) if _DELTA_SECONDS.fullmatch(value) else 0


def _bounded(digits: str) -> int:
    # RFC 9111 section 1.2.2: a number too large to hold means the largest; Python itself refuses to read thousands of digits.
    return int(digits) if len(digits) <= _MAX_DIGITS else 10**_MAX_DIGITS


def _epoch(date: str, *, otherwise: float) -> float:
    try:
        moment = parsedate_to_datetime(date)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return otherwise
