"""
Which entries of an identity provider's JWK Set are taken, and under which names tokens find them (RFC 7517 section 5).

Providers publish keys for encryption and for other algorithms beside those that sign ID tokens, and some have no `kid`. Here an
entry that cannot serve is ignored and counted by its fault, as in the verifier's sets.
"""

from functools import partial
from types import MappingProxyType

from verifier.compact import is_kid
from verifier.jwk import (
    KeySet,
    UnusableKeySet,
    collect_keys,
    is_for_signatures,
    is_for_verifying,
    is_public,
)

from .id_token_signature import IDTokenAlgorithm, ProviderKey, UnusableKey, import_provider_key

__all__ = ["key_name", "parse_provider_keys"]


def key_name(algorithm: IDTokenAlgorithm, kid: str | None) -> str:
    """
    Return the name under which a set holds the key of a token with this `alg` and `kid`.

    The algorithm is part of it, so that no token finds a key of another kind than its own, and tokens without a `kid` find the
    only key of theirs.
    """
    return algorithm if kid is None else f"{algorithm} {kid}"


def parse_provider_keys(body: bytes, algorithms: frozenset[IDTokenAlgorithm]) -> KeySet[ProviderKey]:
    """
    Read a JWK Set of a provider that signs with *algorithms*; a key stands under the name of each way to find it.

    Ignored: private members, `oct` and other types, `use` other than sig, `key_ops` without verify, an `alg` that is another one,
    numbers out of bounds, and each `kid` that two entries name (see `collect_keys`). A token without a `kid` finds its key only
    where exactly one fits its algorithm (OpenID Connect Core 1.0 section 10.1).

    Raises:
        UnusableKeySet: for a document that brings no keys, or several that no `kid` tells apart.
    """
    keys, ignored = collect_keys(body, partial(_examine, algorithms=algorithms))
    named: dict[str, ProviderKey] = {}
    for algorithm in sorted(algorithms):
        fitting = [(kid, key) for kid, key in keys if algorithm in key.algorithms]
        named |= {key_name(algorithm, kid): key for kid, key in fitting if kid is not None}
        if len(fitting) == 1:
            named[key_name(algorithm, None)] = fitting[0][1]
    if keys and not named:
        raise UnusableKeySet("several keys without a kid")
    return KeySet(MappingProxyType(named), ignored)


def _examine(jwk: object, algorithms: frozenset[IDTokenAlgorithm]) -> tuple[str | None, ProviderKey] | str:
    if type(jwk) is not dict:
        return "form"
    if not is_public(jwk):
        return "private"
    if "kid" in jwk and not is_kid(jwk["kid"]):
        return "kid"
    if not is_for_signatures(jwk):
        return "use"
    if not is_for_verifying(jwk):
        return "key_ops"
    try:
        return jwk.get("kid"), import_provider_key(jwk, algorithms)
    except UnusableKey as fault:
        return str(fault)
