"""
The state of a service in Redis: every kind in its place, for any number of instances, in one event loop after the other.
"""

import asyncio
import re
import time

import pytest

from issuer.admin_idempotency import AdminScope, StoredAnswer, Ticket
from issuer.idempotency import Claimed
from issuer.limits import Over, Rate, Rates
from issuer.redis_check import RedisUnfit
from issuer.state_redis import redis_state
from keys import StoreUnreachable
from verifier import ReplayStoreUnavailable

from .estate import SEALING
from .redis_kinds import begin_epoch, eventually
from .world import NOW

ONE = Rates(client=Rate(3_600_000_000, 1))
SCOPE = AdminScope("root", "secops", "POST", "/admin/keys/rotate", "idk-of-the-tests-1")


@pytest.fixture
def states(redis_server, patient):
    """
    Those of two instances on one Redis, which they met an hour ago.
    """
    begin_epoch(redis_server, age_s=3600)
    return [redis_state(redis_server.url, SEALING, ONE, now=time.time) for _ in range(2)]


async def used(state):
    """
    Leave something of every kind behind, and tell what was there.
    """
    now = time.time()
    claimed = await state.admin_records.claim(SCOPE, b"body", NOW)
    if isinstance(claimed, Ticket):
        await state.admin_records.finish(claimed, StoredAnswer(200, b"{}"))
    contents = state.fingerprints.of("root", "digest")
    return {
        "assertion": await state.assertion_ids.use("https://issuer.test", "orc_main", "jti-1", int(now) + 60, now),
        "id_token": await state.id_tokens.use("https://issuer.test", "orc_main", "jti-1", int(now) + 60, now),
        "claim": await state.idempotency.claim(("root", "orc_main", "a", "k"), contents, "none", int(now), now),
        "call": claimed if isinstance(claimed, StoredAnswer) else "first",
        "limit": await state.limits.request("root", "orc_main", None),
    }


def test_two_instances_remember_together(states, redis_server):
    """
    Whatever one was asked the other knows; and when both have ended, no connection is left.
    """

    async def both():
        outcomes = [await used(state) for state in states]
        for state in states:
            await state.aclose()
        return outcomes

    first, second = asyncio.run(both())

    assert isinstance(first["claim"], Claimed)
    assert first | {"claim": None} == {
        "assertion": True,
        "id_token": True,
        "claim": None,
        "call": "first",
        "limit": None,
    }
    assert (second["assertion"], second["id_token"], second["claim"]) == (False, False, first["claim"])
    assert second["call"] == StoredAnswer(200, b"{}")
    assert isinstance(second["limit"], Over)
    with redis_server.client() as client:
        assert {re.sub(rb"[^:]*$", b"", name)[:5] for name in client.keys("cc:*:*")} == {
            *(b"cc:j:", b"cc:d:", b"cc:i:", b"cc:l:", b"cc:m:")
        }
        assert [client.ttl(name) for name in client.keys("*") if client.ttl(name) < 0] == [-1]
        eventually(lambda: len(client.client_list()) == 1)


def test_it_goes_on_in_another_event_loop(states):
    """
    As that of a service which is opened in one and runs in another.
    """

    async def asked():
        outcome = await used(states[0])
        await states[0].aclose()
        return outcome["assertion"]

    assert [asyncio.run(asked()) for _ in range(3)] == [True, False, False]


def test_it_is_opened_on_what_is_fit_for_it(start_redis, patient):
    """
    The epoch has begun then; what is not fit, or not there, stops the start.
    """
    server = start_redis("--save", "", "--maxmemory-policy", "volatile-lru")
    reported = []

    async def opened(**options):
        state = redis_state(server.url, SEALING, ONE, now=time.time, **options)
        try:
            await state.open(lambda event, **facts: reported.append((event, facts["reason"])))
        finally:
            await state.aclose()

    with pytest.raises(RedisUnfit):
        asyncio.run(opened())
    asyncio.run(opened(allow_eviction=True))
    with server.client() as client:
        assert client.exists("cc:e")
    server.stop()
    with pytest.raises(StoreUnreachable):
        asyncio.run(opened(allow_eviction=True))

    assert reported == [("redis_doubtful", "eviction")]


def test_without_its_redis_it_can_tell_nothing(states, redis_server):
    """
    Every kind of question ends in an exception, none in an answer.
    """
    state, now = states[0], int(time.time())
    redis_server.kill()

    async def asked():
        questions = (
            state.assertion_ids.use("https://issuer.test", "orc_main", "jti-1", now + 60, now),
            state.id_tokens.use("https://issuer.test", "orc_main", "jti-1", now + 60, now),
            state.idempotency.claim(("root", "orc_main", "a", "k"), (b"content",), "none", now, now),
            state.admin_records.claim(SCOPE, b"body", now),
            state.limits.request("root", "orc_main", None),
        )
        outcomes = await asyncio.gather(*questions, return_exceptions=True)
        await state.aclose()
        return outcomes

    outcomes = asyncio.run(asked())

    assert all(isinstance(each, Exception) for each in outcomes)
    assert isinstance(outcomes[0], ReplayStoreUnavailable)
