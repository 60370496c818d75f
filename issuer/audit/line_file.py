"""
A file that lines are added to: private, durable, and whole after a crash but for a last line without its end.

What a crash left of a line is never read as one and never lost: the next writer moves it to `<name>.torn` first.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from keys import FileUnreadable, FileUnwritable, LoosePermissions
from keys.private_file import make_private_folder

from .record import read_seq

__all__ = ["LineFile"]

_BLOCK: Final = 256 * 1024
_LOCK_S: Final = 1.0
_GLANCE_S: Final = 0.005
_OTHERS: Final = 0o077
# A named pipe in the file's place must not block the open for ever.
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class LineFile:
    """
    Lines in a file of mode 0600; of several processes that add to it, one at a time does.

    A file that cannot be used raises `FileUnreadable`, `FileUnwritable` or `LoosePermissions`; one that is not there is empty.
    """

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        """
        Name the file; nothing is opened yet.
        """
        self._path = path

    @property
    def path(self) -> Path:
        """
        The file.
        """
        return self._path

    def append(self, lines: Sequence[bytes]) -> None:
        """
        Add lines durably; when that fails, none of them is left, as far as the disk lets it.
        """
        make_private_folder(self._path.parent)
        data = b"".join(line + b"\n" for line in lines)
        try:
            with _opened(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:
                _lock(descriptor)
                size = _set_torn_aside(descriptor, self._path.with_name(self._path.name + ".torn"))
                _add(descriptor, data, size=size, folder=self._path.parent)
        except OSError as error:
            raise FileUnwritable(path=self._path, problem=str(error.strerror), outcome="unknown") from error

    def read(self, offset: int) -> bytes:
        """
        Return the next octets at *offset*, none at the end.
        """
        with self._reading() as descriptor:
            return b"" if descriptor is None else os.pread(descriptor, _BLOCK, offset)

    def torn_octets(self) -> int:
        """
        Return how many octets stand behind the last whole line.
        """
        with self._reading() as descriptor:
            return 0 if descriptor is None else os.fstat(descriptor).st_size - _whole_size(descriptor)

    def last_seq(self) -> int:
        """
        Return the number that the last whole line claims, 0 when it claims none.
        """
        with self._reading() as descriptor:
            last = None if descriptor is None else next(_backwards(descriptor), None)
            return 0 if last is None else read_seq(last[1]) or 0

    def offset_of(self, seq: int) -> int:
        """
        Return where the lines begin that come behind the last one with a smaller number than *seq*.
        """
        with self._reading() as descriptor:
            if descriptor is not None and seq > 1:
                for start, line in _backwards(descriptor):
                    found = read_seq(line)
                    if found is not None and found < seq:
                        return start + len(line) + 1
            return 0

    @contextlib.contextmanager
    def _reading(self) -> Iterator[int | None]:
        try:
            with _opened(self._path, os.O_RDONLY) as descriptor:
                yield descriptor
        except FileNotFoundError:
            yield None
        except OSError as error:
            problem = "it is a symbolic link" if error.errno == errno.ELOOP else str(error.strerror)
            raise FileUnreadable(path=self._path, problem=problem) from error


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | _FLAGS, 0o600)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FileUnreadable(path=path, problem="it is not a regular file")
        if status.st_mode & _OTHERS:
            raise LoosePermissions(path=path, mode=stat.S_IMODE(status.st_mode))
        yield descriptor
    finally:
        os.close(descriptor)


def _add(descriptor: int, data: bytes, *, size: int, folder: Path) -> None:
    try:
        if size == 0:
            # A umask that takes bits away must not leave a file that its owner cannot read.
            os.fchmod(descriptor, 0o600)
            _sync(folder, os.O_RDONLY | os.O_DIRECTORY)
        _write_all(descriptor, data)
        os.fsync(descriptor)
    except OSError:
        # What could not be made durable must not be taken for a record; where even this fails, the next writer sees to it.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        raise


def _lock(descriptor: int) -> None:
    # The system lets go of it when the file is closed. Adding takes milliseconds: whoever holds it for longer hangs.
    until = time.monotonic() + _LOCK_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
        time.sleep(_GLANCE_S)


def _set_torn_aside(descriptor: int, aside: Path) -> int:
    """
    Move what stands behind the last whole line to a file of its own; return the size of what stays.
    """
    size, whole = os.fstat(descriptor).st_size, _whole_size(descriptor)
    if whole < size:
        with _opened(aside, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as kept:
            for offset in range(whole, size, _BLOCK):
                _write_all(kept, os.pread(descriptor, min(_BLOCK, size - offset), offset))
            _write_all(kept, b"\n")
            os.fsync(kept)
        _sync(aside.parent, os.O_RDONLY | os.O_DIRECTORY)
        os.ftruncate(descriptor, whole)
        os.fsync(descriptor)
    return whole


def _whole_size(descriptor: int) -> int:
    """
    Return the size up to and with the last newline.
    """
    position = os.fstat(descriptor).st_size
    while position > 0:
        start = max(0, position - _BLOCK)
        found = os.pread(descriptor, position - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0


def _backwards(descriptor: int) -> Iterator[tuple[int, bytes]]:
    """
    Give the whole lines with their offsets, the last one first.
    """
    position = _whole_size(descriptor)
    rest = b""
    while position > 0:
        start = max(0, position - _BLOCK)
        rest = os.pread(descriptor, position - start, start) + rest
        position = start
        # Up to the first newline, a line may have begun further up.
        while (newline := rest.rfind(b"\n", 0, -1)) >= 0:
            yield position + newline + 1, rest[newline + 1 : -1]
            rest = rest[: newline + 1]
    if rest:
        yield 0, rest[:-1]


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
