"""
The decisions of the JWKS cache, without any I/O: what is answered for a `kid` at a moment, and when a fetch is due (D19).

    CacheState    all that is known at a moment; never changed, only replaced
    look_up       which key serves, or why none does, and whether a fetch is to begin
    began, renewed, failed, abandoned, used, closed
                  the state after something happened

Instants are seconds of a monotonic clock. A set's time counts from the instant its fetch began, so that a slow answer is not
trusted for longer (RFC 9111 section 4.2.3). What a key is, and how a document is read, the decisions need not know.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, Literal, TypeVar

from .cache_control import CachePolicy, parse_cache_control, response_age
from .fetch import FetchResponse
from .jwk import KeySet

__all__ = [
    "ATTEMPT_INTERVAL_S",
    "CacheState",
    "Decision",
    "StoredKeys",
    "UnusableAnswer",
    "abandoned",
    "began",
    "closed",
    "failed",
    "look_up",
    "read_answer",
    "renewed",
    "request_headers",
    "used",
]

ATTEMPT_INTERVAL_S: Final = 30
"""No fetch begins sooner than this after the last one began, however that one ended."""

_Key = TypeVar("_Key")

_REFRESH_FROM: Final = 0.8
_MAX_ETAG_CHARACTERS: Final = 256
_ETAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')


class UnusableAnswer(ValueError):
    """
    Raised for an HTTP answer that brings no keys. The message is made of our own words and numbers only.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKeys(Generic[_Key]):
    """
    A key set, what it came with, and the instants that follow from it.

    Attributes:
        key_set: the keys; none at all when the issuer withdrew them.
        etag: the validator to ask with (RFC 9110 section 8.8.3), or None.
        policy: how long the answer said it may be kept.
        since: when the fetch that brought or renewed it began.
        refresh_at: when its last fifth begins.
        fresh_until: until when it serves without any question.
        usable_until: until when it serves although fetching fails.
    """

    key_set: KeySet[_Key]
    etag: str | None
    policy: CachePolicy
    since: float
    refresh_at: float
    fresh_until: float
    usable_until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState(Generic[_Key]):
    """
    All that is known of an issuer's keys at a moment.

    Attributes:
        stored: the last good key set, or None.
        attempts: how many fetches have begun; the number of the last one.
        attempted_at: when the last fetch began; None when there was none, or it came to nothing through no fault of the issuer.
        in_flight: whether that fetch has not ended yet.
        failures: how many fetches failed.
        error: why the last fetch that ended failed; None when it succeeded.
        used_kid: the `kid` of the last valid token.
        changed_at: when a valid token came under another `kid`, as long as no fetch that began later has succeeded.
        is_closed: whether the cache has been ended.
    """

    stored: StoredKeys[_Key] | None = None
    attempts: int = 0
    attempted_at: float | None = None
    in_flight: bool = False
    failures: int = 0
    error: str | None = None
    used_kid: str | None = None
    changed_at: float | None = None
    is_closed: bool = False

    def may_begin(self, now: float) -> bool:
        """
        Tell whether a fetch may begin; one that has not ended after the interval is given up for lost.
        """
        return self.attempted_at is None or now - self.attempted_at >= ATTEMPT_INTERVAL_S

    def is_fresh(self, now: float) -> bool:
        """
        Tell whether the stored keys serve without any question.
        """
        return self.stored is not None and now < self.stored.fresh_until

    def is_usable(self, now: float) -> bool:
        """
        Tell whether the stored keys serve: they are fresh, or the last fetch failed and they may be stale on error (RFC 5861).
        """
        if self.stored is None:
            return False
        return now < self.stored.fresh_until or (self.error is not None and now < self.stored.usable_until)


@dataclass(frozen=True, slots=True)
class Decision(Generic[_Key]):
    """
    What becomes of one look-up.

    Attributes:
        key: the key that serves, at once.
        refusal: why there is none, at once. With neither, the caller waits for the fetch in flight and looks up again.
        fetch: whether a fetch is to begin; a caller that has its key does not wait for it.
        no_cache: whether that fetch is to pass by the caches on its way.
    """

    key: _Key | None = None
    refusal: Literal["key", "keys_unavailable"] | None = None
    fetch: bool = False
    no_cache: bool = False


def look_up(state: CacheState[_Key], kid: str, now: float) -> Decision[_Key]:
    """
    Decide what is answered for *kid*.

    1. Usable keys serve without waiting, whatever a fetch in flight does.
    2. A `kid` that usable keys lack waits for a fetch in flight; begins one when the interval allows; else is refused.
    3. Without usable keys everyone waits for one fetch, unless the last one failed less than an interval ago.
    """
    if state.is_closed:
        return Decision(refusal="keys_unavailable")
    may_begin = state.may_begin(now)
    if state.stored is not None and state.is_usable(now):
        key = state.stored.key_set.by_kid.get(kid)
        if key is not None:
            is_changed = state.changed_at is not None
            begins = may_begin and (is_changed or now >= state.stored.refresh_at)
            return Decision(key, fetch=begins, no_cache=begins and is_changed)
        if may_begin or state.in_flight:
            return Decision(fetch=may_begin, no_cache=may_begin)
        return Decision(refusal="key" if state.error is None else "keys_unavailable")
    if may_begin or state.in_flight:
        return Decision(fetch=may_begin)
    return Decision(refusal="keys_unavailable")


