"""
What the tests share: really signed tokens, an API in both faces, a clock that stands still, an issuer that answers as told.
"""

import asyncio
import json
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from verifier import (
    AsyncCustomerContextVerifier,
    CustomerContext,
    CustomerContextError,
    CustomerContextVerifier,
    MemoryReplayStore,
)
from verifier.fetch import FetchResponse
from verifier.jwk import parse_key_set
from verifier.key_source import AsyncKeySource, KeySource

FIXTURE = json.loads((Path(__file__).parents[1] / "data" / "fixture.json").read_text())

JWKS_URL = "https://issuer.test/.well-known/jwks.json"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class StillClock:
    """
    A clock that stands still until it is moved; seconds.
    """

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


class ScriptedIssuer:
    """
    Answers every fetch with `answer` (a response, or an exception to raise) and remembers what it was asked with.

    `meanwhile` is called while a fetch is in flight, and awaited when it returns an awaitable.
    """

    def __init__(self) -> None:
        self.answer: FetchResponse | Exception = self.jwks("k1", "k2")
        self.asked: list[dict[str, str]] = []
        self.meanwhile: Callable[[], object] = lambda: None

    @staticmethod
    def jwks(*kids: str, **headers: str) -> FetchResponse:
        keys = [jwk for jwk in FIXTURE["jwks"]["keys"] if jwk["kid"] in kids]
        lines = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return FetchResponse(200, lines, json.dumps({"keys": keys}).encode())

    def fetch(self, _url: str, headers: Mapping[str, str], /) -> FetchResponse:
        self.asked.append(dict(headers))
        self.meanwhile()
        return self._answered()

    async def async_fetch(self, _url: str, headers: Mapping[str, str], /) -> FetchResponse:
        self.asked.append(dict(headers))
        waited = self.meanwhile()
        if isinstance(waited, Awaitable):
            await waited
        return self._answered()

    def _answered(self) -> FetchResponse:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class RawServer:
    """
    Serves TCP on 127.0.0.1 with a handler for each connection, on an event loop and a thread of its own.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._servers: list[asyncio.Server] = []

    def start(self, handler: Handler, **options: object) -> int:
        """
        Serve with *handler*, and return the port.
        """

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await handler(reader, writer)
                await writer.drain()
                writer.close()
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                writer.transport.abort()

        opened = asyncio.start_server(handle, "127.0.0.1", 0, **options)
        self._servers.append(asyncio.run_coroutine_threadsafe(opened, self._loop).result())
        return self._servers[-1].sockets[0].getsockname()[1]

    def close_servers(self) -> None:
        """
        Listen no longer.
        """

        async def close() -> None:
            for server in self._servers:
                server.close()

        asyncio.run_coroutine_threadsafe(close(), self._loop).result()

    def stop(self) -> None:
        """
        Close everything; connections are not waited for.
        """

        async def stop() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0.01)

        self.close_servers()
        asyncio.run_coroutine_threadsafe(stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def still_clock() -> StillClock:
    return StillClock()


@pytest.fixture
def scripted_issuer() -> ScriptedIssuer:
    return ScriptedIssuer()


@pytest.fixture
def raw_server() -> Iterator[RawServer]:
    server = RawServer()
    yield server
    server.stop()


class BlockingKeys:
    """
    A blocking key source whose fetches are run in place, so that everything has happened when a call returns.
    """

    def __init__(self, issuer: ScriptedIssuer, clock: StillClock, **options: Any) -> None:
        usual = {"fetch": issuer.fetch, "now": lambda: FIXTURE["now"], "monotonic": clock, "start": lambda run: run()}
        self.source = KeySource(JWKS_URL, **(usual | options))

    def key(self, kid: str) -> object:
        return self.source.key(kid)

    def used(self, kid: str) -> None:
        self.source.used(kid)

    def refresh(self) -> None:
        self.source.refresh()

    def close(self) -> None:
        self.source.close()

    def settle(self) -> None:
        pass


class AwaitedKeys:
    """
    An asynchronous key source on one event loop; `settle` lets what it began aside come to its end.
    """

    def __init__(self, issuer: ScriptedIssuer, clock: StillClock, **options: Any) -> None:
        usual = {"fetch": issuer.async_fetch, "now": lambda: FIXTURE["now"], "monotonic": clock}
        self.source = AsyncKeySource(JWKS_URL, parse=parse_key_set, **(usual | options))
        self.runner = asyncio.Runner()

    def key(self, kid: str) -> object:
        return self.runner.run(self.source.key(kid))

    def used(self, kid: str) -> None:
        async def call() -> None:
            self.source.used(kid)

        self.runner.run(call())

    def refresh(self) -> None:
        self.runner.run(self.source.refresh())

    def close(self) -> None:
        self.runner.run(self.source.aclose())

    def settle(self) -> None:
        async def wait() -> None:
            await asyncio.gather(*self.source._tasks)

        self.runner.run(wait())


@pytest.fixture(params=[BlockingKeys, AwaitedKeys], ids=["sync", "async"])
def key_source(
    request: pytest.FixtureRequest, scripted_issuer: ScriptedIssuer, still_clock: StillClock
) -> Iterator[Callable[..., BlockingKeys | AwaitedKeys]]:
    """
    Build a key source in either face that asks the scripted issuer.
    """
    built = []

    def build(**options: Any) -> BlockingKeys | AwaitedKeys:
        built.append(request.param(scripted_issuer, still_clock, **options))
        return built[-1]

    yield build
    for face in built:
        if isinstance(face, AwaitedKeys):
            face.runner.close()


def b64url(data: bytes) -> str:
    """
    Encode base64url without padding, by the standard library and not by the code under test.
    """
    return urlsafe_b64encode(data).rstrip(b"=").decode()


class Mint:
    """
    Tokens of the fixture's issuer, really signed and valid at `now` but for what the caller changes.
    """

    issuer: str = FIXTURE["issuer"]
    audience: str = FIXTURE["audience"]
    now: int = FIXTURE["now"]
    jwks: Mapping[str, Any] = FIXTURE["jwks"]
    header: Mapping[str, Any] = FIXTURE["base_header"]
    action = "cancel_order"
    arguments: Mapping[str, Any] = {
        "orderId": "A-1001",
        "refund": {"amount": 12.5, "currency": "EUR"},
        "tags": ["a", None],
    }
    key = "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"
    b64url = staticmethod(b64url)

    def __init__(self) -> None:
        self._numbers = count()
        self.private = {
            name: ec.derive_private_key(int.from_bytes(urlsafe_b64decode(jwk["d"] + "=")), ec.SECP256R1())
            for name, jwk in FIXTURE["private"].items()
        }

    def claims(self, **changes: Any) -> dict[str, Any]:
        """
        Return the base claims with a new jti and *changes*; `...` leaves a claim out.
        """
        claims = FIXTURE["base_claims"] | {"jti": f"jti-{next(self._numbers)}"} | changes
        return {name: value for name, value in claims.items() if value is not ...}

    def signed(self, *, header: Mapping[str, Any] | None = None, signer: str = "k1", **changes: Any) -> str:
        """
        Return a token with *changes* to its claims and *header* members over the usual ones; `...` leaves one out.
        """
        members = {name: value for name, value in {**self.header, **(header or {})}.items() if value is not ...}
        return self.compact(json.dumps(members).encode(), json.dumps(self.claims(**changes)).encode(), signer)

    def compact(self, header: bytes, payload: bytes, signer: str = "k1") -> str:
        """
        Sign octets as they are.
        """
        signing_input = f"{b64url(header)}.{b64url(payload)}"
        return f"{signing_input}.{b64url(self.signature(signing_input.encode(), signer))}"

    def signature(self, signing_input: bytes, signer: str = "k1") -> bytes:
        """
        Return 64 octets R then S.
        """
        der = self.private[signer].sign(signing_input, ec.ECDSA(SHA256(), deterministic_signing=True))
        return b"".join(number.to_bytes(32) for number in decode_dss_signature(der))

    def caplo(self, *, arguments: Any = None, **changes: Any) -> dict[str, Any]:
        """
        Return the claim that binds a token to the action, with *changes*; `...` leaves a member out.
        """
        confirmed = self.arguments if arguments is None else arguments
        preimage = {"action": self.action, "arguments": confirmed, "idempotencyKey": self.key}
        members = {
            "action": self.action,
            "actionDigest": b64url(sha256(b"caplo-action-digest:v1\0" + rfc8785.dumps(preimage)).digest()),
            "idempotencyKey": self.key,
            "confirmation": {"by": "client", "at": self.now - 20},
        } | changes
        return {name: value for name, value in members.items() if value is not ...}

    def write(self, **changes: Any) -> str:
        """
        Return a token bound to the action.
        """
        return self.signed(caplo=self.caplo(), **changes)

    @property
    def call(self) -> dict[str, Any]:
        """
        What an API says that is about to do that action.
        """
        return {"action": self.action, "arguments": self.arguments}


class API:
    """
    A partner's API with one verifier, blocking or asynchronous.
    """

    def __init__(self, verifier: CustomerContextVerifier | AsyncCustomerContextVerifier) -> None:
        self.verifier = verifier

    def verify(self, token: Any, **demands: Any) -> CustomerContext:
        """
        Verify, on an event loop of its own where the verifier needs one.
        """
        if isinstance(self.verifier, AsyncCustomerContextVerifier):
            return asyncio.run(self.verifier.verify(token, **demands))
        return self.verifier.verify(token, **demands)

    def refusal(self, token: Any, **demands: Any) -> CustomerContextError:
        """
        Verify what has to be refused.
        """
        with pytest.raises(CustomerContextError) as refusal:
            self.verify(token, **demands)
        return refusal.value

    def refused(self, token: Any, **demands: Any) -> str:
        """
        Verify what has to be refused, and return the reason.
        """
        return self.refusal(token, **demands).reason


@pytest.fixture(scope="session")
def mint() -> Mint:
    return Mint()


@pytest.fixture
def wall_clock(mint: Mint) -> StillClock:
    """
    The wall clock of every API, at the instant the tokens are made for.
    """
    clock = StillClock()
    clock.at = mint.now
    return clock


@pytest.fixture(params=[CustomerContextVerifier, AsyncCustomerContextVerifier], ids=["sync", "async"])
def api(request: pytest.FixtureRequest, mint: Mint, wall_clock: StillClock) -> Callable[..., API]:
    """
    Build an API in either face; it knows the fixture's issuer and keys but for what the caller changes.

    `fetch` is a plain function, and takes the place of the fixed keys.
    """

    def build(**options: Any) -> API:
        usual = {
            "issuer": mint.issuer,
            "audience": mint.audience,
            "replay_store": MemoryReplayStore(now=wall_clock),
            "jwks": None if "fetch" in options else mint.jwks,
            "now": wall_clock,
        }
        if "fetch" in options and request.param is AsyncCustomerContextVerifier:
            options["fetch"] = awaited(options["fetch"])
        return API(request.param(**(usual | options)))

    return build


def awaited(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """
    Make a plain function one that has to be awaited.
    """

    async def answer(*args: Any) -> Any:
        return function(*args)

    return answer
