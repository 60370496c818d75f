"""
Step-up demands are read from challenges and stated in them as RFC 9470 and the profile (D9, D10) have it.
"""

import json
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from verifier.challenge import Challenge, parse_challenges
from verifier.demand import MAX_AGE_S
from verifier.errors import CustomerContextError
from verifier.step_up import StepUp, step_up_from_challenge, step_up_required

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "challenge_vectors.json").read_text("utf-8"))
ERROR = 'error="insufficient_user_authentication"'


@pytest.mark.parametrize("vector", VECTORS, ids=[f"{index} {vector['note']}" for index, vector in enumerate(VECTORS)])
def test_challenge_vector(vector):
    """
    Each of the vectors for D9 and D10 gives the level and age it states, or no step-up.
    """
    expect = vector["expect"]
    expected = None if expect is None else StepUp(expect["level"], expect["maxAuthAgeSeconds"])

    assert step_up_from_challenge(vector["header"]) == expected


def test_every_vector_is_there():
    """
    None of the 29 vectors is missing from the copy.
    """
    assert len(VECTORS) == 29


@pytest.mark.parametrize(
    ("acr_values", "level"),
    [
        ("high standard", "high"),
        ("urn:x standard", "standard"),
        ("low standard high", "low"),
        (" standard  high ", "standard"),
        ("urn:x", None),
        ("high\tstandard", None),
        ("high\xa0standard", None),
        ("", None),
        (" ", None),
    ],
)
def test_the_first_known_level_counts(acr_values, level):
    """
    The list is in order of preference, unknown values are skipped, and only the space separates.
    """
    expected = None if level is None else StepUp(level, None)

    assert step_up_from_challenge(f'Bearer {ERROR}, acr_values="{acr_values}"') == expected


@pytest.mark.parametrize(
    ("max_age", "seconds"),
    [
        ("0", 0),
        ("000", 0),
        ("300", 300),
        ("0300", 300),
        ("86400", 86400),
        ("086400", 86400),
        ("86401", 86400),
        ("99999", 86400),
        ("100000", 86400),
        ("9" * 5000, 86400),
        ("0" * 5000 + "5", 5),
    ],
)
def test_an_age_is_read_and_clamped(max_age, seconds):
    """
    Up to one day an age is taken as it is, above it is one day, with any number of digits.
    """
    assert step_up_from_challenge(f'Bearer {ERROR}, max_age="{max_age}"') == StepUp(None, seconds)
    assert step_up_from_challenge(f"Bearer {ERROR}, max_age={max_age}") == StepUp(None, seconds)


@pytest.mark.parametrize(
    "max_age", ["-1", "+5", "1.5", "1e3", "", " 5", "5 ", "5\t", "0x5", "5s", "1_000", "\u0663", "\xb2", "5 6"]
)
def test_a_malformed_age_makes_the_challenge_unusable(max_age):
    """
    What is not a plain decimal number is not dropped while the level is kept: half of the demand would be lost.
    """
    assert step_up_from_challenge(f'Bearer {ERROR}, acr_values="high", max_age="{max_age}"') is None


def test_an_age_beside_unknown_levels_is_not_usable():
    """
    A sign-in of the demanded age could not meet the demand for a level that nobody knows.
    """
    assert step_up_from_challenge(f'Bearer {ERROR}, acr_values="urn:x", max_age="5"') is None
    assert step_up_from_challenge(f'Bearer {ERROR}, acr_values="", max_age="5"') is None


def test_a_scope_changes_nothing():
    """
    A scope may come along and changes neither level nor age.
    """
    header = f'Bearer {ERROR}, scope="orders:write", acr_values="high", max_age="300"'

    assert step_up_from_challenge(header) == StepUp("high", 300)


def test_the_first_usable_demand_counts():
    """
    Challenges are alternatives: an unusable one is passed over, and of two usable ones the first is taken, never a mixture.
    """
    unusable = f'Bearer {ERROR}, max_age="x"'
    first = f'Bearer {ERROR}, acr_values="standard"'
    second = f'Bearer {ERROR}, max_age="5"'

    assert step_up_from_challenge(f"{unusable}, {first}, {second}") == StepUp("standard", None)
    assert step_up_from_challenge([unusable, second, first]) == StepUp(None, 5)


