"""
Answers of the admin routes as the OpenAPI document shows them.
"""

from typing import Any, Final

__all__ = ["AUDIT", "KEYS", "LIFTED", "REVOKED", "REVOKED_ALL", "ROTATED", "SUSPENDED", "SUSPENSIONS"]

_NOW: Final = 1_796_040_000
_DAY: Final = 86_400
_FIRST: Final = "lxn_9vHeTQ4ezB3BeyXJr_oRIq0WKNfdgC-fwyOEmUA"
_SECOND: Final = "Wm1cJ4c0yQJv1zS0m3KpY8vPq2u5s9tB7aXr6eDfGhI"
_THIRD: Final = "pQ2rS3tU4vW5xY6zA7bC8dE9fG0hI1jK2lM3nO4pQ5s"
_HEAD_LINK: Final = "Tv8zM67ztTuWb6PFMOGvqOAd2oX7yCCEGig1-pPq6bM"
_REVISION: Final = {"workspace": "acme", "revision": 8, "recorded": True}


def _key(kid: str, state: str, following: dict[str, Any], **instants: int) -> dict[str, Any]:
    names = ("created_at", "published_at", "mature_at", "activated_at", "rotation_due_at", "deactivated_at")
    at = {name: instants.get(name) for name in (*names, "unpublish_at", "revoked_at")}
    return {"kid": kid, "alg": "ES256", "state": state, "published": True, **at, "reason": None, "next": following}


def _waiting(kid: str, published_at: int) -> dict[str, Any]:
    mature_at = published_at + 350
    instants = {"created_at": published_at, "published_at": published_at, "mature_at": mature_at}
    return _key(kid, "standby", {"what": "may_activate", "at": mature_at}, **instants)


KEYS: Final[dict[str, Any]] = {
    "workspace": "acme",
    "revision": 7,
    "active": _FIRST,
    "next_rotation_at": _NOW - 12 * _DAY + 350,
    "keys": [
        _key(
            _FIRST,
            "active",
            {"what": "rotation_due", "at": _NOW + 18 * _DAY},
            created_at=_NOW - 42 * _DAY,
            published_at=_NOW - 42 * _DAY,
            mature_at=_NOW - 42 * _DAY + 350,
            activated_at=_NOW - 12 * _DAY,
            rotation_due_at=_NOW + 18 * _DAY,
        ),
        _waiting(_SECOND, _NOW - 42 * _DAY),
        _waiting(_THIRD, _NOW - 12 * _DAY),
    ],
    "notices": [],
}

ROTATED: Final[dict[str, Any]] = {
    **_REVISION,
    "retired": _FIRST,
    "active": _SECOND,
    "standby": _THIRD,
    "at": _NOW,
    "unpublish_at": _NOW + 140,
    "next_rotation_at": _NOW + 350,
    "early": False,
    "notices": [],
}

_MINTED: Final = {
    "by": "this instance",
    "since": _NOW - 600,
    "total": 1312,
    "counts": [
        {"audience": "https://api.shop.example", "action": None, "count": 1260},
        {"audience": "https://api.shop.example", "action": "cancel_order", "count": 52},
    ],
}

REVOKED: Final[dict[str, Any]] = {
    **_REVISION,
    "revoked": _FIRST,
    "was": "active",
    "active": _SECOND,
    "promoted": _SECOND,
    "standby": _THIRD,
    "at": _NOW,
    "trusted_until": _NOW + 285,
    "next_rotation_at": _NOW + 350,
    "early": False,
    "notices": ["A verifier that cannot reach the key set may trust it until 2026-11-30T12:04:45Z at worst."],
    "minted": _MINTED,
}

REVOKED_ALL: Final[dict[str, Any]] = {
    **_REVISION,
    "revoked": [_FIRST],
    "active": _SECOND,
    "standbys": [_THIRD],
    "at": _NOW,
    "trusted_until": _NOW + 285,
    "next_rotation_at": _NOW + 350,
    "notices": [],
    "minted": _MINTED,
}

_SUSPENSION: Final = {
    "id": "sus_7SM1F1g6eyI",
    "kind": "customer",
    "namespace": "shop-login",
    "customer_hash": "cus_JkixA7qUmrWEL1ruDMPJVQ",
    "reason": "Their account was taken over.",
    "at": _NOW,
    "until": _NOW + _DAY,
}

SUSPENDED: Final[dict[str, Any]] = {
    **_REVISION,
    **_SUSPENSION,
    "tokens_expire_by": _NOW + 61,
    "notices": ["An instance that cannot reach the key store may mint for up to 15 s more."],
}

SUSPENSIONS: Final[dict[str, Any]] = {
    "workspace": "acme",
    "revision": 8,
    "suspensions": [
        {
            "id": "sus_eyIwdzoeMtM",
            "kind": "client",
            "value": "orc_main",
            "reason": "Its secret leaked.",
            "at": _NOW,
            "until": None,
        },
        _SUSPENSION,
    ],
}

LIFTED: Final[dict[str, Any]] = {**_REVISION, "lifted": _SUSPENSION}

AUDIT: Final[dict[str, Any]] = {
    "workspace": "acme",
    "head": f"42.{_HEAD_LINK}",
    "records": [
        {
            "v": 1,
            "seq": 42,
            "at": _NOW,
            "workspace": "acme",
            "actor": {"kind": "admin", "name": "secops"},
            "source": "192.0.2.7",
            "event": "keys_rotated",
            "outcome": "done",
            "target": _FIRST,
            "reason": None,
            "before": {"active": _FIRST},
            "after": {"active": _SECOND, "forced": False},
            "count": 1,
            "revision": 8,
            "follows": 41,
            "epoch": 1,
            "sealing_key": None,
            "prev": "zqc1h_H5DQgJvn3e_xtCbInAx8j55nLX0cM_T1YPNKo",
            "hash": _HEAD_LINK,
            "carried_out": True,
        }
    ],
    "unreadable": 0,
    "next": {"before": 42},
}
