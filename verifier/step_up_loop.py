"""
The way of one call from its first token to an answer that is no step-up challenge, as steps that somebody else takes (RFC 9470).

    1  mint a token, another one for each attempt                              D12
    2  send the call with it
    3  hand the answer back unless it is a step-up challenge                   RFC 9470 3
    4  stop where the demand was met before, or too many prompts were made     D9
    5  ask the customer for a stronger sign-in, or wait for who asks already
    6  begin again with the same action, arguments and idempotency key         D18

No input or output happens here: both clients drive the same generator.
"""

import logging
from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal

from .api_call import APICall, MintedToken, SignInRequest, TokenRequest
from .api_http import APIRequest, APIResponse
from .levels import is_level
from .process_lock import ProcessLock
from .step_up import StepUp, step_up_from_challenge
from .step_up_guard import Prompt, StepUpGuard, Verdict

__all__ = ["SpentTokens", "Step", "StepUpError", "StepUpReason", "Wait", "step_up_loop"]

_LOG: Final = logging.getLogger("verifier")
_UNAUTHORIZED: Final = 401
_MAX_SPENT: Final = 10_000
_NOT_THE_CUSTOMERS: Final = frozenset({"step_up_unsatisfiable", "prompts_full"})

StepUpReason = Literal["declined", "insufficient", "step_up_unsatisfiable", "prompts_full"]
"""Why there is no stronger sign-in."""

_TEXTS: Final[dict[StepUpReason, str]] = {
    "declined": "The customer did not sign in again",
    "insufficient": "The customer signed in at a lower level than was asked for",
    "step_up_unsatisfiable": "The API demands what a sign-in has met already, or more sign-ins than a customer is asked for",
    "prompts_full": "Too many prompts are remembered to count another one",
}


class StepUpError(Exception):
    """
    The API demands a stronger sign-in, and there is none. Nothing was done, and nobody is asked any more.

    Attributes:
        reason: `declined`, `insufficient`, `step_up_unsatisfiable` or `prompts_full`.
        demand: what the API demands.
        response: the answer that demands it.
    """

    def __init__(self, reason: StepUpReason, demand: StepUp, response: APIResponse) -> None:
        super().__init__(_TEXTS[reason])
        self.reason: StepUpReason = reason
        self.demand = demand
        self.response = response

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.reason, self.demand, self.response))


@dataclass(frozen=True, slots=True)
class Wait:
    """
    The step of waiting for a prompt that another call asks the customer; its result tells whether that ended in time.
    """

    ended: Future[None]


Step = TokenRequest | APIRequest | SignInRequest | Wait
"""What is to be done next: mint for it, send it, ask the customer for it, wait for it."""


class SpentTokens:
    """
    Tells a token that was handed out before, by its hash; the last 10,000 are remembered.
    """

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._hashes: dict[bytes, None] = {}

    def spend(self, token: str) -> None:
        """
        Take note of a token.

        Raises:
            ValueError: when it was there before: a token serves one attempt (D12).
        """
        spent = sha256(token.encode()).digest()
        with self._lock():
            if spent in self._hashes:
                raise ValueError("the same token was minted twice; every attempt needs one of its own")
            self._hashes[spent] = None
            if len(self._hashes) > _MAX_SPENT:
                del self._hashes[next(iter(self._hashes))]


def step_up_loop(
    call: APICall, base_url: str, *, guard: StepUpGuard, spent: SpentTokens
) -> Generator[Step, Any, APIResponse]:
    """
    Yield each step and take its result, until there is an answer to hand back.

    Raises:
        StepUpError: when the customer cannot, will not or must not be asked.
        ValueError, TypeError: for what a callback returned and should not have.
    """
    demand: StepUp | None = None
    while True:
        minted_after = guard.last_answer(call.guard_key)
        minted = _minted((yield call.token_request(demand)))
        spent.spend(minted.token)
        response: APIResponse = yield call.request(base_url, minted)
        demand = _demanded(response)
        if demand is None:
            return response
        verdict = yield from _sign_in(call, demand, guard=guard, minted_after=minted_after)
        if verdict != "mint_again":
            if verdict in _NOT_THE_CUSTOMERS:
                _LOG.warning("nobody is asked for the sign-in that %s demands: %s", call.audience, verdict)
            raise StepUpError(verdict, demand, response)


def _minted(result: object) -> MintedToken:
    return result if isinstance(result, MintedToken) else MintedToken(result)  # type: ignore[arg-type]


def _demanded(response: APIResponse) -> StepUp | None:
    return step_up_from_challenge(response.lines("www-authenticate")) if response.status == _UNAUTHORIZED else None


def _sign_in(call: APICall, demand: StepUp, *, guard: StepUpGuard, minted_after: int) -> Generator[Step, Any, Verdict]:
    """
    Have the customer sign in, unless somebody else does or it would not help (steps 4 and 5).
    """
    while True:
        decided = guard.decide(call.guard_key, demand, present_level=call.present_level, minted_after=minted_after)
        if isinstance(decided, Prompt):
            yield from _asked(call, decided, guard)
        elif not isinstance(decided, Future):
            return decided
        elif not (yield Wait(decided)):
            return "declined"


def _asked(call: APICall, prompt: Prompt, guard: StepUpGuard) -> Generator[Step, Any, None]:
    request = SignInRequest(
        demand=prompt.demand, audience=call.audience, conversation=call.conversation, action=call.action
    )
    try:
        level = yield request
        if level is not None and not is_level(level):
            raise TypeError("a sign-in callback returns the level that was reached, or None")
    except BaseException:
        # Whatever ended it, those who wait for this prompt must not wait for ever.
        guard.end(prompt)
        raise
    guard.answered(prompt, level)
