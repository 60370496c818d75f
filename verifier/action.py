"""
What a customer confirmed, as a digest both sides can compute (D2; RFC 8785).

    preimage = UTF-8("caplo-action-digest:v1") || 0x00 || JCS({"action", "arguments", "idempotencyKey"})
    digest   = base64url(SHA-256(preimage))

The issuer computes it from the arguments it is given and forgets them; the verifier computes it again from what the API is about
to do. Only I-JSON (RFC 7493) has a digest, because only for I-JSON do two parsers agree on what was said.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import rfc8785

from .compact import b64url_encode
from .frozen import FrozenDict
from .strict_json import StrictJSONError, loads

__all__ = [
    "MAX_ARGUMENTS_DEPTH",
    "MAX_CANONICAL_OCTETS",
    "MAX_VALUES",
    "ArgumentsError",
    "BoundAction",
    "action_digest",
    "bind_action",
    "canonical_json",
    "is_action_name",
    "is_idempotency_key",
    "read_idempotency_key",
]

MAX_ARGUMENTS_DEPTH: Final = 32
"""Deepest nesting of arguments, in levels; the argument object itself is the first."""
MAX_VALUES: Final = 2000
"""Most values in arguments, containers counted."""
MAX_CANONICAL_OCTETS: Final = 16 * 1024
"""Longest canonical form of {action, arguments, idempotencyKey}, in octets."""

_MAX_RAW: Final = 64 * 1024
_TAG: Final = b"caplo-action-digest:v1\x00"
_MAX_SAFE_INTEGER: Final = 2**53 - 1
_ACTION_NAME: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_IDEMPOTENCY_KEY: Final = re.compile(r"[A-Za-z0-9._~-]{16,128}")
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


class ArgumentsError(ValueError):
    """
    Raised for arguments that have no digest; the message says which rule they break and never holds any of them.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAction:
    """
    An action, its frozen arguments and the digest over exactly these.
    """

    action: str
    arguments: FrozenDict
    idempotency_key: str
    digest: str


def is_action_name(value: object) -> bool:
    """
    Tell whether *value* is 1 to 128 of `A-Z a-z 0-9 . _ : -` (D2).
    """
    return isinstance(value, str) and _ACTION_NAME.fullmatch(value) is not None


def is_idempotency_key(value: object) -> bool:
    """
    Tell whether *value* is 16 to 128 of `A-Z a-z 0-9 . _ ~ -` (D12).
    """
    return isinstance(value, str) and _IDEMPOTENCY_KEY.fullmatch(value) is not None


def read_idempotency_key(header: object) -> str | None:
    """
    Read an `Idempotency-Key` header value, bare or as a structured-field String in double quotes (D17).

    Returns None when it is no key in either spelling.
    """
    if not isinstance(header, str):
        return None
    header = str.__str__(header)  # a plain one, whatever a subclass says of itself
    bare = header[1:-1] if len(header) > 1 and header[0] == header[-1] == '"' else header
    return bare if is_idempotency_key(bare) else None


def action_digest(*, action: str, arguments: Mapping[str, Any] | bytes | str, idempotency_key: str) -> str:
    """
    Compute the action digest, 43 characters of base64url.

    Args:
        action: the tool's operation name, 1 to 128 of `A-Z a-z 0-9 . _ : -`.
        arguments: the argument object exactly as confirmed, as a mapping or as raw JSON (then repeated names are seen);
            an empty body is `{}`.
        idempotency_key: 16 to 128 of `A-Z a-z 0-9 . _ ~ -`.

    Raises:
        ArgumentsError: (a ValueError) for arguments that are not one I-JSON object within the bounds of this module: repeated
            names, integers beyond 2^53-1 (send them as strings), integral floats from 2^53 up to 1e21, NaN, infinities, lone
            surrogates, values of other types, too deep, too many, too long.
        ValueError: for an action name or a key of another form.
    """
    return bind_action(action=action, arguments=arguments, idempotency_key=idempotency_key).digest


