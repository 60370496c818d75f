"""
Who has which connection to Redis, and who waits for one: bookkeeping without I/O, for both faces.

A connection is used by one call at a time. A caller who finds none free waits for the first that comes back or comes up; for
each waiter one is begun while the limit allows it, and it stays when the caller has given up meanwhile. In a cluster a
connection leads to one primary, and *routes* say which tag is served where.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from .replay import ReplayStoreUnavailable

__all__ = ["Pool", "Waiter", "Wire"]


class Wire(Protocol):
    """
    An open connection; `label` says which primary it leads to.
    """

    label: str

    async def exchange(self, packed: bytes, answers: int, until: float) -> list[Any]:
        """
        Send commands and return that many answers, a refusal as an exception among them, before the monotonic instant *until*.
        """

    def close(self) -> None:
        """
        Drop the connection without waiting.
        """


_W = TypeVar("_W", bound=Wire)


class _Future(Protocol):
    def done(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def result(self) -> Any: ...
    def set_result(self, result: Any, /) -> None: ...


@dataclass(slots=True, eq=False)
class Waiter:
    """
    A caller without a connection; its future brings one, or the error that ended the attempt to make one.
    """

    tag: str
    future: Any
    dialling: bool = field(default=False)


class Pool(Generic[_W]):
    """
    The connections of one process or one event loop.
    """

    def __init__(self, limit: int, *, begin: Callable[[Waiter], None], future: Callable[[], _Future]) -> None:
        """
        Hold at most *limit* connections, those on their way included.

        Args:
            limit: most connections.
            begin: begins to make one for a waiter and returns at once; ends in `joined` or `failed`.
            future: makes what a waiter waits on.
        """
        self._limit = limit
        self._begin = begin
        self._future = future
        self._lock = Lock()
        self._routes: dict[str, str] = {}
        self._idle: dict[str, list[_W]] = {}
        self._waiters: list[Waiter] = []
        self._open = 0
        self._closed = False

    @property
    def routes(self) -> Mapping[str, str]:
        """
        Which primary serves which tag, as far as that is known.
        """
        return dict(self._routes)

    def take(self, tag: str) -> _W | Waiter:
        """
        Return a free connection to where *tag* is served, or a waiter whose future brings one.

        Raises:
            ReplayStoreUnavailable: when the pool is closed.
        """
        with self._lock:
            if self._closed:
                raise ReplayStoreUnavailable("the store is closed")
            free = self._idle.get(self._routes.get(tag, ""))
            if free:
                return free.pop()
            waiter = Waiter(tag, self._future())
            self._waiters.append(waiter)
            self._serve()
            return waiter

    def give(self, wire: _W) -> None:
        """
        Take a connection back that is in order.
        """
        with self._lock:
            self._hand_out(wire)

    def lost(self, wire: _W) -> None:
        """
        Drop a connection that is not.
        """
        with self._lock:
            self._drop(wire)
            self._serve()

    def joined(self, waiter: Waiter, wire: _W, routes: Mapping[str, str]) -> None:
        """
        Take the connection that was begun for *waiter*, and what was learnt on the way.
        """
        with self._lock:
            waiter.dialling = False
            self._routes.update(routes)
            self._hand_out(wire)

    def failed(self, waiter: Waiter, error: ReplayStoreUnavailable) -> None:
        """
        Take note that none came up for *waiter*, who hears of it unless another connection served it.
        """
        with self._lock:
            self._open -= 1
            if waiter in self._waiters:
                self._answer(waiter, error)
            self._serve()

    def leave(self, waiter: Waiter) -> None:
        """
        Forget a waiter who waits no longer; what it may have been given in this very moment goes to the next.
        """
        with self._lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif not waiter.future.cancelled() and not isinstance(given := waiter.future.result(), Exception):
                self._hand_out(given)

    def forget(self, label: str) -> None:
        """
        Drop what is free of the connections to a primary, and where its tags are served.
        """
        with self._lock:
            self._routes = {tag: served for tag, served in self._routes.items() if served != label}
            for wire in self._idle.pop(label, []):
                self._drop(wire)
            self._serve()

    def close(self) -> None:
        """
        Drop all free connections, and from here on every one that comes back; nobody waits any longer.
        """
        with self._lock:
            self._closed = True
            for wires in self._idle.values():
                for wire in wires:
                    self._drop(wire)
            self._idle.clear()
            for waiter in tuple(self._waiters):
                self._answer(waiter, ReplayStoreUnavailable("the store is closed"))

    def _hand_out(self, wire: _W) -> None:
        if self._closed:
            self._drop(wire)
            return
        for waiter in self._waiters:
            if self._routes.get(waiter.tag, "") == wire.label and not waiter.future.done():
                self._answer(waiter, wire)
                return
        self._idle.setdefault(wire.label, []).append(wire)
        self._serve()

    def _answer(self, waiter: Waiter, answer: _W | ReplayStoreUnavailable) -> None:
        self._waiters.remove(waiter)
        if not waiter.future.done():
            waiter.future.set_result(answer)

    def _serve(self) -> None:
        for waiter in tuple(self._waiters):
            free = self._idle.get(self._routes.get(waiter.tag, ""))
            if free and not waiter.future.done():
                self._answer(waiter, free.pop())
            elif not waiter.dialling:
                if not self._has_room():
                    # Then nothing is free either, for whoever waits behind.
                    return
                self._dial(waiter)

    def _has_room(self) -> bool:
        if self._open < self._limit:
            return True
        # Connections to other primaries make room for one that is waited for.
        spare = next((wires for wires in self._idle.values() if wires), None)
        if spare is None:
            return False
        self._drop(spare.pop(0))
        return True

    def _dial(self, waiter: Waiter) -> None:
        self._open += 1
        waiter.dialling = True
        try:
            self._begin(waiter)
        except RuntimeError:
            # No thread can be started: at the end of the interpreter, or at a limit of the system.
            self._open -= 1
            self._answer(waiter, ReplayStoreUnavailable("no connection can be made any more"))

    def _drop(self, wire: _W) -> None:
        self._open -= 1
        wire.close()
