"""
Which keys of a provider's set are taken, and under which names tokens find them.
"""

import pytest

from issuer.id_token_signature import ID_TOKEN_ALGORITHMS
from issuer.provider_key_set import key_name, parse_provider_keys
from verifier.jwk import UnusableKeySet

from .provider import jwk, key_set, number
from .world import DROP

EVERY = frozenset(ID_TOKEN_ALGORITHMS)


def parsed(*entries, algorithms=EVERY):
    return parse_provider_keys(key_set(*entries), algorithms)


def unusable(body, algorithms=EVERY):
    with pytest.raises(UnusableKeySet) as caught:
        parse_provider_keys(body, algorithms)
    return caught.value


def test_keys_are_found_by_algorithm_and_kid():
    """
    Each key stands under its kid for each algorithm that it serves, and without a kid where no other key would do.
    """
    keys = parsed("rsa-1", "ec-1", "ec-2")

    assert set(keys) == {"PS256", "PS256 rsa-1", "RS256", "RS256 rsa-1", "ES256 ec-1", "ES256 ec-2"}
    assert keys[key_name("RS256", "rsa-1")] is keys[key_name("PS256", None)]
    assert dict(keys.ignored) == {}


def test_only_what_the_provider_may_sign_with_counts():
    """
    Where only RS256 is allowed, neither a key for ES256 nor one that is marked for PS256 gets in anyone's way.
    """
    keys = parsed("rsa-1", jwk("rsa-2", alg="PS256"), "ec-1", algorithms=frozenset({"RS256"}))

    assert set(keys) == {"RS256", "RS256 rsa-1"}
    assert keys["RS256"].algorithms == {"RS256"}
    assert dict(keys.ignored) == {"alg": 2}


def test_a_key_without_a_kid_serves_tokens_without_one():
    """
    It is found where it is the only one that fits, and never by a token that names a kid.
    """
    alone = parsed(jwk("rsa-1", kid=DROP), "ec-1")
    beside = parsed(jwk("rsa-1", kid=DROP), "rsa-2", algorithms=frozenset({"RS256"}))

    assert set(alone) == {"PS256", "RS256", "ES256", "ES256 ec-1"}
    assert set(beside) == {"RS256 rsa-2"}


def test_several_keys_that_nothing_tells_apart_are_no_set():
    """
    Every token would be refused, which is not what the provider meant.
    """
    assert str(unusable(key_set(jwk("rsa-1", kid=DROP), jwk("rsa-2", kid=DROP)))) == "several keys without a kid"


def test_a_kid_that_two_keys_share_is_unusable():
    """
    Whatever the twin is: another key, one for encryption, one of another type.
    """
    for twin in (jwk("rsa-2", kid="rsa-1"), jwk("rsa-2", kid="rsa-1", use="enc"), jwk("ec-2", kid="rsa-1")):
        assert "RS256 rsa-1" not in parsed("rsa-1", twin, "ec-1")


@pytest.mark.parametrize(
    ("fault", "entry"),
    [
        ("form", None),
        ("form", ["RSA"]),
        ("private", jwk("rsa-2", d="AA")),
        ("private", jwk("ec-2", d="AA")),
        ("private", {"kty": "oct", "k": "c2VjcmV0", "kid": "secret", "alg": "HS256"}),
        ("kty", {"kty": "oct", "kid": "secret", "alg": "HS256"}),
        ("kid", jwk("rsa-2", kid="")),
        ("kid", jwk("rsa-2", kid=7)),
        ("kid", jwk("rsa-2", kid="k" * 129)),
        ("use", jwk("rsa-2", use="enc")),
        ("use", jwk("rsa-2", use=None)),
        ("key_ops", jwk("rsa-2", key_ops=["wrapKey"])),
        ("alg", jwk("rsa-2", alg="RS384")),
        ("modulus", jwk("rsa1024-2")),
        ("modulus", jwk("rsa-2", n=number(2**9000 - 1))),
    ],
)
def test_an_entry_that_cannot_serve_spoils_no_other(fault, entry):
    """
    It is ignored and counted; a set that has nothing else is unusable.
    """
    keys = parsed("rsa-1", entry)

    assert set(keys) == {"PS256", "PS256 rsa-1", "RS256", "RS256 rsa-1"}
    assert dict(keys.ignored) == {fault: 1}
    assert unusable(key_set(entry)).ignored == {fault: 1}


def test_an_empty_set_withdraws_all_keys():
    """
    As in the verifier's sets.
    """
    assert len(parsed()) == 0


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"keys": {}}', b"<html>", b'{"keys": [], "keys": []}'])
def test_what_is_no_key_set_brings_no_keys(body):
    """
    A page with status 200 is none.
    """
    assert unusable(body).ignored == {}


REAL = {
    "Keycloak": [
        jwk("rsa-1", alg="RS256", x5c=["MIIC"], x5t="t"),
        jwk("rsa-2", alg="RSA-OAEP", use="enc", x5c=["MIIC"]),
    ],
    "Entra ID": [
        {**jwk(name), "x5t": name, "x5c": ["MIIC"], "cloud_instance_name": "microsoftonline.com", "issuer": "https://i"}
        for name in ("rsa-1", "rsa-2")
    ],
    "Google": [jwk("rsa-1", alg="RS256"), jwk("rsa-2", alg="RS256")],
    "oidc-provider": [jwk("rsa-1"), jwk("ec-1"), jwk("rsa-2", use="enc"), jwk("ec-2", use="enc")],
    "one key and no more": [jwk("rsa-1", kid=DROP, use=DROP)],
}


@pytest.mark.parametrize("name", REAL)
def test_sets_as_real_providers_publish_them(name):
    """
    Certificates, members of their own and keys for encryption beside the one that signs are no obstacle.
    """
    keys = parsed(*REAL[name], algorithms=frozenset({"RS256"}))

    assert keys.get("RS256 rsa-1", keys.get("RS256")).algorithms == {"RS256"}
