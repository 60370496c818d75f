"""
A lock that survives a fork: the child must not wait for a thread it does not have.
"""

import os
from threading import Lock

__all__ = ["ProcessLock"]


class ProcessLock:
    """
    One lock for each process that holds the object, picked anew whenever it is asked for.
    """

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: dict[int, Lock] = {}

    def __call__(self) -> Lock:
        """
        Return this process's lock: the one that a fork copied may be held by a thread that the child does not have.
        """
        # `setdefault` is atomic, so that the threads of the child agree on theirs.
        return self._locks.setdefault(os.getpid(), Lock())
