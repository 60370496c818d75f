"""
The two formats an error is answered in, chosen by path (D11), with the statuses that HTTP has for it.

The token endpoint speaks RFC 6749 section 5.2 JSON for every event, the framework's own 404, 405, 413 and 500 included. All
other routes speak RFC 9457 problem details, whose `type` is `urn:caplo:problem:{slug}` from a closed list; a status outside of
`PROBLEMS` has the type `about:blank`. Texts are fixed: nothing of a request or an exception is repeated.
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

__all__ = [
    "OAUTH_EVENTS",
    "PROBLEMS",
    "PROBLEM_JSON",
    "RETRY_AFTER_S",
    "TOKEN_PATH",
    "ExceptionHandler",
    "OAuthEvent",
    "Problem",
    "error_response",
    "exception_handlers",
    "is_token_path",
    "oauth_error_response",
    "problem_members",
    "problem_response",
]

TOKEN_PATH: Final = "/oauth/token"
"""Where the token endpoint stands below each issuer."""

PROBLEM_JSON: Final = "application/problem+json"

RETRY_AFTER_S: Final = 5
"""Seconds a client is asked to wait after 429 and 503; a ring is looked at twice a second, so five suffice."""

ExceptionHandler = Callable[[Request[Any, Any, Any], Any], Response[bytes]]
"""Turns what was raised into an answer."""

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_UNSAFE: Final = re.compile(r"[^\x20-\x21\x23-\x5B\x5D-\x7E]")
_MUST_WAIT: Final = frozenset({429, 503})


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """
    One kind of problem (RFC 9457 section 3.1): its stable name, its status, its title, and what it means.
    """

    slug: str
    status: int
    title: str
    meaning: str

    @property
    def uri(self) -> str:
        """
        The `type` member: a name to compare, not an address to fetch.
        """
        return f"urn:caplo:problem:{self.slug}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthEvent:
    """
    How the token endpoint answers an event that HTTP names by a status: status, `error` and `error_description`.
    """

    status: int
    error: str
    description: str


def _problems(*problems: Problem) -> Mapping[int, Problem]:
    return MappingProxyType({problem.status: problem for problem in problems})


PROBLEMS: Final[Mapping[int, Problem]] = _problems(
    Problem(slug="bad-request", status=400, title="Bad request", meaning="The request is malformed."),
    Problem(
        slug="unauthenticated",
        status=401,
        title="Authentication needed",
        meaning="There is no credential that is let in here; `WWW-Authenticate` says what is accepted.",
    ),
    Problem(
        slug="forbidden",
        status=403,
        title="Forbidden",
        meaning="The admin's permissions do not reach as far as this call.",
    ),
    Problem(slug="not-found", status=404, title="Not found", meaning="Nothing is served at this path."),
    Problem(
        slug="method-not-allowed",
        status=405,
        title="Method not allowed",
        meaning="`Allow` lists the methods served here.",
    ),
    Problem(
        slug="request-timeout", status=408, title="Request timeout", meaning="The body did not arrive in full in time."
    ),
    Problem(slug="conflict", status=409, title="Conflict", meaning="It does not go together with how things are now."),
    Problem(
        slug="content-too-large", status=413, title="Content too large", meaning="The body is larger than is accepted."
    ),
    Problem(
        slug="uri-too-long", status=414, title="URI too long", meaning="The path and query are longer than accepted."
    ),
    Problem(
        slug="unsupported-media-type",
        status=415,
        title="Unsupported media type",
        meaning="The media type, its charset or the content coding of the body is not accepted.",
    ),
    Problem(
        slug="idempotency-key-reused",
        status=422,
        title="Idempotency key reused",
        meaning="The key of an earlier call came with another body; nothing was done.",
    ),
    Problem(
        slug="too-many-requests",
        status=429,
        title="Too many requests",
        meaning="A limit is reached; `Retry-After` says when to ask again.",
    ),
    Problem(
        slug="header-fields-too-large",
        status=431,
        title="Request header fields too large",
        meaning="There are more header fields, or larger ones, than are accepted.",
    ),
    Problem(
        slug="internal-error",
        status=500,
        title="Internal error",
        meaning="The service failed; the failure is in its log.",
    ),
    Problem(
        slug="unavailable",
        status=503,
        title="Temporarily unavailable",
        meaning="Something the service needs, such as its signing keys, cannot be used; `Retry-After` says when to ask again.",
    ),
)
"""For each status the problem type that says no more than it; `admin_problems` has some that say more."""

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
    fields = {"Cache-Control": "no-store", "Pragma": "no-cache", **_retry_after(status, headers), **headers}
    return Response(_encoded(members), status_code=status, media_type="application/json", headers=fields)


def problem_members(problem: Problem, detail: str | None = None) -> dict[str, Any]:
    """
    Write a problem; without a *detail* it is what the type means.
    """
    return {
        "type": problem.uri,
        "title": problem.title,
        "status": problem.status,
        "detail": detail or problem.meaning,
    }


def problem_response(
    status: int,
    *,
    problem: Problem | None = None,
    detail: str | None = None,
    extensions: Mapping[str, Any] = _NO_HEADERS,
    headers: Mapping[str, str] = _NO_HEADERS,
) -> Response[bytes]:
    """
    Build an error of every other route (RFC 9457), never stored by any cache.

    *detail* is a text of ours. Without a *problem* it is the one of its status in `PROBLEMS`; a status without an entry there has
    the type `about:blank`, its phrase as title, and no detail. Names of *extensions* have three letters or more (RFC 9457 section
    3.2).
    """
    if (kind := problem or PROBLEMS.get(status)) is not None:
        members = problem_members(kind, detail)
    else:
        members = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    members |= extensions
    fields = {"Cache-Control": "no-store", **_retry_after(status, headers), **headers}
    return Response(_encoded(members), status_code=status, media_type=PROBLEM_JSON, headers=fields)


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


def _retry_after(status: int, headers: Mapping[str, str]) -> Mapping[str, str]:
    if status not in _MUST_WAIT or any(name.lower() == "retry-after" for name in headers):
        return _NO_HEADERS
    return {"Retry-After": str(RETRY_AFTER_S)}


def _encoded(members: Mapping[str, Any]) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode()
