"""
What the sealed ring says about its trail.
"""

from dataclasses import replace

import pytest

from issuer.audit import COMPANION_ROOM, TrailDamaged, head_of
from issuer.audit.canonical import canonical
from issuer.audit.chain import genesis
from issuer.audit.sealed_state import (
    MAX_SPILLED,
    SpilledChange,
    TrailState,
    read_state,
    ring_with_state,
    state_or_start,
)
from keys import MAX_COMPANION_OCTETS, create_ring, open_ring, seal_ring

from .stage import NOW, SEALING, TIMES, Chain

START = TrailState(tip=genesis("acme"))


@pytest.fixture(scope="module")
def ring():
    return create_ring("acme", now=NOW, times=TIMES)


def test_a_ring_that_says_nothing_has_no_trail_yet(ring):
    """
    As every ring from before there were trails.
    """
    assert read_state(ring) == START
    assert head_of(ring) == genesis("acme").head


def test_what_a_ring_says_comes_back_from_the_sealed_blob(ring):
    """
    With the rest of the companion as it was.
    """
    chain = Chain(3)
    state = TrailState(tip=chain.tips[3], unlisted=2).with_spilled(SpilledChange(7, "A" * 43))
    other = replace(ring, companion={"suspensions": [{"kind": "client"}]})

    blob = seal_ring(ring_with_state(other, state), revision=9, keys=SEALING)
    opened, _ = open_ring(blob, workspace="acme", keys=SEALING, where="blob")

    assert read_state(opened) == state
    assert head_of(opened) == chain.head
    assert opened.companion["suspensions"] == ({"kind": "client"},)


def test_many_changes_without_a_record_are_counted(ring):
    """
    The list is bounded.
    """
    state = START
    for revision in range(1, MAX_SPILLED + 4):
        state = state.with_spilled(SpilledChange(revision, "A" * 43))

    assert (len(state.spilled), state.unlisted) == (MAX_SPILLED, 3)


def test_there_is_always_room_for_it(ring):
    """
    When the rest of the companion stays within its own bound.
    """
    longest = replace(
        Chain(1).tips[1], sealing_key="k" * 64, epoch=2**53 - 1, head=replace(Chain(1).head, seq=2**53 - 1)
    )
    state = TrailState(tip=longest, spilled=(SpilledChange(2**53 - 1, "A" * 43),) * MAX_SPILLED, unlisted=2**53 - 1)
    rest = {"suspensions": "x" * (COMPANION_ROOM - len(canonical({"suspensions": ""})))}

    full = ring_with_state(replace(ring, companion=rest), state)

    assert read_state(full) == state
    assert len(canonical(full.companion)) <= MAX_COMPANION_OCTETS


@pytest.mark.parametrize(
    "change",
    [
        {"seq": -1},
        {"seq": "1"},
        {"seq": True},
        {"head": "short"},
        {"head": None},
        {"key": "xy"},
        {"key": None},
        {"epoch": None},
        {"unlisted": -1},
        {"spilled": [[1]]},
        {"spilled": None},
        {"more": 1},
    ],
    ids=str,
)
def test_what_cannot_be_read_is_a_damage(ring, change):
    """
    It was sealed by another version or by a mistake; nothing is guessed.
    """
    members = ring_with_state(ring, TrailState(tip=Chain(1).tips[1])).companion["trail"]
    broken = replace(ring, companion={"trail": {**members, **change}})

    with pytest.raises(TrailDamaged) as refusal:
        read_state(broken)

    assert refusal.value.problem == "state"
    assert state_or_start(broken) == START


@pytest.mark.parametrize("trail", ["text", [], 1, {}], ids=str)
def test_what_is_no_state_at_all_is_a_damage(ring, trail):
    """
    Also when it is no object.
    """
    with pytest.raises(TrailDamaged):
        head_of(replace(ring, companion={"trail": trail}))
