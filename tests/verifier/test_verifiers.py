"""
The verifiers refuse what makes no sense when it is said, and whatever is no token.
"""

import pytest

from verifier import (
    AsyncCustomerContextVerifier,
    CustomerContextVerifier,
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
