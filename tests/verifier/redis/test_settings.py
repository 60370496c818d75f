"""
Where a store connects to: the forms of its URL, and what it takes over from a client and what not.
"""

import pytest
import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from verifier.replay_redis import AsyncRedisReplayStore, RedisReplayStore
from verifier.replay_redis_settings import ASYNCHRONOUS, BLOCKING, settings_from_client, settings_from_url


@pytest.fixture(params=[BLOCKING, ASYNCHRONOUS], ids=["sync", "async"])
def flavour(request):
    return request.param


def test_one_server(flavour):
    """
    A plain URL is one server, with what its query says of the connection; timeouts and decoding are not its business.
    """
    settings = settings_from_url(
        "redis://shop:p%40ss@db.example:7000/3?socket_timeout=9&decode_responses=True&protocol=3&client_name=shop",
        flavour,
    )

    assert (settings.kind, settings.connection_class) == ("standalone", flavour.connection)
    assert settings.options == {
        "username": "shop",
        "password": "p@ss",
        "host": "db.example",
        "port": 7000,
        "db": 3,
        "client_name": "shop",
    }


def test_tls_and_sockets(flavour):
    """
    rediss and unix have connections of their own kind.
    """
    tls = settings_from_url("rediss://db.example?ssl_cert_reqs=none", flavour)
    local = settings_from_url("unix:///run/redis.sock?db=1", flavour)

    assert tls.connection_class is flavour.tls_connection
    assert tls.options == {"host": "db.example", "ssl_cert_reqs": "none"}
    assert local.options == {"path": "/run/redis.sock", "db": 1}


def test_sentinels(flavour):
    """
    Several Sentinels, a service and a database; each side has credentials of its own.
    """
    settings = settings_from_url(
        "redis+sentinel://shop:pw@a.example,b.example:7,[::1]:8/my%20svc/2?sentinel_username=watch&sentinel_password=sp",
        flavour,
    )

    assert (settings.kind, settings.service) == ("sentinel", "my svc")
    assert settings.options == {"username": "shop", "password": "pw", "db": 2}
    assert [(seed["host"], seed["port"]) for seed in settings.seeds] == [
        ("a.example", 26379),
        ("b.example", 7),
        ("::1", 8),
    ]
    assert all((seed["username"], seed["password"]) == ("watch", "sp") for seed in settings.seeds)


def test_sentinels_over_tls(flavour):
    """
    The Sentinels are asked over TLS too, with the same demands on their certificates.
    """
    settings = settings_from_url("rediss+sentinel://a.example/svc?ssl_cert_reqs=none", flavour)

    assert settings.connection_class is settings.seed_class is flavour.tls_connection
    assert settings.seeds[0]["ssl_cert_reqs"] == "none"


def test_clusters(flavour):
    """
    A cluster is found through any of its nodes.
    """
    settings = settings_from_url("redis+cluster://shop:pw@a.example,b.example:7", flavour)

    assert (settings.kind, settings.options["password"]) == ("cluster", "pw")
    assert settings.seeds == ({"host": "a.example", "port": 6379}, {"host": "b.example", "port": 7})
    assert "host" not in settings.options


@pytest.mark.parametrize(
    "url",
    [
        "",
        "s3cret",
        "http://s3cret",
        "redis+sentinel://s3cret",
        "redis+sentinel://s3cret/",
        "redis+sentinel:///s3cret",
        "redis+sentinel://a,,b/s3cret",
        "redis+sentinel://a:s3cret/svc",
        "redis+cluster://a/s3cret",
        "redis+cluster://",
        "redis+other://s3cret",
        "unix+cluster://s3cret",
        "redis://h:s3cret/0",
        "redis://h?socket_timeout=s3cret",
        "redis://h?s3cret=1",
        "redis://[s3cret",
    ],
)
def test_urls_that_make_no_sense(flavour, url):
    """
    Another form is refused at once, and the text holds nothing of it.
    """
    with pytest.raises(ValueError) as refusal:
        settings_from_url(url, flavour)

    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("url", ["http://h", "127.0.0.1:6379", "h", ""])
