"""
The connections of the service to a Redis over TLS: one server, one behind a Sentinel, a cluster.
"""

import asyncio
import gc
import time
from contextlib import ExitStack

import pytest

from issuer.redis_connection import RedisConnection, RedisUnavailable
from issuer.redis_url import parse_redis_url

from ..secured_redis import start_secured
from .redis_kinds import eventually, said

MOMENT_S = 0.05
KINDS = ("standalone", "sentinel", "cluster")


@pytest.fixture(autouse=True)
def collected():
    """
    Collect what a test left when its event loop has ended: what was not closed complains then.
    """
    yield
    gc.collect()


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """
    One server of each kind, with the URL that it is reached at.
    """
    folder = tmp_path_factory.mktemp("secured")
    with ExitStack() as stack:

        def start(name, *options, **more):
            server = start_secured(folder / name, *options, **more)
            if server is None:
                pytest.skip("there is no server with TLS to start: install redis-server")
            stack.callback(server.stop)
            return server

        one = start("one", "--save", "", "--tls-replication", "yes")
        watch = f"sentinel monitor main 127.0.0.1 {one.tls_port} 1\n"
        sentinel = start("sentinel", "--sentinel", "--tls-replication", "yes", like=one, config=watch)
        cluster = start("cluster", "--cluster-enabled", "yes", "--tls-cluster", "yes", "--save", "", like=one)
        said(cluster, "CLUSTER ADDSLOTSRANGE 0 16383")
        eventually(lambda: said(cluster, "CLUSTER INFO")["cluster_state"] == "ok")
        known = f"ssl_ca_certs={one.certificate}"
        yield {
            "standalone": (one, f"rediss://127.0.0.1:{one.tls_port}?{known}"),
            "sentinel": (one, f"rediss+sentinel://127.0.0.1:{sentinel.tls_port}/main?{known}"),
            "cluster": (cluster, f"rediss+cluster://127.0.0.1:{cluster.tls_port}?{known}"),
        }


@pytest.fixture(params=KINDS)
def secured(request, servers):
    """
    The server that answers in the end, and the URL.
    """
    return servers[request.param]


def connection(url):
    # A busy machine is not what these tests are about.
    return RedisConnection(parse_redis_url(url), deadline_s=5)


def test_it_is_asked_over_tls(secured):
    """
    With a certificate that the URL names.
    """

    async def ask():
        asked = connection(secured[1])
        await asked.call("SET", "k", "v")
        found = await asked.call("GET", "k")
        await asked.aclose()
        return found

    assert asyncio.run(ask()) == b"v"


def test_a_server_that_falls_silent_keeps_nobody(secured):
    """
    Operations have their deadline, and the end waits for no farewell: the service would outlast its own grace.
    """
    server, url = secured

    async def ask():
        asked = connection(url)
        # Each connection asks the Sentinel, which has little time to answer, for a TLS of its own.
        at_once = 1 if asked.address.kind == "sentinel" else 8
        await asyncio.gather(*(asked.call("GET", f"k{number}") for number in range(at_once)))
        server.pause()
        with pytest.raises(RedisUnavailable):
            await asked.within(0.3).call("GET", "k")
        began = time.monotonic()
        await asked.aclose()
        return time.monotonic() - began

    try:
        assert asyncio.run(ask()) < 1
    finally:
        server.resume()


@pytest.mark.parametrize("turns", range(6))
def test_a_connection_that_is_given_up_leaves_nothing_open(servers, turns):
    """
    In whatever turn of the event loop it is.
    """
    server, url = servers["standalone"]

    async def give_up():
        asked = connection(url)
        asking = asyncio.create_task(asked.within(0.5).call("PING"))
        await asyncio.sleep(MOMENT_S)
        # The server's part of the handshake comes while nobody looks, and then it says no more.
        server.resume()
        time.sleep(MOMENT_S)  # noqa: ASYNC251  the event loop is held up on purpose
        server.pause()
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await asked.aclose()

    server.pause()
    try:
        asyncio.run(give_up())
    finally:
        server.resume()


def test_a_certificate_that_nobody_vouches_for(secured):
    """
    No connection, and no word of it that is not ours.
    """
    url = secured[1].partition("?")[0]

    async def ask():
        asked = connection(url)
        with pytest.raises(RedisUnavailable) as refused:
            await asked.call("GET", "k")
        await asked.aclose()
        return refused.value

    assert asyncio.run(ask()).where == url
