"""
Where rings are kept: the protocol of a key store, and the store on one machine's disk.
"""

import asyncio
from pathlib import Path
from typing import Final, Protocol

from .private_file import exclusive_lock, make_private_folder, read_private_file, replace_private_file
from .ring import KeyRing, check_workspace
from .sealing import MAX_BLOB_OCTETS, open_ring, seal_ring
from .sealing_key import SealingKeys
from .store_errors import RevisionConflict, RingMissing, RingRolledBack

__all__ = ["FileKeyStore", "KeyStore"]

# A step decides its instants before it is saved. Waiting for less than the ring lease keeps them true when it is.
_LOCK_TIMEOUT_S: Final = 10.0


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


class FileKeyStore:
    """
    Keeps the ring in one sealed file of mode 0600, beside it `<name>.lock` and, while it is being written, `<name>.tmp`.

    Guarantees: a crash at any moment leaves the old ring or the new one, whole; a file that cannot be opened is never
    replaced; of several processes that save from one revision exactly one succeeds; a ring older than one that this
    object has seen is refused. Files are read and written in threads, off the event loop. A save whose caller is
    cancelled still ends, one way or the other.

    It needs a local file system with working `flock`; several machines need a shared store instead.
    """

    def __init__(self, path: Path, workspace: str, sealing: SealingKeys) -> None:
        """
        Name the file, the workspace whose ring it holds and the keys that seal it; nothing is opened yet.

        Raises:
            ValueError: when the workspace name is not one.
        """
        self._path = path
        self._workspace = check_workspace(workspace)
        self._sealing = sealing
        self._lock_path = path.with_name(path.name + ".lock")
        self._seen = 0

    @property
    def path(self) -> Path:
        """
        The file that holds the ring.
        """
        return self._path

    async def load(self) -> tuple[KeyRing, int]:
        """
        Return the ring and its revision; see `KeyStore.load`.

        Raises:
            RingMissing: when there is no file.
            LoosePermissions, FileUnreadable: when the file is not private or cannot be read.
            RingCorrupt, RingOfAnotherWorkspace, RingRolledBack: when it is not the ring that belongs here.
            SealingKeyUnknown, SealingKeyWrong: when it was sealed with another key.
            SelfTestFailed: when a key in it does not work.
        """
        return await asyncio.to_thread(self._load)

    async def save(self, ring: KeyRing, *, expect: int) -> int:
        """
        Store the ring; see `KeyStore.save`. What is there is opened first, and left alone when it does not open.

        Raises:
            RevisionConflict: when another revision is stored, or one at all and *expect* is 0.
            RingMissing: when none is stored and *expect* is not 0.
            FileUnwritable: when the disk or the folder does not let it; `outcome` says what the file holds.
            StoreBusy: when another process keeps the lock.
            ValueError: when the ring is of another workspace or *expect* is negative.
        """
        if ring.workspace != self._workspace:
            raise ValueError("the ring belongs to another workspace")
        if expect < 0:
            raise ValueError("expect is a revision, or 0 to create")
        return await asyncio.to_thread(self._save, ring, expect)

    def stamp(self) -> tuple[int, int, int, int] | None:
        """
        Return a value that changes whenever the file does, from one `stat` and without opening it; None when that fails.

        Take it before `load`, so that a change in between is seen the next time. It is quick enough for the event loop.
        """
        try:
            status = self._path.lstat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def _load(self) -> tuple[KeyRing, int]:
        # Another thread may see a later revision while this one reads: only what was seen before counts.
        seen = self._seen
        try:
            blob = read_private_file(self._path, limit=MAX_BLOB_OCTETS)
        except FileNotFoundError:
            raise RingMissing(where=str(self._path), workspace=self._workspace) from None
        ring, revision = open_ring(blob, workspace=self._workspace, keys=self._sealing, where=str(self._path))
        if revision < seen:
            raise RingRolledBack(where=str(self._path), found=revision, seen=seen)
        self._seen = max(self._seen, revision)
        return ring, revision

    def _save(self, ring: KeyRing, expect: int) -> int:
        if expect == 0:
            make_private_folder(self._path.parent)
        try:
            with exclusive_lock(self._lock_path, timeout_s=_LOCK_TIMEOUT_S):
                return self._save_locked(ring, expect)
        except FileNotFoundError:
            raise RingMissing(where=str(self._path), workspace=self._workspace) from None

    def _save_locked(self, ring: KeyRing, expect: int) -> int:
        found = self._stored_revision(expect)
        if found != expect:
            raise RevisionConflict(where=str(self._path), expected=expect, found=found)
        blob = seal_ring(ring, revision=expect + 1, keys=self._sealing)
        replace_private_file(self._path, blob)
        self._seen = max(self._seen, expect + 1)
        return expect + 1

    def _stored_revision(self, expect: int) -> int:
        try:
            return self._load()[1]
        except RingMissing:
            if expect == 0:
                return 0
            raise
