"""
Servers for the tests of the stores: a real one, one that answers as told, and what stands between.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

from ... import redis_server
from ...redis_server import RedisServer

__all__ = [
    "Epochs",
    "Forwarder",
    "Proxy",
    "ScriptedRedis",
    "Server",
    "bulk",
    "read_command",
    "read_reply",
    "replicates",
    "valkey_binary",
    "wait_until",
]


def valkey_binary() -> str | None:
    """
    Return the Valkey that comes with the development dependencies, or None.
    """
    find = redis_server.get_binary_path
    return str(find()) if find is not None else None


class Server(RedisServer):
    """
    A server of one kind; `with` starts and stops it.
    """

    def __init__(self, folder: Path, *options: str, binary: str, config: str = "") -> None:
        super().__init__(folder, *(options or ("--save", "", "--appendonly", "no")), config=config)
        self.binary = binary

    def start(self) -> None:
        """
        Start it and wait until it answers.
        """
        with patch.object(redis_server, "redis_binary", lambda: self.binary):
            super().start()

    def recover(self) -> None:
        """
        Make it run, empty and as it was configured at first.
        """
        if not self.runs:
            self.start()
        self.resume()
        with self.client() as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "128mb")
            client.replicaof("NO", "ONE")
            client.flushall()
            client.script_flush()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Epochs:
    """
    The epoch records of a server, read and written as tests need them.
    """

    def __init__(self, server: RedisServer, key: str = "cc:e") -> None:
        self._server = server
        self._key = key

    @property
    def identity(self) -> str:
        with self._server.client() as client:
            return client.info("replication")["master_replid"]

    @property
    def record(self) -> str | None:
        with self._server.client() as client:
            held = client.get(self._key)
            return None if held is None else held.decode()

    @property
    def age_s(self) -> float:
        """
        How long ago the epoch began, on the server's clock.
        """
        with self._server.client() as client:
            seconds, micros = client.time()
            return seconds + micros / 1e6 - int((self.record or "").partition(" ")[2]) / 1000

    def age(self, seconds: float) -> None:
        """
        Let that much time pass since the epoch.
        """
        identity, _, at = (self.record or "").partition(" ")
        with self._server.client() as client:
            client.set(self._key, f"{identity} {int(at) - int(seconds * 1000)}")

    def begin(self, *, age_s: float = 0.0, identity: str | None = None) -> None:
        """
        Write a record as a store would have done it *age_s* ago.
        """
        with self._server.client() as client:
            seconds, micros = client.time()
            at = seconds * 1000 + micros // 1000 - int(age_s * 1000)
            client.set(self._key, f"{identity or self.identity} {at}")


async def read_command(reader: asyncio.StreamReader) -> list[bytes]:
    """
    Read one command as clients write it.
    """
    count = int((await reader.readuntil(b"\r\n"))[1:])
    words = []
    for _ in range(count):
        length = int((await reader.readuntil(b"\r\n"))[1:])
        words.append((await reader.readexactly(length + 2))[:-2])
    return words


async def read_reply(reader: asyncio.StreamReader) -> bytes:
    """
    Read one RESP2 reply as it stands.
    """
    line = await reader.readuntil(b"\r\n")
    if line[:1] == b"$" and line != b"$-1\r\n":
        return line + await reader.readexactly(int(line[1:]) + 2)
    if line[:1] == b"*":
        return line + b"".join([await read_reply(reader) for _ in range(int(line[1:]))])
    return line


def bulk(value: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(value), value)


Answer = Callable[[list[bytes]], bytes | None]


class ScriptedRedis:
    """
    Answers each claim with `answer(words)`, raw RESP, or not at all for None; opens epochs and greets as a Redis does.
    """

    def __init__(self, raw_server: Any, answer: Answer) -> None:
        self.answer = answer
        self.commands: list[list[bytes]] = []
        self.connections = 0
        self.port = raw_server.start(self._serve)
        self.url = f"redis://127.0.0.1:{self.port}"

    @property
    def claims(self) -> list[list[bytes]]:
        return [words for words in self.commands if words[0] in (b"EVAL", b"EVALSHA") and words[2] == b"2"]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while True:
            words = await read_command(reader)
            self.commands.append(words)
            reply = self._reply(words)
            if reply == b"":
                return
            if reply is not None:
                writer.write(reply)
                await writer.drain()

    def _reply(self, words: list[bytes]) -> bytes | None:
        if words[0] in (b"EVAL", b"EVALSHA") and words[2] == b"1":
            return bulk(words[4] + b" old")
        if words[0] in (b"EVAL", b"EVALSHA", b"WAIT"):
            return self.answer(words)
        return b"+OK\r\n"


Spoil = Callable[[int, bytes], Awaitable[bytes | None] | bytes | None]


class Proxy:
    """
    Passes commands on as they are, and each reply to a claim through `spoil(number, reply)`; None keeps the reply back.
    """

    def __init__(self, raw_server: Any, port: int, spoil: Spoil) -> None:
        self._upstream = port
        self._spoil = spoil
        self._tasks: set[Any] = set()
        self.replies = 0
        self.port = raw_server.start(self._serve)
        self.url = f"redis://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Between two connections a task is held by neither, and could be collected as garbage.
        self._tasks.add(asyncio.current_task())
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        try:
            while True:
                words = await read_command(reader)
                up_writer.write(b"*%d\r\n" % len(words) + b"".join(bulk(word) for word in words))
                reply = await read_reply(up_reader)
                if words[0] in (b"EVAL", b"EVALSHA") and words[2] == b"2":
                    self.replies += 1
                    spoiled = self._spoil(self.replies, reply)
                    reply = await spoiled if isinstance(spoiled, Awaitable) else spoiled
                if reply is not None:
                    writer.write(reply)
                    await writer.drain()
        finally:
            up_writer.close()


class Forwarder:
    """
    Passes octets on both ways until it is told to hold those of one server back, which its client cannot tell from silence.
    """

    def __init__(self, raw_server: Any, port: int) -> None:
        self._upstream = port
        self._tasks: set[Any] = set()
        self.holding = False
        self.port = raw_server.start(self._serve)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream)

        async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter, *, may_hold: bool) -> None:
            while octets := await source.read(65536):
                if not (may_hold and self.holding):
                    target.write(octets)
                    await target.drain()

        try:
            await asyncio.gather(pass_on(reader, up_writer, may_hold=False), pass_on(up_reader, writer, may_hold=True))
        finally:
            up_writer.close()


def wait_until(condition: Callable[[], bool], limit_s: float = 30) -> None:
    """
    Wait for what servers do among themselves.
    """
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def replicates(server: RedisServer) -> bool:
    """
    Tell whether a replica is in step with its primary.
    """
    with server.client() as client:
        return client.info("replication").get("master_link_status") == "up"
