"""
Levels have one order and one spelling; an unknown one meets no demand (D9).
"""

import pytest

from verifier.levels import LEVELS, acceptable_levels, is_level, satisfies

ODD = ["", "Low", "HIGH", "high ", " high", "phr", "0", "\u0455tandard"]


@pytest.mark.parametrize("demanded", LEVELS)
@pytest.mark.parametrize("acr", [*LEVELS, *ODD])
def test_a_higher_level_meets_a_lower_demand(acr, demanded):
    """
    A known level meets what lies at or below it, and another spelling meets nothing.
    """
    expected = acr in LEVELS and LEVELS.index(acr) >= LEVELS.index(demanded)

    assert satisfies(acr, demanded) is expected
    assert (acr in acceptable_levels(demanded)) is expected


@pytest.mark.parametrize("value", [*ODD, None, 1, ["high"], b"high"])
def test_only_exact_levels_are_levels(value):
    """
    Another spelling, and what is not text, is no level; nothing raises.
    """
    assert not is_level(value)


def test_acceptable_levels_come_lowest_first():
    """
    The list is in the order of `acr_values`, least effort first.
    """
    assert [acceptable_levels(level) for level in LEVELS] == [
        ("low", "standard", "high"),
        ("standard", "high"),
        ("high",),
    ]
    assert all(map(is_level, LEVELS))
