"""
What was verified cannot be changed, and still is an ordinary JSON value to everybody who reads it.
"""

import copy
import json
import pickle

import pytest

from verifier.frozen import FrozenDict, freeze

VALUE = {"a": [1, {"b": None}], "c": {"d": "e"}}


@pytest.mark.parametrize(
    "change",
    [
        lambda frozen: frozen.__setitem__("a", 1),
        lambda frozen: frozen.__delitem__("a"),
        lambda frozen: frozen.__ior__({"a": 1}),
        lambda frozen: frozen.clear(),
        lambda frozen: frozen.pop("a"),
        lambda frozen: frozen.popitem(),
        lambda frozen: frozen.setdefault("z", 1),
        lambda frozen: frozen.update(a=1),
        lambda frozen: frozen["c"].update(d=1),
        lambda frozen: frozen["a"][1].pop("b"),
        lambda frozen: frozen["a"].__setitem__(0, 1),
    ],
    ids=range(11),
)
def test_every_change_is_refused(change):
    """
    No method of a dict changes a frozen one, at any depth.
    """
    frozen = freeze(VALUE)

    with pytest.raises((TypeError, AttributeError)):
        change(frozen)

    assert frozen == freeze(VALUE)


def test_no_new_attribute_sticks():
    """
    There is no place for an attribute beside the members.
    """
    with pytest.raises(AttributeError):
        freeze(VALUE).note = 1


def test_a_frozen_value_does_not_follow_its_source():
    """
    Changing what was frozen does not reach the frozen copy.
    """
    source = copy.deepcopy(VALUE)
    frozen = freeze(source)

    source["a"][1]["b"] = "changed"
    source["c"].clear()

    assert json.loads(json.dumps(frozen)) == VALUE


def test_a_frozen_object_reads_like_a_dict():
    """
    It compares, unpacks, prints and is written as JSON like the dict it was made from, and a copy of it can be changed.
    """
    frozen = freeze({"a": 1})

    assert isinstance(frozen, dict)
    assert frozen == {"a": 1}
    assert {**frozen} == dict(frozen) == {"a": 1}
    assert json.dumps(frozen) == '{"a": 1}'
    assert type(dict(frozen)) is dict


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_are_frozen_too(duplicate):
    """
    Copying and pickling keep the value and its kind.
    """
    twin = duplicate(freeze(VALUE))

    assert twin == freeze(VALUE)
    assert type(twin) is type(twin["c"]) is type(twin["a"][1]) is FrozenDict


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "text"])
def test_plain_values_stay_what_they_are(value):
    """
    A value without members is its own frozen form.
    """
    assert freeze(value) is value
