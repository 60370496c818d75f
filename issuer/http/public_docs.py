"""
How the routes that anybody may read are described in the OpenAPI document: the key set, the metadata, operations.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from verifier.levels import LEVELS

from .docs import RETRY_AFTER, DocumentedOperation, answer
from .problem_docs import problem_answers

__all__ = [
    "PUBLIC_SCHEMAS",
    "KeySetOperation",
    "LiveOperation",
    "MetadataOperation",
    "MetricsOperation",
    "ReadyOperation",
]

_CACHED: Final = {
    "Cache-Control": {"description": "How long the answer may be used.", "schema": {"type": "string"}},
    "ETag": {"description": "Strong validator for `If-None-Match`.", "schema": {"type": "string"}},
}

_ORIGIN_SERVER: Final = {
    "url": "{origin}",
    "description": "Operations stand at the root of the service, outside of every issuer.",
    "variables": {"origin": {"default": "https://id.example.com"}},
}

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
        "operationId": "getKeySet",
        "summary": "The public keys",
        "tags": ["keys"],
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
        "operationId": "getMetadata",
        "summary": "Server metadata",
        "tags": ["discovery"],
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
        "operationId": "getLive",
        "summary": "Liveness",
        "tags": ["operations"],
        "servers": [_ORIGIN_SERVER],
        "responses": {"200": answer("The process answers.", schema="Live"), **problem_answers()},
    }


class ReadyOperation(DocumentedOperation):
    """
    Readiness.
    """

    documentation: ClassVar = {
        "operationId": "getReady",
        "summary": "Readiness",
        "tags": ["operations"],
        "servers": [_ORIGIN_SERVER],
        "responses": {
            "200": answer("Every workspace can mint and publishes its keys.", schema="Ready"),
            **problem_answers(),
            "503": answer("At least one workspace cannot.", schema="Ready", headers=RETRY_AFTER),
        },
    }


class MetricsOperation(DocumentedOperation):
    """
    Metrics.
    """

    documentation: ClassVar = {
        "operationId": "getMetrics",
        "summary": "Metrics",
        "tags": ["operations"],
        "servers": [_ORIGIN_SERVER],
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

PUBLIC_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
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
