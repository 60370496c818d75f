"""
ES256 signatures are checked exactly, and `joserfc` as an independent second opinion agrees (RFC 7518 section 3.4).
"""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jws
from joserfc.errors import BadSignatureError
from joserfc.jwk import ECKey

from verifier.compact import b64url_decode, b64url_encode
from verifier.es256 import signature_is_valid

N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
PRIVATE = ec.derive_private_key(20261130, ec.SECP256R1())
PUBLIC = PRIVATE.public_key()
JOSE_KEY = ECKey.import_key(
    {
        "kty": "EC",
        "crv": "P-256",
        "x": b64url_encode(PUBLIC.public_numbers().x.to_bytes(32)),
        "y": b64url_encode(PUBLIC.public_numbers().y.to_bytes(32)),
        "d": b64url_encode((20261130).to_bytes(32)),
    }
)
SIGNED = jws.serialize_compact({"alg": "ES256"}, b"payload", JOSE_KEY, algorithms=["ES256"])
SIGNING_INPUT = SIGNED.rpartition(".")[0].encode()
SIGNATURE = b64url_decode(SIGNED.rpartition(".")[2].encode())
R, S = int.from_bytes(SIGNATURE[:32]), int.from_bytes(SIGNATURE[32:])


def octets(r: int, s: int) -> bytes:
    """
    Write R then S, each in 32 octets.
    """
    return r.to_bytes(32) + s.to_bytes(32)


def second_opinion(signing_input: bytes, signature: bytes) -> bool:
    """
    Ask joserfc.
    """
    try:
        jws.deserialize_compact(
            signing_input + b"." + b64url_encode(signature).encode(), JOSE_KEY, algorithms=["ES256"]
        )
    except BadSignatureError:
        return False
    return True


@pytest.mark.parametrize("signature", [SIGNATURE, octets(R, N - S)], ids=["as_signed", "twin"])
def test_a_valid_signature_holds(signature):
    """
    A signature that joserfc made holds, and so does its twin (r, n-s): ECDSA knows both, which is why replay goes by jti.
    """
    assert signature_is_valid(PUBLIC, SIGNING_INPUT, signature)
    assert second_opinion(SIGNING_INPUT, signature)


@pytest.mark.parametrize(
    "signature",
    [
        b"",
        SIGNATURE[:63],
        SIGNATURE + b"\0",
        b"\0" + SIGNATURE,
        SIGNATURE * 2,
        encode_dss_signature(R, S),
        SIGNATURE[::-1],
        SIGNATURE[:31:-1] + SIGNATURE[31::-1],
        octets(S, R),
        octets(0, 0),
        octets(0, S),
        octets(R, 0),
        octets(N, S),
        octets(R, N),
        octets(1, 1),
        octets(N - 1, 1),
        b"\xff" * 64,
    ],
    ids=range(17),
)
def test_other_octets_are_no_signature(signature):
    """
    Other lengths, DER, other orders of octets and numbers out of range are no signature, and nothing is raised.
    """
    assert signature_is_valid(PUBLIC, SIGNING_INPUT, signature) is False
    assert not second_opinion(SIGNING_INPUT, signature)


@given(st.integers(0, 511))
def test_every_bit_counts(bit):
    """
    A signature with any one bit turned is none.
    """
    turned = (int.from_bytes(SIGNATURE) ^ (1 << bit)).to_bytes(64)

    assert not signature_is_valid(PUBLIC, SIGNING_INPUT, turned)


def test_the_key_and_the_text_count():
    """
    A signature holds for one key and one text only.
    """
    other = ec.derive_private_key(2, ec.SECP256R1()).public_key()

    assert not signature_is_valid(other, SIGNING_INPUT, SIGNATURE)
    assert not signature_is_valid(PUBLIC, SIGNING_INPUT + b"x", SIGNATURE)


@settings(max_examples=50)
@given(st.binary(min_size=64, max_size=64) | st.binary(max_size=80))
def test_any_octets_get_the_same_answer_twice(signature):
    """
    Ours and joserfc's answer agree for any octets.
    """
    assert signature_is_valid(PUBLIC, SIGNING_INPUT, signature) is second_opinion(SIGNING_INPUT, signature)
