"""
Public keys as they arrive in a JWK Set, taken one by one and strictly (RFC 7517 section 5, RFC 7518 section 6.2.1).

`joserfc` gives up on a whole set for one odd member and takes private and symmetric keys; here an entry that cannot serve is
ignored, counted by its fault and does not spoil its neighbours. This is the only place where keys enter the verifier.
`collect_keys` also serves those to whom other kinds of keys are usable.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar

from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from .compact import MalformedToken, b64url_decode, is_kid
from .es256 import ALGORITHM, PublicKey
from .strict_json import StrictJSONError, loads_object

__all__ = [
    "MAX_DOCUMENT_OCTETS",
    "MAX_KEYS",
    "Fault",
    "KeySet",
    "UnusableKeySet",
    "collect_keys",
    "import_public_key",
    "is_coordinate",
    "is_for_signatures",
    "is_for_verifying",
    "is_public",
    "parse_key_set",
]

MAX_DOCUMENT_OCTETS: Final = 65536
"""Largest JWK Set document that is read, in octets after content decoding (D19)."""

MAX_KEYS: Final = 256
"""Most entries of one set; a larger set is unusable as a whole (D19)."""

Fault = Literal["form", "private", "kty", "crv", "kid", "alg", "use", "key_ops", "coordinates", "point", "shared_kid"]
"""Why an entry of a set is ignored."""

_Key = TypeVar("_Key")
_Key_co = TypeVar("_Key_co", covariant=True)
_Kid = TypeVar("_Kid", bound=str | None)

_COORDINATE_LENGTH: Final = 43
_PUBLIC_MEMBERS: Final = ("kty", "crv", "x", "y")
# RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1, and `priv` of the algorithm key pairs (AKP).
_PRIVATE_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"})


class UnusableKeySet(ValueError):
    """
    Raised for a document that is not a JWK Set, or whose every entry is unusable. The message never holds any of the document.

    Attributes:
        ignored: how many entries were ignored for which fault; empty when the document is no JWK Set at all.
    """

    ignored: Mapping[str, int]

    def __init__(self, text: str, ignored: Mapping[str, int] = MappingProxyType({})) -> None:
        """
        Say in *text*, in words of our own, what is wrong.
        """
        super().__init__(text)
        self.ignored = ignored


@dataclass(frozen=True, slots=True, eq=False)
class KeySet(Mapping[str, _Key_co]):
    """
    The usable keys of a JWK Set by their `kid`, and how many entries were ignored for which fault.
    """

    by_kid: Mapping[str, _Key_co]
    ignored: Mapping[str, int]

    def __getitem__(self, kid: str) -> _Key_co:
        return self.by_kid[kid]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_kid)

    def __len__(self) -> int:
        return len(self.by_kid)


def import_public_key(jwk: object) -> tuple[str, PublicKey] | None:
    """
    Import one entry of a JWK Set that is usable for ES256: its `kid` and the key, a point of the curve.

    Returns None for everything else (D19, "Ignored keys"): not an EC key on P-256, a coordinate that is not 32 octets in
    canonical base64url, a point off the curve, a `kid` that is not 1 to 128 printable ASCII characters, an `alg` other than
    ES256, a `use` other than `sig`, `key_ops` without `verify`, or a private member: a key that was published with its
    private part is compromised. Unknown members are ignored (RFC 7517 section 4).
    """
    examined = _examine(jwk)
    return examined if isinstance(examined, tuple) else None


def parse_key_set(body: bytes) -> KeySet[PublicKey]:
    """
    Read a JWK Set document (RFC 7517 section 5); entries that `import_public_key` would not take are ignored.

    Raises:
        UnusableKeySet: for a document that brings no keys, see `collect_keys`.
    """
    keys, ignored = collect_keys(body, _examine)
    return KeySet(MappingProxyType(dict(keys)), ignored)


def collect_keys(
    body: bytes, examine: Callable[[object], tuple[_Kid, _Key] | str]
) -> tuple[list[tuple[_Kid, _Key]], Mapping[str, int]]:
    """
    Read a JWK Set document, and return its usable keys and how many entries were ignored for which fault.

    *examine* takes one entry and returns its `kid` and the key, or its fault. A `kid` that two entries name, usable or not, is
    unusable: nobody can tell which of them is meant. `{"keys": []}` is a valid, empty set: the issuer withdrew all keys.

    Raises:
        UnusableKeySet: for more than 64 KiB or 256 entries, for anything but one strict JSON object with an array `keys`, and
            for a set that is not empty but has no usable entry.
    """
    entries = _entries(body)
    named = Counter(entry["kid"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("kid"), str))
    keys: list[tuple[_Kid, _Key]] = []
    ignored: Counter[str] = Counter()
    for entry in entries:
        examined = examine(entry)
        if isinstance(examined, str):
            ignored[examined] += 1
        elif examined[0] is not None and named[examined[0]] > 1:
            ignored["shared_kid"] += 1
        else:
            keys.append(examined)
    if entries and not keys:
        faults = ", ".join(f"{fault}: {count}" for fault, count in sorted(ignored.items()))
        raise UnusableKeySet(f"no entry is usable ({faults})", MappingProxyType(ignored))
    return keys, MappingProxyType(ignored)


def is_public(jwk: Mapping[str, Any]) -> bool:
    """
    Tell whether a key has no private member, of whatever type it is: one that was published with it is compromised.
    """
    return _PRIVATE_MEMBERS.isdisjoint(jwk)


def is_for_signatures(jwk: Mapping[str, Any]) -> bool:
    """
    Tell whether `use` allows signatures, as it does where it is absent (RFC 7517 section 4.2).
    """
    return bool(jwk.get("use", "sig") == "sig")


def is_for_verifying(jwk: Mapping[str, Any]) -> bool:
    """
    Tell whether `key_ops` allows verifying, as it does where it is absent (RFC 7517 section 4.3).
    """
    operations = jwk.get("key_ops", ["verify"])
    return isinstance(operations, list) and all(isinstance(name, str) for name in operations) and "verify" in operations


def is_coordinate(value: object) -> bool:
    """
    Tell whether *value* is 32 octets in canonical base64url, as a coordinate on P-256 or Ed25519 is written.
    """
    if not isinstance(value, str) or len(value) != _COORDINATE_LENGTH or not value.isascii():
        return False
    try:
        b64url_decode(value.encode("ascii"))
    except MalformedToken:
        return False
    return True


def _entries(body: bytes) -> list[Any]:
    if len(body) > MAX_DOCUMENT_OCTETS:
        raise UnusableKeySet("larger than 64 KiB")
    try:
        entries = loads_object(body).get("keys")
    except StrictJSONError:
        raise UnusableKeySet("not one strict JSON object") from None
    if not isinstance(entries, list):
        raise UnusableKeySet("no array named keys")
    if len(entries) > MAX_KEYS:
        raise UnusableKeySet("more than 256 entries")
    return entries


# In this order; members that may be absent are given an acceptable value in that case (RFC 7517 section 4).
_RULES: Final[tuple[tuple[Fault, Callable[[dict[str, Any]], bool]], ...]] = (
    ("private", is_public),
    ("kty", lambda jwk: jwk.get("kty") == "EC"),
    ("crv", lambda jwk: jwk.get("crv") == "P-256"),
    ("kid", lambda jwk: is_kid(jwk.get("kid"))),
    ("alg", lambda jwk: jwk.get("alg", ALGORITHM) == ALGORITHM),
    ("use", is_for_signatures),
    ("key_ops", is_for_verifying),
    ("coordinates", lambda jwk: is_coordinate(jwk.get("x")) and is_coordinate(jwk.get("y"))),
)


def _examine(jwk: object) -> tuple[str, PublicKey] | Fault:
    if type(jwk) is not dict:
        return "form"
    for fault, is_met in _RULES:
        if not is_met(jwk):
            return fault
    try:
        key = ECKey.import_key({name: jwk[name] for name in _PUBLIC_MEMBERS}).public_key
    except (JoseError, ValueError, TypeError, KeyError):
        return "point"
    return jwk["kid"], key
