"""
ES256 signatures checked with `cryptography` directly: the hot path of every verification (RFC 7518 section 3.4).

The tests hold `joserfc` against it as an independent second opinion.
"""

from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

__all__ = ["ALGORITHM", "PublicKey", "signature_is_valid"]

ALGORITHM: Final = "ES256"
"""The one algorithm that is accepted; an allow-list of its own, never derived from what the issuer signs with (D14)."""

PublicKey = ec.EllipticCurvePublicKey
"""A public key on P-256, already known to be a point of the curve."""

_ECDSA_SHA256: Final = ec.ECDSA(SHA256())
_OCTETS: Final = 64


def signature_is_valid(key: PublicKey, signing_input: bytes, signature: bytes) -> bool:
    """
    Tell whether *signature*, 64 octets R then S, is a valid ES256 signature of *signing_input* by *key*.
    """
    if len(signature) != _OCTETS:
        return False
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    try:
        key.verify(encode_dss_signature(r, s), signing_input, _ECDSA_SHA256)
    except InvalidSignature:
        return False
    return True
