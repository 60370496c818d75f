"""
Tokens for customers who signed in at an identity provider: the event decides who, how well and when, and nothing else does.
"""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from issuer.limits import Rate, Rates
from issuer.limits_memory import MemoryLimits
from issuer.registry import Registry
from issuer.suspensions import Suspension, Suspensions, Target, ring_with_suspensions
from verifier.claims import CONFIRMATION_LIFETIME_S

from .signed_in import SignedIn, with_provider
from .world import BANK, DROP, NOW

CUSTOMER = "248289761001"
KEY = "idk-of-one-action"


@pytest.fixture
def signed_in():
    site = SignedIn()
    yield site
    site.close()


def recorded(site, token=None, **members):
    status, _, answer = site.record(token, **members)
    assert status == 201, answer
    return answer["sign_in_id"]


@pytest.mark.parametrize("kind", ["id_token", "sign_in"])
def test_level_and_time_are_those_of_the_sign_in(kind, signed_in):
    """
    `sub`, `acr` and `auth_time` come from the event, whichever way it is brought; the agent is the client's own.
    """
    token = signed_in.id_token(acr="urn:shop:mfa", auth_time=NOW - 33)

    answer = signed_in.exchange(token) if kind == "id_token" else signed_in.ask_with(recorded(signed_in, token))

    claims = answer.claims
    assert (claims["sub"], claims["acr"], claims["auth_time"]) == (CUSTOMER, "high", NOW - 33)
    assert claims["act"] == {"sub": "agt_support"}


def test_an_id_token_is_exchanged_once(signed_in):
    """
    A second exchange, and recording it afterwards, is refused: whoever finds the token finds nothing.
    """
    token = signed_in.id_token()
    assert signed_in.exchange(token).status == 200

    again = signed_in.exchange(token)
    recorded_later = signed_in.record(token)

    assert again.refusal == (400, "invalid_request", "id_token:used")
    assert (recorded_later[0], recorded_later[2]["reason"]) == (400, "used")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"resource": BANK}, "target:not_allowed"),
        ({"scope": "accounts:read"}, "scope:not_allowed"),
        ({"actor_token": "x"}, "actor_token:pair"),
        ({"authorization_details": "[]"}, "action:count"),
        ({"max_age": "soon"}, "max_age:form"),
        ({"acr_values": "high"}, "authentication:unmet"),
    ],
)
def test_a_request_that_is_refused_uses_no_id_token_up(bad, reason, signed_in):
    """
    The customer does not sign in again because of a mistake in the request: sent again without it, it is granted, and once.
    """
    token = signed_in.id_token(nonce="n-1")

    refused = signed_in.exchange(token, nonce="n-1", **bad)
    mended = [signed_in.exchange(token, nonce="n-1") for _ in range(2)]

    assert refused.reason == reason
    assert [answer.reason for answer in mended] == [None, "id_token:used"]


def test_an_id_token_is_used_up_behind_limits_and_suspensions(signed_in):
    """
    Whoever has to wait, and who is cut off for some time, comes again with the same ID token.
    """
    signed_in.state.limits = MemoryLimits(Rates(client=Rate(1_000_000, 1), customer=None), signed_in.monotonic)
    assert signed_in.exchange().status == 200
    token = signed_in.id_token()

    waits = signed_in.exchange(token)
    signed_in.lift_limits()
    suspend(signed_in, Target("customer", CUSTOMER, "shop-login"), until=NOW + 10)
    cut_off = signed_in.exchange(token)
    signed_in.clock.at = NOW + 10

    assert (waits.reason, cut_off.reason) == ("limit:client", "suspended:customer")
    assert signed_in.exchange(token).status == 200


def suspend(site, *targets, until=None):
    suspensions = (
        Suspension(id=f"sus-{at}", target=target, reason="leaked", at=NOW - 10, until=until)
        for at, target in enumerate(targets)
    )
    store = site.ring_stores["root"]
    store.ring, store.revision = ring_with_suspensions(store.ring, Suspensions(tuple(suspensions))), store.revision + 1
    asyncio.run(site.service.rings["root"].poll())


