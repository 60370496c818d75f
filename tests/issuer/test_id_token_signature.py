"""
Keys of identity providers one by one, and signatures by the four algorithms, each signed without joserfc.
"""

import warnings

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from issuer.id_token_signature import ID_TOKEN_ALGORITHMS, UnusableKey, import_provider_key, signature_is_valid
from verifier.compact import b64url_encode

from .provider import ALGORITHMS, jwk, number, signature, signing_key
from .world import DROP

EVERY = frozenset(ID_TOKEN_ALGORITHMS)
INPUT = b"eyJhbGciOiJ4In0.e30"
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
# Only the numbers are looked at; nobody has a key of such sizes at hand.
MODULI = {2047: "modulus", 2048: None, 8192: None, 8193: "modulus"}


def fault(entry, allowed=EVERY):
    with pytest.raises(UnusableKey) as caught:
        import_provider_key(entry, allowed)
    return str(caught.value)


@pytest.mark.parametrize("alg", ID_TOKEN_ALGORITHMS)
def test_a_signature_holds_for_what_was_signed_and_nothing_else(alg):
    """
    Each algorithm accepts the signature of the key's holder; another input, another key or one changed octet is refused.
    """
    name = ALGORITHMS[alg]
    key = import_provider_key(jwk(f"{name}-1"), EVERY)
    other = import_provider_key(jwk(f"{name}-2"), EVERY)
    good = signature(alg, f"{name}-1", INPUT)
    turned = bytes([good[0] ^ 1, *good[1:]])

    assert signature_is_valid(key, alg, INPUT, good)
    assert not signature_is_valid(key, alg, INPUT + b"x", good)
    assert not signature_is_valid(other, alg, INPUT, good)
    assert not any(
        signature_is_valid(key, alg, INPUT, bad) for bad in (turned, good[:-1], good + b"\0", b"", b"\0" * 64)
    )


def test_no_algorithm_is_taken_for_another():
    """
    A signature by RS256 is none by PS256, nor the other way about, though the key is the same; other kinds of keys serve neither.
    """
    key = import_provider_key(jwk("rsa-1"), EVERY)
    others = [import_provider_key(jwk(name), EVERY) for name in ("ec-1", "ed-1")]
    signatures = {alg: signature(alg, "rsa-1", INPUT) for alg in ("RS256", "PS256")}

    assert [signature_is_valid(key, alg, INPUT, signatures[alg]) for alg in signatures] == [True, True]
    assert not signature_is_valid(key, "RS256", INPUT, signatures["PS256"])
    assert not signature_is_valid(key, "PS256", INPUT, signatures["RS256"])
    assert not any(signature_is_valid(other, alg, INPUT, made) for other in others for alg, made in signatures.items())


@pytest.mark.parametrize("alg", ["RS256", "PS256", "none", "HS256", "RS384", "ES384", "", "es256"])
def test_a_key_serves_for_its_own_algorithms_only(alg):
    """
    Whatever a token says, a key of P-256 checks ES256, and its public octets are no secret of an HMAC.
    """
    key = import_provider_key(jwk("ec-1"), EVERY)
    secret = signature("HS256", b"".join(each.to_bytes(32) for each in key.material), INPUT)

    assert not signature_is_valid(key, alg, INPUT, secret)
    assert not signature_is_valid(key, alg, INPUT, signature("ES256", "ec-1", INPUT))


def test_the_twin_of_an_es256_signature_holds_too():
    """
    (r, n - s) is the same signature spelt differently; so what is used once is told by what was signed.
    """
    key, good = import_provider_key(jwk("ec-1"), EVERY), signature("ES256", "ec-1", INPUT)
    twin = good[:32] + (ORDER - int.from_bytes(good[32:])).to_bytes(32)

    assert twin != good
    assert signature_is_valid(key, "ES256", INPUT, twin)


def test_checking_warns_of_nothing():
    """
    The library warns of EdDSA each time it is asked for it, which no log of a service needs.
    """
    key = import_provider_key(jwk("ed-1"), EVERY)

    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert signature_is_valid(key, "EdDSA", INPUT, signature("EdDSA", "ed-1", INPUT))


@pytest.mark.parametrize(
    ("name", "alg", "serves"),
    [
        ("rsa-1", DROP, {"RS256", "PS256"}),
        ("rsa-1", "RS256", {"RS256"}),
        ("rsa-1", "PS256", {"PS256"}),
        ("ec-1", DROP, {"ES256"}),
        ("ec-1", "ES256", {"ES256"}),
        ("ed-1", DROP, {"EdDSA"}),
        ("ed-1", "EdDSA", {"EdDSA"}),
    ],
)
def test_a_key_says_what_it_serves_for(name, alg, serves):
    """
    By its type, narrowed to its `alg` where it has one, and to what the provider is allowed.
    """
    entry = jwk(name, alg=alg)

    assert import_provider_key(entry, EVERY).algorithms == serves
    assert import_provider_key(entry, frozenset(serves)).algorithms == serves
    assert fault(entry, EVERY - serves) == "alg"


