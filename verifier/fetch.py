"""
How a verifier gets its issuer's JWK Set: where it lies, what the caller's own HTTP has to offer, and the default over httpx2.

The one door to httpx2. Whatever the other side does, a fetch ends within its deadline and holds little: a slow, endless or
inflating answer must not become a slow, endless or growing API (RFC 8725 section 3.10).
"""

import asyncio
import ipaddress
import re
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Thread
from typing import Final, Protocol

import httpx2

from .jwk import MAX_DOCUMENT_OCTETS

__all__ = [
    "FETCH_DEADLINE_S",
    "JWKS_PATH",
    "AsyncFetch",
    "AsyncHTTPFetch",
    "Fetch",
    "FetchError",
    "FetchResponse",
    "HTTPFetch",
    "check_url",
    "is_loopback",
    "jwks_url",
]

FETCH_DEADLINE_S: Final = 5.0
"""How long one fetch may take in all, from the name's resolution to the last octet (D19)."""

JWKS_PATH: Final = "/.well-known/jwks.json"
"""Where the key set stands below each issuer: verifiers find it by this rule, without discovery (D3)."""

_GRACE_S: Final = 1.0
_CONNECT_SHARE: Final = 0.4
_ENCODINGS: Final = frozenset({"", "identity", "gzip"})
_URL: Final = re.compile(
    r"""(?P<scheme>https?)://
        (?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])
        (?::(?P<port>[0-9]{1,5}))?
        (?P<path>(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*)""",
    re.VERBOSE,
)


class FetchError(Exception):
    """
    Raised when a fetch brought no answer.

    Its text is logged and shown by `state()`: whoever raises it puts nothing secret in.
    """


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """
    One HTTP answer as it came: redirects are not followed, content codings are undone.

    Attributes:
        status: the status code.
        headers: the header fields in order, one pair for each line; names in any case.
        body: the content; may be left empty when the status is not 200.
    """

    status: int
    headers: Sequence[tuple[str, str]] = field(repr=False)
    body: bytes = field(repr=False)


class Fetch(Protocol):
    """
    The caller's own HTTP for `CustomerContextVerifier`: any callable with this signature.

    It sends a GET with exactly the given header fields besides its own, follows no redirect, verifies the certificate, uses no
    cookies, returns at the end of a deadline of its own, and raises any Exception when there is no answer. It is called on a
    thread of its own; no two calls begin within 30 seconds, `refresh()` aside.
    """

    def __call__(self, url: str, headers: Mapping[str, str], /) -> FetchResponse:
        """
        Get *url*.
        """


class AsyncFetch(Protocol):
    """
    The caller's own HTTP for `AsyncCustomerContextVerifier`; see `Fetch`. It is called as a task of its own.
    """

    async def __call__(self, url: str, headers: Mapping[str, str], /) -> FetchResponse:
        """
        Get *url*.
        """


def jwks_url(issuer: str) -> str:
    """
    Return where the JWK Set of an issuer lies: its identifier, less one trailing slash, and `/.well-known/jwks.json` (D3).

    Raises:
        ValueError: when *issuer* is not an https URL (http on loopback hosts) with a host in lower case and with neither user,
            query nor fragment.
    """
    url = issuer.removesuffix("/") if isinstance(issuer, str) else ""
    check_url(url)
    return url + JWKS_PATH


def check_url(url: str) -> None:
    """
    Make sure that *url* is one a verifier fetches keys from.

    Raises:
        ValueError: when it is not absolute, not https (http on loopback hosts), or spelt so that two readers could read it
            differently: upper-case host, user, query, fragment, empty or dot segments, anything but ASCII.
    """
    match = _URL.fullmatch(url)
    if match is None or not {".", ".."}.isdisjoint(match["path"].split("/")):
        raise ValueError("an issuer is an https URL with a host in lower case, and without user, query or fragment")
    if match["port"] is not None and not 1 <= int(match["port"]) <= 65535:
        raise ValueError("a port is a number from 1 to 65535")
    if match["scheme"] == "http" and not is_loopback(match["host"]):
        raise ValueError("http is for loopback hosts only")


