"""
What a call demands of scope, level and age of the sign-in is met or asked for (steps 12 and 14 of D20, D9).
"""

import pytest

from verifier import parse_challenges


@pytest.mark.parametrize(
    ("required", "demanded", "granted"),
    [
        (None, None, ...),
        (None, "a", "a"),
        (None, "a b", "b c a"),
        ("a", "b", "a b"),
        ("a", "a", "a"),
    ],
)
def test_every_demanded_word_is_granted(api, mint, required, demanded, granted):
    """
    The verifier's words and the call's words all stand in the scope, in any order.
    """
    assert api(required_scope=required).verify(mint.signed(scope=granted), scope=demanded)


@pytest.mark.parametrize(
    ("required", "demanded", "granted"),
    [
        (None, "a", ...),
        *((None, "a", granted) for granted in ("", "A", "ab", "a\tb", "a,b", "\u00e4")),
        (None, "a b", "a"),
        ("a", None, "b"),
        ("a", "b", "b"),
        ("a b", None, "a"),
    ],
)
def test_a_demanded_word_is_not_granted(api, mint, required, demanded, granted):
    """
    A word that is missing, or only part of another, is asked for by the challenge with all that are needed.
    """
    error = api(required_scope=required).refusal(mint.signed(scope=granted), scope=demanded)

    needed = sorted({*(required or "").split(), *(demanded or "").split()})
    assert error.reason == "scope"
    assert parse_challenges(error.www_authenticate)[0].params["scope"] == " ".join(needed)


@pytest.mark.parametrize("tolerance", [0, 5])
@pytest.mark.parametrize(
    ("limit", "age"), [(300, 299), (300, 300), (300, -4), (1, 1), (0, 0), (0, 60), (86_400, 0), (86_400, 86_400)]
)
def test_a_sign_in_that_is_recent_enough(api, mint, limit, age, tolerance):
    """
    An age up to the limit and the tolerance is met; 0 is met by a sign-in of the last minute (D9).
    """
    token = mint.signed(iat=mint.now, auth_time=mint.now - age - (tolerance if age > 0 else 0))

    assert api(clock_tolerance_seconds=tolerance).verify(token, max_auth_age_seconds=limit)


@pytest.mark.parametrize("tolerance", [0, 5])
@pytest.mark.parametrize(
    ("limit", "age"), [(300, 301), (300, 300.5), (300, None), (1, 2), (0, 61), (0, None), (86_400, 86_401)]
)
def test_a_sign_in_that_is_too_old(api, mint, limit, age, tolerance):
    """
    An older sign-in, and one whose age is not told, is asked to be renewed, and the token is not used up by that.
    """
    built = api(clock_tolerance_seconds=tolerance)
    token = mint.signed(auth_time=... if age is None else mint.now - age - tolerance)

    error = built.refusal(token, max_auth_age_seconds=limit)

    assert error.reason == "step_up"
    assert parse_challenges(error.www_authenticate)[0].params["max_age"] == str(limit)
    assert built.verify(token)


@pytest.mark.parametrize("demanded", ["low", "standard", "high"])
@pytest.mark.parametrize("acr", ["low", "standard", "high", "HIGH", "phr"])
def test_the_level_of_the_sign_in(api, mint, acr, demanded):
    """
    A higher level meets a lower demand, an unknown one meets none, and the challenge lists what would (D9).
    """
    order = ["low", "standard", "high"]
    built, token = api(), mint.signed(acr=acr)

    if acr in order[order.index(demanded) :]:
        assert built.verify(token, level=demanded).level == acr
    else:
        error = built.refusal(token, level=demanded)
        assert error.reason == "step_up"
        assert parse_challenges(error.www_authenticate)[0].params["acr_values"] == " ".join(
            order[order.index(demanded) :]
        )


def test_level_and_age_are_both_demanded(api, mint):
    """
    A sign-in has to meet the level and the age, and the challenge states both.
    """
    strong, recent = mint.signed(acr="high", auth_time=mint.now - 301), mint.signed(acr="low", auth_time=mint.now)

    for token in (strong, recent):
        error = api().refusal(token, level="high", max_auth_age_seconds=300)
        assert error.reason == "step_up"
        params = parse_challenges(error.www_authenticate)[0].params
        assert (params["acr_values"], params["max_age"]) == ("high", "300")
