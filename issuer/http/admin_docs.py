"""
How the admin routes are described in the OpenAPI document: who may call, what they take, every answer, every problem.
"""

from typing import ClassVar, Final

from .admin_doc_parts import ADMIN_SECURITY, answers, body, key_parameter, number, path_parameter, shown, told
from .admin_examples import AUDIT, KEYS, LIFTED, REVOKED, REVOKED_ALL, ROTATED, SUSPENDED, SUSPENSIONS
from .docs import DocumentedOperation

__all__ = [
    "AuditOperation",
    "KeysOperation",
    "LiftOperation",
    "RevokeAllOperation",
    "RevokeOperation",
    "RotateOperation",
    "SuspendOperation",
    "SuspensionsOperation",
]

_REPEATED: Final = (shown("idempotency-key-malformed"), shown("invalid-body", unknown_members=["resaon"]))


class KeysOperation(DocumentedOperation):
    """
    The inventory of keys.
    """

    documentation: ClassVar = {
        "operationId": "listKeys",
        "summary": "The keys, their states and instants",
        "tags": ["admin"],
        "description": "Every key with its state, all its instants in epoch seconds, what happens next and when. Permission "
        "`keys:read`.",
        "security": ADMIN_SECURITY,
        "parameters": [],
        "responses": answers(told(200, "The keys, the active one first.", "Keys", KEYS)),
    }


class RotateOperation(DocumentedOperation):
    """
    A planned rotation.
    """

    documentation: ClassVar = {
        "operationId": "rotateKeys",
        "summary": "Let a standby sign in the place of the active key",
        "tags": ["admin"],
        "description": "Lets the standby that matured first sign, retires the active key and destroys its private part. No valid "
        "token is refused. It does not happen when its record cannot be written. Permission `keys:rotate`.",
        "security": ADMIN_SECURITY,
        "parameters": [key_parameter(is_required=True)],
        "requestBody": body(
            "RotateRequest",
            planned={"expected_active": KEYS["active"]},
            forced={"expected_active": KEYS["active"], "force": True, "reason": "The key was used on a laptop."},
        ),
        "responses": answers(
            told(200, "The rotation is in force.", "Rotation", ROTATED),
            409,
            413,
            422,
            examples=(
                *_REPEATED,
                shown("idempotency-key-missing"),
                shown("active-key-differs", active=KEYS["active"]),
                shown("standby-not-mature", earliest=KEYS["next_rotation_at"], standby=ROTATED["active"]),
                shown("too-many-retiring", earliest=KEYS["next_rotation_at"]),
                shown("call-in-progress"),
            ),
        ),
    }


class RevokeOperation(DocumentedOperation):
    """
    A revocation.
    """

    documentation: ClassVar = {
        "operationId": "revokeKey",
        "summary": "Revoke a key that is compromised",
        "tags": ["admin"],
        "description": "Takes a published key out of the key set now and destroys its private part; if it was active, a standby "
        "signs now. It does not wait for the audit trail: `recorded` is false when its record has to follow. Permission "
        "`keys:revoke`.",
        "security": ADMIN_SECURITY,
        "parameters": [path_parameter("kid", "The key."), key_parameter(is_required=False)],
        "requestBody": body("ReasonRequest", compromised={"reason": "Found in a log."}),
        "responses": answers(
            told(200, "The revocation is in force.", "Revocation", REVOKED),
            404,
            409,
            413,
            422,
            examples=(
                *_REPEATED,
                shown("unknown-key"),
                shown("key-not-published", state="revoked", unpublished_at=REVOKED["at"]),
                shown("call-in-progress"),
            ),
        ),
    }


