"""
`customer-context keys`: the keys of a workspace, by its stores or through a running service.
"""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from keys import FileKeyStore, RevisionConflict, create_ring, utc

from ..settings import Settings, build_registry
from ..settings_sealing import key_times, load_sealing_keys, ring_path
from .administer import Administered, administered, json_option, workspace_option
from .facts import show, show_json
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
    Create, list, rotate and revoke signing keys.
    """


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
        ring = create_ring(name, now=_now(), times=key_times(settings))
        try:
            asyncio.run(_store(settings, name).save(ring, expect=0))
        except RevisionConflict:
            click.echo(f"{name}: has a ring already, left as it is")
            continue
        created += 1
        click.echo(f"{name}: created; key {ring.active.kid} signs, two standbys are published")
    if workspace and not created:
        fail(f"workspace {workspace!r} has a ring already")


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


def _now() -> int:
    return int(time.time())


def _store(settings: Settings, workspace: str) -> FileKeyStore:
    return FileKeyStore(ring_path(settings, workspace), workspace, load_sealing_keys(settings))


def _row(row: Mapping[str, Any]) -> str:
    following = row["next"]
    what = "" if following is None else f"{_NEXT[following['what']]} {utc(following['at'])}"
    reason = "" if row["reason"] is None else f"  ({row['reason']})"
    return f"  {row['kid']}  {row['state']:<8}  {what}{reason}".rstrip()
