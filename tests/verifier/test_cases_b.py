"""
The cases of group B: JWK Sets as they are found in the wild, and issuers that fail, stall, redirect, rotate and withdraw.

Each test names its row. Documents are read from the rows; timelines are told again here with a clock that is moved by hand, and
rows about HTTP meet a real server on 127.0.0.1, with their seconds shortened.
"""

import asyncio
import json
import re
import secrets
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from verifier.compact import MalformedToken, parse_compact
from verifier.errors import CustomerContextError
from verifier.es256 import signature_is_valid
from verifier.fetch import AsyncHTTPFetch, FetchResponse, HTTPFetch
from verifier.jwk import KeySet, UnusableKeySet, parse_key_set
from verifier.key_source import AsyncKeySource, KeySource

DATA = Path(__file__).parents[1] / "data"
JWKS = json.loads((DATA / "fixture.json").read_text())["jwks"]
ROWS = {case["id"]: case for case in json.loads((DATA / "cases.json").read_text()) if case["group"] == "B"}
K1_TOKEN = ROWS["B10"]["input"]["documents"]["empty_keys"]["token"]

ELSEWHERE = {"B14": "test_cache_control.py"}
"""Rows that another test shows. What B04 and B11 say of the issuer is shown in tests/issuer/http/test_jwks.py."""

DOCUMENTS = [
    (row, name, document["jwks"], document["token"], case["expected"]["variants"][name])
    for row, case in ROWS.items()
    if case["input"]["kind"] == "verify_with_jwks"
    for name, document in case["input"]["documents"].items()
]


def body_of(jwks: object) -> bytes:
    return (jwks if isinstance(jwks, str) else json.dumps(jwks)).encode()


def is_accepted(key_set: KeySet, token: str) -> bool:
    try:
        parsed = parse_compact(token)
    except MalformedToken:
        return False
    key = key_set.get(parsed.kid)
    return key is not None and signature_is_valid(key, parsed.signing_input, parsed.signature)


def verdict(face: Any, token: str = K1_TOKEN) -> str:
    """
    Look up the key of a token and check its signature; tell "accept" or the reason of the refusal.
    """
    parsed = parse_compact(token)
    try:
        key = face.key(parsed.kid)
    except CustomerContextError as error:
        return error.reason
    if not signature_is_valid(key, parsed.signing_input, parsed.signature):
        return "signature"
    face.used(parsed.kid)
    return "accept"


def test_every_row_is_here():
    """
    No row of the group is forgotten.
    """
    here = {name[5:8].upper() for name in globals() if re.match(r"test_b\d\d_", name)}
    here |= {row for row, *_ in DOCUMENTS}

    assert here | set(ELSEWHERE) == set(ROWS)


@pytest.mark.parametrize(
    ("row", "name", "jwks", "token", "expected"), DOCUMENTS, ids=[f"{row}-{name}" for row, name, *_ in DOCUMENTS]
)
def test_documents(row: str, name: str, jwks: object, token: str, expected: str):
    """
    B01, B02, B03, B06, B07, B10: the token is accepted with the document exactly when the row says so.

    Where a row leaves it open ("either": coordinates of another length), the entry is ignored.
    """
    try:
        accepted = is_accepted(parse_key_set(body_of(jwks)), token)
    except UnusableKeySet:
        accepted = False

    assert accepted is (expected == "accept"), (row, name)


def test_b04_a_published_private_key_is_refused():
    """
    B04: a key that was published with its private part verifies nothing.
    """
    with pytest.raises(UnusableKeySet) as caught:
        parse_key_set(body_of(ROWS["B04"]["input"]["verifier_jwks"]))

    assert dict(caught.value.ignored) == {"private": 1}


@pytest.mark.parametrize("name", ROWS["B10"]["input"]["documents"])
def test_b10_only_an_empty_set_removes_keys(key_source, scripted_issuer, still_clock, name: str):
    """
    B10: with k1 cached, a malformed document leaves it, and only `{"keys": []}` takes it away.
    """
    face = key_source()
    first = verdict(face)
    scripted_issuer.answer = FetchResponse(200, (), body_of(ROWS["B10"]["input"]["documents"][name]["jwks"]))

    still_clock.at = 40
    face.refresh()

    assert first == "accept"
    assert verdict(face) == ("key" if name == "empty_keys" else "accept")


