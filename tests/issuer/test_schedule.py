"""
The timer of rotations: one rotation however many instances look, none by a clock that jumped, and no failure that stays unseen.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from issuer.schedule import CLOCK_AHEAD, RotationSchedule, steady_clock
from keys import (
    ALARM_S,
    ActiveKeyMismatch,
    KeyRing,
    KeyTimes,
    RevisionConflict,
    StoreUnreachable,
    create_ring,
    revoke,
    rotate,
)

pytestmark = pytest.mark.anyio

NOW = 1_796_040_000
TIMES = KeyTimes()
DUE = NOW + 30 * 86_400
SKEW = TIMES.skew_s


@dataclass
class Store:
    """
    What the instances share: a ring with compare-and-set, and a clock.
    """

    ring: KeyRing = field(default_factory=lambda: create_ring("acme", now=NOW, times=TIMES))
    at: float = NOW
    asked: int = 0
    rotations: list[str] = field(default_factory=list)
    failure: Exception | None = None

    async def now(self):
        self.asked += 1
        if isinstance(self.failure, StoreUnreachable):
            raise self.failure
        return self.at

    async def rotate(self, workspace, expected_active):
        seen = self.ring
        # Others run here, as they do while a store answers.
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        done = rotate(seen, now=int(self.at), times=TIMES, expected_active=expected_active)
        if self.ring is not seen:
            raise RevisionConflict(where="there", expected=1, found=2)
        self.ring = done.ring
        self.rotations.append(f"{workspace} {expected_active}")


class Live:
    """
    One instance's view of the ring, as old as its last look.
    """

    workspace = "acme"

    def __init__(self, store):
        self.store = store
        self.ring = store.ring

    async def poll(self):
        self.ring = self.store.ring


class Instance:
    """
    An instance with its own clock and everything that it reported.
    """

    def __init__(self, store, at=NOW):
        self.at = at
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.told: asyncio.Queue[str] = asyncio.Queue()
        self.live = Live(store)
        self.schedule = RotationSchedule(
            self.live, rotate=store.rotate, now=lambda: self.at, store_now=store.now, report=self.report
        )

    def report(self, event, **facts):
        self.events.append((event, facts))
        self.told.put_nowait(event)

    async def look(self, at):
        self.at = at
        await self.schedule.look()


async def test_a_rotation_happens_when_it_is_due():
    """
    Not a second before; the next one a month later.
    """
    store = Store()
    instance = Instance(store)
    first = store.ring.active.kid

    for at in (NOW, DUE - 1, DUE, DUE + 1, DUE + 86_400):
        store.at = at
        await instance.look(at)

    assert store.rotations == [f"acme {first}"]
    assert store.ring.active.activated_at == DUE
    assert instance.events == []
    assert instance.schedule.problem is None


async def test_the_store_is_asked_only_when_something_may_be_due():
    """
    For a month nothing is.
    """
    store = Store()

    await Instance(store).look(DUE - 1)

    assert store.asked == 0


async def test_a_service_that_was_down_rotates_when_it_returns():
    """
    However long ago the rotation was due.
    """
    store = Store(at=DUE + 20 * 86_400)

    await Instance(store).look(store.at)

    assert len(store.rotations) == 1


async def test_a_clock_that_jumped_ahead_rotates_nothing():
    """
    It is reported once, shows while it lasts, and is over when the clock is right or the store's agrees.
    """
    store = Store()
    instance = Instance(store)

    for _ in range(3):
        await instance.look(DUE + 86_400)
    shown = instance.schedule.problem
    await instance.look(NOW)

    assert store.rotations == []
    assert shown == CLOCK_AHEAD
    assert instance.schedule.problem is None
    assert instance.events == [
        ("rotation_failed", {"workspace": "acme", "problem": CLOCK_AHEAD}),
        ("rotation_recovered", {"workspace": "acme", "problem": None}),
    ]
    store.at = DUE
    await instance.look(DUE + 86_400)
    assert len(store.rotations) == 1


@pytest.mark.parametrize(("ahead", "problem"), [(1, None), (SKEW, None), (SKEW + 1, CLOCK_AHEAD)])
async def test_a_clock_that_is_a_little_ahead_waits(ahead, problem):
    """
    As much as clocks may differ is no problem.
    """
    store = Store(at=DUE - 1)
    instance = Instance(store)

    await instance.look(store.at + ahead)

    assert store.rotations == []
    assert instance.schedule.problem == problem


async def test_a_clock_that_is_behind_waits():
    """
    Another instance, or this one later, rotates.
    """
    store = Store(at=DUE + 86_400)
    instance = Instance(store)

    await instance.look(DUE - 1)

    assert (store.rotations, instance.schedule.problem) == ([], None)


@pytest.mark.parametrize("instances", [2, 25])
async def test_one_of_many_instances_rotates(instances):
    """
    All look at the same moment, again and again; who is second takes that for no failure.
    """
    store = Store(at=DUE)
    all_of_them = [Instance(store) for _ in range(instances)]

    for _ in range(3):
        await asyncio.gather(*(instance.look(DUE) for instance in all_of_them))

    assert len(store.rotations) == 1
    assert all(instance.events == [] for instance in all_of_them)


async def test_an_instance_that_has_not_seen_the_rotation_looks_before_it_rotates():
    """
    Its view may be half a second old.
    """
    store = Store(at=DUE)
    early, late = Instance(store), Instance(store)
    await early.look(DUE)

    await late.look(DUE)

    assert len(store.rotations) == 1
    assert late.live.ring is store.ring


async def test_a_rotation_by_hand_in_between_is_no_failure():
    """
    The key that was to be replaced is not active any more.
    """
    store = Store(at=DUE, failure=ActiveKeyMismatch(active="other"))
    instance = Instance(store)

    await instance.look(DUE)

    assert instance.schedule.problem is None


@pytest.mark.parametrize(
    ("failure", "problem"),
    [
        (StoreUnreachable(where="there", problem="no answer in time", outcome="unknown"), "store_unreachable"),
        (RuntimeError("secret"), "RuntimeError"),
    ],
)
async def test_a_rotation_that_cannot_happen_shows(failure, problem):
    """
    By its code alone, reported once, until it happens.
    """
    store = Store(at=DUE, failure=failure)
    instance = Instance(store)

    for _ in range(3):
        await instance.look(DUE)
    shown = instance.schedule.problem
    store.failure = None
    await instance.look(DUE)

    assert shown == problem
    assert instance.events == [
        ("rotation_failed", {"workspace": "acme", "problem": problem}),
        ("rotation_recovered", {"workspace": "acme", "problem": None}),
    ]
    assert len(store.rotations) == 1


async def test_a_rotation_waits_for_a_mature_standby():
    """
    Standbys that were replaced shortly before are not forced.
    """
    store = Store(at=DUE)
    for standby in store.ring.standbys:
        store.ring = revoke(store.ring, standby.kid, now=DUE - 10, times=TIMES, reason="drill").ring
    instance = Instance(store)

    await instance.look(DUE)
    assert (store.rotations, instance.schedule.problem) == ([], None)
    store.at = DUE - 10 + TIMES.maturity_s
    await instance.look(store.at)

    assert len(store.rotations) == 1


async def test_a_key_that_signs_for_ninety_days_raises_the_alarm():
    """
    Once for each such key, whatever keeps rotations from happening.
    """
    store = Store(at=NOW)
    instance = Instance(store)
    kid = store.ring.active.kid

    for at in (NOW + ALARM_S - 1, NOW + ALARM_S, NOW + ALARM_S + 86_400):
        await instance.look(at)

    alarms = [facts for event, facts in instance.events if event == "key_age_alarm"]
    assert alarms == [{"workspace": "acme", "kid": kid, "since": NOW}]


async def test_the_timer_looks_until_it_is_cancelled():
    """
    A failure does not end it.
    """
    store = Store(at=DUE, failure=RuntimeError("secret"))
    instance = Instance(store, at=DUE)
    watching = asyncio.create_task(instance.schedule.watch(0))

    first = await instance.told.get()
    store.failure = None
    second = await instance.told.get()
    watching.cancel()

    with pytest.raises(asyncio.CancelledError):
        await watching
    assert (first, second) == ("rotation_failed", "rotation_recovered")
    assert len(store.rotations) == 1


async def test_a_steady_clock_does_not_follow_a_wall_clock_that_jumps():
    """
    It goes on from what the wall clock said at first.
    """
    wall, monotonic = [1000.0], [5.0]
    steady = steady_clock(lambda: wall[0], lambda: monotonic[0])

    assert await steady() == 1000
    wall[0], monotonic[0] = 9_999_999.0, 15.0
    assert await steady() == 1010
    wall[0] = 0.0
    assert await steady() == 1010
