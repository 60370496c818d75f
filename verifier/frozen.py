"""
Values that cannot be changed after they were checked, and still are ordinary JSON values to everybody who reads them.
"""

from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["FrozenDict", "freeze"]


class FrozenDict(dict[str, Any]):
    """
    A `dict` that refuses every change: it can be read, compared, unpacked and given to `json.dumps` like any other.
    """

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("a verified value cannot be changed; copy it with dict(...) first")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[object, ...]:
        return (FrozenDict, (dict(self),))

    def __copy__(self) -> "FrozenDict":
        return self

    def __deepcopy__(self, _memo: object) -> "FrozenDict":
        return self


def freeze(value: Any) -> Any:
    """
    Return a deeply unchangeable copy of a JSON value: objects become `FrozenDict`, arrays become tuples.
    """
    if isinstance(value, Mapping):
        return FrozenDict({name: freeze(member) for name, member in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(member) for member in value)
    return value
