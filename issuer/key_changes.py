"""
Changes of keys as a ledger carries them out: a step in the life of a key, its record for the trail, what is told of it. Pure.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from keys import KeyRecord, KeyRing, KeyTimes, change_cache_times, revoke, revoke_all, rotate

from .audit import Actor, Entry
from .ledger import Change

__all__ = ["KeyChange", "change_of_cache_times", "full_revocation", "revocation", "rotation"]

KeyChange = Change[Mapping[str, Any]]
"""A change whose result is what an admin is told about it, as JSON."""

_PRIVATE: Final = frozenset({"private_jwk", "public_jwk"})


def rotation(
    ring: KeyRing,
    now: int,
    *,
    actor: Actor,
    times: KeyTimes,
    expected_active: str | None,
    force: bool,
    reason: str | None,
) -> KeyChange:
    """
    Rotate.

    Raises:
        TransitionRefused: as `keys.rotate` does.
    """
    done = rotate(ring, now=now, times=times, expected_active=expected_active, force=force, reason=reason)
    told = {
        "retired": done.old_kid,
        "active": done.new_kid,
        "standby": done.standby_kid,
        "at": done.at,
        "unpublish_at": done.unpublish_at,
        "next_rotation_at": done.next_rotation_at,
        "early": done.early,
    }
    entry = Entry(
        at=now,
        actor=actor,
        event="keys_rotated",
        target=done.old_kid,
        reason=reason,
        before={"active": done.old_kid},
        after={**told, "forced": force, "pruned": _facts(done.pruned)},
    )
    return Change(ring=done.ring, entries=(entry,), result={**told, "notices": done.notices})


def revocation(ring: KeyRing, now: int, *, actor: Actor, times: KeyTimes, kid: str, reason: str) -> KeyChange:
    """
    Revoke one key.

    Raises:
        TransitionRefused: as `keys.revoke` does.
    """
    done = revoke(ring, kid, now=now, times=times, reason=reason)
    told = {
        "revoked": done.kid,
        "was": done.was,
        "active": done.ring.active.kid,
        "promoted": done.promoted_kid,
        "standby": done.standby_kid,
        "at": done.at,
        "trusted_until": done.trusted_until,
        "next_rotation_at": done.next_rotation_at,
        "early": done.early,
    }
    entry = Entry(
        at=now,
        actor=actor,
        event="key_revoked",
        target=done.kid,
        reason=reason,
        before={"state": done.was, "active": ring.active.kid},
        after={**told, "pruned": _facts(done.pruned)},
    )
    return Change(ring=done.ring, entries=(entry,), result={**told, "notices": done.notices})


def full_revocation(ring: KeyRing, now: int, *, actor: Actor, times: KeyTimes, reason: str) -> KeyChange:
    """
    Revoke every published key.

    Raises:
        TransitionRefused: as `keys.revoke_all` does.
    """
    done = revoke_all(ring, now=now, times=times, reason=reason)
    told = {
        "revoked": done.kids,
        "active": done.active_kid,
        "standbys": done.standby_kids,
        "at": done.at,
        "trusted_until": done.trusted_until,
        "next_rotation_at": done.next_rotation_at,
    }
    entry = Entry(
        at=now,
        actor=actor,
        event="keys_revoked",
        reason=reason,
        before={"active": ring.active.kid},
        after={**told, "pruned": _facts(done.pruned)},
    )
    return Change(ring=done.ring, entries=(entry,), result={**told, "notices": done.notices})


def change_of_cache_times(ring: KeyRing, now: int, *, actor: Actor, times: KeyTimes) -> KeyChange:
    """
    Let the key set be served with the configured cache times; where it is already, nothing changes.

    Raises:
        ClockBehind: as `keys.change_cache_times` does.
    """
    changed = change_cache_times(ring, now=now, times=times)
    if changed is ring:
        return Change(ring=ring, entries=(), result={})
    after = asdict(changed.cache_times)
    entry = Entry(at=now, actor=actor, event="cache_times_changed", before=asdict(ring.cache_times), after=after)
    return Change(ring=changed, entries=(entry,), result=after)


def _facts(pruned: tuple[KeyRecord, ...]) -> list[Mapping[str, Any]]:
    """
    Write down the records that the ring no longer holds: the trail is where they stay.
    """
    names = [member.name for member in fields(KeyRecord) if member.name not in _PRIVATE]
    return [
        {name: value for name in names if (value := getattr(record, name)) is not None} | dict(_point(record))
        for record in pruned
    ]


def _point(record: KeyRecord) -> Mapping[str, str]:
    return {name: record.public_jwk[name] for name in ("x", "y")}
