"""
What is asked of a Redis before keys are kept in it.
"""

import time

import pytest

from issuer.assertion_ids_redis import SharedIds
from issuer.redis_check import (
    RedisTooOld,
    RedisUnfit,
    RedisVolatile,
    check_memory,
    check_persistence,
    check_version,
)
from issuer.redis_connection import RedisConnection, RedisUnavailable
from issuer.redis_url import parse_redis_url
from keys import StoreUnreachable
from verifier import ReplayStoreUnavailable
from verifier.redis_doctor import Finding, UnfitRedis

pytestmark = pytest.mark.anyio

PATIENCE_S = 20.0


class Told:
    """
    A connection to servers that answer as the test says; what is not said is refused.
    """

    where = "redis://there"

    def __init__(self, answers):
        self.answers = answers

    async def each_primary(self, command, *arguments):
        answer = self.answers.get(f"{command} {arguments[0]}", RedisUnavailable(self.where, "no", is_refusal=True))
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
async def connect():
    opened = []

    def open_connection(server):
        opened.append(RedisConnection(parse_redis_url(server.url), PATIENCE_S))
        return opened[-1]

    yield open_connection
    for connection in opened:
        await connection.aclose()


@pytest.fixture
def reported():
    return []


@pytest.fixture
def report(reported):
    return lambda event, **facts: reported.append((event, facts))


SILENT = RedisUnavailable("redis://there", "no answer in time")


async def test_the_server_of_the_tests_is_new_enough(redis_server, connect):
    """
    Valkey names the Redis that it is compatible with.
    """
    await check_version(connect(redis_server))


@pytest.mark.parametrize("version", ["7.0.15", "7.2.4", "10.0.0"])
async def test_redis_7_is_new_enough(version):
    """
    So is everything after it.
    """
    await check_version(Told({"INFO server": [{"redis_version": version}, {"redis_version": "8.0.0"}]}))


@pytest.mark.parametrize("version", ["6.2.14", "2.8", "", "x", "unstable" * 10])
async def test_an_older_server_is_refused(version):
    """
    Also when only one server of a cluster is.
    """
    with pytest.raises(RedisTooOld) as refusal:
        await check_version(Told({"INFO server": [{"redis_version": "7.0.15"}, {"redis_version": version}]}))

    assert refusal.value.version == version
    assert len(str(refusal.value)) < 150


@pytest.mark.parametrize("answers", [{}, {"INFO server": [{}]}, {"INFO server": [b"text"]}])
async def test_a_server_that_does_not_tell_its_version_passes(answers):
    """
    Where INFO is forbidden, the first script that does not run says more.
    """
    await check_version(Told(answers))


async def test_a_silent_server_is_no_old_one():
    """
    Nothing is known then.
    """
    with pytest.raises(RedisUnavailable):
        await check_version(Told({"INFO server": SILENT}))


async def test_a_server_without_persistence_is_refused(redis_server, connect, report, reported):
    """
    A restart would end every key; whoever wants that says so.
    """
    connection = connect(redis_server)

    with pytest.raises(RedisVolatile) as refusal:
        await check_persistence(connection, allow_volatile=False, report=report)
    await check_persistence(connection, allow_volatile=True, report=report)

    assert "keys_redis_allow_volatile" in str(refusal.value)
    assert reported == []


@pytest.mark.parametrize(
    "options", [("--appendonly", "yes", "--save", ""), ("--appendonly", "no", "--save", "60 1000")]
)
async def test_a_log_or_snapshots_are_enough(options, start_redis, connect, report, reported):
    """
    How much a crash may lose is up to whoever runs the Redis.
    """
    await check_persistence(connect(start_redis(*options)), allow_volatile=False, report=report)

    assert reported == []


async def test_a_server_that_evicts_keys_is_refused(start_redis, connect, report):
    """
    It would throw out a ring as if it were a cached page.
    """
    server = start_redis("--appendonly", "yes", "--save", "", "--maxmemory-policy", "allkeys-lru")

    with pytest.raises(RedisVolatile):
        await check_persistence(connect(server), allow_volatile=False, report=report)


@pytest.mark.parametrize(("appendonly", "events"), [("yes", []), ("no", ["redis_persistence_unknown"])])
async def test_where_config_is_forbidden_info_is_asked(appendonly, events, start_redis, connect, report, reported):
    """
    It tells whether the append-only file is on; without it there may be snapshots, so that is reported, not refused.
    """
    server = start_redis("--appendonly", appendonly, "--save", "", "--rename-command", "CONFIG", "")

    await check_persistence(connect(server), allow_volatile=False, report=report)

    assert [event for event, _ in reported] == events


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"INFO persistence": [{}]},
        {"INFO persistence": [b"text"]},
        {"CONFIG GET appendonly": [{}]},
        {"CONFIG GET appendonly": [b"text"]},
        {"CONFIG GET appendonly": [{"appendonly": "yes", "save": ""}, {"save": ""}]},
    ],
)
async def test_what_cannot_be_found_out_is_reported(answers, report, reported):
    """
    The start goes on, and the log says what is not known.
    """
    await check_persistence(Told(answers), allow_volatile=False, report=report)

    assert reported == [("redis_persistence_unknown", {"where": "redis://there"})]


