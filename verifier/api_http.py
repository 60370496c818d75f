"""
How a partner's API is called: what is sent and what came back, what the caller's own HTTP has to offer, and the default.
"""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from .round_trip import RoundTripError, new_ssl_context, round_trip, run_aside

__all__ = [
    "MAX_RESPONSE_OCTETS",
    "SEND_DEADLINE_S",
    "APIRequest",
    "APIResponse",
    "AsyncHTTPSend",
    "AsyncSend",
    "HTTPSend",
    "Send",
    "SendError",
]

SEND_DEADLINE_S: Final = 30.0
"""How long one call may take in all, from the name's resolution to the last octet, unless told otherwise."""

MAX_RESPONSE_OCTETS: Final = 4 * 1024 * 1024
"""The most content of an answer that is taken, after decoding."""

_GRACE_S: Final = 1.0


class SendError(Exception):
    """
    Raised when a call brought no answer. Whether the API did what it was asked for is not known then.

    Its text is ours and quotes nothing of either side.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class APIRequest:
    """
    One request as it is sent. Its representation shows neither token nor content, nor the URL, which may name a customer.
    """

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class APIResponse:
    """
    One answer as it came: redirects are not followed, content codings are undone.

    Attributes:
        status: the status code.
        headers: the header fields in order, one pair for each line; names in any case.
        content: the content.
    """

    status: int
    headers: Sequence[tuple[str, str]] = field(repr=False)
    content: bytes = field(repr=False)

    def lines(self, name: str) -> list[str]:
        """
        Return the value of each line of a header field; the case of *name* does not matter.
        """
        return [value for line, value in self.headers if line.lower() == name.lower()]


class Send(Protocol):
    """
    The caller's own HTTP for `StepUpClient`: any callable with this signature.

    It sends exactly the given header fields besides its own, to exactly this URL: it follows no redirect, which would take the
    token elsewhere, and repeats nothing. It verifies the certificate, uses no cookies, returns at the end of a deadline of its
    own, and raises any Exception when there is no answer, which the caller of `call` gets.
    """

    def __call__(self, request: APIRequest, /) -> APIResponse:
        """
        Send *request*.
        """


class AsyncSend(Protocol):
    """
    The caller's own HTTP for `AsyncStepUpClient`; see `Send`.
    """

    async def __call__(self, request: APIRequest, /) -> APIResponse:
        """
        Send *request*.
        """


class AsyncHTTPSend:
    """
    The default `AsyncSend`: a new connection for every call. A program with many calls brings a pool of its own.

    TLS certificates are always verified; the environment names neither proxies nor authorities.
    """

    def __init__(self, *, deadline_s: float = SEND_DEADLINE_S, ssl_context: ssl.SSLContext | None = None) -> None:
        self._deadline_s = deadline_s
        self._ssl_context = new_ssl_context() if ssl_context is None else ssl_context

    async def __call__(self, request: APIRequest, /) -> APIResponse:
        """
        Send *request*.

        Raises:
            SendError: for everything that is not an HTTP answer in time and within `MAX_RESPONSE_OCTETS`.
        """
        try:
            answer = await round_trip(
                request.method,
                request.url,
                headers=request.headers,
                content=request.content,
                ssl_context=self._ssl_context,
                deadline_s=self._deadline_s,
                max_octets=MAX_RESPONSE_OCTETS,
                reads_body=lambda _status: True,
            )
        except RoundTripError as error:
            raise SendError(str(error)) from error
        return APIResponse(*answer)


class HTTPSend:
    """
    The default `Send`: `AsyncHTTPSend` on an event loop and a thread of its own, so that the deadline is a hard one.
    """

    def __init__(self, *, deadline_s: float = SEND_DEADLINE_S, ssl_context: ssl.SSLContext | None = None) -> None:
        self._deadline_s = deadline_s
        self._send = AsyncHTTPSend(deadline_s=deadline_s, ssl_context=ssl_context)

    def __call__(self, request: APIRequest, /) -> APIResponse:
        """
        Send *request*; see `AsyncHTTPSend`.
        """
        try:
            return run_aside(lambda: self._send(request), limit_s=self._deadline_s + _GRACE_S, name="api-call")
        except TimeoutError:
            raise SendError("no complete answer in time") from None
