"""
The door to Redis: three kinds of address, one deadline, no second try, and errors without anything secret.
"""

import asyncio
import contextlib
import time

import pytest

from issuer.redis_connection import RedisConnection, RedisUnavailable
from issuer.redis_url import parse_redis_url

from .redis_kinds import eventually, said, sentinel_url

pytestmark = pytest.mark.anyio

# Far more than any answer takes, for tests that are not about the deadline; this machine may be busy.
PATIENCE_S = 20.0


@pytest.fixture
async def connect():
    """
    A function that opens a connection, which is ended with the test.
    """
    opened = []

    def open_connection(url, deadline_s=PATIENCE_S, **options):
        opened.append(RedisConnection(parse_redis_url(url), deadline_s, **options))
        return opened[-1]

    yield open_connection
    for connection in opened:
        await connection.aclose()


async def used(connection):
    """
    Use every operation once, and return what it answered.
    """
    started = await connection.now()
    return {
        "recent": abs(started - time.time()) < 60,
        "set": await connection.call("SET", "{a}value", b"\xff"),
        "get": await connection.call("GET", "{a}value"),
        "missing": await connection.call("GET", "{a}none"),
        "eval": await connection.eval("return {KEYS[1], ARGV[1]}", 1, "{a}key", 5),
        "call": await connection.call("XADD", "{a}stream", "1-0", "record", "text"),
        "forwards": await connection.xrange("{a}stream", "-", "+", 9),
        "primaries": len(await connection.each_primary("INFO", "server")),
        "asked": await connection.each_primary("CONFIG GET", "appendonly"),
    }


ANSWERS = {
    "recent": True,
    "set": True,
    "get": b"\xff",
    "missing": None,
    "eval": [b"{a}key", b"5"],
    "call": b"1-0",
    "forwards": [(b"1-0", {b"record": b"text"})],
    "primaries": 1,
    "asked": [{"appendonly": "no"}],
}


@pytest.mark.parametrize("protocol", [2, 3])
async def test_a_server_is_asked(redis_server, connect, protocol):
    """
    Answers have octets where Redis has them, in either protocol.
    """
    assert await used(connect(f"{redis_server.url}?protocol={protocol}")) == ANSWERS


async def test_the_primary_behind_sentinels_is_asked(redis_server, start_redis, connect):
    """
    Also when the first of the Sentinels is gone.
    """
    url = sentinel_url(start_redis, redis_server).replace("127.0.0.1", "127.0.0.1:1,127.0.0.1")

    assert await used(connect(url)) == ANSWERS


async def test_a_service_that_no_sentinel_knows_is_out_of_reach(redis_server, start_redis, connect):
    """
    There is nobody to ask.
    """
    url = sentinel_url(start_redis, redis_server).replace("/main", "/other")

    with pytest.raises(RedisUnavailable) as refusal:
        await connect(url).now()

    assert not refusal.value.is_refusal


@pytest.mark.parametrize("protocol", [2, 3])
async def test_a_cluster_is_asked(cluster, connect, protocol):
    """
    The server that has the slot answers.
    """
    url = cluster.url.replace("redis", "redis+cluster")

    assert await used(connect(f"{url}?protocol={protocol}")) == ANSWERS


async def test_a_cluster_is_found_by_a_task_that_outlives_its_caller(cluster, connect):
    """
    What the first caller was too impatient for serves the next one.
    """
    connection = connect(cluster.url.replace("redis", "redis+cluster"))
    cluster.pause()

    with pytest.raises(RedisUnavailable):
        await connection.within(0.05).now()
    cluster.resume()

    assert await connection.call("GET", "{a}value") is None


async def test_a_cluster_that_is_never_found_is_given_up(connect):
    """
    There is nobody to ask.
    """
    connection = connect("redis+cluster://127.0.0.1:1")

    with pytest.raises(RedisUnavailable) as refusal:
        await connection.now()

    assert refusal.value.problem.startswith("no connection")


async def test_ending_a_cluster_connection_ends_its_search(cluster, connect):
    """
    Nothing goes on in the background.
    """
    before = asyncio.all_tasks()
    connection = connect(cluster.url.replace("redis", "redis+cluster"))
    cluster.pause()
    with pytest.raises(RedisUnavailable):
        await connection.within(0.05).now()
    assert asyncio.all_tasks() > before

    await connection.aclose()
    cluster.resume()

    assert asyncio.all_tasks() == before


