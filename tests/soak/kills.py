"""
Rotate and revoke killed at every step, on files and on a Redis: whatever is left is whole, and work goes on from it.

A step is a system call that leaves something behind, killed before, behind and in the middle of it, or a message to or from the
Redis, killed before and behind it. Each kill is a process of its own that is ended by SIGKILL.
"""

import os
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kill_places import NOW, KillPlace, OnFiles, OnRedis, Opened, working
from report import Report

from issuer.audit import Actor
from issuer.settings import Settings
from keys import KeyRing

__all__ = ["kills"]

ACTOR = Actor("cli", "soak")


@dataclass
class Found:
    """
    What all kills have left.
    """

    points: int = 0
    states: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Kind:
    """
    What is killed; without a trail, a revocation leaves its record in a local file.
    """

    name: str
    action: Callable[[Opened], Awaitable[Any]]
    has_trail: bool = True


def kills(report: Report, folder: Path, redis: Any, *, each: int = 1) -> None:
    """
    Kill at each *each*-th step of every action in both places, and tell.
    """
    report.section("kills", "Rotate and revoke killed at every step" if each == 1 else "Rotate and revoke killed")
    kinds = (
        Kind("rotate", _rotate),
        Kind("revoke", _revoke),
        Kind("revoke without the trail", _revoke, has_trail=False),
    )
    for place in (OnFiles(folder / "files"), OnRedis(folder / "redis-site", redis)):
        # With a change behind them, ring and trail have something to lose.
        working(place.settings, lambda opened: opened.administration.rotate(ACTOR, expected_active=None), NOW + 350)
        place.remember()
        for kind in kinds:
            found = Found()
            for point in _points(place, kind, found, each):
                _look(place, found, f"{kind.name} killed at {point}")
            _tell(report, f"{kind.name} on {place.name}", found, each)


def _tell(report: Report, name: str, found: Found, each: int) -> None:
    report.promise(f"{name}: kill points", found.points, kept=found.points > 10 // each)
    report.promise(f"{name}: states left", dict(found.states), kept=len(found.states) == 2 or each > 1)
    broken = "not whole, not one key active, no next rotation, or a trail that lies"
    report.promise(f"{name}: {broken}", len(found.wrong), kept=not found.wrong)
    for wrong in found.wrong[:3]:
        report.fact("  for example", wrong)


async def _rotate(opened: Opened) -> Any:
    return await opened.administration.rotate(ACTOR, expected_active=None)


async def _revoke(opened: Opened) -> Any:
    ring, _ = await opened.ring.load()
    return await opened.administration.revoke(ACTOR, ring.active.kid, reason="soak")


def _points(place: KillPlace, kind: Kind, found: Found, each: int) -> Iterator[str]:
    """
    Kill at one point after the other, and give each while what is left can be looked at.
    """
    number, name = 1, None
    while True:
        for when in ("before", "during", "after"):
            # In the middle of anything but a write is before it; behind a call that fails is no place.
            if when == "during" and name != "write":
                continue
            place.prepare()
            if not kind.has_trail:
                place.spoil_trail()
            name = place.kill(partial(_alone, place.settings, kind), number, when)
            if not kind.has_trail:
                place.mend_trail()
            if name is not None:
                found.points += 1
                yield f"{name} {number}, {when}"
            elif when == "before":
                return
        number += each


def _alone(settings: Settings, kind: Kind) -> None:
    """
    Take the action in the child of a fork, which must not come back from it into what its parent does.
    """
    try:
        working(settings, kind.action, NOW + 700)
    except BaseException:  # noqa: BLE001 - it is shown, and the child ends here
        traceback.print_exc()
        os._exit(1)


def _look(place: KillPlace, found: Found, what: str) -> None:
    """
    Look at what a kill left as a service does that starts, rotate once more, and hold the trail against what happened.
    """

    async def left(opened: Opened) -> KeyRing:
        ring, _ = await opened.ring.load()
        await opened.ledger.check()
        return ring

    async def next_rotation(opened: Opened) -> tuple[KeyRing, bool, list[str]]:
        await opened.administration.rotate(ACTOR, expected_active=None)
        ring, _ = await opened.ring.load()
        findings = await opened.ledger.verify()
        records = (await opened.administration.audit(limit=200)).members["records"]
        told = [
            each["after"]["active"] for each in reversed(records) if each["carried_out"] and "active" in each["after"]
        ]
        return ring, findings.is_sound, told

    try:
        ring = working(place.settings, left, NOW + 700)
        states = Counter(record.state for record in ring.records)
        after, is_sound, told = working(place.settings, next_rotation, max(NOW + 700, ring.next_rotation_at))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the soak looks for
        found.wrong.append(f"{what}: {type(error).__name__}: {error}")
        return
    is_new = states["retiring"] + states["revoked"] + states["retired"] == 2
    found.states["new" if is_new else "old"] += 1
    # One rotation came before, the action may have been carried out, and one came behind.
    is_right = states["active"] == 1 and states["standby"] == 2 and len(told) == 2 + is_new
    if not (is_right and is_sound and told[-1] == after.active.kid and ring.active.kid == told[-2]):
        found.wrong.append(f"{what}: {dict(states)}, sound {is_sound}, {len(told)} changes told")
