"""
For whom and through whom: subject tokens, actor tokens and the `act` that is made of them, asked for over HTTP.
"""

import pytest

from issuer.subject import JWT_TOKEN_TYPE

from .world import NOW

ID_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:id_token"
ACTOR_TOKEN_TYPE = {"actor_token_type": JWT_TOKEN_TYPE}


def nested(*subs: str) -> dict:
    """
    Nest actors as `act` does, the first outermost.
    """
    act: dict = {}
    for sub in reversed(subs):
        act = {"sub": sub} | ({"act": act} if act else {})
    return act


@pytest.mark.parametrize(
    ("changes", "claims"),
    [
        ({}, {"sub": "cus_48213", "acr": "standard", "auth_time": 1_796_039_640}),
        ({"acr": "low"}, {"acr": "low"}),
        ({"acr": "high"}, {"acr": "high"}),
        ({"auth_time": 1_796_039_640.25}, {"auth_time": 1_796_039_640.25}),
        ({"auth_time": 0}, {"auth_time": 0}),
        ({"auth_time": 1_796_040_005}, {"auth_time": 1_796_040_005}),
        ({"sub": "id:with:colons"}, {"sub": "id:with:colons"}),
        ({"sub": "Zoë 🦆 \u0000\u2028"}, {"sub": "Zoë 🦆 \u0000\u2028"}),
        ({"sub": "cafe\u0301"}, {"sub": "cafe\u0301"}),
        ({"key": "subject-2"}, {"sub": "cus_48213"}),
        ({"unknown": {"claims": ["are", "ignored"]}}, {"sub": "cus_48213"}),
    ],
)
def test_customer_and_sign_in_are_copied_as_they_are(changes, claims, site):
    """
    `sub`, `acr` and `auth_time` of the token are those of the subject token, code point by code point.
    """
    answer = site.ask(subject_token=site.subject_token(**changes))

    assert {name: answer.claims[name] for name in claims} == claims


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("namespace", {"namespace": ...}),
        ("namespace", {"namespace": ""}),
        ("namespace", {"namespace": ["shop-login"]}),
        ("namespace", {"namespace": "bank-login"}),
        ("acr", {"acr": ...}),
        ("acr", {"acr": "gold"}),
        ("acr", {"acr": "Standard"}),
        ("acr", {"acr": ["standard"]}),
        ("auth_time", {"auth_time": ...}),
        ("auth_time", {"auth_time": None}),
        ("auth_time", {"auth_time": True}),
        ("auth_time", {"auth_time": "1796039640"}),
        ("auth_time", {"auth_time": -1}),
        ("auth_time", {"auth_time": 1_796_040_005.5}),
        ("scope", {"scope": ["orders:read"]}),
        ("act", {"act": "agt_support"}),
        ("act", {"act": None}),
        ("act", {"act": ["agt_support"]}),
        ("act", {"act": {}}),
        ("act", {"act": {"sub": "agt_support", "exp": 1_796_040_060}}),
        ("act", {"act": {"sub": "agt_support", "act": {"sub": ""}}}),
        ("act", {"act": nested("agt_support", "b", "c", "d", "e")}),
        ("may_act", {"may_act": "agt_support"}),
        ("may_act", {"may_act": {}}),
        ("may_act", {"may_act": {"sub": ["agt_support"]}}),
        ("may_act", {"may_act": {"sub": "agt_support", "iss": "https://other.test"}}),
        ("subject", {"sub": "orc_main"}),
        ("subject", {"sub": "c1"}),
        ("subject", {"iss": "orc_second"}),
        ("subject", {"iss": "https://issuer.test"}),
        ("key", {"key": "client-1"}),
        ("signature", {"key": "client-1", "header": {"kid": "subject-1"}}),
        ("type", {"header": {"typ": "JWT"}}),
        ("type", {"header": {"typ": "at+jwt"}}),
        ("audience", {"aud": "https://issuer.test/w/acme"}),
        ("audience", {"aud": "https://api.shop.example"}),
        ("expired", {"exp": 1_796_040_000}),
        ("lifetime", {"exp": 1_796_040_301}),
        ("iat", {"iat": ...}),
        ("jti", {"jti": ...}),
    ],
)
def test_an_unacceptable_subject_token_is_an_invalid_request(reason, changes, site):
    """
    tx-subject-error: `invalid_request`, never `invalid_grant`, and the log says which claim it was.
    """
    answer = site.ask(subject_token=site.subject_token(**changes))

    assert answer.refusal == (400, "invalid_request", f"subject_token:{reason}")


