"""
The contract between issuer and verifier: whatever is minted is accepted exactly once, and nothing else is ever handed out.

Requests are drawn at random within what is allowed, on one clock that stands at any fraction of a second.
"""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from issuer.errors import TokenRefused
from issuer.idempotency import MAX_MINTS
from verifier import CustomerContextError, CustomerContextVerifier
from verifier.claims import CONFIRMATION_LIFETIME_S, MAX_LIFETIME_S
from verifier.compact import parse_compact

from .site import Site
from .world import NOW, SHOP

CLAIMS = {"iss", "sub", "aud", "client_id", "iat", "exp", "jti", "acr", "auth_time", "act", "scope", "caplo"}
CAPLO = {"action", "actionDigest", "idempotencyKey", "confirmation"}
KEY = "idk-of-the-contract"


@pytest.fixture(scope="module")
def contract() -> tuple[Site, CustomerContextVerifier]:
    site = Site()
    return site, site.verifier()


@dataclass
class Drawn:
    """
    A request within what is allowed, and the times of everything in it, in seconds from the whole second it is made in.
    """

    fraction: float = 0.0
    sub: str = "cus_48213"
    acr: str = "standard"
    auth_time: float = -360
    subject_ends: float = 60
    actor_ends: float | None = None
    act: tuple[str, ...] = ("agt_support",)
    scope: tuple[str, ...] = ()
    action: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    confirmed_at: int | None = -20

    def form(self, site: Site) -> dict[str, Any]:
        subject = {"sub": self.sub, "acr": self.acr, "auth_time": NOW + self.auth_time, "exp": NOW + self.subject_ends}
        parameters = {"subject_token": site.subject_token(act=self.nested(), iat=NOW - 200, **subject)}
        parameters["scope"] = " ".join(self.scope) or None
        if self.actor_ends is not None:
            parameters |= site.actor(site.actor_token(exp=NOW + self.actor_ends))
        if self.action is not None:
            none = self.confirmed_at is None
            confirmation = {"by": "none"} if none else {"by": "client", "at": NOW + self.confirmed_at}
            parameters["authorization_details"] = site.details(
                action=self.action, arguments=self.arguments, confirmation=confirmation
            )
        return parameters

    def nested(self) -> dict[str, Any]:
        act: dict[str, Any] = {}
        for sub in reversed(self.act):
            act = {"sub": sub} | ({"act": act} if act else {})
        return act

    def lives_s(self) -> int:
        """
        Say how long the token lives, counted from `iat`; 0 when it would be dead on arrival.
        """
        # As instants, because that is how they are signed: a fraction may round up to the next second there.
        ends = [MAX_LIFETIME_S, math.floor(NOW + self.subject_ends) - NOW]
        ends += [] if self.actor_ends is None else [math.floor(NOW + self.actor_ends) - NOW]
        if self.action is not None and self.confirmed_at is not None:
            ends.append(self.confirmed_at + CONFIRMATION_LIFETIME_S)
        return max(0, min(ends))


FRACTIONS = st.floats(0, 0.999) | st.sampled_from([0.0, 0.5, 0.25, 0.001, 0.999])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
ENDS = st.integers(1, 99) | st.floats(1, 99) | st.sampled_from([0.5, 1, 1.5, 2, 59.999, 60, 61])
SCOPES = {None: ["orders:read"], "cancel_order": ["orders:read", "orders:write"], "note_order": ["notes:write"]}