@pytest.mark.parametrize(
    ("target", "error"),
    [
        (Target("customer", CUSTOMER, "shop-login"), "access_denied"),
        (Target("client", "orc_basic"), "unauthorized_client"),
    ],
    ids=["customer", "client"],
)
def test_who_is_suspended_may_sign_in_and_gets_no_token(target, error, signed_in):
    """
    A suspension holds at the mint, for whatever kind of subject token: sign-ins are recorded, shown and ended as ever.
    """
    before = recorded(signed_in)
    suspend(signed_in, target, until=NOW + 60)

    during = recorded(signed_in)
    answers = [signed_in.ask_with(before), signed_in.ask_with(during), signed_in.exchange()]
    signed_in.clock.at = NOW + 60

    assert {answer.refusal for answer in answers} == {(400, error, f"suspended:{target.kind}")}
    assert [signed_in.ask_with(each).status for each in (before, during)] == [200, 200]


def test_a_sign_in_serves_many_requests(signed_in):
    """
    Each request has a token of its own, until the sign-in expires.
    """
    sign_in = recorded(signed_in)

    answers = [signed_in.ask_with(sign_in) for _ in range(3)]
    signed_in.clock.at += 8 * 3600 - 1
    last = signed_in.ask_with(sign_in)
    signed_in.clock.at += 1
    late = signed_in.ask_with(sign_in)

    assert len({answer.claims["jti"] for answer in answers}) == 3
    assert last.claims["exp"] - last.claims["iat"] == 1
    assert last.claims["auth_time"] == NOW - 20
    assert late.refusal == (400, "invalid_request", "sign_in:unknown")


@pytest.mark.parametrize(
    ("demand", "met"),
    [
        ({"acr_values": "standard high"}, True),
        ({"acr_values": "high"}, False),
        ({"max_age": "20"}, True),
        ({"max_age": "19"}, False),
    ],
)
def test_a_demand_is_held_against_the_sign_in(demand, met, signed_in):
    """
    su-unmet: what the request demands is compared with the event, and never becomes part of the token.
    """
    answer = signed_in.ask_with(recorded(signed_in), **demand)

    if met:
        assert (answer.claims["acr"], answer.claims["auth_time"]) == ("standard", NOW - 20)
    else:
        assert answer.refusal == (400, "unmet_authentication_requirements", "authentication:unmet")


@pytest.mark.parametrize("kind", ["id_token", "sign_in"])
def test_a_client_brings_what_it_is_configured_for(kind):
    """
    A kind of subject token that the client may not bring is refused before it is looked at.
    """
    site = SignedIn(with_provider(kinds={"asserted", "id_token", "sign_in"} - {kind}))
    try:
        answer = site.exchange("x") if kind == "id_token" else site.ask_with("x")
    finally:
        site.close()

    assert answer.refusal == (400, "unauthorized_client", "subject_token:not_allowed")


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("client", {"aud": "app-1"}),
        ("audience", {"aud": "app-9"}),
        ("audience", {"aud": []}),
        ("azp", {"aud": ["app-3", "app-2"]}),
        ("client", {"aud": ["app-3", "app-2"], "azp": "app-2"}),
        ("issuer", {"issuer": "https://login.other.example"}),
        ("expired", {"exp": NOW}),
        ("too_old", {"iat": NOW - 301}),
        ("not_yet_valid", {"iat": NOW + 6}),
        ("auth_time", {"auth_time": DROP}),
        ("nonce", {"nonce": "n-1"}),
        ("key", {"key": "rsa-2"}),
        ("signature", {"key": "rsa-2", "header": {"kid": "rsa-1"}}),
        ("algorithm", {"alg": "EdDSA"}),
        ("type", {"header": {"typ": "at+jwt"}}),
    ],
)
def test_a_token_that_is_not_acceptable_has_its_own_reason(reason, changes, signed_in):
    """
    tx-subject-error: `invalid_request` at the token endpoint and a problem at the sign-ins, with the same word in the log.
    """
    exchanged = signed_in.exchange(signed_in.id_token(**changes))
    status, _, problem = signed_in.record(signed_in.id_token(**changes))

    assert exchanged.refusal == (400, "invalid_request", f"id_token:{reason}")
    assert (status, problem["type"], problem["reason"]) == (400, "urn:caplo:problem:id-token-refused", reason)
    assert signed_in.reasons == [f"id_token:{reason}"]


def test_a_nonce_is_answered_once(signed_in):
    """
    The nonce that was given out is stated and equal, and no second ID token with it is taken.
    """
    first = signed_in.exchange(signed_in.id_token(nonce="n-0S6_WzA2Mj"), nonce="n-0S6_WzA2Mj")
    other = signed_in.exchange(signed_in.id_token(nonce="n-0S6_WzA2Mj"), nonce="n-another")
    again = signed_in.record(signed_in.id_token(nonce="n-0S6_WzA2Mj"), nonce="n-0S6_WzA2Mj")

    assert first.status == 200
    assert other.reason == "id_token:nonce"
    assert again[2]["reason"] == "nonce_used"


