"""
Conditional answers for documents that anyone may read and cache: the key set and the metadata (RFC 9110 section 13).
"""

from typing import Any

from litestar import Request, Response

from ..document import Document, is_not_modified

__all__ = ["document_response"]


def document_response(
    request: Request[Any, Any, Any], document: Document, *, media_type: str, cache_control: str
) -> Response[bytes]:
    """
    Answer GET or HEAD: 304 without a body where `If-None-Match` names the document, the whole of it otherwise.

    Both carry the same `ETag` and `Cache-Control` (RFC 9110 section 15.4.5). The body of a HEAD answer is cut at the edge.
    """
    headers = {"Cache-Control": cache_control, "ETag": document.etag}
    if is_not_modified(request.headers.getall("if-none-match", []), document.etag):
        return Response(b"", status_code=304, headers=headers)
    return Response(document.body, status_code=200, media_type=media_type, headers=headers)
