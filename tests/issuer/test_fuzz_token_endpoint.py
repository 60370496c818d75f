"""
A short run of the fuzzing of the token endpoint that `make fuzz` runs at length.
"""

import importlib
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"


@pytest.fixture
def fuzz(monkeypatch):
    """
    Import the program as it is when it is run.
    """
    monkeypatch.syspath_prepend(str(FUZZ))
    yield importlib.import_module("fuzz")
    for name in ("fuzz", "maker", "token_endpoint"):
        del sys.modules[name]


def test_every_answer_is_an_oauth_answer(fuzz):
    """
    Random and mutated bodies, lines and methods get tokens or registered errors in RFC 6749 JSON, and no failure.
    """
    outcomes = fuzz.run(fuzz.token_endpoint, inputs=800, seed=20261130)

    assert outcomes.total() == 800
    assert outcomes["accepted"] > 20
    assert {
        "invalid_request",
        "invalid_client",
        "invalid_target",
        "invalid_scope",
        "invalid_authorization_details",
    } <= set(outcomes)


def test_an_answer_of_another_form_is_a_find(fuzz, monkeypatch):
    """
    A failure of the service, or an error that is not registered, ends the run with the request that had it.
    """
    token_endpoint = sys.modules["token_endpoint"]
    monkeypatch.setattr(token_endpoint, "REGISTERED", frozenset())

    with pytest.raises(AssertionError, match="seed 1"):
        fuzz.run(fuzz.token_endpoint, inputs=50, seed=1)
    with pytest.raises(AssertionError, match="a failure"):
        token_endpoint._outcome("POST", 500, {}, b"")
