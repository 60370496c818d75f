"""
What is special to sign-ins in memory: what a copy of it tells, what it drops and when, clocks that go backwards.
"""

import gc
from dataclasses import replace

import pytest

from issuer.sign_ins import CONVERSATION_MEMORY_S, LOGOUT_MEMORY_S
from issuer.sign_ins_memory import MemorySignIns
from keys import SealingKey, SealingKeys

from . import sign_in_event
from .sign_in_event import WHO
from .world import NOW

pytestmark = pytest.mark.anyio

SEALING = SealingKeys(SealingKey("2026-11", b"\x11" * 32))
# So short that a test outlives them.
EVENT, OTHER = (replace(each, expires_at=NOW + 60) for each in (sign_in_event.EVENT, sign_in_event.OTHER))


@pytest.fixture
def store():
    return MemorySignIns(SEALING)


def held(thing):
    """
    Return every text and all octets that can be reached from an object of ours.
    """
    found, seen, left = [], set(), [thing]
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, type):
            continue
        seen.add(id(each))
        if isinstance(each, str | bytes):
            found.append(each)
        left += gc.get_referents(each)
    return repr(found)


async def test_a_copy_of_the_memory_tells_of_no_customer(store):
    """
    What is held has no customer, session, conversation or id in it: only who brings the id opens it.
    """
    sign_in_id, _ = await store.add("acme", replace(EVENT), NOW)

    kept = held(store._clients[WHO])

    assert len(kept) > 500
    assert not any(secret in kept for secret in ("cus_48213", "session-1", "conv-77", "login.shop", sign_in_id))


async def test_what_expired_is_dropped_and_nothing_else(store):
    """
    Sign-ins at their expiry, conversations 1920 s later; what is alive stays.
    """
    await store.add("acme", EVENT, NOW)
    alive, _ = await store.add("acme", replace(EVENT, expires_at=NOW + 10_000, sub="cus_7", conversation=None), NOW)
    client = store._clients[WHO]

    await store.end(*WHO, "x", NOW + 60)
    assert (len(client.records), len(client._indexes), len(client._conversations)) == (1, 2, 1)

    await store.end(*WHO, "x", NOW + 60 + CONVERSATION_MEMORY_S)
    assert (len(client.records), len(client._conversations)) == (1, 0)
    assert await store.find(*WHO, alive, NOW + 9999) is not None


async def test_what_expired_takes_no_room():
    """
    From its expiry on there is room for the next.
    """
    store = MemorySignIns(SEALING, max_per_client=1)
    await store.add("acme", EVENT, NOW)

    later = replace(EVENT, expires_at=NOW + 120)

    assert await store.add("acme", later, NOW + 59.9) == "full"
    assert await store.add("acme", later, NOW + 60) != "full"


@pytest.mark.parametrize("lifetimes", [(60, 120), (60, 120, 60)])
@pytest.mark.parametrize("next_one", [EVENT, OTHER], ids=["same", "different"])
async def test_a_conversation_is_remembered_as_long_as_its_longest_sign_in_asks(store, lifetimes, next_one):
    """
    Until then a different customer is told of the first one, and the same one is not.
    """
    for lifetime in lifetimes:
        await store.add("acme", replace(EVENT, expires_at=NOW + lifetime), NOW)
    late = NOW + 119 + CONVERSATION_MEMORY_S

    _, found = await store.add("acme", replace(next_one, expires_at=late + 60), late)

    assert found.confirmed_after == (None if next_one is EVENT else late + 5)


async def test_signing_in_and_out_leaves_nothing_behind(store):
    """
    However often, there is room for what is alive and some more.
    """
    for _ in range(1000):
        _, sign_in = await store.add("acme", EVENT, NOW)
        await store.end(*WHO, sign_in.handle, NOW)

    client = store._clients[WHO]
    assert (len(client.records), len(client._indexes), len(client._conversations)) == (0, 0, 1)
    assert len(client._deadlines) < 100


async def log_out(store, issued_at, now, sub="cus_48213"):
    return await store.end_at_logout(*WHO, EVENT.provider_issuer, sub=sub, sid=None, issued_at=issued_at, now=now)


async def test_a_logout_is_remembered_as_long_as_it_matters(store):
    """
    For 420 s: no ID token from before it is taken any more then, and a clock that goes backwards makes none acceptable again.
    """
    await log_out(store, NOW, NOW)
    client = store._clients[WHO]

    await store.end(*WHO, "x", NOW + LOGOUT_MEMORY_S - 1)
    remembered = len(client._logouts)
    await store.end(*WHO, "x", NOW + LOGOUT_MEMORY_S)

    assert (remembered, len(client._logouts)) == (1, 0)
    assert await store.add("acme", EVENT, NOW) == "logged_out"
    assert await store.add("acme", replace(EVENT, issued_at=NOW + 1), NOW) != "logged_out"


async def test_logouts_without_number_let_nobody_through():
    """
    When there is no room to remember one, nothing that was issued before it is recorded, whoever it is of.
    """
    store = MemorySignIns(SEALING, max_per_client=2)
    for number in range(5):
        await log_out(store, NOW - 10 + number, NOW, sub=f"cus_{number}")

    assert len(store._clients[WHO]._logouts) == 4
    assert await store.add("acme", replace(EVENT, issued_at=NOW - 6), NOW) == "logged_out"
    assert await store.add("acme", replace(EVENT, issued_at=NOW - 5), NOW) != "logged_out"


async def test_a_clock_that_goes_backwards_keeps_customers_apart(store):
    """
    When a conversation may have been forgotten too early, whoever signs in there counts as a different customer.
    """
    first, _ = await store.add("acme", EVENT, NOW)
    ahead = NOW + 60 + CONVERSATION_MEMORY_S
    await store.add("acme", replace(OTHER, conversation="conv-78", expires_at=ahead + 60), ahead)

    _, second = await store.add("acme", OTHER, NOW + 10)

    assert await store.find(*WHO, first, NOW + 10) is None
    assert second.confirmed_after == NOW + 15
