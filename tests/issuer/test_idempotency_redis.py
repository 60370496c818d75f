"""
What is particular to records behind idempotency keys in a Redis: their names, their ends, many instances, lost answers, silence.
"""

import asyncio
import re
import time
from types import SimpleNamespace

import pytest

from issuer.idempotency import MAX_MINTS, Claimed
from issuer.idempotency_redis import RedisIdempotencyRecords
from issuer.redis_connection import RedisConnection, RedisUnavailable
from issuer.redis_url import parse_redis_url

from .records import PATIENCE_S
from .redis_proxy import lossy
from .world import NOW

pytestmark = pytest.mark.anyio

KEY = ("root", "orc_main", "cancel_order", "idk-0000000000001")
NAMES = re.compile(rb"cc:i:\{[A-Za-z0-9_-]{22}\}(:[A-Za-z0-9_-]{22})?")


@pytest.fixture
async def connect():
    """
    A function that opens records at a URL; they are closed with the test.
    """
    opened = []

    def connect(url, deadline_s=PATIENCE_S, **options):
        opened.append(RedisConnection(parse_redis_url(url), deadline_s))
        return RedisIdempotencyRecords(opened[-1], **options)

    yield connect
    for connection in opened:
        await connection.aclose()


def claim(records, key=KEY, content=b"content", confirmed_by="client", confirmed_at=NOW, now=NOW):
    return records.claim(key, (content,), confirmed_by, confirmed_at, now)


async def test_every_kind_of_redis_keeps_them(connect, redis_url):
    """
    One server, one behind a Sentinel, a cluster.
    """
    first, second = connect(redis_url), connect(redis_url)

    assert [await claim(each) for each in (first, second)] == [Claimed(NOW)] * 2
    assert await claim(second, content=b"other") == "conflict"
    assert await claim(first, key=(*KEY[:3], "idk-0000000000002"), content=b"other") == Claimed(NOW)


async def test_nothing_that_was_sent_stands_in_a_name(connect, redis_server):
    """
    Names are hashes of one length, whatever a client is called, and those of a client are in one slot.
    """
    records = connect(redis_server.url)
    for client in ("orc_main", "o" * 255, "my client:1/}{\u00e9"):
        await claim(records, key=("root", client, "cancel_order", "k" * 128))

    with redis_server.client() as client:
        names = client.keys("*")
    assert len(names) == 6
    assert all(NAMES.fullmatch(name) for name in names)
    assert len({name[:29] for name in names}) == 3


async def test_what_it_is_about_is_a_hash_alone(connect, redis_server):
    """
    Beside it stands how and when it was confirmed, and how many mints there were.
    """
    records = connect(redis_server.url)
    await claim(records, content=b"\x00\xff\r\n")
    await claim(records, content=b"\x00\xff\r\n")

    with redis_server.client() as client:
        (name,) = client.keys("*:*:*:*")
        stored = client.hgetall(name)

    assert stored == {b"content": b"\x00\xff\r\n", b"by": b"client", b"at": str(NOW).encode(), b"mints": b"2"}


async def test_nothing_outlives_the_last_record(connect, redis_server):
    """
    All of a client ends when its last confirmation is 1800 s old plus 120 s, on the clock of the Redis.
    """
    records = connect(redis_server.url)
    await claim(records, now=NOW + 1000)
    await claim(records, key=(*KEY[:3], "idk-0000000000002"), confirmed_at=NOW + 5)
    await claim(records, key=(*KEY[:3], "idk-0000000000003"), confirmed_at=NOW - 1700)

    with redis_server.client() as client:
        ends = sorted(client.ttl(name) for name in client.keys("*"))

    assert ends == pytest.approx([220, 920, 1925, 1925], abs=PATIENCE_S)


async def test_a_confirmation_that_is_over_leaves_a_record_all_the_same(connect, redis_server):
    """
    Nothing is minted for one; but an end that has passed must not make every claim the first one.
    """
    records = connect(redis_server.url)

    assert await claim(records, now=NOW + 5000) == Claimed(NOW)

    with redis_server.client() as client:
        assert all(0 < client.pttl(name) <= 1000 for name in client.keys("*"))


async def test_many_instances_at_once_get_twenty_mints(connect, redis_server):
    """
    G04: each claim is one step to every other, wherever it comes from.
    """
    instances = [connect(redis_server.url) for _ in range(4)]

    outcomes = await asyncio.gather(*(claim(instances[number % 4]) for number in range(60)))

    assert outcomes.count(Claimed(NOW)) == MAX_MINTS
    assert outcomes.count("exhausted") == 40


async def test_many_instances_at_once_agree_on_one_content(connect, redis_server):
    """
    G01: of several things under one new key one is there, and the others are refused.
    """
    instances = [connect(redis_server.url) for _ in range(4)]

    outcomes = await asyncio.gather(
        *(claim(instances[number % 4], content=b"%d" % (number % 10)) for number in range(40))
    )

    assert (outcomes.count(Claimed(NOW)), outcomes.count("conflict")) == (4, 36)


