"""
What one call demands of its token, checked before any token is looked at.

A demand that makes no sense is the programmer's mistake, so it is a ValueError or a TypeError; what comes from a request (the
arguments, the idempotency key) is carried along as it is and judged by the procedure.
"""

import re
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final

from .action import is_action_name
from .claims import CONFIRMATIONS, ConfirmedBy
from .levels import Level, is_level

__all__ = [
    "FRESH_SIGN_IN_S",
    "MAX_AGE_S",
    "NOT_GIVEN",
    "NO_DEMAND",
    "Demand",
    "NotGiven",
    "check_seconds",
    "demand_of",
    "scope_words",
]

MAX_AGE_S: Final = 86_400
"""Largest age that can be demanded, in seconds (D10)."""

FRESH_SIGN_IN_S: Final = 60
"""What meets a demand for an age of 0, in seconds: literally nothing could, since time passes on the way to the API (D9)."""

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")


class NotGiven(Enum):
    """
    What stands for arguments that the call does not have, since None is what a framework makes of a request's `null`.
    """

    NOT_GIVEN = "not given"


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """
    What a call demands: scope, action with its arguments, confirmation, level, ages (seconds, 0 to 86400).

    Raises:
        ValueError: for a value outside its range, or members that do not go together.
        TypeError: for a value of another type.
    """

    action: str | None = None
    arguments: Any = NOT_GIVEN
    idempotency_key: Any = None
    scope: str | None = None
    level: Level | None = None
    max_auth_age_seconds: int | None = None
    confirmation: ConfirmedBy | None = None
    max_confirmation_age_seconds: int | None = None
    ignore_action: bool = False

    def __post_init__(self) -> None:
        if type(self.ignore_action) is not bool:
            raise TypeError("ignore_action is a bool")
        self._check_action()
        if self.scope is not None:
            scope_words(self.scope)
        if self.level is not None and not is_level(self.level):
            raise ValueError("level is one of low, standard, high")
        check_seconds("max_auth_age_seconds", self.max_auth_age_seconds)
        check_seconds("max_confirmation_age_seconds", self.max_confirmation_age_seconds)
        if self.confirmation is not None and self.confirmation not in CONFIRMATIONS:
            raise ValueError("confirmation is one of none, client, customer")

    def _check_action(self) -> None:
        if self.action is None:
            bound = (self.idempotency_key, self.confirmation, self.max_confirmation_age_seconds)
            if self.arguments not in (None, NOT_GIVEN) or any(value is not None for value in bound):
                raise ValueError("arguments, idempotency_key and confirmation demands need an action")
            return
        if not is_action_name(self.action):
            raise ValueError("action is 1 to 128 characters of A-Z a-z 0-9 . _ : -")
        if self.arguments is NOT_GIVEN:
            raise ValueError("an action needs the arguments that the API is about to execute; none at all are {}")
        if self.ignore_action:
            raise ValueError("ignore_action contradicts action")


def scope_words(scope: object) -> frozenset[str]:
    """
    Split a scope that is asked for or demanded into its words (RFC 6749 section 3.3).

    Raises:
        ValueError: for text that is no scope.
    """
    if not isinstance(scope, str) or _SCOPE.fullmatch(scope) is None:
        raise ValueError("a scope is one or more words of printable ASCII, separated by single spaces")
    return frozenset(scope.split(" "))


def check_seconds(name: str, value: object, largest: int = MAX_AGE_S) -> None:
    """
    Refuse a number of seconds that is not an int from 0 to *largest*; None is fine.
    """
    if value is None:
        return
    if type(value) is not int:
        raise TypeError(f"{name} is an int, in seconds")
    if not 0 <= value <= largest:
        raise ValueError(f"{name} lies between 0 and {largest} seconds")


NO_DEMAND: Final = Demand()
"""What most reads demand: nothing."""

_NOTHING: Final = {member.name: member.default for member in fields(Demand)}


def demand_of(**demands: Any) -> Demand:
    """
    Return the demand of one call, of which every member is named; see `Demand` for the errors.
    """
    # Building the same empty demand for every read would cost more than some of the checks.
    return NO_DEMAND if demands == _NOTHING else Demand(**demands)
