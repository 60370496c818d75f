"""
What is special to sign-ins in Redis: what a copy of it tells, what spoils it, instances that race, and servers that fail.
"""

import asyncio
import time
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from issuer.redis_connection import RedisConnection, RedisUnavailable
from issuer.redis_url import parse_redis_url
from issuer.sign_ins import CONVERSATION_MEMORY_S, LOGOUT_MEMORY_S
from issuer.sign_ins_redis import RedisSignIns
from keys import SealingKey, SealingKeys

from .sign_in_event import EVENT, OTHER, WHO
from .world import NOW

pytestmark = pytest.mark.anyio

ENDS = NOW + 28_800
NEW, OLD = SealingKey("2026-11", b"\x11" * 32), SealingKey("2026-05", b"\x22" * 32)
BOTH = SealingKeys(NEW, OLD)
PATIENCE_S = 20.0


@pytest.fixture
async def connect():
    """
    Open connections, which end with the test.
    """
    opened = []

    def open_one(url, deadline_s=PATIENCE_S):
        opened.append(RedisConnection(parse_redis_url(url), deadline_s))
        return opened[-1]

    yield open_one
    for connection in opened:
        await connection.aclose()


@pytest.fixture
def build(connect, redis_server):
    return lambda sealing=BOTH: RedisSignIns(connect(redis_server.url), sealing)


@pytest.fixture
def store(build):
    return build()


async def added(store, event=EVENT, now=NOW, **changes):
    return (await store.add("acme", replace(event, **changes), now))[0]


async def alive(store, *ids, now=NOW):
    return [await store.find(*WHO, each, now) is not None for each in ids]


def keys_of(redis_server):
    with redis_server.client() as client:
        return sorted(client.keys())


def record_key(redis_server):
    (key,) = [each for each in keys_of(redis_server) if b":r:" in each]
    return key


