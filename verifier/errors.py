"""
The one error a verification ends with.

    CustomerContextError         a request is refused; `reason` says why, `www_authenticate` is the header to answer with
    ValueError, TypeError        the programmer asked for something impossible, found before any token is looked at

There is nothing else: whatever bytes come from a request, only `CustomerContextError` leaves `verify`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

from .challenge import format_challenge
from .url import check_url

__all__ = ["REASONS", "CustomerContextError", "PointingTo", "Reason"]

Reason = Literal[
    "missing",
    "request",
    "malformed",
    "type",
    "algorithm",
    "claims",
    "issuer",
    "audience",
    "not_yet_valid",
    "expired",
    "lifetime",
    "key",
    "keys_unavailable",
    "signature",
    "scope",
    "action",
    "confirmation",
    "step_up",
    "replayed",
    "replay_unavailable",
]

REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


@dataclass(frozen=True, slots=True)
class _Answer:
    """
    What an API answers for one reason (D20; RFC 6750 section 3.1, RFC 9470 section 3).
    """

    status: Literal[400, 401, 403, 503]
    code: str | None
    text: str


def _invalid_token(text: str) -> _Answer:
    return _Answer(401, "invalid_token", text)


_ANSWERS: Final[Mapping[Reason, _Answer]] = MappingProxyType(
    {
        "missing": _Answer(401, None, "No credentials were sent"),
        "request": _Answer(
            400, "invalid_request", "Exactly one Authorization header with one Bearer token is expected"
        ),
        "malformed": _invalid_token("The token is malformed"),
        "type": _invalid_token("The token is of another type"),
        "algorithm": _invalid_token("The token is not signed with ES256"),
        "claims": _invalid_token("A claim is missing or has the wrong form"),
        "issuer": _invalid_token("The token comes from another issuer"),
        "audience": _invalid_token("The token is meant for another audience"),
        "not_yet_valid": _invalid_token("The token is not valid yet"),
        "expired": _invalid_token("The token has expired"),
        "lifetime": _invalid_token("The token lives longer than is accepted"),
        "key": _invalid_token("The token was signed with an unknown key"),
        "keys_unavailable": _Answer(503, None, "The keys of the issuer are not available at the moment"),
        "signature": _invalid_token("The signature does not match"),
        "scope": _Answer(403, "insufficient_scope", "The token lacks a scope that this call needs"),
        "action": _Answer(403, "insufficient_scope", "The token does not stand for this action with these arguments"),
        "confirmation": _Answer(403, "insufficient_scope", "The action needs another or a more recent confirmation"),
        "step_up": _Answer(401, "insufficient_user_authentication", "A stronger or more recent sign-in is needed"),
        "replayed": _invalid_token("The token has been used before"),
        "replay_unavailable": _Answer(503, None, "It cannot be told at the moment whether the token was used before"),
    }
)


class CustomerContextError(Exception):
    """
    A request was refused.

    The text is fixed for each reason and safe to show; neither it nor any attribute holds token text or claim values.

    Attributes:
        reason: the machine-readable reason, one of `REASONS`.
        status: the HTTP status to answer with: 400, 401, 403 or 503.
        www_authenticate: the value of the `WWW-Authenticate` header to answer with.
        hint: what an operator needs beyond the reason (a measured skew, say), made of our own words and numbers only, or None.
    """

    reason: Reason
    status: Literal[400, 401, 403, 503]
    www_authenticate: str
    hint: str | None

    def __init__(
        self,
        reason: Reason,
        *,
        hint: str | None = None,
        parameters: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """
        Build the refusal for *reason*; *parameters* (`realm`, `scope`, `acr_values`, `max_age`) join the challenge.
        """
        answer = _ANSWERS[reason]
        super().__init__(answer.text)
        self.reason = reason
        self.status = answer.status
        self.hint = hint
        self.www_authenticate = _challenge(answer, parameters)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.reason, self.hint, self.www_authenticate))


class PointingTo:
    """
    A block whose refusals name the URL of the API's metadata, if there is one, in their challenge (RFC 9728 section 5.1).

    Only those do that refuse a caller, 401 and 403: the other answers are not about who calls, and whoever read the metadata
    again because of them would be sent astray.

    Raises:
        ValueError, TypeError: when *resource_metadata* is neither an https URL nor None.
    """

    __slots__ = ("resource_metadata",)

    def __init__(self, resource_metadata: str | None) -> None:
        if resource_metadata is not None:
            check_url(resource_metadata)
        self.resource_metadata = resource_metadata

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if (
            self.resource_metadata is not None
            and isinstance(error, CustomerContextError)
            and error.status in {401, 403}
        ):
            error.www_authenticate += f', resource_metadata="{self.resource_metadata}"'


def _rebuild(reason: Reason, hint: str | None, www_authenticate: str) -> CustomerContextError:
    error = CustomerContextError(reason, hint=hint)
    error.www_authenticate = www_authenticate
    return error


def _challenge(answer: _Answer, parameters: Mapping[str, str]) -> str:
    members = dict(parameters)
    if answer.code is not None:
        members |= {"error": answer.code, "error_description": answer.text}
    # RFC 6750 section 3: a Bearer challenge has at least one parameter; a refusal without an error code names the realm.
    return format_challenge("Bearer", members or {"realm": "api"})
