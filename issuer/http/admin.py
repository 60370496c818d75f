"""
The admin routes of a workspace: keys, suspensions, the trail. Each is one call of `Administration`; what it needs stands here.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from litestar import Request, Response, delete, post
from litestar.handlers import HTTPRouteHandler

from ..administration import Told
from ..registry import Workspace
from ..suspensions import InvalidSuspension, Target
from .admin_calls import AdminCall, AdminDesk, Asked, Work
from .admin_docs import (
    AuditOperation,
    KeysOperation,
    LiftOperation,
    RevokeAllOperation,
    RevokeOperation,
    RotateOperation,
    SuspendOperation,
    SuspensionsOperation,
)
from .admin_parameters import read_numbers
from .admin_problems import ADMIN_PROBLEMS
from .docs import DocumentedOperation
from .documents import readable
from .json_body import MAX_BODY_OCTETS, Member
from .problems import ProblemRaised

__all__ = ["ADMIN_PATH", "admin_routes"]

ADMIN_PATH: Final = "/admin"
"""Where the admin routes stand below each issuer."""

_TEXT: Final = (str,)
_MAYBE_TEXT: Final = (str, type(None))
_REASON: Final[Mapping[str, Member]] = {"reason": Member(_TEXT, is_required=True)}
_MAX_PAGE: Final = 200

_LIST: Final = AdminCall(name="keys:list", permission="keys:read")
_ROTATE: Final = AdminCall(
    name="keys:rotate",
    permission="keys:rotate",
    body={
        "expected_active": Member(_TEXT, is_required=True),
        "force": Member((bool,), default=False),
        "reason": Member(_MAYBE_TEXT),
    },
    idempotency_key="required",
)
_REVOKE: Final = AdminCall(name="keys:revoke", permission="keys:revoke", body=_REASON, idempotency_key="optional")
_REVOKE_ALL: Final = AdminCall(
    name="keys:revoke-all", permission="keys:revoke", body=_REASON, idempotency_key="optional"
)
_SUSPENSIONS: Final = AdminCall(name="suspensions:list", permission="suspensions")
_SUSPEND: Final = AdminCall(
    name="suspensions:add",
    permission="suspensions",
    body={
        "kind": Member(_TEXT, is_required=True),
        "value": Member(_MAYBE_TEXT),
        "namespace": Member(_MAYBE_TEXT),
        "sub": Member(_MAYBE_TEXT),
        "until": Member((int, type(None))),
        **_REASON,
    },
    idempotency_key="optional",
    status=201,
)
_LIFT: Final = AdminCall(name="suspensions:lift", permission="suspensions", idempotency_key="optional")
_AUDIT: Final = AdminCall(name="audit:read", permission="audit:read")


def admin_routes(workspace: Workspace, desk: AdminDesk) -> tuple[HTTPRouteHandler, ...]:
    """
    Build the admin routes of one workspace.
    """
    root = workspace.path + ADMIN_PATH
    keys, suspensions = f"{root}/keys", f"{root}/suspensions"
    work = _Work(desk)
    return (
        *_read(desk, keys, _LIST, work.keys, KeysOperation),
        _write(desk, f"{keys}/rotate", _ROTATE, work.rotate, RotateOperation),
        _write(desk, f"{keys}/{{kid:str}}/revoke", _REVOKE, work.revoke, RevokeOperation),
        _write(desk, f"{keys}/revoke-all", _REVOKE_ALL, work.revoke_all, RevokeAllOperation),
        *_read(desk, suspensions, _SUSPENSIONS, work.suspensions, SuspensionsOperation),
        _write(desk, suspensions, _SUSPEND, work.suspend, SuspendOperation),
        _write(desk, f"{suspensions}/{{suspension_id:str}}", _LIFT, work.lift, LiftOperation, method=delete),
        *_read(desk, f"{root}/audit", _AUDIT, work.audit, AuditOperation),
    )


class _Work:
    """
    From what was asked to a call of `Administration`.
    """

    def __init__(self, desk: AdminDesk) -> None:
        self._administration = desk.administration

    async def keys(self, _asked: Asked) -> Told:
        return await self._administration.keys()

    async def rotate(self, asked: Asked) -> Told:
        return await self._administration.rotate(asked.actor, **asked.members)

    async def revoke(self, asked: Asked) -> Told:
        return await self._administration.revoke(asked.actor, asked.path["kid"], **asked.members)

    async def revoke_all(self, asked: Asked) -> Told:
        return await self._administration.revoke_all(asked.actor, **asked.members)

    async def suspensions(self, _asked: Asked) -> Told:
        return await self._administration.suspensions()

    async def suspend(self, asked: Asked) -> Told:
        members = asked.members
        return await self._administration.suspend(
            asked.actor, _target(members), reason=members["reason"], until=members["until"]
        )

    async def lift(self, asked: Asked) -> Told:
        return await self._administration.lift(asked.actor, asked.path["suspension_id"])

    async def audit(self, asked: Asked) -> Told:
        numbers = read_numbers(asked.query, ("after", "before", "limit"))
        limit = numbers.pop("limit", 50)
        if len(numbers) > 1 or not 1 <= limit <= _MAX_PAGE or numbers.get("before") == 0:
            detail = f"after and before exclude each other, before is 1 or more, limit is 1 to {_MAX_PAGE}."
            raise ProblemRaised(ADMIN_PROBLEMS["invalid-query"], detail=detail)
        if "after" in numbers:
            return await self._administration.audit_after(numbers["after"], limit=limit)
        return await self._administration.audit(limit=limit, **numbers)


def _target(members: Mapping[str, Any]) -> Target:
    kind, value, namespace, sub = (members[name] for name in ("kind", "value", "namespace", "sub"))
    if kind == "customer":
        if value is not None or namespace is None or sub is None:
            raise InvalidSuspension("a customer is suspended by namespace and sub")
        return Target(kind, sub, namespace)
    if value is None or namespace is not None or sub is not None:
        raise InvalidSuspension("what is no customer is suspended by its value alone")
    return Target(kind, value)


def _read(
    desk: AdminDesk, path: str, call: AdminCall, work: Work, operation: type[DocumentedOperation]
) -> tuple[HTTPRouteHandler, HTTPRouteHandler]:
    async def answer(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await desk.answer(request, call, work)

    return readable([path], answer, operation)


def _write(
    desk: AdminDesk,
    path: str,
    call: AdminCall,
    work: Work,
    operation: type[DocumentedOperation],
    *,
    method: Callable[..., Any] = post,
) -> HTTPRouteHandler:
    async def answer(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await desk.answer(request, call, work)

    documented = method(path, status_code=call.status, request_max_body_size=MAX_BODY_OCTETS, operation_class=operation)
    handler: HTTPRouteHandler = documented(answer)
    return handler
