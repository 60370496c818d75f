"""
What a security team does to one workspace: keys, suspensions, the trail.

The HTTP routes, the commands and the schedule all come through here, so that nothing changes without its record and everybody is
told the same.
"""

import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, Self, TypeVar

from keys import KeyRing, KeyTimes, inventory

from .audit import Actor, Head, TrailDamaged, head_of
from .audit.page import Page, Row
from .audit.record import record_members
from .key_changes import change_of_cache_times, full_revocation, revocation, rotation
from .key_notices import key_notices
from .ledger import Decide, Done
from .mint_counts import Minted
from .registry import Workspace
from .suspension_changes import check_name, described, lifting, suspending
from .suspensions import Target, read_suspensions

__all__ = ["Administration", "AuditedChanges", "RingReader", "Told"]

_T = TypeVar("_T")

_ID_OCTETS: Final = 8


class AuditedChanges(Protocol):
    """
    What changes a ring together with its trail: a `Ledger`.
    """

    def change(self, decide: Decide[_T], *, emergency: bool = False) -> Awaitable[Done[_T]]:
        """
        Carry out what *decide* decides, with its records.
        """
        ...

    def page(self, *, before: int | None = None, limit: int = 50) -> Awaitable[Page]:
        """
        Read some records of the trail, the latest first.
        """
        ...

    def customer_hash(self, sub: str) -> str:
        """
        Return what stands for a customer in records.
        """
        ...


class RingReader(Protocol):
    """
    Where a ring is read from, whether its trail is at hand or not: a `KeyStore`.
    """

    def load(self) -> Awaitable[tuple[KeyRing, int]]:
        """
        Return the ring and its revision.
        """
        ...


@dataclass(frozen=True, slots=True)
class Told:
    """
    What an admin is told, as JSON, and the head of the trail that goes with it; None when the ring says nothing about it.
    """

    members: Mapping[str, Any] = field(repr=False)
    head: Head | None


async def _nobody_waits() -> None:
    """
    Tell nobody that the ring has changed.
    """