@pytest.mark.parametrize(
    "header",
    [
        f"DPoP {ERROR}, acr_values=high",
        "Bearer error=insufficient_scope, acr_values=high",
        "Bearer error=Insufficient_User_Authentication, acr_values=high",
        'Bearer error=" insufficient_user_authentication", acr_values=high',
        "Bearer acr_values=high, max_age=5",
        "Bearer abc==",
        'Bearer error=x, error_description="insufficient_user_authentication", acr_values=high',
    ],
)
def test_other_challenges_are_no_step_up(header):
    """
    Only the Bearer scheme with exactly the one error code counts.
    """
    assert step_up_from_challenge(header) is None


def test_octets_are_read():
    """
    Header lines as octets give the same demand.
    """
    assert step_up_from_challenge([f"Bearer {ERROR}, acr_values=low".encode()]) == StepUp("low", None)


@pytest.mark.parametrize("header", [5, object(), [None], {"a": 1}])
def test_what_is_no_header_is_no_step_up(header):
    """
    Nothing that is passed instead of a header raises.
    """
    assert step_up_from_challenge(header) is None


@pytest.mark.parametrize(
    ("level", "seconds"),
    [
        (None, None),
        ("gold", None),
        ("HIGH", None),
        ("", None),
        (2, None),
        (["high"], None),
        (None, -1),
        (None, MAX_AGE_S + 1),
        (None, True),
        (None, False),
        (None, 1.5),
        (None, 300.0),
        (None, "300"),
        ("high", -1),
        ("gold", 300),
    ],
)
@pytest.mark.parametrize("build", [StepUp, step_up_required])
def test_an_impossible_demand_cannot_be_built(build, level, seconds):
    """
    An unknown level, an age out of bounds or of another type, and a demand of nothing are mistakes of the programmer.
    """
    with pytest.raises(ValueError):
        build(level, seconds)


@pytest.mark.parametrize("seconds", [0, 1, MAX_AGE_S])
def test_a_demand_within_bounds_is_built(seconds):
    """
    Both edges of the age are possible, alone and with a level.
    """
    assert step_up_required(max_auth_age_seconds=seconds) == StepUp(None, seconds)
    assert step_up_required("low", seconds) == StepUp("low", seconds)
    assert step_up_required(level="high") == StepUp("high", None)


def test_a_demand_cannot_be_changed():
    """
    A demand is a frozen value that can be a key.
    """
    step_up = StepUp("high", 300)

    with pytest.raises(FrozenInstanceError):
        step_up.level = "low"
    assert {step_up: 1}[StepUp("high", 300)] == 1


@pytest.mark.parametrize(
    ("step_up", "parameters"),
    [
        (StepUp("low", None), {"acr_values": "low standard high"}),
        (StepUp("standard", None), {"acr_values": "standard high"}),
        (StepUp("high", 0), {"acr_values": "high", "max_age": "0"}),
        (StepUp(None, 300), {"max_age": "300"}),
    ],
)
def test_a_demand_is_stated_with_every_acceptable_level(step_up, parameters):
    """
    The parameters name all levels that would do, lowest first, and the age; nothing that is not demanded.
    """
    assert step_up.parameters() == parameters


def test_a_challenge_states_the_demand():
    """
    The header has the error, a description and the demand, each parameter once, in this order.
    """
    header = StepUp("high", 300).challenge(realm="shop")

    (challenge,) = parse_challenges(header)
    assert list(challenge.params) == ["realm", "error", "error_description", "acr_values", "max_age"]
    assert challenge.params["realm"] == "shop"
    assert challenge.params["error"] == "insufficient_user_authentication"
    assert header.endswith(', acr_values="high", max_age="300"')


def test_a_challenge_needs_no_realm():
    """
    Without a realm the parameter is left out; the header is the one that the refusal itself carries.
    """
    step_up = StepUp("high", None)

    assert "realm" not in parse_challenges(step_up.challenge())[0].params
    assert step_up.challenge() == CustomerContextError("step_up", parameters=step_up.parameters()).www_authenticate


def test_a_realm_cannot_inject_a_header():
    """
    Quotes and line breaks in a realm are replaced.
    """
    header = StepUp("high", None).challenge(realm='x", acr_values="low\r\nSet-Cookie: y')

    assert parse_challenges(header) == (
        Challenge(
            "Bearer",
            {
                "realm": "x?, acr_values=?low??Set-Cookie: y",
                "error": "insufficient_user_authentication",
                "error_description": parse_challenges(header)[0].params["error_description"],
                "acr_values": "high",
            },
        ),
    )
