"""
What a request may rest on: an answer of a store that is one, and a refusal that says so where there is none.
"""

from collections.abc import Awaitable
from typing import TypeVar

from .errors import TokenRefused, temporarily_unavailable

__all__ = ["answered", "cannot_tell"]

_T = TypeVar("_T")


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
    return temporarily_unavailable(
        "The service cannot remember this request right now.", reason=reason, problem=type(answer).__name__
    )