async def test_an_operation_ends_with_its_deadline(redis_server, connect):
    """
    A quarter of a second unless told otherwise, whether the connection stands or has to be made first.
    """
    connection = RedisConnection(parse_redis_url(redis_server.url))
    await connection.within(PATIENCE_S).now()
    redis_server.pause()

    for each in (connection, connect(redis_server.url, 0.25)):
        started = time.monotonic()
        with pytest.raises(RedisUnavailable) as refusal:
            await each.now()
        assert 0.2 < time.monotonic() - started < PATIENCE_S / 2
        assert (refusal.value.problem, refusal.value.is_refusal) == ("no answer in time", False)
    redis_server.resume()
    await connection.aclose()


@pytest.mark.parametrize("outcome", ["an answer", ConnectionError("gone")], ids=["answer", "failure"])
async def test_a_cancellation_that_the_library_swallows_is_raised(connect, monkeypatch, outcome):
    """
    Before Python 3.12 `asyncio.wait_for`, which it sends with, loses one that comes when the sending has just ended.
    """
    connection = connect("redis://127.0.0.1:1")

    async def swallows(*_command):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(PATIENCE_S)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(connection._open().client, "execute_command", swallows)
    asked = asyncio.create_task(connection.call("PING"))
    await asyncio.sleep(0)
    asked.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asked


