"""
What happens between a store and its Redis, happens to the connection and never to the verdict.
"""

import asyncio
import os
import threading
import time
from contextlib import suppress

import pytest
import redis as redis_py

from verifier import ReplayStoreUnavailable
from verifier.replay_redis import RedisReplayStore

from .servers import Epochs, bulk, read_command, replicates, wait_until

NOW = 1_767_225_600.0


def outcome(held, jti, deadline=None):
    """
    Use an identifier, and return accept, replay or deny.
    """
    try:
        return {True: "accept", False: "replay"}[held.use(jti, int(NOW) + 50, NOW)]
    except ReplayStoreUnavailable:
        return "deny"


def uses(held, settled, rounds):
    """
    Use identifiers one after the other, each twice, and return what was heard the first and the second time.
    """
    first = [outcome(held, f"t{number}") for number in range(rounds)]
    return first, [outcome(held, f"t{number}") for number in range(rounds)]


def never_wrong(first, second):
    """
    Tell whether no identifier was accepted twice, and none that nobody could have used was called a replay.
    """
    return "replay" not in first and all(
        "accept" not in pair or pair[1] != "accept" for pair in zip(first, second, strict=True)
    )


def test_a_proxy_that_drops_replies(store, settled, proxy):
    """
    A reply that is lost is asked for again on another connection, with the same attempt: a first use stays one.
    """
    passing = proxy(settled, lambda number, reply: None if number % 20 == 5 else reply)
    held = store(passing.url, now=lambda: NOW, deadline_ms=1000)

    first, second = uses(held, settled, 20)

    assert first == ["accept"] * 20
    assert second == ["replay"] * 20
    assert passing.replies > 40


def test_a_proxy_that_drops_all_replies(store, settled, proxy):
    """
    When the repetition is lost too nothing is accepted, and the token may be burnt.
    """
    held = store(proxy(settled, lambda _number, _reply: None).url, now=lambda: NOW, deadline_ms=1000)

    assert outcome(held, "x") == "deny"
    assert outcome(store(settled.url, now=lambda: NOW), "x") == "replay"


def test_a_proxy_that_repeats_replies(store, settled, proxy):
    """
    A reply that comes twice is no answer to the next question.
    """
    held = store(proxy(settled, lambda _number, reply: reply + reply).url, now=lambda: NOW, max_connections=1)

    first, second = uses(held, settled, 10)

    assert never_wrong(first, second)
    assert first[::2] == ["accept"] * 5
    assert first[1::2] == ["deny"] * 5


def test_a_proxy_that_is_one_reply_behind(store, settled, proxy):
    """
    When each question is answered with the reply to the one before, nothing is accepted or called a replay.
    """
    kept = [bulk(b"AAAAAAAAAAA BBBBBBBBBBB")]

    def behind(_number, reply):
        kept.append(reply)
        return kept.pop(0)

    held = store(proxy(settled, behind).url, now=lambda: NOW, max_connections=1)

    assert [outcome(held, f"t{number}") for number in range(10)] == ["deny"] * 10


def test_a_proxy_that_swaps_the_replies_of_two_connections(store, settled, proxy):
    """
    What was meant for another connection is refused by both.
    """
    waiting = {}

    async def swap(number, reply):
        waiting[number] = asyncio.get_running_loop().create_future()
        partner = number + 1 if number % 2 else number - 1
        for _ in range(200):
            if partner in waiting:
                break
            await asyncio.sleep(0.005)
        if partner not in waiting:
            return reply
        waiting[partner].set_result(reply)
        return await waiting[number]

    held = store(proxy(settled, swap).url, now=lambda: NOW)

    async def together():
        return await asyncio.gather(
            *(held.scoped().use(f"t{n}", int(NOW) + 50, NOW) for n in range(2)), return_exceptions=True
        )

    if isinstance(held.store, RedisReplayStore):
        heard = []
        threads = [threading.Thread(target=lambda n=n: heard.append(outcome(held, f"t{n}"))) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert heard == ["deny", "deny"]
    else:
        assert all(isinstance(answer, ReplayStoreUnavailable) for answer in held.runner.run(together()))


def test_a_server_that_drips(store, raw_server, face):
    """
    An answer that comes octet by octet, each well within a timeout, ends at the deadline all the same.
    """

    async def drip(reader, writer):
        while True:
            words = await read_command(reader)
            if words[0] not in (b"EVAL", b"EVALSHA"):
                writer.write(b"+OK\r\n")
                continue
            if words[2] == b"1":
                writer.write(bulk(words[4] + b" old"))
                continue
            writer.write(b"$999\r\n")
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)

    held = store(f"redis://127.0.0.1:{raw_server.start(drip)}", now=lambda: NOW, deadline_ms=300)
    held.open()

    began = time.monotonic()
    assert outcome(held, "x") == "deny"

    assert 0.25 < time.monotonic() - began < 1


