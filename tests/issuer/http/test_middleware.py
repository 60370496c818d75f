"""
The edge: what it bounds, what it counts, and the headers that every answer has.
"""

import asyncio
import json
from dataclasses import replace

import pytest
from litestar.exceptions import WebSocketDisconnect
from litestar.testing import TestClient

from issuer.app import create_app
from issuer.http.middleware import UNMATCHED, Edge, Limits

ENDLESS = {"type": "http.request", "body": b"a=b", "more_body": True}
WHOLE = {"type": "http.request", "body": b"a=b", "more_body": False}
GONE = {"type": "http.disconnect"}
FORM = (b"content-type", b"application/x-www-form-urlencoded")
CHUNKED = (b"transfer-encoding", b"chunked")


def scope(method="POST", path="/oauth/token", headers=(FORM,), **changes):
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "https",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": list(headers),
        "client": ("192.0.2.1", 1),
        "server": ("id.example", 443),
    } | changes


class Answer:
    """
    What an application sent, put together.
    """

    def __init__(self, messages):
        self.status = messages[0]["status"]
        self.headers = dict(messages[0]["headers"])
        self.body = b"".join(message.get("body", b"") for message in messages[1:])


async def exchange(app, asked, *received, pause=False):
    """
    Call the application the way a server does; after the last of *received* nothing more comes when *pause* is set.
    """
    sent, coming = [], list(received)

    async def receive():
        if not coming and pause:
            await asyncio.Event().wait()
        return coming.pop(0) if coming else GONE

    async def send(message):
        sent.append(message)

    await app(asked, receive, send)
    return Answer(sent)


def counted(harness):
    """
    Return how often each (route, method, status) was counted.
    """
    lines = harness.service.metrics.render(()).decode().splitlines()
    prefix = "customer_context_http_requests_total{"
    rows = [line.removeprefix(prefix).split("} ") for line in lines if line.startswith(prefix)]
    labels = [(dict(part.split("=", 1) for part in row.split(",")), count) for row, count in rows]
    return {
        tuple(json.loads(label[name]) for name in ("route", "method", "status")): float(count)
        for label, count in labels
    }


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "media_type"), [("/oauth/token", "application/json"), ("/health/live", "application/problem+json")]
)
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"headers": [(b"x-large", b"v" * 32768)]}, 431),
        ({"headers": [(b"n" * 32769, b"")]}, 431),
        ({"headers": [(b"x", b"")] * 101}, 431),
        ({"query_string": b"q" * 8192}, 414),
        ({"headers": [(b"content-encoding", b"gzip")]}, 415),
        ({"headers": [(b"content-encoding", b"identity"), (b"content-encoding", b"br")]}, 415),
    ],
)
async def test_what_is_out_of_bounds_is_refused_in_the_format_of_the_route(app, path, media_type, changes, status):
    """
    Before the routing and without reading the body (E20: content codings too); at the token endpoint 415 is 400 (D11).
    """
    answer = await exchange(app, scope(path=path, **changes))

    is_token = path == "/oauth/token"
    assert answer.status == (400 if is_token and status == 415 else status)
    assert answer.headers[b"content-type"].decode() == media_type
    assert answer.headers[b"cache-control"] == b"no-store"
    assert json.loads(answer.body).get("error") == ("invalid_request" if is_token else None)
    assert (b"accept-encoding" in answer.headers) == (status == 415)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "changes",
    [
        {"headers": [(b"x-large", b"v" * (32768 - 7))]},
        {"headers": [(b"x", b"")] * 100},
        {"query_string": b"q" * (8192 - len("/health/live"))},
        {"raw_path": None},
        {"headers": [(b"content-encoding", b" Identity ")]},
    ],
)
async def test_what_is_just_within_bounds_passes(app, changes):
    """
    The bounds themselves are allowed, and a server need not give the raw path.
    """
    answer = await exchange(app, scope("GET", "/health/live", **({"headers": ()} | changes)))

    assert answer.status == 200


@pytest.mark.anyio
@pytest.mark.parametrize("first", [(), (ENDLESS,), (ENDLESS, ENDLESS)])
async def test_a_body_that_never_ends_is_given_up(harness, first):
    """
    E20: chunked without an end is 408 within the time that the whole body has, and the connection is closed.
    """
    app = create_app(harness.service, limits=Limits(body_seconds=0.05))

    answer = await exchange(app, scope(headers=(FORM, CHUNKED)), *first, pause=True)

    assert answer.status == 408
    assert json.loads(answer.body)["error"] == "invalid_request"
    assert answer.headers[b"connection"] == b"close"


@pytest.mark.anyio
async def test_a_client_that_leaves_is_no_failure_of_the_service(app, harness):
    """
    Nobody reads the answer; nothing is reported as an error.
    """
    answer = await exchange(app, scope(headers=(FORM, CHUNKED)), ENDLESS, GONE)

    assert answer.status == 400
    assert harness.failures == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("http_version", "headers", "closes"),
    [
        ("1.1", [CHUNKED], True),
        ("1.1", [(b"content-length", b"70000")], True),
        ("1.0", [(b"content-length", b"1")], True),
        ("1.1", [(b"content-length", b"0")], False),
        ("1.1", [], False),
        ("2", [(b"content-length", b"70000")], False),
    ],
)
async def test_a_body_that_was_not_read_closes_the_connection(app, http_version, headers, closes):
    """
    Whoever still sends what was refused must not keep the connection busy; HTTP/2 has no such header.
    """
    answer = await exchange(app, scope(path="/nothing", headers=headers, http_version=http_version))

    assert answer.status == 404
    assert (b"connection" in answer.headers) == closes


