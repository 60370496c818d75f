"""
The limits of all instances on a real Redis: exactly as many as the rate lets in, whoever is asked, and nothing in the clear.
"""

import asyncio
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from issuer import limits_redis
from issuer.limits import Over, Rate, Rates, after_request, after_wrong_secret
from issuer.limits_redis import RedisLimits
from issuer.redis_connection import RedisConnection, RedisUnavailable
from issuer.redis_url import parse_redis_url

pytestmark = pytest.mark.anyio

SECOND_US = 1_000_000
KEY = b"\x11" * 32
CUSTOMER = ("shop-login", "cus_48213")
# So slow that nothing comes back while a test runs.
SLOW = Rates(client=Rate(3600 * SECOND_US, 50), customer=Rate(3600 * SECOND_US, 30))
PATIENCE_S = 20.0


@pytest.fixture
async def build():
    """
    A function that builds the limits of one more instance, with connections of its own.
    """
    opened = []

    def build(server, rates=SLOW, key=KEY, *, kind="redis", deadline_s=PATIENCE_S):
        url = server.url.replace("redis://", f"{kind}://")
        opened.append(RedisConnection(parse_redis_url(url), deadline_s))
        return RedisLimits(opened[-1], rates, key=key)

    yield build
    for connection in opened:
        await connection.aclose()


async def ask(limits, client="orc_main", customer=CUSTOMER, workspace="root"):
    over = await limits.request(workspace, client, customer)
    return None if over is None else over.limit


async def guess(limits, name="orc_basic", network="198.51.100.1", owner="client", workspace="root"):
    over = await limits.wrong_secret(workspace, owner, name, network)
    return None if over is None else over.retry_after_s


async def test_a_crowd_at_two_instances_is_let_in_exactly_as_far(redis_server, build):
    """
    Of 400 concurrent requests through two instances the burst of the client passes, and for one customer that of the customer.
    """
    one, other = build(redis_server), build(redis_server)

    crowd = await asyncio.gather(
        *((one, other)[n % 2].request("root", "orc_main", ("ns", f"c{n}")) for n in range(400))
    )
    mine = await asyncio.gather(*((one, other)[n % 2].request("root", "orc_second", CUSTOMER) for n in range(400)))

    assert sum(over is None for over in crowd) == 50
    assert {over.limit for over in crowd if over} == {"client"}
    assert sum(over is None for over in mine) == 30
    assert {over.limit for over in mine if over} == {"customer"}
    # What the customer was refused is left to the client.
    assert sum([await ask(one, "orc_second", ("ns", f"c{n}")) is None for n in range(30)]) == 20


