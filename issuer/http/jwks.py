"""
The published keys of a workspace (RFC 7517 section 5), as partner APIs fetch them.

The bytes are encoded when the ring changes, not when somebody asks. While the ring cannot be trusted the answer is 503 and never
stored: an error must not be cached over good keys, and an empty key set would withdraw them all.
"""

from collections.abc import Callable
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from keys import CacheTimes, KeyTimes
from verifier.fetch import JWKS_PATH

from ..metrics import Metrics
from ..registry import Workspace
from ..rings import LiveRing, RingUnavailable
from .documents import document_response, readable
from .public_docs import KeySetOperation

__all__ = ["cache_control", "jwks_routes"]

_MEDIA_TYPE: Final = "application/jwk-set+json"


def jwks_routes(
    workspace: Workspace, ring: LiveRing, *, times: KeyTimes, metrics: Metrics, now: Callable[[], float]
) -> tuple[HTTPRouteHandler, ...]:
    """
    Build GET and HEAD of the key set; it may be cached for as long as *times* say and the ring counts with.
    """

    async def key_set(request: Request[Any, Any, Any]) -> Response[bytes]:
        try:
            view = ring.current(now())
        except RingUnavailable:
            metrics.key_set_asked(workspace.name, "unavailable")
            raise
        served = cache_control(times, view.cache_times)
        response = document_response(request, view.jwks, media_type=_MEDIA_TYPE, cache_control=served)
        metrics.key_set_asked(workspace.name, "not_modified" if response.status_code == 304 else "full")
        return response

    return readable([workspace.path + JWKS_PATH], key_set, KeySetOperation)


def cache_control(configured: KeyTimes, counted: CacheTimes) -> str:
    """
    Return how long the key set may be cached: as configured, and no longer than the ring counts with.

    What the ring does not count with would make the bound of a revocation untrue.
    """
    max_age_s = min(configured.max_age_s, counted.max_age_s)
    stale_if_error_s = min(configured.stale_if_error_s, counted.stale_if_error_s)
    return f"public, max-age={max_age_s}, stale-if-error={stale_if_error_s}"
