"""
What is sealed beside the keys: a JSON object that comes back as it was, is kept by every step, and cannot be changed in place.
"""

import copy
import json
import pickle
from dataclasses import replace

import pytest

from keys import MAX_COMPANION_OCTETS, KeyRing, RingCorrupt, open_ring, revoke, rotate, seal_ring, settle
from keys.companion import freeze_companion
from keys.ring_json import dump_ring, parse_ring

COMPANION = {"trail": {"seq": 7, "head": "é", "spilled": [[3, "x"], []]}, "suspensions": [], "none": None, "yes": True}


@pytest.fixture
def accompanied(ring):
    return replace(ring, companion=COMPANION)


def nested(depth):
    value = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def test_a_ring_has_an_empty_companion_unless_it_is_given_one(ring):
    """
    Nobody has to know of it.
    """
    assert ring.companion == {}


def test_a_companion_comes_back_from_the_sealed_ring(accompanied, sealing):
    """
    Objects, arrays, strings, integers, booleans and null, in the order they were written.
    """
    blob = seal_ring(accompanied, revision=1, keys=sealing)

    ring, _ = open_ring(blob, workspace="acme", keys=sealing, where="ring.jwe")

    assert ring == accompanied
    assert json.loads(json.dumps(ring.companion)) == COMPANION
    assert list(ring.companion) == list(COMPANION)


def test_rings_with_other_companions_are_other_rings(accompanied, ring):
    """
    Whoever compares rings notices a change of the companion alone.
    """
    assert accompanied != ring
    assert accompanied == replace(ring, companion={**COMPANION})


def test_every_step_keeps_the_companion(accompanied, now, times):
    """
    Rotation, revocation and settling change keys alone.
    """
    rotated = rotate(accompanied, now=now + 350, times=times, expected_active=None).ring
    revoked = revoke(rotated, rotated.active.kid, now=now + 360, times=times, reason="leaked").ring
    settled = settle(revoked, now + 9_000)

    assert [each.companion for each in (rotated, revoked, settled)] == [accompanied.companion] * 3
    assert settled is not revoked


def test_a_companion_is_not_shown(accompanied):
    """
    It may hold keys of its own, so it stands in no repr.
    """
    assert "trail" not in repr(accompanied)


CHANGES = {
    "update": lambda companion: companion.update(a=1),
    "clear": lambda companion: companion.clear(),
    "pop": lambda companion: companion.pop("trail"),
    "popitem": lambda companion: companion.popitem(),
    "setdefault": lambda companion: companion.setdefault("a", 1),
    "set": lambda companion: companion.__setitem__("a", 1),
    "delete": lambda companion: companion.__delitem__("trail"),
    "merge": lambda companion: companion.__ior__({"a": 1}),
    "inner object": lambda companion: companion["trail"].update(seq=8),
    "inner array": lambda companion: companion["trail"]["spilled"][0].__setitem__(0, 4),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_companion_cannot_be_changed_in_place(change, accompanied):
    """
    At any depth; arrays are tuples.
    """
    with pytest.raises((TypeError, AttributeError)):
        CHANGES[change](accompanied.companion)

    assert accompanied.companion == freeze_companion(COMPANION)


def test_a_companion_does_not_follow_what_it_was_made_of(ring):
    """
    It is a copy.
    """
    mutable = {"list": [1]}
    accompanied = replace(ring, companion=mutable)

    mutable["list"].append(2)

    assert accompanied.companion == {"list": (1,)}


def test_a_companion_can_be_copied_and_pickled(accompanied):
    """
    Unlike a private key.
    """
    companion = accompanied.companion

    assert copy.deepcopy(companion) == pickle.loads(pickle.dumps(companion)) == companion


class _Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (None, TypeError),
        ([], TypeError),
        ({1: 2}, TypeError),
        ({"a": {_Text("b"): 1}}, TypeError),
        ({"a": 1.0}, TypeError),
        ({"a": b"octets"}, TypeError),
        ({"a": {1, 2}}, TypeError),
        ({"a": _Text("b")}, TypeError),
        ({"a": 2**53}, ValueError),
        ({"a": [-(2**53)]}, ValueError),
        ({"a": "\ud800"}, ValueError),
        ({"\ud800": 1}, ValueError),
        (nested(17), ValueError),
        ({"a": "b" * MAX_COMPANION_OCTETS}, ValueError),
    ],
)
def test_what_is_no_companion_makes_no_ring(wrong, error, ring):
    """
    Only JSON that every reader understands alike, within bounds.
    """
    with pytest.raises(error):
        KeyRing("acme", ring.records, wrong)


def test_the_largest_companion_is_sealed(ring, sealing):
    """
    Sixteen levels and 20 KiB, counted in octets.
    """
    room = MAX_COMPANION_OCTETS - len(json.dumps({"a": "", "b": nested(15)}, separators=(",", ":")))
    largest = replace(ring, companion={"a": "é" * (room // 2) + "x" * (room % 2), "b": nested(15)})

    blob = seal_ring(largest, revision=1, keys=sealing)

    assert open_ring(blob, workspace="acme", keys=sealing, where="ring.jwe") == (largest, 1)
    with pytest.raises(ValueError, match="octets"):
        replace(ring, companion={**largest.companion, "c": 0})


@pytest.mark.parametrize("wrong", [None, [], "text", 1, {"a": 2**53}, {"a": "b" * MAX_COMPANION_OCTETS}, nested(17)])
def test_a_stored_companion_is_read_strictly(wrong, ring):
    """
    What could not have been written is refused, and the message does not repeat it.
    """
    document = {**json.loads(dump_ring(ring)), "companion": wrong}

    with pytest.raises(RingCorrupt) as refusal:
        parse_ring(json.dumps(document).encode(), where="ring.jwe")

    assert refusal.value.problem == "content"
    assert "bbb" not in str(refusal.value)


def test_a_ring_of_version_1_opens_with_an_empty_companion(ring):
    """
    It is what was written before there were companions.
    """
    document = json.loads(dump_ring(replace(ring, companion={"a": 1})))
    del document["companion"], document["cache_times"]

    opened = parse_ring(json.dumps({**document, "version": 1}).encode(), where="ring.jwe")

    assert (opened.records, opened.companion) == (ring.records, {})
