"""
`customer-context suspensions`: who is cut off at the mint, by the stores or through a running service.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

import click

from keys import utc

from ..suspensions import KINDS, SuspensionKind, Target
from .administer import Administered, administered, json_option
from .facts import show, show_json
from .options import fail

__all__ = ["command"]

_MAX_SECONDS: Final = 10 * 365 * 86_400


@click.group("suspensions")
def command() -> None:
    """
    Suspend a client, agent, customer or action, list suspensions, lift them.
    """


@command.command("add")
@administered
@json_option
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option("--namespace", help="Of a customer: the identity namespace that NAME belongs to.")
@click.option("--reason", required=True, help="Why; stands in the audit trail.")
@click.option("--for", "seconds", type=click.IntRange(1, _MAX_SECONDS), help="Seconds until it ends by itself.")
def _add(
    target: Administered,
    kind: SuspensionKind,
    name: str,
    *,
    namespace: str | None,
    reason: str,
    seconds: int | None,
    as_json: bool,
) -> None:
    """
    Mint nothing for NAME from now on: a client id, an agent, an action, or a customer's id with its --namespace.
    """
    if (kind == "customer") != (namespace is not None):
        fail("--namespace goes with a customer, and only with one")
    until = None if seconds is None else int(time.time()) + seconds
    show(target.suspend(Target(kind, name, namespace), reason=reason, until=until), as_json=as_json)


@command.command("list")
@administered
@json_option
def _list(target: Administered, *, as_json: bool) -> None:
    """
    Show the suspensions that hold; customers by namespace and keyed hash.
    """
    told = target.suspensions()
    if as_json:
        show_json(told)
        return
    click.echo(f"workspace {told['workspace']}, revision {told['revision']}")
    for row in told["suspensions"]:
        click.echo(_row(row))
    if not told["suspensions"]:
        click.echo("  nobody and nothing is suspended")


@command.command("lift")
@administered
@json_option
@click.argument("suspension_id")
def _lift(target: Administered, suspension_id: str, *, as_json: bool) -> None:
    """
    End the suspension SUSPENSION_ID.
    """
    told = target.lift(suspension_id)
    if as_json:
        show_json(told)
    else:
        click.echo(f"lifted {_row(told['lifted']).strip()}")


def _row(row: Mapping[str, Any]) -> str:
    name = row.get("value") or f"{row['customer_hash']} of {row['namespace']}"
    until = "until it is lifted" if row["until"] is None else f"until {utc(row['until'])}"
    return f"  {row['id']}  {row['kind']} {name}  since {utc(row['at'])} {until}  ({row['reason']})"
