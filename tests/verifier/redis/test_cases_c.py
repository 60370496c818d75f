"""
Case group C, row by row: what a replay store does with each answer, each clock and each state of Redis.
"""

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from verifier import CustomerContextVerifier, ReplayStoreUnavailable
from verifier.replay_redis import RedisReplayStore

from .processes import race
from .servers import Epochs, bulk

CASES = Path(__file__).parents[2] / "data" / "cases.json"
NOW = 1_767_225_600.0
COVERED = {"C01", "C02", "C03", "C04", "C06", "C09", "C10", "C11"}


def outcome(held, jti="x", expires_at=int(NOW) + 50, issued_at=NOW):
    """
    Use an identifier, and return accept, replay or deny.
    """
    try:
        return {True: "accept", False: "replay"}[held.use(jti, expires_at, issued_at)]
    except ReplayStoreUnavailable:
        return "deny"


@pytest.fixture
def held(store, settled):
    """
    A store on a Redis that it has known for an hour, whose clock stands at the cases' instant.
    """
    return store(settled.url, now=lambda: NOW)


def test_every_row_of_the_group_is_here():
    """
    No row of the case set is left out.
    """
    rows = {row["id"] for row in json.loads(CASES.read_text()) if row["group"] == "C"}

    assert rows == COVERED


def test_c01_a_hundred_at_once_from_four_processes(settled):
    """
    C01: exactly one of 100 uses in 4 processes is the first; the others are replays.
    """
    answers = race(settled.url, processes=4, tokens=["C01"], threads=25)

    assert sorted(answers["C01"]) == ["accept"] + ["replay"] * 99


def test_c01_with_a_delay_between_commands(store, settled, proxy):
    """
    C01, second step: commands that wait 20 ms on their way leave no gap to slip through.
    """

    async def late(_number, reply):
        await asyncio.sleep(0.02)
        return reply

    held = store(proxy(settled, late).url, now=lambda: NOW)

    with ThreadPoolExecutor(8) as threads:
        if isinstance(held.store, RedisReplayStore):
            answers = list(threads.map(lambda _: outcome(held), range(24)))
        else:
            asked = [held.scoped().use("x", int(NOW) + 50, NOW) for _ in range(24)]

            async def together():
                return await asyncio.gather(*asked)

            answers = ["accept" if first else "replay" for first in held.runner.run(together())]

    assert sorted(answers) == ["accept"] + ["replay"] * 23


OWN = "this attempt's own id"
ANSWERS = [
    (OWN, "accept"),
    (b"$23\r\n%(own)b AAAAAAAAAAA\r\n", "replay"),
    (b"+OK\r\n", "deny"),
    (b"$-1\r\n", "deny"),
    (b"*-1\r\n", "deny"),
    (b":1\r\n", "deny"),
    (b":0\r\n", "deny"),
    (b"+QUEUED\r\n", "deny"),
    (b"$0\r\n\r\n", "deny"),
    (b"*2\r\n$2\r\nOK\r\n:1\r\n", "deny"),
    (b"*0\r\n", "deny"),
    (b"$11\r\n%(own)b\r\n", "deny"),
    (b"$11\r\nAAAAAAAAAAA\r\n", "deny"),
    (b"$23\r\nAAAAAAAAAAA BBBBBBBBBBB\r\n", "deny"),
    (b"$23\r\nAAAAAAAAAAA %(own)b\r\n", "deny"),
    (b"$14\r\n%(own)b OK\r\n", "deny"),
    (b"$13\r\n%(own)b -\r\n", "deny"),
    (b"$12\r\n%(own)b \r\n", "deny"),
    (b"$23\r\n%(own)b AAAAAAAAAA*\r\n", "deny"),
    (b"$24\r\n%(own)b AAAAAAAAAAAA\r\n", "deny"),
    (b"$23\r\n%(own)b:%(own)b\r\n", "deny"),
    (b"-ERR anything at all\r\n", "deny"),
    (b"garbage\r\n", "deny"),
    (b"$nonsense\r\n", "deny"),
    (b"*9\r\n", "deny"),
    (b"", "deny"),
]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS, ids=range(len(ANSWERS)))
def test_c02_what_redis_answers(store, scripted, answer, expected):
    """
    C02: own id is a first use, another attempt's a replay, and nothing else is anything.
    """

    def reply(words):
        own = words[5]
        return bulk(own + b" " + own) if answer is OWN else answer % {b"own": own}

    # An answer that does not end is waited for until the deadline.
    held = store(scripted(reply).url, now=lambda: NOW, deadline_ms=200 if answer == b"*9\r\n" else 5000)

    assert outcome(held) == expected


