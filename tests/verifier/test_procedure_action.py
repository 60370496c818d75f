"""
A write is done only as it was confirmed: this action, these arguments, this key, by whom and when (step 13 of D20, D2, D18).
"""

import json
from hashlib import sha256

import pytest
import rfc8785

from verifier.compact import b64url_encode

OTHER_KEY = "idk_other_other_other"


def test_a_confirmed_action_is_accepted(api, mint):
    """
    The action with its arguments, and the signed key where the call has one, open the call, in either spelling of the claim.
    """
    dotted = {f"caplo.{name}": value for name, value in mint.caplo().items()}

    assert api().verify(mint.write(), **mint.call).action == mint.action
    assert api().verify(mint.write(), **mint.call, idempotency_key=mint.key).idempotency_key == mint.key
    assert api().verify(mint.write(), **mint.call, idempotency_key=f'"{mint.key}"').idempotency_key == mint.key
    assert api().verify(mint.signed(**dotted), **mint.call).arguments["orderId"] == "A-1001"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"orderId": "A-1002"},
        "",
        b"{}",
        b'{"orderId":"A-1001"}',
        b'{"orderId":"A-1001","orderId":"A-1001"}',
        b"not json",
        "[]",
        [],
        "null",
        None,
        5,
        True,
        float("nan"),
        {"x": float("nan")},
        {"x": 10**400},
        {"x": "\ud800"},
        {1: 2},
        {"x": object()},
        "[" * 100_000,
        '{"x":' * 50_000,
        "\ud800",
        b"\xff",
        bytearray(b"{}"),
    ],
    ids=range(24),
)
def test_other_arguments_are_refused(api, mint, arguments):
    """
    Whatever arguments a request brings, other ones than the confirmed ones are `action`; nothing else is raised.
    """
    assert api().refused(mint.write(), action=mint.action, arguments=arguments) == "action"


@pytest.mark.parametrize(
    "change",
    [
        {"orderId": "A-1001 "},
        {"orderId": "a-1001"},
        {"tags": ["a"]},
        {"tags": ["a", ""]},
        {"tags": [None, "a"]},
        {"refund": {"amount": "12.5", "currency": "EUR"}},
        {"refund": {"amount": 12.5}},
        {"note": None},
    ],
    ids=str,
)
def test_every_argument_counts(api, mint, change):
    """
    A value, an order of an array, a type or an absent member that differs is another action.
    """
    assert api().refused(mint.write(), action=mint.action, arguments=mint.arguments | change) == "action"


@pytest.mark.parametrize(
    "key", ["", "short", OTHER_KEY, '"', " ", "k" * 200, "\ud800" * 20, 5, b"idk_5pQ0m3m1Yt7uVxk2Rr9aBw", ["x"], True]
)
def test_another_key_is_refused(api, mint, key):
    """
    A key that a request brings has to be the signed one, whatever its form.
    """
    assert api().refused(mint.write(), **mint.call, idempotency_key=key) == "action"


def test_an_unsigned_key_is_taken_from_the_call(api, mint):
    """
    Where the token carries no key, the call's one is digested; without either there is nothing to compare with.
    """
    token = mint.signed(caplo=mint.caplo(idempotencyKey=...))

    assert api().verify(token, **mint.call, idempotency_key=mint.key).idempotency_key == mint.key
    assert api().refused(token, **mint.call, idempotency_key=OTHER_KEY) == "action"
    assert api().refused(token, **mint.call) == "action"


def test_another_action_is_refused(api, mint):
    """
    A token for one action opens no other, none that differs in case, and none by its arguments alone.
    """
    for action in ("refund_order", "Cancel_order", "cancel_orders"):
        assert api().refused(mint.write(), action=action, arguments=mint.arguments) == "action"


def test_a_read_token_is_no_write_token(api, mint):
    """
    A call that names an action refuses a token without one.
    """
    assert api().refused(mint.signed(), **mint.call) == "action"


def test_a_bound_token_is_no_general_token(api, mint):
    """
    A call that names no action refuses a token bound to one, unless it says that it ignores that (D1).
    """
    assert api().refused(mint.write()) == "action"
    assert api().verify(mint.write(), ignore_action=True)
    assert api().verify(mint.signed(), ignore_action=True)


