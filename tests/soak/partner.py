"""
A partner's API as a process of its own on a fast clock: it verifies what it is sent and says what came of it.

    partner.py PORT KIND ISSUER AUDIENCE TOLERANCE REPLAY CLOCK ORIGIN...

KIND is `sync` (the standard library's server, threads) or `async` (uvicorn). It fetches keys from the origins in turn, as through
a balancer. REPLAY is `memory` or `none`. POST / and POST /cancel verify a read and a write; POST /control cuts the partner off
from the issuer, lets it back, or has it fetch the keys now.
"""

import json
import ssl
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from typing import Any

import uvicorn
from clock import FastClock

from verifier import AsyncCustomerContextVerifier, CustomerContextError, CustomerContextVerifier, MemoryReplayStore
from verifier.fetch import AsyncHTTPFetch, FetchError, FetchResponse, HTTPFetch

# Nothing here is fetched by TLS; reading the trusted authorities for each fetch would only take time.
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
MAX_BODY = 64 * 1024


class Road:
    """
    The way to the issuer: one origin after the other, and none while it is cut.
    """

    def __init__(self, issuer: str, origins: list[str]) -> None:
        self._origin = "/".join(issuer.split("/")[:3])
        self._origins = cycle(origins)
        self.is_cut = False
        self.fetches = 0

    def address(self, url: str) -> str:
        self.fetches += 1
        if self.is_cut:
            raise FetchError("cut off")
        return next(self._origins) + url.removeprefix(self._origin)


class Fetch:
    def __init__(self, road: Road) -> None:
        self._road = road
        self._fetch = HTTPFetch(ssl_context=CONTEXT)

    def __call__(self, url: str, headers: Mapping[str, str]) -> FetchResponse:
        return self._fetch(self._road.address(url), headers)


class AsyncFetch:
    def __init__(self, road: Road) -> None:
        self._road = road
        self._fetch = AsyncHTTPFetch(ssl_context=CONTEXT)

    async def __call__(self, url: str, headers: Mapping[str, str]) -> FetchResponse:
        return await self._fetch(self._road.address(url), headers)


class Partner:
    """
    What both kinds share: the demands of the two endpoints, and the answers.
    """

    def __init__(self, clock: FastClock, road: Road) -> None:
        self.clock = clock
        self.road = road

    def demand(self, path: str, body: bytes) -> dict[str, Any]:
        if path == "/cancel":
            return {"action": "cancel_order", "arguments": body, "scope": "orders:write", "confirmation": "client"}
        return {"scope": "orders:read"}

    def answer(self, began: float, reason: str | None) -> bytes:
        return json.dumps({"reason": reason, "began": began, "ended": self.clock.now()}).encode()

    def control(self, body: bytes) -> bool:
        """
        Take an order; True when the keys are to be fetched now.
        """
        order = json.loads(body or b"{}")
        self.road.is_cut = order.get("cut", self.road.is_cut)
        return order.get("refresh", False)


def serve_sync(port: int, partner: Partner, options: dict[str, Any]) -> None:
    verifier = CustomerContextVerifier(fetch=Fetch(partner.road), **options)

    class API(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body of an answer are two writes; without this the second waits for the first to be acknowledged.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(min(int(self.headers.get("content-length", 0)), MAX_BODY))
            began, reason = partner.clock.now(), None
            try:
                if self.path != "/control":
                    token = self.headers.get("authorization", "").removeprefix("Bearer ")
                    verifier.verify(token, **partner.demand(self.path, body))
                elif partner.control(body):
                    verifier.refresh()
            except CustomerContextError as error:
                reason = error.reason
            answer = partner.answer(began, reason)
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """
            Say nothing.
            """

    ThreadingHTTPServer(("127.0.0.1", port), API).serve_forever()


def serve_async(port: int, partner: Partner, options: dict[str, Any]) -> None:
    verifier = AsyncCustomerContextVerifier(fetch=AsyncFetch(partner.road), **options)

    async def judged(path: str, headers: Mapping[bytes, bytes], body: bytes) -> str | None:
        try:
            if path != "/control":
                token = headers.get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
                await verifier.verify(token, **partner.demand(path, body))
            elif partner.control(body):
                await verifier.refresh()
        except CustomerContextError as error:
            return error.reason
        return None

    async def api(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        began = partner.clock.now()
        reason = await judged(scope["path"], dict(scope["headers"]), body)
        answer = partner.answer(began, reason)
        length = (b"content-length", str(len(answer)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": answer})

    uvicorn.run(api, host="127.0.0.1", port=port, lifespan="off", log_config=None, access_log=False)


def main() -> None:
    port, kind, issuer, audience, tolerance, replay, clock_text, *origins = sys.argv[1:]
    clock = FastClock.parse(clock_text)
    options = {
        "issuer": issuer,
        "audience": audience,
        "clock_tolerance_seconds": int(tolerance),
        "replay_store": MemoryReplayStore(now=clock.now) if replay == "memory" else None,
        "now": clock.now,
        "monotonic": clock.monotonic,
    }
    partner = Partner(clock, Road(issuer, origins))
    (serve_sync if kind == "sync" else serve_async)(int(port), partner, options)


if __name__ == "__main__":
    main()
