"""
`customer-context config check`: everything that is wrong with a configuration, before a service trips over it.
"""

import asyncio
from pathlib import Path

import click

from keys import FileKeyStore, KeysError

from ..settings import build_registry
from ..settings_sealing import load_sealing_keys, ring_path
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
    problems = 0
    for workspace in registry:
        store = FileKeyStore(ring_path(settings, workspace.name), workspace.name, sealing)
        try:
            ring, _ = asyncio.run(store.load())
        except KeysError as error:
            problems += 1
            click.echo(f"{workspace.name}: {error}", err=True)
            continue
        click.echo(
            f"{workspace.name}: {workspace.issuer}; connections: {len(workspace.connections)}; "
            f"clients: {len(workspace.clients)}; key {ring.active.kid} signs"
        )
    if problems:
        fail("the configuration is readable, but not every ring is")
    click.echo("ok")