def request_headers(state: CacheState[_Key], *, no_cache: bool) -> dict[str, str]:
    """
    Return the header fields to ask with: conditionally when there is something to renew (RFC 9110 section 13.1.2).
    """
    headers = {"Accept": "application/jwk-set+json, application/json"}
    if no_cache:
        headers["Cache-Control"] = "no-cache"
    if state.stored is not None and state.stored.etag is not None:
        headers["If-None-Match"] = state.stored.etag
    return headers


def began(state: CacheState[_Key], now: float) -> CacheState[_Key]:
    """
    Return the state after a fetch began at *now*.
    """
    return replace(state, attempts=state.attempts + 1, attempted_at=now, in_flight=True)


def renewed(state: CacheState[_Key], stored: StoredKeys[_Key]) -> CacheState[_Key]:
    """
    Return the state after the fetch in flight brought or renewed *stored*.
    """
    is_answered = state.changed_at is not None and state.changed_at <= stored.since
    changed_at = None if is_answered else state.changed_at
    return replace(state, stored=stored, in_flight=False, error=None, changed_at=changed_at)


def failed(state: CacheState[_Key], error: str) -> CacheState[_Key]:
    """
    Return the state after the fetch in flight failed for the reason *error*: the stored keys stay.
    """
    return replace(state, in_flight=False, failures=state.failures + 1, error=error)


def abandoned(state: CacheState[_Key]) -> CacheState[_Key]:
    """
    Return the state after the fetch in flight was lost with its process or event loop: as if it had not begun.
    """
    return replace(state, in_flight=False, attempted_at=None)


def used(state: CacheState[_Key], kid: str, now: float) -> CacheState[_Key]:
    """
    Return the state after a token under *kid* proved valid at *now*.

    Another known `kid` than the last one means that the issuer changed keys, maybe because one was stolen: a fetch is due as soon
    as the interval allows. The very first `kid` is no change.
    """
    if kid == state.used_kid or state.stored is None or kid not in state.stored.key_set.by_kid:
        return state
    return replace(state, used_kid=kid, changed_at=state.changed_at if state.used_kid is None else now)


def closed(state: CacheState[_Key]) -> CacheState[_Key]:
    """
    Return the state after the end: nothing is stored, nothing serves, nothing begins.
    """
    return replace(state, stored=None, in_flight=False, changed_at=None, is_closed=True)


def read_answer(
    stored: StoredKeys[_Key] | None,
    answer: FetchResponse,
    *,
    parse: Callable[[bytes], KeySet[_Key]],
    at: float,
    wall_clock: float,
) -> StoredKeys[_Key]:
    """
    Read what an answer brings, its document by *parse*; the fetch began at *at*, when the wall clock showed *wall_clock*.

    Only 200 with a JWK Set, and 304 for a set that was asked for with its ETag, bring anything (D19); what a redirect, an error,
    206 or a page of HTML says about caching is not looked at. A 304 without Cache-Control renews on the terms stored (RFC 9111
    section 4.3.4).

    Raises:
        UnusableAnswer, UnusableKeySet: for every other answer.
    """
    lines = [value for name, value in answer.headers if name.lower() == "cache-control"]
    first: dict[str, str] = {}
    for name, value in answer.headers:
        first.setdefault(name.lower(), value)
    policy = parse_cache_control(lines)
    if answer.status == 200:
        key_set, etag = parse(answer.body), _etag(first)
    elif answer.status == 304 and stored is not None and stored.etag is not None:
        key_set, etag = stored.key_set, stored.etag
        policy = policy if lines else stored.policy
    else:
        raise UnusableAnswer(f"status {answer.status:d}")
    age_s = response_age(first, wall_clock)
    fresh_for_s = policy.fresh_for_s(age_s)
    return StoredKeys(
        key_set=key_set,
        etag=etag,
        policy=policy,
        since=at,
        refresh_at=at + _REFRESH_FROM * fresh_for_s,
        fresh_until=at + fresh_for_s,
        usable_until=at + policy.usable_for_s(age_s),
    )


def _etag(headers: Mapping[str, str]) -> str | None:
    etag = headers.get("etag", "").strip(" \t")
    return etag if len(etag) <= _MAX_ETAG_CHARACTERS and _ETAG.fullmatch(etag) else None
