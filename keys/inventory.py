"""
The inventory of a ring: what each key is, when what happened to it, and what happens next; public parts only.
"""

from typing import Final

from .record import KeyRecord
from .ring import KeyRing

__all__ = ["inventory"]

_INSTANTS: Final = (
    "created_at",
    "published_at",
    "mature_at",
    "activated_at",
    "rotation_due_at",
    "deactivated_at",
    "unpublish_at",
    "revoked_at",
)


def inventory(ring: KeyRing, now: int) -> list[dict[str, object]]:
    """
    List every key as a JSON-able row: kid, alg, state, published, all instants, reason and `next`.

    `next` is `{"what", "at"}` with what one of `may_activate`, `rotation_due`, `unpublish`, or None when nothing is left to
    happen. The active key comes first, then standbys, retiring keys and ended ones, the latest of those first.
    """
    ended = [record for record in ring.records if record.state in ("retired", "revoked")]
    ended.sort(key=lambda record: record.gone_at, reverse=True)
    return [_row(record, now) for record in (ring.active, *ring.standbys, *ring.retiring, *ended)]


def _row(record: KeyRecord, now: int) -> dict[str, object]:
    return {
        "kid": record.kid,
        "alg": record.alg,
        "state": record.state,
        "published": record.is_published(now),
        **{name: getattr(record, name) for name in _INSTANTS},
        "reason": record.reason,
        "next": _next(record, now),
    }


def _next(record: KeyRecord, now: int) -> dict[str, object] | None:
    if record.state == "standby":
        return {"what": "may_activate", "at": record.mature_at}
    if record.state == "active":
        return {"what": "rotation_due", "at": record.rotation_due_at}
    if record.is_published(now):
        return {"what": "unpublish", "at": record.unpublish_at}
    return None
