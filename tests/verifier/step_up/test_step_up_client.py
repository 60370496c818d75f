"""
A client calls an API with a fresh token for each attempt, steps up where that is demanded, and leaves everything else alone.
"""

import json
import logging
import pickle

import pytest

from verifier import StepUp, step_up_required
from verifier.step_up_client import (
    APIResponse,
    AsyncStepUpClient,
    MintedToken,
    SendError,
    StepUpClient,
    StepUpError,
)

from .conftest import KEY

STEP_UP = 'Bearer error="insufficient_user_authentication", acr_values="high"'


def told(*headers, status=401):
    """
    Answer everything with these `WWW-Authenticate` lines.
    """
    return lambda _: (status, [("WWW-Authenticate", header) for header in headers], b"refused")


def test_a_read_without_a_challenge(world):
    """
    One token, one request below the base URL, and the answer as it came.
    """
    response = world.face().call(world.read("/orders?limit=5&after=A%2F1", headers={"Accept": "application/json"}))

    (received,) = world.partner.server.received
    assert (received.method, received.path, received.body) == ("GET", "/v1/orders?limit=5&after=A%2F1", b"")
    assert received.token == world.orchestrator.tokens[0]
    assert received.headers.keys() == {
        *("host", "connection", "accept", "accept-encoding", "user-agent", "authorization"),
    }
    assert (response.status, response.content) == (200, b"done")
    assert response.lines("CONTENT-type") == ["text/plain"]
    assert world.orchestrator.asked == []


def test_a_write_steps_up_and_goes_through(world):
    """
    The same action, arguments and key are minted for again with another token, and the API accepts the second call.
    """
    world.partner.policy = lambda _: StepUp("high", 300)
    call = world.write(confirmed_at=world.orchestrator.auth_time, scope="orders.read")

    response = world.face().call(call)

    first, second = world.orchestrator.minted
    (asked,) = world.orchestrator.asked
    one, two = world.partner.server.received
    (accepted,) = world.partner.accepted
    assert (response.status, accepted.action, accepted.idempotency_key) == (200, "cancel_order", KEY)
    assert (accepted.level, json.loads(one.body)) == ("high", accepted.arguments)
    assert (asked.demand, asked.conversation, asked.action) == (StepUp("high", 300), "c-1", "cancel_order")
    assert (first.demand, second.demand) == (None, StepUp("high", 300))
    for name in ("audience", "conversation", "scope", "action", "arguments", "idempotency_key", "confirmed_at"):
        assert getattr(first, name) == getattr(second, name)
    assert (one.body, one.headers["idempotency-key"]) == (two.body, KEY)
    assert one.headers["content-type"] == "application/json"
    assert one.token != two.token


def test_a_read_steps_up(world):
    """
    A demand for an age alone asks for no level, where none is known.
    """
    world.partner.policy = lambda _: StepUp(None, 60)

    assert world.face().call(world.read()).status == 200
    assert [asked.demand for asked in world.orchestrator.asked] == [StepUp(None, 60)]


@pytest.mark.parametrize(
    ("present", "demanded", "asked"),
    [
        ("high", StepUp(None, 300), StepUp("high", 300)),
        ("high", StepUp("standard", 300), StepUp("high", 300)),
        ("standard", StepUp("high", None), StepUp("high", None)),
        ("low", StepUp(None, 0), StepUp("low", 0)),
    ],
)
def test_a_sign_in_is_not_replaced_by_a_worse_one(world, present, demanded, asked):
    """
    The higher of the present and the demanded level is asked for (D9).
    """
    world.partner.policy, world.partner.stubborn = lambda n: demanded if n == 0 else None, True

    assert world.face().call(world.read(present_level=present)).status == 200
    assert [request.demand for request in world.orchestrator.asked] == [asked]


def test_a_second_demand_keeps_the_first(world):
    """
    The second prompt asks for the higher level and the stricter age of both.
    """
    world.partner.policy = [StepUp(None, 60), StepUp("high", 300), None].__getitem__
    world.partner.stubborn = True

    assert world.face().call(world.write(present_level="low")).status == 200
    assert [request.demand for request in world.orchestrator.asked] == [StepUp("low", 60), StepUp("high", 60)]


def test_an_age_of_zero_always_prompts(world):
    """
    The API takes a sign-in of the last minute; the customer is asked all the same when it challenges (D9).
    """
    world.partner.policy = lambda _: StepUp(None, 0)
    face = world.face()

    for number in (1, 2):
        world.clock.at += 61
        assert face.call(world.read()).status == 200
        assert len(world.orchestrator.asked) == number


