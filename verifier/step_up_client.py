"""
The step-up loop for orchestrators: call an API, and where it demands one, get a stronger sign-in and call again (RFC 9470, D9).

    client = StepUpClient(apis={"https://api.shop.example": "https://api.shop.example/v1"}, mint=mint, sign_in=sign_in)
    response = client.call(APICall(audience="https://api.shop.example", conversation="c-1", method="GET", path="/orders"))

A token goes to the base URL of its audience and nowhere else: no redirect is followed, and neither is `resource_metadata`.
Nothing is repeated but after a step-up: every other answer, 401 or not, is the caller's, who may make the same call again.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from contextlib import closing
from typing import Any, Protocol

from .api_call import APICall, MintedToken, SignInRequest, TokenRequest
from .api_http import APIRequest, APIResponse, AsyncHTTPSend, AsyncSend, HTTPSend, Send, SendError
from .levels import Level
from .step_up_guard import PROMPT_LIMIT_S, StepUpGuard
from .step_up_loop import SpentTokens, Step, StepUpError, StepUpReason, step_up_loop
from .url import check_url

__all__ = [
    "APICall",
    "APIRequest",
    "APIResponse",
    "AsyncMint",
    "AsyncSignIn",
    "AsyncStepUpClient",
    "Mint",
    "MintedToken",
    "SendError",
    "SignIn",
    "SignInRequest",
    "StepUpClient",
    "StepUpError",
    "StepUpGuard",
    "StepUpReason",
    "TokenRequest",
]


class Mint(Protocol):
    """
    How a `StepUpClient` gets its tokens: it asks the issuer's token endpoint for what is requested, each time anew.

    It returns the token, as a `MintedToken` where the issuer filled a selector. What it raises reaches the caller of `call`.
    """

    def __call__(self, request: TokenRequest, /) -> str | MintedToken:
        """
        Mint a token.
        """


class SignIn(Protocol):
    """
    How a `StepUpClient` has a customer sign in: it asks the customer of the conversation and waits for them.

    It returns the level that was reached, or None when the customer did not sign in. What it raises reaches the caller of `call`.
    """

    def __call__(self, request: SignInRequest, /) -> Level | None:
        """
        Ask the customer.
        """


class AsyncMint(Protocol):
    """
    How an `AsyncStepUpClient` gets its tokens; see `Mint`.
    """

    async def __call__(self, request: TokenRequest, /) -> str | MintedToken:
        """
        Mint a token.
        """


class AsyncSignIn(Protocol):
    """
    How an `AsyncStepUpClient` has a customer sign in; see `SignIn`.
    """

    async def __call__(self, request: SignInRequest, /) -> Level | None:
        """
        Ask the customer.
        """


class StepUpClient:
    """
    Call partners' APIs, blocking. Safe to share between threads; keep one for the life of the process.
    """

    def __init__(
        self,
        *,
        apis: Mapping[str, str],
        mint: Mint,
        sign_in: SignIn,
        send: Send | None = None,
        guard: StepUpGuard | None = None,
    ) -> None:
        """
        Build a client; nothing is sent yet.

        Args:
            apis: for each audience the base URL of its API, https (http on loopback hosts).
            mint: gets a token for each attempt.
            sign_in: asks a customer for a stronger sign-in.
            send: the caller's own HTTP; None for `api_http.HTTPSend`.
            guard: counts the prompts; to be shared by the clients of a process when there are several.

        Raises:
            ValueError, TypeError: for a value that makes no sense.
        """
        self._apis = _base_urls(apis)
        self._mint = mint
        self._sign_in = sign_in
        self._send = HTTPSend() if send is None else send
        self._guard = StepUpGuard() if guard is None else guard
        self._spent = SpentTokens()
        for callback in _checked(self._mint, self._sign_in, self._send):
            if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):
                raise TypeError("an asynchronous callback needs AsyncStepUpClient")

    def call(self, call: APICall) -> APIResponse:
        """
        Make a call, stepping up where the API demands it, and return the answer that is no step-up challenge.

        Raises:
            StepUpError: the API demands a stronger sign-in, and there is none.
            SendError: no answer came; a write may have been done. What a callback or the caller's own HTTP raises is passed on.
            ValueError, TypeError: the call makes no sense, or a callback returned something else.
        """
        steps = step_up_loop(call, _base_url(self._apis, call), guard=self._guard, spent=self._spent)
        with closing(steps):
            result: Any = None
            while True:
                try:
                    step = steps.send(result)
                except StopIteration as end:
                    response: APIResponse = end.value
                    return response
                result = self._take(step)

    def _take(self, step: Step) -> object:
        if isinstance(step, TokenRequest):
            return self._mint(step)
        if isinstance(step, APIRequest):
            return self._send(step)
        if isinstance(step, SignInRequest):
            return self._sign_in(step)
        return bool(wait({step.ended}, PROMPT_LIMIT_S).done)


class AsyncStepUpClient:
    """
    Call partners' APIs in an asyncio program; the arguments are those of `StepUpClient`.
    """

    def __init__(
        self,
        *,
        apis: Mapping[str, str],
        mint: AsyncMint,
        sign_in: AsyncSignIn,
        send: AsyncSend | None = None,
        guard: StepUpGuard | None = None,
    ) -> None:
        """
        Build a client; nothing is sent yet, and no event loop is needed. See `StepUpClient`.
        """
        self._apis = _base_urls(apis)
        self._mint = mint
        self._sign_in = sign_in
        self._send = AsyncHTTPSend() if send is None else send
        self._guard = StepUpGuard() if guard is None else guard
        self._spent = SpentTokens()
        _checked(self._mint, self._sign_in, self._send)

    async def call(self, call: APICall) -> APIResponse:
        """
        Make a call; see `StepUpClient.call`. A call that is cancelled leaves no prompt that others would wait for.
        """
        steps = step_up_loop(call, _base_url(self._apis, call), guard=self._guard, spent=self._spent)
        with closing(steps):
            result: Any = None
            while True:
                try:
                    step = steps.send(result)
                except StopIteration as end:
                    response: APIResponse = end.value
                    return response
                result = await self._take(step)

    async def _take(self, step: Step) -> object:
        if isinstance(step, TokenRequest):
            return await self._mint(step)
        if isinstance(step, APIRequest):
            return await self._send(step)
        if isinstance(step, SignInRequest):
            return await self._sign_in(step)
        ended = asyncio.wrap_future(step.ended)
        try:
            return bool((await asyncio.wait({ended}, timeout=PROMPT_LIMIT_S))[0])
        finally:
            # The prompt goes on, but nothing is told to an event loop that may be closed by then.
            ended.cancel()


def _base_urls(apis: Mapping[str, str]) -> dict[str, str]:
    base_urls = {audience: url.removesuffix("/") for audience, url in apis.items()}
    for audience, url in base_urls.items():
        if not isinstance(audience, str) or not audience:
            raise ValueError("an audience is a non-empty str")
        check_url(url)
    return base_urls


def _base_url(apis: Mapping[str, str], call: APICall) -> str:
    if call.audience not in apis:
        raise ValueError("there is no base URL for this audience")
    return apis[call.audience]


def _checked(*callbacks: Callable[..., object]) -> tuple[Callable[..., object], ...]:
    if not all(map(callable, callbacks)):
        raise TypeError("mint, sign_in and send are callables")
    return callbacks
