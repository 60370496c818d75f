"""
What the operator is told about keys, and what never stands in a log.
"""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from verifier.errors import CustomerContextError
from verifier.fetch import FetchError, FetchResponse

JWKS = json.loads((Path(__file__).parents[1] / "data" / "fixture.json").read_text())["jwks"]


def refusal(face: Any, kid: str) -> str:
    with pytest.raises(CustomerContextError) as caught:
        face.key(kid)
    return caught.value.reason


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [
        record.getMessage() for record in caplog.records if record.levelno == level and record.name == "verifier.keys"
    ]


def test_an_unknown_kid_is_logged_escaped(key_source, scripted_issuer, still_clock, caplog):
    """
    bcp-kid-untrusted: a kid that means something to a path, a query or a log is a plain miss, logged escaped and shortened.
    """
    caplog.set_level(logging.INFO, "verifier.keys")
    face = key_source()
    face.key("k1")

    for number, kid in enumerate(
        ["../../etc/passwd", "'; DROP TABLE keys", "*", "k1\r\nX: 1", "k" * 128, "\x1b[2J"], start=1
    ):
        still_clock.at = 40 * number
        assert refusal(face, kid) == "key"

    told = [text for text in messages(caplog, logging.INFO) if "unknown kid" in text]
    assert len(told) == 6
    assert all(text.isprintable() and len(text) < 200 for text in told)


def test_the_withdrawal_of_all_keys_is_told_aloud(key_source, scripted_issuer, still_clock, caplog):
    """
    An empty set empties the cache, and the operator hears of it as an error.
    """
    face = key_source()
    face.key("k1")
    scripted_issuer.answer = scripted_issuer.jwks()

    still_clock.at = 120
    reason = refusal(face, "k1")

    assert reason == "key"
    assert len(messages(caplog, logging.ERROR)) == 1
    assert face.source.state()["kids"] == []


@pytest.mark.parametrize("kids", [("k1",), ("k1", "k2")], ids=["beside a good key", "alone"])
def test_a_published_private_key_is_told_aloud(key_source, scripted_issuer, caplog, kids: tuple[str, ...]):
    """
    B04: a key published with its private part is not trusted; the alarm does not show the value.
    """
    keys = [{**jwk, "d": "PRIVATE"} if jwk["kid"] in kids else jwk for jwk in JWKS["keys"]]
    scripted_issuer.answer = FetchResponse(200, (), json.dumps({"keys": keys}).encode())
    face = key_source()

    reason = refusal(face, "k1")

    assert reason == ("key" if len(kids) == 1 else "keys_unavailable")
    assert len(messages(caplog, logging.ERROR)) == 1
    assert "PRIVATE" not in caplog.text


def test_changes_of_the_set_are_told(key_source, scripted_issuer, still_clock, caplog):
    """
    The operator can follow which keys came and went; an unchanged set is not told again.
    """
    caplog.set_level(logging.INFO, "verifier.keys")
    many = [{**JWKS["keys"][0], "kid": f"n{number:02}"} for number in range(20)]
    face = key_source()
    face.key("k1")

    still_clock.at = 200
    face.refresh()
    scripted_issuer.answer = FetchResponse(200, (), json.dumps({"keys": many}).encode())
    face.refresh()

    told = [text for text in messages(caplog, logging.INFO) if "added" in text]
    assert len(told) == 2
    assert "added k1, k2; removed none" in told[0]
    assert "n07, 12 more; removed k1, k2" in told[1]


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (FetchError("no complete answer in time"), "FetchError: no complete answer in time"),
        (FetchError("a\r\nb" + "x" * 500), "FetchError: a\\r\\nb"),
        (RuntimeError("secret"), "RuntimeError"),
        (KeyError("secret"), "KeyError"),
        (TimeoutError("secret"), "TimeoutError"),
    ],
)
def test_whatever_fetching_raises_is_a_failure(key_source, scripted_issuer, caplog, error: Exception, shown: str):
    """
    An exception of any type means keys_unavailable and is told by its class; only our own words are quoted.
    """
    scripted_issuer.answer = error
    face = key_source()

    reason = refusal(face, "k1")

    assert reason == "keys_unavailable"
    assert face.source.state()["last_error"].startswith(shown)
    assert len(face.source.state()["last_error"]) < 200
    assert "secret" not in caplog.text
    assert len(messages(caplog, logging.WARNING)) == 1
