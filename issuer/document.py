"""
A body that is encoded once and served many times, with the strong validator that goes with it (RFC 9110 section 8.8.3).
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Self

__all__ = ["Document", "is_not_modified"]

_ENTITY_TAG: Final = re.compile(r'(?:W/)?("[\x21\x23-\x7E\x80-\xFF]*")')


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """
    The bytes of a body and their strong entity tag, quotes included; equal bytes have equal tags in every process.
    """

    body: bytes
    etag: str

    @classmethod
    def of(cls, body: bytes) -> Self:
        """
        Build the document for *body*; its tag is a hash of the bytes.
        """
        digest = urlsafe_b64encode(sha256(body).digest()).rstrip(b"=").decode()
        return cls(body=body, etag=f'"{digest}"')


def is_not_modified(if_none_match: Iterable[str], etag: str) -> bool:
    """
    Tell whether the lines of `If-None-Match` name *etag* or `*` (RFC 9110 section 13.1.2: weak comparison).

    Text that is no list of entity tags names nothing, so the answer is then sent in full.
    """
    lines = tuple(if_none_match)
    return any(line.strip() == "*" for line in lines) or any(etag in _ENTITY_TAG.findall(line) for line in lines)
