"""
Rings at rest: a compact JWE (RFC 7516) that opens only as what it was sealed as; the doors to `joserfc` for JWE and to HKDF.

`dir` with `A256GCM`, and nothing else is ever read. The key is derived per workspace from the sealing key (HKDF, RFC 5869), so
that a blob of one workspace cannot open as another's. Workspace, revision, content type and sealing key id stand in the protected
header and are therefore authenticated. `kcv` there is a check value derived beside the key: it tells a wrong sealing key from a
damaged blob, and binds the blob to one key, which GCM by itself does not.
"""

import hmac
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey
from joserfc.registry import HeaderParameter

from .ring import KeyRing, check_workspace
from .ring_json import dump_ring, parse_ring
from .sealing_key import SealingKey, SealingKeys, is_sealing_key_id
from .store_errors import RingCorrupt, RingOfAnotherWorkspace, SealingKeyUnknown, SealingKeyWrong

__all__ = ["MAX_BLOB_OCTETS", "MAX_REVISION", "blob_sealing_key", "open_ring", "seal_ring"]

MAX_BLOB_OCTETS: Final = 512 * 1024
"""Largest sealed ring that is looked at; a ring with the longest history and the longest reasons stays below it."""

MAX_REVISION: Final = 2**53 - 1

_CONTENT_TYPE: Final = "caplo-ring+json"
_INFO: Final = b"customer-context:ring-sealing:v1"
_HEADER: Final = {"alg": str, "enc": str, "kid": str, "cty": str, "ws": str, "rev": int, "kcv": str}
_PART: Final = re.compile(rb"[A-Za-z0-9_-]*")
# 16 octets: the authentication tag, and the check value.
_TAG: Final = re.compile(rb"[A-Za-z0-9_-]{22}")
_MAX_HEADER_LENGTH: Final = 1024


class _Registry(jwe.JWERegistry):
    max_ciphertext_length = MAX_BLOB_OCTETS


_REGISTRY: Final = _Registry(algorithms=["dir", "A256GCM"])
_REGISTRY.header_registry = {
    name: HeaderParameter(name, "int" if kind is int else "str", required=True) for name, kind in _HEADER.items()
}


@dataclass(frozen=True, slots=True)
class _DerivedKey:
    key: OctKey
    check_value: str


def seal_ring(ring: KeyRing, *, revision: int, keys: SealingKeys) -> bytes:
    """
    Seal a ring with the current sealing key.

    Raises:
        SelfTestFailed: when a key of the ring does not work; such a ring is never stored.
        ValueError: when the revision is not 1 to 2^53 - 1.
    """
    if not 1 <= revision <= MAX_REVISION:
        raise ValueError("revision is out of range")
    ring.self_test()
    derived = _derive(keys.current, ring.workspace)
    header = {
        "alg": "dir",
        "enc": "A256GCM",
        "kid": keys.current.id,
        "cty": _CONTENT_TYPE,
        "ws": ring.workspace,
        "rev": revision,
        "kcv": derived.check_value,
    }
    return jwe.encrypt_compact(header, dump_ring(ring), derived.key, registry=_REGISTRY).encode("ascii")


def open_ring(blob: bytes, *, workspace: str, keys: SealingKeys, where: str) -> tuple[KeyRing, int]:
    """
    Open a sealed ring and test its keys; return it with its revision. *where* names its place in messages.

    Raises:
        RingCorrupt: when the blob is empty, too large, cut off, changed, or no sealed ring at all.
        RingOfAnotherWorkspace: when it was sealed for another workspace.
        SealingKeyUnknown, SealingKeyWrong: when it was sealed with a key that is not at hand; both say which.
        SelfTestFailed: when a key in it does not work.
    """
    header = _unverified_header(blob, where=where)
    if header["ws"] != workspace:
        raise RingOfAnotherWorkspace(where=where, expected=workspace, found=header["ws"])
    sealing_key = keys.find(header["kid"])
    if sealing_key is None:
        raise SealingKeyUnknown(where=where, needed=header["kid"], configured=keys.ids)
    derived = _derive(sealing_key, workspace)
    if not hmac.compare_digest(derived.check_value.encode(), header["kcv"].encode()):
        raise SealingKeyWrong(where=where, needed=sealing_key.id)
    try:
        opened = jwe.decrypt_compact(blob, derived.key, registry=_REGISTRY)
    except (JoseError, ValueError):
        raise RingCorrupt(where=where, problem="damaged") from None
    # joserfc decrypts with the very octets of the header as additional data: from here on the header is authenticated.
    ring = parse_ring(opened.plaintext or b"", where=where)
    if ring.workspace != workspace:
        raise RingOfAnotherWorkspace(where=where, expected=workspace, found=ring.workspace)
    ring.self_test()
    revision: int = opened.protected["rev"]
    return ring, revision


def blob_sealing_key(blob: bytes, *, where: str) -> str:
    """
    Return the id of the sealing key that a blob says it was sealed with; true only of one that opens.

    Raises:
        RingCorrupt: when it does not have the form of a sealed ring.
    """
    key_id: str = _unverified_header(blob, where=where)["kid"]
    return key_id


def _unverified_header(blob: bytes, *, where: str) -> dict[str, Any]:
    """
    Read the header of a blob that has the form of a sealed ring; nothing of it is known to be true yet.
    """
    if not blob:
        raise RingCorrupt(where=where, problem="empty")
    if len(blob) > MAX_BLOB_OCTETS:
        raise RingCorrupt(where=where, problem="too_large")
    parts = blob.split(b".")
    header = _header(parts[0])
    if header is None or len(parts) > 5 or not all(_PART.fullmatch(part) for part in parts):
        raise RingCorrupt(where=where, problem="not_sealed")
    if len(parts) < 5 or not _TAG.fullmatch(parts[4]):
        raise RingCorrupt(where=where, problem="truncated")
    return header


def _header(part: bytes) -> dict[str, Any] | None:
    if len(part) > _MAX_HEADER_LENGTH:
        return None
    try:
        header = json.loads(urlsafe_b64decode(part + b"=" * (-len(part) % 4)), object_pairs_hook=_members)
        check_workspace(header["ws"])
    except (ValueError, TypeError, RecursionError):
        return None
    fixed = (header["alg"], header["enc"], header["cty"]) == ("dir", "A256GCM", _CONTENT_TYPE)
    well_formed = is_sealing_key_id(header["kid"]) and _TAG.fullmatch(header["kcv"].encode("utf-8", "replace"))
    return header if fixed and well_formed and 1 <= header["rev"] <= MAX_REVISION else None


def _members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs) or {name: type(value) for name, value in pairs} != _HEADER:
        raise ValueError("not the header of a sealed ring")
    return members


def _derive(sealing_key: SealingKey, workspace: str) -> _DerivedKey:
    name = workspace.encode("ascii")
    info = _INFO + b"\x00" + len(name).to_bytes(2, "big") + name
    octets = HKDF(algorithm=SHA256(), length=48, salt=None, info=info).derive(sealing_key.secret)
    check_value = urlsafe_b64encode(octets[32:]).rstrip(b"=").decode("ascii")
    return _DerivedKey(OctKey.import_key(octets[:32]), check_value)