@pytest.mark.parametrize("met", ["level", "age"])
def test_a_sign_in_that_meets_half_of_a_demand_is_challenged_again(world, met):
    """
    su-client-parse: both halves are demanded and used; where the new tokens show only one, nobody is asked a second time.
    """
    world.partner.policy = lambda _: StepUp("high", 300)
    orchestrator = world.orchestrator
    asks, before = orchestrator.sign_in, (orchestrator.level, orchestrator.auth_time)

    def sign_in(request):
        reached = asks(request)
        if met == "level":
            orchestrator.auth_time = before[1]
        else:
            orchestrator.level = before[0]
        return reached

    with pytest.raises(StepUpError) as stopped:
        world.face(sign_in=sign_in).call(world.write())

    assert (stopped.value.reason, stopped.value.demand) == ("step_up_unsatisfiable", StepUp("high", 300))
    assert stopped.value.response.content == b"step_up"
    assert (len(orchestrator.asked), len(orchestrator.minted)) == (1, 2)


@pytest.mark.parametrize(
    ("reached", "reason"), [(None, "declined"), ("standard", "insufficient"), ("low", "insufficient")]
)
def test_a_customer_who_does_not_sign_in_as_asked(world, reached, reason):
    """
    Nothing is minted or sent after that, and the answer that demanded it comes along.
    """
    world.partner.policy = lambda _: StepUp("high", None)
    world.orchestrator.reaches = lambda _: reached

    with pytest.raises(StepUpError) as stopped:
        world.face().call(world.write())

    assert (stopped.value.reason, stopped.value.demand) == (reason, StepUp("high", None))
    assert stopped.value.response.status == 401
    assert (len(world.orchestrator.asked), len(world.orchestrator.minted)) == (1, 1)
    assert world.partner.accepted == []


@pytest.mark.parametrize("reached", [True, "gold", 2, ["high"]])
def test_a_sign_in_that_reached_no_level(world, reached):
    """
    What is neither a level nor None is a mistake of the callback's author.
    """
    world.partner.policy = lambda _: StepUp("low", 300)
    world.orchestrator.reaches = lambda _: reached

    with pytest.raises(TypeError):
        world.face().call(world.read())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("write", [False, True])
def test_no_redirect_is_followed(world, status, write):
    """
    The answer goes to the caller, and the token nowhere.
    """
    elsewhere = world.serve(lambda _: (200, [], b"elsewhere"))
    world.partner.server.answer = lambda _: (
        status,
        [("Location", f"{elsewhere.url}/v1/orders"), ("WWW-Authenticate", STEP_UP)],
        b"",
    )

    response = world.face().call(world.write() if write else world.read())

    assert response.status == status
    assert (len(world.partner.server.received), elsewhere.received) == (1, [])
    assert world.orchestrator.asked == []


def test_the_metadata_is_never_followed(world):
    """
    A `resource_metadata` in a challenge is not asked, whatever else the challenge says.
    """
    elsewhere = world.serve(lambda _: (200, [], b"{}"))
    world.partner.server.script(told(f'{STEP_UP}, resource_metadata="{elsewhere.url}"'), lambda _: (200, [], b""))

    assert world.face().call(world.read()).status == 200
    assert elsewhere.received == []


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (401, ['Bearer error="invalid_token"']),
        (401, ['Bearer error="invalid_token", acr_values="high", max_age="0"']),
        (401, ['DPoP error="insufficient_user_authentication", acr_values="high"']),
        (401, ['Basic realm="x"']),
        (401, ['Bearer error="insufficient_user_authentication", acr_values="urn:x"']),
        (401, ['Bearer error="insufficient_user_authentication", acr_values="high", max_age="-1"']),
        (401, ['Bearer error="insufficient_user_authentication"']),
        (401, [f'{STEP_UP}, x="{"y" * 17_000}"']),
        (401, []),
        (403, ['Bearer error="insufficient_scope"']),
        *((status, [STEP_UP]) for status in (200, 400, 403, 500, 503)),
    ],
)
def test_every_other_answer_is_the_callers(world, status, headers):
    """
    su-client-parse: no other error, scheme or status is a step-up; nobody is asked and nothing is repeated.
    """
    world.partner.server.answer = told(*headers, status=status)

    response = world.face().call(world.write())

    assert (response.status, response.content) == (status, b"refused")
    assert response.lines("WWW-Authenticate") == headers
    assert len(world.partner.server.received) == 1
    assert world.orchestrator.asked == []


@pytest.mark.parametrize(
    "headers",
    [
        ['Basic realm="a, b", ' + STEP_UP],
        ['Basic realm="a"', 'DPoP algs="ES256"', STEP_UP],
        ['Bearer error="insufficient_user_authentication", acr_values="urn:x"', STEP_UP],
        ['bearer scope="a b", acr_values="high standard", error=insufficient_user_authentication'],
    ],
)
def test_the_one_usable_challenge_counts(world, headers):
    """
    Among several challenges, in one line or in several, the demand is found.
    """
    world.partner.server.script(told(*headers), lambda _: (200, [], b""))

    assert world.face().call(world.read()).status == 200
    assert [request.demand for request in world.orchestrator.asked] == [StepUp("high", None)]


