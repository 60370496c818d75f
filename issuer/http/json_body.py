"""
JSON bodies, read strictly: the media type, the text, and the members that a call takes.

The framework's own decoders take text/plain for JSON, the last of two equal members and "5" for 5; no body passes through them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from verifier.strict_json import StrictJSONError, loads_object

from .problems import INVALID_BODY, PROBLEMS, ProblemRaised

__all__ = ["MAX_BODY_OCTETS", "Member", "check_media_type", "read_body"]

MAX_BODY_OCTETS: Final = 128 * 1024
"""Longest body that is read, in octets; what calls really take is far shorter."""

_MEDIA_TYPE: Final = "application/json"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")
_MAX_NAMES: Final = 8


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
        names = _repeatable(sorted(unknown))
        raise _invalid(f"Members of the body that are unknown here: {len(unknown)}.", unknown_members=names)
    for name, member in expected.items():
        if name in members:
            # A bool is no number here, as in JSON.
            if type(members[name]) not in member.types:
                raise _invalid(f"The member {name} has a value of another type.")
        elif member.is_required:
            raise _invalid(f"The member {name} is missing.")
    return {name: members.get(name, member.default) for name, member in expected.items()}


def _repeatable(names: Iterable[str]) -> list[str]:
    # The rest might be anything, which no answer repeats.
    return [name for name in names if _NAME.fullmatch(name)][:_MAX_NAMES]


def _invalid(detail: str, **extensions: Any) -> ProblemRaised:
    return ProblemRaised(INVALID_BODY, detail=detail, extensions=extensions)
