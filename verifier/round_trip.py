"""
One HTTP request and its answer, bounded in time and size whatever the other side does.

The one door to httpx2. A slow, endless or inflating answer must not become a slow, endless or growing program (RFC 8725 section
3.10). No redirect is followed, no cookie kept, nothing repeated, and the environment names neither proxies nor authorities.
"""

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import aclosing
from threading import Thread
from typing import Any, Final, TypeVar

import httpx2

__all__ = ["RoundTripError", "new_ssl_context", "round_trip", "run_aside"]

_CONNECT_SHARE: Final = 0.4
_ENCODINGS: Final = frozenset({"", "identity", "gzip"})
_OWN_HEADERS: Final = {"accept-encoding": "gzip", "connection": "close", "user-agent": "customer-context"}

_Result = TypeVar("_Result")


class RoundTripError(Exception):
    """
    Raised when a request brought no answer; its text is ours and quotes nothing of the other side.
    """


def new_ssl_context() -> ssl.SSLContext:
    """
    Return a context that trusts the usual authorities; reading them takes 30 ms.
    """
    return httpx2.create_ssl_context(trust_env=False)


async def round_trip(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    content: bytes | None,
    ssl_context: ssl.SSLContext | None,
    deadline_s: float,
    max_octets: int,
    reads_body: Callable[[int], bool],
) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
    """
    Send a request over a connection of its own; return status, header lines in order, and content with its coding undone.

    *ssl_context* says whom to trust; None stands for the usual authorities, read anew, so that a change of them is noticed.
    *deadline_s* is for everything, from the name's resolution to the last octet; *max_octets* is the most content that is taken,
    after decoding, and *reads_body* tells by the status whether any is wanted.

    Raises:
        RoundTripError: for everything that is not an HTTP answer within these bounds.
    """
    # Connection and TLS handshake have limits of their own within the deadline: cancelled in a handshake, httpx2 leaves the
    # socket to the garbage collector.
    limits = httpx2.Timeout(None, connect=_CONNECT_SHARE * deadline_s)
    lines = _OWN_HEADERS | {name.lower(): value for name, value in headers.items()}
    try:
        request = httpx2.Request(method, url, headers=lines, content=content, extensions={"timeout": limits.as_dict()})
        async with asyncio.timeout(deadline_s):
            context = await asyncio.to_thread(new_ssl_context) if ssl_context is None else ssl_context
            # A transport and not a client, which logs every URL, and a path may name a customer.
            async with (
                httpx2.AsyncHTTPTransport(verify=context, trust_env=False) as transport,
                aclosing(await transport.handle_async_request(request)) as response,
            ):
                body = await _body(response, max_octets) if reads_body(response.status_code) else b""
                return response.status_code, tuple(response.headers.multi_items()), body
    except TimeoutError:
        raise RoundTripError("no complete answer in time") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise RoundTripError(type(error).__name__) from error


async def _body(response: httpx2.Response, max_octets: int) -> bytes:
    # A stack of codings could take memory for each of its layers before the first octet is counted.
    if response.headers.get("content-encoding", "").strip().lower() not in _ENCODINGS:
        raise RoundTripError("content coding other than gzip")
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > max_octets:
            raise RoundTripError(f"larger than {max_octets // 1024} KiB")
    return bytes(body)


def run_aside(work: Callable[[], Coroutine[Any, Any, _Result]], *, limit_s: float, name: str) -> _Result:
    """
    Run *work* on an event loop and a thread of its own, called *name*, and wait for it at most *limit_s*.

    Only so is the deadline of a blocking program a hard one: a blocking client has a time limit for each read, which a server
    that sends one octet every few seconds never meets, and none for resolving a name.

    Raises:
        TimeoutError: when it has not ended by then.
    """
    outcome: Future[_Result] = Future()

    async def deliver() -> None:
        # Delivered before the loop is closed: that would wait for the thread of a name that cannot be resolved.
        try:
            outcome.set_result(await work())
        except Exception as error:  # noqa: BLE001 -- it is raised again, on the thread that waits
            outcome.set_exception(error)

    Thread(target=lambda: asyncio.run(deliver()), name=name, daemon=True).start()
    return outcome.result(limit_s)
