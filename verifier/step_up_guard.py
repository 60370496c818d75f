"""
The memory that keeps an API from pestering a customer: at most two prompts for one confirmed action (RFC 9470 section 9, D9).

Pure but for a lock: it decides, and who asks the customer, and how one waits for that, is left to the clients.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Literal

from .claims import CONFIRMATION_LIFETIME_S
from .demand import FRESH_SIGN_IN_S
from .levels import LEVELS, Level, satisfies
from .process_lock import ProcessLock
from .step_up import StepUp

__all__ = ["MAX_PROMPTS", "PROMPT_LIMIT_S", "Prompt", "StepUpGuard", "Verdict"]

MAX_PROMPTS: Final = 2
"""How often a customer is asked for one action, whatever the API demands (D9)."""

PROMPT_LIMIT_S: Final = 600
"""How long a prompt is waited for by calls that need the same one; after that it counts as lost."""

# As long as tokens can be minted for one confirmed action, and the 120 s that the issuer remembers it beyond (D12).
_LEAST_MEMORY_S: Final = CONFIRMATION_LIFETIME_S + 120

Verdict = Literal["mint_again", "declined", "insufficient", "step_up_unsatisfiable", "prompts_full"]
"""
What follows without another prompt: a sign-in made since the token was minted will do; the customer has refused since then, or
reached too low a level; no prompt would help, or there were enough of them; none can be counted.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prompt:
    """
    One question to a customer, from the moment it is decided on; `ended` is resolved when it was answered, or could not be.
    """

    key: tuple[str, ...] = field(repr=False)
    demand: StepUp
    began_at: float
    ended: Future[None] = field(default_factory=Future, repr=False)

    def __post_init__(self) -> None:
        # As if it ran from the start, so that a waiter who is cancelled cannot cancel it for the others.
        self.ended.set_running_or_notify_cancel()


@dataclass(slots=True)
class _Record:
    """
    What is remembered of one action: how often the customer was asked, what they answered last, and how they signed in last.

    Answers are numbered in the order they were given; 0 stands for none.
    """

    touched_at: float
    prompts: int = 0
    running: Prompt | None = None
    asked_age: int | None = None
    answer: int = 0
    refusal: Literal["declined", "insufficient"] | None = None
    sign_in: int = 0
    level: Level | None = None
    met_age: int | None = None
    signed_in_at: float = 0.0

    def judge(self, demand: StepUp, *, minted_after: int, now: float) -> Future[None] | Verdict | None:
        """
        Return what follows from what is remembered, or None when the customer has to be asked.
        """
        if self._has_met(demand, now):
            return "mint_again" if self.sign_in > minted_after else "step_up_unsatisfiable"
        if self.running is not None and now - self.running.began_at <= PROMPT_LIMIT_S:
            return self.running.ended
        if self.refusal is not None and self.answer > minted_after:
            return self.refusal
        return "step_up_unsatisfiable" if self.prompts == MAX_PROMPTS else None

    def _has_met(self, demand: StepUp, now: float) -> bool:
        # It was asked for that much or more, it reached that level, and it is still as recent as that (D9).
        if self.level is None or (demand.level is not None and not satisfies(self.level, demand.level)):
            return False
        age = demand.max_auth_age_seconds
        if age is None:
            return True
        asked = self.met_age is not None and self.met_age <= age
        return asked and now - self.signed_in_at <= (age or FRESH_SIGN_IN_S)

    def begin(self, key: tuple[str, ...], demand: StepUp, present_level: Level | None, now: float) -> Prompt:
        """
        Count a prompt for the highest level and the strictest age that are known of (D9).
        """
        levels = [level for level in (self.level, present_level, demand.level) if level is not None]
        ages = [age for age in (self.asked_age, demand.max_auth_age_seconds) if age is not None]
        self.asked_age = min(ages, default=None)
        asked = StepUp(max(levels, key=LEVELS.index, default=None), self.asked_age)
        self.prompts += 1
        self.running = Prompt(key=key, demand=asked, began_at=now)
        return self.running

    def take(self, prompt: Prompt, level: Level | None, answer: int, now: float) -> None:
        """
        Note what the customer answered: the level that they signed in at, or None.
        """
        self.answer, self.refusal = answer, None
        if level is None:
            self.refusal = "declined"
            return
        if prompt.demand.level is not None and not satisfies(level, prompt.demand.level):
            self.refusal = "insufficient"
        self.sign_in, self.level, self.signed_in_at = answer, level, now
        self.met_age = prompt.demand.max_auth_age_seconds


