"""
The verifiers refuse what makes no sense when it is said, share among threads and tasks, and use a token up exactly once.
"""

import asyncio
import json
import threading

import pytest

from verifier import (
    AsyncCustomerContextVerifier,
    CustomerContextError,
    CustomerContextVerifier,
    MemoryReplayStore,
    bearer_token,
)


class WithView:
    """
    A store that offers a view for an issuer and an audience, which may be anything.
    """

    def __init__(self, view):
        self.view, self.asked = view, []

    def scoped(self, issuer, audience):
        self.asked.append((issuer, audience))
        return self.view


class Awaited:
    """
    A store whose answer has to be awaited.
    """

    async def use(self, *_question):
        return True


MISTAKES = {
    "audience_empty": ({"audience": ""}, ValueError),
    "audience_none": ({"audience": None}, ValueError),
    "audience_list": ({"audience": ["https://api.test"]}, ValueError),
    "audience_spaces": ({"audience": " https://api.test"}, ValueError),
    **{
        f"issuer_{number}": ({"issuer": issuer}, ValueError)
        for number, issuer in enumerate(
            [
                *(
                    None,
                    "",
                    5,
                    "issuer.test",
                    "http://issuer.test",
                    "ftp://issuer.test",
                    "https://",
                    "https://ISSUER.test",
                ),
                *(
                    "https://issuer.test?x=1",
                    "https://issuer.test#x",
                    "https://u:p@issuer.test",
                    "https://issuer.test/../x",
                ),
            ]
        )
    },
    "tolerance_61": ({"clock_tolerance_seconds": 61}, ValueError),
    "tolerance_negative": ({"clock_tolerance_seconds": -1}, ValueError),
    "tolerance_bool": ({"clock_tolerance_seconds": True}, TypeError),
    "tolerance_fraction": ({"clock_tolerance_seconds": 1.5}, TypeError),
    "tolerance_nan": ({"clock_tolerance_seconds": float("nan")}, TypeError),
    "tolerance_text": ({"clock_tolerance_seconds": "5"}, TypeError),
    "tolerance_none": ({"clock_tolerance_seconds": None}, TypeError),
    "scope_empty": ({"required_scope": ""}, ValueError),
    "scope_two_spaces": ({"required_scope": "a  b"}, ValueError),
    "scope_list": ({"required_scope": ["a"]}, ValueError),
    "store_without_use": ({"replay_store": object()}, TypeError),
    "store_is_text": ({"replay_store": "redis://localhost"}, TypeError),
    "view_is_none": ({"replay_store": WithView(None)}, TypeError),
    "view_without_use": ({"replay_store": WithView(object())}, TypeError),
    "jwks_empty": ({"jwks": {}}, ValueError),
    "jwks_no_keys": ({"jwks": {"keys": []}}, ValueError),
    "jwks_no_json": ({"jwks": "keys"}, ValueError),
    "jwks_no_octets": ({"jwks": b""}, ValueError),
    "denied_kid_alone": ({"denied_kids": "k1"}, TypeError),
    "denied_kid_octets": ({"denied_kids": b"k1"}, TypeError),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_verifier_that_makes_no_sense_is_not_built(api, name):
    """
    A value out of its range or of another type is told to the programmer when the verifier is built.
    """
    options, error = MISTAKES[name]

    with pytest.raises(error):
        api(**options)


@pytest.mark.parametrize("face", [CustomerContextVerifier, AsyncCustomerContextVerifier])
def test_a_replay_store_has_to_be_said(face, mint):
    """
    Leaving out the replay store is a mistake, not a way to accept replays.
    """
    with pytest.raises(TypeError):
        face(issuer=mint.issuer, audience=mint.audience)


@pytest.mark.parametrize("store", [Awaited(), WithView(Awaited())], ids=["plain", "view"])
def test_the_blocking_verifier_takes_no_asynchronous_store(mint, store):
    """
    A store whose `use` is a coroutine function is refused when the blocking verifier is built, and taken by the other.
    """
    with pytest.raises(TypeError):
        CustomerContextVerifier(issuer=mint.issuer, audience=mint.audience, jwks=mint.jwks, replay_store=store)

    assert AsyncCustomerContextVerifier(issuer=mint.issuer, audience=mint.audience, jwks=mint.jwks, replay_store=store)


@pytest.mark.parametrize(
    ("demand", "error"),
    [
        ({"level": "gold"}, ValueError),
        ({"level": "High"}, ValueError),
        ({"action": "cancel_order"}, ValueError),
        ({"action": "no name", "arguments": {}}, ValueError),
        ({"arguments": {}}, ValueError),
        ({"idempotency_key": "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"}, ValueError),
        ({"confirmation": "client"}, ValueError),
        ({"action": "a", "arguments": {}, "confirmation": "agent"}, ValueError),
        ({"action": "a", "arguments": {}, "max_confirmation_age_seconds": 86_401}, ValueError),
        ({"action": "a", "arguments": {}, "ignore_action": True}, ValueError),
        ({"max_auth_age_seconds": 86_401}, ValueError),
        ({"max_auth_age_seconds": -1}, ValueError),
        ({"max_auth_age_seconds": True}, TypeError),
        ({"max_auth_age_seconds": 1.5}, TypeError),
        ({"max_auth_age_seconds": "300"}, TypeError),
        ({"scope": ""}, ValueError),
        ({"scope": ["orders.read"]}, ValueError),
        ({"ignore_action": 1}, TypeError),
        ({"levels": "high"}, TypeError),
    ],
    ids=str,
)
def test_a_mistaken_demand_is_told_before_the_token_is_looked_at(api, mint, demand, error):
    """
    What a call demands is judged first, so that the mistake shows with any token and uses none up.
    """
    built, token = api(), mint.signed()

    for looked_at in (None, "", token):
        with pytest.raises(error):
            built.verify(looked_at, **demand)
    assert built.verify(token)


@pytest.mark.parametrize(
    "token", [None, "", 5, True, b"a.b.c", ["a.b.c"], {}, "a..c", "Bearer a.b.c", "\ud800", "é.é.é"]
)
def test_whatever_is_no_token_is_malformed(api, token):
    """
    Nothing but the one error leaves a verification, of whatever type the token is.
    """
    assert api().refused(token) == "malformed"


def test_no_store_accepts_replays(api, mint):
    """
    None says aloud that a token may be used again.
    """
    built, token = api(replay_store=None), mint.signed()

    assert built.verify(token).jti == built.verify(token).jti


def test_a_used_token_is_refused(api, mint):
    """
    A token opens one call, and its twin signature does not make it another token.
    """
    built, token = api(), mint.signed()
    n = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    signing_input = token.rpartition(".")[0]
    octets = mint.signature(signing_input.encode())
    twin = octets[:32] + (n - int.from_bytes(octets[32:])).to_bytes(32)

    assert built.verify(token)
    assert built.refused(token) == "replayed"
    assert built.refused(f"{signing_input}.{mint.b64url(twin)}") == "replayed"


def test_a_refused_request_does_not_use_a_token_up(api, mint, wall_clock):
    """
    Whatever a call is refused for, the token still opens the call that it was made for (D4).
    """
    built, token = api(), mint.write()
    wrong = [
        (token + "A", mint.call),
        (token[:-8] + "AAAAAAAA", mint.call),
        (token, {}),
        (token, mint.call | {"arguments": {}}),
        (token, mint.call | {"action": "refund_order"}),
        (token, mint.call | {"idempotency_key": "another_key_for_this"}),
        (token, mint.call | {"scope": "orders.delete"}),
        (token, mint.call | {"confirmation": "customer"}),
        (token, mint.call | {"level": "high"}),
        (token, mint.call | {"max_auth_age_seconds": 1}),
    ]

    for sent, call in wrong:
        assert built.refused(sent, **call) not in {"replayed", "replay_unavailable"}
    wall_clock.at = mint.now - 60
    assert built.refused(token, **mint.call) == "not_yet_valid"
    wall_clock.at = mint.now

    assert built.verify(token, **mint.call)
    assert built.refused(token, **mint.call) == "replayed"


def test_threads_share_a_verifier(mint, wall_clock):
    """
    However many threads bring one token, exactly one call is accepted.
    """
    verifier = CustomerContextVerifier(
        issuer=mint.issuer,
        audience=mint.audience,
        jwks=mint.jwks,
        now=wall_clock,
        replay_store=MemoryReplayStore(now=wall_clock),
    )
    tokens, start, outcomes = [mint.signed() for _ in range(20)], threading.Barrier(6), []

    def run():
        start.wait()
        for token in tokens:
            try:
                outcomes.append(verifier.verify(token).jti)
            except CustomerContextError as refusal:
                outcomes.append(refusal.reason)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert outcomes.count("replayed") == 100
    assert len(set(outcomes)) == 21


def test_a_denied_key_is_not_trusted(api, mint):
    """
    A kid that the caller denies is unknown, whatever is published.
    """
    built = api(denied_kids=["k1"])

    assert built.refused(mint.signed()) == "key"
    assert built.verify(mint.signed(header={"kid": "k2"}, signer="k2"))


@pytest.mark.parametrize("form", [dict, str, bytes])
def test_fixed_keys_come_in_three_forms(api, mint, form):
    """
    A key set is taken as a mapping, as text or as octets of JSON.
    """
    jwks = mint.jwks if form is dict else json.dumps(mint.jwks)

    assert api(jwks=jwks.encode() if form is bytes else jwks).verify(mint.signed())


def test_a_header_opens_a_call(api, mint):
    """
    What `bearer_token` takes out of a request is what `verify` takes.
    """
    assert api().verify(bearer_token([f"bearer  {mint.signed()}"]), scope="orders.read").sub == "user-1"


def test_a_verifier_with_fixed_keys_has_nothing_to_end(mint):
    """
    Refreshing, showing and closing work the same where nothing is ever fetched.
    """
    options = {"issuer": mint.issuer, "audience": mint.audience, "jwks": mint.jwks, "replay_store": None}

    async def use() -> object:
        async with AsyncCustomerContextVerifier(**options) as verifier:
            await verifier.refresh()
            return verifier.state()

    with CustomerContextVerifier(**options) as verifier:
        verifier.refresh()
        assert json.loads(json.dumps(verifier.state()))["kids"] == ["k1", "k2"]
    assert json.loads(json.dumps(asyncio.run(use())))["kids"] == ["k1", "k2"]


def test_a_verifier_that_fetches_is_warmed_and_ended(mint, scripted_issuer, wall_clock):
    """
    `refresh` brings the keys before the first call, and from the end on every call is refused.
    """
    options = {"issuer": mint.issuer, "audience": mint.audience, "replay_store": None, "now": wall_clock}

    async def use() -> None:
        async with AsyncCustomerContextVerifier(**options, fetch=scripted_issuer.async_fetch) as verifier:
            await verifier.refresh()
            assert await verifier.verify(mint.signed())
        with pytest.raises(CustomerContextError) as refusal:
            await verifier.verify(mint.signed())
        assert refusal.value.reason == "keys_unavailable"

    with CustomerContextVerifier(**options, fetch=scripted_issuer.fetch) as verifier:
        verifier.refresh()
        assert verifier.state()["kids"] == ["k1", "k2"]
        assert verifier.verify(mint.signed())
    with pytest.raises(CustomerContextError) as refusal:
        verifier.verify(mint.signed())
    assert refusal.value.reason == "keys_unavailable"
    asyncio.run(use())
    assert len(scripted_issuer.asked) == 2
