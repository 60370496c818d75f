"""
Used assertions in a Redis that instances share: once for all, each in its scope, and not told where it may have forgotten.
"""

import asyncio
import time

import pytest

from issuer.assertion_ids_redis import ASSERTIONS, ID_TOKENS, SharedIds
from issuer.redis_url import parse_redis_url
from verifier import ReplayStoreUnavailable
from verifier.replay_redis import ReplayQuarantine
from verifier.replay_redis_settings import ASYNCHRONOUS, settings_from_url

from .redis_kinds import begin_epoch, eventually

pytestmark = pytest.mark.anyio

ISSUER = "https://issuer.test"
LATE_S = 20


@pytest.fixture
async def connect(patient):
    """
    A function that opens identifiers at a URL; they are closed with the test.
    """
    opened = []

    def connect(url, now=time.time):
        opened.append(SharedIds(url, now))
        return opened[-1]

    yield connect
    for ids in opened:
        await ids.aclose()


@pytest.fixture
def settled(redis_server):
    """
    A Redis that an instance met an hour ago.
    """
    begin_epoch(redis_server, age_s=3600)
    return redis_server


def use(ids, issuer=ISSUER, client="orc_main", jti="jti-1", expires_in_s=60, age_s=0.0, prefix=ASSERTIONS):
    now = time.time()
    return ids.of(prefix).use(issuer, client, jti, int(now) + expires_in_s, now - age_s)


async def test_an_identifier_is_used_once_whoever_asks(connect, settled):
    """
    RFC 7523 section 3 item 7, E07: of two instances the second hears that it was used.
    """
    first, second = connect(settled.url), connect(settled.url)

    assert [await use(each) for each in (first, second, first)] == [True, False, False]


async def test_many_instances_at_once_use_it_once(connect, settled):
    """
    E07: one of them is the first.
    """
    instances = [connect(settled.url) for _ in range(4)]

    outcomes = await asyncio.gather(*(use(instances[number % 4]) for number in range(40)))

    assert outcomes.count(True) == 1


async def test_an_identifier_belongs_to_its_kind_client_and_issuer(connect, settled):
    """
    Elsewhere the same words are another one; that of an admin of the same name has an issuer of its own.
    """
    ids = connect(settled.url)
    elsewhere = [
        {},
        {"client": "orc_second"},
        {"issuer": f"{ISSUER}/w/acme"},
        {"issuer": f"{ISSUER}#admin"},
        {"jti": "jti-2"},
        {"prefix": ID_TOKENS},
        {"client": "https://login.test web", "prefix": ID_TOKENS},
    ]

    assert [await use(ids, **each) for each in elsewhere] == [True] * 7
    assert [await use(ids, **each) for each in elsewhere] == [False] * 7


async def test_what_stands_there_are_hashes_that_end(connect, settled):
    """
    One for each identifier, until nobody could accept it any more and clocks may disagree by two minutes.
    """
    ids = connect(settled.url)
    await use(ids, jti="jti-marked")
    await use(ids, jti="jti-marked", prefix=ID_TOKENS, expires_in_s=300)

    with settled.client() as client:
        kept = {name: client.ttl(name) for name in client.keys("cc:[jd]:*")}
    assert {name[:5]: len(name) for name in kept} == {b"cc:j:": 27, b"cc:d:": 27}
    assert sorted(kept.values()) == pytest.approx([180, 420], abs=LATE_S)


async def test_every_kind_of_redis_remembers(connect, redis_url):
    """
    One server, one behind a Sentinel, a cluster: what was issued before it was met is not told, what is issued later is.
    """
    first, second = connect(redis_url), connect(redis_url)
    with pytest.raises(ReplayQuarantine):
        await use(first)
    await asyncio.sleep(0.01)

    assert [await use(each, age_s=-10) for each in (first, second)] == [True, False]


async def test_on_a_new_redis_clients_are_served_after_five_seconds(connect, redis_server):
    """
    Until then what was used is not known to be all that was.
    """
    ids, refused = connect(redis_server.url), 0
    await ids.check(allow_eviction=False)
    started, outcome = time.monotonic(), None
    async with asyncio.timeout(LATE_S):
        while outcome is None:
            try:
                outcome = await use(ids)
            except ReplayQuarantine:
                refused += 1
                await asyncio.sleep(0.1)

    assert (outcome, refused > 0) == (True, True)
    assert time.monotonic() - started > 4.5


