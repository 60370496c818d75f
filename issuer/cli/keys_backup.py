"""
`customer-context keys backup` and `keys restore`: the sealed ring of a workspace as one file.
"""

import time
from pathlib import Path
from typing import Final

import click

from keys import export_blob, import_blob, open_ring
from keys.private_file import create_private_file
from keys.record import is_reason
from keys.sealing import MAX_BLOB_OCTETS, blob_sealing_key

from ..audit import Entry
from ..workspace_stores import WorkspaceStores
from .administer import operator, workspace_option
from .on_stores import now, on_stores
from .options import config_option, fail, read_settings, readable_errors, workspace_named

__all__ = ["backup_command", "restore_command"]

_FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command("backup")
@config_option
@workspace_option
@click.argument("file", type=_FILE)
@readable_errors
def backup_command(config: Path | None, workspace: str | None, file: Path) -> None:
    """
    Write the sealed ring of a workspace to a new FILE; without its sealing key it is useless, to you as well.
    """
    settings = read_settings(config)
    name = workspace_named(settings, workspace).name
    blob = on_stores(settings, name, lambda stores: export_blob(stores.ring))
    try:
        create_private_file(file, blob)
    except FileExistsError:
        fail(f"{file} exists and is not replaced")
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")
    key_id = blob_sealing_key(blob, where=str(file))
    click.echo(f"{name}: wrote {file}, sealed with {key_id!r}; keep it apart from that sealing key")


@click.command("restore")
@config_option
@workspace_option
@click.option("--set-aside", is_flag=True, help="Move what is stored out of the way first; nothing is deleted.")
@click.option(
    "--accept-older",
    metavar="REASON",
    help="Take a ring that is older than the audit trail, because there is no other; REASON goes on record.",
)
@click.argument("file", type=_FILE)
@readable_errors
def restore_command(
    config: Path | None, workspace: str | None, file: Path, accept_older: str | None, *, set_aside: bool
) -> None:
    """
    Put the sealed ring in FILE in place, if it is no older than what is stored and than the audit trail knows.

    A running service follows to a later revision; to any other it does when it is started anew.
    """
    if accept_older is not None and not is_reason(accept_older):
        fail("--accept-older needs a reason of 1 to 500 printable characters")
    settings = read_settings(config)
    name = workspace_named(settings, workspace).name
    blob = _read(file)
    on_stores(settings, name, lambda stores: _restore(stores, blob, accept_older, set_aside=set_aside))


async def _restore(stores: WorkspaceStores, blob: bytes, accept_older: str | None, *, set_aside: bool) -> None:
    store, ledger = stores.ring, stores.ledger
    ring, revision = open_ring(blob, workspace=store.workspace, keys=store.sealing, where="the backup")
    if accept_older is None:
        await ledger.check_candidate(ring, revision)
    if set_aside:
        aside = await store.set_aside(time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now())))
        click.echo(f"{store.workspace}: what was stored is kept as {aside}")
    if not await import_blob(store, blob):
        click.echo(f"{store.workspace}: this ring is stored already")
        return
    if accept_older is not None:
        await ledger.restart(operator(), accept_older)
        click.echo(
            "note: What was revoked or suspended after the backup was made holds no more: revoke and suspend it again."
        )
    entry = Entry(at=int(now()), actor=operator(), event="ring_restored", after={"restored": revision})
    done = await ledger.note(entry)
    click.echo(f"{store.workspace}: restored revision {revision}, now revision {done.revision}")


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BLOB_OCTETS + 1)
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
