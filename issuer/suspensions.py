"""
Who is cut off at the mint: suspended clients, agents, customers and actions, sealed with the keys of their workspace.

They stand in the companion of the key ring, so that they change by the same compare-and-set as the keys and reach every instance
the same way. Everything here is pure; what a ring says is read when the ring is adopted, and every mint asks in memory.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self, get_args

from keys import KeyRing, KeysError
from keys.record import is_reason
from keys.timing import MAX_INSTANT

from .audit import COMPANION_ROOM

__all__ = [
    "KINDS",
    "MAX_SUSPENSIONS",
    "InvalidSuspension",
    "Suspension",
    "SuspensionKind",
    "Suspensions",
    "SuspensionsFull",
    "SuspensionsUnreadable",
    "Target",
    "UnknownSuspension",
    "read_suspensions",
    "ring_with_suspensions",
]

SuspensionKind = Literal["client", "agent", "customer", "action"]

KINDS: Final[tuple[SuspensionKind, ...]] = get_args(SuspensionKind)

MAX_SUSPENSIONS: Final = 200
"""Most suspensions of a workspace; together they also have to fit into the companion of its ring."""

_MEMBER: Final = "suspensions"
_ROW: Final = 7
_MAX_VALUE: Final = 1024
_MAX_ID: Final = 64
# The name of the member and what stands around it.
_MAX_OCTETS: Final = COMPANION_ROOM - 32


class SuspensionsUnreadable(KeysError):
    """
    Raised when what a ring says about suspensions cannot be read; such a ring is not used, since somebody might be let through.
    """

    code = "suspensions_unreadable"

    def __init__(self, workspace: str) -> None:
        """
        Name the workspace.
        """
        super().__init__(
            f"Workspace {workspace!r}: what the key ring says about suspensions cannot be read; it is not used. "
            "Was it written by a later version?"
        )


class InvalidSuspension(ValueError):
    """
    Raised for a suspension that is none; the message is made of our own words only.
    """


class SuspensionsFull(Exception):
    """
    Raised when there is no room for one more suspension; lift one that is not needed any more.
    """


class UnknownSuspension(Exception):
    """
    Raised when there is no suspension of that id: it was lifted, or its time has passed.
    """


@dataclass(frozen=True, slots=True)
class Target:
    """
    What is suspended: a `client_id`, an agent, the name of an action, or a customer by identity namespace and `sub`.

    Raises:
        InvalidSuspension: for a kind that is none, a value that is not 1 to 1024 characters, a namespace where none belongs, or
            the lack of one for a customer.
    """

    kind: SuspensionKind
    value: str = field(repr=False)
    namespace: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidSuspension("kind is not client, agent, customer or action")
        if (self.kind == "customer") != (self.namespace is not None):
            raise InvalidSuspension("a customer has a namespace, and nothing else has one")
        for text in (self.value, self.namespace):
            if text is not None and not (isinstance(text, str) and 1 <= len(text) <= _MAX_VALUE):
                raise InvalidSuspension(f"a suspended name is 1 to {_MAX_VALUE} characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    """
    One suspension: since `at`, and until `until` when it is not for good (epoch seconds). Equal ones may stand side by side.

    Raises:
        InvalidSuspension: when a member lies outside its bounds, or it would end before it begins.
    """

    id: str
    target: Target
    reason: str
    at: int
    until: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not 1 <= len(self.id) <= _MAX_ID:
            raise InvalidSuspension("the id of a suspension is no id")
        if not is_reason(self.reason):
            raise InvalidSuspension("a reason is 1 to 500 printable characters")
        for instant in (self.at, self.at if self.until is None else self.until):
            if type(instant) is not int or not 0 <= instant <= MAX_INSTANT:
                raise InvalidSuspension("an instant is a whole number of epoch seconds")
        if self.until is not None and self.until <= self.at:
            raise InvalidSuspension("a suspension ends after it begins")

    def is_in_force(self, now: float) -> bool:
        """
        Tell whether it holds at *now*.
        """
        return self.until is None or now < self.until


@dataclass(frozen=True, slots=True)
class Suspensions:
    """
    All suspensions of a workspace, in the order in which they were made.
    """

    all: tuple[Suspension, ...] = ()
    _by_target: Mapping[Target, tuple[Suspension, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_target: dict[Target, tuple[Suspension, ...]] = {}
        for each in self.all:
            by_target[each.target] = (*by_target.get(each.target, ()), each)
        object.__setattr__(self, "_by_target", by_target)

    def find(self, targets: Iterable[Target], now: float) -> Suspension | None:
        """
        Return the suspension that stands in the way of the first of *targets* that is suspended at *now*, or None.
        """
        if not self._by_target:
            return None
        found = (each for target in targets for each in self._by_target.get(target, ()))
        return next((each for each in found if each.is_in_force(now)), None)

    def in_force(self, now: float) -> Self:
        """
        Return those that hold at *now*.
        """
        return type(self)(tuple(each for each in self.all if each.is_in_force(now)))

    def with_added(self, suspension: Suspension) -> Self:
        """
        Return these and one more.

        Raises:
            SuspensionsFull: when it has no room.
        """
        added = type(self)((*self.all, suspension))
        octets = len(json.dumps(added.rows(), separators=(",", ":"), ensure_ascii=False).encode("utf-8"))
        if len(added.all) > MAX_SUSPENSIONS or octets > _MAX_OCTETS:
            raise SuspensionsFull
        return added

    def without(self, suspension_id: str) -> tuple[Self, Suspension]:
        """
        Return these without the one of that id, and that one.

        Raises:
            UnknownSuspension: when there is none.
        """
        for suspension in self.all:
            if suspension.id == suspension_id:
                return type(self)(tuple(each for each in self.all if each is not suspension)), suspension
        raise UnknownSuspension

    def rows(self) -> list[list[str | int | None]]:
        """
        Write them for the companion of a ring, where room is scarce: rows without names.
        """
        return [
            [each.id, each.target.kind, each.target.namespace, each.target.value, each.reason, each.at, each.until]
            for each in self.all
        ]


def read_suspensions(ring: KeyRing) -> Suspensions:
    """
    Read what a ring says about suspensions; a ring that says nothing has none.

    Raises:
        SuspensionsUnreadable: when it cannot be read in full.
    """
    try:
        return Suspensions(tuple(_suspension(row) for row in ring.companion.get(_MEMBER, ())))
    except (TypeError, ValueError):
        raise SuspensionsUnreadable(ring.workspace) from None


def ring_with_suspensions(ring: KeyRing, suspensions: Suspensions) -> KeyRing:
    """
    Return *ring* with these suspensions in the place of those it has.
    """
    return replace(ring, companion={**ring.companion, _MEMBER: suspensions.rows()})


def _suspension(row: Sequence[Any]) -> Suspension:
    if len(row) != _ROW:
        raise ValueError("a suspension has another number of members")
    suspension_id, kind, namespace, value, reason, at, until = row
    return Suspension(id=suspension_id, target=Target(kind, value, namespace), reason=reason, at=at, until=until)
