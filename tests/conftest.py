"""
What every test needs.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from .redis_server import RedisServer, redis_binary

# A machine that runs other things too makes any example slow at times. Continuous integration draws the same ones each run.
settings.register_profile("project", settings.get_profile("ci" if "CI" in os.environ else "default"), deadline=None)
settings.load_profile("project")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """
    Run asynchronous tests on asyncio, the one loop that the service runs on.
    """
    return "asyncio"


@pytest.fixture(scope="session")
def one_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """
    Start the Redis that the tests share; it keeps everything in memory.
    """
    if redis_binary() is None:
        pytest.skip("there is no Redis to start: install the development dependencies, or redis-server")
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def redis_server(one_redis: RedisServer) -> RedisServer:
    """
    Hand out the shared Redis, empty and running whatever the test before did to it.
    """
    if not one_redis.runs:
        one_redis.start()
    one_redis.resume()
    with one_redis.client() as client:
        client.flushall()
    return one_redis


@pytest.fixture
def start_redis(tmp_path: Path) -> Iterator[Callable[..., RedisServer]]:
    """
    Start a Redis of the test's own with other options; it ends with the test.
    """
    if redis_binary() is None:
        pytest.skip("there is no Redis to start: install the development dependencies, or redis-server")
    started: list[RedisServer] = []

    def start(*options: str, config: str = "") -> RedisServer:
        started.append(RedisServer(tmp_path / f"redis-{len(started)}", *options, config=config))
        started[-1].start()
        return started[-1]

    yield start
    for server in started:
        server.stop()
