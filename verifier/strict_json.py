"""
The one JSON reader of this project: what two parsers could read differently is refused (RFC 7515 section 10.12, RFC 8259).

`json.loads` keeps the last of two equal member names, takes NaN and Infinity, guesses encodings and recurses without a bound
of ours. Everything that arrives from outside goes through here instead.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final

__all__ = ["MAX_DEPTH", "StrictJSONError", "loads", "loads_object"]

MAX_DEPTH: Final = 40
"""Nesting that is read, in levels; every document of this project is far below it."""

# One that never ends counts as a string too: looking for its end again from each quote within it would take quadratic time.
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*"?', re.DOTALL)


class StrictJSONError(ValueError):
    """
    Raised when text is not exactly one acceptable JSON value. The message never holds any of the text.
    """


def loads(data: bytes | str) -> Any:
    """
    Read exactly one JSON value.

    Refused: an encoding other than UTF-8, a byte order mark, equal member names in one object (after unescaping), NaN and
    infinities (also as an overflow such as 1e400), lone surrogates, nesting deeper than `MAX_DEPTH`, integers of more digits
    than Python converts.

    Raises:
        StrictJSONError: for every one of these, and for nothing else.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
    except UnicodeDecodeError:
        raise StrictJSONError("not UTF-8") from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _refuse_deep(text)
    try:
        value = _DECODER.decode(text)
    except StrictJSONError:
        raise
    except (ValueError, RecursionError):
        raise StrictJSONError("not one JSON value") from None
    # Octets that decoded as UTF-8 hold no surrogate; an escape, or a str that was never decoded, may.
    if "\\u" in text or (text is data and not text.isascii()):
        _refuse_lone_surrogates(value)
    return value


def loads_object(data: bytes | str) -> dict[str, Any]:
    """
    Read exactly one JSON object; see `loads` for what is refused.
    """
    value = loads(data)
    if type(value) is not dict:
        raise StrictJSONError("not a JSON object")
    return value


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise StrictJSONError("a member name occurs twice")
    return members


def _finite(literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        raise StrictJSONError("a number is out of range")
    return number


def _refuse_constant(_literal: str) -> float:
    raise StrictJSONError("NaN and Infinity are not JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse_constant)


def _refuse_deep(text: str) -> None:
    depth = 0
    for character in _STRING.sub("", text):
        if character in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise StrictJSONError("nested too deeply")
        elif character in "]}":
            depth -= 1


def _refuse_lone_surrogates(value: Any) -> None:
    # Depth is already bounded, so recursion is too.
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise StrictJSONError("a lone surrogate is not text") from None
    elif isinstance(value, dict):
        for name, member in value.items():
            _refuse_lone_surrogates(name)
            _refuse_lone_surrogates(member)
    elif isinstance(value, list):
        for member in value:
            _refuse_lone_surrogates(member)
