"""
What a request is granted: target, scope and demanded authentication, asked for over HTTP.
"""

from dataclasses import replace
from urllib.parse import urlencode

import pytest

from issuer.exchange import ACCESS_TOKEN_TYPE

from .world import NOW, clients

SHOP, BILLING, BANK = "https://api.shop.example", "https://billing.shop.example", "https://api.bank.example"
WRITE = "orders:write"


@pytest.mark.parametrize(
    ("client", "targets", "aud"),
    [
        ("orc_main", {"resource": SHOP}, SHOP),
        ("orc_main", {"resource": BILLING}, BILLING),
        ("orc_main", {"resource": None, "audience": BILLING}, BILLING),
        ("orc_main", {"resource": "", "audience": BILLING}, BILLING),
        ("orc_main", {"resource": SHOP, "audience": SHOP}, SHOP),
        ("orc_basic", {"resource": None}, SHOP),
        ("orc_basic", {"resource": None, "audience": ""}, SHOP),
    ],
)
def test_the_target_becomes_the_audience(client, targets, aud, site):
    """
    at-aud-from-resource, at-no-resource: `aud` is the target byte for byte, or the only audience a client has.
    """
    assert site.ask(client=client, **targets).claims["aud"] == aud


@pytest.mark.parametrize(
    ("reason", "targets"),
    [
        ("target:missing", {"resource": None}),
        ("target:missing", {"resource": "", "audience": ""}),
        ("target:differ", {"resource": SHOP, "audience": BILLING}),
        ("target:differ", {"resource": SHOP, "audience": f"{SHOP}/"}),
        ("target:not_allowed", {"resource": f"{SHOP}/"}),
        ("target:not_allowed", {"resource": f"{SHOP}#x"}),
        ("target:not_allowed", {"resource": SHOP.upper()}),
        ("target:not_allowed", {"resource": f"{SHOP}:443"}),
        ("target:not_allowed", {"resource": "/orders"}),
        ("target:not_allowed", {"resource": "https://unknown.example"}),
        ("target:not_allowed", {"resource": "https://issuer.test"}),
        ("target:not_allowed", {"resource": f"{SHOP} {BILLING}"}),
    ],
)
def test_any_other_target_is_refused(reason, targets, site):
    """
    tx-target-error: relative, with a fragment, unknown, missing where it is needed, or two that differ: `invalid_target`.
    """
    assert site.ask(**targets).refusal == (400, "invalid_target", reason)


@pytest.mark.parametrize("first", [SHOP, "https://unknown.example", ""])
@pytest.mark.parametrize("name", ["resource", "audience"])
def test_two_targets_are_refused_as_targets(name, first, site):
    """
    ri-single: one resource a request; the second is `invalid_target`, whatever stands in the two.
    """
    form = urlencode(site.form(resource=None))

    answer = site.post(f"{form}&{name}={first}&{name}={SHOP}".encode())

    assert answer.refusal == (400, "invalid_target", "target:repeated")


def test_who_asks_is_looked_at_before_repeated_targets(site):
    """
    D6: who names two targets is authenticated first like anybody else, and an assertion that came with them is used up.
    """
    repeated = f"&resource={SHOP}"
    form = site.form()

    stranger = site.post((urlencode(form | {"client_assertion": "x"}) + repeated).encode())
    client = site.post((urlencode(form) + repeated).encode())
    again = site.post(urlencode(form).encode())

    assert stranger.refusal == (401, "invalid_client", "client_assertion:malformed")
    assert client.refusal == (400, "invalid_target", "target:repeated")
    assert again.refusal == (401, "invalid_client", "client_assertion:replayed")


def test_an_audience_of_the_workspace_is_not_every_clients(site):
    """
    seed-audience-config: a target has to be configured, and listed with the client that asks.
    """
    assert site.ask(client="orc_basic", resource=BILLING).refusal == (400, "invalid_target", "target:not_allowed")


def test_a_subject_is_of_the_namespace_of_its_target(site):
    """
    jwt-sub-unique: a customer of one connection gets no token for an API of another (D13).
    """
    banker = site.subject_token(namespace="bank-login")

    assert site.ask(subject_token=banker, resource=BANK).claims["aud"] == BANK
    assert site.ask(subject_token=banker, resource=SHOP).refusal == (400, "invalid_request", "subject_token:namespace")
    assert site.ask(resource=BANK).refusal == (400, "invalid_request", "subject_token:namespace")


@pytest.mark.parametrize("requested", [None, "", ACCESS_TOKEN_TYPE])
def test_an_access_token_is_issued(requested, site):
    """
    tx-requested-type: the access token URN may be asked for, and nothing needs to be.
    """
    assert site.ask(requested_token_type=requested).members["issued_token_type"] == ACCESS_TOKEN_TYPE


@pytest.mark.parametrize("kind", ["jwt", "id_token", "saml2", "refresh_token"])
def test_no_other_type_is_issued(kind, site):
    """
    tx-requested-type: any other type is refused before the tokens are looked at.
    """
    answer = site.ask(requested_token_type=f"urn:ietf:params:oauth:token-type:{kind}", subject_token="x")

    assert answer.refusal == (400, "invalid_request", "requested_token_type")


