"""
What an admin call takes: a JSON body read strictly, a query read strictly, an idempotency key in both of its spellings.

The framework's own decoders take text/plain for JSON, the last of two equal members and "5" for 5; nothing of a call passes
through them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

from verifier.action import read_idempotency_key
from verifier.strict_json import StrictJSONError, loads_object

from .admin_problems import ADMIN_PROBLEMS, ProblemRaised, unknown_members
from .errors import PROBLEMS

__all__ = ["MAX_BODY_OCTETS", "Member", "check_media_type", "read_body", "read_key", "read_numbers"]

MAX_BODY_OCTETS: Final = 128 * 1024
"""Longest body of an admin call; what it really takes is far shorter."""

_MEDIA_TYPE: Final = "application/json"
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,15}")
_MAX_PARAMETERS: Final = 8


@dataclass(frozen=True, slots=True)
class Member:
    """
    A member of a body: of which types its value is, and whether it must be there; when it is not, it is *default*.
    """

    types: tuple[type, ...]
    is_required: bool = False
    default: Any = None


def check_media_type(content_type: Sequence[str]) -> None:
    """
    Let JSON in UTF-8 pass, from every `Content-Type` value of a request (RFC 8259 section 8.1).

    Raises:
        ProblemRaised: 415 for anything else.
    """
    # Several lines are one list (RFC 9110 section 5.3), which is no media type.
    media_type, _, parameters = ", ".join(content_type).partition(";")
    charset = parameters.strip().lower().replace(" ", "").replace('"', "")
    if media_type.strip().lower() != _MEDIA_TYPE or charset not in ("", "charset=utf-8"):
        raise ProblemRaised(PROBLEMS[415], detail=f"The body must be {_MEDIA_TYPE} in UTF-8.")


def read_body(body: bytes, expected: Mapping[str, Member]) -> dict[str, Any]:
    """
    Read the members of a body, those that are not there with their defaults.

    Raises:
        ProblemRaised: 400 for what is no strict JSON object, and for members that are unknown, missing or of another type.
    """
    try:
        members = loads_object(body)
    except StrictJSONError as error:
        raise _invalid(f"The body is not one strict JSON object: {error}.") from None
    if unknown := members.keys() - expected.keys():
        names = unknown_members(sorted(unknown))
        raise _invalid(f"Members of the body that are unknown here: {len(unknown)}.", unknown_members=names)
    for name, member in expected.items():
        if name in members:
            # A bool is no number here, as in JSON.
            if type(members[name]) not in member.types:
                raise _invalid(f"The member {name} has a value of another type.")
        elif member.is_required:
            raise _invalid(f"The member {name} is missing.")
    return {name: members.get(name, member.default) for name, member in expected.items()}


def read_key(values: Sequence[str], *, is_required: bool) -> str | None:
    """
    Read the key of a call from every `Idempotency-Key` value of a request (D12, D17); None when there is none.

    Raises:
        ProblemRaised: 400 for a key that is missing and needed, malformed, or there twice.
    """
    if not values and not is_required:
        return None
    if not values:
        raise ProblemRaised(ADMIN_PROBLEMS["idempotency-key-missing"])
    key = read_idempotency_key(values[0]) if len(values) == 1 else None
    if key is None:
        raise ProblemRaised(ADMIN_PROBLEMS["idempotency-key-malformed"])
    return key


def read_numbers(query: bytes, names: Sequence[str]) -> dict[str, int]:
    """
    Read a query whose parameters are all numbers.

    Raises:
        ProblemRaised: 400 for a parameter that is not one of *names*, occurs twice, or is no number of up to 16 digits.
    """
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, strict_parsing=bool(query), max_num_fields=_MAX_PARAMETERS
        )
    except ValueError:
        raise ProblemRaised(ADMIN_PROBLEMS["invalid-query"]) from None
    found = dict(pairs)
    if len(found) != len(pairs) or not found.keys() <= set(names):
        raise ProblemRaised(ADMIN_PROBLEMS["invalid-query"], detail=f"The query takes, once each: {', '.join(names)}.")
    if not all(_NUMBER.fullmatch(value) for value in found.values()):
        raise ProblemRaised(ADMIN_PROBLEMS["invalid-query"], detail="A parameter of the query is no number.")
    return {name: int(value) for name, value in found.items()}


def _invalid(detail: str, **extensions: Any) -> ProblemRaised:
    return ProblemRaised(ADMIN_PROBLEMS["invalid-body"], detail=detail, extensions=extensions)
