"""
The one spelling that hashes and MACs are made of, held against an implementation of RFC 8785.
"""

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from issuer.audit.canonical import MAX_NUMBER, canonical, frozen_object

NAMES = st.text(st.characters(max_codepoint=127))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_NUMBER, MAX_NUMBER) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_the_spelling_is_that_of_rfc_8785(members):
    """
    For every value that has a place in a record.
    """
    assert canonical(members) == rfc8785.dumps(members)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_freezing_changes_no_value(members):
    """
    A frozen object is written like the one it was made of.
    """
    assert canonical(frozen_object(members)) == canonical(members)


def test_what_was_frozen_cannot_be_changed():
    """
    At no depth, and not through what it was made of.
    """
    inner = {"a": [1]}

    frozen = frozen_object({"b": inner})
    inner["a"].append(2)

    assert frozen == {"b": {"a": (1,)}}
    with pytest.raises(TypeError):
        frozen["b"]["a"] = ()


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "value",
    [
        [],
        None,
        {"a": 1.5},
        {"a": 2**53},
        {"a": [-(2**53)]},
        {"a": b"octets"},
        {"a": "\ud800"},
        {"ä": 1},
        {1: 1},
        nested(8),
    ],
    ids=["list", "none", "float", "large", "small", "octets", "surrogate", "name", "number", "deep"],
)
def test_what_has_no_canonical_form_here_is_refused(value):
    """
    Values that readers could read differently, and anything but an object.
    """
    with pytest.raises(ValueError):
        frozen_object(value)


def test_eight_levels_and_a_line_break_are_fine():
    """
    The bounds themselves are inside.
    """
    value = {**nested(7), "b": "two\nlines", "c": MAX_NUMBER}

    assert frozen_object(value) == value
