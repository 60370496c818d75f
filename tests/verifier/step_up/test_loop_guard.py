"""
A customer is asked at most twice for one confirmed action, or in one conversation with an API, whatever the API demands (D9).
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verifier import StepUp
from verifier.step_up_client import AsyncStepUpClient, StepUpClient, StepUpError, StepUpGuard

from .conftest import KEY, awaited

DEMANDS = {
    "rising levels": [StepUp(level, None) for level in ("low", "standard", "high")],
    "falling levels": [StepUp(level, None) for level in ("high", "standard", "low")],
    "falling ages": [StepUp(None, age) for age in (300, 200, 100, 50, 10, 0)],
    "rising ages": [StepUp(None, age) for age in (0, 60, 300, 86_400)],
    "a level, then an age": [StepUp("high", None), StepUp(None, 300)],
    "an age, then a level": [StepUp(None, 300), StepUp("high", None)],
    "both, ever stricter": [StepUp("low", 900), StepUp("standard", 600), StepUp("high", 300), StepUp("high", 0)],
    "always zero": [StepUp("high", 0)],
}


async def until(holds):
    """
    Let the event loop run until something holds.
    """
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 -- what is waited for happens on a server's thread
            await asyncio.sleep(0.001)


def stopped(face, call):
    """
    Make a call that ends in a step-up that there is not, and return why.
    """
    with pytest.raises(StepUpError) as error:
        face.call(call)
    return error.value.reason


@pytest.mark.parametrize("write", [False, True])
def test_an_api_that_always_challenges(world, write):
    """
    su-abuse-loop: the same demand after it was met prompts no one, in this call and in every later one.
    """
    world.partner.policy, world.partner.stubborn = lambda _: StepUp("high", 300), True
    face = world.face()
    call = world.write() if write else world.read()

    reasons = [stopped(face, call) for _ in range(5)]

    assert reasons == ["step_up_unsatisfiable"] * 5
    assert len(world.orchestrator.asked) == 1
    assert len(world.orchestrator.minted) == len(world.partner.server.received) == 6
    assert world.partner.accepted == []


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("name", DEMANDS)
def test_an_api_that_varies_its_demand(world, name, write):
    """
    However the demands follow each other, and however often the call is made again, there are at most two prompts.
    """
    demands = DEMANDS[name]
    world.partner.policy, world.partner.stubborn = lambda number: demands[number % len(demands)], True
    face = world.face()

    for _ in range(6):
        assert stopped(face, world.write() if write else world.read()) == "step_up_unsatisfiable"

    assert 1 <= len(world.orchestrator.asked) <= 2
    asked = [request.demand for request in world.orchestrator.asked]
    assert len(set(asked)) == len(asked)


@given(
    demands=st.lists(
        st.builds(
            StepUp,
            st.sampled_from(["low", "standard", "high"]),
            st.none() | st.sampled_from([0, 1, 60, 299, 300, 86_400]),
        ),
        min_size=1,
        max_size=8,
    ),
    reaches=st.lists(st.sampled_from([None, "low", "standard", "high"]), min_size=2, max_size=2),
    waits=st.lists(st.integers(0, 700), min_size=6, max_size=6),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_demands_any_answers(world, demands, reaches, waits):
    """
    Within 30 minutes no sequence of demands, answers and pauses makes a third prompt, and no call is made a fourth time.
    """
    world.partner.policy, world.partner.stubborn = lambda number: demands[number % len(demands)], True
    world.orchestrator.asked, answers = [], iter(reaches)
    world.orchestrator.reaches = lambda _: next(answers)
    face = world.face()
    began = world.clock.at

    for wait in waits:
        before = len(world.orchestrator.minted)
        stopped(face, world.write())
        assert len(world.orchestrator.minted) - before <= 3
        world.clock.at = min(world.clock.at + wait, began + 1800)

    assert len(world.orchestrator.asked) <= 2


def test_a_weaker_demand_after_a_stronger_one_was_met(world):
    """
    What the sign-in that was just made shows is not asked for again, in whatever words it is demanded.
    """
    demands = iter([StepUp("high", 300), StepUp("standard", None)])
    world.partner.policy, world.partner.stubborn = lambda _: next(demands), True

    assert stopped(world.face(), world.write()) == "step_up_unsatisfiable"
    assert len(world.orchestrator.asked) == 1


def test_a_sign_in_that_grew_old_is_asked_for_again(world):
    """
    A demand for an age that was met long ago is not met any more: the customer is asked once more, and then no more.
    """
    world.partner.policy = lambda _: StepUp("high", 300)
    face = world.face()

    assert face.call(world.read()).status == 200
    world.clock.at += 300
    assert face.call(world.read()).status == 200
    assert len(world.orchestrator.asked) == 1
    world.clock.at += 1
    assert face.call(world.read()).status == 200
    assert len(world.orchestrator.asked) == 2
    world.clock.at += 301
    assert stopped(face, world.read()) == "step_up_unsatisfiable"
    assert len(world.orchestrator.asked) == 2


def test_prompts_are_counted_when_they_begin(world):
    """
    A customer who declines is asked once more when the call is made again, and then no more.
    """
    world.partner.policy = lambda _: StepUp("high", None)
    world.orchestrator.reaches = lambda _: None
    face = world.face()

    assert [stopped(face, world.write()) for _ in range(4)] == ["declined"] * 2 + ["step_up_unsatisfiable"] * 2
    assert len(world.orchestrator.asked) == 2


def test_what_prompts_are_counted_by(world):
    """
    Each confirmed action counts by itself, wherever it comes from; reads count by conversation and API.
    """
    world.partner.policy = lambda _: StepUp("high", None)
    world.orchestrator.reaches = lambda _: None
    face = world.face(apis=dict.fromkeys([world.audience, "https://other.test"], world.partner.server.url))

    for call, number in [
        *((world.read("/a"), 1), (world.read("/b"), 2), (world.read("/c"), 2)),
        *((world.read(conversation="c-2"), 3), (world.read(audience="https://other.test"), 4)),
        *((world.write(), 5), (world.write(conversation="c-2"), 6), (world.write(), 6)),
        (world.write("idk_another_key_for_this"), 7),
    ]:
        stopped(face, call)
        assert len(world.orchestrator.asked) == number


def test_clients_share_a_guard(world):
    """
    A program that builds a client for every request hands the same memory to each; without that each has its own.
    """
    world.partner.policy, world.partner.stubborn = lambda _: StepUp("high", None), True
    guard = StepUpGuard(now=world.clock)

    for _ in range(3):
        stopped(world.face(guard=guard), world.write())
    assert len(world.orchestrator.asked) == 1
    stopped(world.face(guard=None), world.write())
    assert len(world.orchestrator.asked) == 2


def test_both_faces_share_a_guard(world):
    """
    One memory serves blocking and asynchronous clients of a process.
    """
    world.partner.policy, world.partner.stubborn = lambda _: StepUp("high", None), True
    orchestrator = world.orchestrator
    usual = {"apis": {world.audience: world.partner.server.url}, "guard": StepUpGuard(now=world.clock)}
    blocking = StepUpClient(mint=orchestrator.mint, sign_in=orchestrator.sign_in, **usual)
    asynchronous = AsyncStepUpClient(mint=awaited(orchestrator.mint), sign_in=awaited(orchestrator.sign_in), **usual)

    with pytest.raises(StepUpError):
        blocking.call(world.write())
    with pytest.raises(StepUpError):
        asyncio.run(asynchronous.call(world.write()))

    assert len(orchestrator.asked) == 1


def test_a_full_memory_prompts_nobody(world):
    """
    Rather than forget an action that still counts, the guard refuses another one, and says so.
    """
    world.partner.policy = lambda _: StepUp("high", None)
    world.orchestrator.reaches = lambda _: None
    face = world.face(guard=StepUpGuard(max_keys=1, now=world.clock))

    assert stopped(face, world.write()) == "declined"
    assert stopped(face, world.read()) == "prompts_full"
    assert stopped(face, world.write()) == "declined"
    world.clock.at += 28_801
    assert stopped(face, world.read()) == "declined"


class Together:
    """
    Calls that are made at the same time: the first prompt is not answered before each of them was challenged.
    """

    def __init__(self, world, number):
        self.number = number
        self._challenged = threading.Semaphore(0)
        self._answer, self._answers = world.partner.server.answer, iter([world.orchestrator.reaches] * 2)
        world.partner.policy = lambda _: StepUp("high", 300)
        world.partner.server.answer = self.answer
        world.orchestrator.reaches = self.reaches

    def script(self, *answers):
        """
        Answer the prompts with these, in turn.
        """
        self._answers = iter(answers)

    def answer(self, received):
        given = self._answer(received)
        if given[0] == 401:
            self._challenged.release()
        return given

    def reaches(self, request):
        answer = next(self._answers)
        for _ in range(self.number):
            assert self._challenged.acquire(timeout=10)
        self.number = 0
        return answer(request)

    def make(self, face, call):
        """
        Make the calls and return what became of each.
        """
        number = self.number

        def outcome(made):
            return getattr(made, "status", getattr(made, "reason", type(made).__name__))

        def one(_):
            try:
                return outcome(face.client.call(call))
            except (StepUpError, LookupError) as error:
                return outcome(error)

        async def every():
            calls = (face.client.call(call) for _ in range(number))
            return list(map(outcome, await asyncio.gather(*calls, return_exceptions=True)))

        if isinstance(face.client, AsyncStepUpClient):
            return asyncio.run(every())
        with ThreadPoolExecutor(number) as pool:
            return list(pool.map(one, range(number)))


@pytest.mark.parametrize("write", [False, True])
def test_calls_at_the_same_time_ask_once(world, write):
    """
    Whoever is challenged while the customer is being asked waits for that, and calls again with a token of its own.
    """
    together = Together(world, 8)

    outcomes = together.make(world.face(), world.write() if write else world.read())

    assert outcomes == [200] * 8
    assert len(world.orchestrator.asked) == 1
    assert len(set(world.orchestrator.tokens)) == len(world.partner.server.received) == 16


@pytest.mark.parametrize(("reached", "reason"), [(None, "declined"), ("standard", "insufficient")])
def test_calls_at_the_same_time_share_a_refusal(world, reached, reason):
    """
    A customer who declines, or reaches too low a level, is not asked by the next one in the queue.
    """
    together = Together(world, 4)
    together.script(lambda _: reached)

    assert together.make(world.face(), world.write()) == [reason] * 4
    assert len(world.orchestrator.asked) == 1


def test_a_prompt_that_failed_is_taken_over(world):
    """
    Where asking failed for one call, the next one that waits asks, once more in all.
    """

    def fail(_):
        raise LookupError

    together = Together(world, 4)
    together.script(fail, lambda _: "high")

    outcomes = together.make(world.face(), world.write())

    assert sorted(map(str, outcomes)) == ["200", "200", "200", "LookupError"]
    assert len(world.orchestrator.asked) == 2


def test_a_call_that_is_cancelled_leaves_the_prompt_to_another(world):
    """
    Nobody waits for a prompt whose call is gone.
    """
    world.partner.policy = lambda _: StepUp("high", None)
    orchestrator, asked = world.orchestrator, []

    async def sign_in(request):
        asked.append(request)
        if len(asked) == 1:
            await asyncio.Event().wait()
        return orchestrator.sign_in(request)

    async def run():
        client = AsyncStepUpClient(
            apis={world.audience: world.partner.server.url}, mint=awaited(orchestrator.mint), sign_in=sign_in
        )
        first = asyncio.create_task(client.call(world.write()))
        await until(lambda: asked)
        second = asyncio.create_task(client.call(world.write()))
        await until(lambda: len(world.partner.server.received) == 2)
        first.cancel()
        response = await second
        with pytest.raises(asyncio.CancelledError):
            await first
        return response

    assert asyncio.run(run()).status == 200
    assert len(asked) == 2


def test_a_waiter_who_is_cancelled_cancels_nobody_else(world):
    """
    The prompt goes on for the others.
    """
    world.partner.policy = lambda _: StepUp("high", None)
    orchestrator = world.orchestrator

    async def run():
        may_answer = asyncio.Event()

        async def sign_in(request):
            await may_answer.wait()
            return orchestrator.sign_in(request)

        client = AsyncStepUpClient(
            apis={world.audience: world.partner.server.url}, mint=awaited(orchestrator.mint), sign_in=sign_in
        )
        calls = [asyncio.create_task(client.call(world.write())) for _ in range(3)]
        await until(lambda: len(world.partner.server.received) == 3)
        calls[2].cancel()
        may_answer.set()
        return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = asyncio.run(run())

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["APIResponse", "APIResponse", "CancelledError"]
    assert len(orchestrator.asked) == 1


def test_a_prompt_is_not_waited_for_for_ever(world, monkeypatch):
    """
    A call gives up on a prompt that never ends, and one that comes after the limit asks by itself.
    """
    world.partner.policy = lambda _: StepUp("high", None)
    monkeypatch.setattr("verifier.step_up_client.PROMPT_LIMIT_S", 0.05)
    guard = StepUpGuard(now=world.clock)
    guard.decide(("write", KEY), StepUp("high", None), present_level=None, minted_after=0)
    face = world.face(guard=guard)

    assert stopped(face, world.write()) == "declined"
    assert world.orchestrator.asked == []
    world.clock.at += 601
    assert face.call(world.write()).status == 200
    assert len(world.orchestrator.asked) == 1
