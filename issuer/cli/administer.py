"""
The verbs of administration on the command line: against a running service, or on the stores themselves when it is down.

On the stores they go through the same `Administration` and the same ledger as in the service, so that they are on record too; a
running service notices within a second.
"""

import os
import pwd
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import click

from keys import KeysError, import_private_jwk
from verifier.strict_json import StrictJSONError, loads_object

from ..administration import Administration, Told
from ..audit import Actor
from ..ledger import Ledger
from ..registry import Workspace
from ..settings import Settings
from ..settings_sealing import key_times
from ..suspensions import InvalidSuspension, SuspensionsFull, Target, UnknownSuspension
from ..workspace_stores import WorkspaceStores
from .admin_client import AdminClient, AdminCredential
from .on_stores import now, on_stores
from .options import config_option, fail, read_settings, readable_errors, workspace_named

__all__ = ["Administered", "StoreAdministration", "administered", "json_option", "operator", "workspace_option"]

_T = TypeVar("_T")

_MAX_SECRET: Final = 4096
_OPTIONS: Final = ("service", "admin", "admin_secret_file", "admin_key_file", "config", "workspace")

workspace_option: Final = click.option("--workspace", help="The workspace; needed when there is more than one.")
"""The option that names a workspace."""

json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""The option for programs."""


class Administered(Protocol):
    """
    A workspace to administer; each verb returns what is told about it, as the admin routes answer.
    """

    def keys(self) -> Mapping[str, Any]:
        """
        List the keys.
        """
        ...

    def rotate(self, *, expected_active: str | None, force: bool, reason: str | None) -> Mapping[str, Any]:
        """
        Rotate.
        """
        ...

    def revoke(self, kid: str, *, reason: str) -> Mapping[str, Any]:
        """
        Revoke one key.
        """
        ...

    def revoke_all(self, *, reason: str) -> Mapping[str, Any]:
        """
        Revoke every published key.
        """
        ...

    def suspensions(self) -> Mapping[str, Any]:
        """
        List the suspensions.
        """
        ...

    def suspend(self, target: Target, *, reason: str, until: int | None) -> Mapping[str, Any]:
        """
        Suspend a target.
        """
        ...

    def lift(self, suspension_id: str) -> Mapping[str, Any]:
        """
        End a suspension.
        """
        ...

    def audit(self, *, before: int | None, after: int | None, limit: int) -> Mapping[str, Any]:
        """
        Read records of the trail.
        """
        ...


class StoreAdministration:
    """
    Administer a workspace by its stores. Every verb opens them and lets go of them again.
    """

    def __init__(self, settings: Settings, workspace: Workspace) -> None:
        """
        Take the settings and one workspace of theirs.
        """
        self._settings = settings
        self._workspace = workspace

    def keys(self) -> Mapping[str, Any]:
        """
        List the keys.
        """
        return self._told(lambda administration: administration.keys())

    def rotate(self, *, expected_active: str | None, force: bool, reason: str | None) -> Mapping[str, Any]:
        """
        Rotate.
        """
        return self._told(
            lambda administration: administration.rotate(
                operator(), expected_active=expected_active, force=force, reason=reason
            )
        )

    def revoke(self, kid: str, *, reason: str) -> Mapping[str, Any]:
        """
        Revoke one key.
        """
        return self._told(lambda administration: administration.revoke(operator(), kid, reason=reason))

    def revoke_all(self, *, reason: str) -> Mapping[str, Any]:
        """
        Revoke every published key.
        """
        return self._told(lambda administration: administration.revoke_all(operator(), reason=reason))

    def suspensions(self) -> Mapping[str, Any]:
        """
        List the suspensions.
        """
        return self._told(lambda administration: administration.suspensions())

    def suspend(self, target: Target, *, reason: str, until: int | None) -> Mapping[str, Any]:
        """
        Suspend a target.
        """
        return self._told(lambda administration: administration.suspend(operator(), target, reason=reason, until=until))

    def lift(self, suspension_id: str) -> Mapping[str, Any]:
        """
        End a suspension.
        """
        return self._told(lambda administration: administration.lift(operator(), suspension_id))

    def audit(self, *, before: int | None, after: int | None, limit: int) -> Mapping[str, Any]:
        """
        Read records of the trail.
        """
        if after is not None:
            return self._told(lambda administration: administration.audit_after(after, limit=limit))
        return self._told(lambda administration: administration.audit(before=before, limit=limit))

    def with_ledger(self, work: Callable[[Ledger], Awaitable[_T]]) -> _T:
        """
        Do something with the ledger itself.
        """
        return on_stores(self._settings, self._workspace.name, lambda stores: work(stores.ledger))

    def _told(self, verb: Callable[[Administration], Awaitable[Told]]) -> Mapping[str, Any]:
        async def work(stores: WorkspaceStores) -> Told:
            administration = Administration(
                self._workspace,
                changes=stores.ledger,
                ring=stores.ring,
                times=key_times(self._settings),
                now=now,
            )
            return await verb(administration)

        return on_stores(self._settings, self._workspace.name, work).members


def administered(command: Callable[..., None]) -> Callable[..., None]:
    """
    Give a command the workspace that its options name, as its first argument, and end it in one line where a verb is refused.
    """

    @click.option("--service", metavar="URL", help="The issuer URL of a running service; else the stores themselves.")
    @click.option("--admin", metavar="NAME", help="With --service: who calls.")
    @click.option(
        "--admin-secret-file",
        type=click.Path(path_type=Path),
        help="With --service: the file that holds the admin's secret.",
    )
    @click.option(
        "--admin-key-file",
        type=click.Path(path_type=Path),
        help="With --service: the file that holds their private JWK.",
    )
    @config_option
    @workspace_option
    @readable_errors
    @wraps(command)
    def run(**options: Any) -> None:
        named = {name: options.pop(name) for name in _OPTIONS}
        try:
            command(_target(**named), **options)
        except InvalidSuspension as error:
            fail(f"{error}; nothing was done")
        except SuspensionsFull:
            fail("there is no room for one more suspension; lift some that are not needed any more")
        except UnknownSuspension:
            fail(
                "no suspension of that id holds: it was lifted, or its time has passed; `suspensions list` shows those that do"
            )

    return run


def _target(
    *,
    service: str | None,
    admin: str | None,
    admin_secret_file: Path | None,
    admin_key_file: Path | None,
    config: Path | None,
    workspace: str | None,
) -> Administered:
    if service is not None:
        return AdminClient(service, _credential(admin, admin_secret_file, admin_key_file))
    settings = read_settings(config)
    return StoreAdministration(settings, workspace_named(settings, workspace))


def operator() -> Actor:
    """
    Return who runs this command, for the trail: the user that the system knows, not one that the environment claims.
    """
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid {uid}"
    return Actor("cli", name)


def _credential(admin: str | None, secret_file: Path | None, key_file: Path | None) -> AdminCredential:
    if admin is None or (secret_file is None) == (key_file is None):
        fail("--service needs --admin and either --admin-secret-file or --admin-key-file")
    file = secret_file or key_file
    try:
        text = _read(file) if file else ""
        if key_file is not None:
            return AdminCredential(name=admin, key=import_private_jwk(loads_object(text)))
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    except (ValueError, KeysError, StrictJSONError):
        fail(f"{file} does not hold {'a private ES256 JWK' if key_file else 'a secret'}")
    secret = text.strip()
    if not secret:
        fail(f"{file} is empty")
    return AdminCredential(name=admin, secret=secret)


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        octets = opened.read(_MAX_SECRET + 1)
    if len(octets) > _MAX_SECRET:
        raise ValueError("too long")
    return octets.decode("utf-8")
