"""
How a service is put together from a configuration, and what it tells its log.
"""

import asyncio
import io
import json
import logging
import time

import pytest

from issuer.app import create_app
from issuer.init_config import CONFIG_NAME, write_development_config
from issuer.logs import configure_logging
from issuer.provider_keys import ProviderUnavailable
from issuer.redis_check import RedisUnfit, RedisVolatile
from issuer.ring_stores import RedisStores, ring_stores
from issuer.schedule import CLOCK_AHEAD, steady_clock
from issuer.service import build_service, open_service, report, report_failure
from issuer.settings import load_settings
from issuer.settings_sealing import load_sealing_keys
from keys import LoosePermissions, RingCorrupt, RingMissing, StoreUnreachable, export_blob, import_blob, revoke

from .provider import IdentityProvider, provider
from .site import Clock

RING = "data/rings/demo.jwe"


@pytest.fixture
def folder(tmp_path):
    """
    A folder with a development configuration of the workspace `demo`.
    """
    write_development_config(tmp_path / "dev", now=int(time.time()))
    return tmp_path / "dev"


@pytest.fixture
def log():
    """
    What is logged, one JSON object a line.
    """
    root = logging.getLogger()
    before, level, stream = root.handlers[:], root.level, io.StringIO()
    configure_logging("info", json=True, stream=stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:], root.level = before, level


def settings_of(folder):
    return load_settings(folder / CONFIG_NAME, {})


def test_a_configuration_becomes_a_service(folder):
    """
    Every workspace has its open ring; the clocks are the real ones and the key times those of the settings.
    """
    service = build_service(settings_of(folder))

    (status,) = service.statuses()
    assert list(service.rings) == [workspace.name for workspace in service.registry] == ["demo"]
    assert (status.workspace, status.usable, status.keys) == ("demo", True, {"active": 1, "standby": 2})
    assert service.times.max_age_s == settings_of(folder).jwks.max_age_s
    assert service.rings["demo"].current(service.now()).revision == 1
    assert service.now() == pytest.approx(time.time(), abs=60)


def test_the_keys_of_identity_providers_age_as_leases_do(folder):
    """
    By the clock that also runs while the machine sleeps: what was fetched before has to be fetched anew after.
    """
    monotonic, idp = Clock(1000.0), IdentityProvider("rsa-1", Cache_Control="max-age=600")

    async def slept(seconds):
        service = await open_service(settings_of(folder), monotonic=monotonic)
        try:
            await service.provider_keys.key(provider(idp.issuer), "RS256", "rsa-1")
            idp.stop()
            monotonic.at += seconds
            return await service.provider_keys.key(provider(idp.issuer), "RS256", "rsa-1")
        finally:
            idp.stop()
            await service.aclose()

    with pytest.raises(ProviderUnavailable):
        asyncio.run(slept(601))


def test_the_clocks_can_be_given(folder):
    """
    Also the one that leases are measured by.
    """
    service = asyncio.run(open_service(settings_of(folder), now=lambda: 5.0, monotonic=lambda: 7.0))

    assert (service.now(), service.monotonic()) == (5.0, 7.0)
    assert service.rings["demo"].status(5.0).view_age_s == 0


def _remove(path):
    path.unlink()


def _cut(path):
    path.write_bytes(path.read_bytes()[:-10])


def _open_up(path):
    path.chmod(0o640)


@pytest.mark.parametrize(
    ("spoil", "error"), [(_remove, RingMissing), (_cut, RingCorrupt), (_open_up, LoosePermissions)]
)
def test_a_ring_that_cannot_be_opened_stops_the_start(folder, spoil, error):
    """
    Nothing is created or overwritten instead.
    """
    path = folder / RING
    spoil(path)
    before = path.read_bytes() if path.exists() else None

    with pytest.raises(error):
        build_service(settings_of(folder))

    assert (path.read_bytes() if path.exists() else None) == before


def test_events_reach_the_log_with_their_facts(log):
    """
    What an operator must see is an error, the rest is information.
    """
    report("ring_adopted", workspace="demo", revision=3)
    report("ring_poll_failed", workspace="demo", problem="ring_missing")

    adopted, failed = log()
    assert (adopted["event"], adopted["level"], adopted["revision"]) == ("ring_adopted", "info", 3)
    assert (failed["event"], failed["level"], failed["problem"]) == ("ring_poll_failed", "error", "ring_missing")


def test_a_failure_is_logged_without_its_text(log):
    """
    By its class and the places it passed: the text may hold what a caller sent.
    """
    with pytest.raises(RuntimeError) as caught:
        _fail()
    report_failure(caught.value)

    (line,) = log()
    assert (line["event"], line["level"], line["error"]) == ("request_failed", "error", "RuntimeError")
    assert "test_service.py" in line["raised"][0]
    assert "secret of a caller" not in json.dumps(line)


