"""
What is sealed beside the keys of a ring: a JSON object of the ring's owner, which is kept, bounded and never looked into here.

What has to change in step with the keys stands there, so that one compare-and-set is enough for both.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

__all__ = ["MAX_COMPANION_OCTETS", "freeze_companion"]

MAX_COMPANION_OCTETS: Final = 20 * 1024
"""Largest companion, as JSON in UTF-8."""

_MAX_DEPTH: Final = 16
_MAX_NUMBER: Final = 2**53 - 1


class _FrozenObject(dict[str, Any]):
    """
    A `dict` that refuses every change, and is written by `json` like any other.
    """

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("a companion cannot be changed; give the ring another one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[object, ...]:
        return (_FrozenObject, (dict(self),))

    def __deepcopy__(self, _memo: object) -> "_FrozenObject":
        return self


def freeze_companion(value: object) -> Mapping[str, Any]:
    """
    Return a copy that cannot be changed at any depth: objects become read-only, arrays become tuples.

    Raises:
        TypeError: when it is no object, or holds anything but texts, integers, true, false, null, arrays and objects.
        ValueError: when it is nested deeper than 16 levels, larger than `MAX_COMPANION_OCTETS`, holds an integer beyond 2^53 - 1,
            or a lone surrogate.
    """
    if not isinstance(value, Mapping):
        raise TypeError("a companion is an object")
    frozen: Mapping[str, Any] = _freeze(value, _MAX_DEPTH)
    if len(json.dumps(frozen, separators=(",", ":"), ensure_ascii=False).encode("utf-8")) > MAX_COMPANION_OCTETS:
        raise ValueError(f"a companion has at most {MAX_COMPANION_OCTETS} octets")
    return frozen


def _freeze(value: object, depth: int) -> Any:
    if value is None or type(value) in (str, bool):
        return value
    if type(value) is int:
        if abs(value) > _MAX_NUMBER:
            raise ValueError("an integer of the companion is out of range")
        return value
    if depth == 0:
        raise ValueError("a companion is nested too deeply")
    if isinstance(value, Mapping):
        if not all(type(name) is str for name in value):
            raise TypeError("the members of a companion have texts as names")
        return _FrozenObject({name: _freeze(member, depth - 1) for name, member in value.items()})
    if isinstance(value, list | tuple):
        return tuple(_freeze(member, depth - 1) for member in value)
    raise TypeError("a companion holds texts, integers, true, false, null, arrays and objects")
