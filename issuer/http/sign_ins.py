"""
The routes of customers' sign-ins: recorded, shown and ended by clients, and ended by identity providers.

A client proves who it is as at the token endpoint, in the `Authorization` field alone: HTTP Basic, or Bearer with the assertion
that it would send as `client_assertion`. Recording and showing count with its requests for tokens; ending a sign-in never waits.
No URL holds anything secret: the handle in it opens nothing.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from litestar import Request, Response, delete, post
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler

from verifier import CustomerContextError, bearer_token

from ..client_entry import ClientEntry
from ..clients import ASSERTION_TYPE
from ..errors import TokenRefused, invalid_client
from ..form import Form, parse_form
from ..oauth import OAuthRequest
from ..registry import Client, Workspace
from ..reports import Report
from ..sign_in_desk import SignInDesk, SignInRefused
from ..sign_ins import SignInSummary
from ..source import Sources
from .documents import readable
from .errors import error_response
from .json_body import MAX_BODY_OCTETS, Member, check_media_type, read_body
from .problems import ProblemRaised
from .sign_in_docs import EndOperation, LogoutOperation, RecordOperation, ShowOperation
from .sign_in_problems import SIGN_IN_PROBLEMS, as_problem
from .source import find_source

__all__ = ["LOGOUT_PATH", "SIGN_INS_PATH", "sign_in_routes"]

SIGN_INS_PATH: Final = "/sign-ins"
LOGOUT_PATH: Final = "/backchannel-logout"

_ENCODER: Final = msgspec.json.Encoder()
_NO_STORE: Final[Mapping[str, str]] = {"Cache-Control": "no-store"}
_MAYBE_TEXT: Final = (str, type(None))
_BODY: Final[Mapping[str, Member]] = {
    "id_token": Member((str,), is_required=True),
    "nonce": Member(_MAYBE_TEXT),
    "conversation": Member(_MAYBE_TEXT),
}


def sign_in_routes(
    workspace: Workspace, *, desk: SignInDesk, entry: ClientEntry, sources: Sources, report: Report
) -> tuple[HTTPRouteHandler, ...]:
    """
    Build the sign-in routes of one workspace.
    """
    served = _Desk(workspace, desk, entry, sources, report)
    one = f"{workspace.path}{SIGN_INS_PATH}/{{handle:str}}"

    async def record(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await served.answer(request, served.record)

    async def show(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await served.answer(request, served.show)

    async def end(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await served.answer(request, served.end)

    async def log_out(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await served.answer(request, served.log_out)

    return (
        post(
            workspace.path + SIGN_INS_PATH,
            status_code=201,
            request_max_body_size=MAX_BODY_OCTETS,
            operation_class=RecordOperation,
        )(record),
        *readable([one], show, ShowOperation),
        delete(one, status_code=200, request_max_body_size=MAX_BODY_OCTETS, operation_class=EndOperation)(end),
        post(
            workspace.path + LOGOUT_PATH,
            status_code=200,
            request_max_body_size=MAX_BODY_OCTETS,
            operation_class=LogoutOperation,
        )(log_out),
    )


# What answers a request adds what it finds out to the facts that a refusal is reported with.
_Answer = Callable[[Request[Any, Any, Any], dict[str, str]], Awaitable[Response[bytes]]]


class _Desk:
    """
    From a request to the desk, and back; what is refused is reported.
    """

    def __init__(
        self, workspace: Workspace, desk: SignInDesk, entry: ClientEntry, sources: Sources, report: Report
    ) -> None:
        self._workspace = workspace
        self._desk = desk
        self._entry = entry
        self._sources = sources
        self._report = report

    async def answer(self, request: Request[Any, Any, Any], work: _Answer) -> Response[bytes]:
        known = {"workspace": self._workspace.name, "source": find_source(request, self._sources)}
        try:
            return await work(request, known)
        except HTTPException as error:
            # The framework bounds the body; it is a refusal like the others.
            self._note(known, f"http:{error.status_code}")
            return error_response(request.scope["path"], error.status_code, headers=error.headers or {})
        except ProblemRaised as raised:
            self._note(known, raised.reason)
            return raised.response
        except (TokenRefused, SignInRefused) as refused:
            failed = {} if refused.problem is None else {"problem": refused.problem}
            self._note(known | failed, refused.reason)
            return as_problem(refused, self._workspace.issuer).response

    async def record(self, request: Request[Any, Any, Any], known: dict[str, str]) -> Response[bytes]:
        client = await self._counted(request, known)
        check_media_type(request.headers.getall("content-type", []))
        recorded = await self._desk.record(client, **read_body(await request.body(), _BODY))
        handle = recorded.sign_in.handle
        return Response(
            _ENCODER.encode({"sign_in_id": recorded.sign_in_id, **_members(recorded.sign_in)}),
            status_code=201,
            media_type="application/json",
            headers={**_NO_STORE, "Location": f"{self._workspace.issuer}{SIGN_INS_PATH}/{handle}"},
        )

    async def show(self, request: Request[Any, Any, Any], known: dict[str, str]) -> Response[bytes]:
        client = await self._counted(request, known)
        found = await self._desk.describe(client, request.path_params["handle"])
        if found is None:
            raise ProblemRaised(SIGN_IN_PROBLEMS["unknown-sign-in"])
        body = _ENCODER.encode(_members(found))
        return Response(body, media_type="application/json", headers=_NO_STORE)

    async def end(self, request: Request[Any, Any, Any], known: dict[str, str]) -> Response[bytes]:
        client = await self._client(request, known)
        if not await self._desk.end(client, request.path_params["handle"]):
            raise ProblemRaised(SIGN_IN_PROBLEMS["unknown-sign-in"])
        return Response(b"", status_code=204, headers=_NO_STORE)

    async def log_out(self, request: Request[Any, Any, Any], _known: dict[str, str]) -> Response[bytes]:
        content_type = ", ".join(request.headers.getall("content-type", [])) or None
        form = parse_form(content_type, await request.body())
        await self._desk.log_out(form.require("logout_token"))
        return Response(b"", status_code=200, headers=_NO_STORE)

    def _note(self, known: Mapping[str, str], reason: str) -> None:
        self._report("sign_in_refused", **known, reason=reason)

    async def _counted(self, request: Request[Any, Any, Any], known: dict[str, str]) -> Client:
        client = await self._client(request, known)
        await self._entry.count(client)
        return client

    async def _client(self, request: Request[Any, Any, Any], known: dict[str, str]) -> Client:
        asked = _credentials(request.headers.getall("authorization", []))
        authenticated = await self._entry.authenticate(asked, known["source"])
        known["client_id"] = authenticated.client.client_id
        await self._entry.use_up(authenticated)
        return authenticated.client


def _credentials(authorization: Sequence[str]) -> OAuthRequest:
    """
    Read `Authorization` as the token endpoint would be asked: an assertion stands in the form there.
    """
    scheme = authorization[0].strip(" \t").partition(" ")[0].lower() if len(authorization) == 1 else ""
    if scheme != "bearer":
        return OAuthRequest(Form({}), authorization)
    try:
        assertion = bearer_token(authorization)
    except CustomerContextError:
        raise invalid_client(reason="client_assertion:malformed") from None
    return OAuthRequest(Form({"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}), ())


def _members(sign_in: SignInSummary) -> dict[str, Any]:
    return {
        "handle": sign_in.handle,
        "connection": sign_in.connection,
        "namespace": sign_in.namespace,
        "level": sign_in.level,
        "auth_time": sign_in.auth_time,
        "recorded_at": sign_in.recorded_at,
        "expires_at": sign_in.expires_at,
        "confirmed_after": sign_in.confirmed_after,
    }