def test_keys_that_are_out_of_reach_are_said_to_be_so():
    """
    E11: while the provider is down nothing is minted or recorded, and the answer is to come again (503).
    """
    site = SignedIn(with_provider(keys=None, issuer="http://127.0.0.1:9"))
    try:
        token = site.id_token(issuer="http://127.0.0.1:9")
        exchanged, recorded_ = site.exchange(token), site.record(token)
    finally:
        site.close()

    assert exchanged.refusal == (503, "temporarily_unavailable", "id_token:keys_unavailable")
    assert "retry-after" in exchanged.headers
    assert (recorded_[0], recorded_[2]["code"]) == (503, "id_token_keys_unavailable")
    assert "retry-after" in recorded_[1]


def test_nothing_is_minted_from_a_sign_in_that_lies_ahead(signed_in):
    """
    Where another instance recorded it by a clock that is ahead, no token is handed out that a verifier refuses (promise 1).
    """
    sign_in = recorded(signed_in, signed_in.id_token(auth_time=NOW + 3))

    signed_in.clock.at = NOW - 2
    minted = signed_in.ask_with(sign_in)
    signed_in.clock.at = NOW - 2.1
    ahead = signed_in.ask_with(sign_in)

    signed_in.clock.at = NOW - 2
    assert signed_in.verifier().verify(minted.token).auth_time == NOW + 3
    assert ahead.refusal == (503, "temporarily_unavailable", "sign_in:ahead")
    assert "retry-after" in ahead.headers


def test_the_sign_in_of_another_client_is_none(signed_in):
    """
    An id in the wrong hands opens nothing: it is good for the client it was recorded for, in its workspace.
    """
    sign_in = recorded(signed_in)

    answers = [signed_in.ask_with(sign_in, client="c1"), signed_in.ask_with(sign_in, workspace="acme")]

    assert {answer.refusal for answer in answers} == {(400, "invalid_request", "sign_in:unknown")}


ELSEWHERE = "https://login.other.example"


@pytest.mark.parametrize(
    "now_configured",
    [
        {"clients": {"app-1": "orc_main"}},
        {"clients": {"app-1": "orc_main", "app-3": "c1"}},
        {"clients": {"app-9": "orc_basic"}},
        {"issuer": ELSEWHERE},
        None,
    ],
    ids=["client id removed", "client id of another client", "other client id", "other provider", "no provider"],
)
def test_a_sign_in_holds_while_whoever_vouched_for_it_is_configured(now_configured, signed_in):
    """
    A provider, or a client id there, that is taken out of the configuration takes its sign-ins with it until it is back.
    """
    told = signed_in.record()[2]
    changed = registry_without_provider() if now_configured is None else with_provider(**now_configured)
    reloaded = SignedIn(changed, beside=signed_in, state=signed_in.service.state)
    try:
        minted, shown = reloaded.ask_with(told["sign_in_id"]), reloaded.about("GET", f"/sign-ins/{told['handle']}")
        again = signed_in.ask_with(told["sign_in_id"]), signed_in.about("GET", f"/sign-ins/{told['handle']}")
        ended = reloaded.about("DELETE", f"/sign-ins/{told['handle']}")
    finally:
        reloaded.close()

    assert minted.refusal == (400, "invalid_request", "sign_in:provider")
    assert (shown[0], shown[2]["type"]) == (404, "urn:caplo:problem:unknown-sign-in")
    assert (again[0].status, again[1][0]) == (200, 200)
    assert ended[0] == 204
    assert signed_in.ask_with(told["sign_in_id"]).reason == "sign_in:unknown"


def registry_without_provider():
    found = with_provider()
    bare = (
        replace(each, connections=tuple(replace(connection, provider=None) for connection in each.connections))
        for each in found
    )
    return Registry(origin=found.origin, workspaces=tuple(bare))


def test_other_rules_of_a_provider_change_no_sign_in(signed_in):
    """
    Level and expiry are those of the event: other maps, keys and lifetimes hold for the sign-ins that follow.
    """
    told = signed_in.record()[2]
    changed = with_provider(acr={"urn:shop:pwd": "high"}, sign_in_lifetime_s=60)
    reloaded = SignedIn(changed, beside=signed_in, state=signed_in.service.state)
    try:
        signed_in.clock.at = NOW + 61
        assert reloaded.ask_with(told["sign_in_id"]).claims["acr"] == "standard"
    finally:
        reloaded.close()