def test_c03_an_entry_outlives_the_acceptance_window(store, settled, mint, wall_clock, face):
    """
    C03: whatever the tolerance, and whenever in its window a token is used first, it is accepted once.
    """
    if face is not RedisReplayStore:
        pytest.skip("the blocking verifier takes the blocking store")
    rows = [(0, -50, [-1]), (30, -40, [6, 20, 29]), (30, 10, [29]), (5, -60, [-20, 4])]
    for number, (tolerance, first, later) in enumerate(rows):
        verifier = CustomerContextVerifier(
            issuer=mint.issuer,
            audience=mint.audience,
            jwks=mint.jwks,
            now=wall_clock,
            clock_tolerance_seconds=tolerance,
            replay_store=store(settled.url, now=wall_clock).store,
        )
        exp = mint.now + 55
        token = mint.signed(jti=f"C03-{number}", iat=exp - 55, exp=exp)

        wall_clock.at = exp + first
        assert verifier.verify(token)

        with settled.client() as client:
            remembered = max(client.pttl(key) for key in client.keys("cc:r:*"))
        assert remembered > (tolerance - first) * 1000 + 100_000
        for instant in later:
            wall_clock.at = exp + instant
            with pytest.raises(Exception, match="used before") as refusal:
                verifier.verify(token)
            assert refusal.value.reason == "replayed"
        wall_clock.at = mint.now


@pytest.mark.parametrize(
    ("now", "expires_at", "px"),
    [(1767225649.6, 1767225650, 120_401), (1767225649.999, 1767225650, 120_002), (NOW, int(NOW) + 50.7, 170_701)],
)
def test_c04_the_unit_and_the_rounding_of_the_life(store, scripted, now, expires_at, px):
    """
    C04: a positive integer of milliseconds with the margin in it, rounded up.
    """
    redis = scripted(lambda words: bulk(words[5] + b" " + words[5]))
    held = store(redis.url, now=lambda: now)

    assert held.use("x", expires_at, now - 1) is True

    assert abs(int(redis.claims[0][6]) - px) <= 1
    assert redis.claims[0][6].isdigit()


def test_c04_a_life_that_redis_refuses(store, settled):
    """
    C04, last step: an expiry that Redis calls invalid is no acceptance.
    """
    held = store(settled.url, now=lambda: NOW)

    assert outcome(held, expires_at=2**62) == "deny"


def test_c04_the_life_in_redis(held, settled):
    """
    C04: 50 s before exp a record is to live for 170 s, not for 50,000 and not for ever.
    """
    assert outcome(held) == "accept"

    with settled.client() as client:
        (key,) = client.keys("cc:r:*")
        assert 50 <= client.ttl(key) <= 170


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.mark.parametrize(
    "url",
    [f"redis://127.0.0.1:{closed_port()}", "redis://no-such-host.invalid:6379", "unix:///nowhere/redis.sock"],
    ids=["refused", "no name", "no socket"],
)
def test_c06_nobody_there(store, url):
    """
    C06: nobody listens, or the host has no name: nothing is accepted.
    """
    assert outcome(store(url, now=lambda: NOW)) == "deny"


@pytest.mark.parametrize("credentials", ["", "shop:wrong@"], ids=["NOAUTH", "WRONGPASS"])
def test_c06_a_password_that_is_missing_or_wrong(store, start_server, credentials):
    """
    C06: without the right password nothing is accepted.
    """
    server = start_server("--requirepass", "right")

    assert outcome(store(f"redis://{credentials}127.0.0.1:{server.port}", now=lambda: NOW)) == "deny"


def test_c06_no_answer_keeps_nobody_beyond_the_deadline(store, settled, face):
    """
    C06: a server that accepts connections and says nothing is refused within the deadline, and the event loop goes on.
    """
    held = store(settled.url, now=lambda: NOW, deadline_ms=200)
    assert outcome(held, "before") == "accept"
    settled.pause()
    ticks = []

    async def tick():
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.01)

    async def ask():
        ticking = asyncio.create_task(tick())
        try:
            await held.scoped().use("x", int(NOW) + 50, NOW)
        finally:
            ticking.cancel()

    began = time.monotonic()
    with pytest.raises(ReplayStoreUnavailable):
        held.use("x", int(NOW) + 50, NOW) if face is RedisReplayStore else held.runner.run(ask())
    passed = time.monotonic() - began

    settled.resume()
    assert 0.15 < passed < 2
    assert face is RedisReplayStore or len(ticks) > 5


def test_c06_back_up(held, settled):
    """
    C06: when Redis is back the next token is accepted, by the same store.
    """
    assert outcome(held, "a") == "accept"
    settled.kill()
    assert outcome(held, "b") == "deny"
    settled.start()
    assert outcome(held, "c") == "deny"
    Epochs(settled).age(60)

    assert outcome(held, "d") == "accept"


def test_c06_no_store_is_said_aloud(mint):
    """
    C06: a verifier without a word about its store is not built.
    """
    with pytest.raises(TypeError):
        CustomerContextVerifier(issuer=mint.issuer, audience=mint.audience, jwks=mint.jwks)


