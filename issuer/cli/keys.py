"""
`customer-context keys`: the key rings in the data folder, also while the service runs; it notices a change within a second.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from keys import FileKeyStore, KeyRing, RevisionConflict, create_ring, inventory, revoke, rotate, utc

from ..settings import Settings, build_registry
from ..settings_sealing import key_times, load_sealing_keys, ring_path
from .options import config_option, fail, read_settings, readable_errors, workspace_named

__all__ = ["command"]

_NEXT: Final = {
    "may_activate": "may become active",
    "rotation_due": "rotation due",
    "unpublish": "leaves the key set",
}
# The words of `list` for facts whose names in JSON are others.
_LABELS: Final = {
    "retired": "retiring",
    "unpublish_at": "leaves the key set",
    "next_rotation_at": "may rotate from",
    "trusted_until": "trusted until",
}
_workspace_option = click.option("--workspace", help="The workspace; needed when there is more than one.")
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("keys")
def command() -> None:
    """
    Create, list, rotate and revoke signing keys.
    """


@command.command("init")
@config_option
@_workspace_option
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
@config_option
@_workspace_option
@_json_option
@readable_errors
def _list(config: Path | None, workspace: str | None, *, as_json: bool) -> None:
    """
    Show every key with its state, its instants and what happens next.
    """
    settings = read_settings(config)
    name = workspace_named(settings, workspace).name
    ring, revision = asyncio.run(_store(settings, name).load())
    rows = inventory(ring, _now())
    if as_json:
        click.echo(json.dumps({"workspace": name, "revision": revision, "keys": rows}, indent=2))
        return
    click.echo(f"workspace {name}, revision {revision}")
    for row in rows:
        click.echo(_row(row))


@command.command("rotate")
@config_option
@_workspace_option
@_json_option
@click.option("--expected-active", metavar="KID", help="Rotate only if this key is the active one.")
@click.option("--force", is_flag=True, help="Rotate although no standby is mature; needs --reason.")
@click.option("--reason", help="Why; stands on the key that is retired.")
@readable_errors
def _rotate(
    config: Path | None,
    workspace: str | None,
    expected_active: str | None,
    reason: str | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """
    Let a standby sign and retire the active key; no valid token is refused by a planned rotation.
    """
    settings = read_settings(config)
    name = workspace_named(settings, workspace).name
    store = _store(settings, name)
    ring, revision = asyncio.run(store.load())
    outcome = rotate(
        ring,
        now=_now(),
        times=key_times(settings),
        expected_active=expected_active or ring.active.kid,
        force=force,
        reason=reason,
    )
    _save(store, outcome.ring, revision)
    facts = {
        "workspace": name,
        "retired": outcome.old_kid,
        "active": outcome.new_kid,
        "standby": outcome.standby_kid,
        "unpublish_at": outcome.unpublish_at,
        "next_rotation_at": outcome.next_rotation_at,
    }
    _show(facts, outcome.notices, as_json=as_json)


# A kid may begin with a dash, which must not make an option of it: in an emergency nobody thinks of `--`.
@command.command("revoke", context_settings={"ignore_unknown_options": True})
@config_option
@_workspace_option
@_json_option
@click.argument("kid")
@click.option("--reason", required=True, help="Why; stands on the key.")
@readable_errors
def _revoke(config: Path | None, workspace: str | None, kid: str, reason: str, *, as_json: bool) -> None:
    """
    Take the key KID out of the key set now; if it signs, a standby signs in its place now.
    """
    settings = read_settings(config)
    name = workspace_named(settings, workspace).name
    store = _store(settings, name)
    ring, revision = asyncio.run(store.load())
    outcome = revoke(ring, kid, now=_now(), times=key_times(settings), reason=reason)
    _save(store, outcome.ring, revision)
    facts = {
        "workspace": name,
        "revoked": outcome.kid,
        "active": outcome.ring.active.kid,
        "standby": outcome.standby_kid,
        "trusted_until": outcome.trusted_until,
    }
    _show(facts, outcome.notices, as_json=as_json)


def _now() -> int:
    return int(time.time())


def _store(settings: Settings, workspace: str) -> FileKeyStore:
    return FileKeyStore(ring_path(settings, workspace), workspace, load_sealing_keys(settings))


def _save(store: FileKeyStore, ring: KeyRing, revision: int) -> None:
    asyncio.run(store.save(ring, expect=revision))


def _show(facts: Mapping[str, Any], notices: tuple[str, ...], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({**facts, "notices": notices}, indent=2))
        return
    for name, value in facts.items():
        shown = utc(value) if name.endswith(("_at", "_until")) else value
        click.echo(f"{_LABELS.get(name, name):<18}  {'none' if shown is None else shown}")
    for notice in notices:
        click.echo(f"note: {notice}")


def _row(row: Mapping[str, Any]) -> str:
    following = row["next"]
    what = "" if following is None else f"{_NEXT[following['what']]} {utc(following['at'])}"
    reason = "" if row["reason"] is None else f"  ({row['reason']})"
    return f"  {row['kid']}  {row['state']:<8}  {what}{reason}".rstrip()
