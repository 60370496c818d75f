"""
Where an HTTP request comes from, as its connection and the proxies that are trusted tell.
"""

from typing import Any

from litestar import Request

from ..source import Sources

__all__ = ["find_source"]


def find_source(request: Request[Any, Any, Any], sources: Sources) -> str:
    """
    Return the address that *request* comes from, or `unknown`; see `Sources.find`.
    """
    peer = request.scope["client"]
    return sources.find(peer[0] if peer else None, request.headers.getall("x-forwarded-for", []))
