"""
Cache-Control, Age and Date of a JWKS answer (B14; conformance rows cache-max-age, cache-no-store, cache-parse, cache-stale).
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.cache_control import CachePolicy, parse_cache_control, response_age

CASES = json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text())
B14 = next(case["input"] for case in CASES if case["id"] == "B14")
NAMED = {"floor": 30, "ceiling": 3600, "default": 120}
DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
AT_DATE = 1767225600


@pytest.mark.parametrize("row", B14["rows"], ids=lambda row: repr(row["cache_control"]))
def test_b14_freshness(row: dict[str, object]):
    """
    B14: every value of the table gives the freshness the table names.
    """
    lines = [] if row["cache_control"] is None else [row["cache_control"]]

    policy = parse_cache_control(lines)

    assert policy.fresh_for_s(0) == NAMED.get(row["ttl"], row["ttl"])


def test_b14_header_lines_combine():
    """
    B14: several header lines are one list.
    """
    two = B14["two_header_lines"]

    assert parse_cache_control(two["Cache-Control"]).fresh_for_s(0) == two["ttl"]


@pytest.mark.parametrize(
    ("line", "lifetime_s", "stale_if_error_s"),
    [
        ("max-age=120, stale-if-error=120", 120, 120),
        ("max-age=120", 120, 0),
        ("stale-if-error=60", 120, 60),
        ("max-age=abc, stale-if-error=60", 0, 60),
        ("max-age=120, stale-if-error=86400", 120, 3600),
        ("max-age=120, stale-if-error=99999999999999999999", 120, 3600),
        ("max-age=120, stale-if-error=-1", 120, 0),
        ("max-age=120, stale-if-error", 120, 0),
        ("max-age=120, stale-if-error=60, stale-if-error=90", 120, 0),
        ("max-age=120, stale-if-error=60, STALE-IF-ERROR=60", 120, 60),
        ('max-age=120, stale-if-error="60"', 120, 60),
        ("max-age=120, stale-if-error=60, must-revalidate", 120, 0),
        ("max-age=120, stale-if-error=60, proxy-revalidate", 120, 60),
        ("max-age=120, stale-if-error=60, no-cache", 0, 0),
        ("max-age=120, stale-if-error=60, NO-STORE", 0, 0),
        ('max-age=120, stale-if-error=60, no-cache="set-cookie"', 0, 0),
        ("max-age=120, max-age=120", 120, 0),
        ("max-age=120; stale-if-error=60", 0, 0),
        ('max-age="1\\20"', 120, 0),
        ('max-age="120', 0, 0),
        ('ext="a, max-age=9', 0, 0),
        ('ext="\\", max-age=9", max-age=60', 60, 0),
        ('ext="\\\\", max-age=60', 60, 0),
        ("max-age =120", 120, 0),
        ("max-age=\u0661\u0662\u0660", 0, 0),
        ("max-age=120," + " " * 5000, 0, 0),
        (",,, ,", 120, 0),
    ],
)
def test_directives(line: str, lifetime_s: int, stale_if_error_s: int):
    """
    What is bounded, quoted, repeated, contradicting, forbidden or unreadable comes out as D19 has it.
    """
    policy = parse_cache_control([line])

    assert policy == CachePolicy(lifetime_s=lifetime_s, stale_if_error_s=stale_if_error_s)


@pytest.mark.parametrize(
    ("age_s", "fresh_for_s", "usable_for_s"),
    [(0, 120, 180), (60, 60, 120), (100, 30, 80), (1000, 30, -820)],
)
def test_age_shortens_both_times(age_s: int, fresh_for_s: int, usable_for_s: int):
    """
    Age is taken off the lifetime; the 30 seconds are a floor of freshness only, and stale-if-error does not count from them.
    """
    policy = CachePolicy(lifetime_s=120, stale_if_error_s=60)

    assert policy.fresh_for_s(age_s) == fresh_for_s
    assert policy.usable_for_s(age_s) == usable_for_s


@pytest.mark.parametrize(
    ("headers", "age_s"),
    [
        ({}, 0),
        ({"age": "60"}, 60),
        ({"age": " 60 "}, 60),
        ({"age": "-60"}, 0),
        ({"age": "1.5"}, 0),
        ({"age": "9" * 5000}, 10**10),
        ({"date": DATE}, 90),
        ({"date": DATE, "age": "60"}, 90),
        ({"date": DATE, "age": "100"}, 100),
        ({"date": "Thu, 01 Jan 2026 00:00:00"}, 90),
        ({"date": "Thu, 01 Jan 2026 01:00:00 +0100"}, 90),
        ({"date": "Thu, 01 Jan 2027 00:00:00 GMT"}, 0),
        ({"date": "Thu, 32 Jan 2026 00:00:00 GMT"}, 0),
        ({"date": "Thu, 01 Jan 99999999 00:00:00 GMT"}, 0),
        ({"date": "Thu, 01 Jan 2026 00:00:00 +99999999"}, 0),
        ({"date": "yesterday"}, 0),
        ({"date": ", , ,"}, 0),
        ({"date": DATE + " " * 100}, 0),
        ({"date": ""}, 0),
    ],
)
def test_age(headers: dict[str, str], age_s: float):
    """
    Age is max(Age, now - Date), at least 0, and a header that cannot be read counts as absent.
    """
    assert response_age(headers, AT_DATE + 90) == age_s


@given(st.lists(st.text(alphabet=st.sampled_from('max-ge=0123456789",\\ \tno-store;é')) | st.text(), max_size=3))
def test_no_header_raises_or_exceeds_the_bounds(lines: list[str]):
    """
    Whatever stands in the headers, the times stay within their bounds.
    """
    policy = parse_cache_control(lines)

    assert 30 <= policy.fresh_for_s(0) <= 3600
    assert 0 <= policy.stale_if_error_s <= 3600


@given(st.text(), st.text())
def test_no_age_is_negative(age: str, date: str):
    """
    Whatever stands in Age and Date, an age comes out, and it is not negative.
    """
    assert response_age({"age": age, "date": date}, AT_DATE) >= 0


def test_a_hostile_header_is_read_in_linear_time():
    """
    The longest value that is looked at takes no longer than its length explains.
    """
    assert parse_cache_control(['"\\' * 2047]) == CachePolicy(lifetime_s=0, stale_if_error_s=0)
