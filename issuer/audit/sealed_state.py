"""
What the sealed key ring knows about its audit trail: the member `trail` of the companion that `keys` stores and never reads.

Ring and head are saved in one step, so the trail cannot be cut, rewritten or swapped without the ring noticing. Changes that
had to be made without a record are listed here too, by the hash of the line that was spilled, until the trail has them on
record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from keys import KeyRing

from .chain import Head, Tip, genesis
from .errors import TrailDamaged

__all__ = [
    "COMPANION_ROOM",
    "MAX_SPILLED",
    "SpilledChange",
    "TrailState",
    "head_of",
    "read_state",
    "ring_with_state",
    "state_or_start",
]

COMPANION_ROOM: Final = 18 * 1024
"""Octets of JSON that the rest of the companion may take, so that a revocation always finds room for what is said here."""

MAX_SPILLED: Final = 16
"""Changes without a record that are listed one by one; those beyond are counted."""

_MEMBERS: Final = {"seq", "head", "key", "epoch", "sealing_key", "spilled", "unlisted"}


@dataclass(frozen=True, slots=True)
class SpilledChange:
    """
    A change without a record: the revision it made, and the hash of the line that was spilled for it.
    """

    revision: int
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailState:
    """
    Where the trail stood when the ring was saved, and what it still has to be told.
    """

    tip: Tip
    spilled: tuple[SpilledChange, ...] = ()
    unlisted: int = 0

    def with_spilled(self, change: SpilledChange) -> Self:
        """
        Return the state after one more change without a record.
        """
        if len(self.spilled) == MAX_SPILLED:
            return replace(self, unlisted=self.unlisted + 1)
        return replace(self, spilled=(*self.spilled, change))


def head_of(ring: KeyRing) -> Head:
    """
    Return the head of the audit trail as the ring has it, for `Audit-Head`.

    Raises:
        TrailDamaged: when the ring says nothing about its trail that can be read.
    """
    return read_state(ring).tip.head


def read_state(ring: KeyRing) -> TrailState:
    """
    Read what the ring says about its trail; a ring that says nothing has none yet.

    Raises:
        TrailDamaged: when it cannot be read.
    """
    members = ring.companion.get("trail")
    if members is None:
        return TrailState(tip=genesis(ring.workspace))
    try:
        return _state(members)
    except (TypeError, ValueError, AttributeError):
        raise TrailDamaged(workspace=ring.workspace, seq=0, problem="state") from None


def state_or_start(ring: KeyRing) -> TrailState:
    """
    Read what the ring says about its trail, or return that there is none when it cannot be read.
    """
    try:
        return read_state(ring)
    except TrailDamaged:
        return TrailState(tip=genesis(ring.workspace))


def ring_with_state(ring: KeyRing, state: TrailState) -> KeyRing:
    """
    Return *ring* saying *state* about its trail, whatever it said before.
    """
    tip = state.tip
    members = {
        "seq": tip.head.seq,
        "head": tip.head.link,
        "key": tip.key.hex(),
        "epoch": tip.epoch,
        "sealing_key": tip.sealing_key,
        "spilled": [[change.revision, change.link] for change in state.spilled],
        "unlisted": state.unlisted,
    }
    return replace(ring, companion={**ring.companion, "trail": members})


def _state(members: Mapping[str, Any]) -> TrailState:
    if members.keys() != _MEMBERS:
        raise ValueError("other members")
    numbers = [members["seq"], members["epoch"], members["unlisted"]]
    if any(type(number) is not int or number < 0 for number in numbers):
        raise ValueError("a number is none")
    tip = Tip(
        head=Head.parse(f"{members['seq']}.{members['head']}"),
        epoch=members["epoch"],
        sealing_key=members["sealing_key"],
        key=bytes.fromhex(members["key"]),
    )
    spilled = tuple(SpilledChange(revision, link) for revision, link in members["spilled"])
    return TrailState(tip=tip, spilled=spilled, unlisted=members["unlisted"])
