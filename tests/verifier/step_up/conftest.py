"""
A partner's API over real HTTP with a real verifier, an orchestrator that mints real tokens, and clients in both faces.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from verifier import (
    CustomerContextError,
    CustomerContextVerifier,
    MemoryReplayStore,
    StepUp,
    action_digest,
    bearer_token,
)
from verifier.step_up_client import (
    APICall,
    APIResponse,
    AsyncStepUpClient,
    SignInRequest,
    StepUpClient,
    StepUpGuard,
    TokenRequest,
)

Answer = tuple[int, list[tuple[str, str]], bytes]
KEY = "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"


@dataclass(frozen=True, kw_only=True)
class Received:
    """
    One request as it arrived.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def token(self) -> str:
        return self.headers["authorization"].removeprefix("Bearer ")


class WebServer:
    """
    Serves HTTP on 127.0.0.1, answers as it is told and remembers what it was sent.
    """

    def __init__(self, answer: Callable[[Received], Answer]) -> None:
        self.received: list[Received] = []
        self.answer = answer
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                assert len(headers) == len(self.headers)
                received = Received(method=self.command, path=self.path, headers=headers, body=body)
                outer.received.append(received)
                status, lines, content = outer.answer(received)
                self.send_response(status)
                for name, value in [*lines, ("Content-Length", str(len(content)))]:
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_POST = do_DELETE = serve  # noqa: N815 -- as the standard library looks for them

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *answers: Callable[[Received], Answer]) -> None:
        """
        Give each of these answers once, in turn.
        """
        left = iter(answers)

        def answer(received: Received) -> Answer:
            return next(left)(received)

        self.answer = answer

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class PartnerAPI:
    """
    The API of a partner: reads everywhere, but `/orders/A-1001/cancel` is a write.

    `policy` tells what the n-th call with a good token demands. When *stubborn* it demands that of any sign-in.
    """

    def __init__(self, mint: Any, clock: Callable[[], float]) -> None:
        self.policy: Callable[[int], StepUp | None] = lambda _: None
        self.stubborn = False
        self.accepted: list[Any] = []
        self.challenges = 0
        self._numbers = iter(range(1_000_000))
        self._verifier = CustomerContextVerifier(
            issuer=mint.issuer,
            audience=mint.audience,
            replay_store=MemoryReplayStore(now=clock),
            jwks=mint.jwks,
            now=clock,
        )
        self.server = WebServer(self.answer)

    def answer(self, received: Received) -> Answer:
        try:
            self.accepted.append(self._verified(received))
        except CustomerContextError as refusal:
            self.challenges += refusal.reason == "step_up"
            return refusal.status, [("WWW-Authenticate", refusal.www_authenticate)], refusal.reason.encode()
        return 200, [("Content-Type", "text/plain")], b"done"

    def _verified(self, received: Received) -> Any:
        write = {}
        if received.path.endswith("/cancel"):
            key = received.headers["idempotency-key"]
            write = {"action": "cancel_order", "arguments": received.body, "idempotency_key": key}
        context = self._verifier.verify(bearer_token(received.headers.get("authorization")), **write)
        demand = self.policy(next(self._numbers))
        if demand is None:
            return context
        if self.stubborn:
            raise CustomerContextError("step_up", parameters=demand.parameters())
        return context.require(level=demand.level, max_auth_age_seconds=demand.max_auth_age_seconds)


class Orchestrator:
    """
    An orchestrator whose customer is signed in, and signs in again as asked for unless `reaches` says otherwise.
    """

    def __init__(self, mint: Any, clock: Callable[[], float]) -> None:
        self._mint = mint
        self._clock = clock
        self.level: Any = "standard"
        self.auth_time = mint.now - 600
        self.minted: list[TokenRequest] = []
        self.asked: list[SignInRequest] = []
        self.tokens: list[str] = []
        self.reaches: Callable[[SignInRequest], Any] = lambda request: request.demand.level or self.level

    def mint(self, request: TokenRequest) -> Any:
        self.minted.append(request)
        changes = {}
        if request.action is not None:
            bound = {"action": request.action, "idempotency_key": request.idempotency_key}
            changes["caplo"] = self._mint.caplo(
                action=request.action,
                actionDigest=action_digest(arguments=request.arguments, **bound),
                idempotencyKey=request.idempotency_key,
            )
        now = int(self._clock())
        times = {"iat": now, "exp": now + 60, "auth_time": self.auth_time}
        self.tokens.append(self._mint.signed(acr=self.level, **times, **changes))
        return self.tokens[-1]

    def sign_in(self, request: SignInRequest) -> Any:
        self.asked.append(request)
        reached = self.reaches(request)
        if reached is not None:
            self.level, self.auth_time = reached, self._clock()
        return reached


@dataclass
class Face:
    """
    A client in either face, called as a blocking one.
    """

    client: StepUpClient | AsyncStepUpClient

    def call(self, call: APICall) -> APIResponse:
        if isinstance(self.client, AsyncStepUpClient):
            return asyncio.run(self.client.call(call))
        return self.client.call(call)


@dataclass
class World:
    """
    Everybody at once.
    """

    partner: PartnerAPI
    orchestrator: Orchestrator
    clock: Any
    audience: str
    faces: Callable[..., Face]
    servers: list[WebServer] = field(default_factory=list)

    def face(self, **options: Any) -> Face:
        """
        Build a client that knows the partner's API below `/v1`.
        """
        usual = {
            "apis": {self.audience: self.partner.server.url + "/v1"},
            "mint": self.orchestrator.mint,
            "sign_in": self.orchestrator.sign_in,
            "guard": StepUpGuard(now=self.clock),
        }
        return self.faces(**(usual | options))

    def serve(self, answer: Callable[[Received], Answer]) -> WebServer:
        """
        Start another server.
        """
        self.servers.append(WebServer(answer))
        return self.servers[-1]

    def read(self, path: str = "/orders", **changes: Any) -> APICall:
        usual = {"audience": self.audience, "conversation": "c-1", "method": "GET", "path": path}
        return APICall(**(usual | changes))

    def write(self, key: str = KEY, **changes: Any) -> APICall:
        usual = {
            "audience": self.audience,
            "conversation": "c-1",
            "method": "POST",
            "path": "/orders/A-1001/cancel",
            "action": "cancel_order",
            "arguments": {"orderId": "A-1001", "refund": {"amount": 12.5}},
            "idempotency_key": key,
        }
        return APICall(**(usual | changes))


def awaited(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """
    Make a blocking callback one that has to be awaited, on a thread, so that it may take its time.
    """

    async def answer(*args: Any) -> Any:
        return await asyncio.to_thread(function, *args)

    return answer


def blocking(**options: Any) -> Face:
    return Face(StepUpClient(**options))


def asynchronous(**options: Any) -> Face:
    callbacks = {name: awaited(options[name]) for name in ("mint", "sign_in", "send") if options.get(name)}
    return Face(AsyncStepUpClient(**(options | callbacks)))


@pytest.fixture(params=[blocking, asynchronous], ids=["sync", "async"])
def world(request: pytest.FixtureRequest, mint: Any, wall_clock: Any) -> Iterator[World]:
    partner = PartnerAPI(mint, wall_clock)
    built = World(partner, Orchestrator(mint, wall_clock), wall_clock, mint.audience, request.param)
    yield built
    for server in [partner.server, *built.servers]:
        server.stop()
