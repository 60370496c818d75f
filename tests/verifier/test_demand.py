"""
A demand that makes no sense is the programmer's mistake, found before there is a token (ValueError or TypeError).
"""

import pytest

from verifier.demand import NO_DEMAND, Demand, check_seconds, scope_words

WRITE = {"action": "cancel_order", "arguments": {}}


@pytest.mark.parametrize(
    "demand",
    [
        {},
        {"scope": "orders:read"},
        {"scope": "a b c"},
        *({"level": level} for level in ("low", "standard", "high")),
        *({"max_auth_age_seconds": age} for age in (0, 1, 86_400)),
        WRITE,
        WRITE | {"arguments": b""},
        WRITE | {"arguments": "[]"},
        WRITE | {"arguments": 5, "idempotency_key": 7},
        *(WRITE | {"confirmation": by} for by in ("none", "client", "customer")),
        *(WRITE | {"max_confirmation_age_seconds": age} for age in (0, 86_400)),
        {"ignore_action": True},
    ],
    ids=str,
)
def test_a_demand_that_makes_sense(demand):
    """
    Demands within their bounds are built; arguments and keys of any kind are left to the procedure.
    """
    built = Demand(**demand)

    assert {name: getattr(built, name) for name in demand} == demand


MISTAKES = [
    *(({"level": level}, ValueError) for level in ("gold", "High", "", 1, ["high"])),
    *(
        ({name: age, **extra}, error)
        for name, extra in (("max_auth_age_seconds", {}), ("max_confirmation_age_seconds", WRITE))
        for age, error in (
            *((86_401, ValueError), (-1, ValueError), (10**30, ValueError)),
            *((True, TypeError), (1.5, TypeError), ("300", TypeError), (float("nan"), TypeError)),
        )
    ),
    *(({"scope": scope}, ValueError) for scope in ("", " ", "a  b", " a", "a ", "a\tb", 'a"', "a\\", "é", ["a"], 1)),
    ({"action": "cancel_order"}, ValueError),
    *((WRITE | {"action": action}, ValueError) for action in ("", "a b", "a" * 129, 1, b"a")),
    ({"arguments": {}}, ValueError),
    ({"idempotency_key": "k" * 16}, ValueError),
    ({"confirmation": "client"}, ValueError),
    ({"max_confirmation_age_seconds": 5}, ValueError),
    *((WRITE | {"confirmation": by}, ValueError) for by in ("agent", "Client", "", 1, ["client"])),
    (WRITE | {"ignore_action": True}, ValueError),
    *(({"ignore_action": value}, TypeError) for value in (None, 1, "yes")),
]


@pytest.mark.parametrize(("demand", "error"), MISTAKES, ids=[str(demand) for demand, _ in MISTAKES])
def test_a_mistake_is_told_to_the_programmer(demand, error):
    """
    Unknown levels, ages out of range, scopes that are none and members that do not go together are refused by type.
    """
    with pytest.raises(error):
        Demand(**demand)


def test_no_demand_demands_nothing():
    """
    The empty demand is the one that `Demand()` builds.
    """
    assert Demand() == NO_DEMAND


def test_scope_words_are_a_set():
    """
    Order and repetition do not matter; every printable ASCII character but quote, backslash and space may stand in a word.
    """
    assert scope_words("b a b") == {"a", "b"}
    assert scope_words("!#[]~:/") == {"!#[]~:/"}


def test_seconds_may_be_none():
    """
    None is no number of seconds and no mistake; another largest one may be given.
    """
    check_seconds("x", None)
    check_seconds("x", 60, 60)
    with pytest.raises(ValueError):
        check_seconds("x", 61, 60)


def test_null_from_a_request_is_no_mistake_of_the_programmer():
    """
    A framework hands a body of `null` over as None; the demand stands, and the token is refused for it later.
    """
    assert Demand(action="cancel_order", arguments=None).arguments is None
    assert Demand(arguments=None) == Demand(arguments=None)


def test_an_action_without_arguments_is_a_mistake_of_the_programmer():
    """
    Leaving the arguments out is found before any token is looked at.
    """
    with pytest.raises(ValueError, match="needs the arguments"):
        Demand(action="cancel_order")
