"""
A replay store accepts with True alone; whatever else it answers, raises or returns, nothing is accepted (D4).
"""

import asyncio
import gc
import inspect
import logging
from types import SimpleNamespace

import pytest

from verifier import AsyncCustomerContextVerifier, CustomerContextError, CustomerContextVerifier, ReplayStoreUnavailable


class Recording:
    """
    A store of somebody else's that knows `use` alone, and remembers what it was asked.
    """

    def __init__(self):
        self.asked = []

    def use(self, *question):
        self.asked.append(question)
        return True


class WithView:
    """
    A store that offers a view for an issuer and an audience, which may be anything.
    """

    def __init__(self, view):
        self.view, self.asked = view, []

    def scoped(self, issuer, audience):
        self.asked.append((issuer, audience))
        return self.view


def test_a_plain_store_is_asked_literally(api, mint):
    """
    It gets the jti as it stands in the token and the whole second from which the token cannot be accepted any more.
    """
    store = Recording()
    built = api(replay_store=store, clock_tolerance_seconds=5)

    built.verify(mint.signed(jti="A:b*é"))
    built.verify(mint.signed(jti="j2", exp=mint.now + 20.25))

    assert store.asked == [("A:b*é", mint.now + 55), ("j2", mint.now + 26)]
    assert all(type(expires_at) is int for _, expires_at in store.asked)


def test_a_store_with_views_is_asked_through_one(api, mint):
    """
    The view for this issuer and audience is taken once, and also learns when the token was issued.
    """
    store = WithView(Recording())
    built = api(replay_store=store)

    built.verify(mint.signed(jti="j1"))
    built.verify(mint.signed(jti="j2", iat=mint.now - 7.5))

    assert store.asked == [(mint.issuer, mint.audience)]
    assert store.view.asked == [("j1", mint.now + 50, mint.now - 5), ("j2", mint.now + 50, mint.now - 7.5)]


def test_a_store_that_is_its_own_view_is_asked_as_one(api, mint):
    """
    A store may offer itself as the view.
    """
    store = Recording()
    store.scoped = lambda *_: store

    api(replay_store=store).verify(mint.signed(jti="j1"))

    assert store.asked == [("j1", mint.now + 50, mint.now - 5)]


def answering(answer):
    """
    Return a store that gives one answer.
    """
    return SimpleNamespace(use=lambda *_: answer)


class Truthy:
    """
    Something that is true, and equal to everything.
    """

    __hash__ = None

    def __eq__(self, _other):
        return True


@pytest.mark.parametrize(
    "answer",
    [None, 1, 0, 1.0, "", "OK", "True", b"1", [], [True], {}, ..., NotImplemented, object(), Truthy()],
    ids=range(15),
)
def test_only_true_accepts(api, mint, answer):
    """
    What is neither True nor False is no answer, however true it is.
    """
    assert api(replay_store=answering(answer)).refused(mint.signed()) == "replay_unavailable"
    assert api(replay_store=WithView(answering(answer))).refused(mint.signed()) == "replay_unavailable"


@pytest.mark.parametrize("wrap", [lambda store: store, WithView], ids=["plain", "view"])
def test_false_says_replayed(api, mint, wrap):
    """
    True accepts and False refuses, through either way of asking.
    """
    assert api(replay_store=wrap(answering(True))).verify(mint.signed())
    assert api(replay_store=wrap(answering(False))).refused(mint.signed()) == "replayed"


