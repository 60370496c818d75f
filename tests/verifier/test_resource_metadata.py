"""
Where an API publishes metadata of itself, its challenges say where (RFC 9728 section 5.1).
"""

import copy
import pickle
from types import SimpleNamespace

import pytest

from verifier import (
    CustomerContextError,
    bearer_token,
    parse_challenges,
    step_up_from_challenge,
    step_up_required,
    verify_customer_context,
)
from verifier.protected_resource import protected_resource_metadata_url

METADATA = protected_resource_metadata_url("https://api.test/v1")
NO_URL = [
    *("", "api.test", "http://api.test/x", "https://api.test/x?y=1", "https://api.test/x#y", "https://API.test/x"),
    *('https://api.test/x"', "https://api.test/x, error=y", "https://api.test/x\r\nSet-Cookie: y", "/x"),
]
REFUSALS = {
    "malformed": lambda mint: ("a.b.c", {}, {}),
    "issuer": lambda mint: (mint.signed(iss="https://other.test"), {}, {}),
    "key": lambda mint: (mint.signed(header={"kid": "gone"}), {}, {}),
    "signature": lambda mint: (mint.signed(signer="attacker"), {}, {}),
    "scope": lambda mint: (mint.signed(), {"scope": "orders.delete"}, {}),
    "action": lambda mint: (mint.write(), {}, {}),
    "step_up": lambda mint: (mint.signed(), {"level": "high", "max_auth_age_seconds": 300}, {}),
    "replayed": lambda mint: (mint.signed(), {}, {"replay_store": SimpleNamespace(use=lambda *_: False)}),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_a_refused_caller_learns_where(api, mint, reason):
    """
    Each 401 and each 403 names the URL, once, after everything that it says without.
    """
    token, demand, options = REFUSALS[reason](mint)
    plain = api(**options).refusal(token, **demand)

    error = api(resource_metadata=METADATA, **options).refusal(token, **demand)

    assert error.reason == plain.reason == reason
    assert error.www_authenticate == f'{plain.www_authenticate}, resource_metadata="{METADATA}"'
    assert parse_challenges(error.www_authenticate)[0].params["resource_metadata"] == METADATA


def test_an_unavailable_api_sends_nobody_there(api, mint):
    """
    503 is not about who calls, so nobody is made to read the metadata again.
    """
    for options in ({"replay_store": SimpleNamespace(use=lambda *_: None)}, {"fetch": lambda *_: None}):
        error = api(resource_metadata=METADATA, **options).refusal(mint.signed())
        assert error.status == 503
        assert "resource_metadata" not in error.www_authenticate


def test_a_caller_without_a_token_learns_where():
    """
    RFC 9728 section 5: that is whom the URL is for; a request that is no request of this kind is only told so.
    """
    with pytest.raises(CustomerContextError) as missing:
        bearer_token(None, resource_metadata=METADATA)
    with pytest.raises(CustomerContextError) as request:
        bearer_token(["Bearer a", "Bearer b"], resource_metadata=METADATA)

    assert missing.value.www_authenticate == f'Bearer realm="api", resource_metadata="{METADATA}"'
    assert (request.value.reason, "resource_metadata" in request.value.www_authenticate) == ("request", False)
    assert bearer_token("Bearer a", resource_metadata=METADATA) == "a"


def test_a_stated_demand_says_where():
    """
    The parameter stands beside those of RFC 9470, and a client reads the demand as without it.
    """
    step_up = step_up_required("high", 300)

    header = step_up.challenge(realm="shop", resource_metadata=METADATA)

    assert header == f'{step_up.challenge(realm="shop")}, resource_metadata="{METADATA}"'
    assert step_up_from_challenge(header) == step_up


@pytest.mark.parametrize("url", NO_URL)
def test_what_is_no_url_of_metadata(api, url):
    """
    The programmer is told when the verifier is built, or at the first call, and not when the first caller is refused.
    """
    with pytest.raises(ValueError):
        api(resource_metadata=url)
    with pytest.raises(ValueError):
        bearer_token("Bearer a", resource_metadata=url)
    with pytest.raises(ValueError):
        step_up_required("high").challenge(resource_metadata=url)


@pytest.mark.parametrize("url", [5, b"https://api.test/x", True])
def test_what_is_no_text(api, url):
    """
    Something of another type is a TypeError.
    """
    with pytest.raises(TypeError):
        api(resource_metadata=url)
    with pytest.raises(TypeError):
        bearer_token("Bearer a", resource_metadata=url)
    with pytest.raises(TypeError):
        step_up_required("high").challenge(resource_metadata=url)


def test_verification_in_one_call_says_where_too(mint, wall_clock):
    """
    The one-call form takes the same option, and keeps APIs with other metadata apart.
    """
    usual = {"issuer": mint.issuer, "audience": mint.audience, "replay_store": None, "jwks": mint.jwks}
    told = []

    for url in (METADATA, None, METADATA):
        with pytest.raises(CustomerContextError) as refusal:
            verify_customer_context("a.b.c", **usual, now=wall_clock, resource_metadata=url)
        told.append("resource_metadata" in refusal.value.www_authenticate)

    assert told == [True, False, True]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_of_a_refusal_says_where(api, duplicate):
    """
    A refusal keeps the URL on its way to another process.
    """
    error = api(resource_metadata=METADATA).refusal("a.b.c")

    assert duplicate(error).www_authenticate == error.www_authenticate
