"""
What the subcommands share: the configuration they read, and errors that end in one line instead of a traceback.
"""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

import click

from keys import KeysError

from ..registry import Workspace
from ..settings import Settings, SettingsError, build_registry, load_settings, settings_warnings

__all__ = ["config_option", "fail", "read_settings", "readable_errors", "workspace_named"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_EXIT: Final = 2

config_option: Final = click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="CUSTOMER_CONTEXT_CONFIG",
    help="The configuration file; CUSTOMER_CONTEXT_CONFIG names it too.",
)
"""The option that names the configuration."""


def readable_errors(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """
    Turn the errors that an operator can mend into one message and exit status 2.
    """

    @wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return command(*args, **kwargs)
        except (SettingsError, KeysError) as error:
            fail(str(error))

    return run


def fail(message: str) -> NoReturn:
    """
    End the command with *message* and exit status 2.
    """
    click.echo(f"customer-context: {message}", err=True)
    raise SystemExit(_EXIT)


def read_settings(config: Path | None, **overrides: Any) -> Settings:
    """
    Read the configuration and say what is doubtful about it on standard error.
    """
    settings = load_settings(config, {**os.environ, **overrides})
    for warning in settings_warnings(settings):
        click.echo(f"warning: {warning}", err=True)
    return settings


def workspace_named(settings: Settings, name: str | None) -> Workspace:
    """
    Return the workspace of that name, or the only one when no name is given.
    """
    registry = build_registry(settings)
    if name is not None:
        workspace = registry.workspace(name)
        if workspace is None:
            fail(f"there is no workspace {name!r}; there are: {', '.join(each.name for each in registry)}")
        return workspace
    if len(registry.workspaces) != 1:
        fail(f"pass --workspace, one of: {', '.join(each.name for each in registry)}")
    return registry.workspaces[0]
