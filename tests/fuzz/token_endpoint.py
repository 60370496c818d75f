"""
Random and mutated requests into the token endpoint: always RFC 6749 JSON with a registered code, never a failure of the service.

The service is the real one, on a development configuration as `customer-context init` writes it, with its clocks standing still.
"""

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote_plus, urlencode

from maker import ARGUMENTS, KEY, NOW, ODD_JSON, ODD_TEXTS, Maker

from issuer.app import create_app
from issuer.errors import OAuthError
from issuer.init_config import write_development_config
from issuer.orchestrator import Ask, Orchestrator, RequestedWrite, load_orchestrator
from issuer.service import open_service
from issuer.settings import load_settings

__all__ = ["Refused", "token_endpoint"]

FORM = "application/x-www-form-urlencoded"
REGISTERED = frozenset(get_args(OAuthError)) - {"server_error"}
SAFE = frozenset(map(chr, range(0x20, 0x7F))) - {'"', "\\"}
MEDIA_TYPES = [
    FORM,
    FORM.upper(),
    f"{FORM};charset=utf-8",
    f"{FORM};charset=x",
    "application/json",
    "multipart/form-data",
    "",
    "\xff",
]
METHODS = ["GET", "HEAD", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "FOO", "post", ""]
SCHEMES = [
    "Basic YzE6cw==",
    "Basic ",
    "Basic \xff",
    "basic !",
    "Bearer x",
    "",
    "Basic " + "A" * 3000,
    "Digest a=b",
    "\x00",
]
LINES = [
    ("content-encoding", "gzip"),
    ("transfer-encoding", "x"),
    ("content-length", "-1"),
    ("expect", "100-continue"),
    ("x", "y" * 40_000),
]
# On a clock that stands still, two hundred good requests would be all.
UNLIMITED = {f"CUSTOMER_CONTEXT_LIMITS__{name}": "0" for name in ("CLIENT_PER_SECOND", "CUSTOMER_PER_MINUTE")}
PARAMETERS = [
    *("grant_type", "client_id", "client_secret", "client_assertion", "client_assertion_type", "subject_token"),
    *("subject_token_type", "actor_token", "actor_token_type", "requested_token_type", "resource", "audience"),
    *("scope", "acr_values", "max_age", "authorization_details", "foo"),
]

Message = dict[str, Any]


class Refused(Exception):
    """
    Raised for an OAuth error, which is what most requests get.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def token_endpoint(maker: Maker, inputs: int) -> Iterator[tuple[str, Callable[[], str]]]:
    """
    Give the token endpoint requests, on one event loop.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "dev"
        config = write_development_config(root, origin="https://issuer.test", now=NOW - 1000).config
        orchestrator = load_orchestrator(root / "orchestrator")
        with asyncio.Runner() as runner:
            opened = open_service(load_settings(config, UNLIMITED), now=lambda: NOW, monotonic=lambda: 0.0)
            app = create_app(runner.run(opened))
            requests = _Requests(maker, orchestrator, runner)
            for _ in range(inputs):
                request = requests.any()
                yield repr(request), lambda: runner.run(_answered(app, *request))  # noqa: B023 -- called before the next


