"""
What is particular to records of admin calls in a Redis: their names, their ends, many instances, sealing keys, odd answers.
"""

import asyncio
import re
from types import SimpleNamespace

import pytest

from issuer.admin_idempotency import RETENTION_S, RUNNING_S, AdminScope, StoredAnswer, Ticket
from issuer.admin_records_redis import RedisAdminRecords
from issuer.redis_connection import RedisConnection, RedisUnavailable
from issuer.redis_url import parse_redis_url
from keys import SealingKey, SealingKeys

from .records import PATIENCE_S
from .redis_proxy import lossy
from .world import NOW

pytestmark = pytest.mark.anyio

NEW, OLD = SealingKey("2026-11", b"\x11" * 32), SealingKey("2026-05", b"\x22" * 32)
SCOPE = AdminScope("root", "secops", "POST", "/admin/keys/rotate", "idk-of-the-tests-1")
ANSWER = StoredAnswer(201, b'{"reason":"\xc3\xa9\r\n"}')
NAMES = re.compile(rb"cc:m:\{[A-Za-z0-9_-]{22}\}(:[A-Za-z0-9_-]{22})?")


@pytest.fixture
async def connect():
    """
    A function that opens records at a URL; they are closed with the test.
    """
    opened = []

    def connect(url, *sealing, deadline_s=PATIENCE_S, **options):
        opened.append(RedisConnection(parse_redis_url(url), deadline_s))
        return RedisAdminRecords(opened[-1], SealingKeys(*(sealing or (NEW,))), **options)

    yield connect
    for connection in opened:
        await connection.aclose()


def claim(records, scope=SCOPE, content=b"body"):
    return records.claim(scope, content, NOW)


async def test_every_kind_of_redis_keeps_them(connect, redis_url):
    """
    One server, one behind a Sentinel, a cluster; what one instance did the other answers.
    """
    first, second = connect(redis_url), connect(redis_url)

    ticket = await claim(first)
    assert await claim(second) == "in_progress"
    await first.finish(ticket, ANSWER)

    assert await claim(second) == ANSWER
    other = await claim(second, SCOPE._replace(key="idk-of-the-tests-2"))
    await first.release(other)
    assert isinstance(await claim(first, other.scope), Ticket)


async def test_many_instances_at_once_let_one_call_through(connect, redis_server):
    """
    idk-concurrent: whoever comes in between hears that it goes on.
    """
    instances = [connect(redis_server.url) for _ in range(4)]

    outcomes = await asyncio.gather(*(claim(instances[number % 4]) for number in range(40)))

    assert sum(isinstance(each, Ticket) for each in outcomes) == 1
    assert outcomes.count("in_progress") == 39


async def test_nothing_that_was_sent_stands_in_a_name(connect, redis_server):
    """
    Names are hashes of one length, and those of an admin are in one slot; the body of the call is a hash too.
    """
    records = connect(redis_server.url)
    ticket = await claim(records, content=b"secret-marked-1")
    await records.finish(ticket, ANSWER)
    await claim(records, SCOPE._replace(path="/admin/keys/{x}/revoke", key="k" * 128))

    with redis_server.client() as client:
        names = client.keys("*")
        stored = [client.hgetall(name) for name in names if name.count(b":") == 3]
        ends = sorted(client.ttl(name) for name in names)
    assert len(names) == 3
    assert all(NAMES.fullmatch(name) for name in names)
    assert len({name[:29] for name in names}) == 1
    assert all(len(record[b"content"]) == 32 and b"marked" not in record[b"content"] for record in stored)
    assert ends == pytest.approx([RUNNING_S, RETENTION_S, RETENTION_S], abs=PATIENCE_S)


async def test_a_call_is_known_after_the_sealing_key_rotated(connect, redis_server):
    """
    To every instance that still has the key under which its body was hashed.
    """
    ticket = await claim(connect(redis_server.url, OLD))
    await connect(redis_server.url, NEW).finish(ticket, ANSWER)

    assert await claim(connect(redis_server.url, NEW, OLD)) == ANSWER
    assert await claim(connect(redis_server.url, NEW)) == "conflict"


async def test_an_answer_that_is_lost_leaves_the_place_taken(connect, redis_server):
    """
    It cannot be told, so the call is not made; the place is free again after two minutes.
    """
    async with lossy(redis_server.port, lose=lambda number: number == 1) as url:
        records = connect(url, deadline_s=0.5)
        with pytest.raises(RedisUnavailable):
            await claim(records)

        assert await claim(records) == "in_progress"


async def test_a_silent_redis_is_given_up(connect, redis_server):
    """
    Whatever it is asked.
    """
    records = connect(redis_server.url, deadline_s=0.05)
    redis_server.pause()
    ticket = Ticket(SCOPE, "x")

    for asked in (claim(records), records.finish(ticket, ANSWER), records.release(ticket)):
        with pytest.raises(RedisUnavailable):
            await asked
    redis_server.resume()


async def test_a_full_redis_takes_no_place(connect, start_redis):
    """
    It refuses, and there is no half of a record.
    """
    server = start_redis("--save", "", "--maxmemory-policy", "noeviction")
    records = connect(server.url)
    with server.client() as client:
        client.config_set("maxmemory", 1)
        with pytest.raises(RedisUnavailable) as refusal:
            await claim(records)

        assert refusal.value.is_refusal
        assert client.keys("*") == []


OWN = b"<ticket>"
ODD = [
    [b"another", b"taken"],
    [OWN, b"taken", b""],
    [OWN, b"answered", b"200"],
    [OWN, b"answered", b"x", b"{}"],
    [OWN, b"answered", b"200", None],
    [OWN, b"claimed", b"5"],
    [OWN],
    [],
    b"OK",
    None,
    True,
]


@pytest.mark.parametrize("answer", ODD, ids=range(len(ODD)))
async def test_only_the_answer_to_the_very_question_counts(answer):
    """
    A connection that is out of step lets no call through, and no other call's answer out.
    """

    async def scripted(_script, _keys, _record, _live, ticket, *_arguments):
        return [ticket.encode() if word == OWN else word for word in answer] if isinstance(answer, list) else answer

    records = RedisAdminRecords(SimpleNamespace(eval=scripted, where="redis://there"), SealingKeys(NEW))

    with pytest.raises(RedisUnavailable) as refusal:
        await claim(records)

    assert not refusal.value.is_refusal
