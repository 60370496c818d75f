"""
A Redis and trails of both kinds for the tests of the trail.
"""

import pytest
from redis.asyncio import Redis

from issuer.audit import FileTrail, RedisTrail

from .desk import Desk
from .stage import redis_server


@pytest.fixture(scope="session")
def audit_redis():
    """
    The server that these tests share; each test finds it empty.
    """
    with redis_server() as server:
        yield server


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
async def redis_client(request, audit_redis):
    """
    A client in either protocol.
    """
    client = Redis(port=audit_redis.port, protocol=request.param)
    await client.flushall()
    yield client
    await client.aclose()


@pytest.fixture(params=["file", "redis"])
async def trail(request, tmp_path, audit_redis):
    """
    An empty trail of either kind.
    """
    if request.param == "file":
        yield FileTrail(tmp_path / "audit" / "acme.jsonl")
        return
    client = Redis(port=audit_redis.port)
    await client.flushall()
    yield RedisTrail(client, "acme")
    await client.aclose()


@pytest.fixture
async def file_desk(tmp_path):
    """
    A workspace whose trail is a file.
    """
    return await Desk(tmp_path, FileTrail(tmp_path / "audit" / "acme.jsonl")).opened()


@pytest.fixture
async def redis_desk(tmp_path, audit_redis):
    """
    A workspace whose trail is a stream.
    """
    async with Redis(port=audit_redis.port) as client:
        await client.flushall()
        yield await Desk(tmp_path, RedisTrail(client, "acme")).opened()


@pytest.fixture
async def desk(trail, tmp_path):
    """
    A workspace with a trail of either kind.
    """
    return await Desk(tmp_path, trail).opened()