def test_no_client_becomes_a_customer(signed_in):
    """
    RFC 9068 section 5: a sign-in of somebody who is called as a client is since then serves no more.
    """
    sign_in = recorded(signed_in, signed_in.id_token(sub="orc_new"))
    found = with_provider()
    clients = [{**each.clients, "orc_new": replace(each.clients["c1"], client_id="orc_new")} for each in found]
    changed = (replace(each, clients=its) for each, its in zip(found, clients, strict=True))
    reloaded = SignedIn(
        Registry(origin=found.origin, workspaces=tuple(changed)), beside=signed_in, state=signed_in.service.state
    )
    try:
        assert reloaded.ask_with(sign_in).refusal == (400, "invalid_request", "sign_in:sub")
    finally:
        reloaded.close()


def test_a_sign_in_holds_for_its_connection_alone():
    """
    D13: another connection is another system with other customers, also where its namespace has the same name.
    """
    site = SignedIn(with_provider(namespace="shop-login"))
    try:
        bearer = f"Bearer {site.client_assertion()}"
        sign_in = recorded(site, site.id_token(aud="app-1"), authorization=bearer)
        here = site.ask_with(
            sign_in, client="orc_main", actor_token=None, resource=None, audience="https://api.shop.example"
        )
        there = site.ask_with(sign_in, client="orc_main", resource=BANK)
    finally:
        site.close()

    assert here.reason == "actor:ambiguous"
    assert there.reason == "subject_token:namespace"


def confirmed(site, sign_in, *, at, key=KEY):
    details = site.details(idempotencyKey=key, confirmation={"by": "client", "at": at})
    return site.ask_with(sign_in, authorization_details=details)


def test_what_one_customer_confirmed_is_not_minted_for_the_next(signed_in):
    """
    Two customers in one conversation: what the first confirmed is minted for the second under no key; what the second does, is.
    """
    first = recorded(signed_in, conversation="conv_1")
    confirmed_at = NOW + 1
    signed_in.clock.at = NOW + 2
    assert confirmed(signed_in, first, at=confirmed_at).status == 200

    signed_in.clock.at = NOW + 10
    second = recorded(signed_in, signed_in.id_token(sub="another"), conversation="conv_1")
    signed_in.clock.at = NOW + 30

    assert confirmed(signed_in, first, at=confirmed_at).reason == "sign_in:unknown"
    assert confirmed(signed_in, second, at=confirmed_at).reason == "confirmation:other_customer"
    assert confirmed(signed_in, second, at=NOW + 16).reason == "idempotency:conflict"
    assert confirmed(signed_in, second, at=confirmed_at, key=f"{KEY}-2").reason == "confirmation:other_customer"
    assert confirmed(signed_in, second, at=NOW + 15, key=f"{KEY}-3").reason == "confirmation:other_customer"
    assert confirmed(signed_in, second, at=NOW + 16, key=f"{KEY}-4").claims["sub"] == "another"


def test_what_was_refused_because_of_another_customer_takes_no_key(signed_in):
    """
    Asked once more and late enough, the customer confirms the same action, and it is minted under the key it had.
    """
    recorded(signed_in, conversation="conv_1")
    second = recorded(signed_in, signed_in.id_token(sub="another"), conversation="conv_1")
    signed_in.clock.at = NOW + 30

    refused = confirmed(signed_in, second, at=NOW + 5)
    granted = confirmed(signed_in, second, at=NOW + 20)

    assert refused.refusal == (400, "invalid_authorization_details", "confirmation:other_customer")
    assert granted.claims["caplo"]["confirmation"] == {"by": "client", "at": NOW + 20}


def test_what_nobody_confirms_is_minted_at_once_for_the_next_customer(signed_in):
    """
    No confirmation, none of another customer: it waits for nothing, and its key is the customer's own all the same.
    """
    first = recorded(signed_in, conversation="conv_1")
    unconfirmed = {"action": "note_order", "confirmation": {"by": "none"}, "idempotencyKey": KEY}
    assert signed_in.ask_with(first, authorization_details=signed_in.details(**unconfirmed)).status == 200

    second = recorded(signed_in, signed_in.id_token(sub="another"), conversation="conv_1")
    taken = signed_in.ask_with(second, authorization_details=signed_in.details(**unconfirmed))
    own = signed_in.ask_with(
        second, authorization_details=signed_in.details(**unconfirmed | {"idempotencyKey": KEY * 2})
    )

    assert taken.reason == "idempotency:conflict"
    assert own.claims["caplo"]["confirmation"] == {"by": "none", "at": NOW}


