"""
ES256 signatures: 64 octets, deterministic, and loud where they cannot be.
"""

import logging

import pytest
from cryptography.hazmat.backends.openssl import backend
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from keys import DETERMINISTIC_SIGNATURES, es256

KEY = ec.derive_private_key(0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721, ec.SECP256R1())


@pytest.mark.parametrize(
    ("message", "r", "s"),
    [
        (
            b"sample",
            "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
            "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
        ),
        (
            b"test",
            "F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367",
            "019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083",
        ),
    ],
)
def test_signatures_are_those_of_rfc_6979(message, r, s):
    """
    The P-256 and SHA-256 vectors of RFC 6979 appendix A.2.5 come out, the second with a leading zero kept.
    """
    signature = es256.signing_function(KEY)(message)

    assert DETERMINISTIC_SIGNATURES
    assert signature.hex().upper() == r + s


def test_signatures_are_64_octets_and_repeat():
    """
    2000 signatures are 64 octets each, whatever leading zeros R and S have; signing again gives the same octets.
    """
    sign = es256.signing_function(KEY)

    signatures = [sign(b"%d" % number) for number in range(2000)]

    assert {len(signature) for signature in signatures} == {64}
    assert sign(b"7") == signatures[7]
    assert any(signature[0] == 0 or signature[32] == 0 for signature in signatures)


def test_a_changed_signature_does_not_verify():
    """
    Other data, other octets, DER and 63 or 65 octets are no valid signature.
    """
    verify, signature = es256.verifying_function(KEY.public_key()), es256.signing_function(KEY)(b"data")

    assert verify(b"data", signature)
    assert not verify(b"Data", signature)
    assert not verify(b"data", bytes(64))
    assert not verify(b"data", signature[:-1])
    assert not verify(b"data", signature + b"\x00")
    assert not verify(b"data", KEY.sign(b"data", ec.ECDSA(SHA256())))


def test_a_platform_without_deterministic_signatures_says_so(monkeypatch, caplog):
    """
    Where OpenSSL cannot sign deterministically, every new signer warns and signs with a random nonce.
    """
    monkeypatch.setattr(type(backend), "ecdsa_deterministic_supported", lambda self: False)
    scheme, deterministic = es256._preferred_scheme()
    monkeypatch.setattr(es256, "_SCHEME", scheme)
    monkeypatch.setattr(es256, "DETERMINISTIC_SIGNATURES", deterministic)

    with caplog.at_level(logging.WARNING, logger="keys"):
        sign = es256.signing_function(KEY)

    assert not deterministic
    assert "RFC 6979" in caplog.text
    assert sign(b"data") != sign(b"data")
    assert es256.verifying_function(KEY.public_key())(b"data", sign(b"data"))
