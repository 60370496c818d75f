"""
The edge of the service: every request passes here first and every answer last, those of the routing itself included.

It bounds what the server in front leaves unbounded (uvicorn takes a header of two megabytes and waits forever for a body),
counts every answer, and gives every answer the headers that none may lack.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, cast

from litestar import Request
from litestar.enums import ScopeType
from litestar.exceptions import ClientException
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from litestar.types.asgi_types import RawHeaders, ReceiveMessage

from .errors import error_response

__all__ = ["METHODS", "UNMATCHED", "Edge", "Limits", "Observe"]

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods that are counted by name; all others are counted as `other`."""

UNMATCHED: Final = "unmatched"
"""The route label of requests that no configured route took."""

Observe = Callable[[str, str, int, float], None]
"""Told of every answer: route, method, status, seconds. None of the labels comes from a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    What a request may take at most, before any route sees it.
    """

    header_octets: int = 32 * 1024
    """Octets of all field names and values together; client assertions travel in the body, so this is generous."""

    header_fields: int = 100
    """Number of header fields."""

    target_octets: int = 8 * 1024
    """Octets of path and query together; no route takes a long one."""

    body_seconds: float = 10.0
    """Seconds from the first look at the body until its last octet."""

    running_requests: int = 512
    """Requests that may run at the same time; whoever comes beside them hears 503 at once."""


class Edge(ASGIMiddleware):
    """
    Wraps the whole application, outside of its routing, so that a 404 or 405 passes as well.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(
        self, *, observe: Observe, monotonic: Callable[[], float], routes: Mapping[str, str], limits: Limits
    ) -> None:
        """
        Build the edge; *routes* gives for each path that is served the label its answers are counted under.
        """
        self._observe = observe
        self._monotonic = monotonic
        self._routes = routes
        self._limits = limits
        self._running = 0

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """
        Pass one request on, or refuse it here.
        """
        started = self._monotonic()
        # `scopes` lets nothing else through; Litestar's types do not know that.
        request_scope = cast("HTTPScope", scope)
        exchange = _Exchange(request_scope, receive, send, self._limits.body_seconds)
        # The routing rewrites the path in place, so it is read before.
        path = scope["path"]
        self._running += 1
        try:
            if (status := self._refusal(request_scope)) is not None:
                headers = {"Accept-Encoding": "identity"} if status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE else {}
                response = error_response(path, status, headers=headers)
                answer = response.to_asgi_response(app=None, request=Request(scope))
                await answer(scope, exchange.receive, exchange.send)
            else:
                await next_app(scope, exchange.receive, exchange.send)
        finally:
            self._running -= 1
            # A path that only the routing saw, as with 405, has no template.
            route = self._routes.get(scope.get("path_template", path), UNMATCHED)
            method = request_scope["method"] if request_scope["method"] in METHODS else "other"
            self._observe(route, method, exchange.status, self._monotonic() - started)

    def _refusal(self, scope: HTTPScope) -> HTTPStatus | None:
        if self._running > self._limits.running_requests:
            return HTTPStatus.SERVICE_UNAVAILABLE
        return _refusal(scope, self._limits)


class _Exchange:
    """
    One request and its answer, as seen from the edge.
    """

    __slots__ = ("_announced", "_deadline", "_head", "_receive", "_received", "_seconds", "_send", "status")

    def __init__(self, scope: HTTPScope, receive: Receive, send: Send, seconds: float) -> None:
        self.status: int = HTTPStatus.INTERNAL_SERVER_ERROR
        self._receive = receive
        self._send = send
        self._seconds = seconds
        self._deadline: float | None = None
        self._received = False
        self._head = scope["method"] == "HEAD"
        # HTTP/2 has no connection header, and each of its streams ends by itself.
        self._announced = scope["http_version"].startswith("1") and _announces_body(scope["headers"])

    async def receive(self) -> ReceiveMessage:
        """
        Hand on a piece of the body, within the time that the whole of it has.

        Raises:
            ClientException: 408 when the time is over, 400 when the client left before the body was complete.
        """
        if self._received:
            return await self._receive()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise ClientException(status_code=HTTPStatus.REQUEST_TIMEOUT) from None
        if message["type"] != "http.request":
            raise ClientException(status_code=HTTPStatus.BAD_REQUEST)
        self._received = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """
        Hand on a piece of the answer, with the headers that no answer may lack; an answer to HEAD has no body.
        """
        if message["type"] == "http.response.start":
            self.status = message["status"]
            await self._send({**message, "headers": [*message["headers"], *self._added(message["headers"])]})
        elif message["type"] == "http.response.body" and self._head:
            await self._send({**message, "body": b""})
        else:
            await self._send(message)

    def _added(self, present: RawHeaders) -> Iterator[tuple[bytes, bytes]]:
        yield b"x-content-type-options", b"nosniff"
        if not any(name.lower() == b"cache-control" for name, _ in present):
            yield b"cache-control", b"no-store"
        if self._announced and not self._received:
            # Whoever still sends a body that was refused must not keep the connection busy with it.
            yield b"connection", b"close"


def _refusal(scope: HTTPScope, limits: Limits) -> HTTPStatus | None:
    target = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    if target > limits.target_octets:
        return HTTPStatus.REQUEST_URI_TOO_LONG
    headers = list(scope["headers"])
    octets = sum(len(name) + len(value) for name, value in headers)
    if len(headers) > limits.header_fields or octets > limits.header_octets:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    if any(name == b"content-encoding" and value.strip().lower() != b"identity" for name, value in headers):
        return HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    return None


def _announces_body(headers: RawHeaders) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0") for name, value in headers
    )
