"""
Work that comes to its end, one way or the other, once it has begun: a caller that is cancelled does not tear it.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["Unbroken"]

_T = TypeVar("_T")


class Unbroken:
    """
    Runs coroutines as tasks of their own, and holds on to them until they are done.
    """

    __slots__ = ("_running",)

    def __init__(self) -> None:
        """
        Begin with none.
        """
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """
        Return what *work* returns, or raise what it raises; when the caller is cancelled, it goes on alone.
        """
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Whoever still waits is told; when nobody does, the loop must not complain that nobody asked.
            task.exception()