async def test_every_server_has_to_persist(report):
    """
    One of a cluster that does not is enough to lose a ring.
    """
    both = [{"appendonly": "yes", "save": ""}, {"appendonly": "no", "save": ""}]

    with pytest.raises(RedisVolatile):
        await check_persistence(Told({"CONFIG GET appendonly": both}), allow_volatile=False, report=report)


@pytest.mark.parametrize("answers", [{"CONFIG GET appendonly": SILENT}, {"INFO persistence": SILENT}])
async def test_a_silent_server_is_no_volatile_one(answers, report):
    """
    Nothing is known then.
    """
    with pytest.raises(RedisUnavailable):
        await check_persistence(Told(answers), allow_volatile=True, report=report)


@pytest.fixture
async def check(report):
    """
    Check whether a server is fit to remember what was used.
    """
    opened = []

    async def check(server, *, allow_eviction=False):
        opened.append(SharedIds(server.url, time.time))
        await check_memory(opened[-1], where=server.url, allow_eviction=allow_eviction, report=report)

    yield check
    for ids in opened:
        await ids.aclose()


async def test_a_fit_server_remembers_and_its_epoch_has_begun(redis_server, check, reported):
    """
    So that the first clients do not have to wait for as long as they would otherwise.
    """
    await check(redis_server)

    with redis_server.client() as client:
        assert client.exists("cc:e")
    assert reported == []


@pytest.mark.parametrize("policy", ["volatile-lru", "allkeys-lru"])
async def test_a_server_that_evicts_is_refused_unless_it_may(policy, start_redis, check, reported):
    """
    C09: everything that was used has an expiry, and would be among the first to go.
    """
    server = start_redis("--save", "", "--maxmemory-policy", policy)

    with pytest.raises(RedisUnfit) as refusal:
        await check(server)
    assert reported == []
    await check(server, allow_eviction=True)

    assert policy in str(refusal.value)
    assert "redis_allow_eviction" in str(refusal.value)
    assert [(facts["where"], facts["reason"]) for _, facts in reported] == [(server.url, "eviction")]


async def test_what_is_doubtful_is_reported_with_what_to_do(start_redis, check, reported):
    """
    A server whose CONFIG is forbidden starts the service, and so does one without a bound of its memory.
    """
    server = start_redis("--save", "", "--rename-command", "CONFIG", "")

    await check(server)

    ((event, facts),) = reported
    assert (event, facts["where"], facts["reason"]) == ("redis_doubtful", server.url, "eviction")
    assert "make sure" in facts["problem"]


async def test_a_server_without_memory_is_refused_for_that(start_redis, check):
    """
    What may be evicted has no part in it.
    """
    server = start_redis("--save", "")
    with server.client() as client:
        client.config_set("maxmemory", 1)

    with pytest.raises((RedisUnfit, StoreUnreachable)) as refusal:
        await check(server, allow_eviction=True)

    assert "redis_allow_eviction" not in str(refusal.value)


async def test_a_server_that_is_gone_is_out_of_reach(redis_server, check):
    """
    At once, and the message names the place.
    """
    redis_server.kill()

    with pytest.raises(StoreUnreachable) as refusal:
        await check(redis_server)

    assert (refusal.value.where, refusal.value.outcome) == (redis_server.url, "unchanged")


class Slow:
    """
    Something that remembers, and answers in time only when it is asked that often.
    """

    def __init__(self, tries, answer):
        self.left, self.answer = tries, answer

    async def check(self, *, allow_eviction):
        self.left -= 1
        if self.left:
            raise ReplayStoreUnavailable("no connection to Redis within the deadline")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


DOUBT = Finding("memory", "warning", "no maxmemory", "the primary of 'a', port 7000")


async def test_a_connection_that_takes_its_time_is_waited_for(report, reported):
    """
    The deadline of a use is too short for the first one on a busy machine.
    """
    told = {"where": "redis://there", "allow_eviction": False, "report": report}

    await check_memory(Slow(20, (Finding("version", "ok", ""), DOUBT)), **told)
    with pytest.raises(RedisUnfit):
        await check_memory(Slow(3, UnfitRedis((DOUBT,))), **told)
    with pytest.raises(StoreUnreachable):
        await check_memory(Slow(21, ()), **told)

    where = "redis://there, the primary of 'a', port 7000"
    assert reported == [("redis_doubtful", {"where": where, "reason": "memory", "problem": "no maxmemory"})]
