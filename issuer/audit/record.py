"""
One record of the audit trail: who did what to what, from where, with which outcome; written one way and read strictly.

A record is one line of canonical JSON. Only its one spelling is read, so that a MAC over the members is one over the line.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from verifier.strict_json import StrictJSONError, loads_object

from .canonical import MAX_NUMBER, canonical, frozen_object

__all__ = [
    "EVENTS",
    "MAX_LINE_OCTETS",
    "OUTCOMES",
    "Actor",
    "ActorKind",
    "Entry",
    "Event",
    "Malformed",
    "Outcome",
    "Record",
    "SignedRecord",
    "entry_members",
    "parse_entry",
    "parse_record",
    "read_seq",
    "record_members",
]

Event = Literal[
    "ring_created",
    "ring_restored",
    "ring_copied",
    "ring_resealed",
    "keys_rotated",
    "key_revoked",
    "keys_revoked",
    "cache_times_changed",
    "suspension_added",
    "suspension_lifted",
    "admin_called",
    "attempts_refused",
    "configuration_loaded",
    "configuration_refused",
    "audit_torn",
    "audit_gap",
    "trail_restarted",
]
"""
What a record may be about. The last three are the trail's own: a line that a crash left half-written was set aside; changes were
made that could not be recorded at the time; the trail was damaged, or the ring replaced, and somebody answers for going on.
"""

Outcome = Literal["done", "refused", "failed"]
ActorKind = Literal["admin", "cli", "schedule", "service"]

EVENTS: Final[tuple[Event, ...]] = get_args(Event)
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)

MAX_LINE_OCTETS: Final = 256 * 1024
"""Longest line; it holds the longest history that a ring ever hands over at once."""

_KINDS: Final = get_args(ActorKind)
_VERSION: Final = 1
_HASH: Final = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")
_SEALING_KEY_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Malformed(ValueError):
    """
    Raised for what is no record; the message is made of our own words only.
    """


@dataclass(frozen=True, slots=True)
class Actor:
    """
    Who does something, and from where: the address of the peer, or `local`.

    Raises:
        ValueError: when the kind is none, or a text is not 1 to 128 printable characters.
    """

    kind: ActorKind
    name: str
    source: str = "local"

    def __post_init__(self) -> None:
        _check_choice(self.kind, _KINDS, "kind")
        _check_text(self.name, 128, "name")
        _check_text(self.source, 128, "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    What a record says, before it has a place in the chain.

    Attributes:
        at: when, in epoch seconds.
        actor: who.
        event: what.
        outcome: `done`, `refused` or `failed`.
        target: to what: a kid, a client, an agent, an action, or the keyed hash of a customer id; never the id itself.
        reason: why, in the words of the actor; 1 to 500 printable characters.
        before, after: what it was and what it became; deeply frozen.
        count: how often, where one record stands for several occurrences.

    Raises:
        ValueError: when a member lies outside its bounds.
    """

    at: int
    actor: Actor
    event: Event
    outcome: Outcome = "done"
    target: str | None = None
    reason: str | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    count: int = 1

    def __post_init__(self) -> None:
        _check_number(self.at, "at")
        _check_choice(self.event, EVENTS, "event")
        _check_choice(self.outcome, OUTCOMES, "outcome")
        if self.target is not None:
            _check_text(self.target, 256, "target")
        if self.reason is not None:
            _check_text(self.reason, 500, "reason")
        for name in ("before", "after"):
            value = getattr(self, name)
            if value is not None:
                try:
                    object.__setattr__(self, name, frozen_object(value))
                except ValueError as error:
                    raise Malformed(f"{name} holds {error}") from None
        _check_number(self.count, "count", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """
    An entry in its place.

    Attributes:
        entry: what the record says.
        workspace: whose trail it stands in.
        seq: its number, from 1 on.
        revision: the revision of the key ring that it was written for.
        follows: the last record before it that was carried out. Those in between were written and then not carried out: their
            writer crashed, was overtaken or failed before the ring was saved.
        epoch: the chain of MAC keys it belongs to, from 1 on.
        sealing_key: in the first record of an epoch, the id of the sealing key that the chain begins with; None in all others.
        prev: the hash of the line before, `Head.link`.
    """

    entry: Entry
    workspace: str
    seq: int
    revision: int
    follows: int
    epoch: int
    sealing_key: str | None
    prev: str

    def __post_init__(self) -> None:
        _check_text(self.workspace, 63, "workspace")
        for name in ("seq", "revision", "epoch"):
            _check_number(getattr(self, name), name, least=1)
        _check_number(self.follows, "follows")
        if self.follows >= self.seq:
            raise Malformed("a record follows an earlier one")
        if self.sealing_key is not None and not _matches(_SEALING_KEY_ID, self.sealing_key):
            raise Malformed("sealing_key is no id")
        if not _matches(_HASH, self.prev):
            raise Malformed("prev is no hash")


@dataclass(frozen=True, slots=True)
class SignedRecord:
    """
    A record as it was read: `content` is what the MAC is over. Nothing says yet that the MAC is right.
    """

    record: Record
    content: bytes
    mac: str


def entry_members(entry: Entry) -> dict[str, Any]:
    """
    Return the members that a line has for an entry.
    """
    members: dict[str, Any] = {name: getattr(entry, name) for name in _ENTRY}
    return {**members, "actor": {"kind": entry.actor.kind, "name": entry.actor.name}, "source": entry.actor.source}


def record_members(record: Record) -> dict[str, Any]:
    """
    Return all members of a line but its MAC.
    """
    place = {name: getattr(record, name) for name in _PLACE}
    return {"v": _VERSION, **entry_members(record.entry), **place}


def parse_entry(members: Mapping[str, Any]) -> Entry:
    """
    Build an entry from exactly the members that `entry_members` returns.

    Raises:
        Malformed: when they are others, or one of them is wrong.
    """
    rest = dict(members)
    actor, source = rest.pop("actor", None), rest.pop("source", None)
    if rest.keys() != set(_ENTRY) or type(actor) is not dict or actor.keys() != {"kind", "name"}:
        raise Malformed("an entry has missing or unknown members")
    return Entry(actor=Actor(actor["kind"], actor["name"], source), **rest)


def parse_record(line: bytes) -> SignedRecord:
    """
    Read a line without its newline. Only the one canonical spelling of a record is read.

    Raises:
        Malformed: for everything else.
    """
    members = _members(line)
    mac = members.pop("mac", None)
    if not _matches(_HASH, mac):
        raise Malformed("mac is no hash")
    content = canonical(members)
    # Equal names, other orders, spaces and escapes: whatever two readers could read differently is written differently.
    if canonical({**members, "mac": mac}) != line:
        raise Malformed("not in canonical form")
    version = members.pop("v", None)
    if type(version) is not int or version != _VERSION:
        raise Malformed("the version is not 1")
    place = {name: members.pop(name, None) for name in _PLACE}
    return SignedRecord(Record(entry=parse_entry(members), **place), content, mac)


def read_seq(line: bytes) -> int | None:
    """
    Return the number that a line claims, or None when it claims none; nothing else of it is looked at.
    """
    try:
        seq = _members(line).get("seq")
    except Malformed:
        return None
    return seq if type(seq) is int and 1 <= seq <= MAX_NUMBER else None


def _members(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE_OCTETS:
        raise Malformed("the line is too long")
    try:
        return loads_object(line)
    except StrictJSONError as error:
        raise Malformed(str(error)) from None


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _check_choice(value: object, choices: tuple[str, ...], name: str) -> None:
    if value not in choices:
        raise Malformed(f"{name} is not one of the words for it")


def _check_text(value: object, longest: int, name: str) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= longest or not value.isprintable():
        raise Malformed(f"{name} is not 1 to {longest} printable characters")


def _check_number(value: object, name: str, *, least: int = 0) -> None:
    if type(value) is not int or not least <= value <= MAX_NUMBER:
        raise Malformed(f"{name} is no integer from {least} on")


_ENTRY: Final = tuple(member.name for member in fields(Entry) if member.name != "actor")
_PLACE: Final = tuple(member.name for member in fields(Record) if member.name != "entry")
