"""
What a store of rings promises, wherever it keeps them.
"""

import re
from typing import Final, Protocol

from .ring import KeyRing
from .sealing_key import SealingKeys

__all__ = ["KeyStore", "SealedStore", "check_label"]

_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class KeyStore(Protocol):
    """
    Keeps the ring of one workspace; every change names the revision it was made from, so that none is lost.
    """

    async def load(self) -> tuple[KeyRing, int]:
        """
        Return the ring and its revision, 1 or more.

        Raises:
            StoreError, SealingKeyError, SelfTestFailed: when there is no ring that can be used.
        """
        ...

    async def save(self, ring: KeyRing, *, expect: int) -> int:
        """
        Store *ring* when the stored revision is *expect*, and return the new revision; 0 creates and never replaces.

        Raises:
            RevisionConflict: when another revision is stored.
            StoreError, SealingKeyError, SelfTestFailed: when what is stored cannot be read, or *ring* cannot be written.
        """
        ...


class SealedStore(KeyStore, Protocol):
    """
    A key store that also hands out and takes in the sealed ring as it is.
    """

    @property
    def workspace(self) -> str:
        """
        The workspace whose ring it keeps.
        """
        ...

    @property
    def where(self) -> str:
        """
        Its place in words, for messages.
        """
        ...

    @property
    def sealing(self) -> SealingKeys:
        """
        The keys that it seals and opens with.
        """
        ...

    async def read_blob(self) -> bytes:
        """
        Return what is stored, whether or not it opens.

        Raises:
            RingMissing: when nothing is.
            StoreError: when it cannot be read.
        """
        ...

    async def write_blob(self, blob: bytes, *, expect: int) -> int:
        """
        Store a sealed ring that was saved elsewhere, when the stored revision is *expect*, and return its own revision.

        What is stored is opened first and left alone when it does not open, as in `save`; 0 creates and never replaces.

        Raises:
            RevisionConflict: when another revision is stored.
            StoreError, SealingKeyError, SelfTestFailed: when one of the two does not open, or the store cannot be written.
            ValueError: when the revision of *blob* is not later than *expect*.
        """
        ...

    async def set_aside(self, label: str) -> str:
        """
        Take what is stored out of its place, whether or not it opens, keep it under another name, and return that name.

        Raises:
            RingMissing: when nothing is stored.
            StoreError: when it cannot be moved, because the name is taken, say.
            ValueError: when *label* is not 1 to 64 of A-Z, a-z, 0-9, `.`, `_`, `-`.
        """
        ...


def check_label(label: str) -> str:
    """
    Return *label* when it may stand in the name of something that was set aside.

    Raises:
        ValueError: when it may not.
    """
    if not _LABEL.fullmatch(label):
        raise ValueError("a label is 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', not beginning with a sign")
    return label