@pytest.mark.parametrize(
    ("scope", "action", "subject_scope", "granted"),
    [
        (None, None, ..., None),
        ("", None, ..., None),
        ("orders:read", None, ..., "orders:read"),
        ("orders:read", None, "orders:read orders:write", "orders:read"),
        (None, "cancel_order", ..., WRITE),
        (None, "cancel_order", WRITE, WRITE),
        (None, "cancel_order", "orders:read", None),
        (None, "cancel_order", "", None),
        (None, "orders.read", ..., None),
        (WRITE, "cancel_order", ..., WRITE),
        ("orders:write orders:read", "cancel_order", ..., "orders:write orders:read"),
        ("orders:read", "cancel_order", ..., "orders:read"),
    ],
)
def test_the_requested_scope_is_granted_or_that_of_the_action(scope, action, subject_scope, granted, site):
    """
    at-scope-claim: exactly what was asked for, in its order; without a request, what the action owns, if the subject has it.
    """
    details = {} if action is None else {"authorization_details": site.details(action=action)}

    answer = site.ask(scope=scope, subject_token=site.subject_token(scope=subject_scope), **details)

    assert answer.claims.get("scope") == answer.members.get("scope") == granted


@pytest.mark.parametrize(
    ("reason", "scope", "action", "subject_scope"),
    [
        ("scope:form", " orders:read", None, ...),
        ("scope:form", "orders:read ", None, ...),
        ("scope:form", " ", None, ...),
        ("scope:form", "orders:read  orders:list", None, ...),
        ("scope:form", "orders:read\torders:list", None, ...),
        ("scope:form", "orders:read\n", None, ...),
        ("scope:form", 'orders:"read"', None, ...),
        ("scope:form", "orders:\\read", None, ...),
        ("scope:form", "orders:réad", None, ...),
        ("scope:form", "orders:read orders:read", None, ...),
        ("scope:not_allowed", "unknown", None, ...),
        ("scope:not_allowed", "orders:read unknown", None, ...),
        ("scope:not_allowed", "orders:list", None, ...),
        ("scope:not_allowed", "accounts:read", None, ...),
        ("scope:not_allowed", "ORDERS:READ", None, ...),
        ("scope:needs_action", WRITE, None, ...),
        ("scope:needs_action", "orders:read orders:write", None, ...),
        ("scope:needs_action", WRITE, "orders.read", ...),
        ("scope:needs_action", "notes:write", "cancel_order", ...),
        ("scope:wider", "orders:read", None, "orders:write"),
        ("scope:wider", "orders:read", None, ""),
        ("scope:wider", "orders:read", None, "orders:read2"),
        ("scope:wider", WRITE, "cancel_order", "orders:read"),
    ],
)
def test_a_scope_that_may_not_be_granted_is_refused(reason, scope, action, subject_scope, site):
    """
    tt-scope-narrow: malformed, unknown, of another connection or action, wider than the subject's: `invalid_scope`.
    """
    details = {} if action is None else {"authorization_details": site.details(action=action)}

    answer = site.ask(scope=scope, subject_token=site.subject_token(scope=subject_scope), **details)

    assert answer.refusal == (400, "invalid_scope", reason)


def test_an_action_brings_no_scope_that_the_client_lacks(build_site, site):
    """
    The scope of an action is granted by itself only to clients that are listed with it.
    """
    narrow = replace(clients()[0], scopes=frozenset({"orders:read"}))
    other = build_site(clients=lambda: (narrow,))

    without = other.ask(authorization_details=other.details())
    with_one = other.ask(authorization_details=other.details(), scope=WRITE)

    assert without.claims["caplo"]["action"] == "cancel_order"
    assert "scope" not in without.claims
    assert with_one.refusal == (400, "invalid_scope", "scope:not_allowed")


@pytest.mark.parametrize(
    ("demand", "met"),
    [
        ({"acr_values": "low"}, True),
        ({"acr_values": "standard"}, True),
        ({"acr_values": "high"}, False),
        ({"acr_values": "standard high"}, True),
        ({"acr_values": "high standard"}, False),
        ({"acr_values": "gold standard"}, True),
        ({"acr_values": "gold high low"}, False),
        ({"acr_values": "gold"}, False),
        ({"acr_values": " "}, False),
        ({"acr_values": ""}, True),
        ({"max_age": "360"}, True),
        ({"max_age": "359"}, False),
        ({"max_age": "0000000360"}, True),
        ({"max_age": "0"}, False),
        ({"max_age": "9999999999"}, True),
        ({"max_age": "360", "acr_values": "standard"}, True),
        ({"max_age": "359", "acr_values": "standard"}, False),
        ({"max_age": "360", "acr_values": "high"}, False),
    ],
)
def test_a_demanded_sign_in_is_met_or_nothing_is_minted(demand, met, site):
    """
    su-unmet: a level or an age that the sign-in does not meet is never answered with a weaker token (RFC 9470 section 5).
    """
    answer = site.ask(**demand)

    if met:
        assert answer.claims["acr"] == "standard"
    else:
        assert answer.refusal == (400, "unmet_authentication_requirements", "authentication:unmet")


@pytest.mark.parametrize(("age_s", "met"), [(0, True), (60, True), (61, False)])
def test_a_fresh_sign_in_is_one_of_this_minute(age_s, met, site):
    """
    `max_age=0` asks for a sign-in made for this request: at most 60 s old (D9).
    """
    answer = site.ask(max_age="0", subject_token=site.subject_token(auth_time=NOW - age_s))

    assert (answer.status == 200) == met


@pytest.mark.parametrize("max_age", ["-1", "+1", "1.0", "1e3", " 1", "x", "12345678901", "\u0663"])
def test_a_malformed_max_age_is_an_invalid_request(max_age, site):
    """
    An age is written in ASCII digits; half of a demand is never dropped.
    """
    assert site.ask(max_age=max_age).refusal == (400, "invalid_request", "max_age:form")
