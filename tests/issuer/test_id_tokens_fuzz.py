"""
Whatever arrives as an ID token or a logout token, it is verified or refused, and nothing else comes out.
"""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from issuer.id_token_signature import ID_TOKEN_ALGORITHMS
from issuer.id_tokens import IDTokenRefused, IDTokens, VerifiedIDToken, VerifiedLogoutToken
from issuer.provider_key_set import parse_provider_keys
from issuer.provider_keys import ProviderKeys
from verifier.compact import b64url_encode
from verifier.jwk import UnusableKeySet

from .provider import LOGOUT_EVENT, id_token, jwk, key_set, logout_token, provider, signed, workspace
from .world import NOW

EVERY = frozenset(ID_TOKEN_ALGORITHMS)
KEYS = parse_provider_keys(key_set("rsa-1", "ec-1", "ed-1"), EVERY)
TENANT = workspace(provider(algorithms=EVERY, keys=KEYS))
TOKENS = IDTokens(TENANT, ProviderKeys(), monotonic=lambda: 0.0)
GOOD = [maker(alg=alg) for maker in (id_token, logout_token) for alg in ID_TOKEN_ALGORITHMS]

odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(
        ["app-1", "app-2", "orc_main", provider().issuer, "logout+jwt", "RS256", LOGOUT_EVENT, NOW, NOW + 9]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
claims = [
    "iss",
    "aud",
    "azp",
    "sub",
    "sid",
    "exp",
    "iat",
    "nbf",
    "auth_time",
    "acr",
    "amr",
    "nonce",
    "events",
    "jti",
    "x",
]
members = ["alg", "kid", "typ", "crit", "b64", "jwk", "jku", "x5c", "zip", "enc", "cty"]


def outcome(token, nonce=None):
    """
    Return what a token is, each way it may be asked about; anything else than a refusal is an error of the test.
    """
    found = []
    client = TENANT.clients["orc_main"]
    for asked in (TOKENS.verify(token, client=client, nonce=nonce, now=NOW), TOKENS.verify_logout(token, NOW)):
        try:
            found.append(type(asyncio.run(asked)))
        except IDTokenRefused as refused:
            found.append(refused.reason)
    return found


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    maker=st.sampled_from([id_token, logout_token]),
    alg=st.sampled_from(ID_TOKEN_ALGORITHMS),
    changes=st.dictionaries(st.sampled_from(claims), odd, max_size=3),
    header=st.dictionaries(st.sampled_from(members), odd, max_size=2),
    nonce=st.none() | st.text(max_size=3),
)
def test_odd_claims_under_a_good_signature(maker, alg, changes, header, nonce):
    """
    A provider that signs nonsense is refused in closed words.
    """
    first, second = outcome(maker(alg=alg, header=header, **changes), nonce)

    assert first is VerifiedIDToken or isinstance(first, str)
    assert second is VerifiedLogoutToken or isinstance(second, str)


@settings(max_examples=400)
@given(token=st.sampled_from(GOOD), data=st.data())
def test_a_token_with_a_character_changed_is_refused(token, data):
    """
    Every character counts: there is one spelling of each token but for the signature's twin, which is none of these.
    """
    position = data.draw(st.integers(0, len(token) - 1))
    character = data.draw(st.characters(codec="ascii"))
    changed = token[:position] + character + token[position + 1 :]

    found = outcome(changed)

    assert changed == token or all(isinstance(each, str) for each in found)


@settings(max_examples=200)
@given(token=st.one_of(st.text(), st.binary(), st.none(), st.integers(), st.lists(st.text(), max_size=3)))
def test_what_is_no_token_is_malformed(token):
    """
    Whatever type it has.
    """
    assert outcome(token) == ["malformed", "malformed"]


@settings(max_examples=200)
@given(head=st.binary(max_size=40), body=st.binary(max_size=40), tail=st.binary(min_size=1, max_size=300))
def test_odd_octets_in_three_parts(head, body, tail):
    """
    Parts that decode to anything.
    """
    token = ".".join(b64url_encode(part) for part in (head, body, tail))

    assert all(isinstance(each, str) for each in outcome(token))


@settings(max_examples=200)
@given(body=st.binary(max_size=200))
def test_odd_payloads_under_a_good_signature(body):
    """
    What a provider signs need not be JSON.
    """
    assert all(isinstance(each, str) for each in outcome(signed(body)))


@settings(max_examples=150)
@given(
    name=st.sampled_from(["rsa-1", "ec-1", "ed-1"]),
    changes=st.dictionaries(
        st.sampled_from(["kty", "crv", "n", "e", "x", "y", "kid", "alg", "use", "key_ops", "d"]), odd
    ),
    more=st.lists(odd, max_size=2),
)
def test_odd_keys_are_taken_or_ignored(name, changes, more):
    """
    A set of keys is read or unusable, and what is read of it are keys.
    """
    body = json.dumps({"keys": [{**jwk(name), **changes}, *more]}).encode()

    try:
        keys = parse_provider_keys(body, EVERY)
    except UnusableKeySet:
        keys = {}

    assert all(key.algorithms & EVERY for key in keys.values())


@pytest.mark.parametrize("token", GOOD[:4])
def test_good_tokens_are_good_here_too(token):
    """
    What is mutated above is accepted as it is.
    """
    assert outcome(token)[0] is VerifiedIDToken
