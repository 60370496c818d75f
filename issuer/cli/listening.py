"""
The sockets of the service, bound before anything else begins, and once for all of its processes.

What keeps an address from being bound is one line that says what to do.
"""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

__all__ = ["CannotListen", "addresses", "bound", "listen"]

_BACKLOG: Final = 1024


class CannotListen(Exception):
    """
    Raised when a socket cannot be bound; the message says what to do.
    """


class _Place(NamedTuple):
    family: socket.AddressFamily
    address: tuple[Any, ...]

    def at(self, port: int) -> tuple[Any, ...]:
        return (self.address[0], port, *self.address[2:])


@contextmanager
def bound(host: str, port: int) -> Iterator[tuple[socket.socket, ...]]:
    """
    Hold every address that *host* stands for while the block runs; 0 picks a port, the same for all of them.

    Nobody can connect before `listen`, so that whoever looks for a service that is ready does not wait at one that is not.

    Raises:
        CannotListen: before the block runs.
    """
    with ExitStack() as stack:
        opened: list[socket.socket] = []
        absent: OSError | None = None
        for place in _places(host, port):
            try:
                opened.append(stack.enter_context(_held(place, opened[0].getsockname()[1] if opened else port)))
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise CannotListen(_refusal(error, host, port)) from None
                # A name may stand for an address of a family that this machine does not have.
                absent = error
        if absent is not None and not opened:
            raise CannotListen(_refusal(absent, host, port))
        yield tuple(opened)


def listen(sockets: tuple[socket.socket, ...]) -> None:
    """
    Let connections come.

    Raises:
        CannotListen: when another program does so at the same address, which it had bound at the same time.
    """
    for each in sockets:
        try:
            each.listen(_BACKLOG)
        except OSError as error:
            raise CannotListen(_refusal(error, *each.getsockname()[:2])) from None


def addresses(sockets: tuple[socket.socket, ...]) -> tuple[str, ...]:
    """
    Return the URLs that those sockets are reached at.
    """
    names = ((each.family, *each.getsockname()[:2]) for each in sockets)
    return tuple(
        f"http://[{host}]:{port}" if family == socket.AF_INET6 else f"http://{host}:{port}"
        for family, host, port in names
    )


def _places(host: str, port: int) -> tuple[_Place, ...]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise CannotListen(f"--host {host} is no name or address that can be found") from None
    return tuple(dict.fromkeys(_Place(family, address) for family, _, _, _, address in found))


def _held(place: _Place, port: int) -> socket.socket:
    opened = socket.socket(place.family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if place.family == socket.AF_INET6:
            # Otherwise it would take the place of the one for the other family.
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind(place.at(port))
    except BaseException:
        opened.close()
        raise
    return opened


def _refusal(error: OSError, host: str, port: int) -> str:
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{where} is taken by another program; stop that one, or name another port with --port"
        case errno.EACCES:
            return f"{where} may not be bound by this user; name a port from 1024 on with --port"
        case errno.EADDRNOTAVAIL | errno.EAFNOSUPPORT:
            return f"{host} is no address of this machine; name one with --host, such as 127.0.0.1, or 0.0.0.0 for all"
        case _:
            return f"{where} cannot be bound: {os.strerror(error.errno or 0)}"