def _fail():
    raise RuntimeError("secret of a caller")


@pytest.fixture
def shared(folder, redis_server):
    """
    The folder with its ring in a Redis that the configuration names, and allows to forget.
    """
    move_to_redis(folder, redis_server)
    return folder


def move_to_redis(folder, server, *, volatile="true", name="keys_redis_url"):
    blob = asyncio.run(export_blob(place_of(folder).ring("demo")))
    config = folder / CONFIG_NAME
    named = f'{name} = "{server.url}"\nkeys_redis_allow_volatile = {volatile}\n'
    config.write_text(named + config.read_text())
    (folder / RING).unlink()
    in_place(folder, lambda place: import_blob(place.ring("demo"), blob))


def place_of(folder):
    settings = settings_of(folder)
    return ring_stores(settings, load_sealing_keys(settings))


def in_place(folder, work):
    """
    Do something with the stores that the configuration names, in an event loop of its own.
    """

    async def run():
        place = place_of(folder)
        try:
            return await work(place)
        finally:
            await place.aclose()

    return asyncio.run(run())


def connections_to(server):
    with server.client() as client:
        return len(client.client_list()) - 1


def test_keys_in_redis_make_a_service(shared, redis_server):
    """
    It is opened in one event loop and runs in another, so nothing of the first stays open.
    """
    service = build_service(settings_of(shared))

    (status,) = service.statuses()
    assert (status.workspace, status.usable, status.problem) == ("demo", True, None)
    assert connections_to(redis_server) == 0
    assert not (shared / RING).exists()


def test_a_change_in_redis_is_told_to_a_running_service(shared, redis_server):
    """
    Long before it would have looked; and when it ends, so do its connections.
    """

    async def adopted():
        service = await open_service(settings_of(shared))
        ring, store = service.rings["demo"], service.place.ring("demo")
        found, revision = await store.load()
        gone = found.active.kid
        async with create_app(service, poll_s=3600, books_s=3600).lifespan():
            await eventually(lambda: connections_to(redis_server) > 1)
            changed = revoke(found, gone, now=int(time.time()), times=service.times, reason="leaked").ring
            await store.save(changed, expect=revision)
            await eventually(lambda: ring.ring.active.kid != gone)
        return service

    asyncio.run(adopted())

    assert connections_to(redis_server) == 0


async def eventually(holds):
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110  what is waited for happens in another process
            await asyncio.sleep(0.01)


def test_a_service_does_not_start_on_a_redis_that_forgets(folder, redis_server):
    """
    Unless the configuration says that it may.
    """
    move_to_redis(folder, redis_server, volatile="false")

    with pytest.raises(RedisVolatile):
        build_service(settings_of(folder))

    assert connections_to(redis_server) == 0


def test_a_service_does_not_start_without_its_redis(shared, redis_server):
    """
    It neither makes up a ring nor takes one from the data folder; the same holds when the Redis has none.
    """
    with redis_server.client() as client:
        client.flushall()
    with pytest.raises(RingMissing):
        build_service(settings_of(shared))
    redis_server.kill()
    with pytest.raises(StoreUnreachable) as refusal:
        build_service(settings_of(shared))

    assert refusal.value.where == redis_server.url


def use_an_assertion(service, jti="jti-1"):
    now = time.time() + 10
    return service.state.assertion_ids.use("https://issuer.test", "orc_main", jti, int(now) + 60, now)


def test_a_redis_of_the_keys_alone_leaves_the_rest_in_memory(shared, redis_server):
    """
    One process serves then, and nothing of what it remembers goes out.
    """
    service = build_service(settings_of(shared))

    assert asyncio.run(use_an_assertion(service)) is True
    assert service.state.place is None
    with redis_server.client() as client:
        assert client.keys("cc:[aemi]*") == []


def test_with_a_redis_for_everything_instances_remember_together(folder, redis_server, patient):
    """
    The epoch has begun when it starts; opened in one event loop it runs in another, and ends its connections there.
    """
    move_to_redis(folder, redis_server, name="redis_url")
    first, second = build_service(settings_of(folder)), build_service(settings_of(folder))
    with redis_server.client() as client:
        assert client.exists("cc:e")
    assert connections_to(redis_server) == 0

    async def served(service):
        async with create_app(service, poll_s=3600, books_s=3600).lifespan():
            return await use_an_assertion(service)

    assert [asyncio.run(served(service)) for service in (first, second, first)] == [True, False, False]
    assert connections_to(redis_server) == 0


