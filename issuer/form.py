"""
Form bodies, read strictly: of token requests (RFC 6749 section 3.2 and appendix B), and of logouts, which have the same form.

Frameworks hide repeated parameters by taking the first, the last or a list, and decode octets that are no UTF-8. Here a body has
one meaning or none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote_to_bytes

from .errors import invalid_request

__all__ = ["MAX_BODY_OCTETS", "Form", "form_decode", "parse_form"]

MAX_BODY_OCTETS: Final = 64 * 1024
"""Largest body that is read, in octets."""

_MAX_PARAMETERS: Final = 64
_MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
_TARGETS: Final = frozenset({"resource", "audience"})
_MALFORMED_PERCENT: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Form:
    """
    The parameters of one request, each at most once and none of them empty.

    Of targets that occurred more than once, `repeated` has the names; they are refused where targets are read (D6).
    """

    parameters: Mapping[str, str] = field(repr=False)
    repeated: frozenset[str] = frozenset()

    def get(self, name: str) -> str | None:
        """
        Return a parameter's value, or None; an empty value counts as omitted (RFC 6749 section 3.2).
        """
        return self.parameters.get(name)

    def require(self, name: str) -> str:
        """
        Return a parameter's value.

        Raises:
            TokenRefused: (`invalid_request`) when it is missing.
        """
        value = self.parameters.get(name)
        if value is None:
            raise invalid_request(f"The parameter {name} is missing.", reason=f"missing:{name}")
        return value


def parse_form(content_type: str | None, body: bytes) -> Form:
    """
    Read a form body.

    Raises:
        TokenRefused: (`invalid_request`) for another media type or charset, too many octets or parameters, a parameter without
            "=", malformed percent-encoding, octets that are not UTF-8, NUL, and any parameter that occurs twice, known or not,
            but for `resource` and `audience`: those are only noted (D6).
    """
    _check_media_type(content_type)
    if len(body) > MAX_BODY_OCTETS:
        raise invalid_request("The body is too large.", reason="form:size")
    parameters: dict[str, str] = {}
    repeated: set[str] = set()
    pieces = body.split(b"&") if body else []
    if len(pieces) > _MAX_PARAMETERS:
        raise invalid_request("The body has too many parameters.", reason="form:count")
    for piece in pieces:
        name, value = _parameter(piece)
        if name in parameters:
            if name not in _TARGETS:
                raise invalid_request("A parameter occurs more than once.", reason="form:repeated")
            repeated.add(name)
        parameters[name] = value
    return Form(MappingProxyType({name: value for name, value in parameters.items() if value}), frozenset(repeated))


def form_decode(octets: bytes) -> str:
    """
    Undo form encoding of one name or value (RFC 6749 appendix B).

    Raises:
        ValueError: for malformed percent-encoding, octets outside ASCII, octets that do not decode as UTF-8, and NUL.
    """
    if not octets.isascii():
        raise ValueError("not form-encoded")
    if b"%" not in octets and b"+" not in octets and b"\x00" not in octets:
        return octets.decode("ascii")
    if _MALFORMED_PERCENT.search(octets):
        raise ValueError("not form-encoded")
    text = unquote_to_bytes(octets.replace(b"+", b" ")).decode("utf-8")
    if "\x00" in text:
        raise ValueError("NUL is no text")
    return text


def _check_media_type(content_type: str | None) -> None:
    media_type, _, parameters = (content_type or "").partition(";")
    charset = parameters.strip().lower().replace(" ", "").replace('"', "")
    if media_type.strip().lower() != _MEDIA_TYPE or charset not in ("", "charset=utf-8"):
        raise invalid_request(f"The body must be {_MEDIA_TYPE} in UTF-8.", reason="form:media_type")


def _parameter(piece: bytes) -> tuple[str, str]:
    name, equals, value = piece.partition(b"=")
    if not equals or not name:
        raise invalid_request("The body is not a list of name=value.", reason="form:syntax")
    try:
        return form_decode(name), form_decode(value)
    except ValueError:
        raise invalid_request("The body is not form-encoded UTF-8.", reason="form:encoding") from None
