"""
`customer-context config check`: everything that is wrong with a configuration, before a service trips over it.
"""

from pathlib import Path

import click

from keys import KeysError

from ..registry import Workspace
from ..ring_stores import StoredRing, ring_stores
from ..settings import build_registry
from ..settings_sealing import load_sealing_keys
from .on_stores import DEADLINE_S, in_place, warn
from .options import config_option, fail, read_settings, readable_errors

__all__ = ["command"]


@click.group("config")
def command() -> None:
    """
    Check a configuration.
    """


@command.command("check")
@config_option
@readable_errors
def _check(config: Path | None) -> None:
    """
    Read the configuration, its key files and its rings, and say what is wrong; exits with 2 then.
    """
    settings = read_settings(config)
    registry = build_registry(settings)
    sealing = load_sealing_keys(settings)
    place = ring_stores(settings, sealing, deadline_s=DEADLINE_S)

    async def look() -> int:
        await place.check(warn)
        found = [await _is_open(workspace, place.ring(workspace.name)) for workspace in registry]
        return found.count(False)

    problems = in_place(look, place)
    if problems:
        fail("the configuration is readable, but not every ring is")
    click.echo("ok")


async def _is_open(workspace: Workspace, store: StoredRing) -> bool:
    try:
        ring, _ = await store.load()
    except KeysError as error:
        click.echo(f"{workspace.name}: {error}", err=True)
        return False
    click.echo(
        f"{workspace.name}: {workspace.issuer}; connections: {len(workspace.connections)}; "
        f"clients: {len(workspace.clients)}; key {ring.active.kid} signs"
    )
    return True
