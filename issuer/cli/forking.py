"""
A fork that leaves no lock behind.

A thread that ends takes locks of libraries for a moment after it was joined, OpenSSL's among them, to put away what it held.
Forked in that moment, the child would wait for them for ever.
"""

import os
import time
from pathlib import Path
from typing import Final

__all__ = ["fork"]

_TASKS: Final = Path("/proc/self/task")
_LONGEST_S: Final = 1.0
_GLANCE_S: Final = 0.001


def fork() -> int:
    """
    Fork as `os.fork` does, once all threads that have ended are gone.

    Where some stay, or the system does not tell, it is not waited for longer than a second, or at all.
    """
    until = time.monotonic() + _LONGEST_S
    while _threads() > 1 and time.monotonic() < until:
        time.sleep(_GLANCE_S)
    return os.fork()


def _threads() -> int:
    try:
        return sum(1 for _ in _TASKS.iterdir())
    except OSError:
        return 1