@pytest.mark.parametrize(
    ("expected", "entry"),
    [
        ("kty", {"kty": "oct", "k": "c2VjcmV0"}),
        ("kty", jwk("rsa-1", kty="rsa")),
        ("kty", jwk("rsa-1", kty=DROP)),
        ("kty", jwk("rsa-1", kty=["RSA"])),
        ("crv", jwk("ec-1", crv="P-384")),
        ("crv", jwk("ec-1", crv="secp256k1")),
        ("crv", jwk("ec-1", crv=DROP)),
        ("crv", jwk("ec-1", crv=["P-256"])),
        ("crv", jwk("ed-1", crv="Ed448")),
        ("crv", jwk("ed-1", crv="X25519")),
        ("alg", jwk("rsa-1", alg="RS512")),
        ("alg", jwk("rsa-1", alg="RSA-OAEP")),
        ("alg", jwk("rsa-1", alg="ES256")),
        ("alg", jwk("rsa-1", alg="HS256")),
        ("alg", jwk("rsa-1", alg="none")),
        ("alg", jwk("rsa-1", alg=None)),
        ("alg", jwk("rsa-1", alg=["RS256"])),
        ("alg", jwk("ed-1", alg="Ed25519")),
        ("modulus", jwk("rsa-1", n=DROP)),
        ("modulus", jwk("rsa-1", n=5)),
        ("modulus", jwk("rsa-1", n="")),
        ("modulus", jwk("rsa-1", n="ä" * 342)),
        ("modulus", jwk("rsa-1", n="A" * 342)),
        ("modulus", jwk("rsa-1", n=jwk("rsa-1")["n"] + "=")),
        ("modulus", jwk("rsa1024-1")),
        ("exponent", jwk("rsa-1", e=DROP)),
        ("exponent", jwk("rsa-1", e=number(1))),
        ("exponent", jwk("rsa-1", e=number(65536))),
        ("exponent", jwk("rsa-1", e=number(2**32 + 1))),
        ("exponent", jwk("rsa-1", e="AQAB" * 3)),
        ("exponent", jwk("rsa-1", e=65537)),
        ("coordinates", jwk("ec-1", x=DROP)),
        ("coordinates", jwk("ec-1", y="AA")),
        ("coordinates", jwk("ed-1", x=DROP)),
        ("coordinates", jwk("ed-1", x=b64url_encode(bytes(33)))),
        ("point", jwk("ec-1", y=jwk("ec-2")["y"])),
    ],
)
def test_what_is_no_key_to_verify_with_is_refused(expected, entry):
    """
    Symmetric keys, other curves and algorithms, numbers out of bounds: each by its own word.
    """
    assert fault(entry) == expected


@pytest.mark.parametrize("bits", MODULI)
def test_a_modulus_is_bounded_on_both_sides(bits):
    """
    A short one can be factored, and a long one is work that a token can be made to cost.
    """
    entry = jwk("rsa-1", n=number(2**bits - 1))

    if MODULI[bits]:
        assert fault(entry) == MODULI[bits]
    else:
        assert import_provider_key(entry, EVERY).algorithms == {"RS256", "PS256"}


def test_a_leading_zero_octet_changes_no_number():
    """
    Some libraries write a modulus with its sign (RFC 7518 section 6.3.1.1); it is the same key.
    """
    raw = signing_key("rsa-1").public_key().public_numbers().n.to_bytes(257)

    key = import_provider_key(jwk("rsa-1", n=b64url_encode(raw)), EVERY)

    assert signature_is_valid(key, "RS256", INPUT, signature("RS256", "rsa-1", INPUT))
    assert key.material == import_provider_key(jwk("rsa-1"), EVERY).material


def test_material_tells_keys_apart_whatever_they_are_called():
    """
    The same numbers are the same key under another kid or `alg`; nothing of it shows in a repr.
    """
    keys = [import_provider_key(jwk(name), EVERY) for name in ("rsa-1", "rsa-2", "ec-1", "ec-2", "ed-1", "ed-2")]
    renamed = import_provider_key(jwk("rsa-1", kid="other", alg="PS256"), EVERY)

    assert len({key.material for key in keys}) == 6
    assert renamed.material == keys[0].material
    assert "material" not in repr(keys[0])
    assert isinstance(signing_key("rsa-1"), rsa.RSAPrivateKey)
