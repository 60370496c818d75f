"""
`customer-context keys plan`: what is going to happen to the keys, with wall times, before anything happens.
"""

from pathlib import Path
from typing import Any, Final

import click

from keys import PlannedStep, plan, utc

from ..settings_sealing import key_times
from .administer import json_option, workspace_option
from .facts import show_json
from .on_stores import now, on_stores
from .options import config_option, read_settings, readable_errors, workspace_named

__all__ = ["plan_command"]

_WORDS: Final[dict[PlannedStep, str]] = {
    "may_activate": "is known everywhere and may sign",
    "activate": "signs",
    "retire": "signs no more and stays published",
    "publish": "is made and published",
    "unpublish": "leaves the key set",
    "alarm": "raises the alarm if it still signs",
}
_NEW_KEY: Final = "a new key"


@click.command("plan")
@config_option
@workspace_option
@json_option
@readable_errors
def plan_command(config: Path | None, workspace: str | None, *, as_json: bool) -> None:
    """
    Show what happens to the keys until two more rotations are done, if nobody does anything.
    """
    settings = read_settings(config)
    name = workspace_named(settings, workspace).name
    ring, revision = on_stores(settings, name, lambda stores: stores.ring.load())
    at = int(now())
    steps: list[dict[str, Any]] = [
        {"at": step.at, "time": utc(step.at), "in_seconds": step.at - at, "what": step.what, "kid": step.kid}
        for step in plan(ring, at, key_times(settings))
    ]
    if as_json:
        show_json({"workspace": name, "revision": revision, "active": ring.active.kid, "at": at, "steps": steps})
        return
    click.echo(f"workspace {name}, revision {revision}, now {utc(at)}: key {ring.active.kid} signs")
    for step in steps:
        kid = step["kid"] or _NEW_KEY
        click.echo(f"  {step['time']}  {_waiting(step['in_seconds']):>14}  {kid:<43}  {_WORDS[step['what']]}")


def _waiting(seconds: int) -> str:
    """
    Write how long something is away in the two largest units.
    """
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((at for at, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return "in " + " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2])