def test_b11_error_answers_neither_replace_nor_are_cached(key_source, scripted_issuer, still_clock):
    """
    B11: a page with status 200 and an error object bring no keys, whatever they say of caching; the next try counts.
    """
    face = key_source()
    page = FetchResponse(
        200, [("Content-Type", "text/html"), ("Cache-Control", "max-age=86400")], b"<html>maintenance</html>"
    )
    error = FetchResponse(500, [("Content-Type", "application/json")], b'{"message":"error"}')
    steps = [
        (0, scripted_issuer.jwks("k1", Cache_Control="max-age=300"), "accept"),
        (301, page, "keys_unavailable"),
        (335, error, "keys_unavailable"),
        (370, scripted_issuer.jwks("k1"), "accept"),
    ]

    for at, scripted_issuer.answer, expected in steps:
        still_clock.at = at
        assert verdict(face) == expected

    assert len(scripted_issuer.asked) == 4


def answering(answer: bytes, asked: list[bytes]) -> Callable[..., Any]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)

    return handle


def published(body: bytes, *lines: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"Content-Length: %d" % len(body), b"", body])


class Real:
    """
    A blocking or asynchronous source that fetches by itself, with a deadline in seconds.
    """

    def __init__(self, kind: str, port: int, deadline_s: float, **options: Any) -> None:
        url = f"http://127.0.0.1:{port}/.well-known/jwks.json"
        if kind == "sync":
            source = KeySource(url, fetch=HTTPFetch(deadline_s=deadline_s), **options)
            self.key, self.used = source.key, source.used
        else:
            self._awaited = AsyncKeySource(
                url, parse=parse_key_set, fetch=AsyncHTTPFetch(deadline_s=deadline_s), **options
            )
            self.key, self.used = self._key, lambda _kid: None

    def _key(self, kid: str) -> object:
        return asyncio.run(self._awaited.key(kid))


@pytest.fixture(params=["sync", "async"])
def real(request: pytest.FixtureRequest) -> Callable[..., Real]:
    def build(port: int, deadline_s: float = 5.0, **options: Any) -> Real:
        return Real(request.param, port, deadline_s, **options)

    return build


@pytest.mark.parametrize("step", ROWS["B12"]["input"]["steps"], ids=lambda step: step["server"]["headers"]["Location"])
def test_b12_redirects_are_not_followed(real, raw_server, step: dict[str, Any]):
    """
    B12: a redirect is a failed fetch; nobody else is asked, and the issuer is asked once.
    """
    trapped: list[bytes] = []
    asked: list[bytes] = []
    trap = raw_server.start(answering(published(body_of(JWKS)), trapped))
    location = step["server"]["headers"]["Location"].replace("127.0.0.1:8080", f"127.0.0.1:{trap}").encode()
    redirect = b"HTTP/1.1 %d X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % (step["server"]["status"], location)
    face = real(raw_server.start(answering(redirect, asked)))

    reason = verdict(face)

    assert reason == "keys_unavailable"
    assert (len(asked), len(trapped)) == (1, 0)


class Endless:
    """
    Sends a head, then the same chunk for ever, and counts what was taken.
    """

    def __init__(self, head: bytes, chunk: bytes) -> None:
        self.head = head
        self.chunk = chunk
        self.taken = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.head)
        while True:
            writer.write(self.chunk)
            await writer.drain()
            self.taken += len(self.chunk)


