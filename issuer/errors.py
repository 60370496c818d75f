"""
How the token endpoint refuses, framework-free.

    TokenRefused         one refusal: the OAuth code and text for the client, the log reason for the operator
      WrongSecret        that of a secret which is not the client's, with the name it came with

Only `token_endpoint` and `http` turn it into a response. Descriptions are fixed sentences: nothing of the request is ever echoed.
"""

from collections.abc import Mapping
from typing import Final, Literal

from .limits import LimitName, Over

__all__ = [
    "OAuthError",
    "TokenRefused",
    "WrongSecret",
    "invalid_authorization_details",
    "invalid_client",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "over_limit",
    "suspended",
    "temporarily_unavailable",
]

OAuthError = Literal[
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "invalid_target",
    "invalid_authorization_details",
    "access_denied",
    "unmet_authentication_requirements",
    "temporarily_unavailable",
    "server_error",
]
"""Codes of RFC 6749 section 5.2, RFC 8693 section 2.2.2, RFC 9396 section 5, RFC 9470 section 5 and D11."""

_UNKNOWN_CLIENT: Final = "Client authentication failed."
_TOO_MUCH: Final[Mapping[LimitName, str]] = {
    "client": "The client asks too often.",
    "customer": "The client asks too often for this customer.",
    "wrong_secrets": "There were too many wrong secrets. The right one is accepted at any time.",
}


class TokenRefused(Exception):
    """
    Raised when no token is minted.

    Attributes:
        error: the registered OAuth error code.
        description: one fixed sentence for the developer of the client.
        reason: what stands in the log: a closed word of our own, more exact than the client is told.
        status: the HTTP status.
        retry_after_s: seconds after which another try makes sense, or None.
        problem: for the log, the class of the exception that a dependency failed with, or None.
        suspension: for the log, the id of the suspension that stands in the way, or None.
    """

    def __init__(
        self,
        error: OAuthError,
        description: str,
        *,
        reason: str,
        status: int = 400,
        retry_after_s: int | None = None,
        problem: str | None = None,
        suspension: str | None = None,
    ) -> None:
        """
        Build one refusal.
        """
        super().__init__(description)
        self.error = error
        self.description = description
        self.reason = reason
        self.status = status
        self.retry_after_s = retry_after_s
        self.problem = problem
        self.suspension = suspension


class WrongSecret(TokenRefused):
    """
    Raised for a secret that is not that of the client it came with.

    Attributes:
        name: what it came with, whether a client is called so or not; never to be logged.
    """

    def __init__(self, name: str) -> None:
        """
        Refuse in the same words as any other client (RFC 6749 section 5.2).
        """
        super().__init__("invalid_client", _UNKNOWN_CLIENT, reason="client:credentials", status=401)
        self.name = name


def invalid_request(description: str, *, reason: str) -> TokenRefused:
    """
    Refuse a request that is malformed, or whose subject or actor token is unacceptable (RFC 8693 section 2.2.2).
    """
    return TokenRefused("invalid_request", description, reason=reason)


def invalid_client(*, reason: str) -> TokenRefused:
    """
    Refuse a client, in the same words whatever was wrong with it (RFC 6749 section 5.2).
    """
    return TokenRefused("invalid_client", _UNKNOWN_CLIENT, reason=reason, status=401)


def invalid_target(description: str, *, reason: str) -> TokenRefused:
    """
    Refuse a target (RFC 8707 section 2, D6).
    """
    return TokenRefused("invalid_target", description, reason=reason)


def invalid_scope(description: str, *, reason: str) -> TokenRefused:
    """
    Refuse a scope (RFC 6749 section 5.2).
    """
    return TokenRefused("invalid_scope", description, reason=reason)


def invalid_authorization_details(description: str, *, reason: str) -> TokenRefused:
    """
    Refuse an action or what is said to confirm it (RFC 9396 section 5, D21).
    """
    return TokenRefused("invalid_authorization_details", description, reason=reason)


def suspended(kind: str, suspension_id: str) -> TokenRefused:
    """
    Refuse because a client, agent, customer or action is suspended (D21).
    """
    error: OAuthError = "unauthorized_client" if kind == "client" else "access_denied"
    return TokenRefused(error, f"The {kind} is suspended.", reason=f"suspended:{kind}", suspension=suspension_id)


def temporarily_unavailable(
    description: str,
    *,
    reason: str,
    status: Literal[429, 503] = 503,
    retry_after_s: int = 1,
    problem: str | None = None,
) -> TokenRefused:
    """
    Refuse because something is down (503) or a limit is reached (429), and say when to try again (D11).
    """
    return TokenRefused(
        "temporarily_unavailable",
        description,
        reason=reason,
        status=status,
        retry_after_s=retry_after_s,
        problem=problem,
    )


def over_limit(over: Over) -> TokenRefused:
    """
    Refuse because a limit is reached, and say when the same will be let in (D21).
    """
    return temporarily_unavailable(
        _TOO_MUCH[over.limit], reason=f"limit:{over.limit}", status=429, retry_after_s=over.retry_after_s
    )
