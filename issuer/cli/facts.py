"""
How commands show what they are told: as JSON for programs, or a line for each fact.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import click

from keys import utc

__all__ = ["show", "show_json", "shown"]

_INSTANTS: Final = ("at", "until", "since")
# The words of `list` for facts whose names in JSON are others.
_LABELS: Final = {
    "retired": "retiring",
    "unpublish_at": "leaves the key set",
    "next_rotation_at": "may rotate from",
    "trusted_until": "trusted until",
    "tokens_expire_by": "tokens expire by",
    "customer_hash": "customer",
}
_NOT_SHOWN: Final = frozenset({"at", "notices", "revision", "recorded", "early", "minted"})


def show(told: Mapping[str, Any], *, as_json: bool) -> None:
    """
    Print what a verb told: every fact on a line of its own, then what the person who asked must read.
    """
    if as_json:
        show_json(told)
        return
    for name, value in told.items():
        if name not in _NOT_SHOWN:
            click.echo(f"{_LABELS.get(name, name):<18}  {shown(name, value)}")
    if "minted" in told:
        _show_minted(told["minted"])
    if not told.get("recorded", True):
        click.echo("note: The audit trail could not be written; it is told with the next change.")
    for notice in told.get("notices", ()):
        click.echo(f"note: {notice}")


def _show_minted(minted: Mapping[str, Any]) -> None:
    click.echo(f"{'minted under it':<18}  {minted['total']} tokens since {utc(minted['since'])}, by {minted['by']}")
    for row in minted["counts"]:
        click.echo(f"{'':<18}  {row['count']} for {row['audience']}, {row['action'] or 'reads'}")


def show_json(told: Mapping[str, Any]) -> None:
    """
    Print JSON.
    """
    click.echo(json.dumps(told, indent=2))


def shown(name: str, value: Any) -> str:
    """
    Write a fact the way people read it.
    """
    if value is None:
        return "none"
    if isinstance(value, int) and name.rpartition("_")[2] in (*_INSTANTS, "by"):
        return utc(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
