"""
JSON in the one spelling that hashes and MACs are made of (RFC 8785).

Values are texts, integers, true, false, null, arrays and objects whose member names are ASCII. For these, the canonical form is
what `json` writes with sorted names, several times as fast as a general implementation; a test holds the two against each
other. No floating point number has a place here.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from verifier.frozen import FrozenDict

__all__ = ["MAX_NUMBER", "canonical", "frozen_object"]

MAX_NUMBER: Final = 2**53 - 1
"""Largest integer that every reader of JSON reads alike."""

_MAX_DEPTH: Final = 8
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(members: Mapping[str, Any]) -> bytes:
    """
    Write an object in canonical form.

    Raises:
        ValueError: when a text holds a lone surrogate.
    """
    return _ENCODER.encode(members).encode("utf-8")


def frozen_object(value: object) -> FrozenDict:
    """
    Return a deeply unchangeable copy of an object that has a canonical form here: at most eight levels, no lone surrogate.

    Raises:
        ValueError: when it has none.
    """
    if isinstance(value, Mapping):
        frozen: FrozenDict = _frozen(value, _MAX_DEPTH)
        return frozen
    raise ValueError("no object")


def _frozen(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        if not value.isprintable() and any("\ud800" <= character <= "\udfff" for character in value):
            raise ValueError("a lone surrogate")
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) > MAX_NUMBER:
            raise ValueError("a number out of range")
        return value
    if depth == 0:
        raise ValueError("too many levels")
    # The abstract type is asked for last: asking is slow, and nearly all values are plain.
    if isinstance(value, list | tuple):
        return tuple([_frozen(member, depth - 1) for member in value])
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 -- the same reason
        return FrozenDict({_name(name): _frozen(member, depth - 1) for name, member in value.items()})
    raise ValueError("a value of another type")


def _name(name: object) -> str:
    if not isinstance(name, str) or not name.isascii():
        raise ValueError("a name that is not ASCII")
    return name
