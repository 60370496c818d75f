"""
`customer-context keys copy`: rings and their audit trails moved between the data folder and a Redis.
"""

from pathlib import Path
from typing import Final, Literal

import click

from keys import check_import, export_blob, import_blob

from ..audit import Entry
from ..ring_stores import FileStores, RingStores, redis_stores
from ..settings import Settings, build_registry
from ..settings_sealing import load_sealing_keys
from ..trail_copy import carry_trail
from .administer import operator, workspace_option
from .on_stores import DEADLINE_S, in_place, now, stores_in, warn
from .options import config_option, fail, read_settings, readable_errors, workspace_named

__all__ = ["copy_command"]

_Place = Literal["file", "redis"]
_PLACES: Final = click.Choice(["file", "redis"])


@click.command("copy")
@config_option
@workspace_option
@click.option("--from", "source", type=_PLACES, required=True, help="Where the rings are.")
@click.option("--to", "target", type=_PLACES, required=True, help="Where they shall be, too.")
@readable_errors
def copy_command(config: Path | None, workspace: str | None, source: _Place, target: _Place) -> None:
    """
    Copy the rings and audit trails of all workspaces, or of one, from the data folder to the Redis or back.

    Stop the service first, and start it on the copy: what is changed in the old place afterwards is not in the new one. A ring
    that is newer than the copy, or another one, is never replaced.
    """
    if source == target:
        fail("--from and --to name the same place")
    settings = read_settings(config)
    names = (
        [workspace_named(settings, workspace).name] if workspace else [each.name for each in build_registry(settings)]
    )
    places = {name: _place(settings, name) for name in (source, target)}

    async def work() -> None:
        await places[target].check(warn)
        for name in names:
            await _copy(settings, name, places[source], places[target])

    in_place(work, *places.values())


def _place(settings: Settings, name: _Place) -> RingStores:
    sealing = load_sealing_keys(settings)
    if name == "file":
        return FileStores(settings, sealing)
    place = redis_stores(settings, sealing, deadline_s=DEADLINE_S)
    if place is None:
        fail("the configuration names no Redis: set redis_url or keys_redis_url")
    return place


async def _copy(settings: Settings, name: str, source: RingStores, target: RingStores) -> None:
    blob = await export_blob(source.ring(name))
    stores = stores_in(target, settings, name)
    # The trail goes first: a ring without the records that it knows of would look like one whose trail was cut.
    is_new = await check_import(stores.ring, blob) is not None
    records = await carry_trail(source.trail(name), target.trail(name))
    if not is_new:
        click.echo(f"{name}: {target.where} has this ring already")
        return
    await import_blob(stores.ring, blob)
    places = {"from": source.where, "to": target.where}
    entry = Entry(at=int(now()), actor=operator(), event="ring_copied", after=places)
    done = await stores.ledger.note(entry)
    click.echo(f"{name}: copied to {target.where} with {records} audit records, now revision {done.revision}")
