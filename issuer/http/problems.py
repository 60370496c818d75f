"""
Problem details (RFC 9457): the types that say no more than their status, and how a problem is raised and answered.

`type` is `urn:caplo:problem:{slug}` from a closed list; a status outside of `PROBLEMS` has the type `about:blank`. Texts are
fixed: nothing of a request or an exception is repeated.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

from litestar import Response

__all__ = [
    "INVALID_BODY",
    "PROBLEMS",
    "PROBLEM_JSON",
    "RETRY_AFTER_S",
    "Problem",
    "ProblemRaised",
    "problem_members",
    "problem_response",
    "retry_after",
]

PROBLEM_JSON: Final = "application/problem+json"

RETRY_AFTER_S: Final = 5
"""Seconds a client is asked to wait after 429 and 503; a ring is looked at twice a second, so five suffice."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
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
"""For each status the problem type that says no more than it; `admin_problems` and `sign_in_problems` have some that say more."""

INVALID_BODY: Final = Problem(
    slug="invalid-body",
    status=400,
    title="Invalid body",
    meaning="The body is not the JSON object that the call takes; `unknown_members` names what does not belong there.",
)
"""What a body is that the call does not take: a type that says more than its status."""


class ProblemRaised(Exception):
    """
    Raised where a call does not go on; `reason` is a closed word for log and trail.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        reason: str | None = None,
        detail: str | None = None,
        extensions: Mapping[str, Any] = _NOTHING,
        headers: Mapping[str, str] = _NOTHING,
    ) -> None:
        """
        Say what it is. Without a *detail* it is what the type means.
        """
        super().__init__(problem.slug)
        self.problem = problem
        self.reason = reason or problem.slug
        self._detail = detail or problem.meaning
        self._extensions = extensions
        self._headers = headers

    @property
    def response(self) -> Response[bytes]:
        """
        The answer.
        """
        return problem_response(
            self.problem.status,
            problem=self.problem,
            detail=self._detail,
            extensions=self._extensions,
            headers=self._headers,
        )


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
    extensions: Mapping[str, Any] = _NOTHING,
    headers: Mapping[str, str] = _NOTHING,
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
    body = json.dumps(members, separators=(",", ":")).encode()
    fields = {"Cache-Control": "no-store", **retry_after(status, headers), **headers}
    return Response(body, status_code=status, media_type=PROBLEM_JSON, headers=fields)


def retry_after(status: int, headers: Mapping[str, str]) -> Mapping[str, str]:
    """
    Return the `Retry-After` of an answer that asks to wait, unless *headers* have one (RFC 9110 section 10.2.3).
    """
    if status not in _MUST_WAIT or any(name.lower() == "retry-after" for name in headers):
        return _NOTHING
    return {"Retry-After": str(RETRY_AFTER_S)}
