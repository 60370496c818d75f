"""
Step-up demands: an API states them in a challenge, an orchestrator reads them from one (RFC 9470, profile D9 and D10).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .challenge import Challenge, parse_challenges
from .demand import MAX_AGE_S
from .errors import CustomerContextError
from .levels import Level, acceptable_levels, is_level
from .url import check_url

__all__ = ["StepUp", "step_up_from_challenge", "step_up_required"]

_ERROR: Final = "insufficient_user_authentication"
_DIGITS: Final = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class StepUp:
    """
    What a customer's sign-in has to be: of a level at least `level`, at most `max_auth_age_seconds` old, or both.

    None means that nothing is demanded in that respect; a demand of nothing is not a step-up and cannot be built. An age of 0
    asks for an active sign-in made for this request (D9), so compare with None, not by truth.

    Raises:
        ValueError: when both are None, when the level is unknown, or when the age is not an int from 0 to 86400.
    """

    level: Level | None
    max_auth_age_seconds: int | None

    def __post_init__(self) -> None:
        if self.level is None and self.max_auth_age_seconds is None:
            raise ValueError("a step-up demands a level, an age or both")
        if self.level is not None and not is_level(self.level):
            raise ValueError("level is low, standard or high")
        if self.max_auth_age_seconds is not None and not _is_age(self.max_auth_age_seconds):
            raise ValueError(f"max_auth_age_seconds is an int from 0 to {MAX_AGE_S}")

    def parameters(self) -> dict[str, str]:
        """
        Return the demand as parameters of a challenge: `acr_values`, lowest first, and `max_age` (RFC 9470 section 3).
        """
        parameters = {}
        if self.level is not None:
            parameters["acr_values"] = " ".join(acceptable_levels(self.level))
        if self.max_auth_age_seconds is not None:
            parameters["max_age"] = str(self.max_auth_age_seconds)
        return parameters

    def challenge(self, realm: str | None = None, resource_metadata: str | None = None) -> str:
        """
        Return the `WWW-Authenticate` value that states this demand, the same that a refusal with reason `step_up` carries.

        *resource_metadata* is the URL of the API's metadata, if it publishes any (RFC 9728 section 5.1). A challenge shows
        policy: send it only to a caller whose token passed verification (RFC 9470 section 9).

        Raises:
            ValueError, TypeError: for a *resource_metadata* that is no https URL.
        """
        parameters = {} if realm is None else {"realm": realm}
        parameters |= self.parameters()
        if resource_metadata is not None:
            check_url(resource_metadata)
            parameters["resource_metadata"] = resource_metadata
        return CustomerContextError("step_up", parameters=parameters).www_authenticate


def step_up_required(level: Level | None = None, max_auth_age_seconds: int | None = None) -> StepUp:
    """
    Return the demand that an API makes, for its `challenge()`; see `StepUp` for the bounds.

    Raises:
        ValueError: for a demand that `StepUp` cannot hold; nothing is clamped here, since the author is the one to tell.
    """
    return StepUp(level, max_auth_age_seconds)


def step_up_from_challenge(header: str | bytes | Iterable[str | bytes] | None) -> StepUp | None:
    """
    Return the first usable step-up demand in a `WWW-Authenticate` header of one or several lines, or None; never raises.

    Only a Bearer challenge whose error is exactly `insufficient_user_authentication` counts. Challenges are alternatives, so
    an unusable one is passed over; parameters of two are never mixed. Unusable is a challenge with neither `acr_values` nor
    `max_age`, one whose `acr_values` hold no known level (a new sign-in could not help), and one whose `max_age` is not a
    plain decimal number: keeping its other half would drop half of the demand. Of several known levels the first counts, as
    preferred by the API; an age above 86400 is clamped to it, which a sign-in that meets it satisfies as well (D10).
    """
    for challenge in parse_challenges(header):
        if challenge.is_of_scheme("Bearer") and challenge.params.get("error") == _ERROR:
            step_up = _demand(challenge)
            if step_up is not None:
                return step_up
    return None


def _demand(challenge: Challenge) -> StepUp | None:
    params = challenge.params
    level = _preferred_level(params.get("acr_values", ""))
    age = _age(params.get("max_age", ""))
    stated = [read for name, read in (("acr_values", level), ("max_age", age)) if name in params]
    if not stated or None in stated:
        return None
    return StepUp(level, age)


def _preferred_level(acr_values: str) -> Level | None:
    # Only the space separates (RFC 9470 section 3); `str.split()` would take tabs and Unicode spaces too.
    return next(filter(is_level, acr_values.split(" ")), None)


def _age(text: str) -> int | None:
    if _DIGITS.fullmatch(text) is None:
        return None
    # Python refuses to convert more than 4300 digits, so the length is looked at first.
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(MAX_AGE_S)):
        return MAX_AGE_S
    return min(int(digits), MAX_AGE_S)


def _is_age(value: object) -> bool:
    # `True` is an int to isinstance, and no age.
    return type(value) is int and 0 <= value <= MAX_AGE_S