def test_an_answer_that_is_none(world):
    """
    A header beyond every bound, and nobody at the other end, are a SendError; nothing is sent twice.
    """
    world.partner.server.answer = told("x" * 200_000)
    face = world.face()

    with pytest.raises(SendError):
        face.call(world.write())
    assert len(world.partner.server.received) == 1

    nobody = world.serve(told())
    url = nobody.url
    nobody.stop()
    world.servers.remove(nobody)
    with pytest.raises(SendError):
        world.face(apis={world.audience: url}).call(world.write())


def test_a_token_is_sent_to_its_own_audience_alone(world):
    """
    An audience without a base URL is refused before anything is minted.
    """
    other = world.serve(lambda _: (200, [], b"other"))
    face = world.face(apis={world.audience: world.partner.server.url, "https://other.test": f"{other.url}/"})

    with pytest.raises(ValueError):
        face.call(world.read(audience="https://third.test"))
    assert world.orchestrator.minted == []
    assert face.call(world.read(audience="https://other.test")).content == b"other"
    assert [received.path for received in other.received] == ["/orders"]
    assert world.partner.server.received == []


def test_a_token_is_never_used_twice(world):
    """
    A callback that hands out a token again is told so, after a step-up and in another call, and the token is not sent.
    """
    world.partner.policy = lambda _: StepUp("high", None)
    token = world.orchestrator.mint(world.read().token_request(None))
    face = world.face(mint=lambda _: token)

    for _ in range(2):
        with pytest.raises(ValueError, match="minted twice"):
            face.call(world.read())
    assert len(world.partner.server.received) == 1


@pytest.mark.parametrize("minted", [None, "", "a b", "a\r\nX: y", "é", "a,b", "Bearer a", 5, b"a.b.c", "a" * 9000])
def test_what_is_no_token_is_not_sent(world, minted):
    """
    A callback that returns anything but one bearer token ends the call.
    """
    with pytest.raises(ValueError):
        world.face(mint=lambda _: minted).call(world.read())
    assert world.partner.server.received == []


def test_nobody_can_change_what_was_confirmed(world):
    """
    Arguments are copied when the call is described, and what the callbacks get cannot be changed (D18).
    """
    world.partner.policy = lambda _: StepUp("high", None)
    arguments = {"orderId": "A-1001", "refund": {"amount": 12.5}}
    call = world.write(arguments=arguments)
    refused = []

    def sign_in(request):
        arguments["refund"]["amount"] = 10**6
        try:
            world.orchestrator.minted[0].arguments["refund"]["amount"] = 10**6
        except TypeError:
            refused.append(True)
        return world.orchestrator.sign_in(request)

    assert world.face(sign_in=sign_in).call(call).status == 200
    assert refused == [True]
    assert world.partner.accepted[0].arguments["refund"]["amount"] == 12.5
    assert len({received.body for received in world.partner.server.received}) == 1


def test_the_selector_is_sent_with_the_arguments(world):
    """
    The argument that the issuer filled before it took the digest is among those that the API gets.
    """
    world.partner.policy = lambda _: StepUp("high", None)
    selector = {"account": "shop-login:user-1"}

    def mint(request):
        filled = world.write(arguments={**request.arguments, **selector})
        return MintedToken(world.orchestrator.mint(filled.token_request(request.demand)), selector)

    assert world.face(mint=mint).call(world.write()).status == 200
    assert world.partner.accepted[0].arguments == {
        "orderId": "A-1001",
        "refund": {"amount": 12.5},
        "account": "shop-login:user-1",
    }


@pytest.mark.parametrize("write", [False, True])
def test_a_selector_replaces_nothing(world, write):
    """
    A read has no arguments to fill, and what was confirmed stays as it is.
    """
    call = world.write() if write else world.read()

    with pytest.raises(ValueError):
        world.face(mint=lambda _: MintedToken("a.b.c", {"orderId": "B-1"})).call(call)
    assert world.partner.server.received == []


def test_content_of_the_callers_own(world):
    """
    A caller who puts the arguments elsewhere sends what they want, and no idempotency key goes without an action.
    """
    world.partner.server.answer = lambda _: (204, [], b"")
    face = world.face()

    face.call(world.write(method="DELETE", content=b""))
    face.call(world.read(method="POST", content=b"<a/>", headers={"Content-Type": "text/xml"}))

    write, read = world.partner.server.received
    assert (write.body, write.headers["idempotency-key"], "content-type" in write.headers) == (b"", KEY, False)
    assert (read.body, read.headers["content-type"], "idempotency-key" in read.headers) == (b"<a/>", "text/xml", False)