ERRORS = [
    b"LOADING Redis is loading the dataset in memory",
    b"READONLY You can't write against a read only replica.",
    b"MOVED 8718 10.0.0.2:6379",
    b"ASK 8718 10.0.0.2:6379",
    b"CLUSTERDOWN The cluster is down",
    b"TRYAGAIN Multiple keys request during rehashing of slot",
    b"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    b"OOM command not allowed when used memory > 'maxmemory'.",
    b"BUSY Redis is busy running a script.",
    b"MISCONF Redis is configured to save RDB snapshots",
    b"NOREPLICAS Not enough good replicas to write.",
    b"NOPERM this user has no permissions to run the 'evalsha' command",
    b"NOAUTH Authentication required.",
    b"CROSSSLOT Keys in request don't hash to the same slot",
    b"ERR max number of clients reached",
    b"ERR invalid expire time in 'set' command",
    b"WRONGTYPE Operation against a key holding the wrong kind of value",
    b"MOVED nonsense",
    b"",
]


@pytest.mark.parametrize("error", ERRORS, ids=range(len(ERRORS)))
def test_c10_errors_of_redis(store, scripted, error):
    """
    C06, C09, C10: whatever Redis refuses with, nothing is accepted, nothing is called a replay, and the next use is asked anew.
    """
    answers = [b"-" + error + b"\r\n"] * 4
    redis = scripted(lambda words: answers.pop() if answers else bulk(words[5] + b" " + words[5]))
    held = store(redis.url, now=lambda: NOW, max_connections=1)

    assert outcome(held) == "deny"
    answers.clear()
    assert outcome(held) == "accept"


def test_c10_readonly_drops_the_connection(store, scripted):
    """
    C10: after READONLY the next use finds the primary anew.
    """
    answers = [b"-READONLY You can't write against a read only replica.\r\n"]
    redis = scripted(lambda words: answers.pop() if answers else bulk(words[5] + b" " + words[5]))
    held = store(redis.url, now=lambda: NOW)

    assert [outcome(held), outcome(held, "y")] == ["deny", "accept"]
    assert redis.connections == 2


def test_c10_a_hint_for_a_cluster_without_a_cluster_client(store, scripted):
    """
    C10: MOVED tells who configured this what is wrong.
    """
    held = store(scripted(lambda _words: b"-MOVED 8718 10.0.0.2:6379\r\n").url, now=lambda: NOW)

    with pytest.raises(ReplayStoreUnavailable, match="cluster"):
        held.use("x", int(NOW) + 50, NOW)


def test_c10_a_replica_decides_nothing(store, start_server, settled):
    """
    C10: what a replica knows is neither a first use nor a replay.
    """
    held = store(settled.url, now=lambda: NOW)
    assert outcome(held) == "accept"
    replica = start_server("--save", "", "--replicaof", f"127.0.0.1 {settled.port}", like=settled)

    assert outcome(store(replica.url, now=lambda: NOW)) == "deny"


def test_c11_name_spaces(store, settled):
    """
    C11: issuers, audiences, separators, patterns, letter case, normal forms and NUL keep identifiers apart.
    """
    issuer, audience = "https://issuer.test", "https://api.test"
    names = [
        ("https://a.test", audience, "1"),
        ("https://b.test", audience, "1"),
        ("https://a.test:8", audience, "x"),
        ("https://a.test", audience, "8:x"),
        (issuer, audience, "k*"),
        (issuer, audience, "kk"),
        (issuer, audience, "ABC"),
        (issuer, audience, "abc"),
        (issuer, audience, "caf\u00e9"),
        (issuer, audience, "cafe\u0301"),
        (issuer, audience, "x"),
        (issuer, audience, "x\0"),
        (issuer, audience, "1"),
        (issuer, "https://other.test", "1"),
    ]
    held = store(settled.url, now=lambda: NOW)
    views = [(held.scoped(one, two), jti) for one, two, jti in names]
    views.append((held.scoped("client-1", "", prefix="cc:a:"), "1"))

    assert [held.run(view.use(jti, int(NOW) + 50, NOW)) for view, jti in views] == [True] * len(views)
    assert [held.run(view.use(jti, int(NOW) + 50, NOW)) for view, jti in views] == [False] * len(views)
    with settled.client() as client:
        assert all(key.startswith((b"cc:r:", b"cc:a:", b"cc:e")) and len(key) <= 27 for key in client.keys("*"))


def test_c11_a_wrong_audience_burns_nothing(settled, mint, wall_clock):
    """
    C11: a token that one API refuses for its audience can still be used at the right one, on the same Redis.
    """
    store = RedisReplayStore.from_url(settled.url, deadline_ms=10_000, now=wall_clock)
    options = {"issuer": mint.issuer, "jwks": mint.jwks, "now": wall_clock, "replay_store": store}
    token = mint.signed(jti="1")

    with store, pytest.raises(Exception, match="audience"):
        CustomerContextVerifier(audience="https://other.test", **options).verify(token)
    store = options["replay_store"] = RedisReplayStore.from_url(settled.url, deadline_ms=10_000, now=wall_clock)
    with store:
        assert CustomerContextVerifier(audience=mint.audience, **options).verify(token)