def is_loopback(host: str) -> bool:
    """
    Tell whether *host*, in lower case, an IPv6 address in brackets, is this machine and nothing else, so that http will do.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class AsyncHTTPFetch:
    """
    The default `AsyncFetch`: a new connection over httpx2 for every fetch, for there is one in a minute or two.

    TLS certificates are always verified. Proxies and `SSL_CERT_FILE` in the environment are not looked at; an issuer behind a
    private certification authority needs an *ssl_context* that trusts it.
    """

    def __init__(self, *, deadline_s: float = FETCH_DEADLINE_S, ssl_context: ssl.SSLContext | None = None) -> None:
        self._deadline_s = deadline_s
        self._ssl_context = ssl_context

    async def __call__(self, url: str, headers: Mapping[str, str], /) -> FetchResponse:
        """
        Get *url*; at most 64 KiB of content after decoding are taken.

        Raises:
            FetchError: for everything that is not an HTTP answer in time.
        """
        try:
            check_url(url)
        except ValueError as error:
            raise FetchError("not a URL to fetch keys from") from error
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._get(url, headers)
        except TimeoutError:
            raise FetchError("no complete answer in time") from None
        except httpx2.HTTPError as error:
            raise FetchError(type(error).__name__) from error

    async def _get(self, url: str, headers: Mapping[str, str]) -> FetchResponse:
        context = self._ssl_context
        if context is None:
            # Built anew, so that a change of the trusted authorities is noticed; in a thread, because reading them takes 30 ms.
            context = await asyncio.to_thread(httpx2.create_ssl_context, trust_env=False)
        # Connection and TLS handshake have limits of their own within the deadline: cancelled in a handshake, httpx2 leaves the
        # socket to the garbage collector.
        limits = httpx2.Timeout(None, connect=_CONNECT_SHARE * self._deadline_s)
        own = {"Accept-Encoding": "gzip", "User-Agent": "customer-context"}
        async with (
            httpx2.AsyncClient(verify=context, trust_env=False, follow_redirects=False, timeout=limits) as client,
            client.stream("GET", url, headers={**own, **headers}) as response,
        ):
            body = await _body(response) if response.status_code == httpx2.codes.OK else b""
            return FetchResponse(response.status_code, tuple(response.headers.multi_items()), body)


async def _body(response: httpx2.Response) -> bytes:
    # A stack of codings could take memory for each of its layers before the first octet is counted.
    if response.headers.get("content-encoding", "").strip().lower() not in _ENCODINGS:
        raise FetchError("content coding other than gzip")
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_DOCUMENT_OCTETS:
            raise FetchError("larger than 64 KiB")
    return bytes(body)


class HTTPFetch:
    """
    The default `Fetch`: `AsyncHTTPFetch` on an event loop and a thread of its own.

    Only so is the deadline a hard one: a blocking client has a time limit for each read, which a server that sends one octet
    every few seconds never meets, and none for resolving a name.
    """

    def __init__(self, *, deadline_s: float = FETCH_DEADLINE_S, ssl_context: ssl.SSLContext | None = None) -> None:
        self._deadline_s = deadline_s
        self._fetch = AsyncHTTPFetch(deadline_s=deadline_s, ssl_context=ssl_context)

    def __call__(self, url: str, headers: Mapping[str, str], /) -> FetchResponse:
        """
        Get *url*; see `AsyncHTTPFetch`.
        """
        outcome: Future[FetchResponse] = Future()

        async def deliver() -> None:
            # Delivered before the loop is closed: that would wait for the thread of a name that cannot be resolved.
            try:
                outcome.set_result(await self._fetch(url, headers))
            except Exception as error:  # noqa: BLE001 -- it is raised again, on the thread that waits
                outcome.set_exception(error)

        Thread(target=lambda: asyncio.run(deliver()), name="jwks-fetch", daemon=True).start()
        try:
            return outcome.result(self._deadline_s + _GRACE_S)
        except TimeoutError:
            raise FetchError("no complete answer in time") from None
