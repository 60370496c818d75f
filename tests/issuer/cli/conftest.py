"""
What the tests of the commands share: a development configuration for each test, and one service that runs for all of them.
"""

import logging
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import httpx2
import pytest
from click.testing import CliRunner, Result

from issuer.init_config import write_development_config
from issuer.orchestrator import Orchestrator, load_orchestrator
from keys import generate_sealing_key, write_sealing_key

COMMAND = Path(sys.executable).with_name("customer-context")
START_LIMIT_S = 60
STOP_LIMIT_S = 10
OTHER_WORKSPACE = """
[[workspaces]]
name = "other"
path = "/w/other"

  [[workspaces.connections]]
  name = "shop"
  namespace = "other-login"
  audiences = ["https://api.other.example"]
"""
LOGGERS = ("", "authlib", "issuer", "keys", "uvicorn.access", "verifier")

Run = Callable[..., Result]


@dataclass(frozen=True)
class Dev:
    """
    A folder as `customer-context init` writes it.
    """

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "customer-context.toml"

    @property
    def ring(self) -> Path:
        return self.folder / "data" / "rings" / "demo.jwe"

    @property
    def sealing_key(self) -> Path:
        return self.folder / "sealing.key"

    @property
    def orchestrator(self) -> Path:
        return self.folder / "orchestrator"

    def change(self, old: str, new: str) -> None:
        """
        Replace a piece of the configuration that stands in it once.
        """
        text = self.config.read_text()
        assert text.count(old) == 1
        self.config.write_text(text.replace(old, new))

    def exchange_sealing_key(self) -> None:
        """
        Put another key under the name of the one that sealed the ring.
        """
        configured = next(line for line in self.config.read_text().splitlines() if line.startswith("id = "))
        self.sealing_key.unlink()
        write_sealing_key(self.sealing_key, generate_sealing_key(configured.split('"')[1]))

    def add_workspace(self) -> None:
        """
        Configure a second workspace, `other`, that has no ring yet.
        """
        self.config.write_text(self.config.read_text() + OTHER_WORKSPACE)


@dataclass(frozen=True)
class Service:
    """
    A service that runs as a process of its own.
    """

    dev: Dev
    origin: str
    process: subprocess.Popen[bytes]
    log: Path
    admin: tuple[str, str]

    @property
    def command(self) -> Path:
        return COMMAND

    @property
    def orchestrator(self) -> Orchestrator:
        return load_orchestrator(self.dev.orchestrator)

    def get(self, path: str) -> httpx2.Response:
        return httpx2.get(f"{self.origin}{path}", trust_env=False, timeout=5)

    def exchange(self, form: Mapping[str, str]) -> httpx2.Response:
        return httpx2.post(self.orchestrator.token_endpoint, data=form, trust_env=False, timeout=5)

    def kids(self) -> list[str]:
        return [key["kid"] for key in self.get("/w/demo/.well-known/jwks.json").json()["keys"]]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def start(folder: Path, environ: Mapping[str, str] | None = None) -> Service:
    """
    Write a configuration, start the service on a free port, and return when it is ready.
    """
    origin, log = f"http://127.0.0.1:{free_port()}", folder / "service.log"
    dev = Dev(folder / "dev")
    written = write_development_config(dev.folder, origin=origin, now=int(time.time()))
    command = [COMMAND, "serve", "--config", dev.config, "--port", origin.rpartition(":")[2]]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environ)
    service = Service(dev, origin, process, log, (written.admin, written.admin_secret))
    deadline = time.monotonic() + START_LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            service.get("/health/ready")
        except httpx2.HTTPError:
            time.sleep(0.05)
        else:
            return service
    stop(process)
    raise AssertionError(f"the service did not start:\n{log.read_text()}")


def stop(process: subprocess.Popen[bytes]) -> int:
    """
    End a process and return its exit status.
    """
    process.terminate()
    try:
        return process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


@pytest.fixture(name="start")
def start_fixture(tmp_path: Path) -> Iterator[Callable[[Mapping[str, str]], Service]]:
    """
    Start a service of the test's own with that environment; it is ended with the test.
    """
    started: list[Service] = []

    def run(environ: Mapping[str, str]) -> Service:
        started.append(start(tmp_path, environ))
        return started[-1]

    yield run
    for each in started:
        stop(each.process)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """
    One service for all tests that only ask it something.
    """
    running = start(tmp_path_factory.mktemp("service"))
    yield running
    stop(running.process)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("init") / "dev"
    write_development_config(folder, now=int(time.time()))
    return folder


@pytest.fixture
def dev(written: Path, tmp_path: Path) -> Dev:
    """
    A development configuration of the test's own, to spoil as it likes.
    """
    return Dev(shutil.copytree(written, tmp_path / "dev"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """
    Run a command in this process, and leave logging as it was.
    """
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger, logger.level, logger.disabled, logger.handlers[:]) for logger in loggers]

    def run(command: click.Command, *words: object) -> Result:
        return CliRunner().invoke(command, [str(word) for word in words], prog_name="customer-context")

    yield run
    for logger, level, disabled, handlers in before:
        logger.setLevel(level)
        logger.disabled = disabled
        logger.handlers[:] = handlers