@pytest.mark.parametrize(
    "error",
    [
        ReplayStoreUnavailable("secret"),
        OSError("secret"),
        TimeoutError("secret"),
        TypeError("secret"),
        StopIteration("secret"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_store_that_fails_accepts_nothing(api, mint, error, caplog):
    """
    Any exception of a store is `replay_unavailable`; the operator is told its type, and never its text.
    """

    def use(*_question):
        raise error

    with caplog.at_level(logging.DEBUG):
        refusal = api(replay_store=SimpleNamespace(use=use)).refusal(mint.signed())

    assert refusal.reason == "replay_unavailable"
    assert type(error).__name__ in refusal.hint
    assert type(error).__name__ in caplog.text
    assert "secret" not in caplog.text + refusal.hint + str(refusal)


def test_an_interrupt_is_not_caught(api, mint):
    """
    What is no error of the store, such as the end of the program, goes on.
    """

    def use(*_question):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api(replay_store=SimpleNamespace(use=use)).verify(mint.signed())


@pytest.mark.parametrize("wrap", [lambda store: store, WithView], ids=["plain", "view"])
def test_a_coroutine_is_no_answer_to_the_blocking_verifier(mint, wall_clock, wrap):
    """
    A coroutine that a store returns unannounced is closed, so that nothing is left to warn about, and accepts nothing.
    """
    returned = []

    async def answer():
        return True

    def use(*_question):
        returned.append(answer())
        return returned[0]

    verifier = CustomerContextVerifier(
        issuer=mint.issuer,
        audience=mint.audience,
        jwks=mint.jwks,
        now=wall_clock,
        replay_store=wrap(SimpleNamespace(use=use)),
    )

    with pytest.raises(CustomerContextError) as refusal:
        verifier.verify(mint.signed())

    assert refusal.value.reason == "replay_unavailable"
    assert inspect.getcoroutinestate(returned.pop()) == inspect.CORO_CLOSED
    gc.collect()


@pytest.fixture
def asynchronous(mint, wall_clock):
    """
    Build an asynchronous verifier with a store.
    """

    def build(store):
        return AsyncCustomerContextVerifier(
            issuer=mint.issuer, audience=mint.audience, jwks=mint.jwks, now=wall_clock, replay_store=store
        )

    return build


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (True, None),
        (False, "replayed"),
        (None, "replay_unavailable"),
        (1, "replay_unavailable"),
        (OSError(), "replay_unavailable"),
    ],
    ids=str,
)
@pytest.mark.parametrize("wrap", [lambda store: store, WithView], ids=["plain", "view"])
def test_an_awaited_answer_counts_like_any_other(asynchronous, mint, answer, reason, wrap):
    """
    True, False, anything else and an exception mean the same when they have to be awaited.
    """

    async def use(*_question):
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def verify():
        try:
            await asynchronous(wrap(SimpleNamespace(use=use))).verify(mint.signed())
        except CustomerContextError as refusal:
            return refusal.reason

    assert asyncio.run(verify()) == reason


def test_a_future_is_awaited(asynchronous, mint):
    """
    A store may return any awaitable.
    """

    async def verify():
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, True)
        return await asynchronous(answering(future)).verify(mint.signed())

    assert asyncio.run(verify()).sub == "user-1"


def test_a_coroutine_that_answers_with_a_coroutine_is_no_answer(asynchronous, mint):
    """
    One answer is awaited, not an answer to the answer, and what is left over is closed.
    """

    async def inner():
        return True

    async def use(*_question):
        return inner()

    with pytest.raises(CustomerContextError) as refusal:
        asyncio.run(asynchronous(SimpleNamespace(use=use)).verify(mint.signed()))

    assert refusal.value.reason == "replay_unavailable"
    gc.collect()


def test_a_cancelled_call_is_cancelled(asynchronous, mint):
    """
    Cancelling a call while the store thinks ends the call as cancelled, and nothing is accepted.
    """
    asked = asyncio.Event()

    async def use(*_question):
        asked.set()
        await asyncio.Event().wait()

    async def cancel():
        task = asyncio.create_task(asynchronous(SimpleNamespace(use=use)).verify(mint.signed()))
        await asked.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


def test_a_store_that_is_cancelled_by_itself_has_failed(asynchronous, mint):
    """
    A connection that somebody else gave up is a store that cannot tell; the call was not cancelled, so it is answered.
    """

    async def use(*_question):
        given_up = asyncio.get_running_loop().create_future()
        given_up.cancel()
        await given_up

    with pytest.raises(CustomerContextError) as refusal:
        asyncio.run(asynchronous(SimpleNamespace(use=use)).verify(mint.signed()))

    assert refusal.value.reason == "replay_unavailable"


def test_tasks_share_a_verifier(asynchronous, mint):
    """
    However many tasks bring one token at once, exactly one call is accepted.
    """
    used = set()

    async def use(jti, _expires_at):
        await asyncio.sleep(0)
        first = jti not in used
        used.add(jti)
        return first

    async def verify():
        verifier, token = asynchronous(SimpleNamespace(use=use)), mint.signed()
        return await asyncio.gather(*(verifier.verify(token) for _ in range(20)), return_exceptions=True)

    outcomes = asyncio.run(verify())

    assert sorted(getattr(outcome, "reason", "accepted") for outcome in outcomes) == ["accepted"] + ["replayed"] * 19


def test_a_store_that_answers_after_the_end_of_the_token_accepts_nothing(api, mint, wall_clock):
    """
    A first use that is reported only once the token has expired is refused as expired.
    """

    class LateStore:
        def use(self, _jti, _expires_at):
            wall_clock.at += 120
            return True

    with pytest.raises(CustomerContextError) as refused:
        api(replay_store=LateStore()).verify(mint.signed())

    assert refused.value.reason == "expired"
