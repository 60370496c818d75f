"""
Connections to Redis with a limit that holds: no answer, however slowly it drips in, keeps a caller beyond it.

redis-py makes the connections, with its TLS, credentials and protocol; its own timeouts count from octet to octet, and its
retries send a command again of which nobody knows what became. So both are left out, and the limit is the store's.
"""

import asyncio
import socket
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import cache
from time import monotonic
from typing import Any, Final, TypeVar

from redis.exceptions import ResponseError

__all__ = ["FAREWELL_S", "AsyncWire", "BlockingWire", "abrupt", "drive"]

FAREWELL_S: Final = 0.01
"""Longest that a transport outlives the attempt to connect that was ended in the moment its TLS came up, in seconds."""

_T = TypeVar("_T")

# RESP2 has no pushed messages that could come between a question and its answer. A socket_timeout would be one task more a
# call.
_OPTIONS: Final[Mapping[str, Any]] = {"protocol": 2, "socket_timeout": None}


def drive(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """
    Run a coroutine that never waits: what both faces share is written once, for the face that has to be awaited.
    """
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: _T = done.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine of the blocking face waited")


class _Limit:
    """
    The monotonic instant at which a connection's reads and writes end.
    """

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = 0.0

    def left(self) -> float:
        left = self.at - monotonic()
        if left <= 0:
            raise TimeoutError("the limit has passed")
        return left


class _LimitedSocket:
    """
    A socket whose every read and write ends at the limit; all else is the socket's own.
    """

    __slots__ = ("_limit", "_socket")

    def __init__(self, opened: socket.socket, limit: _Limit) -> None:
        self._socket = opened
        self._limit = limit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def recv(self, size: int) -> bytes:
        self._socket.settimeout(self._limit.left())
        return self._socket.recv(size)

    def recv_into(self, buffer: bytearray) -> int:
        self._socket.settimeout(self._limit.left())
        return self._socket.recv_into(buffer)

    def sendall(self, data: bytes) -> None:
        self._socket.settimeout(self._limit.left())
        self._socket.sendall(data)


@cache
def _limited(connection_class: Any) -> Any:
    class Limited(connection_class):  # type: ignore[misc]
        def __init__(self, limit: _Limit, **options: Any) -> None:
            super().__init__(**options)
            self._limit = limit

        def _connect(self) -> _LimitedSocket:
            return _LimitedSocket(super()._connect(), self._limit)

    return Limited


class BlockingWire:
    """
    A connection of the blocking face; `drive` runs what has to be awaited here.
    """

    __slots__ = ("_connection", "_limit", "label")

    def __init__(self, connection: Any, limit: _Limit, label: str) -> None:
        self._connection = connection
        self._limit = limit
        self.label = label

    @classmethod
    async def dial(cls, connection_class: type, options: Mapping[str, Any], label: str, until: float) -> "BlockingWire":
        """
        Connect before the monotonic instant *until*; only the look-up of a name may take longer.
        """
        limit = _Limit()
        limit.at = until
        connection = _limited(connection_class)(
            limit, **{**options, **_OPTIONS, "socket_connect_timeout": limit.left()}
        )
        connection.connect()
        return cls(connection, limit, label)

    async def exchange(self, packed: bytes, answers: int, until: float) -> list[Any]:
        """
        Send commands and return that many answers, a refusal as an exception among them, before *until*.
        """
        self._limit.at = until
        self._connection.send_packed_command((packed,), check_health=False)
        return [self._answer() for _ in range(answers)]

    def _answer(self) -> Any:
        try:
            return self._connection.read_response(disable_decoding=True)
        except ResponseError as error:
            return error

    def close(self) -> None:
        """
        Drop the connection without waiting.
        """
        with suppress(Exception):
            self._connection.disconnect()


@cache
def abrupt(connection_class: Any) -> Any:
    """
    Derive asynchronous connections that end at once: over TLS a polite end waits for the other side, half a minute if need be.
    """

    class Abrupt(connection_class):  # type: ignore[misc]
        def _connection_arguments(self) -> Mapping[str, Any]:
            # An attempt that is cancelled is ended by asyncio itself, politely where the handshake has just been completed.
            arguments = dict(super()._connection_arguments())
            return arguments | {"ssl_shutdown_timeout": FAREWELL_S} if "ssl" in arguments else arguments

        async def disconnect(self, **options: Any) -> None:
            if self._writer is not None:
                self._writer.transport.abort()
            await super().disconnect(**{**options, "nowait": True})

    return Abrupt


class AsyncWire:
    """
    A connection of the asynchronous face, on the event loop it was made on.
    """

    __slots__ = ("_connection", "label")

    def __init__(self, connection: Any, label: str) -> None:
        self._connection = connection
        self.label = label

    @classmethod
    async def dial(cls, connection_class: Any, options: Mapping[str, Any], label: str, until: float) -> "AsyncWire":
        """
        Connect before the monotonic instant *until*.
        """
        left = until - monotonic()
        connection = abrupt(connection_class)(**{**options, **_OPTIONS, "socket_connect_timeout": left})
        wire = cls(connection, label)
        try:
            async with asyncio.timeout(left):
                await wire._connection.connect()
        except BaseException:
            wire.close()
            raise
        return wire

    async def exchange(self, packed: bytes, answers: int, until: float) -> list[Any]:
        """
        Send commands and return that many answers, a refusal as an exception among them, before *until*.
        """
        async with asyncio.timeout(None) as limit:
            # What came in while something else held up the event loop is read before the limit strikes, one turn later.
            due = asyncio.get_running_loop().call_later(until - monotonic(), limit.reschedule, 0.0)
            try:
                await self._connection.send_packed_command((packed,), check_health=False)
                return [await self._answer() for _ in range(answers)]
            finally:
                due.cancel()

    async def _answer(self) -> Any:
        try:
            return await self._connection.read_response(disable_decoding=True)
        except ResponseError as error:
            return error

    def close(self) -> None:
        """
        Drop the connection without waiting.
        """
        with suppress(Exception):
            drive(self._connection.disconnect(nowait=True))
