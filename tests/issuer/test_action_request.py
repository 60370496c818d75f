"""
The action of a token request: one object, an action the client may ask for, arguments with a digest, a live confirmation.
"""

import json
from dataclasses import replace

import pytest

from verifier import action_digest

from .world import BILLING, NOW, clients

KEY = "idk-of-one-action"
NESTED = 40


def granted(site, **changes):
    return site.ask(authorization_details=site.details(**changes))


def test_a_read_has_no_action(site):
    """
    seed-write-claims: without `authorization_details`, or with an empty one, nothing of an action is in token or answer.
    """
    for details in (None, ""):
        answer = site.ask(scope="orders:read", authorization_details=details)

        assert "caplo" not in answer.claims
        assert "authorization_details" not in answer.members


def test_a_write_carries_its_action(site):
    """
    seed-write-claims, rar-response: the token has the four members of `caplo`, the answer what was granted and no argument.
    """
    arguments = {"orderId": "A-1001", "note": None, "nested": {"amount": 1250.0, "list": [True, {}]}}
    digest = action_digest(action="cancel_order", arguments=arguments, idempotency_key=KEY)

    answer = granted(site, arguments=arguments, idempotencyKey=KEY)

    assert answer.claims["caplo"] == {
        "action": "cancel_order",
        "actionDigest": digest,
        "idempotencyKey": KEY,
        "confirmation": {"by": "client", "at": NOW - 20},
    }
    assert answer.granted == {"type": "caplo_action", "action": "cancel_order", "actionDigest": digest}


@pytest.mark.parametrize(
    ("reason", "details"),
    [
        ("action:json", "caplo_action"),
        ("action:json", "[{]"),
        ("action:json", "[] []"),
        ("action:json", "\ufeff[]"),
        ("action:json", '[{"type": "caplo_action", "type": "caplo_action"}]'),
        ("action:json", '[{"n": NaN}]'),
        ("action:json", '[{"n": 1e400}]'),
        ("action:json", '[{"n": ' + "1" * 5000 + "}]"),
        ("action:json", '[{"s": "\\ud800"}]'),
        ("action:json", "[" * 5000),
        ("action:count", "null"),
        ("action:count", "{}"),
        ("action:count", '"caplo_action"'),
        ("action:count", "[]"),
        ("action:count", "[{}, {}]"),
        ("action:count", "[[{}]]"),
        ("action:type", "[{}]"),
        ("action:type", '[{"type": "payment_initiation"}]'),
        ("action:type", '[{"type": ["caplo_action"]}]'),
        ("action:members", '[{"type": "caplo_action"}]'),
    ],
)
def test_details_are_exactly_one_object_of_the_type(reason, details, site):
    """
    rar-unknown, jcs-ijson: anything but one strict JSON array of one `caplo_action` is refused.
    """
    answer = site.ask(authorization_details=details)

    assert answer.refusal == (400, "invalid_authorization_details", reason)


@pytest.mark.parametrize("member", ["action", "arguments", "idempotencyKey", "confirmation"])
def test_every_member_is_needed(member, site):
    """
    rar-unknown: a missing member is refused; what is null is there, and refused for what it is.
    """
    missing, null = granted(site, **{member: ...}), granted(site, **{member: None})

    assert missing.refusal == (400, "invalid_authorization_details", "action:members")
    assert null.error == "invalid_authorization_details"
    assert null.reason != "action:members"


@pytest.mark.parametrize("member", ["locations", "actions", "datatypes", "identifier", "selector", "actionDigest"])
def test_no_other_member_is_taken(member, site):
    """
    rar-unknown: an unknown member is refused, those of RFC 9396 section 2.2 and a ready digest too.
    """
    assert granted(site, **{member: "x"}).refusal == (400, "invalid_authorization_details", "action:members")


@pytest.mark.parametrize(
    "action", ["unknown", "", "cancel_order ", "Cancel_order", 5, None, ["cancel_order"], "write_off"]
)
def test_an_action_is_one_of_this_audience(action, site):
    """
    Unknown, of another audience, or no name at all: `invalid_authorization_details` (D21).
    """
    assert granted(site, action=action).refusal == (400, "invalid_authorization_details", "action:unknown")


