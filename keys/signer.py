"""
The face that signing shows to the rest of the service, so that a KMS or an HSM can stand behind it.
"""

from collections.abc import Mapping
from typing import Protocol

from .key import SigningKey, algorithm

__all__ = ["LocalSigner", "Signer"]


class Signer(Protocol):
    """
    Signs with one key whose private part it does not show.

    A signer signs what it is given; that only customer context tokens are given to it is the caller's part.
    """

    @property
    def kid(self) -> str:
        """
        The RFC 7638 thumbprint of the key.
        """
        ...

    @property
    def alg(self) -> str:
        """
        The JWS `alg` of the key.
        """
        ...

    @property
    def public_jwk(self) -> Mapping[str, str]:
        """
        The published form of the key.
        """
        ...

    async def sign(self, signing_input: bytes) -> bytes:
        """
        Sign; for ES256 the result is 64 octets, R then S, never DER (RFC 7518 section 3.4).
        """
        ...


class LocalSigner:
    """
    A `Signer` that holds its private key in memory and never waits; safe to share between threads.

    It costs one key import to make: make one a ring and keep it.
    """

    __slots__ = ("_alg", "_kid", "_public_jwk", "_sign")

    def __init__(self, key: SigningKey) -> None:
        """
        Take the key that signs.

        Raises:
            InvalidKey: when the private JWK is not a usable key.
        """
        self._kid, self._alg, self._public_jwk = key.kid, key.alg, key.public_jwk
        self._sign = algorithm(key.alg).load_private(key.private_jwk.reveal())

    @property
    def kid(self) -> str:
        """
        The RFC 7638 thumbprint of the key.
        """
        return self._kid

    @property
    def alg(self) -> str:
        """
        The JWS `alg` of the key.
        """
        return self._alg

    @property
    def public_jwk(self) -> Mapping[str, str]:
        """
        The published form of the key.
        """
        return self._public_jwk

    async def sign(self, signing_input: bytes) -> bytes:
        """
        Sign without waiting for anything; see `Signer.sign`.
        """
        return self._sign(signing_input)

    def __repr__(self) -> str:
        return f"LocalSigner(kid={self._kid!r}, alg={self._alg!r})"
