"""
When a planned rotation is due, what the coming ones look like, and when a key has signed for too long; pure.
"""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Literal

from .errors import TooManyRetiring
from .key import generate_key
from .lifecycle import Generate, rotate
from .outcome import Rotation
from .ring import KeyRing
from .timing import KeyTimes

__all__ = ["ALARM_S", "Due", "Planned", "PlannedStep", "alarm", "due", "plan"]

ALARM_S: Final = 90 * 86_400
"""Seconds for which a key may sign before somebody has to look into it: rotations have not happened for far too long."""

_ROTATIONS: Final = 2

PlannedStep = Literal["may_activate", "activate", "retire", "publish", "unpublish", "alarm"]
"""What happens to a key: it may begin to sign, does, signs last, enters or leaves the key set, has signed for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """
    A planned rotation that is due and possible: the key that is to be replaced, and since when (epoch seconds).
    """

    kid: str
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """
    One line of a plan: at which instant (epoch seconds) what happens to which key; None stands for one that is not made yet.
    """

    at: int
    what: PlannedStep
    kid: str | None


def due(ring: KeyRing, now: float, store_now: float) -> Due | None:
    """
    Return the rotation that is due at *now*, the local clock, and at *store_now*, that of the store; None when there is none.

    The instant stands on the active key since its activation. It counts when both clocks are past it, so a clock that jumped
    ahead rotates nothing, and when a standby is mature; a service that was down past it finds it due when it returns.
    """
    since = max(_due_at(ring), ring.next_rotation_at)
    return Due(kid=ring.active.kid, since=since) if min(now, store_now) >= since else None


def alarm(ring: KeyRing, now: float) -> bool:
    """
    Tell whether the active key has signed for so long that somebody has to look into it.
    """
    return now >= _active_since(ring) + ALARM_S


def plan(ring: KeyRing, now: int, times: KeyTimes, *, generate: Generate = generate_key) -> tuple[Planned, ...]:
    """
    Return what is going to happen from *now* on until two more rotations are done, if nobody does anything, in order.

    The rotations are carried out on copies of the ring, so the plan is what the rules say. `alarm` stands where the present key
    would have signed for too long if they did not happen.
    """
    known = {record.kid for record in ring.records}
    steps = [Planned(at=_active_since(ring) + ALARM_S, what="alarm", kid=ring.active.kid), *_waiting(ring)]
    for _ in range(_ROTATIONS):
        rotation = _next_rotation(ring, now, times, generate)
        steps += _steps(rotation)
        ring = rotation.ring
    named = (step if step.kid in known else replace(step, kid=None) for step in steps)
    return tuple(sorted((step for step in named if step.at >= now), key=lambda step: step.at))


def _next_rotation(ring: KeyRing, now: int, times: KeyTimes, generate: Generate) -> Rotation:
    at = max(now, ring.latest_instant, _due_at(ring), ring.next_rotation_at)
    try:
        return rotate(ring, now=at, times=times, expected_active=None, generate=generate)
    except TooManyRetiring as full:
        return rotate(ring, now=full.earliest, times=times, expected_active=None, generate=generate)


def _waiting(ring: KeyRing) -> list[Planned]:
    maturing = (Planned(at=record.mature_at, what="may_activate", kid=record.kid) for record in ring.standbys)
    leaving = (Planned(at=record.gone_at, what="unpublish", kid=record.kid) for record in ring.retiring)
    return list(chain(maturing, leaving))


def _steps(rotation: Rotation) -> list[Planned]:
    at, standby = rotation.at, rotation.standby_kid
    return [
        Planned(at=at, what="activate", kid=rotation.new_kid),
        Planned(at=at, what="retire", kid=rotation.old_kid),
        Planned(at=at, what="publish", kid=standby),
        Planned(at=rotation.unpublish_at, what="unpublish", kid=rotation.old_kid),
        Planned(at=rotation.ring.record(standby).mature_at, what="may_activate", kid=standby),
    ]


def _due_at(ring: KeyRing) -> int:
    # An active key always has both instants; the types say so of no record in general.
    return ring.active.rotation_due_at or 0


def _active_since(ring: KeyRing) -> int:
    return ring.active.activated_at or 0