def test_a_client_asserts_levels_up_to_its_own(site):
    """
    `max_asserted_level` bounds what the client's own subject tokens may claim.
    """
    standard = site.ask(client="orc_basic", subject_token=site.subject_token("orc_basic", acr="standard"))
    high = site.ask(client="orc_basic", subject_token=site.subject_token("orc_basic", acr="high"))

    assert standard.claims["acr"] == "standard"
    assert high.refusal == (400, "invalid_request", "subject_token:acr")


def test_a_client_may_bring_the_kinds_it_is_listed_with(site):
    """
    A client that may not sign subject tokens has nothing to exchange.
    """
    answer = site.ask(client="orc_mute")

    assert answer.refusal == (400, "unauthorized_client", "subject_token:not_allowed")


@pytest.mark.parametrize(
    ("reason", "parameters"),
    [
        ("missing:subject_token", {"subject_token": None}),
        ("missing:subject_token", {"subject_token": ""}),
        ("missing:subject_token_type", {"subject_token_type": None}),
        ("subject_token:token_type", {"subject_token_type": "urn:ietf:params:oauth:token-type:saml2"}),
        ("subject_token:malformed", {"subject_token": "opaque"}),
        ("actor_token:pair", {"actor_token": "x"}),
        ("actor_token:pair", ACTOR_TOKEN_TYPE),
        ("actor_token:token_type", {"actor_token": "x", "actor_token_type": ID_TOKEN_TYPE}),
        ("actor_token:malformed", {"actor_token": "x", **ACTOR_TOKEN_TYPE}),
    ],
)
def test_tokens_come_with_their_types(reason, parameters, site):
    """
    tx-subject-required: each of the pairs is complete, and of the one type that is supported.
    """
    assert site.ask(**parameters).refusal == (400, "invalid_request", reason)


def test_one_session_may_be_exchanged_several_times(site):
    """
    A subject token is no one-time token: it serves as often as the client likes within its life.
    """
    subject = site.subject_token()

    jtis = {site.ask(subject_token=subject).claims["jti"] for _ in range(3)}

    assert len(jtis) == 3


@pytest.mark.parametrize(
    ("subject", "actor", "act"),
    [
        ({}, None, nested("agt_support")),
        ({"act": {"sub": "agt_orders", "name": "dropped"}}, None, nested("agt_orders")),
        ({"act": nested("agt_orders", "agt_support")}, None, nested("agt_orders", "agt_support")),
        ({"act": nested("agt_orders", "b", "c", "d")}, None, nested("agt_orders", "b", "c", "d")),
        ({"act": ...}, {}, nested("agt_orders")),
        ({}, {}, nested("agt_orders", "agt_support")),
        ({}, {"key": "client-2", "sub": "agt_support"}, nested("agt_support", "agt_support")),
        ({"act": nested("a", "b", "c")}, {}, nested("agt_orders", "a", "b", "c")),
        ({"may_act": {"sub": "agt_orders"}}, {}, nested("agt_orders", "agt_support")),
        ({"may_act": {"sub": "agt_support", "name": "x"}}, None, nested("agt_support")),
        (
            {"act": {"sub": "agt_orders", "act": {"sub": "b", "iss": "https://other.test"}}},
            None,
            {"sub": "agt_orders", "act": {"sub": "b", "iss": "https://other.test"}},
        ),
    ],
)
def test_the_present_actor_stands_outermost(subject, actor, act, site):
    """
    tx-act-object: an actor token's agent is outermost and the subject token's own `act` moves one level in (D8).
    """
    sent = {} if actor is None else site.actor(site.actor_token(**actor))

    answer = site.ask(subject_token=site.subject_token(**subject), **sent)

    assert answer.claims["act"] == act