@pytest.mark.anyio
async def test_a_body_that_was_read_keeps_the_connection(app):
    """
    Also when the request is refused for another reason.
    """
    answer = await exchange(app, scope(headers=(FORM, CHUNKED)), WHOLE)

    assert answer.status == 401
    assert b"connection" not in answer.headers


def edge(inner, observed=None):
    """
    Put *inner* in the place of the routing.
    """

    def observe(*observation):
        if observed is not None:
            observed.append(observation)

    return Edge(observe=observe, monotonic=lambda: 0.0, routes={"/here": "here"}, limits=Limits())(inner)


@pytest.mark.anyio
async def test_a_handler_may_wait_for_the_end_of_the_connection():
    """
    The time of the body ends with the body: what comes after it is handed on, and so is what an answer rarely has.
    """
    received = []

    async def patient(_scope, receive, send):
        received.extend([await receive(), await receive()])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.push", "path": "/", "headers": []})

    answer = await exchange(edge(patient), scope(), WHOLE, GONE)

    assert received == [WHOLE, GONE]
    assert answer.status == 204


@pytest.mark.anyio
async def test_an_answer_that_never_began_counts_as_a_failure():
    """
    Whatever escapes is counted as 500, which is what the server then answers.
    """
    observed = []

    async def failing(_scope, _receive, _send):
        raise KeyError

    with pytest.raises(KeyError):
        await exchange(edge(failing, observed), scope(path="/here"))

    assert observed == [("here", "POST", 500, 0.0)]


@pytest.mark.parametrize("path", ["/health/live", "/nothing", "/oauth/token", "/.well-known/jwks.json", "/metrics"])
def test_no_answer_lacks_the_safe_headers(client, path):
    """
    `nosniff` everywhere, and no cache keeps what does not say that it may.
    """
    for method in ("GET", "HEAD", "POST", "OPTIONS"):
        headers = client.request(method, path).headers

        assert headers["x-content-type-options"] == "nosniff"
        assert "no-store" in headers["cache-control"] or (path.endswith("jwks.json") and method in ("GET", "HEAD"))
        assert "server" not in headers


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/.well-known/jwks.json", "/nothing", "/health/live", "/oauth/token"])
async def test_an_answer_to_head_has_no_body(app, path):
    """
    Its headers are those of GET, the length included (RFC 9110 section 9.3.2).
    """
    got = await exchange(app, scope("GET", path, ()))
    head = await exchange(app, scope("HEAD", path, ()))

    assert head.body == b""
    assert (head.status, head.headers) == (got.status, got.headers)


def test_every_answer_is_counted_under_labels_of_ours(client, harness):
    """
    A 404 and a 405 too; nothing that a caller can choose becomes a label.
    """
    client.get("/health/live")
    client.get("/w/acme/.well-known/jwks.json")
    client.get("/.well-known/jwks.json")
    client.get("/.well-known/oauth-authorization-server/w/acme")
    client.get("/w/acme/oauth/token")
    client.request("BREW", "/w/acme/oauth/token")
    client.post("/w/acme/oauth/token", headers={"X-Large": "v" * 32768})
    client.get("/attacker/chosen/1")
    client.get("/attacker/chosen/2")

    assert counted(harness) == {
        ("/health/live", "GET", "200"): 1,
        ("{workspace}/.well-known/jwks.json", "GET", "200"): 2,
        ("/.well-known/oauth-authorization-server{workspace}", "GET", "200"): 1,
        ("{workspace}/oauth/token", "GET", "405"): 1,
        ("{workspace}/oauth/token", "other", "405"): 1,
        ("{workspace}/oauth/token", "POST", "431"): 1,
        (UNMATCHED, "GET", "404"): 2,
    }


def test_a_duration_is_measured_by_the_monotonic_clock(harness):
    """
    From taking the request to the end of its answer.
    """

    def now():
        harness.monotonic.at += 0.3
        return harness.clock.at

    service = replace(harness.service, now=now)
    with TestClient(create_app(service, poll_s=3600)) as client:
        client.get("/health/ready")

    text = service.metrics.render(()).decode()
    assert 'customer_context_http_request_duration_seconds_bucket{le="0.25",route="/health/ready"} 0.0' in text
    assert 'customer_context_http_request_duration_seconds_bucket{le="1.0",route="/health/ready"} 1.0' in text


def test_a_websocket_finds_nothing(client):
    """
    No route speaks it, and the edge leaves it to the framework to say so.
    """
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/oauth/token"):
        pass


def test_more_requests_than_may_run_at_once_are_refused_in_the_format_of_their_route():
    """
    Whoever comes beside a full house hears 503 at once, as RFC 6749 JSON at the token endpoint, and is told to come back.
    """

    async def blocked(_scope, _receive, _send):
        await asyncio.Event().wait()

    async def main():
        edge = Edge(
            observe=lambda *_: None, monotonic=lambda: 0.0, routes={}, limits=replace(Limits(), running_requests=2)
        )
        app = edge(blocked)
        running = [asyncio.create_task(exchange(app, scope(), WHOLE)) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await exchange(app, scope(), WHOLE)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        return refused

    refused = asyncio.run(main())

    assert (refused.status, json.loads(refused.body)["error"]) == (503, "temporarily_unavailable")
    assert refused.headers[b"cache-control"] == b"no-store"
    assert int(refused.headers[b"retry-after"]) > 0
