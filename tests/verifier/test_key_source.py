"""
What both key sources do alike: when they fetch, what they answer meanwhile, and what they show of themselves.
"""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from verifier.errors import CustomerContextError
from verifier.fetch import FetchError, FetchResponse
from verifier.jwk import parse_key_set
from verifier.key_source import AsyncKeySource, KeySource

JWKS = json.loads((Path(__file__).parents[1] / "data" / "fixture.json").read_text())["jwks"]
URL = "https://issuer.test/.well-known/jwks.json"


def refusal(face: Any, kid: str) -> str:
    with pytest.raises(CustomerContextError) as caught:
        face.key(kid)
    return caught.value.reason


def test_a_key_is_fetched_once(key_source, scripted_issuer):
    """
    The first look-up fetches, the next ones answer from the cache with the very same key.
    """
    face = key_source()

    first, second, other = face.key("k1"), face.key("k1"), face.key("k2")

    assert first is second
    assert first is not other
    assert len(scripted_issuer.asked) == 1
    assert "Cache-Control" not in scripted_issuer.asked[0]


def test_nothing_is_fetched_before_it_is_needed(key_source, scripted_issuer):
    """
    Building a source asks nobody.
    """
    face = key_source()

    assert scripted_issuer.asked == []
    assert face.source.state()["kids"] == []


def test_refresh_ahead_does_not_keep_the_caller(key_source, scripted_issuer, still_clock):
    """
    In the last fifth the key at hand is answered and the set renewed aside, conditionally.
    """
    scripted_issuer.answer = scripted_issuer.jwks("k1", ETag='"v1"', Cache_Control="max-age=100")
    face = key_source()
    key = face.key("k1")
    scripted_issuer.answer = FetchResponse(304, (), b"")

    still_clock.at = 80
    again = face.key("k1")
    face.settle()
    still_clock.at = 150
    renewed = face.key("k1")

    assert key is again is renewed
    assert [asked.get("If-None-Match") for asked in scripted_issuer.asked] == [None, '"v1"']


def test_a_changed_kid_is_followed_up(key_source, scripted_issuer, still_clock):
    """
    A valid token under another kid makes a busy partner forget a revoked key as soon as the interval allows.
    """
    face = key_source()
    face.key("k1")
    face.used("k1")
    scripted_issuer.answer = scripted_issuer.jwks("k2")

    still_clock.at = 31
    face.key("k2")
    face.used("k2")
    face.used("k2")
    face.settle()

    assert [asked.get("Cache-Control") for asked in scripted_issuer.asked] == [None, "no-cache"]
    assert refusal(face, "k1") == "key"


def test_a_change_within_the_interval_is_followed_up_later(key_source, scripted_issuer, still_clock):
    """
    A change that is seen too soon after the last attempt is not forgotten: the next look-up after the interval asks.
    """
    face = key_source()
    face.key("k1")
    face.used("k1")
    scripted_issuer.answer = scripted_issuer.jwks("k2")

    still_clock.at = 10
    face.used("k2")
    face.settle()
    before = len(scripted_issuer.asked)
    still_clock.at = 30
    face.key("k2")
    face.settle()

    assert before == 1
    assert len(scripted_issuer.asked) == 2
    assert refusal(face, "k1") == "key"


def test_denied_kids_are_refused_without_asking(key_source, scripted_issuer):
    """
    A key the operator denies is never trusted, published or not, and no fetch is spent on it.
    """
    face = key_source(denied_kids=["k1", "gone"])

    reasons = [refusal(face, "k1"), refusal(face, "gone")]
    face.key("k2")

    assert reasons == ["key", "key"]
    assert len(scripted_issuer.asked) == 1


@pytest.mark.parametrize(
    "answer", [None, "text", FetchResponse("200", (), b""), FetchResponse(200, (), None), FetchResponse(200, None, b"")]
)
def test_a_fetch_that_keeps_no_contract_is_a_failure(key_source, scripted_issuer, answer: Any):
    """
    The caller's own HTTP may return anything; only a documented response brings keys.
    """
    scripted_issuer.answer = answer
    face = key_source()

    assert refusal(face, "k1") == "keys_unavailable"
    assert refusal(face, "k1") == "keys_unavailable"
    assert len(scripted_issuer.asked) == 1


def test_refresh_warms_the_cache(key_source, scripted_issuer):
    """
    After a refresh the first look-up does not wait, and asks past the caches whenever it is told to.
    """
    face = key_source()

    face.refresh()
    face.refresh()
    face.key("k1")

    assert [asked["Cache-Control"] for asked in scripted_issuer.asked] == ["no-cache", "no-cache"]


