"""
How the token endpoint is described in the OpenAPI document: what it is for, answers, every error code, examples (D21).
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from ..action_request import DETAILS_TYPE
from ..clients import ASSERTION_TYPE
from ..exchange import ACCESS_TOKEN_TYPE, GRANT_TYPE
from ..subject import JWT_TOKEN_TYPE
from ..subjects import SIGN_IN_TYPE
from .docs import DocumentedOperation, answer
from .errors import OAUTH_EVENTS
from .problems import RETRY_AFTER_S

__all__ = ["SECURITY_SCHEMES", "TokenOperation"]

_FORM: Final = "application/x-www-form-urlencoded"

_DIGEST: Final = "g-cGrguCKq-wECmd4solY_bOAB0xYSZ5yK0Ld7_VbsA"
_KEY: Final = "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"

SECURITY_SCHEMES: Final[Mapping[str, Mapping[str, Any]]] = {
    "clientSecretBasic": {
        "type": "http",
        "scheme": "basic",
        "description": "`client_secret_basic` (RFC 6749 section 2.3.1): client id and secret, each form-urlencoded first.",
    },
}
"""`private_key_jwt` travels in the form, for which OpenAPI has no scheme; the operation describes it."""

# Either Basic, or nothing in the header and `client_assertion` in the form; never both.
_SECURITY: Final[list[dict[str, list[str]]]] = [{"clientSecretBasic": []}, {}]

_DESCRIPTION: Final = """\
Exchanges a subject token for a customer context token that serves one call within 60 seconds (RFC 8693).

**Client authentication**: exactly one of `client_secret_basic` (the Authorization header) and `private_key_jwt` (RFC 7523: \
`client_assertion_type` and `client_assertion`, signed with ES256, `iss` and `sub` the client id, `aud` this issuer and nothing \
else, `exp` at most 300 seconds ahead, `jti` used once). Each client is configured for one of the two.

**Reads and writes**: without `authorization_details` the token is for reading. With them it stands for one action with its \
arguments: it carries the action, the digest over the arguments and the idempotency key, and what confirmed it.

**Limits**: a client has a rate, and each of its customers has one; a request counts when the client has proved who it is, \
whatever the answer. Beyond a rate it is 429, and so is a secret that is wrong after too many others that were. The right one is \
accepted at any time. `Retry-After` has the seconds after which the same is let in.

