"""
The trail in a stream of a real server, in both protocols, and with everything that can be wrong with one.
"""

import asyncio

import pytest
from redis.asyncio import Redis

from issuer.audit import RedisTrail, TrailUnavailable
from issuer.audit.errors import PlaceTaken

from .stage import Chain, read

pytestmark = pytest.mark.anyio

STREAM = "cc:a:{acme}"


@pytest.fixture
def redis_trail(redis_client):
    return RedisTrail(redis_client, "acme")


async def test_a_record_stands_under_its_number(redis_trail, redis_client):
    """
    So that the server itself gives each place once.
    """
    chain = Chain(2)
    await redis_trail.append(1, chain.lines)
    await redis_trail.confirm(2, "second")

    assert await redis_client.xrange(STREAM) == [
        (b"1-0", {b"record": chain.lines[0]}),
        (b"2-0", {b"record": chain.lines[1]}),
    ]
    assert await redis_client.get(STREAM + ":confirmed") == b"2.second"
    assert redis_trail.where == STREAM


async def test_workspaces_have_trails_of_their_own(redis_trail, redis_client):
    """
    And no name of a workspace is anything else.
    """
    await redis_trail.append(1, Chain(1).lines)

    assert await read(RedisTrail(redis_client, "globex")) == []
    with pytest.raises(ValueError):
        RedisTrail(redis_client, "acme}:confirmed")


async def test_a_note_about_an_earlier_record_changes_nothing(redis_trail):
    """
    Two instances may come here in the wrong order.
    """
    await redis_trail.confirm(10, "tenth")
    await redis_trail.confirm(9, "ninth")
    assert (await redis_trail.end()).confirmed == "tenth"

    await redis_trail.confirm(10, "again")
    assert (await redis_trail.end()).confirmed == "again"


@pytest.mark.parametrize("noted", [b"garbage", b"", b"\xff\xfe", b".", b"x.y"])
async def test_what_somebody_else_noted_is_replaced(redis_trail, redis_client, noted):
    """
    And until then it is no confirmation of anything.
    """
    await redis_client.set(STREAM + ":confirmed", noted)

    assert (await redis_trail.end()).confirmed in ("", "y")
    await redis_trail.confirm(1, "first")
    assert (await redis_trail.end()).confirmed == "first"


async def test_a_deleted_end_does_not_free_its_place(redis_trail, redis_client):
    """
    The stream remembers the last number that it gave.
    """
    chain = Chain(2)
    await redis_trail.append(1, chain.lines)
    await redis_client.xdel(STREAM, "2-0")

    with pytest.raises(PlaceTaken):
        await redis_trail.append(2, chain.lines[1:])


async def test_entries_of_somebody_else_are_read_as_they_are(redis_trail, redis_client):
    """
    A verification has to see them, in between and without a line.
    """
    chain = Chain(2)
    await redis_trail.append(1, chain.lines[:1])
    await redis_client.xadd(STREAM, {"other": "field"}, id="1-1")
    await redis_trail.append(2, chain.lines[1:])

    assert await read(redis_trail) == [chain.lines[0], b"", chain.lines[1]]


async def test_a_server_that_is_gone_makes_the_trail_unavailable():
    """
    For every question.
    """
    async with Redis(port=1, retry=None) as client:
        trail = RedisTrail(client, "acme")

        for use in (
            lambda: read(trail),
            trail.end,
            lambda: trail.append(1, [b"{}"]),
            lambda: trail.confirm(1, "first"),
        ):
            with pytest.raises(TrailUnavailable):
                await use()


async def test_a_server_that_does_not_answer_is_not_waited_for():
    """
    It takes connections and says nothing.
    """
    closing = asyncio.Event()

    async def silent(_reader, writer):
        await closing.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with Redis(port=server.sockets[0].getsockname()[1], retry=None) as client:
        trail = RedisTrail(client, "acme", deadline_s=0.05)

        with pytest.raises(TrailUnavailable) as refusal:
            await trail.end()
    closing.set()
    server.close()
    await server.wait_closed()

    assert refusal.value.problem == "no answer in time"


async def test_a_key_of_another_type_makes_the_trail_unavailable(redis_trail, redis_client):
    """
    Nothing is replaced; what the server says about it is not repeated.
    """
    await redis_client.set(STREAM, "secret")

    for use in (lambda: read(redis_trail), redis_trail.end, lambda: redis_trail.append(1, [b"{}"])):
        with pytest.raises(TrailUnavailable) as refusal:
            await use()
        assert "secret" not in str(refusal.value)
    assert await redis_client.get(STREAM) == b"secret"


async def test_a_server_without_memory_makes_the_trail_unavailable(redis_trail, redis_client):
    """
    What is there can still be read.
    """
    chain = Chain(2)
    await redis_trail.append(1, chain.lines[:1])
    await redis_client.config_set("maxmemory", "1")
    try:
        with pytest.raises(TrailUnavailable):
            await redis_trail.append(2, chain.lines[1:])
        assert await read(redis_trail) == chain.lines[:1]
    finally:
        await redis_client.config_set("maxmemory", "0")
