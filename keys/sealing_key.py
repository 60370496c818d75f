"""
The keys that seal rings at rest: how they are held, made, and read from files that only the service may read.
"""

import hmac
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .private_file import create_private_file, read_private_file
from .store_errors import FileUnwritable, SealingKeyFileInvalid

__all__ = [
    "MAX_SEALING_KEYS",
    "SealingKey",
    "SealingKeys",
    "generate_sealing_key",
    "is_sealing_key_id",
    "read_sealing_key",
    "write_sealing_key",
]

MAX_SEALING_KEYS: Final = 8

_SECRET_OCTETS: Final = 32
_DERIVED_OCTETS: Final = 32
_INFO: Final = b"customer-context:derived:v1"
_PURPOSE: Final = re.compile(r"[\x21-\x7e]{1,64}")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# 32 octets have exactly one spelling of 43 characters (RFC 4648 sections 3.5 and 5).
_TEXT: Final = re.compile(rb"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")


@dataclass(frozen=True, slots=True, eq=False)
class SealingKey:
    """
    A secret of 32 octets that rings are sealed with, under an id that says which one a ring needs.

    Raises:
        TypeError: when the secret is not bytes.
        ValueError: when the id is not 1 to 64 of A-Z, a-z, 0-9, `.`, `_`, `-`, or the secret has another length.
    """

    id: str
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not is_sealing_key_id(self.id):
            raise ValueError("a sealing key id is 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'")
        if not isinstance(self.secret, bytes):
            raise TypeError("a sealing key is made of bytes")
        if len(self.secret) != _SECRET_OCTETS:
            raise ValueError("a sealing key has 32 octets")

    def derive(self, purpose: str, workspace: str) -> bytes:
        """
        Derive a secret of 32 octets for one purpose and workspace (HKDF, RFC 5869).

        Secrets of other purposes or workspaces say nothing about it, nor do the keys that rings are sealed with.

        Raises:
            ValueError: when the purpose is not 1 to 64 visible ASCII characters, or the workspace has no ASCII name.
        """
        if not _PURPOSE.fullmatch(purpose):
            raise ValueError("a purpose is 1 to 64 visible ASCII characters")
        names = (purpose.encode("ascii"), workspace.encode("ascii"))
        info = b"\x00".join((_INFO, *(len(name).to_bytes(2, "big") + name for name in names)))
        return HKDF(algorithm=SHA256(), length=_DERIVED_OCTETS, salt=None, info=info).derive(self.secret)


class SealingKeys:
    """
    The configured sealing keys, in their order: the first seals, all open, so that one can follow another without a gap.

    Raises:
        ValueError: when there are none or more than `MAX_SEALING_KEYS`, or two share an id or a secret.
    """

    __slots__ = ("_keys",)

    def __init__(self, *keys: SealingKey) -> None:
        if not 1 <= len(keys) <= MAX_SEALING_KEYS:
            raise ValueError(f"1 to {MAX_SEALING_KEYS} sealing keys are needed")
        for number, key in enumerate(keys):
            for earlier in keys[:number]:
                if key.id == earlier.id or hmac.compare_digest(key.secret, earlier.secret):
                    raise ValueError("two sealing keys share an id or a secret")
        self._keys = keys

    @property
    def current(self) -> SealingKey:
        """
        The key that seals.
        """
        return self._keys[0]

    @property
    def ids(self) -> tuple[str, ...]:
        """
        The ids of all keys, the one that seals in front.
        """
        return tuple(key.id for key in self._keys)

    def find(self, key_id: str) -> SealingKey | None:
        """
        Return the key of that id, or None when it is not configured.
        """
        return next((key for key in self._keys if key.id == key_id), None)

    def __iter__(self) -> Iterator[SealingKey]:
        return iter(self._keys)

    def __repr__(self) -> str:
        return f"SealingKeys(ids={self.ids!r})"


def is_sealing_key_id(text: str) -> bool:
    """
    Tell whether *text* may name a sealing key: 1 to 64 of A-Z, a-z, 0-9, `.`, `_`, `-`, beginning with a letter or digit.
    """
    return _ID.fullmatch(text) is not None


def generate_sealing_key(key_id: str) -> SealingKey:
    """
    Make a new sealing key with the operating system's randomness.
    """
    return SealingKey(key_id, secrets.token_bytes(_SECRET_OCTETS))


def read_sealing_key(key_id: str, path: Path) -> SealingKey:
    """
    Read a sealing key from a file: 43 characters of base64url, at most one newline after them.

    The file may be a symbolic link, as mounted secrets are; what it points to must be private.

    Raises:
        SealingKeyFileInvalid: when it does not exist or holds anything else.
        LoosePermissions: when group or others have any permission on it.
        FileUnreadable: when it cannot be read.
    """
    try:
        content = read_private_file(path, limit=_SECRET_OCTETS * 4, follow_links=True)
    except FileNotFoundError:
        raise SealingKeyFileInvalid(path=path, problem="missing") from None
    text = content.removesuffix(b"\n")
    if not text:
        raise SealingKeyFileInvalid(path=path, problem="empty")
    if len(text) != 43:
        raise SealingKeyFileInvalid(path=path, problem="length")
    if not _TEXT.fullmatch(text):
        raise SealingKeyFileInvalid(path=path, problem="alphabet")
    return SealingKey(key_id, urlsafe_b64decode(text + b"="))


def write_sealing_key(path: Path, key: SealingKey) -> None:
    """
    Write a sealing key to a new file of mode 0600 in a folder that exists; an existing file is never replaced.

    Raises:
        SealingKeyFileInvalid: when the file exists already.
        FileUnwritable: when it cannot be written.
    """
    try:
        create_private_file(path, urlsafe_b64encode(key.secret).rstrip(b"=") + b"\n")
    except FileExistsError:
        raise SealingKeyFileInvalid(path=path, problem="exists") from None
    except OSError as error:
        raise FileUnwritable(path=path, problem=str(error.strerror), outcome="unchanged") from error
