"""
A ring as JSON, the content of the sealed blob: written one way, read strictly.

It stands apart from the ring so that the format has one home and a version of its own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, NoReturn

from .cache_times import CacheTimes
from .errors import InvalidKey
from .key import PrivateJWK, algorithm
from .record import KeyRecord
from .ring import KeyRing
from .store_errors import RingCorrupt

__all__ = ["FORMAT_VERSION", "dump_ring", "parse_ring"]

FORMAT_VERSION: Final = 3
"""What is written. Version 1 had no companion, version 2 no cache times; both are still read, with the largest of those."""

_RING_MEMBERS: Final[Mapping[int, tuple[str, ...]]] = {
    1: ("version", "workspace", "records"),
    2: ("version", "workspace", "records", "companion"),
    3: ("version", "workspace", "records", "companion", "cache_times"),
}
_CACHE_TIMES: Final = tuple(member.name for member in fields(CacheTimes))
_MEMBERS: Final = tuple(member.name for member in fields(KeyRecord))


class _Malformed(ValueError):
    """
    Raised here for content that is not a ring; the message is made of our own words only.
    """


def dump_ring(ring: KeyRing) -> bytes:
    """
    Write a ring as JSON, the private parts too: the result goes into the sealed blob and nowhere else.
    """
    document = {
        "version": FORMAT_VERSION,
        "workspace": ring.workspace,
        "records": [_dump_record(record) for record in ring.records],
        "companion": ring.companion,
        "cache_times": {name: getattr(ring.cache_times, name) for name in _CACHE_TIMES},
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")


def parse_ring(data: bytes, *, where: str) -> KeyRing:
    """
    Read a ring back; *where* names its place in messages.

    Refused: another version, unknown, missing or repeated members, any other type than the one written (a bool is no int),
    and every ring that could not be built.

    Raises:
        RingCorrupt: with the problem `content`.
    """
    try:
        document = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
        )
        return _ring(document)
    except (_Malformed, InvalidKey) as error:
        raise RingCorrupt(where=where, problem="content", detail=str(error)) from None
    except (ValueError, RecursionError):
        raise RingCorrupt(where=where, problem="content", detail="not JSON") from None


def _dump_record(record: KeyRecord) -> dict[str, Any]:
    members: dict[str, Any] = {name: getattr(record, name) for name in _MEMBERS}
    members["public_jwk"] = dict(record.public_jwk)
    if record.private_jwk is not None:
        members["private_jwk"] = record.private_jwk.reveal()
    return members


def _ring(document: object) -> KeyRing:
    version = document.get("version") if type(document) is dict else None
    if type(version) is not int or version not in _RING_MEMBERS:
        raise _Malformed(f"the format version is none of {', '.join(map(str, _RING_MEMBERS))}")
    members = _object(document, _RING_MEMBERS[version], "the ring")
    if type(members["workspace"]) is not str or type(members["records"]) is not list:
        raise _Malformed("workspace or records has another type")
    records = tuple(_record(number, entry) for number, entry in enumerate(members["records"], start=1))
    # A ring that does not say was served with nobody knows what.
    cache_times = _object(members["cache_times"], _CACHE_TIMES, "cache_times") if "cache_times" in members else {}
    try:
        return KeyRing(members["workspace"], records, members.get("companion", {}), CacheTimes(**cache_times))
    except (TypeError, ValueError) as error:
        raise _Malformed(str(error)) from None


def _record(number: int, entry: object) -> KeyRecord:
    members = dict(_object(entry, _MEMBERS, f"record {number}"))
    for name in ("kid", "alg", "state"):
        if type(members[name]) is not str:
            raise _Malformed(f"record {number}: {name} is not a string")
    try:
        members["public_jwk"] = _jwk(members["public_jwk"])
        if members["private_jwk"] is not None:
            members["private_jwk"] = _private_jwk(members["private_jwk"], members["public_jwk"], members["alg"])
        return KeyRecord(**members)
    except (InvalidKey, TypeError, ValueError) as error:
        raise _Malformed(f"record {number}: {error}") from None


def _jwk(value: object) -> Mapping[str, str]:
    if type(value) is not dict or not all(type(member) is str for member in value.values()):
        raise _Malformed("a JWK is not an object of strings")
    return value


def _private_jwk(value: object, public_jwk: Mapping[str, str], alg: str) -> PrivateJWK:
    members = _jwk(value)
    if set(members) != {*public_jwk, *algorithm(alg).private_members}:
        raise _Malformed("the private JWK has missing or unknown members")
    if any(members[name] != said for name, said in public_jwk.items()):
        raise _Malformed("the private JWK belongs to another key")
    return PrivateJWK(members)


def _object(value: object, names: Sequence[str], what: str) -> Mapping[str, Any]:
    if type(value) is not dict or set(value) != set(names):
        raise _Malformed(f"{what} has missing or unknown members")
    return value


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Malformed("a member occurs twice")
    return members


def _refuse_number(_literal: str) -> NoReturn:
    raise _Malformed("a number is not an integer")