@pytest.fixture
def slow_provider(signed_in):
    """
    Let the keys of the identity provider take seven seconds.
    """
    keys = signed_in.service.provider_keys
    at_once = keys.key

    async def slow(*asked):
        signed_in.clock.at += 7
        signed_in.monotonic.at += 7
        return await at_once(*asked)

    keys.key = slow


@pytest.mark.usefixtures("slow_provider")
def test_a_slow_provider_lets_nothing_of_the_first_customer_through(signed_in):
    """
    The first customer is signed in until the second is recorded: what they confirm while keys are fetched is theirs alone.
    """
    recorded(signed_in, conversation="conv_1")
    begun_at = int(signed_in.clock.at)

    second = recorded(signed_in, signed_in.id_token(sub="another"), conversation="conv_1")

    assert signed_in.clock.at == begun_at + 7
    assert confirmed(signed_in, second, at=begun_at + 6).reason == "confirmation:other_customer"


@pytest.mark.usefixtures("slow_provider")
def test_a_slow_provider_makes_no_sign_in_younger(signed_in):
    """
    A demand for a recent sign-in is about the moment of the mint, whatever it took to get the keys.
    """
    token = signed_in.id_token(auth_time=NOW - 20)

    assert signed_in.exchange(token, max_age="26").reason == "authentication:unmet"


def test_step_up_mints_what_was_confirmed_before_it(signed_in):
    """
    D18: after a stronger sign-in of the same customer in the conversation, the same key and arguments are minted again.
    """
    first = recorded(signed_in, conversation="conv_1")
    confirmed_at = NOW + 1
    signed_in.clock.at = NOW + 2
    before = confirmed(signed_in, first, at=confirmed_at)

    signed_in.clock.at = NOW + 60
    stronger = recorded(signed_in, signed_in.id_token(acr="urn:shop:mfa"), conversation="conv_1")
    after = confirmed(signed_in, stronger, at=confirmed_at)

    assert (before.claims["acr"], after.claims["acr"]) == ("standard", "high")
    assert before.claims["caplo"] == after.claims["caplo"]
    assert after.claims["auth_time"] == NOW + 40


def test_a_confirmation_outlives_no_sign_in(signed_in):
    """
    A confirmation is good for 1800 s, and a sign-in for as long as it says: a token needs both.
    """
    sign_in = recorded(signed_in)

    signed_in.clock.at = NOW + CONFIRMATION_LIFETIME_S

    assert confirmed(signed_in, sign_in, at=NOW).reason == "confirmation:expired"


def test_a_store_that_fails_mints_nothing(signed_in):
    """
    When it cannot be told whether a sign-in holds, or an ID token was used, the request is refused as such (503).
    """

    async def down(*_asked):
        raise OSError

    broken = SimpleNamespace(use=down, add=down, find=down, describe=down)
    for name in ("sign_ins", "id_tokens"):
        object.__setattr__(signed_in.service.state, name, broken)

    asked = [signed_in.ask_with("x" * 43), signed_in.exchange()]
    recorded_, shown = signed_in.record(), signed_in.about("GET", "/sign-ins/b8lqWkYbJQ0mVh2yqzv3Cg")

    assert [answer.refusal for answer in asked] == [
        (503, "temporarily_unavailable", "sign_in:cannot_tell"),
        (503, "temporarily_unavailable", "id_token:cannot_tell"),
    ]
    assert (recorded_[0], recorded_[2]["code"]) == (503, "id_token_cannot_tell")
    assert (shown[0], shown[2]["code"]) == (503, "sign_ins_cannot_tell")


def test_nothing_of_a_customer_or_token_is_logged(signed_in):
    """
    tt-log-hash: neither the customer, nor the ID token, nor the id of the sign-in, nor the conversation stands in an event.
    """
    token = signed_in.id_token(sub="cus-marked", sid="sid-marked", nonce="nonce-marked")
    seen = []
    sign_in = recorded(signed_in, token, nonce="nonce-marked", conversation="conv-marked")
    seen += signed_in.events
    signed_in.ask_with(sign_in)
    seen += signed_in.events
    signed_in.log_out(signed_in.logout_token(sub="cus-marked", sid="sid-marked"))
    seen += signed_in.events

    assert {"sign_in_recorded", "token_minted", "logout_received"} <= {event for event, _ in seen}
    assert not [each for each in ("marked", token, sign_in) if each in repr(seen)]
