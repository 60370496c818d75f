"""
Keys that never change: for tests, for offline use, and for those who bring the issuer's keys by another way.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from .errors import CustomerContextError
from .es256 import PublicKey
from .jwk import UnusableKeySet, parse_key_set

__all__ = ["FixedKeySource"]


class FixedKeySource:
    """
    A fixed key set without any network, for both verifiers.
    """

    def __init__(self, jwks: Mapping[str, Any] | bytes | str, *, denied_kids: Collection[str] = ()) -> None:
        """
        Take a JWK Set as a mapping or as JSON text.

        Raises:
            ValueError: for a set without any usable key, `UnusableKeySet` among them.
            TypeError: for a mapping that is no JSON object.
        """
        if isinstance(jwks, bytes):
            body = jwks
        else:
            body = (jwks if isinstance(jwks, str) else json.dumps(dict(jwks), allow_nan=False)).encode("utf-8")
        self._key_set = parse_key_set(body)
        if not self._key_set:
            raise UnusableKeySet("a fixed key set needs a key")
        self._denied_kids = frozenset(denied_kids)

    def key(self, kid: str) -> PublicKey:
        """
        Return the key for *kid*.

        Raises:
            CustomerContextError: (`key`) for a denied or unknown `kid`.
        """
        key = self._key_set.by_kid.get(kid)
        if key is None or kid in self._denied_kids:
            raise CustomerContextError("key")
        return key

    def used(self, kid: str) -> None:
        """
        Do nothing: a fixed set does not change.
        """

    def refresh(self) -> None:
        """
        Do nothing: a fixed set does not change.
        """

    def close(self) -> None:
        """
        Do nothing: a fixed set holds nothing open.
        """

    def state(self) -> Mapping[str, Any]:
        """
        Show the set as JSON-able values.
        """
        return {
            "url": None,
            "kids": sorted(self._key_set),
            "denied_kids": sorted(self._denied_kids),
            "ignored": dict(self._key_set.ignored),
        }