def test_an_action_is_one_that_the_client_is_listed_with(build_site, site):
    """
    An action of the workspace that the client is not listed with is unknown to it.
    """
    few = replace(clients()[0], actions=frozenset({"orders.read"}))
    other = build_site(clients=lambda: (few,))

    assert granted(other).refusal == (400, "invalid_authorization_details", "action:unknown")
    assert granted(other, action="orders.read").claims["caplo"]["action"] == "orders.read"


@pytest.mark.parametrize("key", ["k" * 16, "k" * 128, "AZaz09._~-AZaz09"])
def test_a_key_within_the_syntax_is_signed(key, site):
    """
    16 to 128 of the unreserved characters (D12).
    """
    assert granted(site, idempotencyKey=key).claims["caplo"]["idempotencyKey"] == key


@pytest.mark.parametrize(
    "key", ["", "k" * 15, "k" * 129, "k" * 10_000, "k" * 15 + "\n", "k" * 15 + "+", '"kkkkkkkkkkkkkkkk"', 5]
)
def test_a_key_outside_of_the_syntax_is_refused(key, site):
    """
    Too short, too long, control or other characters, quotes: no key.
    """
    answer = granted(site, idempotencyKey=key)

    assert answer.refusal == (400, "invalid_authorization_details", "action:idempotency_key")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"n": 2**53 - 1},
        {"n": -(2**53) + 1},
        {"n": 1e21, "m": 1e-7, "z": -0.0},
        {"s": "cafe\u0301 \U0001f600"},
        {"\U0001f600": 1, "\ufb33": 2},
        {"s": "x" * 16_000},
        {"l": list(range(1998))},
    ],
)
def test_arguments_within_the_bounds_have_a_digest(arguments, site):
    """
    jcs-ijson, jcs-sort: numbers as ECMAScript writes them, text as it is, names sorted by UTF-16; the digest is the verifier's.
    """
    digest = action_digest(action="cancel_order", arguments=json.dumps(arguments), idempotency_key=KEY)

    assert granted(site, arguments=arguments, idempotencyKey=KEY).granted["actionDigest"] == digest


def nested(depth: int) -> dict:
    arguments: dict = {}
    for _ in range(depth - 1):
        arguments = {"a": arguments}
    return arguments


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        [],
        "{}",
        5,
        {"n": 2**53},
        {"n": -(2**53)},
        {"n": 2.0**53},
        {"n": 1e20},
        {"s": "x" * 17_000},
        {"l": list(range(1999))},
        nested(33),
    ],
)
def test_arguments_without_a_digest_are_refused(arguments, site):
    """
    jcs-ijson: not an object, integers beyond 2^53-1, too long, too many, too deep: a clear refusal that repeats none of it.
    """
    answer = granted(site, arguments=arguments)

    assert answer.refusal == (400, "invalid_authorization_details", "action:arguments")


def test_the_deepest_arguments_have_a_digest(site):
    """
    32 levels of arguments are within the bound, and the reader's own bound of 40 is beyond them.
    """
    assert granted(site, arguments=nested(32)).status == 200
    assert granted(site, arguments=nested(NESTED)).refusal == (400, "invalid_authorization_details", "action:json")


@pytest.mark.parametrize(
    ("action", "confirmation", "at_before_s"),
    [
        ("cancel_order", {"by": "client"}, 0),
        ("cancel_order", {"by": "client"}, 1799),
        ("cancel_order", {"by": "client"}, -5),
        ("note_order", {"by": "client"}, 20),
        ("note_order", {"by": "none"}, None),
    ],
)
def test_a_confirmation_that_is_strong_enough_is_signed(action, confirmation, at_before_s, site):
    """
    A stronger confirmation than needed is fine, up to 5 s ahead and 1800 s old; with `none` the mint itself is the instant.
    """
    sent = confirmation if at_before_s is None else confirmation | {"at": NOW - at_before_s}

    answer = granted(site, action=action, confirmation=sent)

    assert answer.claims["caplo"]["confirmation"] == confirmation | {"at": NOW - (at_before_s or 0)}