async def test_many_instances_at_once_keep_to_the_bound(connect, redis_server):
    """
    No more records of a client than there may be, and as many.
    """
    instances = [connect(redis_server.url, max_per_client=5) for _ in range(4)]

    outcomes = await asyncio.gather(
        *(claim(instances[number % 4], key=(*KEY[:3], f"idk-{number}")) for number in range(40))
    )

    assert (outcomes.count(Claimed(NOW)), outcomes.count("full")) == (5, 35)


async def test_an_answer_that_is_lost_costs_one_mint(connect, redis_server):
    """
    It cannot be told, so nothing is minted; and it is not asked for again, since it was counted.
    """
    async with lossy(redis_server.port, lose=lambda number: number == 2) as url:
        records = connect(url, 0.5)
        outcomes = []
        for _ in range(3):
            try:
                outcomes.append(await claim(records))
            except RedisUnavailable as error:
                outcomes.append(error.problem)

    assert outcomes == [Claimed(NOW), "no answer in time", Claimed(NOW)]
    with redis_server.client() as client:
        assert client.hget(client.keys("*:*:*:*")[0], "mints") == b"3"


async def test_a_proxy_that_loses_every_tenth_answer_mints_nothing_too_often(connect, redis_server):
    """
    What was told and what was lost is twenty together.
    """
    async with lossy(redis_server.port, lose=lambda number: number % 10 == 0) as url:
        records = connect(url, 0.5)
        outcomes = await asyncio.gather(*(claim(records) for _ in range(60)), return_exceptions=True)

    lost = sum(isinstance(each, RedisUnavailable) for each in outcomes)
    assert lost == 6
    assert MAX_MINTS - lost <= outcomes.count(Claimed(NOW)) <= MAX_MINTS
    assert outcomes.count(Claimed(NOW)) + outcomes.count("exhausted") + lost == 60


async def test_a_silent_redis_is_given_up_within_the_deadline(connect, redis_server):
    """
    And what it was asked may still be counted when it comes to itself.
    """
    records = connect(redis_server.url, 0.25)
    redis_server.pause()
    started = time.monotonic()

    with pytest.raises(RedisUnavailable):
        await claim(records)

    assert time.monotonic() - started < PATIENCE_S / 2
    redis_server.resume()


async def test_a_full_redis_counts_nothing(connect, start_redis):
    """
    It refuses, and there is no half of a record.
    """
    server = start_redis("--save", "", "--maxmemory-policy", "noeviction")
    records = connect(server.url)
    await claim(records)
    with server.client() as client:
        client.config_set("maxmemory", 1)

        for key in (KEY, (*KEY[:3], "idk-0000000000002")):
            with pytest.raises(RedisUnavailable) as refusal:
                await claim(records, key=key)
            assert refusal.value.is_refusal
        client.config_set("maxmemory", 0)

        assert len(client.keys("*")) == 2
    assert await claim(records) == Claimed(NOW)


async def test_something_else_in_its_place_is_refused(connect, redis_server):
    """
    What no claim wrote is no record.
    """
    records = connect(redis_server.url)
    await claim(records)
    with redis_server.client() as client:
        (name,) = client.keys("*:*:*:*")
        client.hset(name, "mints", "many")
        with pytest.raises(RedisUnavailable):
            await claim(records)
        client.set(name, "text")
        with pytest.raises(RedisUnavailable):
            await claim(records)


ODD = [
    b"another claimed 5",
    b"<attempt> claimed",
    b"<attempt> claimed ",
    b"<attempt> claimed 5 5",
    b"<attempt> claimed  5",
    b"<attempt> claimed -5",
    b"<attempt> claimed x",
    b"<attempt>claimed 5",
    b" <attempt> claimed 5",
    b"<attempt> taken",
    b"<attempt>",
    b"claimed 5",
    b"OK",
    b"",
    [b"<attempt>", b"claimed", b"5"],
    "<attempt> claimed 5",
    None,
    True,
    1,
]


@pytest.mark.parametrize("answer", ODD, ids=range(len(ODD)))
async def test_only_the_answer_to_the_very_question_counts(answer):
    """
    A connection that is out of step, or a proxy with an idea of its own, mints nothing.
    """

    async def scripted(_script, _keys, _record, _live, attempt, *_arguments):
        return answer.replace(b"<attempt>", attempt.encode()) if isinstance(answer, bytes) else answer

    records = RedisIdempotencyRecords(SimpleNamespace(eval=scripted, where="redis://there"))

    with pytest.raises(RedisUnavailable) as refusal:
        await claim(records)

    assert not refusal.value.is_refusal