CHILD = """
import asyncio, json, sys
from issuer.limits import Rate, Rates
from issuer.limits_redis import RedisLimits
from issuer.redis_connection import RedisConnection
from issuer.redis_url import parse_redis_url

async def main(url, count):
    connection = RedisConnection(parse_redis_url(url), 20.0)
    limits = RedisLimits(connection, Rates(client=Rate(3_600_000_000, 50), customer=None), key=b"\\x11" * 32)
    found = await asyncio.gather(*(limits.request("root", "orc_main", None) for _ in range(count)))
    await connection.aclose()
    print(sum(over is None for over in found))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def test_processes_share_one_limit(redis_server):
    """
    Four processes at once let in, together, exactly the burst.
    """
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", CHILD, redis_server.url, "100", stdout=subprocess.PIPE
        )
        for _ in range(4)
    ]

    let_in = [int((await child.communicate())[0]) for child in children]

    assert sum(let_in) == 50


async def test_the_clock_is_that_of_the_server(redis_server, build, monkeypatch):
    """
    An instance whose own clock is wrong lets in no more and no less than the others.
    """
    one = build(redis_server)
    assert [await ask(one, customer=None) for _ in range(50)] == [None] * 50

    monkeypatch.setattr(time, "time", lambda: 4e9)
    monkeypatch.setattr(time, "monotonic", lambda: 4e9)

    assert await ask(build(redis_server), customer=None) == "client"


async def test_the_rate_comes_back_with_time(redis_server, build):
    """
    On the server's real clock: after the wait that was told the next one is let in, and what is not used any more is gone.
    """
    limits = build(redis_server, Rates(client=Rate(50_000, 2), customer=None))
    assert [await ask(limits) for _ in range(2)] == [None] * 2

    began = time.monotonic()
    over = await limits.request("root", "orc_main", None)
    while over is not None:
        assert (over.limit, over.retry_after_s) == ("client", 1)
        assert 0 < over.wait_us <= 50_000
        over = await limits.request("root", "orc_main", None)

    assert time.monotonic() - began < 10


moves = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 2),
        st.sampled_from([0, 1, 3_000 * SECOND_US, 9_000 * SECOND_US, 20_000 * SECOND_US]),
    ),
    max_size=40,
)


@given(moves)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_script_decides_as_the_function_does(redis_server, moves):
    """
    On a clock that stands still in between, every answer and everything that is stored is the same.
    """
    # Hours, so that the server, whose own clock goes on, forgets nothing meanwhile.
    both = Rates(client=Rate(9_000 * SECOND_US, 3), customer=Rate(20_000 * SECOND_US + 1, 2))
    now, ends = 1_796_040_000_000_000, {}
    script = at_a_given_time(limits_redis._REQUEST)
    with redis_server.client() as client:
        client.flushall()
        for who, customer, step in moves:
            now += step
            keys = [f"client-{who}", f"customer-{who}-{customer}"][: 2 if customer else 1]
            concerning = both.concerning(customer=customer > 0)
            expected = after_request(now, [(n, r, ends.get(k, 0)) for k, (n, r) in zip(keys, concerning, strict=True)])
            numbers = [number for _, rate in concerning for number in (rate.interval_us, rate.window_us)]
            over, wait = client.eval(script, len(keys), *keys, *numbers, now // SECOND_US, now % SECOND_US)
            if isinstance(expected, Over):
                assert (concerning[over - 1][0], wait) == (expected.limit, expected.wait_us)
            else:
                assert over == 0
                ends |= dict(zip(keys, expected, strict=True))
            assert [int(client.get(key) or 0) for key in keys] == [ends.get(key, 0) for key in keys]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 25)), max_size=40))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_script_counts_wrong_secrets_as_the_function_does(redis_server, moves):
    """
    On a clock that stands still in between, every answer and everything that is stored is the same.
    """
    now, held = 1_796_040_000_000_000, {}
    script = at_a_given_time(limits_redis._WRONG_SECRET)
    with redis_server.client() as client:
        client.flushall()
        for name, network, step in moves:
            now += step * SECOND_US
            keys = [f"name-{name}", f"network-{network}"]
            expected = after_wrong_secret(now, 3, [held.get(key, ()) for key in keys])
            wait = client.eval(script, 2, *keys, 3, 60 * SECOND_US, now // SECOND_US, now % SECOND_US)
            if isinstance(expected, Over):
                assert wait == expected.wait_us
            else:
                assert wait == 0
                held |= dict(zip(keys, expected, strict=True))
            assert [[*map(int, reversed(client.lrange(key, 0, -1)))] for key in keys] == [
                [*held.get(key, ())] for key in keys
            ]


def at_a_given_time(script):
    """
    Let a script take the time from its last two arguments.
    """
    asking = "redis.call('TIME')"
    assert script.count(asking) == 1
    return script.replace(asking, "{ARGV[#ARGV - 1], ARGV[#ARGV]}")


@pytest.mark.parametrize("ahead_s", [3601, 10**6])
async def test_a_clock_that_was_set_back_keeps_nobody_out(redis_server, build, ahead_s):
    """
    What was stored by a clock that was ahead counts as all used up, no more: one interval later the next one is let in.
    """
    limits = build(redis_server, Rates(client=Rate(200_000, 10), customer=None))
    await ask(limits)
    with redis_server.client() as client:
        (name,) = client.keys("*")
        client.set(name, int(client.get(name)) + ahead_s * SECOND_US)

        first = await limits.request("root", "orc_main", None)
        repaired = int(client.get(name))
        seconds, microseconds = client.time()

        assert first == Over("client", 200_000)
        assert repaired <= seconds * SECOND_US + microseconds + 2_000_000
        assert 0 < client.pttl(name) <= 2_000
    deadline = time.monotonic() + PATIENCE_S
    while await ask(limits) is not None:
        assert time.monotonic() < deadline


async def test_wrong_secrets_from_before_a_clock_was_set_back_are_forgotten(redis_server, build):
    """
    Nobody waits longer than a minute.
    """
    limits = build(redis_server, Rates(wrong_secrets=2))
    assert [await guess(limits) for _ in range(3)] == [None, None, 60]
    with redis_server.client() as client:
        for name in client.keys("*"):
            later = [int(each) + 3600 * SECOND_US for each in client.lrange(name, 0, -1)]
            client.delete(name)
            client.rpush(name, *later)

    assert [await guess(limits) for _ in range(3)] == [None, None, 60]


async def test_the_eleventh_wrong_secret_has_to_wait(redis_server, build):
    """
    te-brute-force: for a client from anywhere, and from a source whatever the client, at all instances together.
    """
    one, other = build(redis_server), build(redis_server)

    for_one = await asyncio.gather(
        *((one, other)[n % 2].wrong_secret("root", "client", "orc_basic", f"198.51.100.{n}") for n in range(60))
    )
    from_one = await asyncio.gather(
        *((one, other)[n % 2].wrong_secret("root", "client", f"client-{n}", "203.0.113.9") for n in range(60))
    )

    assert [sum(over is None for over in found) for found in (for_one, from_one)] == [10, 10]
    assert {over.retry_after_s for over in [*for_one, *from_one] if over} <= {59, 60}


async def test_guessing_takes_no_room(redis_server, build):
    """
    A source that is over its limit leaves nothing behind, and everything is gone after a minute.
    """
    limits = build(redis_server)

    for number in range(100):
        await guess(limits, name=f"client-{number}")

    with redis_server.client() as client:
        names = client.keys("*")
        assert len(names) == 11
        assert all(59_000 < client.pttl(name) <= 60_000 for name in names)
        assert max(client.llen(name) for name in names) == 10


async def test_a_limit_that_is_off_asks_nobody(redis_server, build):
    """
    Without limits there is no round trip; Redis may even be away.
    """
    limits = build(redis_server, Rates(client=None, customer=None, wrong_secrets=0))
    no_client = build(redis_server, Rates(client=None))
    redis_server.kill()

    assert [await ask(limits), await ask(no_client, customer=None), await guess(limits)] == [None] * 3


async def test_a_request_is_one_round_trip(redis_server, build):
    """
    Both limits of a request, and both counts of a wrong secret, are one command.
    """
    limits = build(redis_server)
    await ask(limits)
    with redis_server.client() as client:
        client.config_resetstat()
        await ask(limits)
        await guess(limits)

        commands = client.info("commandstats")

    assert commands["cmdstat_eval"]["calls"] == 2
    # What the scripts do inside is counted as well; nothing else is sent.
    assert {name.removeprefix("cmdstat_") for name in commands} <= {
        *("eval", "time", "get", "set", "lindex", "lpush", "ltrim", "pexpire", "config|resetstat", "info")
    }


async def test_nothing_is_stored_in_the_clear(redis_server, build):
    """
    Names are of fixed length and say nothing: neither clients nor customers nor addresses; another key has other names.
    """
    for key in (KEY, b"\x22" * 32):
        limits = build(redis_server, key=key)
        await ask(limits, client="orc_main", customer=("shop-login", "cus_48213"))
        await ask(limits, client="x" * 255, customer=("n" * 128, "s" * 255))
        await guess(limits, name="orc_main", network="198.51.100.1")
        await guess(limits, name="y" * 2000, network="2001:0db8:0000:0000")

    with redis_server.client() as client:
        names = sorted(client.keys("*"))
        stored = [client.dump(name) for name in names]

    assert sorted({len(name) for name in names}) == [29, 34, 51]
    assert len(names) == 16
    for name in names:
        assert name.startswith(b"cc:l:{")
    for octets in (*names, *stored):
        assert not any(word in octets for word in (b"orc", b"cus", b"shop", b"198.51", b"2001", b"root", b"xx", b"yy"))


async def test_the_names_of_a_client_lie_in_one_slot(redis_server, build):
    """
    So that a cluster can look at them together; those of wrong secrets lie together as well.
    """
    limits = build(redis_server)
    await ask(limits)
    await ask(limits, customer=("shop-login", "cus_2"))
    await ask(limits, client="orc_second")
    await guess(limits)

    with redis_server.client() as client:
        tags = [name.partition(b"{")[2].partition(b"}")[0] for name in client.keys("*")]

    assert sorted(tags.count(tag) for tag in set(tags)) == [2, 2, 3]


async def test_a_cluster_counts_as_one_server_does(start_redis, build):
    """
    On a real cluster: one call, all or nothing.
    """
    server = start_redis("--cluster-enabled", "yes", "--save", "")
    with server.client() as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE 0 16383")
        deadline = time.monotonic() + 20
        while client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
    limits = build(server, kind="redis+cluster")

    found = [await ask(limits) for _ in range(40)]
    guesses = [await guess(limits) for _ in range(11)]

    assert found == [None] * 30 + ["customer"] * 10
    assert guesses == [None] * 10 + [60]


async def test_a_redis_that_does_not_answer_cannot_tell(redis_server, build):
    """
    Silent, gone, or with something else under the names: no answer is made up.
    """
    limits, impatient = build(redis_server), build(redis_server, deadline_s=0.1)
    await ask(limits)
    await guess(limits)
    with redis_server.client() as client:
        for name in client.keys("*"):
            client.delete(name)
            client.hset(name, "x", "y")
    for asked in (ask, guess):
        with pytest.raises(RedisUnavailable, match="WRONGTYPE"):
            await asked(limits)

    redis_server.pause()
    for asked in (ask, guess):
        with pytest.raises(RedisUnavailable, match="in time"):
            await asked(impatient)
    redis_server.resume()
    redis_server.kill()
    for asked in (ask, guess):
        with pytest.raises(RedisUnavailable):
            await asked(limits)


@pytest.mark.parametrize(
    "answer",
    [None, b"OK", "OK", 1.0, -1, [], [1], [0], [0, b"1"], [3, 1], [2, 1], [-1, 1], [1, 0], [1, -5], [b"1", b"1"]],
    ids=repr,
)
async def test_an_answer_that_is_none_is_not_taken_for_one(answer):
    """
    What the scripts never say, such as the reply to something else, means that it cannot be told.
    """

    async def answered(*_asked):
        return answer

    limits = RedisLimits(SimpleNamespace(eval=answered, where="redis://there"), SLOW, key=KEY)

    with pytest.raises(RedisUnavailable):
        await limits.request("root", "orc_main", None)
    with pytest.raises(RedisUnavailable):
        await limits.wrong_secret("root", "client", "orc_basic", "198.51.100.1")


async def test_what_stands_under_a_name_and_is_no_number_is_nothing(redis_server, build):
    """
    It is replaced by what is counted.
    """
    limits = build(redis_server)
    await ask(limits)
    with redis_server.client() as client:
        for name in client.keys("*"):
            client.set(name, "x")

    assert [await ask(limits) for _ in range(31)] == [None] * 30 + ["customer"]
