"""
What the routes, the commands and the schedule have in common: each change with its record, by whom and from where.
"""

import asyncio
from dataclasses import replace

import pytest

from issuer.administration import Administration
from issuer.audit import Actor
from issuer.suspensions import InvalidSuspension, Target, UnknownSuspension
from keys import KeyTimes, ReasonRequired

from .estate import MemoryTrail, RingStore, ledger_of
from .world import NOW, registry, ring_of

OPERATOR = Actor("cli", "root")


@pytest.fixture
def store():
    return RingStore(ring_of("root"))


@pytest.fixture
def trail():
    return MemoryTrail()


@pytest.fixture
def administration(store, trail):
    """
    An administration as a command has it: nobody mints, and nobody follows.
    """
    ledger = ledger_of("root", store, trail=trail, now=lambda: NOW, report=lambda *_args, **_facts: None)
    return Administration(registry().workspace("root"), changes=ledger, ring=store, times=KeyTimes(), now=lambda: NOW)


def test_a_command_is_on_record_as_one(administration, trail):
    """
    Who it was and from where; what was minted is not told where nobody mints.
    """
    told = asyncio.run(administration.revoke(OPERATOR, ring_of("root").active.kid, reason="leaked"))

    assert "minted" not in told.members
    assert trail.records[-1]["actor"] == {"kind": "cli", "name": "root"}
    assert trail.records[-1]["source"] == "local"
    assert str(told.head).startswith("1.")


def test_any_active_key_may_be_expected(administration, store):
    """
    As a schedule does, which looks at the ring itself.
    """
    told = asyncio.run(administration.rotate(Actor("schedule", "rotation"), expected_active=None))

    assert told.members["active"] == store.ring.active.kid


def test_two_changes_at_once_are_two_records(administration, store, trail):
    """
    Neither is lost: whoever comes second decides again.
    """

    async def both():
        return await asyncio.gather(
            administration.rotate(OPERATOR, expected_active=None),
            administration.suspend(OPERATOR, Target("agent", "agt_support"), reason="leaked"),
        )

    told = asyncio.run(both())

    assert sorted(each.members["revision"] for each in told) == [2, 3]
    assert [row[3] for row in store.ring.companion["suspensions"]] == ["agt_support"]
    assert store.ring.active.kid == ring_of("root").standbys[0].kid
    assert {record["event"] for record in trail.records} == {"keys_rotated", "suspension_added"}


def test_whoever_changes_is_the_first_to_follow(store, trail):
    """
    The process that made a change has adopted it when the answer is given.
    """
    seen = []

    async def adopt():
        seen.append(store.revision)

    ledger = ledger_of("root", store, trail=trail, now=lambda: NOW, report=lambda *_args, **_facts: None)
    workspace = registry().workspace("root")
    administration = Administration(
        workspace, changes=ledger, ring=store, times=KeyTimes(), now=lambda: NOW, adopt=adopt
    )

    asyncio.run(administration.rotate(OPERATOR, expected_active=None))
    asyncio.run(administration.keys())

    assert seen == [2]


@pytest.mark.parametrize("after", [-1, -100])
def test_a_page_begins_behind_a_record(administration, after):
    """
    A programmer's mistake is one.
    """
    with pytest.raises(ValueError):
        asyncio.run(administration.audit_after(after))


def test_what_is_refused_changes_nothing(administration, store, trail):
    """
    A reason that says nothing, a name that cannot stand in the trail, an id that is none.
    """
    before = store.ring

    with pytest.raises(ReasonRequired):
        asyncio.run(administration.revoke_all(OPERATOR, reason=" "))
    with pytest.raises(InvalidSuspension):
        asyncio.run(administration.suspend(OPERATOR, Target("agent", "a\nb"), reason="x"))
    with pytest.raises(InvalidSuspension):
        asyncio.run(administration.suspend(OPERATOR, Target("agent", "a"), reason="x", until=NOW))
    with pytest.raises(UnknownSuspension):
        asyncio.run(administration.lift(OPERATOR, "sus-1"))

    assert store.ring is before
    assert trail.records == []


def test_a_ring_that_says_nothing_readable_about_its_trail_is_listed(administration, store):
    """
    Keys and suspensions are shown without a head, and a revocation goes on.
    """
    store.put(replace(store.ring, companion={"trail": {"seq": "spoilt"}}))

    told = asyncio.run(administration.keys())

    assert told.head is None
    assert asyncio.run(administration.suspensions()).head is None
    assert asyncio.run(administration.revoke_all(OPERATOR, reason="stolen")).members["recorded"] is False
    assert told.members["active"] != store.ring.active.kid
