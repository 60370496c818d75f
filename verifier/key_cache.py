"""
One issuer's keys, held between threads and event loops: what `KeySource` and `AsyncKeySource` share.

The decisions are those of `jwks_cache`; here they are taken one after the other, survive a fork and are told to the operator.
How a fetch is run and waited for is left to the shells.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Collection
from typing import Any, Final, Generic, TypeVar

from .errors import CustomerContextError
from .fetch import FetchResponse
from .flight import Flight
from .jwk import KeySet
from .jwks_cache import (
    CacheState,
    abandoned,
    began,
    closed,
    failed,
    look_up,
    read_answer,
    renewed,
    request_headers,
    used,
)
from .key_reports import described, report_failure, report_keys, report_unknown_kid
from .process_lock import ProcessLock
from .url import check_url

__all__ = ["KeyCache"]

_Key = TypeVar("_Key")

# Stands where none has begun yet; nobody ever waits for it.
_NO_FLIGHT: Final = Flight(number=0, headers={}, began_at=0.0, wall_clock=0.0, loop=None)
_NO_FLIGHT.land()


class KeyCache(Generic[_Key]):
    """
    The state of one issuer's keys, changed by one caller at a time. Nothing here waits for the network.

    *parse* reads a document, see `jwk.collect_keys`. *start* sees to it that a flight ends in `succeed` or `fail`, without
    waiting for that itself; *current_loop* tells on which event loop it will run, if on any.
    """

    def __init__(
        self,
        url: str,
        *,
        parse: Callable[[bytes], KeySet[_Key]],
        now: Callable[[], float],
        monotonic: Callable[[], float],
        denied_kids: Collection[str],
        start: Callable[[Flight], None],
        current_loop: Callable[[], AbstractEventLoop | None] = lambda: None,
    ) -> None:
        check_url(url)
        self.url = url
        self._parse = parse
        self._now = now
        self._monotonic = monotonic
        self._denied_kids = frozenset(denied_kids)
        self._start = start
        self._current_loop = current_loop
        self._state: CacheState[_Key] = CacheState()
        self._flight = _NO_FLIGHT
        self._lock = ProcessLock()

    def look_up(self, kid: str) -> _Key | Flight:
        """
        Return the key for *kid*, or the flight that has to end before it can be looked up again.

        Raises:
            CustomerContextError: (`key`) for a denied or unknown `kid`, (`keys_unavailable`) when that cannot be told.
        """
        if kid in self._denied_kids:
            raise CustomerContextError("key")
        now = self._monotonic()
        decision = look_up(self._state, kid, now)
        if decision.key is not None and not decision.fetch:
            return decision.key
        with self._lock():
            self._drop_lost_flight()
            decision = look_up(self._state, kid, now)
            if decision.refusal is not None:
                raise CustomerContextError(decision.refusal)
            flight = self._begin(no_cache=decision.no_cache) if decision.fetch else self._flight
        if decision.fetch:
            if decision.key is None and decision.no_cache:
                report_unknown_kid(self.url, kid)
            self._start(flight)
        return flight if decision.key is None else decision.key

    def note_use(self, kid: str) -> None:
        """
        Take note that a token under *kid* proved valid; another `kid` than the last one may start a flight.
        """
        if kid == self._state.used_kid:
            return
        with self._lock():
            self._drop_lost_flight()
            now = self._monotonic()
            self._state = used(self._state, kid, now)
            if self._state.changed_at is None or not self._state.may_begin(now):
                return
            flight = self._begin(no_cache=True)
        self._start(flight)

    def renew(self) -> Flight:
        """
        Return a flight to wait for, whatever is stored: the one on its way, else a new one.

        Raises:
            CustomerContextError: (`keys_unavailable`) when the cache is closed.
        """
        with self._lock():
            self._drop_lost_flight()
            if self._state.is_closed:
                raise CustomerContextError("keys_unavailable")
            if self._state.in_flight:
                return self._flight
            flight = self._begin(no_cache=True)
        self._start(flight)
        return flight

    def demand_usable(self) -> None:
        """
        Make sure that there are keys to answer from.

        Raises:
            CustomerContextError: (`keys_unavailable`) when there are none.
        """
        if not self._state.is_usable(self._monotonic()):
            raise CustomerContextError("keys_unavailable")

    def succeed(self, flight: Flight, answer: FetchResponse) -> None:
        """
        End *flight* with what came, and release everyone who waits for it.

        An answer that comes after the flight was given up is dropped.

        Raises:
            Exception: of any type, for an answer that brings no keys or has not the documented form; then `fail` is next.
        """
        before = self._state.stored
        stored = read_answer(before, answer, parse=self._parse, at=flight.began_at, wall_clock=flight.wall_clock)
        with self._lock():
            is_current = self._is_current(flight)
            if is_current:
                self._state = renewed(self._state, stored)
        flight.land()
        if is_current:
            report_keys(self.url, {} if before is None else before.key_set, stored.key_set)

    def fail(self, flight: Flight, error: BaseException) -> None:
        """
        End *flight* without keys, release everyone who waits for it, and tell the operator.
        """
        text = described(error)
        with self._lock():
            is_current = self._is_current(flight)
            if is_current:
                self._state = failed(self._state, text)
        flight.land()
        if is_current:
            report_failure(self.url, error)

    def close(self) -> None:
        """
        Forget the keys; from here on every look-up is refused and every answer dropped.
        """
        with self._lock():
            self._state = closed(self._state)
        self._flight.land()

    def state(self) -> dict[str, Any]:
        """
        Show what an operator needs, as JSON-able values; instants are told in seconds from here.
        """
        state, now = self._state, self._monotonic()
        stored = state.stored
        return {
            "url": self.url,
            "closed": state.is_closed,
            "kids": [] if stored is None else sorted(stored.key_set),
            "denied_kids": sorted(self._denied_kids),
            "ignored": {} if stored is None else dict(stored.key_set.ignored),
            "etag": None if stored is None else stored.etag,
            "age_s": None if stored is None else now - stored.since,
            "fresh": state.is_fresh(now),
            "usable": state.is_usable(now),
            "fresh_for_s": None if stored is None else stored.fresh_until - now,
            "usable_on_error_for_s": None if stored is None else stored.usable_until - now,
            "attempts": state.attempts,
            "failures": state.failures,
            "in_flight": state.in_flight,
            "last_attempt_s_ago": None if state.attempted_at is None else now - state.attempted_at,
            "last_error": state.error,
            "last_used_kid": state.used_kid,
        }

    def _drop_lost_flight(self) -> None:
        if self._state.in_flight and self._flight.is_lost():
            self._state = abandoned(self._state)

    def _begin(self, *, no_cache: bool) -> Flight:
        now = self._monotonic()
        flight = Flight(
            number=self._state.attempts + 1,
            headers=request_headers(self._state, no_cache=no_cache),
            began_at=now,
            wall_clock=self._now(),
            loop=self._current_loop(),
        )
        # Only when nothing above can fail any more: a clock of the caller's may.
        self._state, self._flight = began(self._state, now), flight
        return flight

    def _is_current(self, flight: Flight) -> bool:
        return self._state.in_flight and self._state.attempts == flight.number