def test_a_connection_that_comes_up_too_late_serves_the_next(store, raw_server):
    """
    Connecting may take longer than a call has; it goes on aside, and is not begun anew by each call.
    """
    connections = []

    async def slow(reader, writer):
        connections.append(writer)
        while True:
            words = await read_command(reader)
            if words[0] == b"EVAL":
                await asyncio.sleep(1)
                writer.write(bulk(words[4] + b" old"))
            elif words[0] == b"EVALSHA":
                writer.write(bulk(words[5] + b" " + words[5]))
            else:
                writer.write(b"+OK\r\n")

    held = store(f"redis://127.0.0.1:{raw_server.start(slow)}", now=lambda: NOW, deadline_ms=600, max_connections=1)

    heard = [outcome(held, "x")]
    while "accept" not in heard:
        heard.append(outcome(held, "x"))
        assert len(heard) < 50

    assert heard[0] == "deny"
    assert len(connections) == 1


def test_a_connection_lost_between_uses_costs_nothing(store, settled):
    """
    A connection that was ended while nobody used it is replaced within the use.
    """
    held = store(settled.url, now=lambda: NOW)
    assert outcome(held, "a") == "accept"
    with settled.client() as client:
        assert client.client_kill_filter(_type="normal", skipme=True) >= 1

    assert outcome(held, "b") == "accept"


def test_a_paused_server(store, settled):
    """
    While the server is stopped nothing is accepted; afterwards what it was told meanwhile is known.
    """
    held = store(settled.url, now=lambda: NOW, deadline_ms=100)
    assert outcome(held, "a") == "accept"

    settled.pause()
    assert [outcome(held, "a"), outcome(held, "b")] == ["deny", "deny"]
    settled.resume()

    held = store(settled.url, now=lambda: NOW)
    assert outcome(held, "a") == "replay"
    assert outcome(held, "c") == "accept"


def test_a_full_server(store, settled):
    """
    C09: under noeviction a full memory refuses new tokens and still knows the used ones in quarantine or out of it.
    """
    held = store(settled.url, now=lambda: NOW)
    assert outcome(held, "a") == "accept"
    with settled.client() as client:
        client.config_set("maxmemory", "1mb")

        assert outcome(held, "b") == "deny"
        client.config_set("maxmemory", "128mb")

    assert outcome(held, "a") == "replay"
    assert outcome(held, "b") == "accept"


def test_an_evicting_server_forgets(store, settled):
    """
    C09: the hole that the check at start protects from: under volatile-lru a used token can be used once more.
    """
    held = store(settled.url, now=lambda: NOW)
    assert outcome(held, "a") == "accept"
    with settled.client() as client:
        client.config_set("maxmemory-policy", "volatile-lru")
        (key,) = client.keys("cc:r:*")
        client.config_set("maxmemory", str(client.info("memory")["used_memory"] + 300_000))
        for number in range(200):
            with suppress(redis_py.exceptions.OutOfMemoryError):
                client.set(f"junk:{number}", b"x" * 10_000)
        assert not client.exists(key)
        client.config_set("maxmemory", "128mb")

    assert outcome(held, "a") == "accept"


def test_a_value_of_another_type(store, settled):
    """
    Something else at the key, or at the epoch record, is neither a first use nor a replay.
    """
    held = store(settled.url, now=lambda: NOW)
    assert outcome(held, "a") == "accept"
    with settled.client() as client:
        (key,) = client.keys("cc:r:*")
        client.set(key, "OK")
        assert outcome(held, "a") == "deny"
        client.delete(key)
        client.rpush(key, "x")
        assert outcome(held, "a") == "deny"
        client.delete("cc:e")
        client.rpush("cc:e", "x")

    assert outcome(held, "b") == "deny"


