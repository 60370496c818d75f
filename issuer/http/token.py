"""
The token endpoint's face in HTTP: what arrived goes to `TokenEndpoint`, what it decides goes back (RFC 6749 section 5).
"""

from typing import Any

import msgspec
from litestar import Request, Response, post
from litestar.handlers import HTTPRouteHandler

from verifier.challenge import format_challenge

from ..errors import TokenRefused
from ..form import MAX_BODY_OCTETS
from ..registry import Workspace
from ..source import Sources
from ..token_endpoint import TokenEndpoint, TokenRequest
from .errors import TOKEN_PATH, oauth_error_response
from .source import find_source
from .token_docs import TokenOperation

__all__ = ["token_route"]

_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_ENCODER = msgspec.json.Encoder()


def token_route(workspace: Workspace, endpoint: TokenEndpoint, sources: Sources) -> HTTPRouteHandler:
    """
    Build the route of one workspace's token endpoint; *sources* tells where requests come from.
    """

    async def issue_token(request: Request[Any, Any, Any]) -> Response[bytes]:
        asked = TokenRequest(
            authorization=request.headers.getall("authorization", []),
            # Several lines are one list (RFC 9110 section 5.3), which is no media type.
            content_type=", ".join(request.headers.getall("content-type", [])) or None,
            body=await request.body(),
            source=find_source(request, sources),
        )
        try:
            members = await endpoint.answer(asked)
        except TokenRefused as refused:
            return _refusal(refused, workspace.issuer)
        return Response(_ENCODER.encode(members), media_type="application/json", headers=_NO_STORE)

    return post(
        workspace.path + TOKEN_PATH,
        status_code=200,
        request_max_body_size=MAX_BODY_OCTETS,
        operation_class=TokenOperation,
    )(issue_token)


def _refusal(refused: TokenRefused, realm: str) -> Response[bytes]:
    headers = {}
    if refused.status == 401:
        # Every 401 has a challenge (RFC 9110 section 15.5.2), also when the client used an assertion.
        headers["WWW-Authenticate"] = format_challenge("Basic", {"realm": realm})
    if refused.retry_after_s is not None:
        headers["Retry-After"] = str(refused.retry_after_s)
    return oauth_error_response(refused.status, refused.error, refused.description, headers)
