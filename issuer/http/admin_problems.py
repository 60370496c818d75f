"""
What the admin routes answer when something does not go: each refusal as problem details, with what an admin needs to go on.

Whatever is not listed here is a failure of the service. Texts are ours; of a request nothing is repeated but names of members
that nobody asked for, when they look like names.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from keys import (
    ActiveKeyMismatch,
    IllegalTransition,
    KeysError,
    ReasonRequired,
    StandbyNotMature,
    TooManyRetiring,
    TransitionRefused,
    UnknownKey,
)
from verifier.challenge import format_challenge

from ..admins import AdminRefused
from ..suspensions import MAX_SUSPENSIONS, InvalidSuspension, SuspensionsFull, UnknownSuspension
from .problems import INVALID_BODY, PROBLEMS, Problem, ProblemRaised

__all__ = ["ADMIN_PROBLEMS", "as_problem"]


def _problems(*problems: Problem) -> Mapping[str, Problem]:
    return MappingProxyType({problem.slug: problem for problem in problems})


ADMIN_PROBLEMS: Final[Mapping[str, Problem]] = _problems(
    INVALID_BODY,
    Problem(
        slug="invalid-query",
        status=400,
        title="Invalid query",
        meaning="A parameter of the query is unknown, repeated or malformed.",
    ),
    Problem(
        slug="idempotency-key-missing",
        status=400,
        title="Idempotency key missing",
        meaning="The call needs an `Idempotency-Key`, so that sent twice it is done once.",
    ),
    Problem(
        slug="idempotency-key-malformed",
        status=400,
        title="Idempotency key malformed",
        meaning="`Idempotency-Key` is 16 to 128 of A-Z a-z 0-9 . _ ~ -, once, bare or in double quotes.",
    ),
    Problem(slug="unknown-key", status=404, title="Unknown key", meaning="The ring holds no key with that kid."),
    Problem(
        slug="unknown-suspension",
        status=404,
        title="Unknown suspension",
        meaning="No suspension of that id holds: it was lifted, or its time has passed.",
    ),
    Problem(
        slug="active-key-differs",
        status=409,
        title="Another key is active",
        meaning="The key that signs is `active`, not the one expected; nothing was done.",
    ),
    Problem(
        slug="standby-not-mature",
        status=409,
        title="No standby is mature",
        meaning="No standby has been published long enough; from `earliest` (epoch seconds) on, one has.",
    ),
    Problem(
        slug="too-many-retiring",
        status=409,
        title="Too many keys are retiring",
        meaning="Keys wait for their last token to expire; from `earliest` (epoch seconds) on, there is room again.",
    ),
    Problem(
        slug="key-not-published",
        status=409,
        title="The key is not published",
        meaning="The key left the key set at `unpublished_at` (epoch seconds) and is `state`: nothing is left to do.",
    ),
    Problem(
        slug="suspensions-full",
        status=409,
        title="No room for a suspension",
        meaning=f"There are {MAX_SUSPENSIONS} suspensions, or they take too much room: lift some that are not needed any more.",
    ),
    Problem(
        slug="call-in-progress",
        status=409,
        title="The call is in progress",
        meaning="The same call with this `Idempotency-Key` has not ended yet; ask again for its answer.",
    ),
)
"""The problem types that say more than their status, by slug."""


def as_problem(error: Exception, realm: str) -> ProblemRaised | None:
    """
    Return the problem that an error is for an admin of the issuer *realm*, or None when nobody expected it.
    """
    match error:
        case ProblemRaised():
            return error
        case AdminRefused():
            return _refused(error, realm)
        case TransitionRefused():
            return _transition(error)
        case InvalidSuspension():
            return ProblemRaised(INVALID_BODY, detail=f"{str(error).capitalize()}.")
        case SuspensionsFull():
            return ProblemRaised(ADMIN_PROBLEMS["suspensions-full"], extensions={"limit": MAX_SUSPENSIONS})
        case UnknownSuspension():
            return ProblemRaised(ADMIN_PROBLEMS["unknown-suspension"])
        case KeysError():
            # The text of such an error names files; its code is enough to find it in the log.
            return ProblemRaised(PROBLEMS[503], reason=error.code, extensions={"code": error.code})
    return None


def _transition(error: TransitionRefused) -> ProblemRaised:
    slug, facts = _facts(error)
    problem = PROBLEMS[503] if slug is None else ADMIN_PROBLEMS[slug]
    extensions = facts if slug else {"code": error.code}
    return ProblemRaised(problem, reason=error.code, detail=str(error), extensions=extensions)


def _facts(error: TransitionRefused) -> tuple[str | None, Mapping[str, Any]]:
    match error:
        case ActiveKeyMismatch():
            return "active-key-differs", {"active": error.active}
        case StandbyNotMature():
            return "standby-not-mature", {"earliest": error.earliest, "standby": error.kid}
        case TooManyRetiring():
            return "too-many-retiring", {"earliest": error.earliest}
        case IllegalTransition():
            return "key-not-published", {"state": error.state, "unpublished_at": error.unpublished_at}
        case UnknownKey():
            return "unknown-key", {}
        case ReasonRequired():
            return "invalid-body", {}
    # What is left is a clock that is wrong, which is the service's trouble.
    return None, {}


def _refused(error: AdminRefused, realm: str) -> ProblemRaised:
    match error.refusal:
        case "unauthenticated":
            failed = {"error": "invalid_token"} if error.scheme == "bearer" else {}
            offered = (
                format_challenge("Basic", {"realm": realm}),
                format_challenge("Bearer", {"realm": realm} | failed),
            )
            return ProblemRaised(PROBLEMS[401], reason=error.reason, headers={"WWW-Authenticate": ", ".join(offered)})
        case "forbidden":
            lacking = {"realm": realm, "error": "insufficient_scope", "scope": error.permission or ""}
            headers = {"WWW-Authenticate": format_challenge("Bearer", lacking)}
            extensions = {"permission": error.permission}
            return ProblemRaised(PROBLEMS[403], reason=error.reason, extensions=extensions, headers=headers)
        case "malformed":
            headers = {"WWW-Authenticate": format_challenge("Bearer", {"realm": realm, "error": "invalid_request"})}
            detail = "There is more than one Authorization header."
            return ProblemRaised(PROBLEMS[400], reason=error.reason, detail=detail, headers=headers)
        case "over_limit":
            detail = "There were too many wrong secrets; the right one is accepted at any time."
            headers = {"Retry-After": str(error.retry_after_s)}
            return ProblemRaised(PROBLEMS[429], reason=error.reason, detail=detail, headers=headers)
        case _:
            return ProblemRaised(PROBLEMS[503], reason=error.reason, extensions={"code": "assertions_unavailable"})
