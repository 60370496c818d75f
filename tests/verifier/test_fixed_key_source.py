"""
Keys that never change.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verifier.errors import CustomerContextError
from verifier.fixed_key_source import FixedKeySource

JWKS = json.loads((Path(__file__).parents[1] / "data" / "fixture.json").read_text())["jwks"]


@pytest.mark.parametrize("form", [dict, json.dumps, lambda jwks: json.dumps(jwks).encode()])
def test_a_fixed_set_answers_from_itself(form: Callable[[object], Any]):
    """
    A fixed set is given as a mapping, text or octets; it knows its keys, and what is denied or unknown is refused as `key`.
    """
    source = FixedKeySource(form(JWKS), denied_kids=["k2"])

    key = source.key("k1")
    source.used("k1")
    source.refresh()
    source.close()

    assert key.curve.name == "secp256r1"
    for kid in ("k2", "k3", ""):
        with pytest.raises(CustomerContextError) as caught:
            source.key(kid)
        assert caught.value.reason == "key"
    assert source.state() == {"url": None, "kids": ["k1", "k2"], "denied_kids": ["k2"], "ignored": {}}


@pytest.mark.parametrize(
    "jwks",
    [{}, {"keys": []}, {"keys": [{"kty": "RSA"}]}, "", b"[]", {"keys": [float("nan")]}, {"keys": JWKS["keys"] * 129}],
)
def test_a_fixed_set_needs_a_usable_key(jwks: Any):
    """
    A fixed set without a key is a mistake found at construction.
    """
    with pytest.raises(ValueError):
        FixedKeySource(jwks)


@pytest.mark.parametrize("jwks", [{"keys": [object()]}, {"keys": JWKS["keys"], "x": b""}, 5])
def test_a_fixed_set_is_json(jwks: Any):
    """
    A mapping with values that JSON does not have is a mistake found at construction.
    """
    with pytest.raises(TypeError):
        FixedKeySource(jwks)
