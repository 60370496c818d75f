"""
Compact JWS, taken apart strictly and without trusting any of it (RFC 7515 sections 5.2 and 7.1).

What comes out is an `UnverifiedToken`: a different type than anything verified, so that a type checker refuses a mix-up.
"""

import binascii
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeGuard

from .strict_json import StrictJSONError, loads_object

__all__ = [
    "MAX_TOKEN_LENGTH",
    "MalformedToken",
    "UnverifiedToken",
    "b64url_decode",
    "b64url_encode",
    "is_kid",
    "parse_compact",
]

MAX_TOKEN_LENGTH: Final = 8192
"""Longest token that is looked at, in characters (D20)."""

_MAX_HEADER_LENGTH: Final = 1024
_MAX_KID_LENGTH: Final = 128
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# The three characters of the standard alphabet that base64url lacks become one that the strict decoder refuses.
_TO_STANDARD: Final = bytes.maketrans(b"-_+/=", b"+/!!!")
_TO_URLSAFE: Final = bytes.maketrans(b"+/", b"-_")
# Final characters whose unused bits are zero, by length modulo 4 (RFC 4648 section 3.5); modulo 1 cannot occur.
_CANONICAL_LAST: Final = {0: _ALPHABET, 2: _ALPHABET[::16], 3: _ALPHABET[::4]}
_PADDING: Final = {0: b"", 2: b"==", 3: b"="}


class MalformedToken(ValueError):
    """
    Raised for text that is not a strictly formed compact JWS. The message never holds any of the text.
    """


class UnverifiedToken(NamedTuple):
    """
    The parts of a compact JWS of which nothing is known to be true yet.

    `kid` is guaranteed to be 1 to 128 printable ASCII characters when it is not None; `typ` and `alg` may be any JSON value.
    """

    typ: object
    alg: object
    kid: str | None
    claims: dict[str, Any]
    signing_input: bytes
    signature: bytes

    def __repr__(self) -> str:
        return "UnverifiedToken()"


class _Header(NamedTuple):
    typ: object
    alg: object
    kid: str | None


def b64url_encode(data: bytes) -> str:
    """
    Encode as base64url without padding (RFC 7515 section 2).
    """
    return binascii.b2a_base64(data, newline=False).translate(_TO_URLSAFE).rstrip(b"=").decode("ascii")


def b64url_decode(text: bytes) -> bytes:
    """
    Decode canonical base64url without padding; every octet string has exactly one accepted spelling.

    Raises:
        MalformedToken: for an empty text, a foreign character, padding, an impossible length or set spare bits.
    """
    remainder = len(text) % 4
    if not text or remainder == 1 or text[-1] not in _CANONICAL_LAST[remainder]:
        raise MalformedToken("not canonical base64url")
    try:
        return binascii.a2b_base64(text.translate(_TO_STANDARD) + _PADDING[remainder], strict_mode=True)
    except binascii.Error:
        raise MalformedToken("not base64url") from None


def is_kid(value: object) -> TypeGuard[str]:
    """
    Tell whether *value* is a `kid` that a token or a key may have: 1 to 128 printable ASCII characters (D19).
    """
    return isinstance(value, str) and 1 <= len(value) <= _MAX_KID_LENGTH and value.isascii() and value.isprintable()


def parse_compact(token: object, *, kid_required: bool = True, longest: int = MAX_TOKEN_LENGTH) -> UnverifiedToken:
    """
    Take a compact JWS apart; no signature is checked here.

    Guarantees: a str of at most *longest* ASCII characters, exactly three non-empty canonical base64url parts, header
    and payload each one strict JSON object (see `strict_json`), no `crit` (RFC 7515 section 4.1.11: nothing is understood here),
    no `b64` (RFC 7797), `kid` well formed. Key material named by the header (`jwk`, `jku`, `x5c`, `x5u`) is never looked at.

    Raises:
        MalformedToken: for anything else, of whatever type.
    """
    token = str.__str__(token) if isinstance(token, str) else ""  # a plain one, whatever a subclass says of itself
    if not token or len(token) > longest or not token.isascii():
        raise MalformedToken("not a compact token of acceptable size")
    parts = token.encode("ascii").split(b".")
    if len(parts) != 3:
        raise MalformedToken("not three parts")
    header = _parse_header(parts[0])
    if header.kid is None and kid_required:
        raise MalformedToken("no kid")
    signature = b64url_decode(parts[2])
    return UnverifiedToken(
        typ=header.typ,
        alg=header.alg,
        kid=header.kid,
        claims=_parse_object(parts[1]),
        signing_input=parts[0] + b"." + parts[1],
        signature=signature,
    )


# The tokens of one key all begin with the same octets, so a few remembered headers save a third of the parsing.
@lru_cache(maxsize=64)
def _parse_header(part: bytes) -> _Header:
    if len(part) > _MAX_HEADER_LENGTH:
        raise MalformedToken("header too large")
    header = _parse_object(part)
    if "crit" in header or "b64" in header:
        raise MalformedToken("critical header parameters are not understood")
    return _Header(header.get("typ"), header.get("alg"), _kid(header))


def _parse_object(part: bytes) -> dict[str, Any]:
    try:
        return loads_object(b64url_decode(part))
    except StrictJSONError:
        raise MalformedToken("header or payload is not one strict JSON object") from None


def _kid(header: dict[str, Any]) -> str | None:
    if "kid" not in header:
        return None
    kid = header["kid"]
    if not is_kid(kid):
        raise MalformedToken("kid is not 1 to 128 printable ASCII characters")
    return kid