async def test_a_deadline_that_strikes_while_something_is_sent_holds(connect):
    """
    Whatever the turn of the event loop in which it is over, nothing goes on behind it.
    """

    async def says_nothing(reader, writer):
        await reader.read()
        writer.close()

    took = []
    async with await asyncio.start_server(says_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        for turns in range(30):
            asked = asyncio.create_task(connect(f"redis://127.0.0.1:{port}", 0.02).call("GET", "value"))
            for _ in range(turns):
                await asyncio.sleep(0)
            time.sleep(0.03)  # noqa: ASYNC251 -- something else holds up the event loop
            started = time.monotonic()
            with pytest.raises(RedisUnavailable, match="no answer in time"):
                await asked
            took.append(time.monotonic() - started)

    assert max(took) < 1.0


async def test_an_answer_that_came_too_late_is_nobody_elses(redis_server, connect):
    """
    The connection that it comes over is not used again.
    """
    connection = connect(redis_server.url, max_connections=1)
    await connection.call("SET", "a", "first")
    await connection.call("SET", "b", "second")
    redis_server.pause()
    with pytest.raises(RedisUnavailable):
        await connection.within(0.05).call("GET", "a")
    redis_server.resume()

    assert await connection.call("GET", "b") == b"second"


async def test_nothing_is_tried_twice(redis_server, connect):
    """
    What had no answer may have been carried out, and is not carried out again.
    """
    connection = connect(redis_server.url)
    await connection.now()
    redis_server.pause()
    with pytest.raises(RedisUnavailable):
        await connection.within(0.05).call("INCR", "count")
    redis_server.resume()

    await asyncio.sleep(0)
    eventually(lambda: said(redis_server, "GET count") is not None)

    assert await connection.call("GET", "count") == b"1"


async def test_a_server_that_is_gone_is_noticed_at_once(redis_server, connect):
    """
    And is used again when it is back.
    """
    connection = connect(redis_server.url)
    await connection.now()
    redis_server.kill()

    for _ in range(2):
        with pytest.raises(RedisUnavailable) as refusal:
            await connection.now()
        assert refusal.value.problem.startswith("no connection")
        assert not refusal.value.is_refusal
    redis_server.start()

    assert await connection.call("GET", "value") is None


async def test_credentials_are_used_and_never_shown(start_redis, connect):
    """
    Whoever has the wrong ones learns that, and no log does.
    """
    server = start_redis("--requirepass", "open sesame", "--save", "")
    right = server.url.replace("//", "//:open%20sesame@")
    wrong = server.url.replace("//", "//issuer:hunter2@")

    assert await connect(right).call("GET", "value") is None
    for url in (wrong, server.url):
        with pytest.raises(RedisUnavailable) as refusal:
            await connect(url).call("GET", "value")
        assert refusal.value.problem == "it does not accept the credentials"
        assert refusal.value.is_refusal
        assert "hunter2" not in f"{refusal.value} {connect(url)!r}"


async def test_an_answer_that_is_an_error_is_a_refusal(redis_server, connect):
    """
    By its kind alone; the text may hold data.
    """
    connection = connect(redis_server.url)
    await connection.call("SET", "value", "1")

    problems = {}
    for command in (("HGET", "value", "hunter2"), ("NONSENSE", "hunter2"), ("EVAL", "return {err='hunter2'}", 0)):
        with pytest.raises(RedisUnavailable) as refusal:
            await connection.call(*command)
        assert refusal.value.is_refusal
        problems[command[0]] = refusal.value.problem

    assert problems["HGET"] == "it answered WRONGTYPE"
    assert not any("hunter2" in problem for problem in problems.values())


async def test_a_peer_that_is_no_redis_is_out_of_reach(connect):
    """
    Whatever it says.
    """

    async def greet(_reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request hunter2\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(RedisUnavailable) as refusal:
            await connect(f"redis://127.0.0.1:{port}").call("GET", "value")

    assert "hunter2" not in str(refusal.value)


async def test_connections_are_bounded(redis_server, connect):
    """
    Whoever finds all of them busy waits, within the same deadline.
    """
    connection = connect(redis_server.url, max_connections=3)

    await asyncio.gather(*(connection.call("GET", "value") for _ in range(100)))

    assert len(said(redis_server, "CLIENT LIST")) - 1 <= 3
    redis_server.pause()
    busy = [asyncio.create_task(connection.call("GET", "value")) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(RedisUnavailable) as refusal:
        await connection.within(0.05).call("GET", "value")
    redis_server.resume()
    await asyncio.gather(*busy)
    assert refusal.value.problem == "no answer in time"


def test_a_connection_serves_one_event_loop_after_the_other(redis_server):
    """
    A service that opens its stores in one loop serves in another; what was ended is opened again.
    """
    connection = RedisConnection(parse_redis_url(redis_server.url), PATIENCE_S)

    async def once():
        await connection.call("SET", "value", "1")
        await connection.aclose()
        answer = await connection.call("GET", "value")
        await connection.aclose()
        return answer

    assert [asyncio.run(once()) for _ in range(3)] == [b"1"] * 3


def test_what_another_loop_left_is_not_waited_for(redis_server):
    """
    Its connections ended with it.
    """
    connection = RedisConnection(parse_redis_url("redis://127.0.0.1:1"), PATIENCE_S)

    async def failing():
        with pytest.raises(RedisUnavailable):
            await connection.now()

    asyncio.run(failing())
    asyncio.run(connection.aclose())
    asyncio.run(failing())
    asyncio.run(failing())


async def test_what_is_published_is_heard(redis_server, connect):
    """
    Every channel once at first, since something may have been missed, and then what is published; others are not heard.
    """
    connection = connect(redis_server.url)
    heard = asyncio.Queue()
    listening = asyncio.create_task(connection.listen(["a", "b"], heard.put_nowait))

    first = [await heard.get(), await heard.get()]
    for channel in ("c", "b", "a"):
        await connection.call("PUBLISH", channel, "1")

    assert first == ["a", "b"]
    assert [await heard.get(), await heard.get()] == ["b", "a"]
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening


async def test_listening_goes_on_after_a_restart(redis_server, connect, monkeypatch):
    """
    Every channel is called again when the subscription is new.
    """
    monkeypatch.setattr("issuer.redis_connection._PAUSE_S", 0.01)
    heard = asyncio.Queue()
    listening = asyncio.create_task(connect(redis_server.url).listen(["a"], heard.put_nowait))
    await heard.get()

    await asyncio.to_thread(redis_server.restart)

    assert await heard.get() == "a"
    listening.cancel()


async def test_a_silent_subscription_is_renewed(redis_server, connect, monkeypatch):
    """
    A connection that died without a word is not waited at for ever.
    """
    monkeypatch.setattr("issuer.redis_connection._SUBSCRIPTION_S", 0.05)
    heard = asyncio.Queue()
    listening = asyncio.create_task(connect(redis_server.url).listen(["a"], heard.put_nowait))

    assert [await heard.get() for _ in range(3)] == ["a"] * 3
    listening.cancel()


async def test_nobody_listens_to_a_cluster(connect):
    """
    There the store is only looked at.
    """
    assert await connect("redis+cluster://127.0.0.1:1").listen(["a"], pytest.fail) is None
