"""
Several instances, each with a configuration of its own, and verifiers that keep what they fetched there as long as they may.

Rings, leases, administration, trail and headers are those of the service; how long a verifier uses an answer, it says itself.
"""

import asyncio
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from issuer.administration import Administration
from issuer.audit import Actor
from issuer.http.jwks import cache_control
from issuer.rings import LiveRing, RingUnavailable
from keys import KeyTimes, TransitionRefused, create_ring
from verifier.fetch import FetchResponse
from verifier.jwk import parse_key_set
from verifier.jwks_cache import read_answer

from .estate import MemoryTrail, RingStore, ledger_of
from .site import Clock
from .world import NOW, registry

SOMEBODY = Actor("cli", "root")
INSTANCES = 3

cache_time = st.sampled_from([0, 30, 120, 600, 3600])
configured = st.builds(KeyTimes, max_age_s=st.sampled_from([30, 60, 120, 3600]), stale_if_error_s=cache_time)
instance = st.integers(0, INSTANCES - 1)
step = st.tuples(
    st.sampled_from(["start", "start", "rotate", "revoke", "revoke all"]),
    instance,
    configured,
    st.one_of(st.integers(0, 15), st.integers(0, 8000)),
    st.sets(instance),
)


class World:
    """
    Instances on one store, which verifiers ask before and after each step, and everything that these were told.
    """

    def __init__(self, times):
        self.clock, self.trail = Clock(NOW), MemoryTrail()
        self.store = RingStore(create_ring("root", now=NOW, times=times))
        self.times, self.rings = [times] * INSTANCES, {}
        self.fetched = []

    async def start(self, number, times):
        """
        Start an instance as a service does.
        """
        self.times[number] = times
        ring = self.rings[number] = await LiveRing.open(
            "root", self.store, now=self.clock, monotonic=self.clock, report=self._report
        )
        if not ring.ring.cache_times.agree_with(times):
            await self.office(number).change_cache_times(SOMEBODY)

    def office(self, number):
        ledger = ledger_of("root", self.store, trail=self.trail, now=self.clock, report=self._report)
        ring = self.rings[number]
        return Administration(
            registry().workspace("root"),
            changes=ledger,
            ring=self.store,
            times=self.times[number],
            now=self.clock,
            adopt=ring.poll,
        )

    def fetch(self):
        """
        Let a verifier ask each instance, and keep until when it uses which keys.
        """
        for number, ring in self.rings.items():
            try:
                view = ring.current(self.clock.at)
            except RingUnavailable:
                continue
            header = cache_control(self.times[number], view.cache_times)
            stored = read_answer(
                None,
                FetchResponse(status=200, headers=(("Cache-Control", header),), body=view.jwks.body),
                parse=parse_key_set,
                at=self.clock.at,
                wall_clock=self.clock.at,
            )
            self.fetched.append((set(stored.key_set), max(stored.fresh_until, stored.usable_until)))

    async def take(self, kind, number, times):
        """
        Take a step, and return what was stated about revoked keys and the key that was promoted as planned.
        """
        try:
            if kind == "start":
                await self.start(number, times)
            elif kind == "rotate":
                told = await self.office(number).rotate(SOMEBODY, expected_active=None)
                return {}, told.members["active"]
            elif kind == "revoke":
                active = self.store.ring.active.kid
                told = await self.office(number).revoke(SOMEBODY, active, reason="drill")
                return {active: told.members["trusted_until"]}, None
            else:
                told = await self.office(number).revoke_all(SOMEBODY, reason="drill")
                return dict.fromkeys(told.members["revoked"], told.members["trusted_until"]), None
        except TransitionRefused:
            pass
        return {}, None

    @staticmethod
    def _report(_event, **_facts):
        pass


async def lived(first, steps):
    world, stated = World(first), {}
    for number in range(INSTANCES):
        await world.start(number, first)
    for kind, number, times, passed, looking in steps:
        world.clock.at += passed
        for each in looking:
            await world.rings[each].poll()
        world.fetch()
        revoked, promoted = await world.take(kind, number, times)
        stated |= revoked
        # Those who have not looked since go on until their lease is over, which verifiers see as well.
        world.fetch()

        for kids, until in world.fetched:
            assert all(until <= stated.get(kid, math.inf) for kid in kids)
            assert promoted is None or promoted in kids or until <= world.clock.at
    return world


@settings(max_examples=300, deadline=None)
@given(configured, st.lists(step, max_size=12))
def test_no_verifier_uses_a_revoked_key_beyond_what_was_said_or_lacks_a_planned_one(first, steps):
    """
    Whatever is configured at which instance, in whatever order they start, look, rotate and revoke.
    """
    asyncio.run(lived(first, steps))


def test_an_instance_that_lags_serves_the_longer_times_for_its_lease():
    """
    The case that every bound has to hold against is among those: it serves what it knows until it may not any more.
    """
    long, short = KeyTimes(max_age_s=3600, stale_if_error_s=3600), KeyTimes(max_age_s=30, stale_if_error_s=0)

    world = asyncio.run(lived(long, [("start", 1, short, 0, ()), ("revoke", 1, short, 15, ())]))

    assert max(until for _, until in world.fetched) == NOW + 15 + 7200
