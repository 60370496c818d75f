"""
What a request may rest on: an answer of a store that is one, and a refusal that says so where there is none.
"""

from collections.abc import Awaitable
from typing import TypeVar

from .errors import TokenRefused, temporarily_unavailable
from .state import AssertionIds

__all__ = ["CannotTell", "answered", "cannot_tell", "is_first_use"]

_T = TypeVar("_T")


class CannotTell(Exception):
    """
    Raised when it is not known whether something was used before; `problem` is the class of what failed, for the log.
    """

    def __init__(self, problem: str) -> None:
        """
        Name the class of what failed.
        """
        super().__init__(problem)
        self.problem = problem


async def is_first_use(
    ids: AssertionIds, issuer: str, client_id: str, jti: str, *, expires_at: int, issued_at: float
) -> bool:
    """
    Use an identifier up, and tell whether that was its first use: only True says so, and only False that it was not.

    Raises:
        CannotTell: when the store fails, in whatever way, or answers anything else; it may be used up then.
    """
    try:
        answer: object = await ids.use(issuer, client_id, jti, expires_at, issued_at)
    except Exception as error:  # noqa: BLE001 -- a store may fail in any way; none of them lets anybody in
        raise CannotTell(type(error).__name__) from None
    if not isinstance(answer, bool):
        raise CannotTell(type(answer).__name__)
    return answer


async def answered(asked: Awaitable[_T], *, reason: str) -> _T:
    """
    Return what a store answers.

    Raises:
        TokenRefused: `temporarily_unavailable` when it fails, in whatever way.
    """
    try:
        return await asked
    except Exception as error:  # noqa: BLE001 -- a store may fail in any way; none of them mints
        raise cannot_tell(error, reason=reason) from None


def cannot_tell(answer: object, *, reason: str) -> TokenRefused:
    """
    Refuse because of an error, or an answer that is none, whose type is named in the log.
    """
    problem = answer.problem if isinstance(answer, CannotTell) else type(answer).__name__
    return temporarily_unavailable(
        "The service cannot remember this request right now.", reason=reason, problem=problem
    )