def digests(mint):
    """
    Return digests that are not the one that is defined.
    """
    bare = rfc8785.dumps({"action": mint.action, "arguments": mint.arguments, "idempotencyKey": mint.key})
    good = sha256(b"caplo-action-digest:v1\0" + bare)
    return {
        "hex": good.hexdigest(),
        "padded": b64url_encode(good.digest()) + "=",
        "truncated": b64url_encode(good.digest())[:-1],
        "prefix": b64url_encode(good.digest())[:22],
        "no_tag": b64url_encode(sha256(bare).digest()),
        "no_zero": b64url_encode(sha256(b"caplo-action-digest:v1" + bare).digest()),
        "other_tag": b64url_encode(sha256(b"caplo-action-digest:v2\0" + bare).digest()),
        "arguments_only": b64url_encode(sha256(rfc8785.dumps(mint.arguments)).digest()),
        "not_canonical": b64url_encode(
            sha256(b"caplo-action-digest:v1\0" + json.dumps(mint.arguments).encode()).digest()
        ),
        "not_ascii": "é" * 43,
        "long": "A" * 3000,
    }


@pytest.mark.parametrize(
    "name",
    [
        *("hex", "padded", "truncated", "prefix", "no_tag", "no_zero", "other_tag"),
        *("arguments_only", "not_canonical", "not_ascii", "long"),
    ],
)
def test_another_digest_is_refused(api, mint, name):
    """
    Other encodings, other tags and other preimages of the same arguments are refused.
    """
    token = mint.signed(caplo=mint.caplo(actionDigest=digests(mint)[name]))

    assert api().refused(token, **mint.call) == "action"


@pytest.mark.parametrize("demanded", ["none", "client", "customer"])
@pytest.mark.parametrize("by", ["none", "client", "customer", None])
def test_the_confirmation_is_at_least_the_demanded(api, mint, by, demanded):
    """
    They are ordered none < client < customer, and a token without a confirmation meets no demand for one (D18).
    """
    order = ["none", "client", "customer"]
    token = mint.signed(caplo=mint.caplo(confirmation=... if by is None else {"by": by, "at": mint.now - 20}))

    if by in order[order.index(demanded) :]:
        assert api().verify(token, **mint.call, confirmation=demanded).confirmation.by == by
    else:
        assert api().refused(token, **mint.call, confirmation=demanded) == "confirmation"
    assert api().verify(token, **mint.call)


@pytest.mark.parametrize("tolerance", [0, 60])
@pytest.mark.parametrize(("limit", "age"), [(600, 600), (600, -1), (0, 0)])
def test_a_confirmation_that_is_recent_enough(api, mint, tolerance, limit, age):
    """
    A demanded age is counted from `at`, with the tolerance, whoever confirmed.
    """
    token = mint.signed(caplo=mint.caplo(confirmation={"by": "none", "at": mint.now - age - tolerance}))

    context = api(clock_tolerance_seconds=tolerance).verify(token, **mint.call, max_confirmation_age_seconds=limit)

    assert context.confirmation.at == mint.now - age - tolerance


@pytest.mark.parametrize("tolerance", [0, 60])
@pytest.mark.parametrize(("limit", "age"), [(600, 600.5), (600, 10**6), (0, 1)])
def test_a_confirmation_that_is_too_old(api, mint, tolerance, limit, age):
    """
    An older confirmation is refused; 0 is taken literally.
    """
    token = mint.signed(caplo=mint.caplo(confirmation={"by": "customer", "at": mint.now - age - tolerance}))
    built = api(clock_tolerance_seconds=tolerance)

    assert built.refused(token, **mint.call, max_confirmation_age_seconds=limit) == "confirmation"


@pytest.mark.parametrize(
    ("tolerance", "ahead", "accepted"),
    [(0, 5, True), (0, 6, False), (5, 10, True), (5, 11, False), (60, 65, True), (60, 66, False)],
)
def test_a_confirmation_of_the_future_is_none(api, mint, tolerance, ahead, accepted):
    """
    The issuer takes 5 seconds ahead of its clock, which may be ahead by the tolerance; later than both is no instant.
    """
    token = mint.signed(caplo=mint.caplo(confirmation={"by": "customer", "at": mint.now + ahead}))
    built = api(clock_tolerance_seconds=tolerance)

    for demand in ({"confirmation": "client"}, {"max_confirmation_age_seconds": 600}):
        if accepted:
            assert api(clock_tolerance_seconds=tolerance).verify(token, **mint.call, **demand)
        else:
            assert built.refused(token, **mint.call, **demand) == "confirmation"


def test_by_and_age_are_both_demanded(api, mint):
    """
    A confirmation has to be strong enough and recent enough.
    """
    demands = {"confirmation": "client", "max_confirmation_age_seconds": 60}
    weak = mint.caplo(confirmation={"by": "none", "at": mint.now})
    old = mint.caplo(confirmation={"by": "customer", "at": mint.now - 61})

    for caplo in (weak, old):
        assert api().refused(mint.signed(caplo=caplo), **mint.call, **demands) == "confirmation"
    assert api().verify(mint.write(), **mint.call, **demands)
