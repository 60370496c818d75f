"""
One call of a partner's API as an orchestrator means it, and what is asked for on its way: a token, a stronger sign-in.

Everything is checked and copied when the call is described, so that what is minted and sent after a step-up is what was confirmed
before it, whatever became of the caller's objects in between (D18).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .action import BoundAction, bind_action, canonical_json
from .api_http import APIRequest
from .claims import is_time
from .conversation import is_conversation
from .demand import scope_words
from .frozen import FrozenDict
from .levels import Level, is_level
from .step_up import StepUp
from .url import check_path

__all__ = ["APICall", "MintedToken", "SignInRequest", "TokenRequest"]

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
# What this client writes itself, and what decides where a request goes and how it is framed.
_RESERVED_HEADERS: Final = frozenset(
    {
        *("authorization", "proxy-authorization", "idempotency-key", "host", "accept-encoding", "content-length"),
        *("transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect"),
    }
)
_BEARER_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]{1,8192}=*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """
    What one fresh token is asked for; the same in every attempt of a call but for `demand`.

    `confirmed_at` (epoch seconds) is when the customer confirmed the action, None where nobody is asked. `demand` is what the API
    challenged for last, None before it did: a token request states its `parameters()`, `acr_values` and `max_age`.
    """

    audience: str
    conversation: str = field(repr=False)
    scope: str | None
    action: str | None
    arguments: FrozenDict | None = field(repr=False)
    idempotency_key: str | None = field(repr=False)
    confirmed_at: int | None
    demand: StepUp | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRequest:
    """
    What the customer of a conversation is asked for: a sign-in of at least this level, made now or at most this old.

    `demand` is what the API demands or more: a sign-in that is already better than demanded is not replaced by a worse one.
    """

    demand: StepUp
    audience: str
    conversation: str = field(repr=False)
    action: str | None


@dataclass(frozen=True, slots=True)
class MintedToken:
    """
    A token, and the argument that the issuer filled in by itself when the action has a selector: by name, as it granted it.
    """

    token: str = field(repr=False)
    selector: Mapping[str, str] = field(default_factory=FrozenDict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.token, str) or _BEARER_TOKEN.fullmatch(self.token) is None:
            raise ValueError("what was minted is no bearer token")
        object.__setattr__(self, "selector", FrozenDict(self.selector))


@dataclass(frozen=True, slots=True, kw_only=True)
class APICall:
    """
    One call of an API: a read, or a write with its action, arguments and idempotency key. Repeat it with the same object.

    Attributes:
        audience: the API, as tokens name it.
        conversation: whom it is for: 1 to 128 printable ASCII characters, handed to the callbacks.
        method: the HTTP method.
        path: below the API's base URL, percent-encoded, with its query.
        scope: scope words to ask the token for.
        action: the confirmed action; a write has this and the next two.
        arguments: its argument object exactly as confirmed, as a mapping or as raw JSON.
        idempotency_key: the one key of this confirmed action.
        confirmed_at: when the customer confirmed it, in epoch seconds; None where nobody is asked.
        present_level: the level the customer is signed in at, where it is known: a step-up never asks for less.
        headers: further header fields.
        content: what to send; None for the arguments of a write as JSON, and for nothing in a read.

    Raises:
        ValueError, TypeError: for a call that makes no sense.
    """

    audience: str
    conversation: str = field(repr=False)
    method: str
    path: str = field(repr=False)
    scope: str | None = None
    action: str | None = None
    arguments: Mapping[str, Any] | bytes | str | None = field(default=None, repr=False)
    idempotency_key: str | None = field(default=None, repr=False)
    confirmed_at: int | None = None
    present_level: Level | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)
    _bound: BoundAction | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.method not in _METHODS:
            raise ValueError(f"method is one of {', '.join(sorted(_METHODS))}")
        if not is_conversation(self.conversation):
            raise ValueError("conversation is 1 to 128 printable ASCII characters")
        check_path(self.path)
        if self.scope is not None:
            scope_words(self.scope)
        if self.present_level is not None and not is_level(self.present_level):
            raise ValueError("present_level is one of low, standard, high")
        if self.content is not None and type(self.content) is not bytes:
            raise TypeError("content is bytes")
        bound = self._bind()
        object.__setattr__(self, "_bound", bound)
        object.__setattr__(self, "arguments", bound and bound.arguments)
        object.__setattr__(self, "headers", _checked_headers(self.headers))

    def _bind(self) -> BoundAction | None:
        of_a_write = (self.action, self.arguments, self.idempotency_key)
        if of_a_write == (None, None, None):
            if self.confirmed_at is not None:
                raise ValueError("confirmed_at needs an action")
            return None
        if self.action is None or self.arguments is None or self.idempotency_key is None:
            raise ValueError("a write has an action, arguments (none at all are {}) and an idempotency key")
        if self.confirmed_at is not None and not (type(self.confirmed_at) is int and is_time(self.confirmed_at)):
            raise ValueError("confirmed_at is an int, in epoch seconds")
        return bind_action(action=self.action, arguments=self.arguments, idempotency_key=self.idempotency_key)

    @property
    def guard_key(self) -> tuple[str, ...]:
        """
        What prompts are counted by: the confirmed action, or for reads the conversation and the API (D9).
        """
        if self.idempotency_key is not None:
            return ("write", self.idempotency_key)
        return ("read", self.conversation, self.audience)

    def token_request(self, demand: StepUp | None) -> TokenRequest:
        """
        Return what to mint for the next attempt.
        """
        bound = self._bound
        return TokenRequest(
            audience=self.audience,
            conversation=self.conversation,
            scope=self.scope,
            action=self.action,
            arguments=bound.arguments if bound else None,
            idempotency_key=self.idempotency_key,
            confirmed_at=self.confirmed_at,
            demand=demand,
        )

    def request(self, base_url: str, minted: MintedToken) -> APIRequest:
        """
        Return what to send for an attempt with its own token.

        Raises:
            ValueError: for a selector that belongs to no write, or replaces what was confirmed.
        """
        own = {"authorization": f"Bearer {minted.token}"}
        content = self.content
        if self._bound is None:
            if minted.selector:
                raise ValueError("a read has no selector")
        else:
            own["idempotency-key"] = self._bound.idempotency_key
            arguments = _with_selector(self._bound.arguments, minted.selector)
            if content is None:
                own["content-type"] = "application/json"
                content = canonical_json(arguments)
        return APIRequest(
            method=self.method, url=base_url + self.path, headers={**own, **self.headers}, content=content
        )


def _with_selector(arguments: FrozenDict, selector: Mapping[str, str]) -> Mapping[str, Any]:
    if not arguments.keys().isdisjoint(selector):
        raise ValueError("a selector replaces no argument that was confirmed")
    return {**arguments, **selector}


def _checked_headers(headers: Mapping[str, str]) -> FrozenDict:
    lowered: dict[str, str] = {}
    for name, value in headers.items():
        if _HEADER_NAME.fullmatch(name) is None or _HEADER_VALUE.fullmatch(value) is None:
            raise ValueError("a header field has a token for its name and printable ASCII for its value")
        if name.lower() in _RESERVED_HEADERS or name.lower() in lowered:
            raise ValueError("a header field that this client writes itself, or the same one twice")
        lowered[name.lower()] = value
    return FrozenDict(lowered)
