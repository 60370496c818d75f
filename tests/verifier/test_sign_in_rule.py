"""
A context demands more of the sign-in after verification by the same rule, in the same words, as `verify` does before (D9).
"""

import copy
import itertools
import pickle
import time
from collections.abc import Callable

import pytest

from verifier import CustomerContext, CustomerContextError, parse_challenges
from verifier.claims import TokenClaims

ORDER = ["low", "standard", "high"]
METADATA = "https://api.test/.well-known/oauth-protected-resource"
DUPLICATES = [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]


def refusal_of(context: CustomerContext, **demand: object) -> CustomerContextError:
    """
    Require what has to be refused.
    """
    with pytest.raises(CustomerContextError) as refusal:
        context.require(**demand)
    return refusal.value


def answer_of(call: Callable[..., CustomerContext], *token: str, **demand: object) -> object:
    """
    Return everything that a refusal says, or that it was accepted.
    """
    try:
        return call(*token, **demand).jti
    except CustomerContextError as refusal:
        return vars(refusal), refusal.args


@pytest.mark.parametrize("tolerance", [0, 5])
@pytest.mark.parametrize("acr", [*ORDER, "phr"])
@pytest.mark.parametrize("age", [None, -4, 0, 60, 61, 65, 66, 300, 300.5, 305, 306])
def test_a_demand_is_judged_alike_before_and_after(api, mint, acr, age, tolerance):
    """
    su-age-check: `require` accepts and refuses exactly what `verify` does, at every edge, and with the very same answer.
    """
    built = api(clock_tolerance_seconds=tolerance, replay_store=None)
    token = mint.signed(acr=acr, iat=mint.now, auth_time=... if age is None else mint.now - age)
    context = built.verify(token)

    for level, limit in itertools.product([None, *ORDER], [None, 0, 300]):
        demand = {"level": level, "max_auth_age_seconds": limit}
        assert answer_of(context.require, **demand) == answer_of(built.verify, token, **demand)

    assert context.require() is context


def test_the_challenge_of_a_context(api, mint):
    """
    su-error-code, su-acr-values: 401, the one error code, every level that would do, lowest first, and the age.
    """
    error = refusal_of(api().verify(mint.signed(acr="low")), level="standard", max_auth_age_seconds=300)

    params = parse_challenges(error.www_authenticate)[0].params
    assert (error.reason, error.status) == ("step_up", 401)
    assert params["error"] == "insufficient_user_authentication"
    assert (params["acr_values"], params["max_age"]) == ("standard high", "300")
    assert "resource_metadata" not in params


@pytest.mark.parametrize("tolerance", [0, 5])
def test_time_goes_on_by_the_clock_of_the_verifier(api, mint, wall_clock, tolerance):
    """
    A sign-in that was recent enough at verification is judged anew when more is demanded, with the verifier's tolerance.
    """
    context = api(clock_tolerance_seconds=tolerance).verify(mint.signed(auth_time=mint.now - 290))

    wall_clock.at = mint.now + 10 + tolerance
    assert context.require(max_auth_age_seconds=300) is context
    wall_clock.at += 1
    assert refusal_of(context, max_auth_age_seconds=300).reason == "step_up"


@pytest.mark.parametrize(
    ("demand", "error"),
    [
        *(({"level": level}, ValueError) for level in ("gold", "High", "", 1, ["high"])),
        *(({"max_auth_age_seconds": age}, ValueError) for age in (86_401, -1)),
        *(({"max_auth_age_seconds": age}, TypeError) for age in (True, 1.5, "300", float("nan"))),
        ({"levels": "high"}, TypeError),
    ],
    ids=str,
)
def test_a_mistaken_demand_is_told_to_the_programmer(api, mint, demand, error):
    """
    What makes no sense is a ValueError or TypeError, also where the sign-in would meet anything.
    """
    context = api().verify(mint.signed(acr="high", iat=mint.now, auth_time=mint.now))

    with pytest.raises(error):
        context.require(**demand)


def test_a_level_is_named(api, mint):
    """
    A demand cannot be stated by position, where level and age could be mixed up.
    """
    with pytest.raises(TypeError):
        api().verify(mint.signed()).require("high")


@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_a_copy_demands_alike(api, mint, duplicate, monkeypatch):
    """
    A copied context judges as the first one; one that went through pickle by the wall clock there, with the same tolerance.
    """
    built = api(clock_tolerance_seconds=5, resource_metadata=METADATA)
    context = duplicate(built.verify(mint.signed(auth_time=mint.now - 300)))
    monkeypatch.setattr(time, "time", lambda: mint.now + 0.0)
    arrived = pickle.loads(pickle.dumps(context))

    for one in (context, arrived) if duplicate is not DUPLICATES[-1] else (arrived,):
        assert one.require(max_auth_age_seconds=295) is one
        error = refusal_of(one, max_auth_age_seconds=294)
        assert error.www_authenticate.endswith(f', max_age="294", resource_metadata="{METADATA}"')


def test_a_context_with_any_clock_goes_to_another_process(api, mint):
    """
    A clock that cannot be pickled, a lambda say, does not keep a context from it.
    """
    context = api(now=lambda: mint.now).verify(mint.signed(acr="high"))

    arrived = pickle.loads(pickle.dumps(context))

    assert arrived.require(level="high").sub == context.sub
    assert refusal_of(arrived, max_auth_age_seconds=1).reason == "step_up"


def test_a_context_that_a_test_made_by_hand(mint):
    """
    Without a verifier a context judges by the wall clock.
    """
    claims = mint.claims(acr="standard", iat=int(time.time()), auth_time=int(time.time()) - 5)

    context = CustomerContext(
        _verified=TokenClaims.from_payload(claims),
        _payload=claims,
        action=None,
        arguments=None,
        idempotency_key=None,
        confirmation=None,
    )

    assert context.require(level="standard", max_auth_age_seconds=0) is context
    assert refusal_of(context, level="high").reason == "step_up"


def test_policy_shows_only_to_those_whose_token_passed(api, mint):
    """
    su-leak: whatever else is wrong, the answer names neither a level nor an age, though the sign-in is too weak as well.
    """
    built = api(resource_metadata=METADATA)
    used = mint.signed(acr="low")
    built.verify(used)
    refused = [
        *("", "a.b.c", mint.signed(acr="low", signer="attacker"), mint.signed(acr="low", exp=mint.now)),
        *(mint.signed(acr="low", aud="https://other.test"), mint.signed(acr="low", scope="nothing")),
    ]

    for token in refused:
        error = built.refusal(token, level="high", max_auth_age_seconds=300, scope="orders.read")
        assert error.reason != "step_up"
        assert not {"acr_values", "max_age"} & parse_challenges(error.www_authenticate)[0].params.keys()
    assert built.refused(used) == "replayed"
