"""
URLs of a Redis: three kinds, taken apart strictly, and never repeated with what is secret in them.
"""

import pytest

from issuer.redis_url import RedisAddress, parse_redis_url


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("redis://db", RedisAddress(kind="standalone", hosts=(("db", 6379),))),
        ("redis://db:7000/3", RedisAddress(kind="standalone", hosts=(("db", 7000),), database=3)),
        ("redis://db/", RedisAddress(kind="standalone", hosts=(("db", 6379),))),
        ("redis://[::1]:7000", RedisAddress(kind="standalone", hosts=(("::1", 7000),))),
        ("redis://:p%40ss@db", RedisAddress(kind="standalone", hosts=(("db", 6379),), password="p@ss")),
        (
            "rediss://issuer:a:b@db?protocol=3&ssl_ca_certs=/ca.pem",
            RedisAddress(
                kind="standalone",
                hosts=(("db", 6379),),
                is_tls=True,
                username="issuer",
                password="a:b",
                options={"protocol": "3", "ssl_ca_certs": "/ca.pem"},
            ),
        ),
        (
            "redis+sentinel://a,b:7,[::1]/main/2?sentinel_password=x",
            RedisAddress(
                kind="sentinel",
                hosts=(("a", 26379), ("b", 7), ("::1", 26379)),
                service="main",
                database=2,
                options={"sentinel_password": "x"},
            ),
        ),
        (
            "rediss+cluster://u:p@a:1,b:2",
            RedisAddress(kind="cluster", hosts=(("a", 1), ("b", 2)), is_tls=True, username="u", password="p"),
        ),
        ("redis+cluster://a/0", RedisAddress(kind="cluster", hosts=(("a", 6379),))),
    ],
)
def test_a_url_is_taken_apart(text, address):
    """
    Hosts with their ports, the service of the Sentinels, the database, credentials and options.
    """
    assert parse_redis_url(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "db:6379",
        "http://db",
        "REDIS://db",
        "redis://",
        "redis://db,other/x",
        "redis://db:0",
        "redis://db:65536",
        "redis://db:hunter2",
        "redis://d b",
        "redis://db\n",
        "redis://db/x",
        "redis://db/1/2",
        "redis://db/-1",
        "redis://hunter2@db",
        "redis://hunter2:@db",
        "redis://db#hunter2",
        "redis://db?hunter2=1",
        "redis://db?protocol=4",
        "redis://db?protocol=2&protocol=3",
        "redis://db?ssl_ca_certs=",
        "redis://db?hunter2",
        "redis+sentinel://db",
        "redis+sentinel://db/",
        "redis+sentinel://db/main/",
        "redis+sentinel://db/main/x",
        "redis+sentinel://db/m@in",
        "redis+cluster://db/1",
        "redis+cluster://,db",
        "redis+other://db",
        "redis://" + "a" * 2048,
    ],
)
def test_anything_else_is_refused_without_being_repeated(text):
    """
    Mistyped URLs hold passwords too.
    """
    with pytest.raises(ValueError, match="must") as refusal:
        parse_redis_url(text)

    assert "hunter2" not in str(refusal.value)


def test_a_server_alone_has_one_host():
    """
    Several hosts need Sentinel or a cluster to tell which one to ask.
    """
    with pytest.raises(ValueError, match="one host"):
        parse_redis_url("redis://a,b")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("redis://u:hunter2@db/3", "redis://db:6379/3"),
        ("rediss://db?ssl_keyfile=/hunter2", "rediss://db:6379"),
        (
            "redis+sentinel://:hunter2@[::1],b/main?sentinel_password=hunter2",
            "redis+sentinel://[::1]:26379,b:26379/main",
        ),
        ("redis+cluster://u:hunter2@a", "redis+cluster://a:6379"),
    ],
)
def test_an_address_is_shown_without_what_is_secret(text, where):
    """
    In messages and in repr.
    """
    address = parse_redis_url(text)

    assert address.where == where
    assert "hunter2" not in repr(address)