def test_a_service_does_not_start_on_a_redis_that_evicts(folder, start_redis, log):
    """
    What was used would be forgotten; with leave it starts, and the log says what that means.
    """
    server = start_redis("--save", "", "--appendonly", "no", "--maxmemory-policy", "volatile-ttl")
    move_to_redis(folder, server, name="redis_url")
    with pytest.raises(RedisUnfit):
        build_service(settings_of(folder))
    assert connections_to(server) == 0
    config = folder / CONFIG_NAME
    config.write_text(f"redis_allow_eviction = true\n{config.read_text()}")

    service = build_service(settings_of(folder))

    doubts = [line for line in log() if line["event"] == "redis_doubtful"]
    assert service.state.place is not None
    assert [(line["level"], line["reason"], line["where"]) for line in doubts] == [("warning", "eviction", server.url)]
    assert "maxmemory-policy" in doubts[0]["problem"]


def test_a_service_does_not_start_without_the_redis_that_remembers(folder, redis_server, start_redis):
    """
    Though its keys are in another one, which is there.
    """
    keys = start_redis("--save", "")
    move_to_redis(folder, keys)
    config = folder / CONFIG_NAME
    config.write_text(f'redis_url = "{redis_server.url}"\n{config.read_text()}')
    redis_server.kill()

    with pytest.raises(StoreUnreachable) as refusal:
        build_service(settings_of(folder))

    assert refusal.value.where == redis_server.url
    assert connections_to(keys) == 0


def test_a_rotation_that_is_due_happens_and_is_on_record(folder):
    """
    The schedule rotates through the same door as everybody, and says that it was the schedule.
    """
    at = [time.time()]

    async def rotated():
        service = await open_service(settings_of(folder), now=lambda: at[0], monotonic=lambda: at[0])
        before = service.rings["demo"].ring.active.kid
        at[0] += 30 * 86_400
        await service.rings["demo"].poll()
        office = service.offices["demo"]
        await office.schedule.look()
        (record,) = (await office.administration.audit()).members["records"]
        return before, service.rings["demo"].ring.active.kid, record

    before, after, record = asyncio.run(rotated())

    assert before != after
    assert (record["event"], record["target"], record["actor"]["kind"]) == ("keys_rotated", before, "schedule")


def test_instances_that_look_at_once_rotate_once(shared, monkeypatch):
    """
    F01: three services on one Redis find the rotation due at the same moment, again and again; one is done, and on record.
    """
    at = [time.time()]
    # The time of the Redis does not pass as fast as the test needs it.
    monkeypatch.setattr(RedisStores, "clock", lambda _, now, monotonic: steady_clock(now, monotonic))

    async def rotated():
        clocks = {"now": lambda: at[0], "monotonic": lambda: at[0]}
        services = [await open_service(settings_of(shared), **clocks) for _ in range(3)]
        at[0] = services[0].rings["demo"].ring.active.rotation_due_at
        for service in services:
            await service.rings["demo"].poll()
        for _ in range(3):
            await asyncio.gather(*(service.offices["demo"].schedule.look() for service in services))
        for service in services:
            await service.rings["demo"].poll()
        told = await services[0].offices["demo"].administration.audit()
        kids = {service.rings["demo"].current(at[0]).kid for service in services}
        problems = [service.offices["demo"].schedule.problem for service in services]
        for service in services:
            await service.place.aclose()
        return told.members["records"], kids, problems

    records, kids, problems = asyncio.run(rotated())

    done = [record for record in records if record["event"] == "keys_rotated" and record["carried_out"]]
    assert len(done) == len(kids) == 1
    assert problems == [None] * 3


def test_a_rotation_that_does_not_happen_shows_in_the_status(folder):
    """
    A wall clock that jumped ahead of the time that has passed rotates nothing.
    """
    at = [time.time()]

    async def looked():
        service = await open_service(settings_of(folder), now=lambda: at[0], monotonic=lambda: 0.0)
        at[0] += 30 * 86_400
        await service.offices["demo"].schedule.look()
        return next(service.statuses())

    status = asyncio.run(looked())

    assert (status.rotation_problem, status.overdue, status.alarm) == (CLOCK_AHEAD, True, False)


def test_keys_that_are_revoked_in_the_configuration_do_not_sign(folder):
    """
    From the first instant of the service.
    """
    ring, _ = asyncio.run(place_of(folder).ring("demo").load())
    config = folder / CONFIG_NAME
    named = f'path = "/w/demo"\nrevoked_kids = ["{ring.active.kid}"]'
    config.write_text(config.read_text().replace('path = "/w/demo"', named))

    service = build_service(settings_of(folder))

    assert service.rings["demo"].current(time.time()).kid == ring.standbys[0].kid
