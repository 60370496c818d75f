"""
One signing key: made, named by its thumbprint, imported, exported and tested; the door to `joserfc` for JWKs.

The algorithm is a property of the key and of the allow-list `ALGORITHMS`, so that a second one is an entry there, not a rewrite.
"""

import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NoReturn

from joserfc.errors import JoseError
from joserfc.jwk import ECKey
from joserfc.jwk import thumbprint as _jwk_thumbprint

from .errors import InvalidKey, SelfTestFailed
from .es256 import Sign, Verify, signing_function, verifying_function

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "PrivateJWK",
    "SigningKey",
    "algorithm",
    "check_pair",
    "check_public_jwk",
    "generate_key",
    "import_private_jwk",
    "thumbprint",
]

_SELF_TEST: Final = b"customer-context:self-test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """
    A signature algorithm that keys may have.

    Attributes:
        name: the JWS `alg`.
        public_members: the members that make the public JWK, those of the thumbprint (RFC 7638 section 3.2).
        private_members: the members that a private JWK has beside them.
        generate: makes the members of a new private JWK.
        load_private: turns the members of a private JWK into a signing function; raises `InvalidKey`.
        load_public: turns the members of a public JWK into a verifying function; raises `InvalidKey`.
    """

    name: str
    public_members: tuple[str, ...]
    private_members: tuple[str, ...]
    generate: Callable[[], Mapping[str, str]]
    load_private: Callable[[Mapping[str, str]], Sign]
    load_public: Callable[[Mapping[str, str]], Verify]


class PrivateJWK:
    """
    A private JWK that shows itself only when asked to: not in repr, str or a traceback's locals, and it cannot be pickled.
    """

    __slots__ = ("_octets",)

    def __init__(self, members: Mapping[str, str]) -> None:
        self._octets = json.dumps(dict(members), sort_keys=True).encode()

    def reveal(self) -> dict[str, str]:
        """
        Return the members, the private ones too; keep the result out of everything but the sealed ring.
        """
        members: dict[str, str] = json.loads(self._octets)
        return members

    def __repr__(self) -> str:
        return "PrivateJWK(...)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivateJWK):
            return NotImplemented
        return hmac.compare_digest(self._octets, other._octets)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key is neither copied nor pickled")


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """
    A key pair that passed its self-test: the published form, and the private JWK that only the sealed ring may hold.

    `public_jwk` has exactly the public members of the algorithm, `use`, `alg` and `kid`; `kid` is the RFC 7638 thumbprint.
    """

    kid: str
    alg: str
    public_jwk: Mapping[str, str]
    private_jwk: PrivateJWK


def algorithm(name: str) -> Algorithm:
    """
    Return the algorithm of that name from the allow-list.

    Raises:
        InvalidKey: when it is not on the list.
    """
    found = ALGORITHMS.get(name)
    if found is None:
        raise InvalidKey("the algorithm is not on the allow-list")
    return found


def generate_key(alg: str = "ES256") -> SigningKey:
    """
    Make a new key with the operating system's randomness and test it.
    """
    return _signing_key(algorithm(alg), algorithm(alg).generate())


def import_private_jwk(jwk: Mapping[str, object], *, alg: str = "ES256") -> SigningKey:
    """
    Import a private JWK; of `use`, `alg` and `kid` those that are there must say what the key is going to say.

    Raises:
        InvalidKey: for missing, unknown or malformed members, and when the private part is not that of the public part.
    """
    chosen = algorithm(alg)
    needed = {*chosen.public_members, *chosen.private_members}
    if not needed <= jwk.keys() <= needed | {"use", "alg", "kid"}:
        raise InvalidKey("members are missing or unknown")
    members = {name: value for name, value in jwk.items() if isinstance(value, str)}
    if len(members) != len(jwk):
        raise InvalidKey("a member is not a string")
    key = _signing_key(chosen, members)
    if any(key.public_jwk[name] != value for name, value in members.items() if name in key.public_jwk):
        raise InvalidKey("use, alg or kid does not belong to this key")
    return key


def thumbprint(jwk: Mapping[str, str], *, alg: str = "ES256") -> str:
    """
    Return the RFC 7638 SHA-256 thumbprint of a public or private JWK; other members than the required ones do not count.
    """
    return _jwk_thumbprint({name: jwk[name] for name in algorithm(alg).public_members})


def check_public_jwk(jwk: Mapping[str, str], *, kid: str, alg: str) -> Mapping[str, str]:
    """
    Return a read-only copy of a published JWK that has exactly the members it may have, in their order.

    The point is not looked at here; `check_pair` and `Algorithm.load_public` do that.

    Raises:
        InvalidKey: for any other members, values that are no strings, another `use`, `alg` or `kid`.
    """
    names = (*algorithm(alg).public_members, "use", "alg", "kid")
    if set(jwk) != set(names) or not all(isinstance(value, str) for value in jwk.values()):
        raise InvalidKey("the public JWK has missing, unknown or malformed members")
    if (jwk["use"], jwk["alg"], jwk["kid"]) != ("sig", alg, kid):
        raise InvalidKey("use, alg or kid of the public JWK does not belong to this key")
    return MappingProxyType({name: jwk[name] for name in names})


def check_pair(public_jwk: Mapping[str, str], private_jwk: PrivateJWK | None, *, kid: str, alg: str) -> None:
    """
    Test a key: its kid is its thumbprint, its public form loads and, where the private part is there, the one fits the other.

    The pair is tested by signing with the private part and verifying with the published form.

    Raises:
        SelfTestFailed: when one of these does not hold.
    """
    chosen = algorithm(alg)
    try:
        if thumbprint(public_jwk, alg=alg) != kid:
            raise SelfTestFailed(kid=kid, problem="its kid is not the thumbprint of its public part")
        verify = chosen.load_public(public_jwk)
        if private_jwk is not None and not verify(_SELF_TEST, chosen.load_private(private_jwk.reveal())(_SELF_TEST)):
            raise SelfTestFailed(kid=kid, problem="it does not sign for its published part")
    except InvalidKey as error:
        raise SelfTestFailed(kid=kid, problem=str(error)) from None


def _signing_key(chosen: Algorithm, members: Mapping[str, str]) -> SigningKey:
    kid = thumbprint(members, alg=chosen.name)
    public_members = {name: members[name] for name in chosen.public_members}
    public_jwk = {**public_members, "use": "sig", "alg": chosen.name, "kid": kid}
    private_jwk = PrivateJWK({**public_jwk, **{name: members[name] for name in chosen.private_members}})
    try:
        check_pair(public_jwk, private_jwk, kid=kid, alg=chosen.name)
    except SelfTestFailed as error:
        raise InvalidKey(error.problem) from None
    return SigningKey(kid=kid, alg=chosen.name, public_jwk=MappingProxyType(public_jwk), private_jwk=private_jwk)


# 32 octets with leading zeros kept and no spare bits set; joserfc takes shorter ones, which changes the thumbprint
# (RFC 7518 section 6.2.1.2).
_FULL_SIZE: Final = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")


def _p256_key(jwk: Mapping[str, str], *names: str) -> ECKey:
    if (jwk["kty"], jwk["crv"]) != ("EC", "P-256"):
        raise InvalidKey("it is not an EC key on P-256")
    if not all(_FULL_SIZE.fullmatch(jwk[name]) for name in names):
        raise InvalidKey("a coordinate is not 32 octets in 43 characters of base64url")
    members: dict[str, Any] = {"kty": "EC", "crv": "P-256", **{name: jwk[name] for name in names}}
    try:
        return ECKey.import_key(members)
    except (JoseError, ValueError):
        raise InvalidKey("the numbers are not a key: the point or the private part does not fit") from None


def _load_es256_private(jwk: Mapping[str, str]) -> Sign:
    return signing_function(_p256_key(jwk, "x", "y", "d").get_op_key("sign"))


def _load_es256_public(jwk: Mapping[str, str]) -> Verify:
    return verifying_function(_p256_key(jwk, "x", "y").public_key)


def _generate_es256() -> dict[str, str]:
    members = ECKey.generate_key("P-256").as_dict(private=True)
    return {name: str(members[name]) for name in ("kty", "crv", "x", "y", "d")}


ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {
        "ES256": Algorithm(
            name="ES256",
            public_members=("kty", "crv", "x", "y"),
            private_members=("d",),
            generate=_generate_es256,
            load_private=_load_es256_private,
            load_public=_load_es256_public,
        )
    }
)
"""The algorithms that keys may have (D14)."""
