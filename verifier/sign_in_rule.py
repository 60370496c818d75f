"""
Whether the customer's sign-in is strong and recent enough: the one place that decides it (RFC 9470, D9).
"""

import math
import time
from collections.abc import Callable
from typing import Final, Self

from .claims import TokenClaims
from .demand import FRESH_SIGN_IN_S, Demand
from .errors import CustomerContextError, PointingTo
from .levels import satisfies
from .step_up import StepUp

__all__ = ["WALL_CLOCK_RULE", "SignInRule", "check_sign_in"]


def check_sign_in(claims: TokenClaims, demand: Demand, *, now: float, clock_tolerance_s: int) -> None:
    """
    Compare a sign-in with the demanded level and age; equality is good, and 0 is met by a sign-in of the last minute.

    Raises:
        CustomerContextError: `step_up`, with the demand in its challenge.
    """
    if demand.level is None and demand.max_auth_age_seconds is None:
        return
    strong = demand.level is None or satisfies(claims.acr, demand.level)
    limit = demand.max_auth_age_seconds
    age = math.inf if claims.auth_time is None else now - claims.auth_time
    recent = limit is None or age <= (limit or FRESH_SIGN_IN_S) + clock_tolerance_s
    if not (strong and recent):
        raise CustomerContextError(
            "step_up",
            hint=f"level met: {strong}, age met: {recent}",
            parameters=StepUp(demand.level, limit).parameters(),
        )


class SignInRule:
    """
    How the verifier that accepted a token judges its sign-in later on: by the same clock and tolerance, in the same words.

    Never changed once built. A copy that goes to another process judges by that one's wall clock.
    """

    __slots__ = ("_clock_tolerance_s", "_now", "_pointing")

    def __init__(self, *, now: Callable[[], float], clock_tolerance_s: int, pointing: PointingTo) -> None:
        self._now = now
        self._clock_tolerance_s = clock_tolerance_s
        self._pointing = pointing

    def check(self, claims: TokenClaims, demand: Demand) -> None:
        """
        Compare a sign-in with a demand now; see `check_sign_in`.
        """
        with self._pointing:
            check_sign_in(claims, demand, now=self._now(), clock_tolerance_s=self._clock_tolerance_s)

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (_on_wall_clock, (self._clock_tolerance_s, self._pointing.resource_metadata))


def _on_wall_clock(clock_tolerance_s: int, resource_metadata: str | None) -> SignInRule:
    return SignInRule(now=time.time, clock_tolerance_s=clock_tolerance_s, pointing=PointingTo(resource_metadata))


WALL_CLOCK_RULE: Final = _on_wall_clock(0, None)
"""The rule of a context that no verifier made."""
