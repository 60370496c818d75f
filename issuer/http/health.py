"""
What operations ask: is the process alive, can it do its work, what has it counted.

Everything is answered from memory, so that a slow store cannot make a probe kill a service that is still good. None of the
answers holds a key id, a customer or anything secret.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from ..metrics import CONTENT_TYPE, Metrics
from ..rings import RingStatus
from .documents import readable
from .problems import RETRY_AFTER_S
from .public_docs import LiveOperation, MetricsOperation, ReadyOperation

__all__ = ["LIVE_PATH", "METRICS_PATH", "READY_PATH", "operations_routes"]

LIVE_PATH: Final = "/health/live"
READY_PATH: Final = "/health/ready"
METRICS_PATH: Final = "/metrics"


def operations_routes(statuses: Callable[[], Iterable[RingStatus]], metrics: Metrics) -> tuple[HTTPRouteHandler, ...]:
    """
    Build the routes that stand at the root of the service, outside of every workspace.
    """

    async def live() -> Response[bytes]:
        return _json({"status": "ok"}, 200)

    async def ready() -> Response[bytes]:
        found = tuple(statuses())
        usable = all(status.usable for status in found)
        workspaces = {status.workspace: _ring(status) for status in found}
        return _json({"status": "ok" if usable else "unavailable", "workspaces": workspaces}, 200 if usable else 503)

    async def exposition() -> Response[bytes]:
        return Response(metrics.render(statuses()), status_code=200, media_type=CONTENT_TYPE)

    return (
        *readable([LIVE_PATH], live, LiveOperation),
        *readable([READY_PATH], ready, ReadyOperation),
        *readable([METRICS_PATH], exposition, MetricsOperation),
    )


def _ring(status: RingStatus) -> dict[str, Any]:
    return {
        "usable": status.usable,
        "view_age_seconds": round(status.view_age_s, 1),
        "active_key_age_seconds": status.active_age_s,
        "rotation_overdue": status.overdue,
        "rotation_problem": status.rotation_problem,
        "key_age_alarm": status.alarm,
        "problem": status.problem,
    }


def _json(members: dict[str, Any], status: int) -> Response[bytes]:
    headers = {"Cache-Control": "no-store"} | ({"Retry-After": str(RETRY_AFTER_S)} if status == 503 else {})
    body = json.dumps(members, separators=(",", ":")).encode()
    return Response(body, status_code=status, media_type="application/json", headers=headers)