def test_what_is_no_url_of_redis_is_told_how_one_begins(flavour, url):
    """
    Whoever takes another scheme, or none, is shown those that there are.
    """
    with pytest.raises(ValueError, match="begins with redis://"):
        settings_from_url(url, flavour)


@pytest.mark.parametrize("url", [None, b"redis://h", 7])
def test_a_url_is_a_str(flavour, url):
    """
    Another type is the programmer's mistake.
    """
    with pytest.raises(TypeError):
        settings_from_url(url, flavour)


def test_a_client_says_where_and_not_how(flavour):
    """
    Address, credentials and database are taken; retries, timeouts, decoding and protocol are not.
    """
    client = flavour.client(
        host="db.example",
        password="pw",
        db=2,
        client_name="shop",
        decode_responses=True,
        socket_timeout=9,
        retry=(AsyncRetry if flavour is ASYNCHRONOUS else Retry)(ConstantBackoff(1), 9),
        health_check_interval=1,
        protocol=3,
        max_connections=3,
    )

    settings = settings_from_client(client, flavour)

    assert settings.kind == "standalone"
    assert {name: settings.options[name] for name in ("host", "password", "db", "client_name")} == {
        "host": "db.example",
        "password": "pw",
        "db": 2,
        "client_name": "shop",
    }
    assert settings.options.keys().isdisjoint(
        {"decode_responses", "socket_timeout", "retry", "retry_on_timeout", "health_check_interval", "protocol"}
    )


def test_passwords_stand_in_no_text(flavour):
    """
    Neither settings nor stores show them.
    """
    url = "redis+sentinel://shop:s3cret@a/svc?sentinel_password=s3cret"
    store = (AsyncRedisReplayStore if flavour is ASYNCHRONOUS else RedisReplayStore).from_url(url)

    assert "s3cret" not in repr(settings_from_url(url, flavour)) + repr(store) + str(vars(store))


@pytest.mark.parametrize("client", [None, "redis://h", object(), redis.Redis, {}], ids=range(5))
def test_anything_else_is_no_client(flavour, client):
    """
    A store is built from a client of its own face, from nothing else.
    """
    with pytest.raises(TypeError):
        settings_from_client(client, flavour)


def test_a_client_of_the_other_face_is_refused():
    """
    A blocking store needs a blocking client, an asynchronous one an asynchronous client.
    """
    with pytest.raises(TypeError):
        RedisReplayStore(redis.asyncio.Redis())
    with pytest.raises(TypeError):
        AsyncRedisReplayStore(redis.Redis())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name in ("deadline_ms", "max_connections", "replicas")
        for value in (-1, True, 1.5, "5", None, 10**9)
    ]
    + [("deadline_ms", 0), ("max_connections", 0)],
)
def test_options_within_bounds(face, name, value):
    """
    A value out of bounds, or of another type, is refused when the store is built.
    """
    with pytest.raises(ValueError):
        face.from_url("redis://h", **{name: value})


def test_a_clock_can_be_called(face):
    """
    What cannot is refused when the store is built.
    """
    with pytest.raises(TypeError):
        face.from_url("redis://h", now=5)


def test_a_client_with_settings_of_its_own_serves_as_it_stands(store, face, settled):
    """
    Whatever a client retries, decodes or speaks, its store works, and the client is neither used nor closed.
    """
    module = redis if face is RedisReplayStore else redis.asyncio
    client = module.Redis(
        port=settled.port, decode_responses=True, protocol=3, socket_timeout=0.001, health_check_interval=1
    )
    held = store(client, now=lambda: 1000.0)

    assert held.use("a", 1050, 1000) is True
    assert held.use("a", 1050, 1000) is False
