"""
The waiting times of design and key policy, and the bounds of what they are made of.
"""

import pytest

from keys import KeyTimes, utc
from keys.timing import MAX_INSTANT, check_instant


def test_the_default_times_give_the_documented_sums():
    """
    350 s until a standby may sign, 140 s until a retiring key is gone, 285 s of trust after a revocation at worst.
    """
    times = KeyTimes()

    assert (times.maturity_s, times.retirement_s, times.revocation_bound_s) == (350, 140, 285)


@pytest.mark.parametrize(
    ("changed", "maturity", "retirement", "bound"),
    [
        ({"max_age_s": 300}, 530, 140, 465),
        ({"max_age_s": 0}, 260, 140, 195),
        ({"stale_if_error_s": 0}, 230, 140, 165),
        ({"cooldown_s": 60}, 380, 140, 315),
        ({"skew_s": 100}, 385, 175, 285),
        ({"token_lifetime_s": 10}, 350, 90, 285),
        ({"lease_s": 0}, 335, 125, 270),
        ({"rotation_s": 86_400}, 350, 140, 285),
    ],
)
def test_each_time_counts_where_it_matters(changed, maturity, retirement, bound):
    """
    A time is part of exactly the sums it belongs to; a max-age below 30 s counts as 30, as it does for verifiers.
    """
    times = KeyTimes(**changed)

    assert (times.maturity_s, times.retirement_s, times.revocation_bound_s) == (maturity, retirement, bound)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_age_s": -1},
        {"max_age_s": 3601},
        {"stale_if_error_s": 3601},
        {"cooldown_s": 29},
        {"skew_s": 64},
        {"token_lifetime_s": 0},
        {"token_lifetime_s": 61},
        {"lease_s": -1},
        {"rotation_s": 86_399},
        {"rotation_s": 366 * 86_400},
    ],
)
def test_a_time_out_of_bounds_is_refused(wrong):
    """
    A value that would break a promise cannot be configured.
    """
    with pytest.raises(ValueError, match=next(iter(wrong))):
        KeyTimes(**wrong)


@pytest.mark.parametrize("wrong", [True, 120.0, "120", None])
def test_a_time_is_an_int(wrong):
    """
    Neither a bool nor anything that merely looks like a number is taken.
    """
    with pytest.raises(TypeError):
        KeyTimes(max_age_s=wrong)


@pytest.mark.parametrize("instant", [0, 1, MAX_INSTANT])
def test_an_instant_comes_back(instant):
    """
    Whole epoch seconds up to the year 9999 are instants.
    """
    assert check_instant(instant, "now") == instant


@pytest.mark.parametrize(
    ("wrong", "error"), [(-1, ValueError), (MAX_INSTANT + 1, ValueError), (True, TypeError), (1.5, TypeError)]
)
def test_what_is_no_instant_is_refused(wrong, error):
    """
    Negative, far or fractional values and bools are no instants.
    """
    with pytest.raises(error):
        check_instant(wrong, "now")


def test_an_instant_is_written_in_utc():
    """
    Messages carry RFC 3339 text.
    """
    assert utc(1_796_040_000) == "2026-11-30T12:00:00Z"
