"""
What the token endpoint takes and answers, as JSON Schema for the OpenAPI document (D21).
"""

from collections.abc import Mapping
from typing import Any, Final, get_args

from ..action_request import DETAILS_TYPE
from ..clients import ASSERTION_TYPE
from ..errors import OAuthError
from ..exchange import ACCESS_TOKEN_TYPE, GRANT_TYPE
from ..subject import JWT_TOKEN_TYPE
from ..subjects import ID_TOKEN_TYPE, SIGN_IN_TYPE

__all__ = ["TOKEN_SCHEMAS"]


def _parameter(description: str, **schema: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **schema}


_PARAMETERS: Final[Mapping[str, Any]] = {
    "grant_type": _parameter("Token exchange is the only grant.", const=GRANT_TYPE),
    "client_id": _parameter("Optional; must be the client that authenticates."),
    "client_assertion_type": _parameter("With `client_assertion`.", const=ASSERTION_TYPE),
    "client_assertion": _parameter("Client assertion, `typ` `client-authentication+jwt` (RFC 7523, RFC 10070)."),
    "subject_token": _parameter(
        "Who the customer is. A `jwt` is of `typ` `caplo-subject+jwt`, signed with a key of the client's `subject_jwks`: `iss` "
        "the client id, `sub` the customer, `namespace`, `aud` this issuer, `acr`, `auth_time`, `act`, `iat`, `exp`, `jti`. As "
        "`id_token` one that an identity provider issued to this client, used up by the request that "
        "gets a token. As `sign-in` the id of a recorded sign-in."
    ),
    "subject_token_type": _parameter("What the subject token is.", enum=[JWT_TOKEN_TYPE, ID_TOKEN_TYPE, SIGN_IN_TYPE]),
    "nonce": _parameter("With an ID token that carries one: the nonce it was asked for with."),
    "actor_token": _parameter(
        "JWT of `typ` `caplo-actor+jwt` that names the agent which calls now; demanded of some clients. `iss` the client id, "
        "`sub` the agent, `iat`, `exp`, `jti`."
    ),
    "actor_token_type": _parameter("With `actor_token`.", const=JWT_TOKEN_TYPE),
    "requested_token_type": _parameter("Optional; only an access token is issued.", const=ACCESS_TOKEN_TYPE),
    "resource": _parameter(
        "The API the token is for (RFC 8707), exactly as configured. May be left out by a client with one audience.",
        format="uri",
    ),
    "audience": _parameter("The same as `resource` (RFC 8693); when both are sent they are equal."),
    "scope": _parameter(
        "Scopes asked for, divided by spaces; those of the action when left out, none for a read.",
        examples=["orders:read"],
    ),
    "acr_values": _parameter("Levels of which the customer's sign-in must meet one.", examples=["standard high"]),
    "max_age": _parameter("Seconds since the customer's sign-in, at most.", pattern="^[0-9]{1,10}$"),
    "authorization_details": {
        "type": "array",
        "description": "The action, as JSON text (RFC 9396). Its presence makes the token a write token.",
        "minItems": 1,
        "maxItems": 1,
        "items": {"$ref": "#/components/schemas/RequestedAction"},
    },
}

_ACTION_MEMBERS: Final[Mapping[str, Any]] = {
    "type": {"const": DETAILS_TYPE},
    "action": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
}

_TOGETHER: Final = {
    "client_assertion": ["client_assertion_type"],
    "client_assertion_type": ["client_assertion"],
    "actor_token": ["actor_token_type"],
    "actor_token_type": ["actor_token"],
}

TOKEN_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "TokenRequest": {
        "type": "object",
        "description": "No parameter occurs twice, an empty one counts as absent, an unknown one is ignored.",
        "required": ["grant_type", "subject_token", "subject_token_type"],
        "properties": _PARAMETERS,
        "dependentRequired": _TOGETHER,
    },
    "RequestedAction": {
        "type": "object",
        "additionalProperties": False,
        "required": ["type", "action", "arguments", "idempotencyKey", "confirmation"],
        "properties": {
            **_ACTION_MEMBERS,
            "arguments": {
                "type": "object",
                "description": "Exactly what was confirmed, without the selector. Digested and forgotten: never stored, never "
                "logged.",
            },
            "idempotencyKey": {"type": "string", "pattern": "^[A-Za-z0-9._~-]{16,128}$"},
            "confirmation": {"$ref": "#/components/schemas/Confirmation"},
        },
    },
    "Confirmation": {
        "type": "object",
        "additionalProperties": False,
        "required": ["by"],
        "properties": {
            "by": {"enum": ["none", "client"]},
            "at": {"type": "integer", "description": "Epoch seconds; required with `client`. Good for 1800 seconds."},
        },
    },
    "GrantedAction": {
        "type": "object",
        "required": ["type", "action", "actionDigest"],
        "properties": {
            **_ACTION_MEMBERS,
            "actionDigest": {"type": "string", "minLength": 43, "maxLength": 43},
            "selector": {
                "type": "object",
                "description": "The argument that the service filled; the API must get it together with the others.",
                "additionalProperties": {"type": "string"},
                "minProperties": 1,
                "maxProperties": 1,
            },
        },
    },
    "TokenResponse": {
        "type": "object",
        "required": ["access_token", "issued_token_type", "token_type", "expires_in"],
        "properties": {
            "access_token": {"type": "string", "description": "The customer context token; it serves one call."},
            "issued_token_type": {"const": ACCESS_TOKEN_TYPE},
            "token_type": {"const": "Bearer"},
            "expires_in": {"type": "integer", "minimum": 1, "maximum": 60},
            "scope": {"type": "string"},
            "authorization_details": {
                "type": "array",
                "minItems": 1,
                "maxItems": 1,
                "items": {"$ref": "#/components/schemas/GrantedAction"},
            },
        },
    },
    "OAuthError": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "enum": sorted(get_args(OAuthError)),
            },
            "error_description": {"type": "string", "description": "A fixed text for people; compare `error` instead."},
        },
    },
}
"""Component schemas of the token endpoint."""
