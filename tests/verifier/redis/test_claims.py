"""
One use of an identifier on a real server: what is written, how long it stays, and who hears what (D4).
"""

import asyncio
import time
from itertools import takewhile

import pytest

from verifier import AsyncCustomerContextVerifier, CustomerContextError, CustomerContextVerifier
from verifier.replay import SupportsScope

EVERY_SERVER = True
WRITE_JTI = "JkixA7qUmrWEL1ruDMPJVQ"


def test_once_means_once(store, settled):
    """
    The first use is told from every later one, for each identifier by itself.
    """
    held, now = store(settled.url), time.time()

    assert held.use("a", int(now) + 60, now) is True
    assert held.use("b", int(now) + 60, now) is True
    assert [held.use("a", int(now) + 60, now), held.use("b", int(now) + 60, now)] == [False, False]


def test_the_key_is_a_hash_of_issuer_audience_and_jti(store, settled):
    """
    rp-scope: the key of the worked example stands in Redis, with an attempt's id for a value and nothing of the token.
    """
    scope = store(settled.url).scoped("https://id.caplo.example/w/acme", "https://api.shop.example")
    now = time.time()

    assert store(settled.url).run(scope.use(WRITE_JTI, int(now) + 60, now)) is True

    with settled.client() as client:
        keys = sorted(client.keys("*"))
        assert keys == [b"cc:e", b"cc:r:UkDvNUB4V403id1iZOwHeg"]
        assert len(client.get(keys[1])) == 11


def test_scopes_are_apart(store, settled):
    """
    rp-scope: equal identifiers of two issuers, of two audiences, of another kind and outside any scope are different ones.
    """
    held, now = store(settled.url), time.time()
    scopes = [("i", "a"), ("i", "b"), ("j", "a"), ("i", "ab"), ("ia", "b")]
    views = [held.scoped(*scope) for scope in scopes] + [held.scoped("i", "a", prefix="cc:a:", lifetime_s=300)]

    assert isinstance(held.store, SupportsScope)
    assert all(held.run(view.use("x", int(now) + 60, now)) is True for view in views)
    assert held.use("x", int(now) + 60) is True
    assert [held.run(view.use("x", int(now) + 60, now)) for view in views] == [False] * 6
    assert held.use("x", int(now) + 60) is False


@pytest.mark.parametrize(
    ("ahead_s", "least_ms", "most_ms"), [(50.7, 170_600, 170_701), (-500, 1, 1000), (-119.5, 1, 1000)]
)
def test_a_record_lives_until_the_token_is_over_and_a_margin_longer(store, settled, ahead_s, least_ms, most_ms):
    """
    rp-ttl: the life is relative, in milliseconds, 120 s longer than the token can be accepted, and never below a second.
    """
    now = 1_767_225_600.0
    held = store(settled.url, now=lambda: now)

    assert held.use("a", now + ahead_s, now) is True

    with settled.client() as client:
        (key,) = client.keys("cc:r:*")
        assert least_ms <= client.pttl(key) <= most_ms


def test_processes_and_stores_share_what_they_know(store, settled):
    """
    A use through one store is known to every other one on the same Redis.
    """
    now = time.time()
    first, second = store(settled.url), store(settled.url)

    assert first.use("a", int(now) + 60, now) is True
    assert second.use("a", int(now) + 60, now) is False


def test_databases_are_apart(store, start_server):
    """
    A database in the URL is the one that is used, with an epoch of its own.
    """
    server, now = start_server("--save", "", "--databases", "4"), time.time()
    held = store(f"{server.url}/3")

    held.open()

    with server.client() as client:
        assert client.dbsize() == 0
        client.select(3)
        assert client.keys("*") == [b"cc:e"]
    assert held.use("a", int(now) + 70, now + 10) is True


def test_a_script_that_was_forgotten_is_sent_again(store, settled):
    """
    A server that does not know the script any more is told it within the same use.
    """
    held, now = store(settled.url), time.time()
    assert held.use("a", int(now) + 60, now) is True
    with settled.client() as client:
        client.script_flush()

    assert held.use("b", int(now) + 60, now) is True
    assert held.use("b", int(now) + 60, now) is False


def test_one_round_trip_a_use(store, settled):
    """
    C01, third step: a use is one call of the script, whose SET claims the key with its expiry before anything reads it.
    """
    held, now = store(settled.url), time.time()
    held.open()

    with settled.client() as client, settled.client() as other, client.monitor() as monitor:
        other.ping()
        assert held.use("a", int(now) + 60, now) is True
        other.ping()
        heard = monitor.listen()
        assert any(line["command"] == "PING" for line in heard)
        lines = list(takewhile(lambda line: line["command"] != "PING", heard))

    sent = [line["command"].split()[0].upper() for line in lines if line["client_type"] != "lua"]
    touching = [
        line["command"].split() for line in lines if line["client_type"] == "lua" and "cc:r:" in line["command"]
    ]
    assert sent == ["EVALSHA"]
    assert [words[0].upper() for words in touching] == ["SET", "GET"]
    assert [word.upper() for word in touching[0][3:5]] == ["NX", "PX"]


@pytest.mark.parametrize(
    "verifier_class", [CustomerContextVerifier, AsyncCustomerContextVerifier], ids=["verifier", "async_verifier"]
)
def test_a_verifier_accepts_a_token_once(store, face, settled, mint, wall_clock, verifier_class):
    """
    Through a verifier the second use is refused as replayed; the asynchronous one takes either store.
    """
    held = store(settled.url, now=wall_clock)
    options = {"issuer": mint.issuer, "audience": mint.audience, "jwks": mint.jwks, "now": wall_clock}
    if verifier_class is CustomerContextVerifier and face.__name__.startswith("Async"):
        with pytest.raises(TypeError):
            verifier_class(replay_store=held.store, **options)
        return
    verifier, token = verifier_class(replay_store=held.store, **options), mint.signed()

    assert held.run(verifier.verify(token)).sub == "user-1"
    with pytest.raises(CustomerContextError) as refusal:
        held.run(verifier.verify(token))

    assert refusal.value.reason == "replayed"


def test_tasks_and_threads_share_a_store(store, face, settled):
    """
    However many uses of one identifier run at once in a process, exactly one is the first; connections stay bounded.
    """
    held, now = store(settled.url, max_connections=4), time.time()

    async def use(number):
        if face.__name__.startswith("Async"):
            return await held.scoped().use(f"t-{number}", int(now) + 60, now)
        return await asyncio.to_thread(held.scoped().use, f"t-{number}", int(now) + 60, now)

    async def run():
        return await asyncio.gather(*(use(number % 20) for number in range(200)))

    answers = held.runner.run(run())

    assert sum(answers) == 20
    with settled.client() as client:
        assert client.info("clients")["connected_clients"] <= 5
