"""
The guard decides by what was asked for, what was answered and when, and never lets a third prompt begin (D9).
"""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from verifier import StepUp
from verifier.levels import LEVELS
from verifier.step_up_guard import MAX_PROMPTS, PROMPT_LIMIT_S, Prompt, StepUpGuard

KEY = ("write", "k")
demands = st.builds(
    StepUp, st.sampled_from(LEVELS), st.none() | st.sampled_from([0, 1, 60, 61, 300, 86_400])
) | st.builds(StepUp, st.none(), st.sampled_from([0, 1, 60, 61, 300, 86_400]))


@pytest.fixture
def guard(still_clock):
    return StepUpGuard(now=still_clock)


def decide(guard, level=None, age=None, *, present=None, minted_after=None, key=KEY):
    """
    Put the question, by default for a token that was minted just now.
    """
    known = guard.last_answer(key) if minted_after is None else minted_after
    return guard.decide(key, StepUp(level, age), present_level=present, minted_after=known)


def sign_in(guard, level=None, age=None, *, reached=None, present=None):
    """
    Have a prompt that has to begin answered.
    """
    prompt = decide(guard, level, age, present=present)
    assert isinstance(prompt, Prompt)
    guard.answered(prompt, reached or prompt.demand.level or "standard")
    return prompt.demand


@pytest.mark.parametrize(
    ("met", "demanded", "again"),
    [
        (("high", 300), ("high", 300), False),
        (("high", 300), ("standard", 300), False),
        (("high", 300), ("high", None), False),
        (("high", 300), ("low", None), False),
        (("high", 300), (None, 300), False),
        (("high", 300), (None, 301), False),
        (("high", 300), ("high", 299), True),
        (("high", 300), (None, 0), True),
        (("standard", 300), ("high", 300), True),
        (("standard", 300), ("high", None), True),
        (("standard", None), ("standard", 300), True),
        ((None, 0), (None, 0), False),
        ((None, 0), (None, 86_400), False),
        ((None, 300), ("high", None), True),
    ],
)
def test_what_was_met_prompts_no_one(guard, met, demanded, again):
    """
    The same demand after it was met, or a weaker one, is not satisfiable by asking; a stronger one may be, once.
    """
    sign_in(guard, *met)

    decided = decide(guard, *demanded)

    assert isinstance(decided, Prompt) if again else decided == "step_up_unsatisfiable"


@pytest.mark.parametrize(("age", "lasts"), [(300, 300), (1, 1), (0, 60), (86_400, 20_000)])
def test_an_age_is_met_for_as_long_as_it_says(guard, still_clock, age, lasts):
    """
    To the second, an age of 0 for the minute that an API takes it for; after that the customer may be asked once more.
    """
    sign_in(guard, "high", age)

    still_clock.at += lasts
    assert decide(guard, "high", age) == "step_up_unsatisfiable"
    still_clock.at += 0.5
    assert isinstance(decide(guard, "high", age), Prompt) is (age != 86_400)


def test_a_token_from_before_the_answer_is_minted_again(guard):
    """
    Whoever was challenged with an older token gets a new one, or shares the refusal, without another prompt.
    """
    before = guard.last_answer(KEY)

    sign_in(guard, "high", 300)
    assert decide(guard, "high", 300, minted_after=before) == "mint_again"
    between = guard.last_answer(KEY)
    guard.answered(decide(guard, "high", 0), None)

    assert decide(guard, "high", 300, minted_after=before) == "mint_again"
    assert decide(guard, "high", 0, minted_after=between) == "declined"
    assert decide(guard, "high", 0) == "step_up_unsatisfiable"


def test_a_level_too_low_is_still_a_sign_in(guard):
    """
    It refuses what it does not meet, and meets what it does.
    """
    prompt = decide(guard, "standard", None, present="high")
    assert prompt.demand == StepUp("high", None)
    guard.answered(prompt, "standard")

    assert decide(guard, "high", None, minted_after=0) == "insufficient"
    assert decide(guard, "standard", None, minted_after=0) == "mint_again"
    assert decide(guard, "standard", None) == "step_up_unsatisfiable"
    assert isinstance(decide(guard, "high", None), Prompt)


@pytest.mark.parametrize(
    ("steps", "asked"),
    [
        ([("low", None, None), ("high", None, None)], [("low", None), ("high", None)]),
        ([(None, 60, None), ("high", 300, None)], [(None, 60), ("high", 60)]),
        ([("standard", 300, "high"), (None, 60, None)], [("high", 300), ("high", 60)]),
        ([(None, 300, "low"), ("standard", None, "low")], [("low", 300), ("standard", 300)]),
    ],
)
def test_a_prompt_asks_for_the_higher_and_the_stricter(guard, steps, asked):
    """
    Present, remembered and demanded level, and the strictest age that was demanded, make the question.
    """
    prompts = [sign_in(guard, level, age, present=present) for level, age, present in steps]

    assert [(prompt.level, prompt.max_auth_age_seconds) for prompt in prompts] == asked