class Administration:
    """
    Administer one workspace. Who may do what is settled before.

    Methods that change something take who does it. What a ledger raises passes through: nothing is in force then, but for a
    `FileUnwritable` whose outcome is unknown. Whatever cuts off, revocations and suspensions, does not wait for the trail.
    """

    __slots__ = ("_adopt", "_changes", "_minted", "_now", "_ring", "_times", "_workspace")

    def __init__(
        self,
        workspace: Workspace,
        *,
        changes: AuditedChanges,
        ring: RingReader,
        times: KeyTimes,
        now: Callable[[], float],
        minted: Callable[[Collection[str], float], Minted] | None = None,
        adopt: Callable[[], Awaitable[None]] = _nobody_waits,
    ) -> None:
        """
        Take the parts; *now* is the wall clock in epoch seconds.

        *minted* tells what was minted under keys, where somebody mints. *adopt* is awaited after each change, so that the process
        that made it is the first to follow it.
        """
        self._workspace = workspace
        self._changes = changes
        self._ring = ring
        self._times = times
        self._now = now
        self._minted = minted
        self._adopt = adopt

    def of(self, workspace: Workspace) -> Self:
        """
        Return an administration of the same keys and trail for the workspace as it is configured now.
        """
        renewed = copy(self)
        renewed._workspace = workspace  # noqa: SLF001 -- a copy of this class
        return renewed

    async def keys(self) -> Told:
        """
        List every key with its state, its instants, what happens next and when.
        """
        ring, revision = await self._ring.load()
        members = {
            "workspace": ring.workspace,
            "revision": revision,
            "active": ring.active.kid,
            "next_rotation_at": ring.next_rotation_at,
            "keys": inventory(ring, int(self._now())),
            "notices": [*key_notices(self._workspace, ring, self._times, int(self._now()))],
        }
        return Told(members, _head(ring))

    async def rotate(
        self, actor: Actor, *, expected_active: str | None, force: bool = False, reason: str | None = None
    ) -> Told:
        """
        Let a standby sign and retire the active key; see `keys.rotate`.

        Raises:
            TransitionRefused: when that is not possible.
        """
        decide = partial(
            rotation, actor=actor, times=self._times, expected_active=expected_active, force=force, reason=reason
        )
        return await self._change(decide)

    async def revoke(self, actor: Actor, kid: str, *, reason: str) -> Told:
        """
        Take one published key out of the key set now; see `keys.revoke`. What was minted under it just before is told too.

        Raises:
            TransitionRefused: when it is not published, or the reason says nothing.
        """
        decide = partial(revocation, actor=actor, times=self._times, kid=kid, reason=reason)
        return await self._revoke(decide, lambda told: (told["revoked"],))

    async def revoke_all(self, actor: Actor, *, reason: str) -> Told:
        """
        Take every published key out of the key set now; see `keys.revoke_all`. What was minted under them is told too.

        Raises:
            TransitionRefused: when the reason says nothing.
        """
        decide = partial(full_revocation, actor=actor, times=self._times, reason=reason)
        return await self._revoke(decide, lambda told: told["revoked"])

    async def change_cache_times(self, actor: Actor) -> Told:
        """
        Let every instance serve the key set with the cache times that are configured here, as far as it is configured for them.

        Raises:
            TransitionRefused: when the clock is too far behind to tell until when the earlier ones count.
        """
        return await self._change(partial(change_of_cache_times, actor=actor, times=self._times))

    async def suspend(self, actor: Actor, target: Target, *, reason: str, until: int | None = None) -> Told:
        """
        Mint nothing for *target* from now on, until *until* (epoch seconds) or until it is lifted.

        A target that the configuration does not know is suspended too, and it is told so.

        Raises:
            SuspensionsFull: when there is no room for one more.
            InvalidSuspension: when a name, the reason or the instant lies outside its bounds.
        """
        check_name(target)
        decide = partial(
            suspending,
            suspension_id=f"sus_{secrets.token_urlsafe(_ID_OCTETS)}",
            target=target,
            reason=reason,
            until=until,
            actor=actor,
            workspace=self._workspace,
            times=self._times,
            hashed=self._changes.customer_hash,
        )
        return await self._change(decide, emergency=True)

    async def lift(self, actor: Actor, suspension_id: str) -> Told:
        """
        End a suspension.

        Raises:
            UnknownSuspension: when there is none of that id that still holds.
        """
        decide = partial(lifting, suspension_id=suspension_id, actor=actor, hashed=self._changes.customer_hash)
        return await self._change(decide)

    async def suspensions(self) -> Told:
        """
        List the suspensions that hold, of customers the namespace and the keyed hash that stands in the trail.
        """
        ring, revision = await self._ring.load()
        holding = read_suspensions(ring).in_force(self._now()).all
        listed = [described(each, self._changes.customer_hash) for each in holding]
        members = {"workspace": ring.workspace, "revision": revision, "suspensions": listed}
        return Told(members, _head(ring))

    async def audit(self, *, before: int | None = None, limit: int = 50) -> Told:
        """
        Read the last records, or the last before a number, the latest first.

        Raises:
            TrailUnavailable: when the trail cannot be read.
            ValueError: when *limit* is not 1 to 200, or *before* is not a number from 1 on.
        """
        page = await self._changes.page(before=before, limit=limit)
        return self._page(page, page.rows, {"before": page.before})

    async def audit_after(self, after: int, *, limit: int = 50) -> Told:
        """
        Read the records after a number, 0 for all, in their order: what somebody asks for again and again to collect them.

        Records behind the head of the trail are left out until it is known whether they were carried out.

        Raises:
            TrailUnavailable: when the trail cannot be read.
            ValueError: when *limit* is not 1 to 200, or *after* is negative.
        """
        if after < 0:
            raise ValueError("a record has a number from 1 on")
        head = head_of((await self._ring.load())[0])
        last = max(after, min(after + limit, head.seq))
        page = await self._changes.page(before=last + 1, limit=limit)
        rows = tuple(row for row in reversed(page.rows) if after < row.record.seq <= last)
        return self._page(page, rows, {"after": last})

    async def _revoke(
        self, decide: Decide[Mapping[str, Any]], kids: Callable[[Mapping[str, Any]], Collection[str]]
    ) -> Told:
        told = await self._change(decide, emergency=True)
        if self._minted is None:
            return told
        minted = _counted(self._minted(kids(told.members), self._now()))
        return Told({**told.members, "minted": minted}, told.head)

    async def _change(self, decide: Decide[Mapping[str, Any]], *, emergency: bool = False) -> Told:
        done = await self._changes.change(decide, emergency=emergency)
        await self._adopt()
        members = {"workspace": self._workspace.name, "revision": done.revision, "recorded": done.is_recorded}
        return Told({**members, **done.result}, done.head)

    def _page(self, page: Page, rows: tuple[Row, ...], following: Mapping[str, int | None]) -> Told:
        members = {
            "workspace": self._workspace.name,
            "head": str(page.head),
            "records": [_record(row) for row in rows],
            "unreadable": page.unreadable,
            "next": following,
        }
        return Told(members, page.head)


def _head(ring: KeyRing) -> Head | None:
    try:
        return head_of(ring)
    except TrailDamaged:
        return None


def _counted(minted: Minted) -> Mapping[str, Any]:
    counts = [{"audience": each.audience, "action": each.action, "count": each.count} for each in minted.counts]
    return {"by": "this instance", "since": minted.since, "total": minted.total, "counts": counts}


def _record(row: Row) -> Mapping[str, Any]:
    return {**record_members(row.record), "hash": row.link, "carried_out": row.is_carried_out}
