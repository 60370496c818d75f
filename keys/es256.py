"""
ES256 made and checked with `cryptography` directly: signing is the hot path of every mint (RFC 7518 section 3.4).

Signatures are deterministic (RFC 6979), so that a weak random generator cannot give a key away. A build of OpenSSL that cannot
do so signs with a random nonce instead, says so in the log for every signer it makes, and `DETERMINISTIC_SIGNATURES` is False:
that is the one documented exception, and the wheels of `cryptography` do not need it.
"""

import logging
from collections.abc import Callable
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

__all__ = ["DETERMINISTIC_SIGNATURES", "Sign", "Verify", "signing_function", "verifying_function"]

Sign = Callable[[bytes], bytes]
"""Signs octets; for ES256 the result is 64 octets, R then S, never DER."""

Verify = Callable[[bytes, bytes], bool]
"""Tells whether its second argument is a valid signature of its first."""

_LOG: Final = logging.getLogger("keys")
_OCTETS: Final = 32


def _preferred_scheme() -> tuple[ec.ECDSA, bool]:
    try:
        return ec.ECDSA(SHA256(), deterministic_signing=True), True
    except UnsupportedAlgorithm:
        return ec.ECDSA(SHA256()), False


_SCHEME, DETERMINISTIC_SIGNATURES = _preferred_scheme()


def signing_function(key: ec.EllipticCurvePrivateKey) -> Sign:
    """
    Return the function that signs with *key*.
    """
    if not DETERMINISTIC_SIGNATURES:
        _LOG.warning("this build of OpenSSL cannot sign deterministically (RFC 6979): ES256 uses random nonces")
    der_signature, scheme = key.sign, _SCHEME

    def sign(data: bytes) -> bytes:
        # SEQUENCE, length, INTEGER, length, r, INTEGER, length, s: on P-256 every length fits in its one octet. An integer has a
        # zero in front when its first bit is set, and is shorter when it begins with zeros.
        der = der_signature(data, scheme)
        s_at = 4 + der[3]
        r, s = der[4:s_at], der[s_at + 2 :]
        return r[-_OCTETS:].rjust(_OCTETS, b"\0") + s[-_OCTETS:].rjust(_OCTETS, b"\0")

    return sign


def verifying_function(key: ec.EllipticCurvePublicKey) -> Verify:
    """
    Return the function that checks signatures made for *key*.
    """

    def verify(data: bytes, signature: bytes) -> bool:
        if len(signature) != 2 * _OCTETS:
            return False
        r, s = int.from_bytes(signature[:_OCTETS], "big"), int.from_bytes(signature[_OCTETS:], "big")
        try:
            key.verify(encode_dss_signature(r, s), data, _SCHEME)
        except InvalidSignature:
            return False
        return True

    return verify
