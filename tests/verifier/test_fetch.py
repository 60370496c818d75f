"""
The default HTTP of both verifiers against real servers, hostile ones among them, and the URLs that keys are fetched from.
"""

import asyncio
import datetime as dt
import gzip
import ipaddress
import ssl
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from verifier.fetch import FETCH_DEADLINE_S, AsyncHTTPFetch, FetchError, FetchResponse, HTTPFetch, jwks_url
from verifier.url import check_url

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/jwk-set+json\r\n"
# What a fetch with a short deadline may take on a busy machine, short of the 5 s of the default.
SOON_S = 4.0


def fetch_sync(url: str, deadline_s: float = FETCH_DEADLINE_S, **options: Any) -> FetchResponse:
    return HTTPFetch(deadline_s=deadline_s, **options)(url, {"Accept": "application/jwk-set+json"})


def fetch_async(url: str, deadline_s: float = FETCH_DEADLINE_S, **options: Any) -> FetchResponse:
    return asyncio.run(AsyncHTTPFetch(deadline_s=deadline_s, **options)(url, {"Accept": "application/jwk-set+json"}))


@pytest.fixture(params=[fetch_sync, fetch_async], ids=["sync", "async"])
def fetch(request: pytest.FixtureRequest) -> Callable[..., FetchResponse]:
    return request.param


class Answering:
    """
    Answers each connection with fixed octets, and remembers the requests.
    """

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.requests: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)


def with_length(body: bytes, *lines: bytes) -> bytes:
    return OK + b"".join(line + b"\r\n" for line in lines) + b"Content-Length: %d\r\n\r\n" % len(body) + body


