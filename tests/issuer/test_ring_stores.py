"""
The place where rings and trails are kept: the data folder or a Redis, by one face.
"""

import asyncio
import time

import pytest

from issuer.init_config import CONFIG_NAME, write_development_config
from issuer.redis_check import RedisVolatile
from issuer.ring_stores import FileStores, RedisStores, redis_stores, ring_stores
from issuer.settings import load_settings
from issuer.settings_sealing import load_sealing_keys
from keys import StoreUnreachable

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings_with(tmp_path):
    """
    A function that gives the development configuration with some lines in front of it.
    """
    write_development_config(tmp_path / "dev", now=int(time.time()))
    config = tmp_path / "dev" / CONFIG_NAME
    text = config.read_text()

    def settings(*lines):
        config.write_text("\n".join((*lines, text)))
        return load_settings(config, {})

    return settings


@pytest.fixture
async def place(settings_with, redis_server):
    """
    The Redis as the place of rings; it may forget.
    """
    settings = settings_with(f'redis_url = "{redis_server.url}"', "keys_redis_allow_volatile = true")
    place = ring_stores(settings, load_sealing_keys(settings), deadline_s=20)
    yield place
    await place.aclose()


def quiet(_event, **_facts):
    pass


async def test_without_a_redis_rings_lie_in_the_data_folder(settings_with):
    """
    A folder needs no check, tells of nothing, keeps nothing open, and its time goes on whatever the wall clock says.
    """
    settings = settings_with()
    place = ring_stores(settings, load_sealing_keys(settings))
    wall, passed = [100.0], [0.0]

    clock = place.clock(lambda: wall[0], lambda: passed[0])
    wall[0], passed[0] = 9_999.0, 5.0

    assert isinstance(place, FileStores)
    assert place.where == str(settings.data_dir)
    assert place.ring("demo").where == str(settings.data_dir / "rings" / "demo.jwe")
    assert place.trail("demo").where == str(settings.data_dir / "audit" / "demo.jsonl")
    assert await clock() == 105
    assert (await place.ring("demo").load())[1] == 1
    assert [await place.check(quiet), await place.listen({"demo": pytest.fail}), await place.aclose()] == [None] * 3
    assert redis_stores(settings, load_sealing_keys(settings)) is None


async def test_with_a_redis_rings_and_trails_lie_there(place, redis_server):
    """
    Its time is that of the server, not of this process.
    """
    clock = place.clock(lambda: 5.0, lambda: 5.0)

    assert isinstance(place, RedisStores)
    assert place.where == redis_server.url
    assert place.ring("demo").where == f"{redis_server.url} cc:k:{{demo}}"
    assert place.trail("demo").where == "cc:a:{demo}"
    assert await place.check(quiet) is None
    assert abs(await clock() - time.time()) < 60


async def test_a_redis_that_forgets_is_refused(settings_with, redis_server):
    """
    Unless the configuration says that it may.
    """
    settings = settings_with(f'redis_url = "{redis_server.url}"')
    place = ring_stores(settings, load_sealing_keys(settings))

    with pytest.raises(RedisVolatile):
        await place.check(quiet)
    await place.aclose()


async def test_a_redis_that_does_not_answer_is_told_by_its_address(place, redis_server):
    """
    By the check as by the clock.
    """
    redis_server.kill()

    for asked in (place.check(quiet), place.clock(lambda: 5.0, lambda: 5.0)()):
        with pytest.raises(StoreUnreachable) as refusal:
            await asked
        assert (refusal.value.where, refusal.value.outcome) == (redis_server.url, "unchanged")


async def test_a_change_is_told_to_the_workspace_that_it_concerns(place):
    """
    Each one is told once at first.
    """
    heard = asyncio.Queue()
    calls = {name: lambda name=name: heard.put_nowait(name) for name in ("demo", "other")}
    listening = asyncio.create_task(place.listen(calls))
    first = {await heard.get(), await heard.get()}

    await place._connection.call("PUBLISH", "cc:k:{other}", "2")

    assert first == {"demo", "other"}
    assert await heard.get() == "other"
    listening.cancel()
