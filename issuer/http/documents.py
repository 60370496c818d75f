"""
Routes that are read: GET and HEAD together, and conditional answers for what anyone may cache (RFC 9110 sections 9.3 and 13).
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from litestar import Request, Response, get, route
from litestar.handlers import HTTPRouteHandler

from ..document import Document, is_not_modified
from .docs import DocumentedOperation

__all__ = ["document_response", "readable"]


def readable(
    paths: Sequence[str],
    handler: Callable[..., Coroutine[Any, Any, Response[bytes]]],
    operation: type[DocumentedOperation],
) -> tuple[HTTPRouteHandler, HTTPRouteHandler]:
    """
    Build the routes of one resource: GET, which the OpenAPI document describes, and HEAD, whose body is cut at the edge.
    """
    documented = get(list(paths), operation_class=operation)
    return documented(handler), route(list(paths), http_method=["HEAD"], include_in_schema=False)(handler)


def document_response(
    request: Request[Any, Any, Any], document: Document, *, media_type: str, cache_control: str
) -> Response[bytes]:
    """
    Answer GET or HEAD: 304 without a body where `If-None-Match` names the document, the whole of it otherwise.

    Both carry the same `ETag` and `Cache-Control` (RFC 9110 section 15.4.5).
    """
    headers = {"Cache-Control": cache_control, "ETag": document.etag}
    if is_not_modified(request.headers.getall("if-none-match", []), document.etag):
        return Response(b"", status_code=304, headers=headers)
    return Response(document.body, status_code=200, media_type=media_type, headers=headers)
