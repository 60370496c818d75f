"""
What the admin routes take and answer, as JSON Schema for the OpenAPI document. Instants are epoch seconds.
"""

from collections.abc import Mapping
from typing import Any, Final, get_args

from keys import MAX_REASON_LENGTH, STATES

from ..audit.record import EVENTS, OUTCOMES, ActorKind
from ..suspensions import KINDS

__all__ = ["ADMIN_SCHEMAS", "PROBLEM_EXTENSIONS"]

_TEXT: Final = {"type": "string"}
_INSTANT: Final = {"type": "integer", "minimum": 0}
_MAYBE_INSTANT: Final = {"type": ["integer", "null"], "minimum": 0}
_KID: Final = {"type": "string", "description": "The RFC 7638 thumbprint of a key."}
_MAYBE_KID: Final = {"type": ["string", "null"]}
_KIDS: Final = {"type": "array", "items": _KID}
_FLAG: Final = {"type": "boolean"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_REASON: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_REASON_LENGTH,
    "description": "Printable characters; it stands in the audit trail.",
}
_NOTICES: Final = {"type": "array", "items": _TEXT, "description": "What the person who asked must read."}
_CHANGE: Final[Mapping[str, Any]] = {
    "workspace": _TEXT,
    "revision": {"type": "integer", "minimum": 1, "description": "That of the ring, with this change."},
    "recorded": {
        "type": "boolean",
        "description": "False when the audit trail could not be written and gets to know later.",
    },
}
_OBJECT: Final = {"type": ["object", "null"]}


def _object(properties: Mapping[str, Any], *, optional: tuple[str, ...] = (), **schema: Any) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "properties": dict(properties), **schema}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_SUSPENSION: Final[Mapping[str, Any]] = {
    "id": _TEXT,
    "kind": {"enum": list(KINDS)},
    "value": {"type": "string", "description": "The client, agent or action."},
    "namespace": {"type": "string", "description": "The identity namespace of a customer."},
    "customer_hash": {"type": "string", "description": "What stands for the customer in the audit trail."},
    "reason": _REASON,
    "at": _INSTANT,
    "until": _MAYBE_INSTANT,
}
_NOT_FOR_ALL: Final = ("value", "namespace", "customer_hash")
_TRUSTED: Final = {**_INSTANT, "description": "After this no conforming verifier trusts a revoked key."}

