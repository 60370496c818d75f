"""
The one door to joserfc for what identity providers sign: single public keys, and RS256, ES256, PS256 and EdDSA (RFC 7518, 8037).

Of joserfc only the arithmetic is used. It reads headers leniently, takes symmetric and private keys and picks keys by itself, so
headers, claims and the choice of a key are ours, and what it is given has been looked at before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from verifier.compact import MalformedToken, b64url_decode
from verifier.jwk import is_coordinate

__all__ = [
    "ID_TOKEN_ALGORITHMS",
    "IDTokenAlgorithm",
    "ProviderKey",
    "UnusableKey",
    "import_provider_key",
    "signature_is_valid",
]

IDTokenAlgorithm = Literal["RS256", "ES256", "PS256", "EdDSA"]
"""What a provider may sign with; there is neither HS256 nor none to configure."""

ID_TOKEN_ALGORITHMS: Final[tuple[IDTokenAlgorithm, ...]] = get_args(IDTokenAlgorithm)

_MIN_MODULUS_BITS: Final = 2048
_MAX_MODULUS_BITS: Final = 8192
# 8192 bits in base64url, and a leading zero octet that some libraries write.
_MAX_MODULUS_CHARACTERS: Final = 1368
_MAX_EXPONENT: Final = 2**32
# Looked up once: later changes of the library's registry change nothing, and it warns of EdDSA each time it is asked.
_MODELS: Final = {name: JWSRegistry.algorithms[name] for name in ID_TOKEN_ALGORITHMS}


class UnusableKey(ValueError):
    """
    Raised for an entry of a JWK Set that is no key to verify with; the message is its fault, one closed word.
    """


@dataclass(frozen=True, slots=True, eq=False)
class ProviderKey:
    """
    One public key of an identity provider.

    `algorithms` are those that it serves for. `material` tells it from every other key, whatever either is called.
    """

    algorithms: frozenset[IDTokenAlgorithm]
    material: object = field(repr=False)
    _key: RSAKey | ECKey | OKPKey = field(repr=False)


def signature_is_valid(key: ProviderKey, algorithm: IDTokenAlgorithm, signing_input: bytes, signature: bytes) -> bool:
    """
    Tell whether *signature* is a valid signature of *signing_input* by *key*, which serves for *algorithm*.
    """
    return algorithm in key.algorithms and _MODELS[algorithm].verify(signing_input, signature, key._key)  # noqa: SLF001


def import_provider_key(jwk: Mapping[str, Any], allowed: frozenset[IDTokenAlgorithm]) -> ProviderKey:
    """
    Import RSA of 2048 to 8192 bits, EC on P-256 or OKP on Ed25519, for those of its algorithms that are *allowed*.

    Nothing but type, curve, `alg` and the public numbers is looked at here.

    Raises:
        UnusableKey: for everything else, and for a key that serves for none of these algorithms.
    """
    kty, crv = jwk.get("kty"), jwk.get("crv")
    try:
        if kty == "RSA":
            return ProviderKey(_serving(jwk, allowed, "RS256", "PS256"), *_rsa(jwk))
        if (kty, crv) == ("EC", "P-256"):
            return ProviderKey(_serving(jwk, allowed, "ES256"), *_ec(jwk))
        if (kty, crv) == ("OKP", "Ed25519"):
            return ProviderKey(_serving(jwk, allowed, "EdDSA"), *_ed25519(jwk))
    except UnusableKey:
        raise
    except (JoseError, ValueError, TypeError, KeyError):
        raise UnusableKey("point") from None
    raise UnusableKey("crv" if kty in ("EC", "OKP") else "kty")


def _serving(
    jwk: Mapping[str, Any], allowed: frozenset[IDTokenAlgorithm], *possible: IDTokenAlgorithm
) -> frozenset[IDTokenAlgorithm]:
    serving = frozenset(name for name in possible if jwk.get("alg", name) == name) & allowed
    if not serving:
        raise UnusableKey("alg")
    return serving


def _rsa(jwk: Mapping[str, Any]) -> tuple[object, RSAKey]:
    modulus = _number(jwk, "n", _MAX_MODULUS_CHARACTERS, "modulus")
    if not _MIN_MODULUS_BITS <= modulus.bit_length() <= _MAX_MODULUS_BITS:
        raise UnusableKey("modulus")
    exponent = _number(jwk, "e", 8, "exponent")
    if not (3 <= exponent < _MAX_EXPONENT and exponent % 2):
        raise UnusableKey("exponent")
    return ("RSA", modulus, exponent), RSAKey.import_key({"kty": "RSA", "n": jwk["n"], "e": jwk["e"]})


def _number(jwk: Mapping[str, Any], name: str, longest: int, fault: str) -> int:
    text = jwk.get(name)
    if not isinstance(text, str) or len(text) > longest or not text.isascii():
        raise UnusableKey(fault)
    try:
        return int.from_bytes(b64url_decode(text.encode("ascii")))
    except MalformedToken:
        raise UnusableKey(fault) from None


def _ec(jwk: Mapping[str, Any]) -> tuple[object, ECKey]:
    if not (is_coordinate(jwk.get("x")) and is_coordinate(jwk.get("y"))):
        raise UnusableKey("coordinates")
    key = ECKey.import_key({"kty": "EC", "crv": "P-256", "x": jwk["x"], "y": jwk["y"]})
    numbers = key.public_key.public_numbers()
    return (numbers.x, numbers.y), key


def _ed25519(jwk: Mapping[str, Any]) -> tuple[object, OKPKey]:
    if not is_coordinate(jwk.get("x")):
        raise UnusableKey("coordinates")
    return ("Ed25519", jwk["x"]), OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": jwk["x"]})