@pytest.mark.parametrize("forget", ["restart", "flush"])
async def test_what_was_used_before_it_forgot_is_not_told(connect, settled, forget):
    """
    A used assertion is no new one for that, and one that is signed after the first seconds is.
    """
    ids = connect(settled.url)
    assert await use(ids) is True
    if forget == "restart":
        settled.restart()
    else:
        with settled.client() as client:
            client.flushall()

    with pytest.raises(ReplayQuarantine):
        await use(ids)
    begin_epoch(settled, age_s=30)

    assert await use(ids, jti="jti-2", age_s=10) is True
    with pytest.raises(ReplayQuarantine):
        await use(ids, age_s=40)


@pytest.mark.parametrize(("age_s", "expires_in_s"), [(300, 300), (300, 1), (-5, 300), (0, 60)])
async def test_any_life_that_an_assertion_may_have_costs_no_more_seconds(connect, settled, age_s, expires_in_s):
    """
    A client that dates its assertions back is not refused for longer than others because of that.
    """
    ids = connect(settled.url)
    await use(ids, age_s=age_s, expires_in_s=expires_in_s)
    begin_epoch(settled, age_s=30)

    assert await use(ids, jti="jti-2", age_s=10) is True


async def test_a_redis_that_is_gone_cannot_tell(connect, settled):
    """
    And is asked again when it is back.
    """
    ids = connect(settled.url)
    assert await use(ids) is True
    settled.kill()
    with pytest.raises(ReplayStoreUnavailable) as refusal:
        await use(ids)
    assert not isinstance(refusal.value, ReplayQuarantine)
    settled.start()
    begin_epoch(settled, age_s=3600)

    assert await use(ids) is True


async def test_a_silent_redis_is_given_up_within_the_deadline(settled):
    """
    A quarter of a second.
    """
    ids = SharedIds(settled.url, time.time)
    settled.pause()
    started = time.monotonic()

    with pytest.raises(ReplayStoreUnavailable):
        await use(ids)

    assert time.monotonic() - started < LATE_S / 2
    await ids.aclose()
    settled.resume()


def test_they_are_used_in_one_event_loop_after_the_other(settled, patient):
    """
    A service is opened in one and runs in another; ended connections are made again, and none is left open.
    """
    ids = SharedIds(settled.url, time.time)

    async def used(jti):
        outcome = await use(ids, jti=jti)
        await ids.aclose()
        return outcome

    assert [asyncio.run(used("jti-1")), asyncio.run(used("jti-1")), asyncio.run(used("jti-2"))] == [True, False, True]
    with settled.client() as client:
        eventually(lambda: len(client.client_list()) == 1)


def test_no_more_clients_than_a_bound_are_kept_in_mind(monkeypatch):
    """
    Those of a configuration that was replaced do not stay for ever.
    """
    monkeypatch.setattr("issuer.assertion_ids_redis._MAX_SCOPES", 3)
    ids = SharedIds("redis://127.0.0.1:1", time.time)

    for number in range(10):
        ids.scope(ASSERTIONS, ISSUER, f"orc_{number}")

    assert ids._scoped.cache_info().currsize == 3


URLS = [
    "redis://db",
    "redis://db:7000/3",
    "redis://user:p%40ss%2F@db:7000/3",
    "redis://:p%25ss@db?protocol=3",
    "redis://[::1]:7000",
    "rediss://user:pass@db/1",
    "redis+sentinel://one,two:7000/service/2",
    "redis+sentinel://user:pass@one/service?sentinel_username=watch&sentinel_password=p%26",
    "rediss+sentinel://one/service",
    "redis+cluster://one,two:7000",
    "rediss+cluster://user:pass@one",
]


@pytest.mark.parametrize("url", URLS, ids=range(len(URLS)))
def test_both_readers_of_a_url_mean_the_same_redis(url):
    """
    The connection of the service, and the replay store, which has its own.
    """
    address, settings = parse_redis_url(url), settings_from_url(url, ASYNCHRONOUS)
    seeds = settings.seeds or (settings.options,)

    assert settings.kind == address.kind
    assert [(each["host"], each.get("port", 6379)) for each in seeds] == list(address.hosts)
    assert (settings.service or None) == address.service
    assert int(settings.options.get("db", 0)) == address.database
    assert settings.options.get("username") == address.username
    assert settings.options.get("password") == address.password
    assert ("SSL" in settings.connection_class.__name__) == address.is_tls
    if address.kind == "sentinel":
        names = {name: address.options.get(f"sentinel_{name}") for name in ("username", "password")}
        assert all({name: each[name] for name in names} == names for each in seeds)
