"""
What the sign-in routes answer when something does not go: each refusal as problem details, to a client that can mend it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from verifier.challenge import format_challenge

from ..errors import TokenRefused
from ..sign_in_desk import SignInRefused
from .problems import INVALID_BODY, PROBLEMS, Problem, ProblemRaised

__all__ = ["SIGN_IN_PROBLEMS", "as_problem"]

SIGN_IN_PROBLEMS: Final[Mapping[str, Problem]] = MappingProxyType(
    {
        problem.slug: problem
        for problem in (
            Problem(
                slug="sign-ins-not-allowed",
                status=400,
                title="Sign-ins not allowed",
                meaning="The client may not bring sign-ins as subject tokens, so none is recorded for it.",
            ),
            Problem(
                slug="id-token-refused",
                status=400,
                title="ID token refused",
                meaning="The ID token is not one that this client may bring, or not now; `reason` says what is wrong with it.",
            ),
            Problem(
                slug="logout-token-refused",
                status=400,
                title="Logout token refused",
                meaning="The logout token is not acceptable; `reason` says what is wrong with it.",
            ),
            Problem(
                slug="unknown-sign-in",
                status=404,
                title="Unknown sign-in",
                meaning="The client has no sign-in with that handle: it has ended, expired, or never was.",
            ),
            Problem(
                slug="sign-ins-full",
                status=429,
                title="Too many sign-ins",
                meaning="The client, or the customer, has as many live sign-ins as there is room for: end some, or wait until "
                "some expire. The ID token is used up.",
            ),
        )
    }
)
"""The problem types of sign-ins that say more than their status, by slug."""


def as_problem(error: TokenRefused | SignInRefused, realm: str) -> ProblemRaised:
    """
    Return the problem that a refusal is for a client of the issuer *realm*.
    """
    return _of_client(error, realm) if isinstance(error, TokenRefused) else _of_sign_in(error)


def _of_client(error: TokenRefused, realm: str) -> ProblemRaised:
    if error.status == 401:
        offered = (format_challenge("Basic", {"realm": realm}), format_challenge("Bearer", {"realm": realm}))
        headers = {"WWW-Authenticate": ", ".join(offered)}
        return ProblemRaised(PROBLEMS[401], detail=error.description, headers=headers)
    headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
    return ProblemRaised(PROBLEMS[error.status], detail=error.description, headers=headers)


def _of_sign_in(error: SignInRefused) -> ProblemRaised:
    word = error.reason.partition(":")[2]
    match error.refusal:
        case "not_allowed":
            return ProblemRaised(SIGN_IN_PROBLEMS["sign-ins-not-allowed"])
        case "id_token":
            return ProblemRaised(SIGN_IN_PROBLEMS["id-token-refused"], extensions={"reason": word})
        case "logout_token":
            return ProblemRaised(SIGN_IN_PROBLEMS["logout-token-refused"], extensions={"reason": word})
        case "conversation":
            detail = "The conversation is 1 to 128 printable ASCII characters."
            return ProblemRaised(INVALID_BODY, detail=detail)
        case "full":
            return ProblemRaised(SIGN_IN_PROBLEMS["sign-ins-full"], headers={"Retry-After": "60"})
        case "unavailable":
            return ProblemRaised(PROBLEMS[503], extensions={"code": error.reason.replace(":", "_")})