def url_of(port: int, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{port}/w/acme/.well-known/jwks.json"


def test_an_answer_comes_whole(fetch, raw_server):
    """
    Status, header lines in order and content are handed over; the request names no more than it must.
    """
    server = Answering(
        with_length(b'{"keys": []}', b'ETag: "v1"', b"Cache-Control: public", b"Cache-Control: max-age=1")
    )

    answer = fetch(url_of(raw_server.start(server)))

    (request,) = server.requests
    names = {line.partition(b":")[0].lower() for line in request.splitlines()[1:] if line}
    assert answer.status == 200
    assert [value for name, value in answer.headers if name.lower() == "cache-control"] == ["public", "max-age=1"]
    assert answer.body == b'{"keys": []}'
    assert request.startswith(b"GET /w/acme/.well-known/jwks.json HTTP/1.1\r\n")
    assert names == {b"host", b"connection", b"accept", b"accept-encoding", b"user-agent"}
    assert "v1" not in repr(answer)


@pytest.mark.parametrize("status", [204, 206, 301, 302, 303, 304, 307, 308, 404, 500, 503])
def test_only_the_content_of_200_is_read(fetch, raw_server, status: int):
    """
    Another status is an answer, but its content is left where it is; no redirect is followed.
    """
    server = Answering(b"HTTP/1.1 %d X\r\nLocation: /elsewhere\r\nContent-Length: 1073741824\r\n\r\n" % status)

    answer = fetch(url_of(raw_server.start(server)))

    assert (answer.status, answer.body) == (status, b"")
    assert len(server.requests) == 1


def test_cookies_are_not_kept(fetch, raw_server):
    """
    What a server sets for one fetch is not sent with the next.
    """
    server = Answering(with_length(b"{}", b"Set-Cookie: a=b; Path=/"))
    url = url_of(raw_server.start(server))

    fetch(url)
    fetch(url)

    assert len(server.requests) == 2
    assert b"cookie" not in server.requests[1].lower()


def test_the_environment_is_not_trusted(fetch, raw_server, monkeypatch):
    """
    A proxy in the environment does not get to answer for the issuer.
    """
    proxy = Answering(with_length(b"proxy"))
    server = Answering(with_length(b"issuer"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{raw_server.start(proxy)}")

    answer = fetch(url_of(raw_server.start(server)))

    assert answer.body == b"issuer"
    assert proxy.requests == []


@pytest.mark.parametrize("extra", [0, 1])
def test_64_kib_are_the_limit(fetch, raw_server, extra: int):
    """
    65536 octets are taken, 65537 are not, whether they come plain or compressed.
    """
    body = b" " * (65536 + extra)
    plain = url_of(raw_server.start(Answering(with_length(body))))
    packed = url_of(raw_server.start(Answering(with_length(gzip.compress(body), b"Content-Encoding: GZip"))))

    for url in (plain, packed):
        if extra:
            with pytest.raises(FetchError):
                fetch(url)
        else:
            assert fetch(url).body == body


def test_stacked_or_foreign_content_codings_are_refused(fetch, raw_server):
    """
    Only what was asked for is decoded: one layer of gzip.
    """
    for coding in (b"gzip, gzip", b"deflate", b"br", b"zstd", b", ".join([b"gzip"] * 1000)):
        server = Answering(with_length(zlib.compress(b"{}"), b"Content-Encoding: " + coding))

        with pytest.raises(FetchError):
            fetch(url_of(raw_server.start(server)))


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.0\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 50_000 + b"\r\n{}",
    ],
    ids=["nothing", "another protocol", "negative length", "cut short", "no gzip", "a huge header", "endless headers"],
)
def test_what_is_no_http_answer_is_an_error(fetch, raw_server, answer: bytes):
    """
    Broken, cut and oversized answers end as FetchError, whose text quotes nothing of them.
    """
    with pytest.raises(FetchError) as caught:
        fetch(url_of(raw_server.start(Answering(answer))))

    assert str(caught.value).isidentifier()


def test_nobody_listens(fetch, raw_server):
    """
    A refused connection is an error at once.
    """
    port = raw_server.start(Answering(b""))
    raw_server.close_servers()

    with pytest.raises(FetchError):
        fetch(url_of(port))


async def drip_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        writer.write(b"x")
        await asyncio.sleep(0.02)


async def drip_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(OK + b"Content-Length: 1000\r\n\r\n{")
    while True:
        writer.write(b" ")
        await asyncio.sleep(0.02)


async def say_nothing(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read(-1)


@pytest.mark.parametrize(
    ("handler", "scheme", "deadline_s"),
    [(drip_headers, "http", 0.2), (drip_body, "http", 0.2), (say_nothing, "http", 0.2), (say_nothing, "https", 2.0)],
)
def test_the_deadline_is_one_for_the_whole_fetch(fetch, raw_server, handler, scheme: str, deadline_s: float):
    """
    A server that is silent, or never silent for long, is given up at the deadline; in the TLS handshake too.
    """
    url = url_of(raw_server.start(handler), scheme)
    began = time.monotonic()

    with pytest.raises(FetchError):
        fetch(url, deadline_s)

    assert time.monotonic() - began < SOON_S


def test_the_deadline_is_hard_without_an_event_loop(raw_server, monkeypatch):
    """
    When even the event loop is stuck, as with a name that cannot be resolved, the blocking fetch returns all the same.
    """

    async def stuck(*_: object) -> FetchResponse:
        time.sleep(0.5)  # noqa: ASYNC251 -- the point of the test
        return FetchResponse(200, (), b"")

    monkeypatch.setattr("verifier.fetch._GRACE_S", 0.0)
    fetch = HTTPFetch(deadline_s=0.1)
    fetch._fetch = stuck

    with pytest.raises(FetchError):
        fetch("http://127.0.0.1/", {})


def test_the_blocking_fetch_works_under_a_running_event_loop(raw_server):
    """
    A blocking verifier may be called from a coroutine; it does not get in the way of that loop.
    """
    url = url_of(raw_server.start(Answering(with_length(b"{}"))))

    async def caller() -> FetchResponse:
        return fetch_sync(url)

    assert asyncio.run(caller()).body == b"{}"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    """
    A certificate for 127.0.0.1 that no authority has signed, and its key.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    day = dt.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(dt.datetime.now(dt.UTC) - day)
        .not_valid_after(dt.datetime.now(dt.UTC) + day)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(pem)
    return folder / "cert.pem", folder / "key.pem"


def test_certificates_are_verified(fetch, raw_server, certificate, monkeypatch):
    """
    A certificate of an unknown authority is refused, even when the environment names it; a context of the caller's is used.
    """
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    of_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    of_server.load_cert_chain(*certificate)
    of_caller = ssl.create_default_context(cafile=str(certificate[0]))
    url = url_of(raw_server.start(Answering(with_length(b"{}")), ssl=of_server), "https")

    with pytest.raises(FetchError):
        fetch(url)
    answer = fetch(url, ssl_context=of_caller)

    assert answer.body == b"{}"


@pytest.mark.parametrize(
    ("issuer", "url"),
    [
        ("https://id.example.com", "https://id.example.com/.well-known/jwks.json"),
        ("https://id.example.com/", "https://id.example.com/.well-known/jwks.json"),
        ("https://id.example.com/w/acme", "https://id.example.com/w/acme/.well-known/jwks.json"),
        ("https://id.example.com/w/acme/", "https://id.example.com/w/acme/.well-known/jwks.json"),
        ("https://id.example.com:8443/w/acme", "https://id.example.com:8443/w/acme/.well-known/jwks.json"),
        ("https://[2001:db8::1]/w/acme", "https://[2001:db8::1]/w/acme/.well-known/jwks.json"),
        ("http://localhost:8000/w/acme", "http://localhost:8000/w/acme/.well-known/jwks.json"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/.well-known/jwks.json"),
        ("http://127.8.9.10", "http://127.8.9.10/.well-known/jwks.json"),
        ("http://[::1]:8000", "http://[::1]:8000/.well-known/jwks.json"),
    ],
)
def test_where_an_issuers_keys_lie(issuer: str, url: str):
    """
    D3: one trailing slash is stripped and the fixed path appended.
    """
    assert jwks_url(issuer) == url


@pytest.mark.parametrize(
    "issuer",
    [
        "",
        "id.example.com",
        "//id.example.com",
        "ftp://id.example.com",
        "HTTPS://id.example.com",
        "https://",
        "https:///w/acme",
        "https://ID.example.com",
        "https://id.example.com?x=1",
        "https://id.example.com?",
        "https://id.example.com#x",
        "https://id.example.com/w#",
        "https://user@id.example.com",
        "https://user:secret@id.example.com",
        "https://id.example.com//",
        "https://id.example.com/w//acme",
        "https://id.example.com/w/../acme",
        "https://id.example.com/./w",
        "https://id.example.com/w acme",
        "https://id.example.com\\@evil.example",
        "https://id.example.com/w\r\nX: 1",
        "https://id.example.com\n",
        " https://id.example.com",
        "https://\u0456d.example.com",
        "https://id.example.com:",
        "https://id.example.com:0",
        "https://id.example.com:65536",
        "https://id.example.com:x",
        "http://id.example.com",
        "http://127.1",
        "http://10.0.0.1",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://[::2]",
        None,
        b"https://id.example.com",
    ],
)
def test_what_is_no_issuer(fetch, issuer: Any):
    """
    D3: https only, http on loopback hosts; nothing that two readers could take for two different places. Nor is it fetched.
    """
    with pytest.raises(ValueError):
        jwks_url(issuer)

    if isinstance(issuer, str):
        with pytest.raises(FetchError):
            fetch(issuer)


def test_a_url_with_a_path_is_checked_whole():
    """
    The URL of a key set is held to the same rule as the issuer.
    """
    check_url("https://id.example.com/keys/jwks.json")

    with pytest.raises(ValueError):
        check_url("http://id.example.com/keys/jwks.json")
