"""
What the replay soak is played on: tokens, partners' processes, Redis servers, and what stands between them.
"""

import asyncio
import importlib.util
import json
import secrets
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replay_worker import AUDIENCE, ISSUER

from keys import LocalSigner, generate_key
from verifier.compact import b64url_encode

__all__ = ["Link", "Mint", "Outcomes", "Partner", "RedisServer", "read_reply"]

HERE = Path(__file__).parent
END_LIMIT_S = 120


def _redis_server() -> Any:
    spec = importlib.util.spec_from_file_location("redis_server", HERE.parent / "redis_server.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["redis_server"] = module
    spec.loader.exec_module(module)
    return module.RedisServer


RedisServer = _redis_server()


class Mint:
    """
    Signs tokens with one key.
    """

    def __init__(self) -> None:
        key = generate_key()
        self.jwks = json.dumps({"keys": [dict(key.public_jwk)]})
        self._signer = LocalSigner(key)
        self._header = b64url_encode(json.dumps({"alg": "ES256", "typ": "at+jwt", "kid": key.kid}).encode())

    async def token(self, now: float) -> str:
        """
        Return a line for partners: the jti and the token.
        """
        jti = secrets.token_urlsafe(16)
        at = int(now)
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "cus_48213", "client_id": "orc_main", "jti": jti}
        claims |= {"iat": at, "exp": at + 60, "acr": "standard", "auth_time": at - 60, "act": {"sub": "agt_support"}}
        signing_input = f"{self._header}.{b64url_encode(json.dumps(claims).encode())}"
        signature = await self._signer.sign(signing_input.encode())
        return f"{jti} {signing_input}.{b64url_encode(signature)}"


@dataclass
class Outcomes:
    """
    What all partners heard of each token.
    """

    heard: dict[str, list[tuple[str, float]]] = field(default_factory=dict)

    def take(self, line: str) -> None:
        jti, outcome, at = line.split()
        self.heard.setdefault(jti, []).append((outcome, float(at)))

    @property
    def counts(self) -> Counter[str]:
        return Counter(outcome for heard in self.heard.values() for outcome, _ in heard)

    @property
    def accepted_twice(self) -> int:
        return sum(sum(outcome == "accepted" for outcome, _ in heard) > 1 for heard in self.heard.values())

    @property
    def called_replays_unaccepted(self) -> int:
        """
        Tokens that somebody was told are replays, while nobody was accepted or could have been: no store was ever unsure of them.
        """
        told = [{outcome for outcome, _ in heard} for heard in self.heard.values()]
        return sum("replayed" in outcomes and not outcomes & {"accepted", "replay_unavailable"} for outcomes in told)

    def first_success_after(self, instant: float) -> float | None:
        later = [at for heard in self.heard.values() for outcome, at in heard if outcome == "accepted" and at > instant]
        return min(later) - instant if later else None


class Partner:
    """
    One partner's process.
    """

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes

    async def start(self, *arguments: str) -> "Partner":
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(HERE / "replay_worker.py"), *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert await self.process.stdout.readline() == b"ready\n"
        return self

    def tell(self, *lines: str) -> None:
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())

    async def end(self) -> None:
        """
        Let it present what it has been told of, and take down what it heard.
        """
        self.process.stdin.close()
        try:
            async with asyncio.timeout(END_LIMIT_S):
                async for line in self.process.stdout:
                    self._outcomes.take(line.decode())
                assert await self.process.wait() == 0
        finally:
            if self.process.returncode is None:
                self.process.kill()
                await self.process.wait()


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


class Link:
    """
    Passes octets on both ways, and what the server says through `spoil`: a reply at a time, or all of it held back.
    """

    def __init__(self, port: int, read: Callable[[asyncio.StreamReader], Awaitable[bytes]]) -> None:
        self._upstream = port
        self._read = read
        self._tasks: set[Any] = set()
        self.drop_every = 0
        self.holding = False
        self._passed = 0

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(reader, up_writer, lambda each: each.read(65536), spoils=False))
                both.create_task(self._pass_on(up_reader, writer, self._read, spoils=True))
        except* (ConnectionError, EOFError):
            pass
        finally:
            writer.close()
            up_writer.close()
            self._tasks.discard(task)

    async def _pass_on(self, source: Any, target: Any, read: Any, *, spoils: bool) -> None:
        while octets := await read(source):
            self._passed += spoils
            if spoils and (self.holding or (self.drop_every and self._passed % self.drop_every == 0)):
                continue
            target.write(octets)
            await target.drain()
        raise EOFError
