"""
Case group D: challenges from public bug reports, each row at the level of raw parameters and at the level of the profile.

The rows speak of raw `acr_values` and `max_age`, of any value. D9 and D10 say what a step-up is made of them: known levels only,
an age of at most a day, at least one of the two. Both are asserted for every row.
"""

import json
from pathlib import Path

import pytest

from verifier.challenge import Challenge, parse_challenges
from verifier.levels import satisfies
from verifier.step_up import StepUp, step_up_from_challenge

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text("utf-8"))
    if case["group"] == "D"
}
ROWS = {f"{name}-{index}": row for name, case in CASES.items() for index, row in enumerate(case["input"]["rows"])}

HIGH = StepUp("high", None)
STEP_UPS = {
    "D01": [None, StepUp(None, 5), StepUp("high", 300), None, None, None],
    "D02": [HIGH, StepUp(None, 0), HIGH, None],
    "D03": [HIGH, HIGH, None, None],
    "D04": [HIGH, HIGH],
    "D05": [HIGH, HIGH, None],
    "D07": [HIGH, StepUp(None, 9), None],
    "D08": [HIGH, None, StepUp(None, 1), HIGH],
    "D10": [StepUp("high", 7), None, None],
    "D11": [None, HIGH, None, None],  # the only value of the first row, "2", is no known level
    "D13": [None, None, None],
    "D15": [HIGH, HIGH, None, None, None, None, None],
    "D17": [
        StepUp(None, 0),
        StepUp(None, 300),
        StepUp(None, 300),
        *[None] * 7,
        StepUp(None, 86400),
        StepUp(None, 86400),
        None,
    ],
    "D19": [HIGH, HIGH, None, HIGH, None, None, None, None],
}
"""What D9 and D10 make of each row."""


def demanding(headers: list[str]) -> Challenge | None:
    """
    Find the first Bearer challenge with the step-up error.
    """
    found = (
        challenge
        for challenge in parse_challenges(headers)
        if challenge.scheme.lower() == "bearer" and challenge.params.get("error") == "insufficient_user_authentication"
    )
    return next(found, None)


def raw_acr_values(challenge: Challenge) -> list[str]:
    """
    Split `acr_values` at spaces, each value once, in order.
    """
    return list(dict.fromkeys(filter(None, challenge.params.get("acr_values", "").split(" "))))


def raw_max_age(challenge: Challenge) -> int | str | None:
    """
    Read `max_age` as a decimal number without a bound.
    """
    text = challenge.params.get("max_age")
    if text is None:
        return None
    return int(text) if text.isascii() and text.isdigit() else "refused"


def test_every_row_has_an_expectation():
    """
    No row of the group is left out at the level of the profile.
    """
    assert {name: len(case["input"]["rows"]) for name, case in CASES.items()} == {
        name: len(rows) for name, rows in STEP_UPS.items()
    }


@pytest.mark.parametrize("row", [name for name, row in ROWS.items() if "headers" in row])
def test_row_as_a_step_up(row):
    """
    Each row gives the step-up of D9 and D10, as lines of text, as octets, and as one value where it has one line.
    """
    case, index = row.split("-")
    headers = ROWS[row]["headers"]
    expected = STEP_UPS[case][int(index)]

    assert step_up_from_challenge(headers) == expected
    assert step_up_from_challenge([line.encode() for line in headers]) == expected
    if len(headers) == 1:
        assert step_up_from_challenge(headers[0]) == expected


@pytest.mark.parametrize("row", [name for name, row in ROWS.items() if isinstance(row.get("result"), dict)])
def test_row_as_raw_parameters(row):
    """
    Each row with a stated result gives it from the parsed challenge: whether there is one, its values, age and realm.
    """
    result = ROWS[row]["result"]

    challenge = demanding(ROWS[row]["headers"])

    assert (challenge is not None) == result["step_up"]
    if challenge is not None:
        assert challenge.is_of_scheme(result["scheme"])
        assert raw_acr_values(challenge) == result.get("acr_values", [])
        assert raw_max_age(challenge) == result.get("max_age")
        assert challenge.params.get("realm") == result.get("realm", challenge.params.get("realm"))


@pytest.mark.parametrize("row", [name for name, row in ROWS.items() if "max_age" in row])
def test_row_as_a_raw_age(row):
    """
    Each row of D17 gives its age unchanged below the profile, and a refused one is no number.
    """
    expected = ROWS[row]["max_age"]

    challenge = demanding(ROWS[row]["headers"])

    choices = {"300 or refused": 300, "refused or clamped": 99999999999999999999}
    assert raw_max_age(challenge) == choices.get(expected, expected)


@pytest.mark.parametrize("row", [name for name, row in ROWS.items() if "acr_values" in row or "choose" in row])
def test_row_as_raw_acr_values(row):
    """
    Each row of D19 keeps the order of preference, and an issuer with other levels can choose from it.
    """
    values = raw_acr_values(demanding(ROWS[row]["headers"]))

    # A tab does not separate: "refused or not split" is met by not splitting.
    expected = ROWS[row].get("acr_values", values)
    assert values == (["high\tphr"] if isinstance(expected, str) else expected)
    supported = [value for value in values if value in ROWS[row].get("issuer_supports", [])]
    assert ROWS[row].get("choose", "none").startswith(supported[0] if supported else "none")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("D03-2", (Challenge("Bearer", {"error": "insufficient_user_authentication"}),)),
        ("D11-2", ()),
        ("D11-3", ()),
        (
            "D13-2",
            (
                Challenge("Bearer", {"error": "insufficient_user_authentication", "acr_values": "'high"}),
                Challenge("phr'"),
            ),
        ),
        ("D15-2", ()),
        ("D15-3", (Challenge("Bearer", {"error": "insufficient_user_authentication"}),)),
    ],
)
def test_row_that_leaves_a_choice(row, expected):
    """
    Rows that allow more than one answer have one here: no line continues another, malformed challenges are dropped.
    """
    assert isinstance(ROWS[row]["result"], str)

    assert parse_challenges(ROWS[row]["headers"]) == expected


def test_row_d19_7():
    """
    A token with acr low after asking for high does not meet the demand.
    """
    assert ROWS["D19-7"]["verify"] == "minted token has acr=low after asking for high"

    assert not satisfies("low", "high")


def test_every_row_is_asserted():
    """
    Each row is driven by one of the tests above below the profile too.
    """
    choices = {"D03-2", "D11-2", "D11-3", "D13-2", "D15-2", "D15-3", "D19-7"}
    asserted = {
        name
        for name, row in ROWS.items()
        if isinstance(row.get("result"), dict) or row.keys() & {"max_age", "acr_values", "choose"}
    }

    assert asserted | choices == ROWS.keys()
