"""
The one door for a bearer token: the `Authorization` header (RFC 6750 section 2.1; query and form tokens are not read).
"""

import re
from collections.abc import Sequence
from typing import Final

from .errors import CustomerContextError, PointingTo

__all__ = ["MAX_AUTHORIZATION_LENGTH", "bearer_token"]

MAX_AUTHORIZATION_LENGTH: Final = 16_384
"""Longest header value that is looked at, in characters."""

# 1*SP and b64token. ASCII is said twice on purpose: without it, ignoring case would let the Kelvin sign pass as a k.
_CREDENTIALS: Final = re.compile(r"(?i:Bearer) ++([A-Za-z0-9\-._~+/]++=*+)", re.ASCII)


def bearer_token(authorization: str | Sequence[str] | None, *, resource_metadata: str | None = None) -> str:
    """
    Return the token of a request from its `Authorization` header: one value, or all values as a list.

    Pass the list wherever the framework offers one (`getlist`, `getall`), so that a second header is seen. The scheme's case
    and the number of spaces after it do not matter (D17); spaces and tabs around the value are dropped. The token has the
    characters of RFC 6750's b64token, which is all that is known of it.

    Where an API publishes metadata of itself, *resource_metadata* is the URL of it, for whoever comes without a token (RFC 9728
    section 5.1).

    Raises:
        CustomerContextError: `missing` when there is no value, or one that is empty; `request` for everything else that is not
            one str of Bearer and one token: two values, also joined by a comma, another scheme, a scheme alone, a control or
            non-ASCII character, a value above `MAX_AUTHORIZATION_LENGTH`, octets. Nothing else is raised for a request.
        ValueError, TypeError: for a *resource_metadata* that is no https URL.
    """
    with PointingTo(resource_metadata):
        value = _only_value(authorization)
        credentials = _CREDENTIALS.fullmatch(value)
        if credentials is None:
            raise CustomerContextError("request" if value else "missing")
    return credentials[1]


def _only_value(authorization: object) -> str:
    if authorization is None:
        return ""
    values = (authorization,) if isinstance(authorization, str) else authorization
    if not isinstance(values, Sequence) or len(values) > 1:
        raise CustomerContextError("request")
    value = values[0] if values else ""
    if not isinstance(value, str) or len(value) > MAX_AUTHORIZATION_LENGTH:
        raise CustomerContextError("request")
    return value.strip(" \t")