**Errors** are RFC 6749 section 5.2 JSON for every status, and are never cached."""


_REFUSALS: Final[Mapping[str, str]] = {
    "invalid_request": "A parameter is missing, repeated or malformed, or the subject token is not acceptable",
    "unsupported_grant_type": "Only token exchange is supported",
    "unauthorized_client": "The client may not ask for tokens",
    "invalid_target": "The audience is missing, unknown or not one of this client's",
    "invalid_scope": "A scope is unknown, not this client's, or belongs to an action that was not asked for",
    "invalid_authorization_details": "The action is malformed, unknown, not this client's, or its confirmation does not hold",
    "unmet_authentication_requirements": "The customer's sign-in is too weak or too old",
    "access_denied": "The agent, customer or action is suspended",
}

_NO_STORE: Final = {
    "Cache-Control": {"schema": {"const": "no-store"}},
    "Pragma": {"schema": {"const": "no-cache"}},
}
_CHALLENGE: Final = {
    "WWW-Authenticate": {"description": "A Basic challenge.", "schema": {"type": "string"}},
}
_RETRY_AFTER: Final = {
    "Retry-After": {"schema": {"type": "integer"}, "example": RETRY_AFTER_S},
}
_ALLOW: Final = {"Allow": {"schema": {"type": "string"}}}


def _error(description: str, errors: Mapping[str, str], headers: Mapping[str, Any] | None = None) -> dict[str, Any]:
    examples = {error: {"error": error, "error_description": text} for error, text in errors.items()}
    return answer(description, schema="OAuthError", headers=_NO_STORE | dict(headers or {}), examples=examples)


def _event(status: int, headers: Mapping[str, Any] | None = None) -> dict[str, Any]:
    event = OAUTH_EVENTS[status]
    return _error(f"{event.description}.", {event.error: event.description}, headers)


_GRANTED: Final = {"type": DETAILS_TYPE, "action": "cancel_order", "actionDigest": _DIGEST}
_FILLED: Final = {"selector": {"account": "shop-login:cus_48213"}}
_ISSUED: Final = {
    "access_token": "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6Li4ufQ.e30.c2ln",
    "issued_token_type": ACCESS_TOKEN_TYPE,
    "token_type": "Bearer",
    "expires_in": 60,
}

_RESPONSES: Final[Mapping[str, Any]] = {
    "200": answer(
        "The token.",
        schema="TokenResponse",
        headers=_NO_STORE,
        examples={
            "read": {**_ISSUED, "scope": "orders:read"},
            "write": {**_ISSUED, "scope": "orders:write", "authorization_details": [_GRANTED]},
            "write_with_selector": {**_ISSUED, "authorization_details": [{**_GRANTED, **_FILLED}]},
        },
    ),
    "400": _error("The request is refused; `error` says why.", _REFUSALS),
    "401": _error(
        "The client could not be authenticated.", {"invalid_client": "Client authentication failed"}, _CHALLENGE
    ),
    "405": _event(405, _ALLOW),
    "408": _event(408),
    "413": _event(413),
    "414": _event(414),
    "429": _event(429, _RETRY_AFTER),
    "431": _event(431),
    "500": _event(500),
    "503": _event(503, _RETRY_AFTER),
}

_ASKED: Final = {
    "grant_type": GRANT_TYPE,
    "client_assertion_type": ASSERTION_TYPE,
    "client_assertion": "eyJ0eXAiOiJjbGllbnQtYXV0aGVudGljYXRpb24rand0In0.e30.c2ln",
    "subject_token": "eyJ0eXAiOiJjYXBsby1zdWJqZWN0K2p3dCJ9.e30.c2ln",
    "subject_token_type": JWT_TOKEN_TYPE,
    "resource": "https://api.shop.example",
}
_SIGNED_IN: Final = {
    "subject_token": "x2m7oH6yP9bqJv0dN1kTq4wRZC8sLfUgEeYh5Xa3iMo",
    "subject_token_type": SIGN_IN_TYPE,
}
_WANTED: Final = {
    "type": DETAILS_TYPE,
    "action": "cancel_order",
    "arguments": {"orderId": "A-1001", "reason": "too late", "notify": True},
    "idempotencyKey": _KEY,
    "confirmation": {"by": "client", "at": 1796039980},
}

_REQUEST_BODY: Final[Mapping[str, Any]] = {
    "required": True,
    "description": "At most 64 KiB.",
    "content": {
        _FORM: {
            "schema": {"$ref": "#/components/schemas/TokenRequest"},
            "encoding": {"authorization_details": {"contentType": "application/json"}},
            "examples": {
                "read": {"summary": "A token for one read", "value": {**_ASKED, "scope": "orders:read"}},
                "write": {
                    "summary": "A token for one confirmed action",
                    "value": {**_ASKED, "scope": "orders:write", "authorization_details": [_WANTED]},
                },
                "sign_in": {
                    "summary": "A token for a customer whose sign-in was recorded",
                    "value": {**_ASKED, **_SIGNED_IN, "scope": "orders:read", "acr_values": "standard high"},
                },
            },
        }
    },
}


class TokenOperation(DocumentedOperation):
    """
    The token endpoint.
    """

    documentation: ClassVar = {
        "operationId": "issueToken",
        "summary": "Exchange a subject token for a customer context token",
        "tags": ["tokens"],
        "description": _DESCRIPTION,
        "security": _SECURITY,
        "requestBody": _REQUEST_BODY,
        "responses": _RESPONSES,
    }
