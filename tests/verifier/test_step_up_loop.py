"""
The steps of a call, taken by hand: their order, and what ends them.
"""

import copy
import pickle

import pytest

from verifier import StepUp
from verifier.api_call import APICall, SignInRequest, TokenRequest
from verifier.api_http import APIRequest, APIResponse
from verifier.step_up_guard import StepUpGuard
from verifier.step_up_loop import SpentTokens, StepUpError, Wait, step_up_loop

CHALLENGE = APIResponse(401, [("www-authenticate", StepUp("high", 300).challenge())], b"")
DONE = APIResponse(200, (), b"done")


@pytest.fixture
def begin(still_clock):
    """
    Begin a call; all of them share a guard.
    """
    guard, spent = StepUpGuard(now=still_clock), SpentTokens()
    call = APICall(audience="https://api.test", conversation="c-1", method="GET", path="/orders")
    return lambda: step_up_loop(call, "https://api.test", guard=guard, spent=spent)


def test_the_steps_of_a_step_up(begin):
    """
    Mint, send, ask, mint, send; and the answer is what comes back.
    """
    steps = begin()

    taken = [type(steps.send(result)) for result in (None, "t.1", CHALLENGE, "high", "t.2")]

    assert taken == [TokenRequest, APIRequest, SignInRequest, TokenRequest, APIRequest]
    with pytest.raises(StopIteration) as end:
        steps.send(DONE)
    assert end.value.value is DONE


@pytest.mark.parametrize("in_time", [True, False])
def test_the_steps_of_a_call_that_waits(begin, in_time):
    """
    Wait for the prompt of another call, then mint; a prompt that does not end in time is one that was declined.
    """
    first, second = begin(), begin()
    for steps, token in ((first, "t.1"), (second, "t.2")):
        steps.send(None)
        steps.send(token)
    assert type(first.send(CHALLENGE)) is SignInRequest
    waits = second.send(CHALLENGE)
    assert type(waits) is Wait
    assert not waits.ended.done()

    if in_time:
        first.send("high")
        assert type(second.send(waits.ended.done())) is TokenRequest
    else:
        with pytest.raises(StepUpError) as stopped:
            second.send(waits.ended.done())
        assert stopped.value.reason == "declined"


def test_a_call_that_is_given_up_ends_its_prompt(begin):
    """
    Whoever waits goes on when the call that asks the customer is closed.
    """
    first, second = begin(), begin()
    for steps, token in ((first, "t.1"), (second, "t.2")):
        steps.send(None)
        steps.send(token)
    first.send(CHALLENGE)
    waits = second.send(CHALLENGE)

    first.close()

    assert waits.ended.done()
    assert type(second.send(True)) is SignInRequest


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
@pytest.mark.parametrize("reason", ["declined", "insufficient", "step_up_unsatisfiable", "prompts_full"])
def test_why_a_call_stopped(duplicate, reason):
    """
    Each reason has a text of its own, and a copy says the same.
    """
    error = StepUpError(reason, StepUp("high", 300), CHALLENGE)

    twin = duplicate(error)

    assert (twin.reason, twin.demand, twin.response, str(twin)) == (reason, error.demand, CHALLENGE, str(error))
    assert "api.test" not in str(error)


def test_tokens_are_told_by_their_hash():
    """
    A token is spent once; what is remembered is bounded, and is no token.
    """
    spent = SpentTokens()
    for number in range(10_001):
        spent.spend(f"t.{number}")

    with pytest.raises(ValueError):
        spent.spend("t.1")
    spent.spend("t.0")
    assert len(spent._hashes) == 10_000
    assert {len(known) for known in spent._hashes} == {32}