async def eventually(holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def everything(redis_server):
    """
    Return all keys and values.
    """
    read = {b"string": lambda client, key: client.get(key), b"zset": lambda client, key: client.zrange(key, 0, -1)}
    with redis_server.client() as client:
        return {key: read[client.type(key)](client, key) for key in client.scan_iter()}


async def test_a_copy_of_redis_tells_of_no_customer(store, redis_server):
    """
    No key and no value has a customer, a session, a conversation, an id, the provider or the client in it.
    """
    ids = [await added(store), await added(store, OTHER), await added(store, OTHER, conversation=None)]

    copied = repr(everything(redis_server))

    assert len(copied) > 1000
    secrets = ("cus_48213", "cus_99", "session-1", "session-2", "conv-77", "login.shop.test", "shop", "orc_main", *ids)
    assert not any(secret in copied for secret in secrets)


async def test_every_key_has_an_expiry_of_its_own(store, redis_server):
    """
    Relative to the instant of recording, whatever the clock of Redis says; a conversation is remembered 1920 s longer.
    """
    await added(store, now=NOW + 0.25)

    with redis_server.client() as client:
        remaining = {key: client.pttl(key) / 1000 for key in client.scan_iter()}

    lived, remembered = ENDS - NOW - 0.25, ENDS - NOW - 0.25 + CONVERSATION_MEMORY_S
    for key, seconds in remaining.items():
        expected = remembered if key.endswith((b":m", b":c")) else lived
        assert expected - PATIENCE_S < seconds <= expected, key
    assert len(remaining) == 7


async def test_the_expiry_of_a_set_is_that_of_what_lives_longest(store, redis_server):
    """
    A shorter sign-in of the same customer shortens nothing.
    """
    await added(store)
    await added(store, expires_at=NOW + 60)

    with redis_server.client() as client:
        remaining = sorted(client.ttl(key) for key in client.scan_iter() if b":r:" in key)
        assert remaining[0] <= 60
        assert all(client.ttl(key) > 28_000 for key in client.scan_iter() if b":r:" not in key)


async def test_all_keys_of_a_client_lie_in_one_slot(store, redis_server):
    """
    They share a hash tag, which says nothing about the client.
    """
    await added(store)
    await store.add("acme", replace(EVENT, client_id="orc_other"), NOW)

    tags = {key.split(b"}")[0] for key in keys_of(redis_server)}

    assert len(tags) == 2
    assert all(tag.startswith(b"cc:s:{") and len(tag) == 28 for tag in tags)


async def test_nothing_is_left_of_what_ended(store, redis_server):
    """
    But that somebody was in the conversation.
    """
    ids = [await added(store), await added(store, level="high")]
    for sign_in_id in ids:
        assert await store.end(*WHO, (await store.find(*WHO, sign_in_id, NOW)).handle, NOW)

    assert [key.partition(b"}")[2][:3] for key in keys_of(redis_server)] == [b":c", b":c:"]


async def test_what_expired_is_cleaned_away_by_the_next(store, redis_server):
    """
    Also where it is counted and indexed beside what is alive.
    """
    ids = [await added(store)]
    await added(store, now=ENDS - 0.05)
    await eventually(lambda: len([key for key in keys_of(redis_server) if b":r:" in key]) == 1)

    ids.append(await added(store))

    handles = {(await store.find(*WHO, each, NOW)).handle.encode() for each in ids}
    sets = {key: set(value) for key, value in everything(redis_server).items() if isinstance(value, list)}
    assert [key.partition(b"}")[2][:3] for key in sorted(sets)] == [b"", b":c", b":c:", b":s:", b":u:"]
    assert all(value == handles for key, value in sets.items() if not key.endswith(b":c"))


@pytest.mark.parametrize("limit", ["max_per_client", "max_per_customer"])
async def test_what_expired_takes_no_room(connect, redis_server, limit):
    """
    Neither of the client nor of the customer, whose other sign-ins are alive.
    """
    store = RedisSignIns(connect(redis_server.url), BOTH, **{limit: 2})
    first = await added(store)
    await added(store, now=ENDS - 0.05)
    assert await store.add("acme", EVENT, NOW) == "full"
    await eventually(lambda: len([key for key in keys_of(redis_server) if b":r:" in key]) == 1)

    second = await added(store)

    assert await alive(store, first, second) == [True, True]
    assert await store.add("acme", EVENT, NOW) == "full"


async def test_a_conversation_that_is_forgotten_takes_no_room(connect, redis_server):
    """
    It makes way for another one.
    """
    store = RedisSignIns(connect(redis_server.url), BOTH, max_per_client=1)
    for name in ("conv-1", "conv-2"):
        _, sign_in = await store.add("acme", replace(EVENT, conversation=name), NOW)
        await store.end(*WHO, sign_in.handle, NOW)
    assert await store.add("acme", EVENT, NOW) == "full"
    (remembered,) = [key for key in keys_of(redis_server) if key.endswith(b":c")]
    with redis_server.client() as client:
        client.zadd(remembered, {client.zrange(remembered, 0, 0)[0]: 1_000})

    assert await alive(store, await added(store)) == [True]


async def test_a_logout_cleans_what_expired(store, redis_server):
    """
    What is gone already is not counted, and leaves the sets.
    """
    await added(store, conversation=None, sid="session-9")
    await added(store, now=ENDS - 0.05)
    await eventually(lambda: len([key for key in keys_of(redis_server) if b":r:" in key]) == 1)

    assert (
        await store.end_at_logout(*WHO, EVENT.provider_issuer, sub=EVENT.sub, sid=EVENT.sid, issued_at=NOW, now=NOW)
        == 0
    )
    (customer,) = [value for key, value in everything(redis_server).items() if b"}:u:" in key]
    assert len(customer) == 1


@pytest.mark.parametrize("sid", [None, EVENT.sid])
async def test_a_logout_is_remembered_as_long_as_it_matters(store, redis_server, sid):
    """
    Until an ID token from before it is too old by any clock, counted from when it was issued; a late one has a moment left.
    """
    for issued_at in (NOW - 300, NOW):
        await store.end_at_logout(*WHO, EVENT.provider_issuer, sub="cus_1", sid=sid, issued_at=issued_at, now=NOW)
    await store.end_at_logout(*WHO, EVENT.provider_issuer, sub="cus_2", sid=None, issued_at=0, now=NOW)

    with redis_server.client() as client:
        remaining = sorted(client.pttl(key) / 1000 for key in client.scan_iter() if b":l:" in key)
    names = (1 if sid is None else 2) * len(BOTH.ids)
    assert all(0 < each <= 1 for each in remaining[:-names])
    assert all(LOGOUT_MEMORY_S - PATIENCE_S < each <= LOGOUT_MEMORY_S for each in remaining[-names:])


async def test_a_logout_is_known_after_another_key_has_come_to_seal(build):
    """
    What an instance with the earlier key remembered, one with the later key in front finds.
    """
    before, after = build(SealingKeys(OLD, NEW)), build(BOTH)
    await before.end_at_logout(*WHO, EVENT.provider_issuer, sub=EVENT.sub, sid=EVENT.sid, issued_at=NOW, now=NOW)

    assert await after.add("acme", EVENT, NOW) == "logged_out"
    assert await after.add("acme", replace(EVENT, sid=None), NOW) == "logged_out"


async def test_redis_forgets_by_its_own_clock(store, redis_server):
    """
    A clock of ours that stands still keeps no sign-in alive.
    """
    sign_in_id = await added(store, now=ENDS - 0.05)

    await eventually(lambda: not any(b":r:" in key for key in keys_of(redis_server)))

    assert await alive(store, sign_in_id) == [False]


@pytest.mark.parametrize("sealing", [SealingKeys(OLD), SealingKeys(SealingKey("2026-11", b"\x33" * 32))])
async def test_another_sealing_key_opens_nothing(store, build, sealing):
    """
    Neither one of another id nor another one of the same id: there is no such sign-in, nor anything to log out.
    """
    sign_in_id = await added(store)
    handle = (await store.find(*WHO, sign_in_id, NOW)).handle
    other = build(sealing)

    assert await other.find(*WHO, sign_in_id, NOW) is None
    assert await other.describe(*WHO, handle, NOW) is None
    assert (
        await other.end_at_logout(*WHO, EVENT.provider_issuer, sub=EVENT.sub, sid=EVENT.sid, issued_at=NOW, now=NOW)
        == 0
    )
    assert await alive(store, sign_in_id) == [True]


@pytest.mark.parametrize("way", ["end", "sub", "sid", "both"])
async def test_a_sign_in_under_an_earlier_key_goes_on(build, way):
    """
    It is found, described, ended and logged out after another key has come to seal.
    """
    before, after = build(SealingKeys(OLD, NEW)), build(BOTH)
    sign_in_id = await added(before)
    handle = (await after.find(*WHO, sign_in_id, NOW)).handle
    assert await after.describe(*WHO, handle, NOW) == await before.describe(*WHO, handle, NOW)

    if way == "end":
        assert await after.end(*WHO, handle, NOW)
    else:
        who = {"sub": EVENT.sub if way != "sid" else None, "sid": EVENT.sid if way != "sub" else None}
        assert await after.end_at_logout(*WHO, EVENT.provider_issuer, **who, issued_at=NOW, now=NOW) == 1

    assert await alive(before, sign_in_id) == [False]


async def test_a_conversation_goes_on_when_another_key_seals(build):
    """
    Its customer is still the same, and a different one ends sign-ins under both keys.
    """
    before, after = build(SealingKeys(OLD, NEW)), build(BOTH)
    weak, strong = await added(before), await added(after, level="high")
    assert await alive(after, weak, strong) == [True, True]

    second = await after.add("acme", OTHER, NOW + 60)

    assert await alive(after, weak, strong, second[0]) == [False, False, True]
    assert second[1].confirmed_after == NOW + 65


async def test_a_conversation_under_an_earlier_key_ends_for_a_different_customer(build):
    """
    The first one's sign-ins under the earlier key end, and the change is remembered under the key that seals.
    """
    before, after, alone = build(SealingKeys(OLD, NEW)), build(BOTH), build(SealingKeys(NEW))
    first = await added(before)
    second = (await after.add("acme", OTHER, NOW + 60))[0]

    assert await alive(after, first, second) == [False, True]
    third = await alone.add("acme", EVENT, NOW + 120)
    assert await alive(after, second, third[0]) == [False, True]
    assert third[1].confirmed_after == NOW + 125


async def test_instances_with_keys_in_another_order_keep_one_conversation(build, redis_server):
    """
    While keys are being changed, either order finds what the other wrote.
    """
    one, two = build(SealingKeys(OLD, NEW)), build(BOTH)
    ids = [await added(store) for store in (one, two, one, two, one)]

    stored = everything(redis_server)
    assert len([key for key in stored if key.endswith(b":m")]) == 1
    assert [len(value) for key, value in stored.items() if key.endswith(b":c")] == [1]
    second = await two.add("acme", OTHER, NOW + 60)
    assert await alive(one, *ids, second[0]) == [False] * 5 + [True]


@pytest.mark.parametrize("first", [EVENT, OTHER], ids=["same", "different"])
async def test_instances_that_know_one_key_each_are_put_right_by_one_that_knows_both(build, first):
    """
    Keys that were changed in the wrong order let two customers into one conversation; the next sign-in leaves one.
    """
    ids = [await added(build(SealingKeys(OLD)), first), await added(build(SealingKeys(NEW)), OTHER)]
    both = build(BOTH)
    assert await alive(both, *ids) == [True, True]

    third = await both.add("acme", replace(OTHER, level="high"), NOW + 60)

    assert await alive(both, *ids, third[0]) == [False, True, True]


async def test_what_one_key_alone_remembers_counts_for_both(build):
    """
    Of two instants the later one is the customer's.
    """
    other, alone = build(SealingKeys(OLD)), build(SealingKeys(NEW))
    await added(other, OTHER)
    await added(alone, EVENT)
    await added(alone, OTHER, NOW + 10)

    _, third = await build(BOTH).add("acme", OTHER, NOW + 60)

    assert third.confirmed_after == NOW + 15


async def test_what_was_sealed_for_another_place_does_not_open(store, redis_server):
    """
    A record put under another client, workspace or handle is nobody's.
    """
    sign_in_id = await added(store)
    handle = (await store.find(*WHO, sign_in_id, NOW)).handle
    blob = everything(redis_server)[record_key(redis_server)]
    other = await added(store, OTHER, conversation=None)
    places = {("acme", "orc_other"): handle, ("other", "orc_main"): handle}
    places[WHO] = (await store.find(*WHO, other, NOW)).handle

    for (workspace, client_id), name in places.items():
        await store.add(workspace, replace(EVENT, client_id=client_id, conversation=None), NOW)
        base = store._client(workspace, client_id).key
        with redis_server.client() as client:
            client.set(f"{base}:r:{name}", blob)
        assert await store.find(workspace, client_id, sign_in_id, NOW) is None or (workspace, client_id) == WHO
        assert await store.describe(workspace, client_id, name, NOW) is None
    assert await alive(store, sign_in_id, other) == [True, False]


def damaged(blob):
    """
    Return a record changed in one of many ways.
    """
    words = blob.split(b" ")
    for at in range(5, 8):
        yield b" ".join([*words[:at], *words[at + 1 :]])
        yield b" ".join([*words[:at], b"", *words[at + 1 :]])
        yield b" ".join([*words[:at], words[at][:-1], *words[at + 1 :]])
        yield b" ".join([*words[:at], words[at][:6], *words[at + 1 :]])
        yield b" ".join([*words[:at], b"A" + words[at][1:] if words[at][:1] != b"A" else b"B", *words[at + 1 :]])
    yield b" ".join([*words[:6], words[7], words[6]])
    yield b" ".join([*words[:5], b"2026-05", *words[6:]])
    yield from (b"", b" ", b"\xff", blob[:50], b"-1" + blob[1:], b"x" + blob, b"9" * 20 + blob, blob + b" x")


async def test_a_damaged_record_is_none(store, redis_server):
    """
    Whatever was changed in what is sealed, there is no such sign-in, and it can be ended.
    """
    sign_in_id = await added(store)
    handle = (await store.find(*WHO, sign_in_id, NOW)).handle
    key = record_key(redis_server)
    blob = everything(redis_server)[key]

    for spoilt in damaged(blob):
        with redis_server.client() as client:
            client.set(key, spoilt)
        assert await alive(store, sign_in_id) == [False], spoilt
        await store.describe(*WHO, handle, NOW)
    await store.end(*WHO, handle, NOW)
    assert key not in keys_of(redis_server)


async def test_records_cannot_be_put_together_from_two(store, redis_server):
    """
    The level of one sign-in and the customer of another do not go together.
    """
    weak, strong = await added(store, level="low"), await added(store, level="high")
    base = store._client(*WHO).key
    keys = [f"{base}:r:{(await store.find(*WHO, each, NOW)).handle}" for each in (weak, strong)]
    with redis_server.client() as client:
        mine, theirs = (client.get(key).split(b" ") for key in keys)
        client.set(keys[0], b" ".join([*mine[:5], theirs[5], mine[6]]))

    assert await alive(store, weak, strong) == [False, True]


@pytest.mark.parametrize("spoilt", [b"", b"x", b"w:x y", b"-", b"w:x 9999999999999"])
async def test_a_conversation_that_cannot_be_read_is_somebody_elses(store, redis_server, spoilt):
    """
    Who was there is not known, so the sign-ins of it end.
    """
    first = await added(store)
    (memory,) = [key for key in keys_of(redis_server) if key.endswith(b":m")]
    with redis_server.client() as client:
        client.set(memory, spoilt)

    _, again = await store.add("acme", EVENT, NOW + 60)

    assert await alive(store, first) == [False]
    assert again.confirmed_after >= NOW + 65


async def test_what_is_no_instant_is_no_answer(store, redis_server):
    """
    A conversation that somebody spoilt in Redis takes no sign-in.
    """
    await added(store)
    (memory,) = [key for key in keys_of(redis_server) if key.endswith(b":m")]
    with redis_server.client() as client:
        client.set(memory, b"w:x " + b"9" * 400)

    with pytest.raises(RedisUnavailable):
        await store.add("acme", EVENT, NOW)


async def test_a_key_of_another_type_is_no_answer(store, redis_server):
    """
    It cannot be told whether there is a sign-in.
    """
    sign_in_id = await added(store)
    key = record_key(redis_server)
    with redis_server.client() as client:
        client.delete(key)
        client.rpush(key, "x")

    with pytest.raises(RedisUnavailable) as refusal:
        await store.find(*WHO, sign_in_id, NOW)

    assert refusal.value.problem == "it answered WRONGTYPE"


@pytest.mark.parametrize("loss", ["flush", "restart"])
async def test_sign_ins_are_gone_with_the_data(store, redis_server, loss):
    """
    Customers sign in again.
    """
    sign_in_id = await added(store)
    handle = (await store.find(*WHO, sign_in_id, NOW)).handle

    if loss == "flush":
        with redis_server.client() as client:
            client.flushall()
    else:
        await store._connection.aclose()
        redis_server.restart()

    assert await alive(store, sign_in_id) == [False]
    assert await store.end(*WHO, handle, NOW) is False
    assert await alive(store, await added(store)) == [True]


@pytest.mark.parametrize("way", ["pause", "stop"])
async def test_a_server_that_does_not_answer_is_an_error(connect, redis_server, way):
    """
    Nothing is said about any sign-in, in the time that an operation has.
    """
    store = RedisSignIns(connect(redis_server.url, 0.25), BOTH)
    getattr(redis_server, way)()

    started = time.monotonic()
    for asked in (
        store.add("acme", EVENT, NOW),
        store.find(*WHO, "A" * 43, NOW),
        store.describe(*WHO, "A" * 22, NOW),
        store.end(*WHO, "A" * 22, NOW),
        store.end_at_logout(*WHO, EVENT.provider_issuer, sub=EVENT.sub, sid=None, issued_at=NOW, now=NOW),
        store.has_logged_out(*WHO, EVENT.provider_issuer, sub=EVENT.sub, sid=None, issued_at=NOW),
    ):
        with pytest.raises(RedisUnavailable):
            await asked

    assert time.monotonic() - started < PATIENCE_S


async def test_what_is_asked_of_a_replica_has_no_answer(connect, start_redis):
    """
    It may not have heard yet what ended: neither a sign-in nor its end is taken from it.
    """
    primary = start_redis("--repl-diskless-sync-delay", "0")
    replica = start_redis("--replicaof", "127.0.0.1", str(primary.port))
    store, behind = (RedisSignIns(connect(each.url), BOTH) for each in (primary, replica))
    sign_in_id = await added(store)
    handle = (await store.find(*WHO, sign_in_id, NOW)).handle
    await eventually(lambda: any(b":r:" in key for key in keys_of(replica)))

    for asked in (
        behind.add("acme", EVENT, NOW),
        behind.find(*WHO, sign_in_id, NOW),
        behind.describe(*WHO, handle, NOW),
        behind.end(*WHO, handle, NOW),
        behind.end_at_logout(*WHO, EVENT.provider_issuer, sub="nobody", sid=None, issued_at=NOW, now=NOW),
        behind.has_logged_out(*WHO, EVENT.provider_issuer, sub=EVENT.sub, sid=None, issued_at=NOW),
    ):
        with pytest.raises(RedisUnavailable) as refusal:
            await asked
        assert refusal.value.problem in {"it answered ReadOnlyError", "it answered READONLY"}
    assert await alive(store, sign_in_id) == [True]


async def test_a_primary_without_the_replicas_it_needs_has_no_answer(connect, start_redis):
    """
    With `min-replicas-to-write` one that was cut off tells of no sign-in, which may have ended elsewhere.
    """
    alone = start_redis("--save", "")
    store = RedisSignIns(connect(alone.url), BOTH)
    sign_in_id = await added(store)
    with alone.client() as client:
        client.config_set("min-replicas-to-write", 1)

    with pytest.raises(RedisUnavailable) as refusal:
        await store.find(*WHO, sign_in_id, NOW)

    assert refusal.value.problem == "it answered NOREPLICAS"


async def test_a_full_server_still_finds_and_ends(connect, start_redis):
    """
    There is no room for another sign-in, and nothing of the ones there is forgotten or stuck.
    """
    server = start_redis("--save", "")
    store = RedisSignIns(connect(server.url), BOTH)
    first, second = await added(store), await added(store)
    with server.client() as client:
        client.config_set("maxmemory", 1)

    with pytest.raises(RedisUnavailable):
        await added(store)
    assert await alive(store, first, second) == [True, True]
    assert await store.end(*WHO, (await store.find(*WHO, first, NOW)).handle, NOW)
    assert await store.end_at_logout(*WHO, EVENT.provider_issuer, sub=EVENT.sub, sid=None, issued_at=NOW, now=NOW) == 1
    assert await alive(store, first, second) == [False, False]


class Confused:
    """
    A connection that gives one answer to everything.
    """

    where = "redis://confused"

    def __init__(self, answer):
        self._answer = answer

    async def call(self, *_):
        return self._answer

    async def eval(self, *_):
        return self._answer


@pytest.mark.parametrize("answer", [None, b"", b"OK", 1, b"A" * 22 + b" 0", b"A" * 22 + b" full", [b"x"]])
async def test_an_answer_to_another_question_is_none(answer):
    """
    No sign-in is recorded, found, described or ended by it.
    """
    store = RedisSignIns(Confused(answer), BOTH)

    with pytest.raises(RedisUnavailable):
        await store.add("acme", EVENT, NOW)
    assert await store.find(*WHO, "A" * 43, NOW) is None
    assert await store.describe(*WHO, "A" * 22, NOW) is None
    assert await store.end(*WHO, "A" * 22, NOW) is False
    with pytest.raises(RedisUnavailable):
        await store.has_logged_out(*WHO, EVENT.provider_issuer, sub=EVENT.sub, sid=None, issued_at=NOW)
    if answer != 1:
        with pytest.raises(RedisUnavailable):
            await store.end_at_logout(*WHO, EVENT.provider_issuer, sub=EVENT.sub, sid=None, issued_at=NOW, now=NOW)


@pytest.fixture
def cluster(start_redis):
    """
    A cluster of one server that has all slots.
    """
    server = start_redis("--cluster-enabled", "yes", "--save", "")
    with server.client() as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE 0 16383")
    return server


class Silent:
    """
    A connection that must not be used.
    """

    where = "redis://silent"


@pytest.mark.parametrize("text", ["", "A" * 23, "A" * 42 + "B", "*" * 22, "A:r:" + "A" * 18, "x" * 100_000])
async def test_what_can_be_no_sign_in_is_not_asked_for(text):
    """
    Redis never sees a text that somebody made up.
    """
    store = RedisSignIns(Silent(), BOTH)

    assert await store.find(*WHO, text, NOW) is None
    assert await store.describe(*WHO, text, NOW) is None
    assert await store.end(*WHO, text, NOW) is False


async def test_a_cluster_keeps_sign_ins(connect, cluster):
    """
    Every operation works where keys have slots.
    """
    with cluster.client() as client:
        await eventually(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
    store = RedisSignIns(connect(cluster.url.replace("redis", "redis+cluster")), BOTH)
    first, other = await added(store), await added(store, conversation=None)

    second_id, second = await store.add("acme", OTHER, NOW + 60)

    assert second.confirmed_after == NOW + 65
    assert await alive(store, first, other, second_id) == [False, True, True]
    assert (await store.describe(*WHO, second.handle, NOW)).level == "standard"
    assert await store.end(*WHO, second.handle, NOW)
    assert await store.end_at_logout(*WHO, EVENT.provider_issuer, sub=EVENT.sub, sid=None, issued_at=NOW, now=NOW) == 1
    assert await alive(store, first, other, second_id) == [False, False, False]


@given(customers=st.lists(st.sampled_from([EVENT, OTHER]), min_size=2, max_size=8), instances=st.integers(1, 3))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_two_customers_who_sign_in_at_once_are_never_both_alive(redis_server, customers, instances):
    """
    However the instances race there is one order: whoever is left is one customer, told of the other if they came later.
    """

    async def race():
        connections = [RedisConnection(parse_redis_url(redis_server.url), PATIENCE_S) for _ in range(instances)]
        stores = [RedisSignIns(connection, BOTH) for connection in connections]
        try:
            await connections[0].call("FLUSHALL")
            started = [
                stores[number % instances].add("acme", event, NOW + number) for number, event in enumerate(customers)
            ]
            ids = [sign_in_id for sign_in_id, _ in await asyncio.gather(*started)]
            return [found for each in ids if (found := await stores[0].find(*WHO, each, NOW)) is not None]
        finally:
            for connection in connections:
                await connection.aclose()

    left = asyncio.run(race())

    assert len({found.sub for found in left}) == 1
    if len({event.sub for event in customers}) == 2:
        assert all(found.confirmed_after is not None for found in left)