def test_without_a_name_the_only_agent_acts(site):
    """
    A client with one agent need not name it; one with two does.
    """
    one = site.ask(client="orc_basic", subject_token=site.subject_token("orc_basic", act=...))
    two = site.ask(subject_token=site.subject_token(act=...))

    assert one.claims["act"] == {"sub": "agt_support"}
    assert two.refusal == (400, "invalid_request", "actor:ambiguous")


@pytest.mark.parametrize(
    ("reason", "subject", "actor"),
    [
        ("actor:not_allowed", {"act": nested("agt_foreign")}, None),
        ("actor:not_allowed", {"act": nested("agt_foreign", "agt_support")}, None),
        ("actor:not_allowed", {"act": {"sub": "agt_support", "iss": "https://issuer.test"}}, None),
        ("actor:not_allowed", {}, {"sub": "agt_foreign"}),
        ("actor:may_act", {"may_act": {"sub": "agt_orders"}}, None),
        ("actor:may_act", {"may_act": {"sub": "agt_support"}}, {}),
        ("actor:depth", {"act": nested("a", "b", "c", "d")}, {}),
        ("actor_token:issuer", {}, {"iss": "orc_second"}),
        ("actor_token:key", {}, {"key": "subject-1"}),
        ("actor_token:signature", {}, {"key": "subject-1", "header": {"kid": "client-1"}}),
        ("actor_token:type", {}, {"header": {"typ": "caplo-subject+jwt"}}),
        ("actor_token:type", {}, {"header": {"typ": "client-authentication+jwt"}}),
        ("actor_token:audience", {}, {"aud": "https://api.shop.example"}),
        ("actor_token:expired", {}, {"exp": 1_796_040_000}),
        ("actor_token:iat", {}, {"iat": ...}),
        ("actor_token:jti", {}, {"jti": ...}),
    ],
)
def test_only_listed_agents_act_and_only_so_deep(reason, subject, actor, site):
    """
    tx-may-act: an agent that is not listed, that `may_act` does not name, or one too many in the chain gets no token.
    """
    sent = {} if actor is None else site.actor(site.actor_token(**actor))

    answer = site.ask(subject_token=site.subject_token(**subject), **sent)

    assert answer.refusal == (400, "invalid_request", reason)


def test_an_actor_token_may_be_demanded(site):
    """
    A client marked so is refused without an actor token, whatever its subject token names, and served with one.
    """
    without = site.ask(client="orc_strict")
    with_one = site.ask(client="orc_strict", **site.actor(site.actor_token("orc_strict")))

    assert without.refusal == (400, "invalid_request", "actor_token:missing")
    assert with_one.claims["act"] == nested("agt_orders", "agt_support")


def test_a_client_with_a_secret_has_no_keys_for_actor_tokens(site):
    """
    An actor token is signed with a client key; a client without keys cannot bring one.
    """
    answer = site.ask(client="orc_basic", **site.actor(site.actor_token("orc_basic")))

    assert answer.refusal == (400, "invalid_request", "actor_token:key")


@pytest.mark.parametrize(
    ("subject_lives_s", "actor_lives_s", "expires_in"),
    [(60, 60, 60), (20, 60, 20), (60, 20, 20), (20.9, 60, 20), (1, 60, 1), (60, 1.5, 1), (300, 300, 60)],
)
def test_no_token_outlives_what_it_was_made_from(subject_lives_s, actor_lives_s, expires_in, site):
    """
    tx-validate-tokens: `exp` is at most that of the subject token and of the actor token.
    """
    subject = site.subject_token(exp=NOW + subject_lives_s)
    actor = site.actor_token(exp=NOW + actor_lives_s)

    answer = site.ask(subject_token=subject, **site.actor(actor))

    assert answer.members["expires_in"] == answer.claims["exp"] - answer.claims["iat"] == expires_in
