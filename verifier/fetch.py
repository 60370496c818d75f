"""
How a verifier gets its issuer's JWK Set: where it lies, what the caller's own HTTP has to offer, and the default.

Whatever the other side does, a fetch ends within its deadline and holds little.
"""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol

from .jwk import MAX_DOCUMENT_OCTETS
from .round_trip import RoundTripError, round_trip, run_aside
from .url import check_url

__all__ = [
    "FETCH_DEADLINE_S",
    "JWKS_PATH",
    "AsyncFetch",
    "AsyncHTTPFetch",
    "Fetch",
    "FetchError",
    "FetchResponse",
    "HTTPFetch",
    "fetch_document",
    "jwks_url",
]

FETCH_DEADLINE_S: Final = 5.0
"""How long one fetch may take in all, from the name's resolution to the last octet (D19)."""

JWKS_PATH: Final = "/.well-known/jwks.json"
"""Where the key set stands below each issuer: verifiers find it by this rule, without discovery (D3)."""

_GRACE_S: Final = 1.0


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


async def fetch_document(
    url: str,
    headers: Mapping[str, str],
    *,
    deadline_s: float = FETCH_DEADLINE_S,
    ssl_context: ssl.SSLContext | None = None,
) -> FetchResponse:
    """
    Get *url*, wherever that is, over a connection of its own; at most 64 KiB of content after decoding are taken.

    Raises:
        FetchError: for everything that is not an HTTP answer within *deadline_s* seconds.
    """
    try:
        answer = await round_trip(
            "GET",
            url,
            headers=headers,
            content=None,
            ssl_context=ssl_context,
            deadline_s=deadline_s,
            max_octets=MAX_DOCUMENT_OCTETS,
            reads_body=lambda status: status == HTTPStatus.OK,
        )
    except RoundTripError as error:
        raise FetchError(str(error)) from error
    return FetchResponse(*answer)


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
        return await fetch_document(url, headers, deadline_s=self._deadline_s, ssl_context=self._ssl_context)


class HTTPFetch:
    """
    The default `Fetch`: `AsyncHTTPFetch` on an event loop and a thread of its own, so that the deadline is a hard one.
    """

    def __init__(self, *, deadline_s: float = FETCH_DEADLINE_S, ssl_context: ssl.SSLContext | None = None) -> None:
        self._deadline_s = deadline_s
        self._fetch = AsyncHTTPFetch(deadline_s=deadline_s, ssl_context=ssl_context)

    def __call__(self, url: str, headers: Mapping[str, str], /) -> FetchResponse:
        """
        Get *url*; see `AsyncHTTPFetch`.
        """
        try:
            return run_aside(lambda: self._fetch(url, headers), limit_s=self._deadline_s + _GRACE_S, name="jwks-fetch")
        except TimeoutError:
            raise FetchError("no complete answer in time") from None