def test_a_prompt_that_runs_is_waited_for(guard, still_clock):
    """
    Everybody else gets the future of the one that runs, until it is over or has been running for too long.
    """
    prompt = decide(guard, "standard", None)

    assert decide(guard, "high", None) is prompt.ended
    assert not prompt.ended.done()
    assert not prompt.ended.cancel()
    still_clock.at += PROMPT_LIMIT_S
    assert decide(guard, "high", None) is prompt.ended
    still_clock.at += 1
    second = decide(guard, "high", None)
    assert isinstance(second, Prompt)
    guard.answered(prompt, "standard")
    assert prompt.ended.done()
    assert decide(guard, "high", None) is second.ended
    guard.end(second)
    assert decide(guard, "high", None) == "step_up_unsatisfiable"


def test_what_is_forgotten_and_when(guard, still_clock):
    """
    Eight hours after the last challenge, not the first; an answer that comes later than that is nobody's.
    """
    sign_in(guard, "high", None)
    still_clock.at += 28_800
    assert decide(guard, "high", None) == "step_up_unsatisfiable"
    still_clock.at += 28_800
    assert decide(guard, "high", None) == "step_up_unsatisfiable"
    still_clock.at += 28_801
    late = decide(guard, "high", None)
    assert isinstance(late, Prompt)

    still_clock.at += 28_801
    assert isinstance(decide(guard, key=("read", "c", "a"), age=0), Prompt)
    guard.answered(late, "high")

    assert late.ended.done()
    assert guard.last_answer(KEY) == 0


def test_nothing_is_forgotten_for_lack_of_room(still_clock):
    """
    A full memory refuses another key and goes on counting the ones that it holds.
    """
    guard = StepUpGuard(max_keys=2, remember_s=1920, now=still_clock)
    for number in range(2):
        guard.answered(decide(guard, "high", None, key=("write", str(number))), None)

    assert decide(guard, "high", None) == "prompts_full"
    assert isinstance(decide(guard, "high", None, key=("write", "0")), Prompt)
    still_clock.at += 1921
    assert isinstance(decide(guard, "high", None), Prompt)


def test_a_record_is_small(still_clock):
    """
    A hundred thousand of them fit into some tens of megabytes.
    """
    guard = StepUpGuard(now=still_clock)
    guard.answered(decide(guard, "high", 300), "high")

    record = guard._records[KEY]

    assert sys.getsizeof(record) < 200


@pytest.mark.parametrize("options", [{"max_keys": value} for value in (0, -1, True, 1.5, None)], ids=str)
def test_a_guard_that_remembers_nothing_is_not_built(options):
    """
    Room for less than one key is a mistake.
    """
    with pytest.raises(ValueError):
        StepUpGuard(**options)


@pytest.mark.parametrize("remember_s", [0, 1919, -1, True, 1920.5, None])
def test_a_guard_that_forgets_too_early_is_not_built(remember_s):
    """
    A key that tokens can still be minted for is never forgotten.
    """
    with pytest.raises(ValueError):
        StepUpGuard(remember_s=remember_s)


@given(st.lists(st.tuples(demands, st.sampled_from(["answer", "decline", "end", "run"]), st.sampled_from(LEVELS))))
def test_two_prompts_whatever_is_demanded(sequence):
    """
    No sequence of demands and answers makes a third prompt begin while the key is remembered.
    """
    clock = [0.0]
    guard = StepUpGuard(now=lambda: clock[0])
    begun = 0

    for demand, what, level in sequence:
        clock[0] += 601
        decided = guard.decide(KEY, demand, present_level=None, minted_after=guard.last_answer(KEY))
        if isinstance(decided, Prompt):
            begun += 1
            if what == "end":
                guard.end(decided)
            elif what != "run":
                guard.answered(decided, level if what == "answer" else None)

    assert begun <= MAX_PROMPTS


class ManyCallers(RuleBasedStateMachine):
    """
    Callers under one key that mint, are challenged and answer in any order.
    """

    def __init__(self):
        super().__init__()
        self.clock = 0.0
        self.guard = StepUpGuard(now=lambda: self.clock)
        self.minted, self.running, self.begun = [0], [], 0

    @rule()
    def mint(self):
        self.minted.append(self.guard.last_answer(KEY))

    @rule(seconds=st.integers(0, 500))
    def wait(self, seconds):
        self.clock += seconds

    @rule(demand=demands, data=st.data())
    def be_challenged(self, demand, data):
        knew = data.draw(st.sampled_from(self.minted))
        decided = self.guard.decide(KEY, demand, present_level=None, minted_after=knew)
        if isinstance(decided, Prompt):
            self.begun += 1
            self.running.append(decided)
        elif decided == "mint_again":
            assert knew < self.guard.last_answer(KEY)

    @rule(level=st.none() | st.sampled_from(LEVELS), answers=st.booleans())
    def answer(self, level, answers):
        if self.running:
            prompt = self.running.pop(0)
            if answers:
                self.guard.answered(prompt, level)
            else:
                self.guard.end(prompt)
            assert prompt.ended.done()

    @invariant()
    def are_two_at_most(self):
        assert self.begun <= MAX_PROMPTS


ManyCallers.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestManyCallers = ManyCallers.TestCase
