"""
`customer-context keys reseal`: every ring under the first sealing key, so that the older ones are not needed any more.
"""

from pathlib import Path

import click

from keys import KeysError, sealed_with

from ..audit import Entry
from ..settings import build_registry
from ..settings_sealing import load_sealing_keys
from ..workspace_stores import WorkspaceStores
from .administer import operator, workspace_option
from .on_stores import now, on_stores
from .options import config_option, fail, read_settings, readable_errors, workspace_named

__all__ = ["reseal_command"]


@click.command("reseal")
@config_option
@workspace_option
@readable_errors
def reseal_command(config: Path | None, workspace: str | None) -> None:
    """
    Seal the rings of all workspaces, or of one, with the first of `sealing_keys`.

    Before, put the new key behind the old one at every instance and restart it, then in front and restart again. Afterwards
    remove the old key, and destroy it with the backups that need it. A crash half-way harms nothing: run it again.
    """
    settings = read_settings(config)
    names = (
        [workspace_named(settings, workspace).name] if workspace else [each.name for each in build_registry(settings)]
    )
    current = load_sealing_keys(settings).current.id
    failed = 0
    for name in names:
        try:
            earlier = on_stores(settings, name, lambda stores: _reseal(stores, current))
        except KeysError as error:
            failed += 1
            click.echo(f"{name}: {error}", err=True)
        else:
            how = "is sealed with it already" if earlier is None else f"was sealed with {earlier!r}, resealed"
            click.echo(f"{name}: {how}")
    if failed:
        fail(f"not every ring is sealed with {current!r}: keep the older sealing keys until this ends well")
    click.echo(f"every ring is sealed with {current!r}")


async def _reseal(stores: WorkspaceStores, current: str) -> str | None:
    """
    Reseal one ring, and return the id of the sealing key it was sealed with; None when that was the first one.
    """
    earlier = await sealed_with(stores.ring)
    if earlier == current:
        return None
    # Whatever saves a ring seals it with the first key.
    entry = Entry(
        at=int(now()),
        actor=operator(),
        event="ring_resealed",
        before={"sealing_key": earlier},
        after={"sealing_key": current},
    )
    await stores.ledger.note(entry)
    return earlier
