"""
The two formats an error is answered in, chosen by path (D11), with the statuses that HTTP has for it.

The token endpoint speaks RFC 6749 section 5.2 JSON for every event, the framework's own 404, 405, 413 and 500 included. All
other routes speak RFC 9457 problem details (`problems`). Texts are fixed: nothing of a request or an exception is repeated.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from litestar import Request, Response
from litestar.exceptions import HTTPException

from ..rings import RingUnavailable
from .problems import problem_response, retry_after

__all__ = [
    "OAUTH_EVENTS",
    "TOKEN_PATH",
    "ExceptionHandler",
    "OAuthEvent",
    "error_response",
    "exception_handlers",
    "is_token_path",
    "oauth_error_response",
]

TOKEN_PATH: Final = "/oauth/token"
"""Where the token endpoint stands below each issuer."""

ExceptionHandler = Callable[[Request[Any, Any, Any], Any], Response[bytes]]
"""Turns what was raised into an answer."""

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_UNSAFE: Final = re.compile(r"[^\x20-\x21\x23-\x5B\x5D-\x7E]")


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthEvent:
    """
    How the token endpoint answers an event that HTTP names by a status: status, `error` and `error_description`.
    """

    status: int
    error: str
    description: str


OAUTH_EVENTS: Final[Mapping[int, OAuthEvent]] = MappingProxyType(
    {
        400: OAuthEvent(status=400, error="invalid_request", description="The request is malformed"),
        404: OAuthEvent(status=404, error="invalid_request", description="There is no token endpoint at this path"),
        405: OAuthEvent(status=405, error="invalid_request", description="The token endpoint takes POST only"),
        408: OAuthEvent(status=408, error="invalid_request", description="The body did not arrive in full in time"),
        413: OAuthEvent(status=413, error="invalid_request", description="The body is larger than is accepted"),
        414: OAuthEvent(status=414, error="invalid_request", description="The path and query are longer than accepted"),
        # D11: a wrong media type is a malformed request here, so the status of RFC 6749 section 5.2 stands.
        415: OAuthEvent(status=400, error="invalid_request", description="The media type or coding is not accepted"),
        429: OAuthEvent(status=429, error="temporarily_unavailable", description="There were too many requests"),
        431: OAuthEvent(status=431, error="invalid_request", description="The header fields are larger than accepted"),
        500: OAuthEvent(status=500, error="server_error", description="The service failed"),
        503: OAuthEvent(status=503, error="temporarily_unavailable", description="The service cannot answer right now"),
    }
)
"""What the token endpoint answers for each event, by the status that HTTP has for it."""


def is_token_path(path: str) -> bool:
    """
    Tell whether *path* is, or lies under, a token endpoint.

    It may be that of a workspace which does not exist: a client that misspelt its workspace still reads an OAuth error.
    """
    segments = [segment for segment in path.split("/") if segment]
    return ("oauth", "token") in pairwise(segments)


def oauth_error_response(
    status: int, error: str, description: str, headers: Mapping[str, str] = _NO_HEADERS
) -> Response[bytes]:
    """
    Build an error of the token endpoint (RFC 6749 section 5.2): flat JSON, never stored by any cache.

    Characters that `error_description` may not hold are replaced with `?`. 429 and 503 get a `Retry-After` when *headers* has
    none.
    """
    members = {"error": error, "error_description": _UNSAFE.sub("?", description)}
    body = json.dumps(members, separators=(",", ":")).encode()
    fields = {"Cache-Control": "no-store", "Pragma": "no-cache", **retry_after(status, headers), **headers}
    return Response(body, status_code=status, media_type="application/json", headers=fields)


def error_response(path: str, status: int, *, headers: Mapping[str, str] = _NO_HEADERS) -> Response[bytes]:
    """
    Answer *status* in the format that *path* speaks.
    """
    if not is_token_path(path):
        return problem_response(status, headers=headers)
    event = OAUTH_EVENTS.get(status)
    if event is None:
        kind = OAUTH_EVENTS[500] if status >= HTTPStatus.INTERNAL_SERVER_ERROR else OAUTH_EVENTS[400]
        event = OAuthEvent(status=status, error=kind.error, description=HTTPStatus(status).phrase)
    return oauth_error_response(event.status, event.error, event.description, headers)


def exception_handlers(report: Callable[[Exception], None]) -> dict[int | type[Exception], ExceptionHandler]:
    """
    Build the handlers of the application: whatever is raised, by a route or by the routing itself, ends in one of the formats.

    *report* is told of every exception that means a failure of the service. Of an exception only the status and headers of
    the framework's `HTTPException` reach the answer.
    """

    def refused(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
        if error.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            report(error)
        return error_response(request.scope["path"], error.status_code, headers=error.headers or _NO_HEADERS)

    def unavailable(request: Request[Any, Any, Any], _error: RingUnavailable) -> Response[bytes]:
        # The poller has reported why; one line a request would only drown it.
        return error_response(request.scope["path"], HTTPStatus.SERVICE_UNAVAILABLE)

    def failed(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        report(error)
        return error_response(request.scope["path"], HTTPStatus.INTERNAL_SERVER_ERROR)

    return {HTTPException: refused, RingUnavailable: unavailable, Exception: failed}
