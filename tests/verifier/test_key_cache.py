"""
What happens between two callers of the cache that both shells share; the rest is shown through the shells.
"""

from threading import Lock

import pytest

from verifier.errors import CustomerContextError
from verifier.fetch import FetchError
from verifier.flight import Flight
from verifier.jwk import parse_key_set
from verifier.key_cache import KeyCache

URL = "https://issuer.test/.well-known/jwks.json"


def test_a_fetch_that_fails_while_a_caller_is_on_its_way(still_clock, monkeypatch):
    """
    A caller that saw a fetch in flight decides again once it is its turn, and does not wait for one that has failed.
    """
    started: list[Flight] = []
    cache = KeyCache(
        URL, parse=parse_key_set, now=still_clock, monotonic=still_clock, denied_kids=(), start=started.append
    )
    flight = cache.look_up("k1")
    lock = cache._lock

    def overtaken() -> Lock:
        monkeypatch.setattr(cache, "_lock", lock)
        cache.fail(flight, FetchError("down"))
        return lock()

    monkeypatch.setattr(cache, "_lock", overtaken)

    with pytest.raises(CustomerContextError) as caught:
        cache.look_up("k1")

    assert caught.value.reason == "keys_unavailable"
    assert started == [flight]


def test_two_callers_share_a_flight(still_clock):
    """
    The second caller gets the flight that the first one started, and what it ends with is the same for both.
    """
    started: list[Flight] = []
    cache = KeyCache(
        URL, parse=parse_key_set, now=still_clock, monotonic=still_clock, denied_kids=(), start=started.append
    )

    first, second = cache.look_up("k1"), cache.renew()
    cache.fail(first, FetchError("down"))
    cache.fail(second, FetchError("again"))

    assert first is second
    assert started == [first]
    assert cache.state()["failures"] == 1
    assert cache.state()["last_error"] == "FetchError: down"


def test_a_clock_that_fails_leaves_no_fetch_behind(still_clock):
    """
    When the caller's wall clock raises, its error reaches the caller, and the next look-up fetches as if nothing had been.
    """
    started: list[Flight] = []
    clocks = iter([ZeroDivisionError, 0.0])

    def wall_clock() -> float:
        at = next(clocks)
        if isinstance(at, type):
            raise at
        return at

    cache = KeyCache(
        URL, parse=parse_key_set, now=wall_clock, monotonic=still_clock, denied_kids=(), start=started.append
    )

    with pytest.raises(ZeroDivisionError):
        cache.look_up("k1")
    flight = cache.look_up("k1")

    assert started == [flight]
