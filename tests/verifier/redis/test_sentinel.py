"""
A primary that Sentinels name: found, lost, and found again at another place that remembers less.
"""

import time

import pytest
import redis.asyncio
import redis.sentinel

from verifier import ReplayStoreUnavailable
from verifier.replay_redis import RedisReplayStore, ReplayQuarantine

from .servers import Epochs, Forwarder, read_command, replicates, wait_until

CONFIG = """
sentinel monitor svc 127.0.0.1 {port} 1
sentinel down-after-milliseconds svc 400
sentinel failover-timeout svc 2000
"""


@pytest.fixture
def service(start_server, raw_server):
    """
    A primary, a replica whose link can be held up, and the Sentinel that watches them.
    """
    primary = start_server("--save", "", "--repl-diskless-sync-delay", "0")
    link = Forwarder(raw_server, primary.port)
    replica = start_server("--save", "", "--replicaof", f"127.0.0.1 {link.port}")
    wait_until(lambda: replicates(replica))
    sentinel = start_server("--sentinel", config=CONFIG.format(port=primary.port))
    with sentinel.client() as client:
        wait_until(lambda: client.execute_command("SENTINEL", "REPLICAS", "svc") != [])
    Epochs(primary).begin(age_s=3600)
    return primary, replica, sentinel, link


def newer(held):
    return held.use("newer", int(time.time()) + 58, time.time() - 2)


def test_a_failover_to_a_replica_that_lagged(store, service):
    """
    Tokens whose records the new primary never got are refused by whoever lived through it and by whoever came after.
    """
    primary, replica, sentinel, link = service
    url = f"redis+sentinel://127.0.0.1:1,127.0.0.1:{sentinel.port}/svc"
    held, now = store(url), time.time()
    assert held.use("held by both", int(now) + 60, now) is True
    with replica.client() as client:
        wait_until(lambda: len(client.keys("cc:r:*")) == 1)
    link.holding = True
    assert held.use("lost", int(now) + 60, now) is True

    primary.kill()
    with sentinel.client() as client:
        wait_until(lambda: client.sentinel_get_master_addr_by_name("svc")[1] == replica.port)

    for each in (store(url), held):
        assert each.use("held by both", int(now) + 60, now) is False
        with pytest.raises(ReplayQuarantine):
            each.use("lost", int(now) + 60, now)
    Epochs(replica).age(60)
    assert newer(held) is True


def test_a_client_of_a_sentinel(store, face, service):
    """
    A client that `master_for` made is taken as it stands; one of replicas is refused.
    """
    _, _, sentinel, _ = service
    module = redis.sentinel if face is RedisReplayStore else redis.asyncio.sentinel
    asked = module.Sentinel([("127.0.0.1", sentinel.port)], socket_timeout=1)

    assert newer(store(asked.master_for("svc", decode_responses=True))) is True
    with pytest.raises(ValueError):
        store(asked.slave_for("svc"))


def test_a_service_that_no_sentinel_knows(store, service):
    """
    Without a primary nothing is accepted.
    """
    _, _, sentinel, _ = service

    with pytest.raises(ReplayStoreUnavailable, match="Sentinel"):
        newer(store(f"redis+sentinel://127.0.0.1:{sentinel.port}/another"))


def test_a_sentinel_that_says_nothing_is_asked_last(store, service, raw_server):
    """
    One that accepts connections and is silent costs its share of the time once; the others are asked first from then on.
    """

    async def silent(reader, _writer):
        await reader.read()

    _, _, sentinel, _ = service
    held = store(
        f"redis+sentinel://127.0.0.1:{raw_server.start(silent)},127.0.0.1:{sentinel.port}/svc", deadline_ms=3000
    )

    began = time.monotonic()
    held.open()
    assert 0.5 < time.monotonic() - began < 2.5
    held.run(_drop_connections(held))

    began = time.monotonic()
    held.open()
    assert time.monotonic() - began < 0.5


async def _drop_connections(held):
    held.store._links().pool.forget("")


def test_a_sentinel_that_points_to_a_replica(store, service, scripted, raw_server):
    """
    What is named a primary and is none is refused, and asked for again.
    """
    primary, replica, _, _ = service
    named = [replica.port, primary.port]

    async def sentinel(reader, writer):
        while True:
            words = await read_command(reader)
            if words[0] == b"SENTINEL":
                port = b"%d" % named.pop(0)
                writer.write(b"*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%b\r\n" % (len(port), port))
            else:
                writer.write(b"+OK\r\n")

    held = store(f"redis+sentinel://127.0.0.1:{raw_server.start(sentinel)}/svc")

    with pytest.raises(ReplayStoreUnavailable, match="ReadOnlyError"):
        newer(held)
    assert newer(held) is True
