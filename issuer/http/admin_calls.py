"""
One admin call from its arrival to its answer: who asks, may they, was it asked before, what came of it.

Order of checks: credential, permission, media type, size, body, idempotency key. Whatever the answer is, it is logged without the
credential and counted for the trail; every answer to an admin carries the head of the trail in `Audit-Head`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar
from urllib.parse import quote

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException

from ..admin_idempotency import AdminRecords, AdminScope, Claim, StoredAnswer, Ticket
from ..administration import Administration, Told
from ..admins import AdminAuthentication, check_permission
from ..audit import Actor, Head
from ..bookkeeping import Bookkeeping
from ..registry import Permission, Workspace
from ..reports import Report
from ..source import Sources
from .admin_parameters import read_key
from .admin_problems import ADMIN_PROBLEMS, as_problem
from .errors import error_response
from .json_body import Member, check_media_type, read_body
from .problems import PROBLEMS, ProblemRaised
from .source import find_source

__all__ = ["AdminCall", "AdminDesk", "Asked", "Work"]

_T = TypeVar("_T")

_ENCODER: Final = msgspec.json.Encoder()
_CANNOT_TELL: Final = "records_unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminCall:
    """
    A kind of call: its name in log and trail, what it needs, what its body holds, whether it takes an idempotency key.
    """

    name: str
    permission: Permission
    body: Mapping[str, Member] | None = None
    idempotency_key: Literal["required", "optional"] | None = None
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """
    A call that was let in: by whom, with which body, path parameters and query.
    """

    actor: Actor
    members: Mapping[str, Any]
    path: Mapping[str, str]
    query: bytes


Work = Callable[[Asked], Awaitable[Told]]
"""Does what was asked for."""


class AdminDesk:
    """
    Takes the admin calls of one workspace.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        administration: Administration,
        authentication: AdminAuthentication,
        records: AdminRecords,
        books: Bookkeeping,
        head: Callable[[], Head | None],
        report: Report,
        now: Callable[[], float],
        sources: Sources,
    ) -> None:
        """
        Take the parts; *head* tells the end of the trail in memory, *now* the wall clock in epoch seconds.
        """
        self.administration = administration
        self._workspace = workspace
        self._authentication = authentication
        self._records = records
        self._books = books
        self._head = head
        self._report = report
        self._now = now
        self._sources = sources

    async def answer(self, request: Request[Any, Any, Any], call: AdminCall, work: Work) -> Response[bytes]:
        """
        Answer one call.
        """
        source = find_source(request, self._sources)
        admin: str | None = None
        try:
            found = await self._authentication.authenticate(
                request.headers.getall("authorization", []),
                method=request.method,
                url=self._url(request),
                source=source,
            )
            admin = found.name
            check_permission(found, call.permission)
            response = await self._answer(request, call, Actor("admin", admin, source), work)
        except HTTPException as error:
            # The framework bounds the body; it is a refusal like the others.
            response = error_response(request.scope["path"], error.status_code, headers=error.headers or {})
            self._note(call, source, admin, status=error.status_code, reason=f"http:{error.status_code}")
        except Exception as error:
            raised = as_problem(error, self._workspace.issuer)
            if raised is None:
                raise
            response = raised.response
            known = admin or getattr(error, "admin", None)
            self._note(call, source, known, status=raised.problem.status, reason=raised.reason)
        if admin is not None and "Audit-Head" not in response.headers and (head := self._head()) is not None:
            response.headers["Audit-Head"] = str(head)
        return response

    async def _answer(
        self, request: Request[Any, Any, Any], call: AdminCall, actor: Actor, work: Work
    ) -> Response[bytes]:
        members: Mapping[str, Any] = MappingProxyType({})
        if call.body is not None:
            check_media_type(request.headers.getall("content-type", []))
            members = read_body(await request.body(), call.body)
        asked = Asked(actor=actor, members=members, path=request.path_params, query=request.scope["query_string"])
        if call.idempotency_key is None:
            return await self._do(call, asked, work)
        is_required = call.idempotency_key == "required"
        key = read_key(request.headers.getall("idempotency-key", []), is_required=is_required)
        if key is None:
            return await self._do(call, asked, work)
        scope = AdminScope(self._workspace.name, actor.name, request.method, request.scope["path"], key)
        return await self._do_once(scope, call, asked, work)

    async def _do_once(self, scope: AdminScope, call: AdminCall, asked: Asked, work: Work) -> Response[bytes]:
        match await self._claim(scope, asked):
            case StoredAnswer() as stored:
                return _response(stored.status, stored.body, None)
            case "conflict":
                raise ProblemRaised(PROBLEMS[422])
            case "in_progress":
                raise ProblemRaised(ADMIN_PROBLEMS["call-in-progress"])
            case Ticket() as ticket:
                return await self._do_first(ticket, call, asked, work)
            case "full" if call.idempotency_key == "required":
                raise ProblemRaised(PROBLEMS[429], detail="Too many calls of this admin are remembered.")
            case None if call.idempotency_key == "required":
                raise ProblemRaised(PROBLEMS[503], reason=_CANNOT_TELL, extensions={"code": _CANNOT_TELL})
        # What cuts off is never refused because it cannot be remembered.
        return await self._do(call, asked, work)

    async def _do_first(self, ticket: Ticket, call: AdminCall, asked: Asked, work: Work) -> Response[bytes]:
        try:
            response = await self._do(call, asked, work)
        except BaseException:
            await self._remember(self._records.release(ticket))
            raise
        await self._remember(self._records.finish(ticket, StoredAnswer(call.status, response.content)))
        return response

    async def _claim(self, scope: AdminScope, asked: Asked) -> Claim | None:
        """
        Find what stands under a key; None when that cannot be told.
        """
        content = sha256(_ENCODER.encode(sorted(asked.members.items()))).digest()
        return await self._remember(self._records.claim(scope, content, self._now()))

    async def _remember(self, asked: Awaitable[_T]) -> _T | None:
        try:
            return await asked
        except Exception as error:  # noqa: BLE001 -- a store may fail in any way; what was done is done
            self._report("admin_records_failed", workspace=self._workspace.name, problem=type(error).__name__)
            return None

    async def _do(self, call: AdminCall, asked: Asked, work: Work) -> Response[bytes]:
        told = await work(asked)
        if call.idempotency_key is None:
            self._books.called(asked.actor, call.name)
        self._report(
            "admin_called",
            workspace=self._workspace.name,
            admin=asked.actor.name,
            source=asked.actor.source,
            call=call.name,
            kid=asked.path.get("kid"),
            suspension=asked.path.get("suspension_id") or told.members.get("id"),
            revision=told.members.get("revision"),
        )
        return _response(call.status, _ENCODER.encode(told.members), told.head)

    def _note(self, call: AdminCall, source: str, admin: str | None, *, status: int, reason: str) -> None:
        is_failure = status >= 500
        if not is_failure:
            self._books.refused(source, call=call.name, reason=reason, admin=admin)
        self._report(
            "admin_failed" if is_failure else "admin_refused",
            workspace=self._workspace.name,
            admin=admin,
            source=source,
            call=call.name,
            status=status,
            reason=reason,
        )

    def _url(self, request: Request[Any, Any, Any]) -> str:
        # From configuration and the path as it was routed; what the request says about its host is never looked at.
        below = request.scope["path"].removeprefix(self._workspace.path)
        return self._workspace.issuer + quote(below, safe="/-._~")


def _response(status: int, body: bytes, head: Head | None) -> Response[bytes]:
    headers = {"Cache-Control": "no-store"} | ({} if head is None else {"Audit-Head": str(head)})
    return Response(body, status_code=status, media_type="application/json", headers=headers)
