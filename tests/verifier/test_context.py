"""
What a verified context tells, and what it keeps to itself: the token is not in it, and nobody can change it.
"""

import copy
import dataclasses
import json
import logging
import pickle

import pytest

from verifier.frozen import FrozenDict


@pytest.fixture
def token(mint):
    return mint.write(
        act={
            "sub": "agt_orders",
            "iss": "https://agents.test",
            "act": {"sub": "agt_support", "act": {"sub": "agt_first"}},
        },
        acr="high",
        scope="orders:write orders:read",
        extra={"deep": [{"x": 1}]},
    )


@pytest.fixture
def context(api, mint, token):
    return api().verify(token, **mint.call)


def test_a_context_tells_who_asked_for_what(context, mint):
    """
    Every attribute is the claim it stands for, and the action is the one that was checked.
    """
    assert (context.iss, context.sub, context.client_id) == (mint.issuer, "user-1", "agent-1")
    assert (context.actor, context.actor_issuer) == ("agt_orders", "https://agents.test")
    assert context.actor_history == ("agt_support", "agt_first")
    assert (context.acr, context.level) == ("high", "high")
    assert (context.auth_time, context.issued_at, context.expires_at) == (mint.now - 600, mint.now - 5, mint.now + 50)
    assert context.jti == context.claims["jti"]
    assert context.scopes == {"orders:write", "orders:read"}
    assert (context.action, context.idempotency_key) == (mint.action, mint.key)
    assert (context.confirmation.by, context.confirmation.at) == ("client", mint.now - 20)


def test_a_read_has_no_action(api, mint):
    """
    A token for a read tells no action, and what it does not carry is None or empty.
    """
    context = api().verify(mint.signed(scope=..., auth_time=..., acr="phr"))

    assert (context.action, context.arguments, context.idempotency_key, context.confirmation) == (None,) * 4
    assert (context.auth_time, context.level, context.acr) == (None, None, "phr")
    assert (context.actor_issuer, context.actor_history, context.scopes) == (None, (), frozenset())


def test_an_ignored_action_is_not_told(api, mint):
    """
    A call that ignores the action of a bound token gets none to execute from; the claims still show it.
    """
    context = api().verify(mint.write(), ignore_action=True)

    assert (context.action, context.arguments, context.idempotency_key, context.confirmation) == (None,) * 4
    assert context.claims["caplo"]["action"] == mint.action


def test_arguments_are_those_that_were_digested(api, mint):
    """
    Raw JSON comes out as the frozen arguments whose digest is signed, whatever their spelling was.
    """
    raw = json.dumps(dict(reversed(mint.arguments.items())), indent=1).encode()

    context = api().verify(mint.write(), action=mint.action, arguments=raw)

    assert context.arguments == {
        "orderId": "A-1001",
        "refund": {"amount": 12.5, "currency": "EUR"},
        "tags": ("a", None),
    }
    assert type(context.arguments) is type(context.arguments["refund"]) is FrozenDict


def test_a_customer_who_is_named_in_the_arguments_is_not_the_customer(api, mint):
    """
    Who a call is for stands in the token; whatever a request says about customers is an argument like any other.
    """
    arguments = {"sub": "user-2", "customerId": "user-2", "iss": "https://other.test"}
    token = mint.signed(caplo=mint.caplo(arguments=arguments))

    context = api().verify(token, action=mint.action, arguments=json.dumps(arguments))

    assert (context.iss, context.sub) == (mint.issuer, "user-1")
    assert context.arguments == arguments


def test_arguments_do_not_follow_their_source(api, mint):
    """
    A mapping that is changed after the check does not change what is executed.
    """
    arguments = copy.deepcopy(mint.arguments)

    context = api().verify(mint.write(), action=mint.action, arguments=arguments)
    arguments["refund"]["amount"] = 10**6
    arguments["tags"].append("b")

    assert json.loads(json.dumps(context.arguments)) == mint.arguments


@pytest.mark.parametrize(
    "name",
    ["sub", "level", "actor", "action", "arguments", "idempotency_key", "confirmation", "claims", "_payload", "new"],
)
def test_no_attribute_can_be_set(context, name):
    """
    Neither an attribute nor a new one can be set or removed.
    """
    with pytest.raises((AttributeError, TypeError)):
        setattr(context, name, "other")
    with pytest.raises((AttributeError, TypeError)):
        delattr(context, name)


@pytest.mark.parametrize(
    "change",
    [
        lambda context: context.claims.update(sub="other"),
        lambda context: context.claims["act"].update(sub="other"),
        lambda context: context.claims["extra"]["deep"][0].update(x=2),
        lambda context: context.claims["extra"]["deep"].append(2),
        lambda context: context.arguments.clear(),
        lambda context: context.arguments["refund"].update(amount=1),
        lambda context: setattr(context.confirmation, "by", "customer"),
    ],
    ids=range(7),
)
def test_what_it_tells_is_frozen_to_the_bottom(context, mint, change):
    """
    Claims, arguments and confirmation refuse every change at any depth.
    """
    with pytest.raises((AttributeError, TypeError)):
        change(context)

    assert (context.sub, context.claims["sub"], context.claims["act"]["sub"]) == ("user-1", "user-1", "agt_orders")
    assert context.claims["extra"] == {"deep": ({"x": 1},)}
    assert json.loads(json.dumps(context.arguments)) == mint.arguments


def test_the_representation_names_no_customer(context):
    """
    What is printed is enough to find the call in a log, and does not say who the customer is or what was asked for.
    """
    expected = f"CustomerContext(level='high', actor='agt_orders', action='cancel_order', jti={context.jti!r})"

    assert repr(context) == str(context) == f"{context}" == expected


def test_no_part_of_the_token_is_in_it(context, mint, token, caplog):
    """
    Print, JSON, pickle and log hold neither the segments of the token nor the octets of its signature.
    """
    header, payload, signature = token.split(".")
    octets = mint.signature(f"{header}.{payload}".encode())
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("partner").debug("%s %r %s", context, context, dict(context.claims))

    shown = [
        *(repr(context), str(context), caplog.text, json.dumps(context.claims), json.dumps(context.arguments)),
        *(repr(dataclasses.asdict(context)), repr(context.claims)),
    ]
    stored = pickle.dumps(context) + pickle.dumps(context.claims)

    for part in (header, payload, signature):
        assert not [text for text in shown if part in text]
        assert part.encode() not in stored
    assert octets not in stored


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_tells_the_same(context, duplicate):
    """
    A context survives copying and the way to another process, as frozen as before.
    """
    twin = duplicate(context)

    names = [name for name in dir(context) if not name.startswith("_") and name != "require"]
    assert {name: getattr(twin, name) for name in names} == {name: getattr(context, name) for name in names}
    with pytest.raises(dataclasses.FrozenInstanceError):
        twin.action = "other"


def test_two_contexts_are_never_equal(context):
    """
    Contexts compare by identity, so that none stands for another.
    """
    assert context == context  # noqa: PLR0124 -- that is what is asserted
    assert context != copy.copy(context)
    assert len({context, copy.copy(context)}) == 2
