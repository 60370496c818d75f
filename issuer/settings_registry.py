"""
From checked settings to the facts the service works with: the key files they name are read here.

Public keys come through `verifier.jwk`, the same door as everywhere. A file with an entry that cannot be used is refused as a
whole: an operator who put it there counts on it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from verifier.es256 import PublicKey
from verifier.jwk import MAX_DOCUMENT_OCTETS, UnusableKeySet, parse_key_set

from .registry import Action, Admin, Client, Connection, Registry, Workspace
from .settings_models import (
    ActionSettings,
    AdminSettings,
    ClientSettings,
    ConnectionSettings,
    Settings,
    WorkspaceSettings,
)
from .settings_problems import Finding, Location
from .settings_rules import Ownership

__all__ = ["build_registry"]

_Keys = Mapping[str, PublicKey]
# As many as secrets. An assertion without a kid is checked against each of them, by whomever it was sent.
_MAX_KEYS: Final = 8


def build_registry(settings: Settings) -> Registry:
    """
    Read the key files that *settings* name and build the registry.

    Raises:
        SettingsError: with everything that is wrong: a file that cannot be read or holds no key set, an entry that cannot be
            used, a key that two parties have or that serves one party in two roles.
    """
    keys = _read_keys(settings)
    workspaces = (_workspace(each, settings.origin, keys, at) for at, each in enumerate(settings.workspaces))
    return Registry(origin=settings.origin, workspaces=tuple(workspaces))


def _read_keys(settings: Settings) -> Mapping[Location, _Keys]:
    found: dict[Location, _Keys] = {}
    findings: list[Finding] = []
    ownership = Ownership()
    for location, file, role, name in _key_files(settings):
        if file is None:
            continue
        try:
            keys = found[location] = _key_set(file)
        except _Unusable as error:
            findings.append((location, str(error)))
            continue
        for kid, key in keys.items():
            numbers = key.public_numbers()
            if ownership.is_foreign((numbers.x, numbers.y), role, name):
                findings.append((location, f"holds a key (kid {kid}) that another party or role has as well"))
    if findings:
        raise settings.source.error(findings)
    return found


def _key_files(settings: Settings) -> Iterator[tuple[Location, Path | None, str, str]]:
    for at, workspace in enumerate(settings.workspaces):
        for number, client in enumerate(workspace.clients):
            place = ("workspaces", at, "clients", number)
            yield (*place, "jwks_file"), client.jwks_file, "client", client.client_id
            yield (*place, "subject_jwks_file"), client.subject_jwks_file, "subject", client.client_id
        for number, admin in enumerate(workspace.admins):
            yield ("workspaces", at, "admins", number, "jwks_file"), admin.jwks_file, "admin", admin.name


class _Unusable(ValueError):
    pass


def _key_set(file: Path) -> _Keys:
    try:
        with file.open("rb") as opened:
            keys = parse_key_set(opened.read(MAX_DOCUMENT_OCTETS + 1))
    except OSError as error:
        raise _Unusable(f"cannot be read: {error.strerror}") from None
    except UnusableKeySet as error:
        raise _Unusable(f"is not a JWK Set to work with: {error}") from None
    if keys.ignored:
        faults = ", ".join(f"{fault}: {count}" for fault, count in sorted(keys.ignored.items()))
        raise _Unusable(f"has entries that are no public ES256 keys with a kid of their own ({faults})")
    if not keys:
        raise _Unusable("holds no key")
    if len(keys) > _MAX_KEYS:
        raise _Unusable(f"holds more than {_MAX_KEYS} keys")
    return keys


def _workspace(settings: WorkspaceSettings, origin: str, keys: Mapping[Location, _Keys], at: int) -> Workspace:
    connections = {each.name: _connection(each) for each in settings.connections}
    place = ("workspaces", at)
    clients = (
        _client(each, connections, keys, (*place, "clients", number)) for number, each in enumerate(settings.clients)
    )
    admins = (_admin(each, keys, (*place, "admins", number)) for number, each in enumerate(settings.admins))
    return Workspace(
        name=settings.name,
        path=settings.path,
        issuer=origin + settings.path,
        connections=tuple(connections.values()),
        clients={each.client_id: each for each in clients},
        admins={each.name: each for each in admins},
        revoked_kids=frozenset(settings.revoked_kids),
    )


def _connection(settings: ConnectionSettings) -> Connection:
    return Connection(
        name=settings.name,
        namespace=settings.namespace,
        audiences=settings.audiences,
        scopes=frozenset(settings.scopes),
        actions={each.name: _action(each) for each in settings.actions},
    )


def _action(settings: ActionSettings) -> Action:
    return Action(
        name=settings.name,
        audience=settings.audience,
        scopes=frozenset(settings.scopes),
        confirmation=settings.confirmation,
        selector=settings.selector,
    )


def _client(
    settings: ClientSettings, connections: Mapping[str, Connection], keys: Mapping[Location, _Keys], at: Location
) -> Client:
    every = tuple(audience for name in settings.connections for audience in connections[name].audiences)
    return Client(
        client_id=settings.client_id,
        keys=keys.get((*at, "jwks_file"), {}),
        subject_keys=keys.get((*at, "subject_jwks_file"), {}),
        secret_sha256=_octets(settings.secret_sha256),
        audiences=every if settings.audiences is None else settings.audiences,
        scopes=frozenset(settings.scopes),
        actions=frozenset(settings.actions),
        agents=settings.agents,
        subject_tokens=frozenset(settings.subject_tokens),
        max_asserted_level=settings.max_asserted_level,
        require_actor_token=settings.require_actor_token,
    )


def _admin(settings: AdminSettings, keys: Mapping[Location, _Keys], at: Location) -> Admin:
    return Admin(
        name=settings.name,
        secret_sha256=_octets(settings.secret_sha256),
        keys=keys.get((*at, "jwks_file"), {}),
        permissions=frozenset(settings.permissions),
    )


def _octets(digests: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(each) for each in digests)