@st.composite
def requests(draw: st.DrawFn) -> Drawn:
    action = draw(st.sampled_from([None, "cancel_order", "note_order", "orders.read"]))
    words = st.lists(st.sampled_from(SCOPES.get(action, ["orders:read"])), unique=True, max_size=2)
    actor_ends = draw(st.none() | ENDS)
    inner = draw(st.lists(TEXT.filter(bool), max_size=2 if actor_ends is not None else 3))
    ages = st.integers(-CONFIRMATION_LIFETIME_S + 1, 5)
    return Drawn(
        fraction=draw(FRACTIONS),
        sub=draw(TEXT.filter(bool)),
        acr=draw(st.sampled_from(["low", "standard", "high"])),
        auth_time=draw(st.integers(-NOW, 5) | st.floats(-1e6, 5) | st.sampled_from([0, 5, 4.999, -0.25])),
        subject_ends=draw(ENDS),
        actor_ends=actor_ends,
        act=(draw(st.sampled_from(["agt_support", "agt_orders"])), *inner),
        scope=tuple(draw(words)),
        action=action,
        arguments=draw(st.dictionaries(TEXT, JSON, max_size=4)),
        confirmed_at=draw(st.none() | ages if action == "note_order" else ages),
    )


def minted(site: Site, **parameters: Any) -> Mapping[str, Any]:
    return asyncio.run(site.endpoint().answer(site.token_request(**parameters)))


@given(drawn=requests())
@example(drawn=Drawn(fraction=0.9, action="cancel_order", confirmed_at=-1799))
@example(drawn=Drawn(fraction=0.999, subject_ends=1.0, auth_time=5))
@example(drawn=Drawn(fraction=0.5, subject_ends=0.75))
@example(drawn=Drawn(subject_ends=2, actor_ends=1.9999999999999991))
@example(drawn=Drawn(act=("agt_orders", "a", "b", "c"), sub="\U0001f600\u0000\u2028", scope=("orders:read",)))
@example(drawn=Drawn(action="note_order", confirmed_at=None, actor_ends=1.5))
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_minted_is_accepted_exactly_once(contract, drawn):
    """
    Promise 1: each allowed request gets a token that the verifier takes once and never again, or would have been dead on arrival.
    """
    site, verifier = contract
    site.renew()
    site.clock.at = NOW
    parameters = drawn.form(site)
    site.clock.at = NOW + drawn.fraction
    event(f"lives {min(drawn.lives_s(), 2)}")
    if not drawn.lives_s():
        with pytest.raises(TokenRefused) as caught:
            minted(site, **parameters)
        assert caught.value.error in ("invalid_request", "invalid_authorization_details")
        return

    answer = minted(site, **parameters)
    demand: dict[str, Any] = {"level": drawn.acr, "scope": answer.get("scope")}
    if drawn.action is not None:
        by = "none" if drawn.confirmed_at is None else "client"
        demand |= {"action": drawn.action, "arguments": drawn.arguments, "confirmation": by}
        demand |= {"max_confirmation_age_seconds": CONFIRMATION_LIFETIME_S}
    context = verifier.verify(answer["access_token"], **demand)

    assert set(context.claims) <= CLAIMS
    assert set(context.claims.get("caplo", ())) == (CAPLO if drawn.action else set())
    assert (context.sub, context.acr, context.auth_time) == (drawn.sub, drawn.acr, NOW + drawn.auth_time)
    agents = drawn.act if drawn.actor_ends is None else ("agt_orders", *drawn.act)
    assert (context.actor, *context.actor_history) == agents
    assert (context.issued_at, context.expires_at) == (NOW, NOW + drawn.lives_s())
    assert answer["expires_in"] == drawn.lives_s()
    with pytest.raises(CustomerContextError) as replayed:
        verifier.verify(answer["access_token"], **demand)
    assert replayed.value.reason == "replayed"


@given(drawn=requests(), delay_s=st.floats(0, 70))
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_a_token_is_good_until_its_end_and_no_longer(contract, drawn, delay_s):
    """
    At any moment of its life a token is accepted, and from its end on it is expired.
    """
    site, verifier = contract
    site.renew()
    if drawn.lives_s() <= drawn.fraction:
        return
    parameters = drawn.form(site)
    site.clock.at = NOW + drawn.fraction
    answer = minted(site, **parameters)
    site.clock.at += delay_s

    demand = {} if drawn.action is None else {"action": drawn.action, "arguments": drawn.arguments}
    try:
        outcome = verifier.verify(answer["access_token"], **demand).jti
    except CustomerContextError as error:
        outcome = error.reason

    alive = site.clock.at < NOW + drawn.lives_s()
    assert (outcome == "expired") == (not alive)
    assert not alive or outcome == parse_compact(answer["access_token"]).claims["jti"]


