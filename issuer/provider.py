"""
The identity provider where the customers of a connection sign in, as frozen facts that its tokens are held against.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from verifier.jwk import KeySet
from verifier.levels import Level

from .id_token_signature import ID_TOKEN_ALGORITHMS, IDTokenAlgorithm, ProviderKey

__all__ = ["Provider"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """
    The identity provider where the customers of a connection sign in (OpenID Connect Core 1.0 section 3.1.3.7).

    `issuer` is its `iss`, compared code point by code point. `clients` has our client for each client id that the provider
    knows: that client, and no other, may bring tokens issued to that id. `algorithms` are those it may sign with; `keys` its
    fixed key set, None when its keys are found by discovery. `acr` maps its `acr` values, `amr` complete sets of its `amr`
    values; what is not mapped is low. A sign-in is good for `sign_in_lifetime_s` seconds.

    Raises:
        ValueError: without a client, or for algorithms that are none or others than `ID_TOKEN_ALGORITHMS`.
    """

    issuer: str
    clients: Mapping[str, str]
    algorithms: frozenset[IDTokenAlgorithm] = frozenset({"RS256"})
    keys: KeySet[ProviderKey] | None = field(default=None, repr=False)
    acr: Mapping[str, Level] = field(default_factory=dict)
    amr: Mapping[frozenset[str], Level] = field(default_factory=dict)
    sign_in_lifetime_s: int = 28_800

    def __post_init__(self) -> None:
        if not self.clients:
            raise ValueError("an identity provider knows at least one client")
        if not self.algorithms or not self.algorithms.issubset(ID_TOKEN_ALGORITHMS):
            raise ValueError("an identity provider signs with some of the known algorithms")
        for name in ("clients", "acr", "amr"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
