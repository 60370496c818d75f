"""
HTTP Basic credentials as OAuth has them: name and secret, each form-encoded before they were joined (RFC 6749 section 2.3.1).

Secrets are generated with high entropy and stored as plain SHA-256 digests; a slow hash would protect nothing and cost each call.
"""

import base64
import binascii
from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from .form import form_decode

__all__ = ["is_secret", "read_basic"]

_MAX_CREDENTIALS: Final = 2048
_NO_DIGEST: Final = (bytes(32),)


def read_basic(authorization: str) -> tuple[str, str]:
    """
    Read the name and the secret of an `Authorization` value.

    Raises:
        ValueError: for another scheme, and for everything that is not two non-empty form-encoded texts in base64; the message is
            `scheme` or `credentials`.
    """
    scheme, _, encoded = authorization.strip(" \t").partition(" ")
    if scheme.lower() != "basic" or len(encoded) > _MAX_CREDENTIALS:
        raise ValueError("scheme")
    try:
        name, colon, secret = base64.b64decode(encoded.strip(" "), validate=True).partition(b":")
        if name and colon and secret:
            return form_decode(name), form_decode(secret)
    except (binascii.Error, ValueError):
        pass
    raise ValueError("credentials")


def is_secret(secret: str, digests: Sequence[bytes]) -> bool:
    """
    Tell whether *secret* is one of those that have these SHA-256 digests; without any, it takes as long and is none.
    """
    presented = sha256(secret.encode()).digest()
    # Every digest is compared, so that the time does not tell which one was close.
    matches = [compare_digest(presented, digest) for digest in digests or _NO_DIGEST]
    return bool(digests) and any(matches)
