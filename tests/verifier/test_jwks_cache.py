"""
The decisions of the JWKS cache as plain functions of state and time (D19).
"""

import json
from functools import partial
from pathlib import Path

import pytest

from verifier.cache_control import CachePolicy
from verifier.fetch import FetchResponse
from verifier.jwk import UnusableKeySet, parse_key_set
from verifier.jwks_cache import (
    CacheState,
    Decision,
    StoredKeys,
    UnusableAnswer,
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

JWKS = json.loads((Path(__file__).parents[1] / "data" / "fixture.json").read_text())["jwks"]
NOON = 1767225600.0
read = partial(read_answer, parse=parse_key_set)
FETCH = Decision(fetch=True)
FORCED = Decision(fetch=True, no_cache=True)
WAIT = Decision()
UNKNOWN = Decision(refusal="key")
UNAVAILABLE = Decision(refusal="keys_unavailable")


def answer(status: int = 200, body: bytes | None = None, **headers: str) -> FetchResponse:
    lines = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return FetchResponse(status, lines, json.dumps(JWKS).encode() if body is None else body)


def fetched(state: CacheState, at: float, what: FetchResponse) -> CacheState:
    stored = read(state.stored, what, at=at, wall_clock=NOON)
    return renewed(began(state, at), stored)


def test_a_cold_cache_asks_once():
    """
    Without keys the first caller begins a fetch and the others wait for it.
    """
    cold = CacheState()

    assert look_up(cold, "k1", 0) == FETCH
    assert look_up(began(cold, 0), "k1", 1) == WAIT


def test_a_cold_cache_does_not_hammer_an_issuer_that_fails():
    """
    After a failed attempt everybody is told so until 30 seconds after its beginning.
    """
    state = failed(began(CacheState(), 0), "status 500")

    assert look_up(state, "k1", 29.9) == UNAVAILABLE
    assert look_up(state, "k1", 30) == FETCH


def test_an_attempt_that_never_ends_is_given_up():
    """
    A fetch in flight for 30 seconds no longer keeps another from beginning.
    """
    state = began(CacheState(), 0)

    assert look_up(state, "k1", 29.9) == WAIT
    assert look_up(state, "k1", 30) == FETCH


def test_an_abandoned_attempt_never_was():
    """
    A fetch that was lost with its process or event loop may begin again at once.
    """
    assert look_up(abandoned(began(CacheState(), 0)), "k1", 1) == FETCH


@pytest.mark.parametrize(
    ("headers", "last_fresh", "expired"),
    [
        ({"Cache_Control": "max-age=120"}, 119.9, 120),
        ({"Cache_Control": "max-age=120", "Age": "60"}, 59.9, 60),
        ({}, 119.9, 120),
        ({"Cache_Control": "max-age=315360000"}, 3599, 3600),
        ({"Cache_Control": "no-store"}, 29.9, 30),
        ({"Cache_Control": "max-age=5"}, 29.9, 30),
        ({"Cache_Control": "s-maxage=5, max-age=60"}, 59.9, 60),
    ],
)
def test_keys_serve_as_long_as_they_are_fresh(headers: dict[str, str], last_fresh: float, expired: float):
    """
    cache-max-age, cache-no-store: freshness ends with the lifetime less age, within bounds; then all wait for one fetch.
    """
    state = fetched(CacheState(), 0, answer(**headers))

    assert look_up(state, "k1", last_fresh).key is not None
    assert look_up(state, "k1", expired) == FETCH


def test_refresh_ahead_begins_with_the_last_fifth():
    """
    From four fifths of the window on, a caller begins a fetch that nobody waits for.
    """
    state = fetched(CacheState(), 0, answer(Cache_Control="max-age=120"))
    key = look_up(state, "k1", 0).key

    assert look_up(state, "k1", 95.9) == Decision(key)
    assert look_up(state, "k1", 96) == Decision(key, fetch=True)
    assert look_up(began(state, 96), "k1", 97) == Decision(key)


def test_refresh_ahead_keeps_the_interval_too():
    """
    A window of 30 seconds is not refreshed every 24; a refresh that failed is not repeated before 30 seconds are over.
    """
    short = fetched(CacheState(), 0, answer(Cache_Control="no-cache"))
    retried = failed(began(fetched(CacheState(), 0, answer(Cache_Control="max-age=120")), 96), "status 500")

    assert look_up(short, "k1", 29).fetch is False
    assert look_up(retried, "k1", 119).fetch is False


def test_an_unknown_kid_refetches_every_30_seconds_at_most():
    """
    seed-refetch-30s: counted from the beginning of the last attempt, past the caches on the way.
    """
    state = fetched(CacheState(), 0, answer(Cache_Control="max-age=3600"))

    assert look_up(state, "k3", 29.9) == UNKNOWN
    assert look_up(state, "k3", 30) == FORCED
    assert look_up(began(state, 30), "k3", 31) == WAIT


def test_an_unknown_kid_after_a_failed_attempt_is_not_called_unknown():
    """
    When the last attempt failed nobody knows whether the kid exists: keys_unavailable, not key.
    """
    state = failed(began(fetched(CacheState(), 0, answer(Cache_Control="max-age=3600")), 30), "ConnectError")

    assert look_up(state, "k3", 31) == UNAVAILABLE
    assert look_up(state, "k1", 31).key is not None
    assert look_up(state, "k3", 60) == FORCED


def test_a_failed_fetch_never_replaces_good_keys():
    """
    cache-stale: failing while fresh keeps the set; after expiry it serves for its stale-if-error, then no more.
    """
    state = fetched(CacheState(), 0, answer(Cache_Control="max-age=60, stale-if-error=60"))
    key = look_up(state, "k1", 0).key

    assert look_up(state, "k1", 60) == FETCH
    failing = failed(began(state, 60), "status 500")

    assert look_up(failing, "k1", 61) == Decision(key)
    assert look_up(failing, "k1", 90) == Decision(key, fetch=True)
    assert look_up(began(failing, 90), "k1", 91) == Decision(key)
    assert look_up(failing, "k1", 119.9) == Decision(key, fetch=True)
    assert look_up(failing, "k1", 120) == FETCH
    assert look_up(failed(began(failing, 119), "status 500"), "k1", 120) == UNAVAILABLE


def test_without_stale_if_error_nothing_serves_after_expiry():
    """
    cache-stale: without the directive, an issuer that is down after expiry means keys_unavailable at once.
    """
    state = fetched(CacheState(), 0, answer(Cache_Control="max-age=60"))

    assert look_up(failed(began(state, 60), "status 500"), "k1", 60) == UNAVAILABLE


def test_stale_if_error_counts_from_the_lifetime():
    """
    The floor of 30 seconds makes keys fresh for longer, but not stale for longer.
    """
    state = fetched(CacheState(), 0, answer(Cache_Control="max-age=5, stale-if-error=40"))
    failing = failed(began(state, 30), "status 500")

    assert look_up(failing, "k1", 44.9).key is not None
    assert look_up(failing, "k1", 45) == UNAVAILABLE


def test_an_empty_set_empties_the_cache():
    """
    A withdrawal of all keys is taken at its word.
    """
    state = fetched(CacheState(), 0, answer())

    withdrawn = fetched(state, 40, answer(body=b'{"keys": []}'))

    assert look_up(withdrawn, "k1", 41) == UNKNOWN


def test_the_first_kid_is_no_change():
    """
    A verifier that has just started has not seen a rotation.
    """
    state = used(fetched(CacheState(), 0, answer()), "k1", 50)

    assert state.used_kid == "k1"
    assert look_up(state, "k1", 60).fetch is False


def test_another_kid_than_the_last_makes_a_fetch_due():
    """
    The first valid token under another known kid is followed by a fetch past the caches, as soon as the interval allows.
    """
    state = used(used(fetched(CacheState(), 0, answer()), "k1", 5), "k2", 10)
    key = look_up(state, "k1", 10).key

    assert look_up(state, "k1", 29.9) == Decision(key)
    assert look_up(state, "k1", 30) == Decision(key, fetch=True, no_cache=True)


def test_a_change_is_settled_by_a_fetch_that_began_later():
    """
    A fetch that failed, or was on its way when the change was seen, does not show what the issuer did; a later one does.
    """
    seen = used(used(fetched(CacheState(), 0, answer()), "k1", 5), "k2", 40)
    on_its_way = used(began(used(fetched(CacheState(), 0, answer()), "k1", 5), 39), "k2", 40)

    assert failed(began(seen, 40), "status 500").changed_at == 40
    assert renewed(on_its_way, read(None, answer(), at=39, wall_clock=NOON)).changed_at == 40
    assert fetched(seen, 40, answer()).changed_at is None


@pytest.mark.parametrize("kid", ["k1", "k3"])
def test_no_change_no_fetch(kid: str):
    """
    The same kid again, or one that has gone meanwhile, is no change.
    """
    state = used(fetched(CacheState(), 0, answer()), "k1", 5)

    assert used(state, kid, 6) is state
    assert used(CacheState(), kid, 6) == CacheState()


def test_nothing_serves_after_the_end():
    """
    A closed cache refuses everything and begins nothing.
    """
    state = closed(fetched(CacheState(), 0, answer()))

    assert look_up(state, "k1", 1) == UNAVAILABLE
    assert look_up(state, "k1", 1000) == UNAVAILABLE


def test_requests_are_conditional_when_there_is_something_to_renew():
    """
    jwks-format: the ETag is sent as it was given, and no-cache where the caches on the way are to be passed by.
    """
    plain = fetched(CacheState(), 0, answer())
    strong = fetched(CacheState(), 0, answer(ETag=' "v1" '))
    weak = fetched(CacheState(), 0, answer(ETag='W/"v1"'))

    assert set(request_headers(CacheState(), no_cache=False)) == {"Accept"}
    assert set(request_headers(plain, no_cache=False)) == {"Accept"}
    assert request_headers(strong, no_cache=False)["If-None-Match"] == '"v1"'
    assert request_headers(weak, no_cache=True)["If-None-Match"] == 'W/"v1"'
    assert request_headers(weak, no_cache=True)["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "etag", ["", "v1", '"v1', '"', '"v1" "v2"', '"v\r\nX: 1"', '"\u00e9"', 'w/"v1"', '"' + "v" * 300 + '"', "*"]
)
def test_an_etag_that_is_none_is_not_sent_back(etag: str):
    """
    What is no entity tag (RFC 9110 section 8.8.3), or an unreasonable one, is dropped; the keys are taken all the same.
    """
    stored = read(None, answer(ETag=etag), at=0, wall_clock=NOON)

    assert stored.etag is None
    assert len(stored.key_set) == 2


def test_304_renews():
    """
    jwks-format: a 304 keeps keys and ETag and counts anew, on its own terms or else on those stored.
    """
    stored = read(None, answer(ETag='"v1"', Cache_Control="max-age=60, stale-if-error=60"), at=0, wall_clock=NOON)

    silent = read(stored, FetchResponse(304, (), b""), at=50, wall_clock=NOON)
    spoken = read(
        stored, FetchResponse(304, [("cache-control", "max-age=90"), ("ETag", '"v2"')], b""), at=50, wall_clock=NOON
    )

    assert silent.key_set is spoken.key_set is stored.key_set
    assert silent.etag == spoken.etag == '"v1"'
    assert (silent.fresh_until, silent.usable_until) == (110, 170)
    assert (spoken.fresh_until, spoken.usable_until) == (140, 140)


@pytest.mark.parametrize("stored", [None, answer()], ids=["without a set", "without an ETag"])
def test_304_for_nothing_is_a_failure(stored: FetchResponse | None):
    """
    A 304 for a request that was not conditional brings nothing.
    """
    before = None if stored is None else read(None, stored, at=0, wall_clock=NOON)

    with pytest.raises(UnusableAnswer):
        read(before, FetchResponse(304, (), b""), at=1, wall_clock=NOON)


@pytest.mark.parametrize(
    "status", [100, 201, 202, 203, 204, 206, 226, 300, 301, 302, 307, 308, 400, 401, 403, 404, 429, 500, 503, 999]
)
def test_only_200_brings_keys(status: int):
    """
    B11: whatever the body and the caching headers of another answer are, it is a failure.
    """
    with pytest.raises(UnusableAnswer):
        read(None, answer(status, ETag='"v1"', Cache_Control="max-age=600"), at=0, wall_clock=NOON)


@pytest.mark.parametrize("body", [b"", b"<html>maintenance</html>", b'{"message": "error"}', b'{"keys": [null]}'])
def test_200_with_another_body_is_a_failure(body: bytes):
    """
    B11: a page or an error object with status 200 is unusable, and what it says about caching is not looked at.
    """
    with pytest.raises(UnusableKeySet):
        read(None, answer(body=body, Cache_Control="max-age=86400"), at=0, wall_clock=NOON)


def test_time_counts_from_the_beginning_of_the_fetch():
    """
    RFC 9111 section 4.2.3: the time that an answer was on its way counts as age; the wall clock is compared with Date only.
    """
    sent = answer(
        Cache_Control="max-age=120, stale-if-error=60", Date="Thu, 01 Jan 2026 00:00:00 GMT", Age="5", ETag='"v1"'
    )

    stored = read(None, sent, at=1000, wall_clock=NOON + 10)

    assert stored == StoredKeys(
        key_set=stored.key_set,
        etag='"v1"',
        policy=CachePolicy(lifetime_s=120, stale_if_error_s=60),
        since=1000,
        refresh_at=1088,
        fresh_until=1110,
        usable_until=1170,
    )


def test_the_first_of_two_ages_counts():
    """
    RFC 9111 section 5.1: of several Age lines the first one is taken; Cache-Control lines are one list.
    """
    lines = [("Age", "10"), ("age", "20"), ("CACHE-CONTROL", "public"), ("cache-control", "max-age=100")]

    stored = read(None, FetchResponse(200, lines, answer().body), at=0, wall_clock=NOON)

    assert stored.fresh_until == 90


def test_counters():
    """
    Attempts and failures are counted, and the last error stands until a success.
    """
    state = failed(began(failed(began(CacheState(), 0), "a"), 30), "b")

    assert (state.attempts, state.failures, state.error) == (2, 2, "b")
    assert fetched(state, 60, answer()).error is None
    assert fetched(state, 60, answer()).failures == 2


def test_what_a_state_says_of_its_keys():
    """
    Keys are usable while fresh, and beyond that only while fetching fails and stale-if-error lasts.
    """
    state = fetched(CacheState(), 0, answer(Cache_Control="max-age=60, stale-if-error=60"))
    failing = failed(began(state, 60), "status 500")

    assert not CacheState().is_fresh(0)
    assert not CacheState().is_usable(0)
    assert state.is_fresh(59)
    assert state.is_usable(59)
    assert not state.is_fresh(60)
    assert not state.is_usable(60)
    assert not failing.is_fresh(60)
    assert failing.is_usable(119)
    assert not failing.is_usable(120)
