"""
`customer-context keys`: the keys of a workspace, by its stores or through a running service.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from keys import KeyRing, KeyTimes, RevisionConflict, RingMissing, create_ring, utc

from ..audit import Entry
from ..settings import build_registry
from ..settings_sealing import key_times
from ..workspace_stores import WorkspaceStores
from .administer import Administered, administered, json_option, operator, workspace_option
from .facts import show, show_json
from .keys_backup import backup_command, restore_command
from .keys_copy import copy_command
from .keys_plan import plan_command
from .keys_reseal import reseal_command
from .on_stores import now, on_stores
from .options import config_option, fail, read_settings, readable_errors, workspace_named

__all__ = ["command"]

_NEXT: Final = {
    "may_activate": "may become active",
    "rotation_due": "rotation due",
    "unpublish": "leaves the key set",
}


@click.group("keys")
def command() -> None:
    """
    Create, list, plan, rotate and revoke signing keys; back up, restore, copy and reseal their rings.
    """


for _each in (plan_command, copy_command, backup_command, restore_command, reseal_command):
    command.add_command(_each)


@command.command("init")
@config_option
@workspace_option
@readable_errors
def _init(config: Path | None, workspace: str | None) -> None:
    """
    Create the key ring of a workspace, or of each one that has none; nothing that exists is touched.
    """
    settings = read_settings(config)
    names = (
        [workspace_named(settings, workspace).name] if workspace else [each.name for each in build_registry(settings)]
    )
    created = 0
    for name in names:
        ring = on_stores(settings, name, lambda stores: _create(stores, key_times(settings)))
        if ring is None:
            click.echo(f"{name}: has a ring already, left as it is")
            continue
        created += 1
        click.echo(f"{name}: created; key {ring.active.kid} signs, two standbys are published")
    if workspace and not created:
        fail(f"workspace {workspace!r} has a ring already")


async def _create(stores: WorkspaceStores, times: KeyTimes) -> KeyRing | None:
    """
    Create a ring and put that on record; None when there is one.
    """
    try:
        await stores.ring.load()
    except RingMissing:
        ring = create_ring(stores.ring.workspace, now=int(now()), times=times)
    else:
        return None
    # A trail that knows of a ring says that there was one: it is to be restored, not made anew.
    await stores.ledger.check_candidate(ring, 1)
    try:
        await stores.ring.save(ring, expect=0)
    except RevisionConflict:
        return None
    entry = Entry(at=int(now()), actor=operator(), event="ring_created", target=ring.active.kid)
    await stores.ledger.note(entry)
    return ring


@command.command("list")
@administered
@json_option
def _list(target: Administered, *, as_json: bool) -> None:
    """
    Show every key with its state, its instants and what happens next.
    """
    told = target.keys()
    if as_json:
        show_json(told)
        return
    click.echo(f"workspace {told['workspace']}, revision {told['revision']}")
    for row in told["keys"]:
        click.echo(_row(row))
    for notice in told["notices"]:
        click.echo(f"note: {notice}")


@command.command("rotate")
@administered
@json_option
@click.option("--expected-active", metavar="KID", help="Rotate only if this key is the active one.")
@click.option("--force", is_flag=True, help="Rotate although no standby is mature; needs --reason.")
@click.option("--reason", help="Why; stands on the key that is retired, and in the audit trail.")
def _rotate(
    target: Administered, expected_active: str | None, reason: str | None, *, force: bool, as_json: bool
) -> None:
    """
    Let a standby sign and retire the active key; no valid token is refused by a planned rotation.
    """
    show(target.rotate(expected_active=expected_active, force=force, reason=reason), as_json=as_json)


# A kid may begin with a dash, which must not make an option of it: in an emergency nobody thinks of `--`.
@command.command("revoke", context_settings={"ignore_unknown_options": True})
@administered
@json_option
@click.argument("kid")
@click.option("--reason", required=True, help="Why; stands on the key, and in the audit trail.")
def _revoke(target: Administered, kid: str, reason: str, *, as_json: bool) -> None:
    """
    Take the key KID out of the key set now; if it signs, a standby signs in its place now.
    """
    show(target.revoke(kid, reason=reason), as_json=as_json)


@command.command("revoke-all")
@administered
@json_option
@click.option("--reason", required=True, help="Why; stands on every key, and in the audit trail.")
def _revoke_all(target: Administered, reason: str, *, as_json: bool) -> None:
    """
    Take every key out of the key set now, because the ring itself was stolen; a new key signs now.
    """
    show(target.revoke_all(reason=reason), as_json=as_json)


def _row(row: Mapping[str, Any]) -> str:
    following = row["next"]
    what = "" if following is None else f"{_NEXT[following['what']]} {utc(following['at'])}"
    reason = "" if row["reason"] is None else f"  ({row['reason']})"
    return f"  {row['kid']}  {row['state']:<8}  {what}{reason}".rstrip()
