"""
A cluster: each hash tag with an epoch record beside its claims, and a way to the primary that serves it.
"""

import time
from contextlib import ExitStack

import pytest
import redis
import redis.asyncio

from verifier import ReplayStoreUnavailable
from verifier.redis_doctor import UnfitRedis
from verifier.replay_redis import RedisReplayStore, ReplayQuarantine

from ...redis_server import free_port
from .conftest import BINARIES
from .servers import Epochs, Server, replicates, wait_until

SLOTS = ((0, 5460), (5461, 10922), (10923, 16383))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """
    Three primaries, and a replica of the first.
    """
    if BINARIES["valkey"] is None:
        pytest.skip("there is no Valkey to start")
    with ExitStack() as stack:
        yield joined([stack.enter_context(node(tmp_path_factory.mktemp(f"node-{n}"))) for n in range(4)])


def node(folder):
    bus = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--cluster-node-timeout", "2000")
    more = ("--save", "", "--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0")
    return Server(folder, *bus, *more, binary=BINARIES["valkey"])


def joined(nodes):
    for each, slots in zip(nodes[:3], SLOTS, strict=True):
        with each.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)
    with nodes[0].client() as client:
        for each in nodes[1:]:
            with each.client() as other:
                bus = other.config_get("cluster-port")["cluster-port"]
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", each.port, bus)
        own = client.execute_command("CLUSTER", "MYID")
    wait_until(lambda: all(knows_all(each) for each in nodes))
    with nodes[3].client() as client:
        client.execute_command("CLUSTER", "REPLICATE", own)
    wait_until(lambda: replicates(nodes[3]))
    return nodes


def knows_all(node):
    with node.client() as client:
        said = client.execute_command("CLUSTER", "INFO")
        return b"cluster_state:ok" in said and b"cluster_known_nodes:4" in said


@pytest.fixture
def nodes(cluster):
    """
    Hand out the nodes, empty, once they agree who serves what.
    """
    wait_until(lambda: len({served(node) for node in cluster}) == 1)
    for node in cluster:
        with node.client() as client:
            if client.info("replication")["role"] == "master":
                client.flushall()
    return cluster


def served(node):
    with node.client() as client:
        ranges = client.execute_command("CLUSTER", "SLOTS")
        return str(sorted((first, last, places[0][1]) for first, last, *places in ranges))


def primaries(nodes):
    found = []
    for node in nodes:
        with node.client() as client:
            if client.info("replication")["role"] == "master":
                found.append(node)
    return found


def records(node):
    with node.client() as client:
        return sorted(client.keys("cc:e:*"))


def settle(nodes):
    """
    Let an hour pass since the epochs of all tags.
    """
    for node in primaries(nodes):
        for key in records(node):
            Epochs(node, key.decode()).age(3600)


def url(nodes):
    return f"redis+cluster://127.0.0.1:{nodes[0].port},127.0.0.1:{nodes[1].port}"


def test_opening_writes_the_epochs_of_all_tags(store, nodes):
    """
    There is one record for each of 64 hash tags, each at the primary that serves it.
    """
    store(url(nodes)).open()

    written = [key for node in primaries(nodes) for key in records(node)]
    assert len(written) == len(set(written)) == 64
    assert all(records(node) for node in primaries(nodes))


def test_once_means_once_in_a_cluster(store, nodes):
    """
    Every token is accepted once, wherever its tag is served, by however many stores.
    """
    held, other = store(url(nodes), max_connections=2), store(url(nodes))
    held.open()
    settle(nodes)
    now = time.time()

    assert [held.use(str(number), int(now) + 58, now - 2) for number in range(60)] == [True] * 60
    assert [other.use(str(number), int(now) + 58, now - 2) for number in range(60)] == [False] * 60
    claims = []
    for node in primaries(nodes):
        with node.client() as client:
            claims += client.keys("cc:r:*")
    assert len(claims) == 60
    assert all(key[5:6] == b"{" and key[7:8] == b"}" and len(key) == 29 for key in claims)


def test_a_client_of_a_cluster(store, face, nodes):
    """
    A cluster client is taken as it stands.
    """
    if face is RedisReplayStore:
        with redis.RedisCluster(host="127.0.0.1", port=nodes[0].port, decode_responses=True) as client:
            held = store(client)
    else:
        held = store(redis.asyncio.RedisCluster(host="127.0.0.1", port=nodes[0].port))
    held.open()
    settle(nodes)
    now = time.time()

    assert held.use("a", int(now) + 58, now - 2) is True


