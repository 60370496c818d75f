"""
Stores on a real server in both faces, a server that answers as told, and a proxy that spoils what a real one says.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from verifier.replay_redis import AsyncRedisReplayStore, RedisReplayStore

from .servers import Epochs, Proxy, ScriptedRedis, Server, valkey_binary

BINARIES = {"valkey": valkey_binary(), "redis": shutil.which("redis-server")}


class Held:
    """
    A store in either face, asked as a blocking one.
    """

    def __init__(self, store: RedisReplayStore | AsyncRedisReplayStore, runner: asyncio.Runner) -> None:
        self.store = store
        self.runner = runner

    def run(self, answer: Any) -> Any:
        async def awaited() -> Any:
            return await answer

        return self.runner.run(awaited()) if isinstance(answer, Awaitable) else answer

    def use(self, *question: Any) -> bool:
        """
        Use an identifier of a scope when *question* has an `iat`, an unscoped one otherwise.
        """
        asked = self.scoped() if len(question) == 3 else self.store
        return self.run(asked.use(*question))

    def scoped(self, issuer: str = "https://issuer.test", audience: str = "https://api.test", **options: Any) -> Any:
        return self.store.scoped(issuer, audience, **options)

    def open(self) -> None:
        self.run(self.store.open())

    def check(self, **options: Any) -> Any:
        return self.run(self.store.check(**options))

    def close(self) -> None:
        self.run(self.store.aclose() if isinstance(self.store, AsyncRedisReplayStore) else self.store.close())


@pytest.fixture(params=[RedisReplayStore, AsyncRedisReplayStore], ids=["sync", "async"])
def face(request: pytest.FixtureRequest) -> type:
    return request.param


@pytest.fixture
def store(face: type) -> Iterator[Callable[..., Held]]:
    """
    Build a store for a URL or a client; it is closed when the test ends.
    """
    held: list[Held] = []
    with asyncio.Runner() as runner:

        def build(source: Any, **options: Any) -> Held:
            # A busy machine is not what most tests are about.
            options = {"deadline_ms": 10_000} | options
            made = face.from_url(source, **options) if isinstance(source, str) else face(source, **options)
            held.append(Held(made, runner))
            return held[-1]

        yield build
        for each in held:
            each.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """
    Run the tests of a module that says `EVERY_SERVER` on each kind of server, and all others on one.
    """
    if "one_server" in metafunc.fixturenames:
        kinds = BINARIES if getattr(metafunc.module, "EVERY_SERVER", False) else list(BINARIES)[:1]
        metafunc.parametrize("one_server", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def one_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """
    Start a Valkey, and a Redis where one is installed.
    """
    binary = BINARIES[request.param]
    if binary is None:
        pytest.skip(f"there is no {request.param} server to start")
    with Server(tmp_path_factory.mktemp(request.param), binary=binary) as server:
        yield server


@pytest.fixture
def server(one_server: Server) -> Server:
    """
    Hand out that server, empty and running whatever the test before did to it.
    """
    one_server.recover()
    return one_server


@pytest.fixture
def settled(server: Server) -> Server:
    """
    Hand out that server as one that a store met an hour ago.
    """
    Epochs(server).begin(age_s=3600)
    return server


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """
    Start a Valkey of the test's own with other options.
    """
    binary = BINARIES["valkey"] or BINARIES["redis"]
    if binary is None:
        pytest.skip("there is no server to start")
    started: list[Server] = []

    def start(*options: str, like: Server | None = None, config: str = "") -> Server:
        folder = tmp_path / f"server-{len(started)}"
        started.append(Server(folder, *options, binary=like.binary if like else binary, config=config))
        started[-1].start()
        return started[-1]

    yield start
    for each in reversed(started):
        each.stop()


@pytest.fixture
def scripted(raw_server: Any) -> Callable[..., ScriptedRedis]:
    """
    Start a server that answers the script as told and everything else as a Redis would.
    """
    return lambda answer: ScriptedRedis(raw_server, answer)


@pytest.fixture
def proxy(raw_server: Any) -> Callable[..., Proxy]:
    """
    Start a proxy to a server.
    """
    return lambda server, spoil: Proxy(raw_server, server.port, spoil)
