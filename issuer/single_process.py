"""
One service to a data folder: state in memory is only as good as there is nobody beside who does not know it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["AlreadyServed", "served_alone"]


class AlreadyServed(Exception):
    """
    Raised when another process serves from the same data folder, or there is no such folder.
    """


@contextmanager
def served_alone(data_dir: Path) -> Iterator[None]:
    """
    Hold the data folder while the block runs; the system lets go of it however the process ends.

    The lock lies on the folder itself, so that a service whose folder is read-only can be run too.

    Raises:
        AlreadyServed: before the block runs.
    """
    try:
        descriptor = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise AlreadyServed(f"the data folder {data_dir} cannot be opened: {error.strerror}") from None
    try:
        _lock(descriptor, data_dir)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, data_dir: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise AlreadyServed(
            f"another process serves from {data_dir}: used assertions and idempotency keys would be unknown to each other; "
            "stop it first, or give this one a data folder of its own"
        ) from None
