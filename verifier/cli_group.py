"""
The command group: finds its subcommands when they are asked for.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Final

import click

__all__ = ["group"]

_ENTRY_POINTS: Final = "customer_context.commands"
_EXTRAS: Final = {"redis": "redis"}
_SUMMARIES: Final = {
    "audit": "Read and verify the audit trail (needs the extra issuer).",
    "config": "Check a configuration (needs the extra issuer).",
    "doctor": "Look whether a Redis is fit to remember used tokens (needs the extra redis).",
    "explain": "Show what a token says and what speaks for and against it.",
    "init": "Write a development configuration (needs the extra issuer).",
    "keys": "Create, list, rotate and revoke signing keys (needs the extra issuer).",
    "serve": "Run the issuer (needs the extra issuer).",
    "suspensions": "Cut off clients, agents, customers and actions (needs the extra issuer).",
    "token": "Ask a running issuer for a token (needs the extra issuer).",
    "verify": "Verify a token and exit with 1 when it is refused.",
}


class _Commands(click.Group):
    """
    Loads a subcommand when it runs, so that one of them lacking a package leaves the others alone.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- the signature is click's
        return sorted(_found())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry_point = _found().get(cmd_name)
        if entry_point is None:
            return None
        try:
            command: click.Command = entry_point.load()
        except ModuleNotFoundError as error:
            missing = (error.name or "verifier").partition(".")[0]
            if missing in ("verifier", "keys", "issuer"):
                raise
            extra = "issuer" if entry_point.module.startswith("issuer") else _EXTRAS.get(missing, "cli")
            ctx.fail(f"{cmd_name} needs the extra {extra}: pip install 'customer-context[{extra}]'")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, _SUMMARIES.get(name, "")) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _found() -> dict[str, EntryPoint]:
    return {entry_point.name: entry_point for entry_point in entry_points(group=_ENTRY_POINTS)}


@click.command(cls=_Commands)
@click.version_option(package_name="customer-context")
def group() -> None:
    """
    Issue customer context tokens, keep their keys, check them.
    """