@pytest.mark.parametrize(
    ("reason", "action", "confirmation"),
    [
        ("form", "cancel_order", None),
        ("form", "cancel_order", "client"),
        ("form", "cancel_order", []),
        ("form", "cancel_order", {}),
        ("form", "cancel_order", {"by": "customers", "at": 1_796_039_980}),
        ("form", "cancel_order", {"by": ["client"], "at": 1_796_039_980}),
        ("form", "cancel_order", {"by": "client"}),
        ("form", "cancel_order", {"by": "client", "at": None}),
        ("form", "cancel_order", {"by": "client", "at": True}),
        ("form", "cancel_order", {"by": "client", "at": "1796039980"}),
        ("form", "cancel_order", {"by": "client", "at": 1_796_039_980.0}),
        ("form", "cancel_order", {"by": "client", "at": -1}),
        ("form", "cancel_order", {"by": "client", "at": 1_796_040_006}),
        ("form", "cancel_order", {"by": "client", "at": 1_796_039_980, "by_whom": "x"}),
        ("form", "note_order", {"by": "none", "at": 1_796_039_980}),
        ("customer", "cancel_order", {"by": "customer", "at": 1_796_039_980}),
        ("customer", "note_order", {"by": "customer"}),
        ("too_weak", "cancel_order", {"by": "none"}),
        ("expired", "cancel_order", {"by": "client", "at": 1_796_038_200}),
        ("expired", "cancel_order", {"by": "client", "at": 0}),
    ],
)
def test_a_confirmation_that_does_not_hold_is_refused(reason, action, confirmation, site):
    """
    Malformed, from the future, expired, weaker than the action needs, or one that this service would have to take itself.
    """
    answer = granted(site, action=action, confirmation=confirmation)

    assert answer.refusal == (400, "invalid_authorization_details", f"confirmation:{reason}")


def test_an_expired_confirmation_leaves_no_record(site):
    """
    What is over is refused before anything is remembered of it.
    """
    assert granted(site, confirmation={"by": "client", "at": NOW - 1800}).reason == "confirmation:expired"

    assert site.state.claims == []


def test_an_action_that_needs_the_customer_is_not_minted_for_less(site):
    """
    Until the service takes confirmations itself, no one can ask for an action that demands the customer's.
    """
    answer = site.ask(resource=BILLING, authorization_details=site.details(action="write_off"))

    assert answer.refusal == (400, "invalid_authorization_details", "confirmation:too_weak")


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.999])
def test_the_end_of_a_confirmation_is_exact(fraction, site):
    """
    seed-confirm-expiry: at 1800 s nothing is minted, just before it is, whatever the fraction of the second (D18).
    """
    confirmation = {"by": "client", "at": NOW}

    site.clock.at = NOW + 1799 + fraction
    alive = granted(site, confirmation=confirmation)
    site.clock.at = NOW + 1800 + fraction
    over = granted(site, confirmation=confirmation)

    assert alive.claims["exp"] == NOW + 1800
    assert over.refusal == (400, "invalid_authorization_details", "confirmation:expired")


def test_the_service_fills_the_selector_before_the_digest(site):
    """
    The argument that names the customer's resource is `namespace:sub`, stands in the digest, and is handed back to be sent.
    """
    arguments = {"street": "Main Street 1"}
    everything = {**arguments, "account": "shop-login:cus_48213"}

    answer = granted(site, action="change_address", arguments=arguments, idempotencyKey=KEY)

    digest = action_digest(action="change_address", arguments=everything, idempotency_key=KEY)
    assert answer.claims["sub"] == "cus_48213"
    assert answer.granted == {
        "type": "caplo_action",
        "action": "change_address",
        "actionDigest": digest,
        "selector": {"account": "shop-login:cus_48213"},
    }


@pytest.mark.parametrize("value", ["shop-login:cus_48213", "shop-login:cus_1", "", None, {}])
def test_a_request_that_brings_the_selector_is_refused(value, site):
    """
    Nobody else fills the selector, not even with the right value: a model that chose the arguments cannot choose the customer.
    """
    answer = granted(site, action="change_address", arguments={"account": value})

    assert (answer.error, answer.reason) == ("invalid_authorization_details", "action:selector")


def test_the_selector_of_another_customer_is_another_action(site):
    """
    The same key and the same arguments for another customer are something else, since the selector differs with the customer.
    """
    details = site.details(action="change_address", arguments={}, idempotencyKey=KEY)
    assert site.ask(authorization_details=details).status == 200

    answer = site.ask(authorization_details=details, subject_token=site.subject_token("orc_main", sub="cus_other"))

    assert answer.reason == "idempotency:conflict"


def test_a_name_inside_of_the_arguments_is_no_selector(site):
    """
    Only the property of the argument object itself is the service's; a deeper one of the same name is an argument as any other.
    """
    answer = granted(site, action="change_address", arguments={"old": {"account": "x"}})

    assert answer.status == 200