ADMIN_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "RotateRequest": _object(
        {
            "expected_active": {**_KID, "description": "The key taken for the active one."},
            "force": {
                "type": "boolean",
                "default": False,
                "description": "Do not wait for a standby to mature; needs a reason.",
            },
            "reason": {**_REASON, "type": ["string", "null"]},
        },
        optional=("force", "reason"),
        additionalProperties=False,
    ),
    "ReasonRequest": _object({"reason": _REASON}, additionalProperties=False),
    "SuspendRequest": _object(
        {
            "kind": {"enum": list(KINDS)},
            "value": {"type": ["string", "null"], "maxLength": 256, "description": "The client, agent or action."},
            "namespace": {"type": ["string", "null"], "description": "Of a customer: the identity namespace."},
            "sub": {
                "type": ["string", "null"],
                "maxLength": 1024,
                "description": "Of a customer: the id; it is shown nowhere.",
            },
            "until": {**_MAYBE_INSTANT, "description": "When it ends; without it, when it is lifted."},
            "reason": _REASON,
        },
        optional=("value", "namespace", "sub", "until"),
        additionalProperties=False,
    ),
    "Keys": _object(
        {
            "workspace": _TEXT,
            "revision": _COUNT,
            "active": _KID,
            "next_rotation_at": {**_INSTANT, "description": "From when on a planned rotation is possible."},
            "keys": {"type": "array", "items": _reference("Key")},
            "notices": _NOTICES,
        }
    ),
    "Key": _object(
        {
            "kid": _KID,
            "alg": {"const": "ES256"},
            "state": {"enum": list(STATES)},
            "published": _FLAG,
            "created_at": _INSTANT,
            "published_at": _INSTANT,
            "mature_at": {**_INSTANT, "description": "From when on every verifier knows it."},
            "activated_at": _MAYBE_INSTANT,
            "rotation_due_at": _MAYBE_INSTANT,
            "deactivated_at": _MAYBE_INSTANT,
            "unpublish_at": _MAYBE_INSTANT,
            "revoked_at": _MAYBE_INSTANT,
            "reason": {"type": ["string", "null"]},
            "next": {
                "type": ["object", "null"],
                "properties": {"what": {"enum": ["may_activate", "rotation_due", "unpublish"]}, "at": _INSTANT},
            },
        }
    ),
    "Rotation": _object(
        {
            **_CHANGE,
            "retired": _KID,
            "active": _KID,
            "standby": _KID,
            "at": _INSTANT,
            "unpublish_at": _INSTANT,
            "next_rotation_at": _INSTANT,
            "early": {"type": "boolean", "description": "Whether the new key signs before every verifier knows it."},
            "notices": _NOTICES,
        }
    ),
    "Revocation": _object(
        {
            **_CHANGE,
            "revoked": _KID,
            "was": {"enum": list(STATES)},
            "active": _KID,
            "promoted": _MAYBE_KID,
            "standby": _MAYBE_KID,
            "at": _INSTANT,
            "trusted_until": _TRUSTED,
            "next_rotation_at": _INSTANT,
            "early": _FLAG,
            "notices": _NOTICES,
            "minted": _reference("Minted"),
        }
    ),
    "FullRevocation": _object(
        {
            **_CHANGE,
            "revoked": _KIDS,
            "active": _KID,
            "standbys": _KIDS,
            "at": _INSTANT,
            "trusted_until": _TRUSTED,
            "next_rotation_at": _INSTANT,
            "notices": _NOTICES,
            "minted": _reference("Minted"),
        }
    ),
    "Minted": _object(
        {
            "by": {"const": "this instance"},
            "since": _INSTANT,
            "total": _COUNT,
            "counts": {
                "type": "array",
                "items": _object({"audience": _TEXT, "action": {"type": ["string", "null"]}, "count": _COUNT}),
            },
        },
        description="What the instance that answers minted under the revoked keys in the last minutes.",
    ),
    "Suspension": _object(_SUSPENSION, optional=_NOT_FOR_ALL),
    "Suspensions": _object(
        {
            "workspace": _TEXT,
            "revision": _COUNT,
            "suspensions": {"type": "array", "items": _reference("Suspension")},
        }
    ),
    "NewSuspension": _object(
        {
            **_CHANGE,
            **_SUSPENSION,
            "tokens_expire_by": {**_INSTANT, "description": "When the last token that was minted before has expired."},
            "notices": _NOTICES,
        },
        optional=_NOT_FOR_ALL,
    ),
    "LiftedSuspension": _object({**_CHANGE, "lifted": _reference("Suspension")}),
    "AuditPage": _object(
        {
            "workspace": _TEXT,
            "head": {"type": "string", "description": "As in `Audit-Head`."},
            "records": {"type": "array", "items": _reference("AuditRecord")},
            "unreadable": {**_COUNT, "description": "Lines among these that are no records."},
            "next": {
                "type": "object",
                "description": "The parameter that gives the next page; `before` is null on the last one.",
                "properties": {"before": {"type": ["integer", "null"]}, "after": _COUNT},
            },
        }
    ),
    "AuditRecord": _object(
        {
            "v": {"const": 1},
            "seq": {"type": "integer", "minimum": 1},
            "at": _INSTANT,
            "workspace": _TEXT,
            "actor": _object({"kind": {"enum": list(get_args(ActorKind))}, "name": _TEXT}),
            "source": {"type": "string", "description": "The address of the peer, or `local`."},
            "event": {"enum": list(EVENTS)},
            "outcome": {"enum": list(OUTCOMES)},
            "target": {"type": ["string", "null"]},
            "reason": {"type": ["string", "null"]},
            "before": _OBJECT,
            "after": _OBJECT,
            "count": {"type": "integer", "minimum": 1},
            "revision": _COUNT,
            "follows": {**_COUNT, "description": "The last record before it that was carried out."},
            "epoch": _COUNT,
            "sealing_key": {"type": ["string", "null"]},
            "prev": _TEXT,
            "hash": {"type": "string", "description": "The hash of the record's line."},
            "carried_out": {"type": ["boolean", "null"], "description": "Null while that is not known."},
        }
    ),
}
"""Component schemas of the admin routes."""

PROBLEM_EXTENSIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "code": {"type": "string", "description": "With 503, what failed, in a word that also stands in the log."},
    "unknown_members": {"type": "array", "items": {"type": "string"}},
    "permission": {"type": "string", "description": "With 403, what is lacking."},
    "active": {"type": "string", "description": "The kid of the active key."},
    "earliest": {"type": "integer", "description": "When to try again, in epoch seconds."},
    "standby": {"type": "string", "description": "The kid of the standby that is waited for."},
    "state": {"type": "string"},
    "unpublished_at": {"type": "integer"},
    "limit": {"type": "integer"},
}
"""Extension members of problem details (RFC 9457 section 3.2)."""
