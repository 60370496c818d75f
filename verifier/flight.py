"""
One fetch of a key set on its way, as its waiters see it: on threads and event loops alike, and across a fork.
"""

import os
from asyncio import AbstractEventLoop
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

__all__ = ["Flight"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flight:
    """
    One fetch on its way.

    `done` is resolved when it ended, however it ended. It counts as running from the start, so that a waiter who is cancelled
    cannot cancel it for the others.
    """

    number: int
    headers: Mapping[str, str]
    began_at: float
    wall_clock: float
    loop: AbstractEventLoop | None
    pid: int = field(default_factory=os.getpid)
    done: Future[None] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.done.set_running_or_notify_cancel()

    def land(self) -> None:
        """
        Release everyone who waits.
        """
        # In the child of a fork nobody waits for it, and its own lock may be held by a thread that stayed behind.
        if self.pid == os.getpid():
            with suppress(InvalidStateError):
                self.done.set_result(None)

    def is_lost(self) -> bool:
        """
        Tell whether nobody is left who could end it: a fetch is lost in the children of a fork and with its event loop.
        """
        return self.pid != os.getpid() or self.done.done() or (self.loop is not None and self.loop.is_closed())
