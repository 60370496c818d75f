"""
Changes of suspensions as a ledger carries them out, with their records for the trail and what is told about them. Pure.

Customers stand there by namespace and keyed hash: whom an admin named is recognised by the hash, and by nothing else.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from keys import KeyRing, KeyTimes, utc
from verifier.claims import MAX_LIFETIME_S

from .audit import Actor, Entry
from .audit.record import Event
from .ledger import Change
from .registry import Workspace
from .suspensions import InvalidSuspension, Suspension, Target, read_suspensions, ring_with_suspensions

__all__ = ["Hashed", "SuspensionChange", "check_name", "described", "lifting", "suspending"]

Hashed = Callable[[str], str]
"""Returns what stands for a customer id in records."""

SuspensionChange = Change[Mapping[str, Any]]
"""A change whose result is what an admin is told about it, as JSON."""

_MAX_NAME: Final = 256
# Each instance looks at its ring twice a second.
_NOTICED_S: Final = 1


def check_name(target: Target) -> None:
    """
    Let a target pass whose name can stand in the trail, as that of every customer can.

    Raises:
        InvalidSuspension: when it cannot.
    """
    if target.kind != "customer" and not (len(target.value) <= _MAX_NAME and target.value.isprintable()):
        raise InvalidSuspension(f"a suspended name is 1 to {_MAX_NAME} printable characters")


def suspending(
    ring: KeyRing,
    now: int,
    *,
    suspension_id: str,
    target: Target,
    reason: str,
    until: int | None,
    actor: Actor,
    workspace: Workspace,
    times: KeyTimes,
    hashed: Hashed,
) -> SuspensionChange:
    """
    Suspend a target from *now* on, whether the configuration knows it or not.

    Raises:
        SuspensionsFull: when there is no room for one more.
        InvalidSuspension: when the reason or the instant lies outside its bounds.
    """
    added = Suspension(id=suspension_id, target=target, reason=reason, at=now, until=until)
    after = read_suspensions(ring).in_force(now).with_added(added)
    told = described(added, hashed)
    entry = _entry("suspension_added", added, now, actor=actor, hashed=hashed, reason=reason, after=told)
    expires_by = now + _NOTICED_S + MAX_LIFETIME_S
    notices = (*_unknown(target, workspace), _when_it_holds(expires_by, times))
    result = {**told, "tokens_expire_by": expires_by, "notices": notices}
    return Change(ring=ring_with_suspensions(ring, after), entries=(entry,), result=result)


def lifting(ring: KeyRing, now: int, *, suspension_id: str, actor: Actor, hashed: Hashed) -> SuspensionChange:
    """
    End a suspension.

    Raises:
        UnknownSuspension: when there is none of that id that still holds.
    """
    after, lifted = read_suspensions(ring).in_force(now).without(suspension_id)
    told = described(lifted, hashed)
    entry = _entry("suspension_lifted", lifted, now, actor=actor, hashed=hashed, before=told)
    return Change(ring=ring_with_suspensions(ring, after), entries=(entry,), result={"lifted": told})


def described(suspension: Suspension, hashed: Hashed) -> Mapping[str, Any]:
    """
    Return what is shown of a suspension.
    """
    target = suspension.target
    named: dict[str, Any] = {"value": target.value}
    if target.kind == "customer":
        named = {"namespace": target.namespace, "customer_hash": hashed(target.value)}
    return {
        "id": suspension.id,
        "kind": target.kind,
        **named,
        "reason": suspension.reason,
        "at": suspension.at,
        "until": suspension.until,
    }


def _entry(event: Event, suspension: Suspension, now: int, *, actor: Actor, hashed: Hashed, **facts: Any) -> Entry:
    target = suspension.target
    name = hashed(target.value) if target.kind == "customer" else target.value
    return Entry(at=now, actor=actor, event=event, target=name, **facts)


def _unknown(target: Target, workspace: Workspace) -> Iterator[str]:
    """
    Say when the configuration does not know a name: one that was mistyped cuts nobody off.
    """
    match target.kind:
        case "client":
            is_known = target.value in workspace.clients
        case "agent":
            is_known = any(target.value in client.agents for client in workspace.clients.values())
        case "customer":
            is_known = any(target.namespace == each.namespace for each in workspace.connections)
        case _:
            is_known = workspace.action(target.value) is not None
    if not is_known:
        what = "identity namespace" if target.kind == "customer" else target.kind
        yield f"The configuration has no {what} of this name. It is suspended all the same; is it the one you meant?"


def _when_it_holds(expires_by: int, times: KeyTimes) -> str:
    return (
        f"Tokens that were minted before expire by {utc(expires_by)}, a verifier's tolerance aside. "
        f"An instance that cannot reach the key store may mint for up to {times.lease_s} s more."
    )
