"""
The steps in the life of a key, as pure functions from ring to ring: create, rotate, revoke one or all, settle.

A change of the times for which their key set may be cached is such a step too.

Time and key generation are parameters and nothing is stored here. A clock that went backwards never writes an instant before one
that the ring already has: up to `skew_s` behind, the ring's latest instant counts as now, since the clocks of two instances may
differ by that much. Further behind, a planned rotation is refused (`ClockBehind`); a forced one and a revocation are emergencies
and use the ring's latest instant.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from .cache_times import CacheTimes
from .errors import (
    ActiveKeyMismatch,
    ClockBehind,
    IllegalTransition,
    ReasonRequired,
    StandbyNotMature,
    TooManyRetiring,
)
from .key import SigningKey, generate_key
from .outcome import FullRevocation, Revocation, Rotation
from .record import KeyRecord, is_reason
from .ring import MAX_RETIRING, STANDBYS, KeyRing
from .timing import KeyTimes, check_instant, utc

__all__ = ["MAX_HISTORY", "Generate", "change_cache_times", "create_ring", "revoke", "revoke_all", "rotate", "settle"]

Generate = Callable[[], SigningKey]
"""Makes a new key pair."""

MAX_HISTORY: Final = 20
"""How many retired and revoked records a ring keeps; a step hands the oldest beyond them to its caller."""

_STOLEN: Final = (
    "The new keys are sealed with the present sealing key: if that was stolen too, change it and revoke all again."
)


def create_ring(workspace: str, *, now: int, times: KeyTimes, generate: Generate = generate_key) -> KeyRing:
    """
    Make the first ring of a workspace: one active key, two standbys, all published from now on.

    The active key needs no waiting time: no verifier can hold an older key set of this workspace.
    """
    cache_times = CacheTimes.first(times)
    mature_at = cache_times.mature_at(times, at=now)
    first = _activate(_standby(generate(), now=now, mature_at=now), now=now, times=times)
    standbys = (_standby(generate(), now=now, mature_at=mature_at) for _ in range(STANDBYS))
    return KeyRing(workspace, (first, *standbys), cache_times=cache_times)


def change_cache_times(ring: KeyRing, *, now: int, times: KeyTimes) -> KeyRing:
    """
    Let the key set be served with the cache times of *times* from now on; the same ring comes back when it is already.

    What was served before counts on until it can no longer be in use.

    Raises:
        ClockBehind: nothing changed; such a clock cannot tell until when that is.
    """
    if ring.cache_times.agree_with(times):
        return ring
    at = _effective_now(ring, now=now, skew_s=times.skew_s)
    return replace(ring, cache_times=ring.cache_times.changed(times, at=at))


def settle(ring: KeyRing, now: int) -> KeyRing:
    """
    Move on every retiring key whose instant has passed; the same ring comes back when there is none.

    Nothing depends on when this runs: such a key is not published any more in any case.
    """
    due = {record.kid for record in ring.retiring if not record.is_published(now)}
    if not due:
        return ring
    records = (replace(record, state="retired") if record.kid in due else record for record in ring.records)
    return replace(ring, records=tuple(records))


def rotate(
    ring: KeyRing,
    *,
    now: int,
    times: KeyTimes,
    expected_active: str | None,
    force: bool = False,
    reason: str | None = None,
    generate: Generate = generate_key,
) -> Rotation:
    """
    Let the standby that matures first sign, retire the active key and destroy its private part, make a new standby.

    *expected_active* is the kid taken for the active one, None for any. *force* does not wait for maturity and needs a reason.

    Raises:
        ActiveKeyMismatch, ReasonRequired, ClockBehind, StandbyNotMature, TooManyRetiring: nothing changed.
    """
    if expected_active not in (None, ring.active.kid):
        raise ActiveKeyMismatch(active=ring.active.kid)
    if (force or reason is not None) and not is_reason(reason):
        raise ReasonRequired
    at = _effective_now(ring, now=now, skew_s=None if force else times.skew_s)
    ring = settle(ring, at)
    promoted = _promotable(ring, at=at, force=force)
    old = _retiring(ring.active, at=at, times=times, reason=reason)
    standby = _standby(generate(), now=at, mature_at=ring.cache_times.mature_at(times, at=at))
    changed, pruned = _changed(ring, old, _activate(promoted, now=at, times=times), standby)
    return Rotation(
        ring=changed,
        old_kid=old.kid,
        new_kid=promoted.kid,
        standby_kid=standby.kid,
        at=at,
        unpublish_at=old.gone_at,
        next_rotation_at=changed.next_rotation_at,
        early=at < promoted.mature_at,
        notices=_early_notices(promoted, at=at, times=times),
        pruned=pruned,
    )


def revoke(
    ring: KeyRing, kid: str, *, now: int, times: KeyTimes, reason: str, generate: Generate = generate_key
) -> Revocation:
    """
    Take a published key out of the key set now and destroy its private part.

    When it was active, the standby that matures first signs at once, mature or not. A standby that is gone is replaced.

    Raises:
        ReasonRequired, UnknownKey, IllegalTransition (it has left the key set already): nothing changed.
    """
    if not is_reason(reason):
        raise ReasonRequired
    at = _effective_now(ring, now=now, skew_s=None)
    ring = settle(ring, at)
    old = ring.record(kid)
    if not old.is_published(at):
        raise IllegalTransition(kid=kid, state=old.state, unpublished_at=old.gone_at)
    promoted = ring.standbys[0] if old.state == "active" else None
    mature_at = ring.cache_times.mature_at(times, at=at)
    trusted_until = ring.cache_times.trusted_until(times, at=at)
    standby = None if old.state == "retiring" else _standby(generate(), now=at, mature_at=mature_at)
    activated = None if promoted is None else _activate(promoted, now=at, times=times)
    changed, pruned = _changed(ring, _revoked(old, at=at, reason=reason), activated, standby)
    return Revocation(
        ring=changed,
        kid=kid,
        was=old.state,
        promoted_kid=None if promoted is None else promoted.kid,
        standby_kid=None if standby is None else standby.kid,
        at=at,
        trusted_until=trusted_until,
        next_rotation_at=changed.next_rotation_at,
        early=promoted is not None and at < promoted.mature_at,
        notices=(*_revocation_notices((kid,), trusted_until), *_early_notices(promoted, at=at, times=times)),
        pruned=pruned,
    )


def revoke_all(
    ring: KeyRing, *, now: int, times: KeyTimes, reason: str, generate: Generate = generate_key
) -> FullRevocation:
    """
    Take every published key out of the key set now: the ring itself was stolen, its standbys with it.

    A new key signs at once, though no verifier knows it yet, and two new standbys wait. Keys that have ended stay as they are.

    Raises:
        ReasonRequired: nothing changed.
    """
    if not is_reason(reason):
        raise ReasonRequired
    at = _effective_now(ring, now=now, skew_s=None)
    ring = settle(ring, at)
    gone = tuple(_revoked(old, at=at, reason=reason) for old in ring.published(at))
    mature_at = ring.cache_times.mature_at(times, at=at)
    trusted_until = ring.cache_times.trusted_until(times, at=at)
    active, *standbys = (_standby(generate(), now=at, mature_at=mature_at) for _ in range(1 + STANDBYS))
    changed, pruned = _changed(ring, *gone, _activate(active, now=at, times=times), *standbys)
    kids = tuple(old.kid for old in gone)
    return FullRevocation(
        ring=changed,
        kids=kids,
        active_kid=active.kid,
        standby_kids=tuple(standby.kid for standby in standbys),
        at=at,
        trusted_until=trusted_until,
        next_rotation_at=changed.next_rotation_at,
        notices=(*_revocation_notices(kids, trusted_until), *_early_notices(active, at=at, times=times), _STOLEN),
        pruned=pruned,
    )


def _effective_now(ring: KeyRing, *, now: int, skew_s: int | None) -> int:
    recorded = ring.latest_instant
    if skew_s is not None and check_instant(now, "now") < recorded - skew_s:
        raise ClockBehind(now=now, recorded=recorded)
    return max(check_instant(now, "now"), recorded)


def _standby(key: SigningKey, *, now: int, mature_at: int) -> KeyRecord:
    return KeyRecord(
        kid=key.kid,
        alg=key.alg,
        state="standby",
        public_jwk=key.public_jwk,
        private_jwk=key.private_jwk,
        created_at=now,
        published_at=now,
        mature_at=mature_at,
    )


def _activate(record: KeyRecord, *, now: int, times: KeyTimes) -> KeyRecord:
    return replace(record, state="active", activated_at=now, rotation_due_at=now + times.rotation_s)


def _retiring(record: KeyRecord, *, at: int, times: KeyTimes, reason: str | None) -> KeyRecord:
    return replace(
        record,
        state="retiring",
        private_jwk=None,
        deactivated_at=at,
        unpublish_at=at + times.retirement_s,
        reason=reason,
    )


def _revoked(record: KeyRecord, *, at: int, reason: str) -> KeyRecord:
    return replace(
        record,
        state="revoked",
        private_jwk=None,
        deactivated_at=at if record.state == "active" else record.deactivated_at,
        unpublish_at=at,
        revoked_at=at,
        reason=reason,
    )


def _promotable(ring: KeyRing, *, at: int, force: bool) -> KeyRecord:
    promoted = ring.standbys[0]
    if at < promoted.mature_at and not force:
        raise StandbyNotMature(kid=promoted.kid, earliest=promoted.mature_at)
    if len(ring.retiring) >= MAX_RETIRING:
        raise TooManyRetiring(earliest=min(record.gone_at for record in ring.retiring))
    return promoted


def _changed(ring: KeyRing, *new: KeyRecord | None) -> tuple[KeyRing, tuple[KeyRecord, ...]]:
    """
    Put *new* in the place of the records of the same kid or at the end, and take out the oldest ended ones beyond the limit.
    """
    by_kid = {record.kid: record for record in (*ring.records, *new) if record is not None}
    ended = [record for record in by_kid.values() if record.state in ("retired", "revoked")]
    ended.sort(key=lambda record: record.gone_at)
    pruned = tuple(ended[: max(0, len(ended) - MAX_HISTORY)])
    for record in pruned:
        del by_kid[record.kid]
    return replace(ring, records=tuple(by_kid.values())), pruned


def _revocation_notices(kids: tuple[str, ...], trusted_until: int) -> tuple[str, ...]:
    what = f"key {kids[0]}" if len(kids) == 1 else f"{len(kids)} keys"
    them = "it" if len(kids) == 1 else "them"
    return (
        f"Tokens already signed by {what} stop verifying as verifiers fetch the key set.",
        f"A verifier that cannot reach the key set may trust {them} until {utc(trusted_until)} at worst.",
    )


def _early_notices(promoted: KeyRecord | None, *, at: int, times: KeyTimes) -> tuple[str, ...]:
    if promoted is None or at >= promoted.mature_at:
        return ()
    notice = (
        f"Key {promoted.kid} signs before {utc(promoted.mature_at)}: "
        f"verifiers that have not seen it yet may refuse its tokens for up to {times.cooldown_s} s."
    )
    return (notice,)