def test_the_callers_own_http(world):
    """
    Anything that sends what it is given will do, and what it raises reaches the caller.
    """
    sent = []

    def send(request):
        sent.append(request)
        if request.url.endswith("/broken"):
            raise ConnectionAbortedError
        return APIResponse(200, (("X-A", "1"), ("x-a", "2")), b"own")

    face = world.face(send=send)

    response = face.call(world.read())

    assert (response.content, response.lines("x-A")) == (b"own", ["1", "2"])
    assert (sent[0].method, sent[0].url, sent[0].content) == ("GET", f"{world.partner.server.url}/v1/orders", None)
    assert sent[0].headers == {"authorization": f"Bearer {world.orchestrator.tokens[0]}"}
    with pytest.raises(ConnectionAbortedError):
        face.call(world.read("/broken"))
    assert world.partner.server.received == []


@pytest.mark.parametrize("callback", ["mint", "sign_in"])
def test_what_a_callback_raises_reaches_the_caller(world, callback):
    """
    The library makes nothing else of it, and the prompt has been counted.
    """
    world.partner.policy = lambda _: StepUp("high", None)
    asked = []

    def failing(request):
        asked.append(request)
        raise LookupError

    face = world.face(**{callback: failing})

    for _ in range(3):
        with pytest.raises((LookupError, StepUpError)):
            face.call(world.write())
    assert len(asked) == (3 if callback == "mint" else 2)


def test_nothing_that_is_shown_holds_a_token(world, caplog):
    """
    Requests, answers, errors and log lines show neither tokens nor arguments, and a stopped call survives pickling.
    """
    world.partner.policy, world.partner.stubborn = lambda _: StepUp("high", 300), True
    caplog.set_level(logging.DEBUG)
    shown = []

    def send(request):
        shown.append(request)
        lines = (("WWW-Authenticate", STEP_UP), ("X-Token", request.headers["authorization"]))
        return APIResponse(401, lines, request.headers["authorization"].encode())

    with pytest.raises(StepUpError) as stopped:
        world.face(send=send).call(world.write())
    error = stopped.value
    twin = pickle.loads(pickle.dumps(error))

    seen = [*shown, *world.orchestrator.minted, *world.orchestrator.asked, world.write(), error, error.args]
    text = caplog.text + " ".join(map(repr, [*seen, error.response, MintedToken(world.orchestrator.tokens[0])]))
    assert (twin.reason, twin.demand, twin.response) == (error.reason, error.demand, error.response)
    assert error.reason in caplog.text
    secrets = [*world.orchestrator.tokens, "A-1001", KEY, "c-1"]
    assert [secret for secret in secrets if secret in text] == []


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"apis": {"https://api.test": "http://api.test"}}, ValueError),
        ({"apis": {"https://api.test": "https://user@api.test"}}, ValueError),
        ({"apis": {"https://api.test": "https://api.test?x="}}, ValueError),
        ({"apis": {"https://api.test": "https://api.test//"}}, ValueError),
        ({"apis": {"https://api.test": "https://api.test/../x"}}, ValueError),
        ({"apis": {"https://api.test": ""}}, ValueError),
        ({"apis": {"": "https://api.test"}}, ValueError),
        ({"apis": {5: "https://api.test"}}, ValueError),
        ({"mint": None}, TypeError),
        ({"sign_in": "x"}, TypeError),
        ({"send": 5}, TypeError),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [StepUpClient, AsyncStepUpClient])
def test_a_client_that_makes_no_sense_is_not_built(kind, changed, error):
    """
    Base URLs are https without anything that could lead elsewhere, and callbacks can be called.
    """
    usual = {"apis": {"https://api.test": "https://api.test/v1/"}, "mint": print, "sign_in": print}

    assert kind(**usual)
    with pytest.raises(error):
        kind(**(usual | changed))


def test_the_blocking_client_takes_no_asynchronous_callbacks():
    """
    A coroutine that nobody awaits would mint nothing and ask nobody.
    """

    class Asynchronous:
        async def __call__(self, request):
            pass

    async def asynchronous(request):
        pass

    usual = {"apis": {}, "mint": print, "sign_in": print, "send": print}

    for name in ("mint", "sign_in", "send"):
        for callback in (asynchronous, Asynchronous()):
            with pytest.raises(TypeError):
                StepUpClient(**(usual | {name: callback}))


def test_a_challenge_of_the_partners_own_is_read(world):
    """
    What `step_up_required(...).challenge()` writes is what the client acts on.
    """
    header = step_up_required("standard", 0).challenge(realm="shop", resource_metadata="https://api.test/m")
    world.partner.server.script(told(header), lambda _: (200, [], b""))

    assert world.face().call(world.read()).status == 200
    assert world.orchestrator.minted[1].demand == StepUp("standard", 0)
