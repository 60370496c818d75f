"""
`customer-context init`: a development configuration that `serve` starts from.
"""

import time
from pathlib import Path

import click

from ..init_config import AlreadyThere, write_development_config
from .options import fail, readable_errors

__all__ = ["command"]


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path), default=Path(".dev"))
@click.option("--origin", default="http://127.0.0.1:8000", show_default=True, help="Where the service will be reached.")
@readable_errors
def command(folder: Path, origin: str) -> None:
    """
    Write a development configuration into FOLDER (.dev by default); nothing that exists is replaced.
    """
    try:
        result = write_development_config(folder, origin=origin, now=int(time.time()))
    except (AlreadyThere, ValueError, OSError) as error:
        fail(str(error))
    for path in result.files:
        click.echo(f"wrote {path}")
    click.echo(f"admin {result.admin}, secret (shown once, stored as a hash): {result.admin_secret}")
    click.echo(f"next: {result.next_command}")