class StepUpGuard:
    """
    Counts prompts by action, or by conversation and API for reads; safe between threads and event loops of one process.

    A prompt counts when it begins, however it ends. What was asked for is forgotten *remember_s* after the last time; with
    *max_keys* remembered, calls that would need another are refused rather than an older one forgotten.
    """

    def __init__(
        self,
        *,
        max_keys: int = 100_000,
        remember_s: int = 28_800,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Remember nothing yet.

        Args:
            max_keys: the most actions and conversations that are remembered, about 500 octets each.
            remember_s: at least 1920, which is as long as tokens can be minted for one action.
            now: a clock that does not go backwards, in seconds.

        Raises:
            ValueError: for a number out of its range.
        """
        if type(max_keys) is not int or max_keys < 1:
            raise ValueError("max_keys is a positive int")
        if type(remember_s) is not int or remember_s < _LEAST_MEMORY_S:
            raise ValueError(f"remember_s is an int of {_LEAST_MEMORY_S} or more seconds")
        self._max_keys = max_keys
        self._remember_s = remember_s
        self._now = now
        self._lock = ProcessLock()
        self._answers = count(1)
        # In the order of the last touch, so that what is to be forgotten stands first.
        self._records: OrderedDict[tuple[str, ...], _Record] = OrderedDict()

    def last_answer(self, key: tuple[str, ...]) -> int:
        """
        Return the number of the last answer of the customer: what a token knows of that is minted from here on.
        """
        with self._lock():
            record = self._records.get(key)
            return record.answer if record is not None else 0

    def decide(
        self, key: tuple[str, ...], demand: StepUp, *, present_level: Level | None, minted_after: int
    ) -> Prompt | Future[None] | Verdict:
        """
        Decide what follows when a token that was minted after the answer *minted_after* is challenged.

        Whoever gets a `Prompt` asks the customer, and says with `answered` or `end` what came of it. A future is that of a
        prompt which somebody else got. After either put the question again.
        """
        now = self._now()
        with self._lock():
            record = self._record(key, now)
            if record is None:
                return "prompts_full"
            verdict = record.judge(demand, minted_after=minted_after, now=now)
            return record.begin(key, demand, present_level, now) if verdict is None else verdict

    def answered(self, prompt: Prompt, level: Level | None) -> None:
        """
        Take note of the level that the customer signed in at, or of None, when they did not.
        """
        now = self._now()
        with self._lock():
            record = self._records.get(prompt.key)
            if record is not None:
                record.take(prompt, level, next(self._answers), now)
        self.end(prompt)

    def end(self, prompt: Prompt) -> None:
        """
        Take note that a prompt is over, with or without an answer, and let those who wait for it go on.
        """
        with self._lock():
            record = self._records.get(prompt.key)
            if record is not None and record.running is prompt:
                record.running = None
        prompt.ended.set_result(None)

    def _record(self, key: tuple[str, ...], now: float) -> _Record | None:
        records = self._records
        while records and now - next(iter(records.values())).touched_at > self._remember_s:
            records.popitem(last=False)
        if key not in records:
            if len(records) >= self._max_keys:
                return None
            records[key] = _Record(now)
        records.move_to_end(key)
        records[key].touched_at = now
        return records[key]
