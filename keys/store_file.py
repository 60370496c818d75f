"""
The store of rings on one machine's disk.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from .private_file import (
    exclusive_lock,
    make_private_folder,
    move_private_file,
    read_private_file,
    replace_private_file,
)
from .ring import KeyRing, check_workspace
from .sealing import MAX_BLOB_OCTETS, open_ring, seal_ring
from .sealing_key import SealingKeys
from .store import check_label
from .store_errors import RevisionConflict, RingMissing, RingRolledBack
from .transfer_errors import NameTaken

__all__ = ["FileKeyStore"]

_T = TypeVar("_T")

# A step decides its instants before it is saved. Waiting for less than the ring lease keeps them true when it is.
_LOCK_TIMEOUT_S: Final = 10.0


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

    @property
    def workspace(self) -> str:
        """
        The workspace whose ring it keeps.
        """
        return self._workspace

    @property
    def where(self) -> str:
        """
        The path of the file.
        """
        return str(self._path)

    @property
    def sealing(self) -> SealingKeys:
        """
        The keys that it seals and opens with.
        """
        return self._sealing

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

        def sealed() -> bytes:
            return seal_ring(ring, revision=expect + 1, keys=self._sealing)

        return await asyncio.to_thread(self._write, sealed, expect, expect + 1)

    async def read_blob(self) -> bytes:
        """
        Return the content of the file; see `SealedStore.read_blob`.

        Raises:
            RingMissing: when there is no file.
            LoosePermissions, FileUnreadable: when the file is not private or cannot be read.
        """
        return await asyncio.to_thread(self._read)

    async def write_blob(self, blob: bytes, *, expect: int) -> int:
        """
        Store a sealed ring as it is; see `SealedStore.write_blob`.

        Raises:
            RevisionConflict, RingMissing, FileUnwritable, StoreBusy: as `save` does.
            RingCorrupt, RingOfAnotherWorkspace, SealingKeyUnknown, SealingKeyWrong, SelfTestFailed: when it does not open.
            ValueError: when its revision is not later than *expect*.
        """
        where = f"the ring for {self.where}"
        _, revision = open_ring(blob, workspace=self._workspace, keys=self._sealing, where=where)
        if not 0 <= expect < revision:
            raise ValueError("the revision of the ring is not later than the expected one")
        return await asyncio.to_thread(self._write, lambda: blob, expect, revision)

    async def set_aside(self, label: str) -> str:
        """
        Rename the file to `<name>.<label>`; see `SealedStore.set_aside`.

        Raises:
            RingMissing: when there is no file.
            NameTaken: when there is something of the other name.
            FileUnwritable: when it cannot be renamed.
            StoreBusy: when another process keeps the lock.
        """
        aside = self._path.with_name(f"{self._path.name}.{check_label(label)}")
        try:
            await asyncio.to_thread(self._locked, lambda: move_private_file(self._path, aside))
        except FileExistsError:
            raise NameTaken(where=self.where, name=str(aside)) from None
        return str(aside)

    async def stamp(self) -> tuple[int, int, int, int] | None:
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
        ring, revision = open_ring(self._read(), workspace=self._workspace, keys=self._sealing, where=self.where)
        if revision < seen:
            raise RingRolledBack(where=self.where, found=revision, seen=seen)
        self._seen = max(self._seen, revision)
        return ring, revision

    def _read(self) -> bytes:
        try:
            return read_private_file(self._path, limit=MAX_BLOB_OCTETS)
        except FileNotFoundError:
            raise RingMissing(where=self.where, workspace=self._workspace) from None

    def _write(self, make: Callable[[], bytes], expect: int, revision: int) -> int:
        if expect == 0:
            make_private_folder(self._path.parent)
        return self._locked(lambda: self._write_locked(make, expect, revision))

    def _locked(self, work: Callable[[], _T]) -> _T:
        try:
            with exclusive_lock(self._lock_path, timeout_s=_LOCK_TIMEOUT_S):
                return work()
        except FileNotFoundError:
            raise RingMissing(where=self.where, workspace=self._workspace) from None

    def _write_locked(self, make: Callable[[], bytes], expect: int, revision: int) -> int:
        found = self._stored_revision(expect)
        if found != expect:
            raise RevisionConflict(where=self.where, expected=expect, found=found)
        replace_private_file(self._path, make())
        self._seen = max(self._seen, revision)
        return revision

    def _stored_revision(self, expect: int) -> int:
        try:
            return self._load()[1]
        except RingMissing:
            if expect == 0:
                return 0
            raise