@given(drawn=requests(), step_s=st.floats(0, 3) | st.sampled_from([0.2, 0.25, 0.5, 1.0]))
@example(drawn=Drawn(action="cancel_order", confirmed_at=-1799, arguments={}), step_s=0.24)
@example(drawn=Drawn(fraction=0.5, subject_ends=1.25), step_s=0.2)
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
def test_time_that_passes_while_minting_makes_no_token_that_is_refused(contract, drawn, step_s):
    """
    However slowly a request is answered: what is handed out is accepted, unless its end has come on the way.
    """
    site, verifier = contract
    site.renew()
    parameters = drawn.form(site)
    request = site.token_request(**parameters)
    site.clock.at, site.clock.step = NOW + drawn.fraction, step_s
    try:
        answer = asyncio.run(site.endpoint().answer(request))
    except TokenRefused as refused:
        event(refused.reason)
        assert step_s or not drawn.lives_s()
        return
    site.clock.step = 0.0

    demand = {} if drawn.action is None else {"action": drawn.action, "arguments": drawn.arguments}
    claims = parse_compact(answer["access_token"]).claims
    try:
        outcome = verifier.verify(answer["access_token"], **demand).jti
    except CustomerContextError as error:
        outcome = error.reason

    assert outcome == ("expired" if site.clock.at >= claims["exp"] else claims["jti"])
    assert claims["exp"] <= NOW + (drawn.lives_s() if drawn.action != "note_order" else drawn.subject_ends) + 60


def test_a_thousand_tokens_are_a_thousand(contract):
    """
    Without limits, 1,000 exchanges of one subject token have 1,000 identifiers, and each token is accepted once.
    """
    site, verifier = contract
    site.renew()
    site.lift_limits()
    subject, endpoint = site.subject_token(), site.endpoint()

    async def all_of_them():
        return [await endpoint.answer(site.token_request(subject_token=subject)) for _ in range(1000)]

    contexts = [verifier.verify(answer["access_token"]) for answer in asyncio.run(all_of_them())]

    assert len({context.jti for context in contexts}) == 1000


def test_one_key_is_twenty_tokens_for_one_action(contract):
    """
    D12: the same key gives new identifiers with the same digest, twenty times, and then nothing more.
    """
    site, verifier = contract
    site.renew()
    details = site.details(idempotencyKey=KEY)

    answers = [minted(site, authorization_details=details) for _ in range(MAX_MINTS)]
    with pytest.raises(TokenRefused) as caught:
        minted(site, authorization_details=details)

    contexts = [
        verifier.verify(
            answer["access_token"], action="cancel_order", arguments={"orderId": "A-1001"}, idempotency_key=KEY
        )
        for answer in answers
    ]
    assert len({context.jti for context in contexts}) == MAX_MINTS
    assert len({answer["authorization_details"][0]["actionDigest"] for answer in answers}) == 1
    assert caught.value.reason == "idempotency:exhausted"


@pytest.mark.parametrize("tolerance_s", [0, 5, 60])
@pytest.mark.parametrize("fraction", [0.0, 0.001, 0.5, 0.999])
def test_a_verifier_may_be_behind_the_issuer_within_its_second(contract, fraction, tolerance_s):
    """
    A clock behind by less than the rest of the second, or by the tolerance, still takes a token at once (D5).
    """
    site, _ = contract
    site.renew()
    site.clock.at = NOW + fraction
    token = minted(site)["access_token"]

    site.clock.at = NOW - tolerance_s - (0.999 if fraction == 0.999 else 0.0)
    early = site.verifier(SHOP, clock_tolerance_seconds=tolerance_s)

    assert early.verify(token).issued_at == NOW
