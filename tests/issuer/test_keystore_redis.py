"""
The store of rings in Redis: compare-and-set among instances, refusals that leave it as it is, answers that get lost.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import keys
from issuer.keystore_redis import RedisKeyStore
from issuer.redis_connection import RedisConnection, RedisUnavailable
from issuer.redis_url import parse_redis_url
from issuer.rings import LiveRing
from keys import (
    FileKeyStore,
    KeyTimes,
    NameTaken,
    RevisionConflict,
    RingCorrupt,
    RingMissing,
    RingOfAnotherWorkspace,
    RingOlder,
    RingRolledBack,
    SealedStore,
    SealingKey,
    SealingKeys,
    SealingKeyUnknown,
    SealingKeyWrong,
    StoreUnreachable,
    create_ring,
    export_blob,
    import_blob,
    reseal,
    rotate,
    seal_ring,
    sealed_with,
)

pytestmark = pytest.mark.anyio

CHILD = Path(__file__).with_name("redis_child.py")
NOW = 1_796_040_000
TIMES = KeyTimes()
NEW, OLD = SealingKey("2026-11", b"\x11" * 32), SealingKey("2026-05", b"\x22" * 32)
SEALING = SealingKeys(NEW, OLD)
KEY = "cc:k:{acme}"
PATIENCE_S = 20.0


@pytest.fixture
async def connection(redis_server):
    connection = RedisConnection(parse_redis_url(redis_server.url), PATIENCE_S)
    yield connection
    await connection.aclose()


@pytest.fixture
def store(connection):
    return RedisKeyStore(connection, "acme", SEALING)


@pytest.fixture(scope="module")
def ring():
    return create_ring("acme", now=NOW, times=TIMES)


@pytest.fixture(scope="module")
def next_ring(ring):
    return rotate(ring, now=NOW + 350, times=TIMES, expected_active=None).ring


@pytest.fixture
async def saved(store, ring):
    """
    A store with a ring at revision 1.
    """
    await store.save(ring, expect=0)
    return store


def stored(redis_server):
    with redis_server.client() as client:
        return client.hgetall(KEY)


def put(redis_server, **members):
    with redis_server.client() as client:
        client.hset(KEY, mapping=members)


async def test_a_ring_comes_back_from_redis(store, ring, redis_server):
    """
    Creating gives revision 1, loading the equal ring; what is stored is sealed.
    """
    as_protocol: SealedStore = store

    assert await as_protocol.save(ring, expect=0) == 1
    assert await as_protocol.load() == (ring, 1)
    found = stored(redis_server)
    assert found[b"rev"] == b"1"
    assert found[b"blob"].count(b".") == 4
    assert ring.active.private_jwk.reveal()["d"].encode() not in found[b"blob"]


async def test_each_save_counts_up(saved, ring, next_ring):
    """
    The revision goes up by one a save, and the last ring is the one that is loaded.
    """
    assert await saved.save(next_ring, expect=1) == 2
    assert await saved.save(ring, expect=2) == 3
    assert await saved.load() == (ring, 3)


async def test_a_stale_save_is_refused(saved, connection, ring, next_ring, redis_server):
    """
    F01: who slept through a change cannot overwrite it.
    """
    await RedisKeyStore(connection, "acme", SEALING).save(next_ring, expect=1)
    before = stored(redis_server)

    with pytest.raises(RevisionConflict) as refusal:
        await saved.save(ring, expect=1)

    assert (refusal.value.expected, refusal.value.found) == (1, 2)
    assert stored(redis_server) == before


async def test_creating_never_replaces(saved, ring, redis_server):
    """
    F01: the second of two creations is told that there is a ring.
    """
    before = stored(redis_server)

    with pytest.raises(RevisionConflict) as refusal:
        await saved.save(ring, expect=0)

    assert (refusal.value.expected, refusal.value.found) == (0, 1)
    assert stored(redis_server) == before


async def test_two_creations_at_once_make_one_ring(connection):
    """
    F01: of eight that create together one wins, the others learn of it, and all load the same ring.
    """
    rings = [create_ring("acme", now=NOW, times=TIMES) for _ in range(8)]
    stores = [RedisKeyStore(connection, "acme", SEALING) for _ in rings]

    attempts = (store.save(ring, expect=0) for store, ring in zip(stores, rings, strict=True))
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)

    assert outcomes.count(1) == 1
    assert sum(isinstance(outcome, RevisionConflict) for outcome in outcomes) == 7
    assert {(await store.load())[0].active.kid for store in stores} == {rings[outcomes.index(1)].active.kid}


async def test_a_missing_ring_is_never_made_up(store, ring, redis_server):
    """
    F08, F12: loading and saving over nothing say what creates a ring, and nothing appears.
    """
    with pytest.raises(RingMissing) as refusal:
        await store.load()
    with pytest.raises(RingMissing):
        await store.save(ring, expect=1)

    assert "keys init" in str(refusal.value)
    assert stored(redis_server) == {}


async def test_a_ring_that_vanished_is_not_saved_over(store, ring, next_ring, redis_server, monkeypatch):
    """
    Between the look at what is stored and the write anything may happen.
    """
    await store.save(ring, expect=0)
    read_blob = RedisKeyStore.read_blob

    async def vanish(self):
        blob = await read_blob(self)
        with redis_server.client() as client:
            client.delete(KEY)
        return blob

    monkeypatch.setattr(RedisKeyStore, "read_blob", vanish)
    with pytest.raises(RingMissing):
        await store.save(next_ring, expect=1)

    assert stored(redis_server) == {}


async def test_a_hash_without_a_ring_is_no_free_place(store, ring, redis_server):
    """
    Somebody wrote there; it is neither loaded nor replaced, even when it turns up at the last moment.
    """
    put(redis_server, rev="3")

    with pytest.raises(RingCorrupt):
        await store.load()
    with pytest.raises(RingCorrupt):
        await store.save(ring, expect=0)
    with pytest.raises(RingCorrupt):
        await store._write(b"", seal_ring(ring, revision=1, keys=SEALING), 0, 1)

    assert stored(redis_server) == {b"rev": b"3"}


@pytest.mark.parametrize("expect", [-1, -5])
async def test_mistakes_of_the_programmer_are_told(expect, store, ring):
    """
    A negative revision, a ring of another workspace, a name that is none, a blob that is not later.
    """
    with pytest.raises(ValueError, match="revision"):
        await store.save(ring, expect=expect)
    with pytest.raises(ValueError, match="workspace"):
        await store.save(create_ring("globex", now=NOW, times=TIMES), expect=0)
    with pytest.raises(ValueError, match="workspace"):
        RedisKeyStore(store._connection, "A/B", SEALING)
    with pytest.raises(ValueError, match="later"):
        await store.write_blob(seal_ring(ring, revision=1, keys=SEALING), expect=1)


def damages(blob):
    """
    The blob cut after every octet, and with one bit of every 64th octet flipped.
    """
    for length in range(len(blob)):
        yield blob[:length]
    for at in range(0, len(blob), 64):
        yield blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]


async def test_a_damaged_ring_is_refused_and_left(saved, next_ring, redis_server):
    """
    Cut anywhere, or with a bit flipped, it is neither loaded nor saved over.
    """
    whole = stored(redis_server)[b"blob"]
    tried = 0

    with redis_server.client() as client:
        for damaged in damages(whole):
            client.hset(KEY, "blob", damaged)
            # The damage is told before anything is written, so one look stands for load and save alike but now and then.
            with pytest.raises((RingCorrupt, SealingKeyUnknown, RingOfAnotherWorkspace)):
                await (saved.load() if tried % 50 else saved.save(next_ring, expect=1))
            assert client.hget(KEY, "blob") == damaged
            tried += 1

    assert tried == len(whole) + -(-len(whole) // 64)


async def test_what_does_not_belong_here_is_refused_and_left(saved, next_ring, redis_server):
    """
    Another workspace's blob, an older revision, and what other sealing keys have sealed.
    """
    await saved.save(next_ring, expect=1)
    older = seal_ring(next_ring, revision=1, keys=SEALING)
    foreign = seal_ring(create_ring("globex", now=NOW, times=TIMES), revision=9, keys=SEALING)
    lost = seal_ring(next_ring, revision=9, keys=SealingKeys(SealingKey("lost", b"\x07" * 32)))
    wrong = seal_ring(next_ring, revision=9, keys=SealingKeys(SealingKey(NEW.id, b"\x07" * 32)))

    for blob, error in (
        (older, RingRolledBack),
        (foreign, RingOfAnotherWorkspace),
        (lost, SealingKeyUnknown),
        (wrong, SealingKeyWrong),
    ):
        put(redis_server, blob=blob)
        with pytest.raises(error):
            await saved.load()
        with pytest.raises(error):
            await saved.save(next_ring, expect=2)
        assert stored(redis_server) == {b"rev": b"2", b"blob": blob}


async def test_a_stamp_changes_with_every_save(saved, ring, next_ring, redis_server):
    """
    F13: also when another ring of the same revision takes the place of this one, as after a failover.
    """
    stamps = [await saved.stamp(), await saved.stamp()]
    await saved.save(next_ring, expect=1)
    stamps.append(await saved.stamp())
    put(redis_server, blob=seal_ring(ring, revision=2, keys=SEALING))
    stamps.append(await saved.stamp())
    with redis_server.client() as client:
        client.delete(KEY)
    stamps.append(await saved.stamp())

    assert stamps[0] == stamps[1]
    assert len({str(stamp) for stamp in stamps}) == 4


async def test_a_save_is_published(saved, next_ring, connection):
    """
    Whoever listens knows at once that there is something to look at.
    """
    heard = asyncio.Queue()
    listening = asyncio.create_task(connection.listen([saved.channel], heard.put_nowait))
    await heard.get()

    await saved.save(next_ring, expect=1)

    assert await heard.get() == saved.channel == KEY
    listening.cancel()


async def test_who_may_not_publish_saves_all_the_same(saved, next_ring, redis_server):
    """
    The change counts; that others hear of it early does not.
    """
    with redis_server.client() as client:
        client.acl_setuser(
            "mute", enabled=True, passwords=["+secret"], keys=["*"], commands=["+@all"], reset_channels=True
        )
    url = redis_server.url.replace("//", "//mute:secret@")
    connection = RedisConnection(parse_redis_url(url), PATIENCE_S)

    assert await RedisKeyStore(connection, "acme", SEALING).save(next_ring, expect=1) == 2

    await connection.aclose()
    assert await saved.load() == (next_ring, 2)


class Lossy:
    """
    A connection that loses the answers to some of the commands that change something, or refuses them.
    """

    def __init__(self, connection, *fates):
        self.connection = connection
        self.fates = list(fates)
        self.where = connection.where

    async def call(self, command, *arguments):
        fate = self.fates.pop(0) if command == "EVAL" and self.fates else "answered"
        if fate == "refused":
            raise RedisUnavailable(self.where, "it answered READONLY", is_refusal=True)
        answer = None if fate == "gone" else await self.connection.call(command, *arguments)
        if fate != "answered":
            raise RedisUnavailable(self.where, "no answer in time")
        return answer


@pytest.mark.parametrize("fate", ["lost", "gone"])
async def test_a_save_whose_answer_is_lost_is_repeated_without_harm(fate, saved, connection, next_ring):
    """
    Whether or not the first one was carried out, it is saved once.
    """
    store = RedisKeyStore(Lossy(connection, fate), "acme", SEALING)

    assert await store.save(next_ring, expect=1) == 2
    assert await saved.load() == (next_ring, 2)


@pytest.mark.parametrize(
    ("fates", "outcome", "revision"),
    [
        (["lost", "lost"], "unknown", 2),
        (["gone", "gone"], "unknown", 1),
        (["lost", "refused"], "unknown", 2),
        (["refused"], "unchanged", 1),
    ],
)
async def test_a_save_without_an_answer_says_what_is_known(fates, outcome, revision, saved, connection, next_ring):
    """
    Only a refusal tells that nothing was changed; otherwise loading tells.
    """
    store = RedisKeyStore(Lossy(connection, *fates), "acme", SEALING)

    with pytest.raises(StoreUnreachable) as refusal:
        await store.save(next_ring, expect=1)

    assert refusal.value.outcome == outcome
    assert (await saved.load())[1] == revision


async def test_a_silent_redis_is_told_from_a_missing_ring(saved, ring, redis_server, connection):
    """
    Nothing is known of the ring then, and no word of the address is secret.
    """
    store = RedisKeyStore(connection.within(0.05), "acme", SEALING)
    redis_server.pause()

    for work in (store.load(), store.stamp(), store.save(ring, expect=1)):
        with pytest.raises(StoreUnreachable) as refusal:
            await work
        assert refusal.value.outcome == "unchanged"
    redis_server.resume()

    assert redis_server.url in str(refusal.value)


async def test_what_is_no_hash_is_left(store, ring, redis_server):
    """
    Another kind of value in the place of the ring is neither read nor replaced.
    """
    with redis_server.client() as client:
        client.set(KEY, "1")

    with pytest.raises(StoreUnreachable):
        await store.load()
    with pytest.raises(StoreUnreachable):
        await store.save(ring, expect=0)

    with redis_server.client() as client:
        assert client.get(KEY) == b"1"


async def test_rings_move_between_file_and_redis(saved, next_ring, tmp_path, redis_server):
    """
    As sealed text, both ways, and never backwards.
    """
    file = FileKeyStore(tmp_path / "acme.jwe", "acme", SEALING)

    assert await import_blob(file, await export_blob(saved))
    await file.save(next_ring, expect=1)
    with pytest.raises(RingOlder):
        await import_blob(file, await export_blob(saved))
    assert await import_blob(saved, await export_blob(file))
    assert not await import_blob(saved, await export_blob(file))

    assert await saved.load() == (next_ring, 2)
    assert stored(redis_server)[b"rev"] == b"2"


async def test_a_blob_is_written_from_the_revision_it_was_decided_on(saved, next_ring):
    """
    Compare-and-set holds for sealed text as for rings.
    """
    blob = seal_ring(next_ring, revision=5, keys=SEALING)

    for expect in (0, 4):
        with pytest.raises(RevisionConflict):
            await saved.write_blob(blob, expect=expect)
    assert await saved.write_blob(blob, expect=1) == 5
    assert await saved.load() == (next_ring, 5)


async def test_resealing_seals_with_the_first_key(connection, ring):
    """
    F06: afterwards the old sealing key is not needed any more.
    """
    await RedisKeyStore(connection, "acme", SealingKeys(OLD)).save(ring, expect=0)
    store = RedisKeyStore(connection, "acme", SEALING)

    assert await sealed_with(store) == "2026-05"
    assert await reseal(store)
    assert not await reseal(store)

    assert await RedisKeyStore(connection, "acme", SealingKeys(NEW)).load() == (ring, 2)


async def test_what_does_not_open_is_set_aside_on_purpose(saved, ring, redis_server):
    """
    It keeps all it had under another name, which nothing else may have.
    """
    put(redis_server, blob=b"damaged")
    before = stored(redis_server)

    aside = await saved.set_aside("damaged")
    with pytest.raises(RingMissing):
        await saved.set_aside("again")
    await RedisKeyStore(saved._connection, "acme", SEALING).save(ring, expect=0)
    with pytest.raises(NameTaken):
        await saved.set_aside("damaged")

    with redis_server.client() as client:
        assert client.hgetall(aside) == before
    assert aside == f"{KEY}:damaged"


async def test_a_running_service_follows_the_store(saved, next_ring):
    """
    What is saved is adopted with the next look.
    """
    reported = []
    live = await LiveRing.open(
        "acme", saved, now=lambda: NOW, monotonic=lambda: 0.0, report=lambda event, **_: reported.append(event)
    )

    await saved.save(next_ring, expect=1)
    await live.poll()

    assert live.current(NOW).kid == next_ring.active.kid
    assert reported == ["ring_adopted", "ring_adopted"]


ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "PYTHONPATH": str(Path(keys.__file__).parents[1]),
    "PYTHONDONTWRITEBYTECODE": "1",
}


def child(*arguments):
    command = [sys.executable, str(CHILD), *map(str, arguments)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_kill_at_any_step_leaves_a_whole_ring(redis_server):
    """
    Creating, rotating, revoking and resealing are killed before and after everything that is sent and received.

    What is stored is the old ring or the new one, never anything else, and the next rotation works.
    """
    process = child("crash", redis_server.url)
    output, _ = process.communicate(timeout=300)
    reports = [json.loads(line) for line in output.splitlines()]

    assert process.returncode == 0
    assert len(reports) >= 4 * 8
    assert {report["kind"] for report in reports} == {"create", "rotate", "revoke", "reseal"}
    for kind in ("create", "rotate", "revoke", "reseal"):
        assert {report["state"] for report in reports if report["kind"] == kind} == {"old", "new"}
    assert all(report["goes_on"] for report in reports)


def test_of_fifty_savers_in_five_processes_one_wins(redis_server):
    """
    F01: all begin from one revision; one ring is stored, and everybody else is told.
    """
    connection = RedisConnection(parse_redis_url(redis_server.url), PATIENCE_S)
    store = RedisKeyStore(connection, "acme", SEALING)

    async def at_first():
        await store.save(create_ring("acme", now=NOW, times=TIMES), expect=0)
        await connection.aclose()

    async def at_last():
        found = await store.load()
        await connection.aclose()
        return found

    asyncio.run(at_first())
    racers = [child("race", redis_server.url, 10) for _ in range(5)]
    assert [racer.stdout.readline() for racer in racers] == ['"ready"\n'] * 5
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    outcomes = [outcome for racer in racers for outcome in json.loads(racer.communicate(timeout=120)[0])]

    ring, revision = asyncio.run(at_last())
    assert len(outcomes) == 50
    assert [outcome for outcome in outcomes if outcome[0] == 2] == [[2, ring.active.kid, ring.standbys[-1].kid]]
    assert outcomes.count(["revision_conflict", 1, 2]) == 49
    assert revision == 2
