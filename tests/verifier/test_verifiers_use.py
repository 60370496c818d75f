"""
A verifier uses a token up exactly once, is shared by threads, keeps issuers apart, and is warmed and ended.
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
from verifier.fetch import FetchResponse


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


def test_a_kid_belongs_to_its_issuer(api, mint):
    """
    Two issuers that use one kid for two keys share neither keys nor trust: each accepts its own tokens only.
    """
    point = mint.private["attacker"].public_key().public_numbers()
    coordinates = {"x": mint.b64url(point.x.to_bytes(32)), "y": mint.b64url(point.y.to_bytes(32))}
    sets = {mint.issuer: mint.jwks, "https://globex.test": {"keys": [mint.jwks["keys"][0] | coordinates]}}
    signers = {mint.issuer: "k1", "https://globex.test": "attacker"}

    def fetch(url, _headers):
        return FetchResponse(200, (), json.dumps(sets[url.removesuffix("/.well-known/jwks.json")]).encode())

    for issuer, signer in signers.items():
        built = api(issuer=issuer, fetch=fetch)
        assert built.verify(mint.signed(iss=issuer, signer=signer))
        assert built.refused(mint.signed(iss=issuer, signer=({*signers.values()} - {signer}).pop())) == "signature"
        for other in signers.keys() - {issuer}:
            assert built.refused(mint.signed(iss=other, signer=signers[other])) == "issuer"
