"""
Redis over TLS: the same store through a certificate that has to be right.
"""

import asyncio
import gc
import time

import pytest

from verifier import ReplayStoreUnavailable
from verifier.replay_redis import AsyncRedisReplayStore

from ...secured_redis import start_secured
from .servers import Epochs

NOW = 1_767_225_600.0
MOMENT_S = 0.05


@pytest.fixture(autouse=True)
def collected():
    """
    Collect what a test left when its event loop has ended: what was not closed complains then.
    """
    yield
    gc.collect()


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """
    A server with a certificate of its own; returns it, its port for TLS and the certificate's file.
    """
    server = start_secured(tmp_path_factory.mktemp("tls"))
    if server is None:
        pytest.skip("there is no server with TLS to start: install redis-server")
    yield server, server.tls_port, server.certificate
    server.stop()


def test_once_means_once_over_tls(store, secured):
    """
    A certificate that the store is told to trust is trusted, and everything else is as without TLS.
    """
    server, port, certificate = secured
    held = store(f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}", now=lambda: NOW)
    held.open()
    Epochs(server).age(3600)
    jti = type(held.store).__name__

    assert held.use(jti, int(NOW) + 50, NOW) is True
    assert held.use(jti, int(NOW) + 50, NOW) is False
    assert held.check()


def test_a_silent_server_over_tls_keeps_nobody(store, secured):
    """
    The deadline holds over TLS too, and so does the end: nothing waits for a farewell that does not come.
    """
    server, port, certificate = secured
    held = store(f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}", now=lambda: NOW, deadline_ms=400)
    held.open()

    server.pause()
    try:
        with pytest.raises(ReplayStoreUnavailable):
            held.use("x", int(NOW) + 50, NOW)
        held.close()
    finally:
        server.resume()


def test_a_certificate_that_nobody_vouches_for(store, secured):
    """
    An unknown certificate is no connection, and leaves none behind.
    """
    _, port, _ = secured
    held = store(f"rediss://127.0.0.1:{port}", now=lambda: NOW)

    with pytest.raises(ReplayStoreUnavailable):
        held.open()


@pytest.mark.parametrize("turns", range(6))
def test_a_connection_that_is_given_up_leaves_nothing_open(secured, turns):
    """
    In whatever turn of the event loop it is: before the handshake is completed, right then, or in the greeting that follows.
    """
    server, port, certificate = secured

    async def give_up():
        held = AsyncRedisReplayStore.from_url(f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}")
        opening = asyncio.create_task(held.open())
        await asyncio.sleep(MOMENT_S)
        # The server's part of the handshake comes while nobody looks, and then it says no more.
        server.resume()
        time.sleep(MOMENT_S)  # noqa: ASYNC251  the event loop is held up on purpose
        server.pause()
        for _ in range(turns):
            await asyncio.sleep(0)
        await held.aclose()
        with pytest.raises(ReplayStoreUnavailable):
            await opening

    server.pause()
    try:
        asyncio.run(give_up())
    finally:
        server.resume()
