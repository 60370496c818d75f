"""
How the sign-in routes are described in the OpenAPI document.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from verifier.conversation import MAX_CONVERSATION_LENGTH
from verifier.levels import LEVELS

from ..provider_token import MAX_AGE_S
from .docs import DocumentedOperation, answer
from .problem_docs import problem_answers
from .sign_in_problems import SIGN_IN_PROBLEMS

__all__ = [
    "SIGN_IN_SCHEMAS",
    "SIGN_IN_SECURITY_SCHEMES",
    "EndOperation",
    "LogoutOperation",
    "RecordOperation",
    "ShowOperation",
]

SIGN_IN_SECURITY_SCHEMES: Final[Mapping[str, Mapping[str, Any]]] = {
    "clientAssertion": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "What the client would send to the token endpoint as `client_assertion` (RFC 7523); used once.",
    },
}

_SECURITY: Final[list[dict[str, list[str]]]] = [{"clientSecretBasic": []}, {"clientAssertion": []}]

_INSTANT: Final = {"type": "number", "minimum": 0, "description": "Epoch seconds."}
_MEMBERS: Final[Mapping[str, Any]] = {
    "handle": {"type": "string", "minLength": 22, "maxLength": 22, "description": "For URLs; it opens nothing."},
    "connection": {"type": "string"},
    "namespace": {"type": "string"},
    "level": {"enum": list(LEVELS)},
    "auth_time": {**_INSTANT, "description": "When the customer signed in, epoch seconds; it never changes."},
    "recorded_at": _INSTANT,
    "expires_at": _INSTANT,
    "confirmed_after": {
        "type": ["integer", "null"],
        "description": "Another customer was signed in to the conversation before: nothing confirmed up to this epoch second is "
        "minted from this sign-in.",
    },
}
_SECRET: Final = {
    "type": "string",
    "minLength": 43,
    "maxLength": 43,
    "description": "A secret that is told this once: the subject token of type `urn:caplo:params:oauth:token-type:sign-in`.",
}
_MAYBE_TEXT: Final = {"type": ["string", "null"]}

SIGN_IN_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "SignInRequest": {
        "type": "object",
        "additionalProperties": False,
        "required": ["id_token"],
        "properties": {
            "id_token": {
                "type": "string",
                "description": f"An ID token issued to this client at most {MAX_AGE_S} seconds ago. Once it was found acceptable "
                "it is used up, also when there is no room or no answer after that.",
            },
            "nonce": {**_MAYBE_TEXT, "description": "The nonce that the ID token was asked for with; it is used up."},
            "conversation": {
                **_MAYBE_TEXT,
                "minLength": 1,
                "maxLength": MAX_CONVERSATION_LENGTH,
                "description": "Where the customer signed in. The sign-ins of another customer there end.",
            },
        },
    },
    "SignIn": {"type": "object", "required": list(_MEMBERS), "properties": dict(_MEMBERS)},
    "RecordedSignIn": {
        "type": "object",
        "required": ["sign_in_id", *_MEMBERS],
        "properties": {"sign_in_id": _SECRET, **_MEMBERS},
    },
}

_SHOWN: Final = {
    "handle": "b8lqWkYbJQ0mVh2yqzv3Cg",
    "connection": "shop",
    "namespace": "shop-login",
    "level": "high",
    "auth_time": 1796039955,
    "recorded_at": 1796039958,
    "expires_at": 1796068758,
    "confirmed_after": None,
}
_ID: Final = {"sign_in_id": "x2m7oH6yP9bqJv0dN1kTq4wRZC8sLfUgEeYh5Xa3iMo"}
_HANDLE: Final = {
    "name": "handle",
    "in": "path",
    "required": True,
    "description": "The handle of the sign-in.",
    "schema": {"type": "string"},
}


def _answers(success: Mapping[str, Any], *statuses: int, examples: Iterable[tuple[str, Mapping[str, Any]]] = ()) -> Any:
    shown = [(SIGN_IN_PROBLEMS[slug], extensions) for slug, extensions in examples]
    return {**success, **problem_answers(400, 503, *statuses, examples=shown)}


class RecordOperation(DocumentedOperation):
    """
    A sign-in is recorded.
    """

    documentation: ClassVar = {
        "operationId": "recordSignIn",
        "summary": "Record a customer's sign-in",
        "tags": ["sign-ins"],
        "description": "Records that a customer signed in, as an identity provider of the client's connections says. Tokens for "
        "this customer can then be asked for with the sign-in's id, and say when and how well the customer signed in.",
        "security": _SECURITY,
        "parameters": [],
        "requestBody": {
            "required": True,
            "description": "Strict JSON in UTF-8, without unknown members and equal ones.",
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/SignInRequest"},
                    "examples": {
                        "recorded": {
                            "value": {
                                "id_token": "eyJhbGciOiJSUzI1NiIsImtpZCI6Li4ufQ.e30.c2ln",
                                "nonce": "n-0S6_WzA2Mj",
                                "conversation": "conv_71",
                            }
                        }
                    },
                }
            },
        },
        "responses": _answers(
            {
                "201": answer(
                    "The sign-in, and its id.",
                    schema="RecordedSignIn",
                    headers={
                        "Location": {"description": "The sign-in.", "schema": {"type": "string", "format": "uri"}}
                    },
                    examples={"recorded": {**_ID, **_SHOWN}},
                )
            },
            401,
            413,
            429,
            examples=(
                ("sign-ins-not-allowed", {}),
                ("id-token-refused", {"reason": "too_old"}),
                ("sign-ins-full", {}),
            ),
        ),
    }


class ShowOperation(DocumentedOperation):
    """
    A sign-in is shown.
    """

    documentation: ClassVar = {
        "operationId": "showSignIn",
        "summary": "A sign-in",
        "tags": ["sign-ins"],
        "description": "A live sign-in of this client, without the customer it is of.",
        "security": _SECURITY,
        "parameters": [_HANDLE],
        "responses": _answers(
            {"200": answer("The sign-in.", schema="SignIn", examples={"shown": _SHOWN})},
            401,
            404,
            429,
            examples=(("unknown-sign-in", {}),),
        ),
    }


class EndOperation(DocumentedOperation):
    """
    A sign-in is ended.
    """

    documentation: ClassVar = {
        "operationId": "endSignIn",
        "summary": "End a sign-in",
        "tags": ["sign-ins"],
        "description": "Ends a sign-in of this client: nothing is minted from it any more. Earlier tokens live a minute at most.",
        "security": _SECURITY,
        "parameters": [_HANDLE],
        "responses": _answers(
            {"204": answer("It has ended.")}, 401, 404, 413, 429, examples=(("unknown-sign-in", {}),)
        ),
    }


class LogoutOperation(DocumentedOperation):
    """
    An identity provider tells of a logout.
    """

    documentation: ClassVar = {
        "operationId": "backchannelLogout",
        "summary": "End what an identity provider has ended",
        "tags": ["sign-ins"],
        "description": "Ends the sign-ins that a logout token is about (OpenID Connect Back-Channel Logout 1.0 section 2.5). The "
        "provider knows this URL as `backchannel_logout_uri`.",
        "security": [{}],
        "parameters": [],
        "requestBody": {
            "required": True,
            "content": {
                "application/x-www-form-urlencoded": {
                    "schema": {
                        "type": "object",
                        "required": ["logout_token"],
                        "properties": {"logout_token": {"type": "string"}},
                    }
                }
            },
        },
        "responses": _answers(
            {"200": answer("They have ended, if there were any.")},
            413,
            examples=(("logout-token-refused", {"reason": "events"}),),
        ),
    }
