"""
Files that only the service may read, written so that a crash at any moment leaves the old content or the new one, whole.

POSIX promises that `rename` is atomic, not that it is durable or that the data is on the disk before it; hence the two `fsync`.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from .store_errors import FileUnreadable, FileUnwritable, LoosePermissions, StoreBusy

__all__ = [
    "create_private_file",
    "exclusive_lock",
    "make_private_folder",
    "move_private_file",
    "read_private_file",
    "replace_private_file",
]

_OTHERS: Final = 0o077
_POLL_S: Final = 0.01


def read_private_file(path: Path, *, limit: int, follow_links: bool = False) -> bytes:
    """
    Read at most *limit* + 1 octets of a regular file on which group and others have no permission.

    Raises:
        FileNotFoundError: when it does not exist.
        LoosePermissions: when group or others have any permission on it.
        FileUnreadable: when it is no regular file, a symbolic link that is not to be followed, or cannot be read.
    """
    # O_NONBLOCK keeps a named pipe in the file's place from blocking the open for ever.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        problem = "it is a symbolic link" if error.errno == errno.ELOOP else str(error.strerror)
        raise FileUnreadable(path=path, problem=problem) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FileUnreadable(path=path, problem="it is not a regular file")
        if status.st_mode & _OTHERS:
            raise LoosePermissions(path=path, mode=stat.S_IMODE(status.st_mode))
        return _read(descriptor, limit + 1)
    except OSError as error:
        raise FileUnreadable(path=path, problem=str(error.strerror)) from error
    finally:
        os.close(descriptor)


def replace_private_file(path: Path, data: bytes) -> None:
    """
    Put *data* in the place of the file, of mode 0600 from its first instant.

    The caller holds the lock of the file: a temporary file that is found is then what a crashed writer left.

    Raises:
        FileUnwritable: whatever went wrong; its `outcome` says what the file holds.
    """
    temporary = path.with_name(path.name + ".tmp")
    renamed = False
    try:
        temporary.unlink(missing_ok=True)
        _write_new(temporary, data)
        try:
            temporary.rename(path)
        except OSError:
            _discard(temporary)
            raise
        renamed = True
        _sync_folder(path.parent)
    except OSError as error:
        outcome: Literal["unchanged", "unknown"] = "unknown" if renamed else "unchanged"
        raise FileUnwritable(path=path, problem=str(error.strerror), outcome=outcome) from error


def create_private_file(path: Path, data: bytes) -> None:
    """
    Write *data* to a file of mode 0600 that does not exist yet; a file that could not be completed is removed.

    Raises:
        FileExistsError: when it exists.
        OSError: when it cannot be written.
    """
    _write_new(path, data)
    try:
        _sync_folder(path.parent)
    except OSError:
        _discard(path)
        raise


def move_private_file(path: Path, target: Path) -> None:
    """
    Give a file another name in its folder, which nothing may have yet; the caller holds the lock of the file.

    Raises:
        FileNotFoundError: when it does not exist.
        FileExistsError: when there is something of that name.
        FileUnwritable: when the file cannot be moved; its `outcome` is `unknown` when it may have both names.
    """
    try:
        # Unlike a rename, a link never replaces what another program puts there meanwhile.
        os.link(path, target, follow_symlinks=False)
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError as error:
        raise FileUnwritable(path=target, problem=str(error.strerror), outcome="unchanged") from error
    try:
        path.unlink()
        _sync_folder(path.parent)
    except OSError as error:
        raise FileUnwritable(path=path, problem=str(error.strerror), outcome="unknown") from error


def make_private_folder(folder: Path) -> None:
    """
    Make the folder and what is missing above it, each of mode 0700; what exists is left as it is.

    Raises:
        FileUnwritable: when one cannot be made.
    """
    missing = []
    step = folder
    try:
        while not step.exists():
            missing.append(step)
            step = step.parent
        for step in reversed(missing):
            step.mkdir(mode=0o700, exist_ok=True)
            _sync_folder(step.parent)
    except OSError as error:
        raise FileUnwritable(path=step, problem=str(error.strerror), outcome="unchanged") from error


@contextlib.contextmanager
def exclusive_lock(path: Path, *, timeout_s: float) -> Iterator[None]:
    """
    Hold the advisory lock of a file, made when missing and never removed; a process that dies gives it back.

    Raises:
        StoreBusy: when it is not free within *timeout_s* seconds.
        FileNotFoundError: when the folder does not exist.
        FileUnwritable: when the lock file cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileUnwritable(path=path, problem=str(error.strerror), outcome="unchanged") from error
    try:
        _wait_for_lock(descriptor, path, timeout_s)
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, path: Path, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreBusy(path=path, waited_s=timeout_s) from None
            time.sleep(_POLL_S)
        else:
            return


def _read(descriptor: int, size: int) -> bytes:
    chunks = []
    while size > 0 and (chunk := os.read(descriptor, size)):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _write_new(path: Path, data: bytes) -> None:
    """
    Write a new file to the disk; a file that could not be completed is removed again.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            # A umask that takes bits away must not leave a file that its owner cannot read.
            os.fchmod(descriptor, 0o600)
            _write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        _discard(path)
        raise


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = os.write(descriptor, view)
        if written == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        view = view[written:]


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
