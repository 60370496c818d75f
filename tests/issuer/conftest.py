"""
The service that the tests of the token endpoint share, handed out as new: clocks at `NOW`, nothing remembered or reported.
"""

import threading
import time
from contextlib import contextmanager
from functools import partial

import pytest
import uvicorn

from issuer import assertion_ids_redis, state_redis
from issuer.app import create_app
from issuer.http.middleware import Limits
from issuer.redis_connection import RedisConnection

from ..redis_server import RedisServer, redis_binary
from .estate import Desk, with_admins
from .instances import PatientStore, closed, instances_on
from .redis_kinds import LIMIT_S, begin_epoch, eventually, said, sentinel_url
from .site import Site
from .world import registry


@pytest.fixture(scope="session")
def one_site():
    """
    Build the one service that the tests share.
    """
    site = Site()
    yield site
    site.close()


@pytest.fixture
def site(one_site):
    one_site.renew()
    return one_site


@pytest.fixture
def build_site():
    """
    Build a service with another registry; it is closed after the test.
    """
    built = []

    def build(**parts):
        built.append(Site(registry(**parts)))
        return built[-1]

    yield build
    for site in built:
        site.close()


@contextmanager
def serving(limits=None, trusted=()):
    """
    Serve a service of its own by the real server, on a loopback port and a thread of its own.
    """
    site = Site(with_admins(registry()), trusted=trusted)
    config = uvicorn.Config(
        create_app(site.service, limits=limits),
        port=0,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    site.address = server.servers[0].sockets[0].getsockname()
    try:
        yield site
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def desk():
    """
    A service with admins, of the test's own.
    """
    site = Site(with_admins(registry()))
    yield Desk(site)
    site.close()


@pytest.fixture(scope="session")
def one_desk():
    """
    A service with admins that the tests share in which nothing is done.
    """
    site = Site(with_admins(registry()))
    yield Desk(site)
    site.close()


@pytest.fixture(scope="session")
def one_served():
    """
    Serve the one service that the tests share.
    """
    with serving() as site:
        yield site


@pytest.fixture
def served(one_served):
    """
    Hand out the served service as new; it is sent the very lines and octets that a test gives.
    """
    one_served.renew()
    return one_served


@pytest.fixture
def impatient():
    """
    Serve a service that waits for a body no longer than a fifth of a second.
    """
    with serving(Limits(body_seconds=0.2)) as site:
        yield site


@pytest.fixture(scope="session")
def one_cluster(tmp_path_factory):
    """
    A cluster of one server that has all slots.
    """
    if redis_binary() is None:
        pytest.skip("there is no Redis to start: install the development dependencies, or redis-server")
    server = RedisServer(tmp_path_factory.mktemp("cluster"), "--cluster-enabled", "yes", "--save", "")
    server.start()
    with server.client() as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE 0 16383")
    eventually(lambda: said(server, "CLUSTER INFO")["cluster_state"] == "ok")
    yield server
    server.stop()


@pytest.fixture
def cluster(one_cluster):
    one_cluster.resume()
    said(one_cluster, "FLUSHALL")
    return one_cluster


@pytest.fixture(params=["standalone", "sentinel", "cluster"])
def redis_url(request, start_redis):
    """
    The URL of an empty Redis of each kind.
    """
    if request.param == "cluster":
        return request.getfixturevalue("cluster").url.replace("redis", "redis+cluster")
    server = request.getfixturevalue("redis_server")
    return server.url if request.param == "standalone" else sentinel_url(start_redis, server)


@pytest.fixture(scope="session")
def one_proxied():
    """
    Serve a service that believes proxies on loopback, from which the tests ask.
    """
    with serving(trusted=("127.0.0.0/8",)) as site:
        yield site


@pytest.fixture
def proxied(one_proxied):
    """
    Hand out the service behind a proxy as new; `X-Forwarded-For` says who asks it.
    """
    one_proxied.renew()
    return one_proxied


@pytest.fixture
def patient(monkeypatch):
    """
    Let the state of a service wait for Redis far longer than it does in earnest: the machine of the tests may be busy.
    """
    monkeypatch.setattr(state_redis, "RedisConnection", partial(RedisConnection, deadline_s=LIMIT_S))
    monkeypatch.setattr(assertion_ids_redis, "AsyncRedisReplayStore", PatientStore)


@pytest.fixture
def instances(redis_server, patient):
    """
    Two instances with admins, on one Redis that they met an hour ago.
    """
    begin_epoch(redis_server, age_s=3600)
    with closed(instances_on(redis_server.url)) as sites:
        yield sites
