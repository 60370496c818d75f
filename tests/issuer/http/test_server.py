"""
The application under a real server, in a process of its own, spoken to over a socket.
"""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse

import pytest

from issuer.init_config import CONFIG_NAME, write_development_config
from issuer.settings import load_settings
from issuer.settings_sealing import key_times, load_sealing_keys, ring_path
from keys import FileKeyStore, rotate
from verifier.jwk import parse_key_set

JWKS, TOKEN, READY = "/w/demo/.well-known/jwks.json", "/w/demo/oauth/token", "/health/ready"
PATIENCE_S = 30

# The socket is bound before the process starts, so that its port is known and a connection waits instead of failing.
PROGRAM = """
import socket, sys, uvicorn
from pathlib import Path
from issuer.app import create_app
from issuer.http.middleware import Limits
from issuer.service import build_service
from issuer.settings import load_settings
app = create_app(build_service(load_settings(Path(sys.argv[1]), {})), limits=Limits(body_seconds=0.5))
config = uvicorn.Config(app, fd=int(sys.argv[2]), log_config=None, access_log=False, server_header=False)
uvicorn.Server(config).run()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server") / "dev"
    write_development_config(folder, now=int(time.time()) - 1000)
    return folder


@pytest.fixture(scope="module")
def port(folder):
    """
    The port of a running service; at the end it is asked to stop.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.set_inheritable(True)
        command = [sys.executable, "-W", "error", "-c", PROGRAM, str(folder / CONFIG_NAME), str(listening.fileno())]
        with subprocess.Popen(command, pass_fds=[listening.fileno()]) as process:
            yield listening.getsockname()[1]
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


def ask(port, method, path, body=None, **headers):
    """
    Send one request and return the answer with its body read.
    """
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        response.text = response.read()
        return response


def test_keys_and_metadata_are_served(port):
    """
    With their headers as they stand on the wire; the server does not name itself.
    """
    keys, ready = ask(port, "GET", JWKS), ask(port, "GET", READY)

    assert keys.status == 200
    assert len(parse_key_set(keys.text)) == 3
    assert keys.headers["Cache-Control"] == "public, max-age=120, stale-if-error=120"
    assert keys.headers["Server"] is None
    assert ask(port, "GET", JWKS, If_None_Match=keys.headers["ETag"]).status == 304
    assert json.loads(ready.text)["workspaces"]["demo"]["usable"]


def test_an_answer_to_head_is_whole_without_a_body(port):
    """
    The length is that of GET.
    """
    got, head = ask(port, "GET", JWKS), ask(port, "HEAD", JWKS)

    assert (head.status, head.text) == (200, b"")
    assert head.headers["Content-Length"] == str(len(got.text))


@pytest.mark.parametrize(
    ("method", "path", "status", "media_type"),
    [
        ("GET", "/nothing", 404, "application/problem+json"),
        ("DELETE", JWKS, 405, "application/problem+json"),
        ("GET", TOKEN, 405, "application/json"),
        ("POST", "/w/nobody/oauth/token", 404, "application/json"),
        ("POST", TOKEN, 400, "application/json"),
    ],
)
def test_errors_have_the_format_of_their_route(port, method, path, status, media_type):
    """
    Those of the routing too.
    """
    response = ask(port, method, path)

    assert (response.status, response.headers["Content-Type"]) == (status, media_type)
    assert response.headers["Cache-Control"] == "no-store"


def test_a_huge_header_is_refused(port):
    """
    The server lets two megabytes through; the edge does not.
    """
    response = ask(port, "POST", TOKEN, X_Large="v" * 40_000)

    assert response.status == 431
    assert json.loads(response.text)["error"] == "invalid_request"


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
QUARTER = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"


@pytest.mark.parametrize(
    ("framing", "status"),
    [
        (CHUNKED + b"3\r\na=b\r\n", 408),
        (b"Content-Length: 100\r\n\r\na=b", 408),
        (CHUNKED + QUARTER * 4 + b"1\r\nx\r\n", 413),
        (b"Content-Length: 65537\r\n\r\na=b", 413),
    ],
    ids=["chunked-silent", "length-silent", "chunked-large", "length-large"],
)
def test_a_body_that_does_not_end_is_given_up(port, framing, status):
    """
    E20: the answer is OAuth JSON, in bounded time, and the server closes the connection.
    """
    head = f"POST {TOKEN} HTTP/1.1\r\nHost: id.example\r\nContent-Type: application/x-www-form-urlencoded\r\n".encode()

    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(head + framing)
        response = HTTPResponse(connection)
        response.begin()
        body = response.read()

        assert response.status == status
        assert json.loads(body)["error"] == "invalid_request"
        assert response.headers["Connection"] == "close"
        assert connection.recv(1) == b""


def test_a_rotation_is_noticed_within_a_second(port, folder):
    """
    Another process changes the sealed ring; the running service publishes the new key set without a restart.
    """
    settings = load_settings(folder / CONFIG_NAME, {})
    store = FileKeyStore(ring_path(settings, "demo"), "demo", load_sealing_keys(settings))
    before = ask(port, "GET", JWKS).headers["ETag"]

    async def rotated():
        ring, revision = await store.load()
        times = key_times(settings)
        changed = rotate(ring, now=int(time.time()), times=times, expected_active=None, force=True, reason="test").ring
        await store.save(changed, expect=revision)
        return time.monotonic(), len(changed.published(int(time.time())))

    changed_at, published = asyncio.run(rotated())
    while (answer := ask(port, "GET", JWKS)).headers["ETag"] == before:
        assert time.monotonic() - changed_at < PATIENCE_S

    # The promise is one second; a machine that is busy with other things may answer a little later.
    assert time.monotonic() - changed_at < 2
    assert len(parse_key_set(answer.text)) == published == 4