@pytest.mark.parametrize("replicas", [1, 2])
def test_waiting_for_replicas(store, start_server, replicas):
    """
    A use counts once so many replicas hold its record; with too few it is refused, and the token is burnt.
    """
    primary = start_server("--save", "", "--repl-diskless-sync-delay", "0")
    Epochs(primary).begin(age_s=3600)
    replica = start_server("--save", "", "--replicaof", f"127.0.0.1 {primary.port}")
    wait_until(lambda: replicates(replica))
    Epochs(primary).begin(age_s=3600)
    held = store(primary.url, now=lambda: NOW, replicas=replicas, deadline_ms=600)

    assert outcome(held, "a") == ("accept" if replicas == 1 else "deny")
    assert outcome(held, "a") == "replay"
    with replica.client() as client:
        assert len(client.keys("cc:r:*")) == 1


def test_a_repetition_waits_for_the_replicas_of_the_first(store, settled, proxy):
    """
    Own id found standing is written once more, so that a WAIT behind it speaks of the first write as well.
    """
    held = store(
        proxy(settled, lambda number, reply: None if number == 1 else reply).url, now=lambda: NOW, deadline_ms=2000
    )

    with settled.client() as client, settled.client() as other, client.monitor() as monitor:
        other.ping()
        assert outcome(held, "a") == "accept"
        other.ping()
        heard = [line["command"] for line in _between(monitor) if line["client_type"] == "lua"]

    assert sum(command.startswith("PEXPIRE") for command in heard) == 1


def _between(monitor):
    pings = 0
    for line in monitor.listen():
        pings += line["command"] == "PING"
        if pings == 2:
            return
        yield line


@pytest.mark.parametrize(
    "held_by", [b":0\r\n", b":-1\r\n", b"$-1\r\n", b"$1\r\n1\r\n", b"-ERR no\r\n", b""], ids=range(6)
)
def test_what_a_wait_answers(store, scripted, held_by):
    """
    Nothing but a number of replicas that is large enough makes a use the first.
    """

    def reply(words):
        return held_by if words[0] == b"WAIT" else bulk(words[5] + b" " + words[5])

    held = store(scripted(reply).url, now=lambda: NOW, replicas=1)

    assert outcome(held, "a") == "deny"


def test_a_cancelled_use_leaves_no_reply_behind(store, settled, face):
    """
    A call that is cancelled takes its connection with it; the next one reads its own answer.
    """
    if face is RedisReplayStore:
        pytest.skip("a blocking call is not cancelled")
    held = store(settled.url, now=lambda: NOW, max_connections=1)
    held.open()

    async def cancel():
        asked = asyncio.create_task(held.scoped().use("a", int(NOW) + 50, NOW))
        await asyncio.sleep(0)
        asked.cancel()
        with suppress(asyncio.CancelledError):
            await asked
        waiting = [asyncio.create_task(held.scoped().use("b", int(NOW) + 50, NOW)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        return await asyncio.gather(*waiting, return_exceptions=True)

    first, cancelled, last = held.runner.run(cancel())

    assert (first, last) == (True, False)
    assert isinstance(cancelled, asyncio.CancelledError)


def test_the_children_of_a_fork(settled):
    """
    Parent and children use connections of their own, and each token once among them all.
    """
    store = RedisReplayStore.from_url(settled.url, deadline_ms=10_000, now=lambda: NOW)
    scope = store.scoped("i", "a")
    assert scope.use("parent", int(NOW) + 50, NOW) is True
    reading, writing = os.pipe()
    children = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            answer = b"?"
            with suppress(BaseException):
                answer = b"1" if scope.use("child", int(NOW) + 50, NOW) else b"0"
                answer += b"x" if scope.use("parent", int(NOW) + 50, NOW) else b"r"
                store.close()
            os.write(writing, answer)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    os.close(writing)

    with os.fdopen(reading, "rb") as heard:
        assert sorted(heard.read().decode()) == sorted("0r0r1r")
    assert scope.use("after", int(NOW) + 50, NOW) is True
    store.close()


def test_a_closed_store_refuses(store, settled):
    """
    After `close` every use is refused as unavailable, also one that waits at that moment.
    """
    held = store(settled.url, now=lambda: NOW)
    assert outcome(held, "a") == "accept"

    held.close()

    assert outcome(held, "b") == "deny"
    with pytest.raises(ReplayStoreUnavailable):
        held.open()
    held.close()