def test_a_flushed_primary_begins_the_epochs_of_its_own_tags(store, nodes):
    """
    The tags of the other primaries go on as before.
    """
    held = store(url(nodes))
    held.open()
    settle(nodes)
    flushed = primaries(nodes)[1]
    written = records(flushed)
    lost = {key[6:7].decode() for key in written}
    with flushed.client() as client:
        client.flushall()
    now, heard = time.time(), {}

    for number in range(40):
        question = held.scoped()._scope.question(str(number), int(now) + 58, now - 2)
        try:
            heard.setdefault(question.tag, []).append(held.use(str(number), int(now) + 58, now - 2))
        except ReplayQuarantine:
            heard.setdefault(question.tag, []).append(None)

    assert {tag for tag, answers in heard.items() if None in answers} == lost & set(heard)
    assert all(set(answers) == {None} or set(answers) == {True} for answers in heard.values())
    assert records(flushed) == written


def test_a_failover_moves_tags_and_begins_their_epochs(store, nodes):
    """
    MOVED leads to the new primary within the use; what it inherited is of an epoch that is over.
    """
    held = store(url(nodes))
    held.open()
    settle(nodes)
    (replica,) = [node for node in nodes if node not in primaries(nodes)]
    now = time.time()
    assert [held.use(str(number), int(now) + 58, now - 2) for number in range(40)] == [True] * 40
    with replica.client() as client:
        client.execute_command("CLUSTER", "FAILOVER")
        wait_until(lambda: client.info("replication")["role"] == "master")

    heard = []
    for number in range(40, 80):
        try:
            heard.append(held.use(str(number), int(now) + 58, now - 2))
        except ReplayQuarantine:
            heard.append(None)
    replays = [held.use(str(number), int(now) + 58, now - 2) for number in range(40)]

    assert set(heard) == {True, None}
    assert replays == [False] * 40
    settle(nodes)
    assert [held.use(str(number), int(now) + 58, now - 2) for number in range(80, 120)] == [True] * 40


def test_a_slot_on_its_way_denies(store, nodes):
    """
    While a slot moves between primaries its tokens are refused, and accepted when it has arrived.
    """
    held = store(url(nodes))
    held.open()
    settle(nodes)
    now = time.time()
    question = held.scoped()._scope.question("moving", int(now) + 58, now - 2)
    source = next(node for node in primaries(nodes) if f"cc:e:{{{question.tag}}}".encode() in records(node))
    target = next(node for node in primaries(nodes) if node is not source)
    with source.client() as here, target.client() as there:
        slot = here.execute_command("CLUSTER", "KEYSLOT", question.key)
        ids = [client.execute_command("CLUSTER", "MYID") for client in (here, there)]
        there.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        here.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])

        with pytest.raises(ReplayStoreUnavailable):
            held.use("moving", int(now) + 58, now - 2)
        for key in here.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            here.execute_command("MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
        with pytest.raises(ReplayStoreUnavailable):
            held.use("moving", int(now) + 58, now - 2)
        fresh = store(url(nodes))
        fresh.open()
        for client in (there, here):
            client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[1])

    with pytest.raises(ReplayQuarantine):
        held.use("moving", int(now) + 58, now - 2)
    settle(nodes)
    assert held.use("moving", int(now) + 58, now - 2) is True


def test_a_node_of_a_cluster_given_as_one_server(store, nodes):
    """
    C10: the answer is a refusal with a hint, never an acceptance.
    """
    held = store(nodes[0].url)
    heard = []

    for number in range(4):
        with pytest.raises(ReplayStoreUnavailable) as refusal:
            held.use(str(number), int(time.time()) + 70, time.time() + 10)
        heard.append(type(refusal.value))

    assert heard == [ReplayStoreUnavailable] * 4


def test_a_check_of_a_cluster_names_its_primaries(store, nodes):
    """
    Each finding says which primary it is about; one that evicts is enough to refuse.
    """
    held = store(url(nodes))

    found = held.check()

    assert len({finding.primary for finding in found}) == 3
    spoilt = primaries(nodes)[2]
    with spoilt.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(UnfitRedis) as refusal:
            held.check()
        client.config_set("maxmemory-policy", "noeviction")
    (failed,) = [finding for finding in refusal.value.findings if finding.outcome == "fails"]
    assert str(spoilt.port) in failed.primary


@pytest.mark.parametrize("slots", [None, (0, 100)], ids=["none", "some"])
def test_a_cluster_without_a_primary_for_a_slot(store, start_server, slots):
    """
    A cluster that does not serve a tag refuses its tokens.
    """
    bus = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--cluster-require-full-coverage", "no")
    node = start_server(*bus)
    if slots:
        with node.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)

    with pytest.raises(ReplayStoreUnavailable):
        store(f"redis+cluster://127.0.0.1:{node.port}").open()
