"""
How the non-OAuth routes are described in the OpenAPI document, in the words of that document.

Handlers carry their description as `operation_class`; Litestar builds the paths around it, so no route can stand in the
document that the service does not serve, and none can be served that is missing there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from litestar.openapi.spec import Operation

from verifier.levels import LEVELS

from .admin_problems import ADMIN_PROBLEMS
from .admin_schemas import PROBLEM_EXTENSIONS
from .errors import PROBLEM_JSON, PROBLEMS, problem_members
from .sign_in_problems import SIGN_IN_PROBLEMS

__all__ = [
    "ORIGIN_SERVER",
    "SCHEMAS",
    "DocumentedOperation",
    "KeySetOperation",
    "LiveOperation",
    "MetadataOperation",
    "MetricsOperation",
    "ReadyOperation",
    "answer",
    "problem_answers",
]

_RETRY_AFTER: Final = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 0}}}

_CHALLENGE: Final = {
    "WWW-Authenticate": {
        "description": "With 401 a Basic and a Bearer challenge, with 403 the permission that is lacking (RFC 6750 section 3).",
        "schema": {"type": "string"},
    }
}

_CACHED: Final = {
    "Cache-Control": {"description": "How long the answer may be used.", "schema": {"type": "string"}},
    "ETag": {"description": "Strong validator for `If-None-Match`.", "schema": {"type": "string"}},
}

ORIGIN_SERVER: Final = {
    "url": "{origin}",
    "description": "Operations stand at the root of the service, outside of every issuer.",
    "variables": {"origin": {"default": "https://id.example.com"}},
}

_EDGE_STATUSES: Final = (414, 415, 431, 500)
"""What every route may answer, whatever it does."""


@dataclass
class DocumentedOperation(Operation):
    """
    An operation whose description is written out instead of derived from the handler's signature.
    """

    documentation: ClassVar[Mapping[str, Any]] = {}

    def to_schema(self) -> dict[str, Any]:
        """
        Return the operation with `documentation` over what Litestar derived.
        """
        return super().to_schema() | dict(self.documentation)


def answer(
    description: str,
    *,
    schema: str | None = None,
    media_type: str = "application/json",
    headers: Mapping[str, Any] | None = None,
    examples: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """
    Build one response object; *schema* is the name of a component, *examples* are values by name.
    """
    response: dict[str, Any] = {"description": description}
    if headers:
        response["headers"] = dict(headers)
    if schema is not None:
        content: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
        if examples:
            content["examples"] = {name: {"value": value} for name, value in examples.items()}
        response["content"] = {media_type: content}
    return response


def problem_answers(*statuses: int) -> dict[str, Any]:
    """
    Build the responses for problems, by status, those of the edge included.
    """
    return {str(status): _problem_answer(status) for status in sorted({*statuses, *_EDGE_STATUSES})}


def _problem_answer(status: int) -> dict[str, Any]:
    problem = PROBLEMS[status]
    headers = {401: _CHALLENGE, 403: _CHALLENGE, 429: _RETRY_AFTER, 503: _RETRY_AFTER}
    return answer(
        problem.meaning,
        schema="Problem",
        media_type=PROBLEM_JSON,
        headers=headers.get(status),
        examples={problem.slug: problem_members(problem)},
    )


_IF_NONE_MATCH: Final = {
    "name": "If-None-Match",
    "in": "header",
    "description": "Entity tags that the caller already has, or `*`.",
    "schema": {"type": "string"},
}

_NOT_MODIFIED: Final = answer("The caller's copy is current; the headers renew it.", headers=_CACHED)


class KeySetOperation(DocumentedOperation):
    """
    The published keys.
    """

    documentation: ClassVar = {
        "parameters": [_IF_NONE_MATCH],
        "responses": {
            "200": answer(
                "The public keys: the active one, the standbys and those still retiring.",
                schema="KeySet",
                media_type="application/jwk-set+json",
                headers=_CACHED,
            ),
            "304": _NOT_MODIFIED,
            **problem_answers(503),
        },
    }


class MetadataOperation(DocumentedOperation):
    """
    The metadata of an issuer.
    """

    documentation: ClassVar = {
        "parameters": [_IF_NONE_MATCH],
        "responses": {
            "200": answer("The metadata of this issuer (RFC 8414).", schema="Metadata", headers=_CACHED),
            "304": _NOT_MODIFIED,
            **problem_answers(),
        },
    }


class LiveOperation(DocumentedOperation):
    """
    Liveness.
    """

    documentation: ClassVar = {
        "servers": [ORIGIN_SERVER],
        "responses": {"200": answer("The process answers.", schema="Live"), **problem_answers()},
    }


class ReadyOperation(DocumentedOperation):
    """
    Readiness.
    """

    documentation: ClassVar = {
        "servers": [ORIGIN_SERVER],
        "responses": {
            "200": answer("Every workspace can mint and publishes its keys.", schema="Ready"),
            **problem_answers(),
            "503": answer("At least one workspace cannot.", schema="Ready", headers=_RETRY_AFTER),
        },
    }


class MetricsOperation(DocumentedOperation):
    """
    Metrics.
    """

    documentation: ClassVar = {
        "servers": [ORIGIN_SERVER],
        "responses": {
            "200": {
                "description": "The Prometheus text format.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            },
            **problem_answers(),
        },
    }


_STRINGS: Final = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_URL: Final = {"type": "string", "format": "uri"}
_SECONDS: Final = {"type": "number", "minimum": 0}

_PROBLEM_TYPES: Final = "\n".join(
    f"* `{each.uri}` ({each.status}): {each.meaning}"
    for each in (*PROBLEMS.values(), *SIGN_IN_PROBLEMS.values(), *ADMIN_PROBLEMS.values())
)

SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Problem": {
        "type": "object",
        "description": f"RFC 9457 problem details. Types:\n\n{_PROBLEM_TYPES}",
        "required": ["type", "title", "status"],
        "properties": {
            "type": {"type": "string", "format": "uri", "description": "A stable name; compare it, do not fetch it."},
            "title": {"type": "string"},
            "status": {"type": "integer", "description": "Equals the status of the answer."},
            "detail": {"type": "string"},
            "reason": {"type": "string", "description": "A closed word: what is wrong with a token of an identity provider."},
            **PROBLEM_EXTENSIONS,
        },
    },
    "PublicKey": {
        "type": "object",
        "required": ["kty", "crv", "x", "y", "use", "alg", "kid"],
        "properties": {
            "kty": {"const": "EC"},
            "crv": {"const": "P-256"},
            "x": {"type": "string", "minLength": 43, "maxLength": 43},
            "y": {"type": "string", "minLength": 43, "maxLength": 43},
            "use": {"const": "sig"},
            "alg": {"const": "ES256"},
            "kid": {"type": "string", "description": "The RFC 7638 thumbprint of the key."},
        },
    },
    "KeySet": {
        "type": "object",
        "description": "A JWK Set (RFC 7517 section 5).",
        "required": ["keys"],
        "properties": {"keys": {"type": "array", "items": {"$ref": "#/components/schemas/PublicKey"}}},
    },
    "Metadata": {
        "type": "object",
        "description": "Authorization server metadata (RFC 8414 section 2).",
        "required": ["issuer", "token_endpoint", "jwks_uri", "response_types_supported", "grant_types_supported"],
        "properties": {
            "issuer": _URL,
            "token_endpoint": _URL,
            "jwks_uri": _URL,
            "response_types_supported": {"const": ["none"]},
            "grant_types_supported": _STRINGS,
            "token_endpoint_auth_methods_supported": _STRINGS,
            "token_endpoint_auth_signing_alg_values_supported": _STRINGS,
            "authorization_details_types_supported": _STRINGS,
            "acr_values_supported": {"const": list(LEVELS)},
            "scopes_supported": _STRINGS,
        },
    },
    "Live": {"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}},
    "Ready": {
        "type": "object",
        "required": ["status", "workspaces"],
        "properties": {
            "status": {"enum": ["ok", "unavailable"]},
            "workspaces": {
                "type": "object",
                "description": "By name of the workspace.",
                "additionalProperties": {"$ref": "#/components/schemas/RingStatus"},
            },
        },
    },
    "RingStatus": {
        "type": "object",
        "required": [
            "usable",
            "view_age_seconds",
            "active_key_age_seconds",
            "rotation_overdue",
            "rotation_problem",
            "key_age_alarm",
            "problem",
        ],
        "properties": {
            "usable": {"type": "boolean", "description": "Whether tokens are minted and keys are served."},
            "view_age_seconds": {**_SECONDS, "description": "How long ago the key store confirmed the keys."},
            "active_key_age_seconds": _SECONDS,
            "rotation_overdue": {"type": "boolean"},
            "rotation_problem": {
                "type": ["string", "null"],
                "description": "Why a planned rotation that is due did not happen.",
            },
            "key_age_alarm": {"type": "boolean", "description": "Whether the active key has signed for 90 days."},
            "problem": {
                "type": ["string", "null"],
                "description": "Why the keys cannot be used, or the last look at the key store failed.",
            },
        },
    },
}
"""Component schemas of the routes described here."""