def gzip_of_zeros() -> tuple[bytes, bytes]:
    """
    Return the head of a gzip stream and a piece of about 1 KiB that inflates to 1 MiB and may be repeated.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(b"{") + packer.flush(zlib.Z_FULL_FLUSH)
    return head, packer.compress(b" " * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)


def huge() -> Endless:
    return Endless(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n{", b" " * 4096)


def chunked() -> Endless:
    return Endless(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", b"400\r\n" + b" " * 1024 + b"\r\n"
    )


def inflating() -> Endless:
    head, chunk = gzip_of_zeros()
    return Endless(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1048576\r\n\r\n" + head, chunk)


@pytest.mark.parametrize("server", [huge, chunked, inflating])
def test_b13_size_is_bounded(real, raw_server, server: Callable[[], Endless]):
    """
    B13: an answer of 1 GiB, one without end and one that inflates end at 64 KiB, long before their own end or the deadline.
    """
    endless = server()
    face = real(raw_server.start(endless))
    began = time.monotonic()

    reason = verdict(face)

    assert reason == "keys_unavailable"
    assert time.monotonic() - began < 4
    # Beyond the limit there is only what lies in the buffers of both ends.
    assert endless.taken < 16 * 2**20


async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        writer.write(b" ")
        await asyncio.sleep(0.1)


async def silence(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read(-1)


@pytest.mark.parametrize("handler", [trickle, silence])
def test_b13_time_is_bounded(real, raw_server, handler: Callable[..., Any]):
    """
    B13: a server that sends an octet now and then, or nothing, is left at the deadline of the whole fetch.
    """
    face = real(raw_server.start(handler), 0.25)
    began = time.monotonic()

    reason = verdict(face)

    assert reason == "keys_unavailable"
    assert time.monotonic() - began < 4


def test_b13_cached_keys_answer_meanwhile(raw_server, still_clock):
    """
    B13: while a fetch is held up, requests with cached kids are answered.
    """
    asked: list[bytes] = []
    once = answering(published(body_of(JWKS)), asked)

    async def then_silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await (silence if asked else once)(reader, writer)

    async def main(port: int) -> tuple[bool, object, str]:
        url = f"http://127.0.0.1:{port}/.well-known/jwks.json"
        source = AsyncKeySource(url, parse=parse_key_set, monotonic=still_clock)
        await source.key("k1")
        still_clock.at = 40
        unknown = asyncio.create_task(source.key("k3"))
        await asyncio.sleep(0.05)
        key = await source.key("k1")
        is_waiting = not unknown.done()
        await source.aclose()
        with pytest.raises(CustomerContextError) as caught:
            await unknown
        return is_waiting, key, caught.value.reason

    is_waiting, key, reason = asyncio.run(main(raw_server.start(then_silence)))

    assert is_waiting
    assert key is not None
    assert reason == "keys_unavailable"


def test_b13_200_keys_in_50_kb_are_accepted(real, raw_server):
    """
    B13: a large but honest set is taken.
    """
    keys = [{**JWKS["keys"][1], "kid": f"{number:03}-{'k' * 75}"} for number in range(199)]
    body = body_of({"keys": [*keys, JWKS["keys"][0]]})
    face = real(raw_server.start(answering(published(body), [])))

    assert 50_000 < len(body) < 65_536
    assert verdict(face) == "accept"


class SlowIssuer:
    """
    Answers after a moment, and counts the requests.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.answer = published(body_of(JWKS), b"Cache-Control: max-age=300")

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.1)
        writer.write(self.answer)


def test_b16_one_fetch_under_load(raw_server, still_clock):
    """
    B16: 50 tasks at a cold start, at expiry and at an error make one GET each time and share its outcome.

    When the task that began the fetch is cancelled, the fetch goes on for the others.
    """
    issuer = SlowIssuer()

    async def call(source: AsyncKeySource) -> str:
        try:
            await source.key("k1")
        except CustomerContextError as error:
            return error.reason
        return "accept"

    async def main(port: int) -> list[tuple[set[str], int]]:
        source = AsyncKeySource(
            f"http://127.0.0.1:{port}/.well-known/jwks.json", parse=parse_key_set, monotonic=still_clock
        )
        steps = []
        for at in (0, 301):
            still_clock.at = at
            outcomes = await asyncio.gather(*(call(source) for _ in range(50)))
            steps.append((set(outcomes), issuer.asked))
        good, issuer.answer = issuer.answer, b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"
        for at in (602, 631):
            still_clock.at = at
            outcomes = await asyncio.gather(*(call(source) for _ in range(50)))
            steps.append((set(outcomes), issuer.asked))
        issuer.answer, still_clock.at = good, 640
        callers = [asyncio.create_task(call(source)) for _ in range(50)]
        await asyncio.sleep(0.05)
        callers[0].cancel()
        outcomes = await asyncio.gather(*callers[1:])
        return [*steps, (set(outcomes), issuer.asked)]

    steps = asyncio.run(main(raw_server.start(issuer)))

    assert steps == [
        ({"accept"}, 1),
        ({"accept"}, 2),
        ({"keys_unavailable"}, 3),
        ({"keys_unavailable"}, 3),
        ({"accept"}, 4),
    ]


