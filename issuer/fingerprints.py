"""
Keyed hashes of what has to be recognised again and must not be guessed by whoever reads the store (D12).
"""

import hmac
from base64 import urlsafe_b64encode
from hashlib import sha256

from keys import SealingKeys

__all__ = ["Fingerprints", "framed", "keyed_name"]


class Fingerprints:
    """
    Hashes for one purpose, with secrets that are derived from the sealing keys for each workspace.
    """

    __slots__ = ("_purpose", "_sealing", "_secrets")

    def __init__(self, sealing: SealingKeys, purpose: str) -> None:
        """
        Take the sealing keys and what the hashes are for; those of another purpose are others.
        """
        self._sealing = sealing
        self._purpose = purpose
        # No more of them than workspaces are configured.
        self._secrets: dict[str, tuple[bytes, ...]] = {}

    def of(self, workspace: str, *parts: str) -> tuple[bytes, ...]:
        """
        Hash *parts* under every sealing key, the one that seals in front: what was hashed before a rotation is still known.
        """
        message = framed(*(part.encode() for part in parts))
        return tuple(hmac.digest(secret, message, sha256) for secret in self._secrets_of(workspace))

    def _secrets_of(self, workspace: str) -> tuple[bytes, ...]:
        known = self._secrets.get(workspace)
        if known is None:
            known = tuple(key.derive(self._purpose, workspace) for key in self._sealing)
            self._secrets[workspace] = known
        return known


def framed(*parts: bytes) -> bytes:
    """
    Join *parts*, each behind its length in 4 octets, so that none can lend octets to its neighbour.
    """
    return b"".join(len(part).to_bytes(4) + part for part in parts)


def keyed_name(key: bytes, *parts: str) -> bytes:
    """
    Return a name of 22 characters for *parts* that nobody can undo or guess who does not have the *key*.
    """
    message = framed(*(part.encode("utf-8", "surrogatepass") for part in parts))
    return urlsafe_b64encode(hmac.digest(key, message, sha256)[:16]).rstrip(b"=")