class _Requests:
    """
    Makes requests, from good ones to octets without a meaning: method, header lines, query, pieces of the body.
    """

    def __init__(self, maker: Maker, orchestrator: Orchestrator, runner: asyncio.Runner) -> None:
        self.maker, self.random, self.orchestrator, self.runner = maker, maker.random, orchestrator, runner

    def any(self) -> tuple[str, list[tuple[str, str]], bytes, list[bytes]]:
        body = self.random.choice(
            [self.good, self.odd_parameters, self.odd_parameters, self.odd_details, self.mutated, self.octets]
        )()
        method, query, lines = "POST", b"", [("content-type", FORM)]
        if self.random.random() < 0.15:
            lines = [("content-type", self.random.choice(MEDIA_TYPES)) for _ in range(self.random.randrange(3))]
        if self.random.random() < 0.15:
            lines += [("authorization", self.random.choice(SCHEMES)) for _ in range(self.random.randint(1, 2))]
        if self.random.random() < 0.05:
            lines.append(self.random.choice(LINES))
        if self.random.random() < 0.05:
            method = self.random.choice(METHODS)
        if self.random.random() < 0.05:
            query = self.random.choice([body, self.random.randbytes(30), b"a" * 9000])
        pieces = [body] if self.random.random() < 0.9 else [body[:7], b"", body[7:]]
        return method, lines, query, pieces

    def form(self) -> dict[str, str]:
        confirmed_at = self.random.choice([NOW, NOW - 1799, NOW - 1800, NOW + 6])
        key = f"{KEY}-{self.random.randrange(40)}"
        write = RequestedWrite(
            action="cancel_order", arguments=ARGUMENTS, idempotency_key=key, confirmed_at=confirmed_at
        )
        ask = Ask(
            sub=self.random.choice(["cus_1", "é\0", "s" * 1024]),
            acr=self.random.choice(["low", "standard", "high"]),
            auth_time=NOW - self.random.choice([0, 600, -6]),
            audience=self.orchestrator.audience,
            scope=self.random.choice([None, "orders:read", "orders:write"]),
            write=self.random.choice([None, write]),
        )
        return self.runner.run(self.orchestrator.form(ask, NOW))

    def good(self) -> bytes:
        return urlencode(self.form()).encode()

    def odd_parameters(self) -> bytes:
        """
        Change, drop, add and repeat parameters of a good request; tokens are put in other places, too.
        """
        pairs = list(self.form().items())
        for _ in range(self.random.randint(1, 3)):
            place = self.random.randrange(len(pairs))
            name = self.random.choice([*PARAMETERS, pairs[place][0]])
            value = self.random.choice(
                [self.text(), self.maker.odd_claims(), self.maker.mutated(), self.random.choice(pairs)[1]]
            )
            change = self.random.randrange(4)
            if change == 0 and len(pairs) > 1:
                del pairs[place]
            elif change == 1:
                pairs.insert(place, (name, value))
            else:
                pairs[place] = (pairs[place][0] if change == 2 else name, value)
        return urlencode(pairs).encode()

    def odd_details(self) -> bytes:
        """
        Put odd JSON into `authorization_details` of a good request.
        """
        members: dict[str, Any] = {
            "type": "caplo_action",
            "action": "cancel_order",
            "arguments": ARGUMENTS,
            "idempotencyKey": KEY,
            "confirmation": {"by": "client", "at": NOW},
        }
        for _ in range(self.random.randint(0, 2)):
            members[self.random.choice([*members, "x"])] = self.maker.value()
        values = [json.dumps([members]).encode(), json.dumps(self.maker.value()).encode(), self.random.choice(ODD_JSON)]
        form = urlencode(self.form() | {"authorization_details": ""}).encode()
        return form.replace(
            b"authorization_details=", b"authorization_details=" + quote_plus(self.random.choice(values)).encode()
        )

    def mutated(self) -> bytes:
        """
        Change, insert, drop or repeat a few octets of a good body.
        """
        body = bytearray(self.good())
        for _ in range(self.random.randint(1, 5)):
            place = self.random.randrange(len(body))
            change = self.random.randrange(4)
            if change == 0:
                body[place] = self.random.randrange(256)
            elif change == 1:
                body[place:place] = self.random.choice([b"&", b"=", b"%", b"%00", b"%ff", b"+", b"\0", b"\xff"])
            elif change == 2:
                del body[place : place + self.random.randint(1, 40)]
                body = body or bytearray(b"&")
            else:
                body[place:place] = body[place : place + self.random.randint(1, 400)]
        return bytes(body)

    def octets(self) -> bytes:
        """
        Make a body of random octets, of the characters that divide a form, or of too much of one thing.
        """
        return self.random.choice(
            [
                self.random.randbytes(self.random.randrange(200)),
                bytes(self.random.choices(b"ab&=%+4", k=self.random.randrange(60))),
                self.random.choice([b"", b"&" * 100, b"a=1&" * 20_000, b"a=" + b"x" * 70_000, b"%" * 65_536]),
            ]
        )

    def text(self) -> str:
        return self.random.choice(ODD_TEXTS).encode("utf-8", "replace").decode()


async def _answered(app: Any, method: str, lines: list[tuple[str, str]], query: bytes, pieces: list[bytes]) -> str:
    """
    Send one request and check that its answer is one of the endpoint.
    """
    waiting = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    waiting.append({"type": "http.request", "body": b"", "more_body": False})
    sent: list[Message] = []

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    path = "/w/demo/oauth/token"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "root_path": "",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in lines],
        "client": ("127.0.0.1", 1),
        "server": ("issuer.test", 443),
    }
    await app(scope, receive, send)
    head, body = sent[0], b"".join(message.get("body", b"") for message in sent[1:])
    return _outcome(
        method, head["status"], {name.decode().lower(): value.decode() for name, value in head["headers"]}, body
    )


def _outcome(method: str, status: int, headers: dict[str, str], body: bytes) -> str:
    assert status < 500, f"a failure: {status} {body!r}"
    assert headers["cache-control"] == "no-store", headers
    if method in ("HEAD", "OPTIONS"):
        return f"{method} {status}"
    assert headers["content-type"] == "application/json", headers
    assert headers["pragma"] == "no-cache", headers
    assert ("www-authenticate" in headers) == (status == 401), headers
    assert ("allow" in headers) == (status == 405), headers
    members = json.loads(body)
    if status == 200:
        assert members["token_type"] == "Bearer", members
        return "minted"
    assert members.keys() == {"error", "error_description"}, members
    assert members["error"] in REGISTERED, members
    assert set(members["error_description"]) <= SAFE, members
    raise Refused(members["error"])