def test_refresh_fails_only_without_anything_to_fall_back_on(key_source, scripted_issuer):
    """
    A refresh that brings nothing is an error in a cold cache, and none while good keys are there.
    """
    scripted_issuer.answer = FetchError("down")
    cold, warm = key_source(), key_source()

    with pytest.raises(CustomerContextError) as caught:
        cold.refresh()
    scripted_issuer.answer = scripted_issuer.jwks("k1")
    warm.refresh()
    scripted_issuer.answer = FetchError("down")
    warm.refresh()

    assert caught.value.reason == "keys_unavailable"
    assert warm.source.state()["last_error"] == "FetchError: down"
    assert warm.key("k1") is not None


def test_after_the_end_everything_is_refused(key_source, scripted_issuer, still_clock):
    """
    A closed source forgets its keys, asks nobody, and says keys_unavailable.
    """
    face = key_source()
    face.key("k1")
    face.used("k1")
    face.used("k2")

    face.close()
    face.close()
    still_clock.at = 100
    face.used("k1")

    assert refusal(face, "k1") == "keys_unavailable"
    with pytest.raises(CustomerContextError):
        face.refresh()
    assert face.source.state()["closed"] is True
    assert len(scripted_issuer.asked) == 1


def test_the_state_tells_an_operator_everything(key_source, scripted_issuer, still_clock):
    """
    The state is JSON-able and tells keys, times, attempts and the last error.
    """
    scripted_issuer.answer = scripted_issuer.jwks("k1", ETag='"v1"', Cache_Control="max-age=100, stale-if-error=60")
    face = key_source(denied_kids=["k9"])
    cold = face.source.state()

    face.key("k1")
    face.used("k1")
    still_clock.at = 40
    scripted_issuer.answer = FetchError("down")
    face.refresh()
    still_clock.at = 50

    assert json.loads(json.dumps(cold)) == cold
    assert face.source.state() == {
        "url": URL,
        "closed": False,
        "kids": ["k1"],
        "denied_kids": ["k9"],
        "ignored": {},
        "etag": '"v1"',
        "age_s": 50,
        "fresh": True,
        "usable": True,
        "fresh_for_s": 50,
        "usable_on_error_for_s": 110,
        "attempts": 2,
        "failures": 1,
        "in_flight": False,
        "last_attempt_s_ago": 10,
        "last_error": "FetchError: down",
        "last_used_kid": "k1",
    }


@pytest.mark.parametrize("url", ["http://issuer.test/jwks.json", "issuer.test", "https://issuer.test/jwks.json?x"])
@pytest.mark.parametrize("source", [KeySource, partial(AsyncKeySource, parse=parse_key_set)], ids=["sync", "async"])
def test_a_source_needs_a_url_to_fetch_from(source, url: str):
    """
    A URL that keys are not fetched from is a mistake found at construction.
    """
    with pytest.raises(ValueError):
        source(url)


def test_a_source_needs_a_fetch_of_its_kind(scripted_issuer):
    """
    An asynchronous fetch in the blocking source, or something that cannot be called, is a mistake found at construction.
    """

    class Fetch:
        async def __call__(self, url: str, headers: Mapping[str, str], /) -> FetchResponse:
            raise NotImplementedError

    for fetch in (scripted_issuer.async_fetch, Fetch(), "fetch"):
        with pytest.raises(TypeError):
            KeySource(URL, fetch=fetch)
    with pytest.raises(TypeError):
        AsyncKeySource(URL, parse=parse_key_set, fetch="fetch")


def test_the_default_fetch_is_real_http(raw_server):
    """
    Without a fetch of the caller's, both sources get the keys over HTTP by themselves.
    """
    body = json.dumps(JWKS).encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    url = f"http://127.0.0.1:{raw_server.start(answer)}/.well-known/jwks.json"

    blocking = KeySource(url).key("k1")
    awaited = asyncio.run(AsyncKeySource(url, parse=parse_key_set).key("k1"))

    assert blocking.public_numbers() == awaited.public_numbers()


def test_keys_that_are_old_before_they_come_are_not_asked_for_endlessly(key_source, scripted_issuer, still_clock):
    """
    When every answer has expired by the time it is there, a caller gives up after a few.
    """

    def leap() -> None:
        still_clock.at += 40

    scripted_issuer.answer = scripted_issuer.jwks("k1", Cache_Control="no-store")
    scripted_issuer.meanwhile = leap
    face = key_source()

    reason = refusal(face, "k1")

    assert reason == "keys_unavailable"
    assert len(scripted_issuer.asked) == 4