class RevokeAllOperation(DocumentedOperation):
    """
    A revocation of every published key.
    """

    documentation: ClassVar = {
        "operationId": "revokeKeys",
        "summary": "Revoke every published key",
        "tags": ["admin"],
        "description": "The ring itself was stolen: every published key goes, and a new one signs now, though no verifier knows "
        "it yet. It does not wait for the audit trail. Permission `keys:revoke`.",
        "security": ADMIN_SECURITY,
        "parameters": [key_parameter(is_required=False)],
        "requestBody": body("ReasonRequest", stolen={"reason": "A backup of the ring was stolen."}),
        "responses": answers(
            told(200, "The revocation is in force.", "FullRevocation", REVOKED_ALL),
            409,
            413,
            422,
            examples=(*_REPEATED, shown("call-in-progress")),
        ),
    }


class SuspensionsOperation(DocumentedOperation):
    """
    The list of suspensions.
    """

    documentation: ClassVar = {
        "operationId": "listSuspensions",
        "summary": "Who is cut off at the mint",
        "tags": ["admin"],
        "description": "The suspensions that hold. Customers are shown by namespace and keyed hash. Permission `suspensions`.",
        "security": ADMIN_SECURITY,
        "parameters": [],
        "responses": answers(told(200, "The suspensions, the oldest first.", "Suspensions", SUSPENSIONS)),
    }


class SuspendOperation(DocumentedOperation):
    """
    A suspension.
    """

    documentation: ClassVar = {
        "operationId": "suspend",
        "summary": "Cut off a client, agent, customer or action",
        "tags": ["admin"],
        "description": "Nothing is minted for the client, agent, customer or action from now on; all instances follow within a "
        "second, and tokens that are alive expire within the minute. A name that the configuration does not know is suspended "
        "too, and the answer says so. Permission `suspensions`.",
        "security": ADMIN_SECURITY,
        "parameters": [key_parameter(is_required=False)],
        "requestBody": body(
            "SuspendRequest",
            client={"kind": "client", "value": "orc_main", "reason": "Its secret leaked."},
            customer={
                "kind": "customer",
                "namespace": "shop-login",
                "sub": "cus_48213",
                "reason": "Their account was taken over.",
                "until": SUSPENDED["until"],
            },
        ),
        "responses": answers(
            told(201, "The suspension is in force.", "NewSuspension", SUSPENDED),
            409,
            413,
            422,
            examples=(*_REPEATED, shown("suspensions-full", limit=200), shown("call-in-progress")),
        ),
    }


class LiftOperation(DocumentedOperation):
    """
    The end of a suspension.
    """

    documentation: ClassVar = {
        "operationId": "liftSuspension",
        "summary": "End a suspension",
        "tags": ["admin"],
        "description": "Ends a suspension. Permission `suspensions`.",
        "security": ADMIN_SECURITY,
        "parameters": [
            path_parameter("suspension_id", "The id that the suspension was given."),
            key_parameter(is_required=False),
        ],
        "responses": answers(
            told(200, "The suspension is lifted.", "LiftedSuspension", LIFTED),
            404,
            409,
            422,
            examples=(
                shown("idempotency-key-malformed"),
                shown("unknown-suspension"),
                shown("call-in-progress"),
            ),
        ),
    }


class AuditOperation(DocumentedOperation):
    """
    The audit trail.
    """

    documentation: ClassVar = {
        "operationId": "readAudit",
        "summary": "Who did what, when",
        "tags": ["admin"],
        "description": "Records of the audit trail. Without `after` the last ones, or the last before `before`, the latest "
        "first; with `after` those behind it, in their order, for collecting. Nothing is verified here: `customer-context audit "
        "verify` does that. Permission `audit:read`.",
        "security": ADMIN_SECURITY,
        "parameters": [
            number("after", "Number of a record, 0 for the whole trail; not with `before`.", minimum=0),
            number("before", "Number of a record; not with `after`.", minimum=1),
            number("limit", "How many records at most.", minimum=1, maximum=200, default=50),
        ],
        "responses": answers(told(200, "Some records.", "AuditPage", AUDIT), examples=(shown("invalid-query"),)),
    }