def test_b16_one_fetch_under_load_of_threads(raw_server, still_clock):
    """
    B16: 50 threads at a cold start, at expiry and at an error make one GET each time and share its outcome.
    """
    issuer = SlowIssuer()
    port = raw_server.start(issuer)
    source = KeySource(f"http://127.0.0.1:{port}/.well-known/jwks.json", monotonic=still_clock)

    steps = []
    with ThreadPoolExecutor(50) as pool:
        for at in (0, 301, 602):
            still_clock.at = at
            if at == 602:
                issuer.answer = b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"
            outcomes = set(pool.map(lambda _: verdict(source), range(50)))
            steps.append((outcomes, issuer.asked))

    assert steps == [({"accept"}, 1), ({"accept"}, 2), ({"keys_unavailable"}, 3)]


def test_b17_a_flood_of_random_kids(key_source, scripted_issuer, still_clock):
    """
    B17, seed-refetch-30s: 1000 random kids in 30 seconds make one further GET; good tokens are accepted among them.
    """
    scripted_issuer.answer = scripted_issuer.jwks("k1", Cache_Control="max-age=300")
    face = key_source()
    first = verdict(face)

    outcomes = set()
    for number in range(1000):
        still_clock.at = 1 + 29 * number / 999
        with pytest.raises(CustomerContextError) as caught:
            face.key(secrets.token_urlsafe(16))
        outcomes.add(caught.value.reason)
        if number % 10 == 0:
            outcomes.add(verdict(face))
    in_30_s = len(scripted_issuer.asked)
    still_clock.at = 31
    with pytest.raises(CustomerContextError):
        face.key("another")

    assert first == "accept"
    assert outcomes == {"accept", "key"}
    assert in_30_s <= 2
    assert len(scripted_issuer.asked) <= in_30_s + 1
    # Nothing is remembered of kids that were not found.
    assert face.source.state()["kids"] == ["k1"]


def test_b17_an_issuers_allowance_is_its_own(key_source, scripted_issuer, still_clock):
    """
    B17: a flood against one issuer does not use up the other's refetch (bcp-iss-owns-key: nor do they share keys).
    """
    scripted_issuer.answer = scripted_issuer.jwks("k1")
    flooded, other = key_source(), key_source()
    verdict(flooded)
    verdict(other)

    still_clock.at = 30
    for kid in ("a", "b", "c"):
        with pytest.raises(CustomerContextError):
            flooded.key(kid)
    scripted_issuer.answer = scripted_issuer.jwks("k2")
    before = len(scripted_issuer.asked)
    key = other.key("k2")
    with pytest.raises(CustomerContextError) as caught:
        flooded.key("k2")

    assert key is not None
    assert len(scripted_issuer.asked) == before + 1
    assert caught.value.reason == "key"


def test_b20_a_withdrawn_key_stops_working(key_source, scripted_issuer, still_clock):
    """
    B20: a key that left the set is trusted until max-age ends and no longer; asking for it again costs no GET before its time.
    """
    scripted_issuer.answer = scripted_issuer.jwks("k1", Cache_Control="max-age=60")
    face = key_source()
    outcomes = []

    for at, kids in ((0, ("k1",)), (5, ("k2",)), (61, ("k2",)), (62, ("k2",))):
        still_clock.at = at
        scripted_issuer.answer = scripted_issuer.jwks(*kids, Cache_Control="max-age=60")
        outcomes.append((verdict(face), len(scripted_issuer.asked)))
    still_clock.at = 70
    key = face.key("k2")
    face.used("k2")
    face.settle()

    assert outcomes == [("accept", 1), ("accept", 1), ("key", 2), ("key", 2)]
    assert key is not None
    assert len(scripted_issuer.asked) == 2