def bind_action(*, action: str, arguments: object, idempotency_key: str) -> BoundAction:
    """
    Freeze *arguments* and compute the digest over them; see `action_digest` for bounds and errors.
    """
    if not is_action_name(action):
        raise ValueError("an action name is 1 to 128 characters of A-Z a-z 0-9 . _ : -")
    if not is_idempotency_key(idempotency_key):
        raise ValueError("an idempotency key is 16 to 128 characters of A-Z a-z 0-9 . _ ~ -")
    walk = _Walk()
    frozen = walk.freeze(_as_mapping(arguments), 1)
    members = FrozenDict(action=action, arguments=frozen, idempotencyKey=idempotency_key)
    canonical = _encode(members, plain=walk.plain)
    if len(canonical) > MAX_CANONICAL_OCTETS:
        raise ArgumentsError("the arguments are too long")
    digest = b64url_encode(sha256(_TAG + canonical).digest())
    return BoundAction(action=action, arguments=frozen, idempotency_key=idempotency_key, digest=digest)


def canonical_json(value: object) -> bytes:
    """
    Write a JSON value in the canonical form of RFC 8785, within the bounds that hold for arguments.

    Raises:
        ArgumentsError: for a value that is not I-JSON.
    """
    walk = _Walk()
    return _encode(walk.freeze(value, 1), plain=walk.plain)


def _as_mapping(arguments: object) -> Mapping[str, Any]:
    if isinstance(arguments, bytes | str):
        if len(arguments) > _MAX_RAW:
            raise ArgumentsError("the arguments are too long")
        try:
            arguments = loads(arguments) if arguments else {}
        except StrictJSONError as error:
            raise ArgumentsError(f"the arguments are not strict JSON: {error}") from None
    if not isinstance(arguments, Mapping):
        raise ArgumentsError("the arguments are not an object")
    return arguments


def _encode(value: Any, *, plain: bool) -> bytes:
    # Without floats and with ASCII names only, the C encoder writes exactly what RFC 8785 asks for, five times as fast.
    return _ENCODER.encode(value).encode("utf-8") if plain else rfc8785.dumps(value)


class _Walk:
    """
    One pass that freezes a value, refuses what is not I-JSON and counts before anything costly is done.
    """

    __slots__ = ("_octets", "_values", "plain")

    def __init__(self) -> None:
        self.plain = True
        self._values = 0
        self._octets = 0

    def freeze(self, value: Any, depth: int) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise ArgumentsError("the arguments hold too many values")
        kind = type(value)
        if kind is str:
            return self._text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return _safe_integer(value)
        if kind is float:
            self.plain = False
            return _unambiguous_float(value)
        if depth > MAX_ARGUMENTS_DEPTH:
            raise ArgumentsError("the arguments are nested too deeply")
        if kind is list or kind is tuple:
            return tuple([self.freeze(member, depth + 1) for member in value])
        if isinstance(value, Mapping):
            return FrozenDict({self._name(name): self.freeze(member, depth + 1) for name, member in _members(value)})
        raise ArgumentsError("the arguments hold a value that JSON does not have")

    def _name(self, name: object) -> str:
        if type(name) is not str:
            raise ArgumentsError("the arguments hold a name that is not a string")
        self.plain = self.plain and name.isascii()
        return self._text(name)

    def _text(self, text: str) -> str:
        self._octets += len(text)
        if self._octets > MAX_CANONICAL_OCTETS:
            raise ArgumentsError("the arguments are too long")
        if not text.isascii():
            try:
                text.encode("utf-8")
            except UnicodeEncodeError:
                raise ArgumentsError("the arguments hold a lone surrogate") from None
        return text


def _members(value: Mapping[Any, Any]) -> tuple[tuple[Any, Any], ...]:
    # Taken at once, so that another thread cannot change them meanwhile, and one more at most than will be counted.
    try:
        return tuple(islice(value.items(), MAX_VALUES + 1))
    except Exception:  # noqa: BLE001 -- a mapping that is not a dict may fail in any way; its text may hold arguments
        raise ArgumentsError("the arguments cannot be read") from None


def _safe_integer(value: int) -> int:
    if not -_MAX_SAFE_INTEGER <= value <= _MAX_SAFE_INTEGER:
        raise ArgumentsError("the arguments hold an integer beyond 2^53-1; send such numbers as strings")
    return value


def _unambiguous_float(value: float) -> float:
    # From 2^53 up to 1e21 an integral float is written like an integer, which the next hop would have to refuse.
    if value != value or abs(value) == float("inf"):  # noqa: PLR0124 -- NaN is the one value that differs from itself
        raise ArgumentsError("the arguments hold NaN or an infinity")
    if value.is_integer() and _MAX_SAFE_INTEGER < abs(value) < 1e21:
        raise ArgumentsError("the arguments hold an integral number beyond 2^53-1; send such numbers as strings")
    return value
