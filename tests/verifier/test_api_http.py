"""
The default HTTP of both clients against real servers: one request, one answer, within bounds.
"""

import asyncio
import gzip
import logging
import ssl
import time

import pytest

from verifier.api_http import (
    MAX_RESPONSE_OCTETS,
    SEND_DEADLINE_S,
    APIRequest,
    APIResponse,
    AsyncHTTPSend,
    HTTPSend,
    SendError,
)

CONTEXT = ssl.create_default_context()
# What a call with a short deadline may take on a busy machine.
SOON_S = 4.0


@pytest.fixture(params=["sync", "async"])
def send(request):
    """
    Send in either face.
    """

    def blocking(sent, **options):
        return HTTPSend(ssl_context=CONTEXT, **options)(sent)

    def asynchronous(sent, **options):
        return asyncio.run(AsyncHTTPSend(ssl_context=CONTEXT, **options)(sent))

    return blocking if request.param == "sync" else asynchronous


class Answering:
    """
    Answers each connection with fixed octets, and remembers the requests.
    """

    def __init__(self, answer):
        self.answer = answer
        self.requests = []

    async def __call__(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.splitlines() if line.lower().startswith(b"content-length")), 0)
        self.requests.append(head + await reader.readexactly(length))
        writer.write(self.answer)


def request_to(port, method="GET", content=None, **headers):
    return APIRequest(method=method, url=f"http://127.0.0.1:{port}/v1/orders", headers=headers, content=content)


@pytest.mark.parametrize("status", [200, 201, 301, 307, 401, 403, 500, 503])
def test_every_answer_comes_whole(send, raw_server, status):
    """
    Status, lines in order and content are handed over, whatever the status; no redirect is followed.
    """
    head = b"HTTP/1.1 %d X\r\nLocation: /x\r\nA: 1\r\na: 2\r\nSet-Cookie: a=b\r\n" % status
    server = Answering(head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(gzip.compress(b"done")))
    server.answer += gzip.compress(b"done")

    response = send(request_to(raw_server.start(server), "POST", b"body", accept="text/plain"))

    (received,) = server.requests
    assert (response.status, response.lines("A"), response.content) == (status, ["1", "2"], b"done")
    assert received.startswith(b"POST /v1/orders HTTP/1.1\r\n")
    assert received.endswith(b"\r\n\r\nbody")
    assert b"accept: text/plain" in received.lower()
    assert "done" not in repr(response)


def test_a_field_of_the_callers_replaces_the_usual_one(send, raw_server):
    """
    No field is sent twice.
    """
    server = Answering(b"HTTP/1.1 204 X\r\n\r\n")

    send(request_to(raw_server.start(server), **{"User-Agent": "shop"}))

    lines = [line for line in server.requests[0].lower().splitlines() if line.startswith(b"user-agent")]
    assert lines == [b"user-agent: shop"]


def test_no_log_shows_what_was_sent(send, raw_server, caplog):
    """
    Neither the URL, whose path may name a customer, nor fields or content stand in a log line of anybody, not even at DEBUG.
    """
    caplog.set_level(logging.DEBUG)
    port = raw_server.start(Answering(b"HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n"))

    send(request_to(port, "POST", b"content-of-it", authorization="Bearer secret"))

    assert [shown for shown in ("/v1/orders", "content-of-it", "secret") if shown in caplog.text] == []


@pytest.mark.parametrize("extra", [0, 1])
def test_4_mib_are_the_limit(send, raw_server, extra):
    """
    One octet more is no answer, before or after decoding.
    """
    body = b" " * (MAX_RESPONSE_OCTETS + extra)
    packed = gzip.compress(body, 1)
    for answer in (
        b"HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n" % len(body) + body,
        b"HTTP/1.1 401 X\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed,
    ):
        port = raw_server.start(Answering(answer))
        if extra:
            with pytest.raises(SendError):
                send(request_to(port))
        else:
            assert send(request_to(port)).content == body


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0\r\n", b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n{}", b"HTTP/1.1 200 X\r\nX: " + b"x" * 200_000],
)
def test_what_is_no_answer(send, raw_server, answer):
    """
    Broken, cut and oversized answers are a SendError that quotes nothing; the request was sent once.
    """
    server = Answering(answer)

    with pytest.raises(SendError) as caught:
        send(request_to(raw_server.start(server), authorization="Bearer secret"))

    assert "secret" not in repr(caught.value) + repr(caught.value.__cause__)
    assert len(server.requests) == 1


@pytest.mark.parametrize("url", ["https://[1]/", "https://a b/", "ftp://127.0.0.1/", "/orders", "https://"])
def test_a_url_that_leads_nowhere(send, url):
    """
    It is no answer, like everything else that brings none.
    """
    with pytest.raises(SendError):
        send(APIRequest(method="GET", url=url, headers={}, content=None))


def test_the_deadline_is_one_for_the_whole_call(send, raw_server):
    """
    An API that is never silent for long is given up all the same.
    """

    async def drip(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\n")
        while True:
            writer.write(b" ")
            await asyncio.sleep(0.02)

    began = time.monotonic()

    with pytest.raises(SendError):
        send(request_to(raw_server.start(drip)), deadline_s=0.2)
    assert time.monotonic() - began < SOON_S


def test_the_deadline_is_hard_without_an_event_loop(monkeypatch):
    """
    When even the event loop is stuck, the blocking one returns.
    """

    async def stuck(_):
        time.sleep(0.5)  # noqa: ASYNC251 -- the point of the test
        return APIResponse(200, (), b"")

    monkeypatch.setattr("verifier.api_http._GRACE_S", 0.0)
    send = HTTPSend(deadline_s=0.1, ssl_context=CONTEXT)
    send._send = stuck

    with pytest.raises(SendError):
        send(request_to(1))


def test_certificates_are_verified_unless_told_whom_to_trust(raw_server):
    """
    A server without TLS behind an https URL is no answer; the usual authorities are trusted where no context is given.
    """

    async def plain(_reader, writer):
        writer.write(b"HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n")

    request = APIRequest(method="GET", url=f"https://127.0.0.1:{raw_server.start(plain)}/", headers={}, content=None)

    with pytest.raises(SendError):
        HTTPSend()(request)
    assert SEND_DEADLINE_S == 30
