"""
From checked settings to the facts the service works with: the key files they name are read here.

Public keys come through `verifier.jwk`, the same door as everywhere. A file with an entry that cannot be used is refused as a
whole: an operator who put it there counts on it.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from verifier.es256 import PublicKey
from verifier.jwk import MAX_DOCUMENT_OCTETS, KeySet, UnusableKeySet, parse_key_set

from .id_token_signature import IDTokenAlgorithm, ProviderKey
from .provider import Provider
from .provider_key_set import parse_provider_keys
from .registry import Action, Admin, Client, Connection, Registry, Workspace
from .settings_models import Settings
from .settings_problems import Finding, Location
from .settings_rules import Ownership
from .settings_workspaces import (
    ActionSettings,
    AdminSettings,
    ClientSettings,
    ConnectionSettings,
    ProviderSettings,
    WorkspaceSettings,
)

__all__ = ["build_registry"]

_Key = TypeVar("_Key")

# As many as secrets. An assertion without a kid is checked against each of them, by whomever it was sent.
_MAX_KEYS: Final = 8


class _Keys(NamedTuple):
    """
    What the key files hold, by the settings that name them: keys of clients and admins, and those of identity providers.
    """

    own: dict[Location, KeySet[PublicKey]]
    providers: dict[Location, KeySet[ProviderKey]]


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


def _read_keys(settings: Settings) -> _Keys:
    keys = _Keys({}, {})
    findings: list[Finding] = []
    ownership = Ownership()
    for location, file, role, name in _key_files(settings):
        try:
            own = keys.own[location] = _own_keys(file)
        except _Unusable as error:
            findings.append((location, str(error)))
        else:
            points = {kid: (key.public_numbers().x, key.public_numbers().y) for kid, key in own.items()}
            findings += _foreign(points, ownership, (role, name), location)
    for location, file, provider in _provider_key_files(settings):
        try:
            theirs = keys.providers[location] = _provider_keys(file, frozenset(provider.algorithms))
        except _Unusable as error:
            findings.append((location, str(error)))
        else:
            material = {name: key.material for name, key in theirs.items()}
            findings += _foreign(material, ownership, ("provider", provider.issuer), location)
    if findings:
        raise settings.source.error(findings)
    return keys


def _foreign(
    keys: Mapping[str, object], ownership: Ownership, owner: tuple[str, str], location: Location
) -> Iterator[Finding]:
    for kid, material in keys.items():
        if ownership.is_foreign(material, *owner):
            yield location, f"holds a key (kid {kid}) that another party or role has as well"


def _key_files(settings: Settings) -> Iterator[tuple[Location, Path, str, str]]:
    for at, workspace in enumerate(settings.workspaces):
        for number, client in enumerate(workspace.clients):
            place = ("workspaces", at, "clients", number)
            if client.jwks_file is not None:
                yield (*place, "jwks_file"), client.jwks_file, "client", client.client_id
            if client.subject_jwks_file is not None:
                yield (*place, "subject_jwks_file"), client.subject_jwks_file, "subject", client.client_id
        for number, admin in enumerate(workspace.admins):
            if admin.jwks_file is not None:
                yield ("workspaces", at, "admins", number, "jwks_file"), admin.jwks_file, "admin", admin.name


def _provider_key_files(settings: Settings) -> Iterator[tuple[Location, Path, ProviderSettings]]:
    for at, workspace in enumerate(settings.workspaces):
        for number, connection in enumerate(workspace.connections):
            provider = connection.provider
            if provider is not None and provider.jwks_file is not None:
                place = ("workspaces", at, "connections", number, "provider")
                yield (*place, "jwks_file"), provider.jwks_file, provider


class _Unusable(ValueError):
    pass


def _own_keys(file: Path) -> KeySet[PublicKey]:
    keys = _key_set(file, parse_key_set, "public ES256 keys with a kid of their own")
    if len(keys) > _MAX_KEYS:
        raise _Unusable(f"holds more than {_MAX_KEYS} keys")
    return keys


def _provider_keys(file: Path, algorithms: frozenset[IDTokenAlgorithm]) -> KeySet[ProviderKey]:
    wanted = f"public keys for {', '.join(sorted(algorithms))}"
    return _key_set(file, partial(parse_provider_keys, algorithms=algorithms), wanted)


def _key_set(file: Path, parse: Callable[[bytes], KeySet[_Key]], wanted: str) -> KeySet[_Key]:
    try:
        with file.open("rb") as opened:
            keys = parse(opened.read(MAX_DOCUMENT_OCTETS + 1))
    except OSError as error:
        raise _Unusable(f"cannot be read: {error.strerror}") from None
    except UnusableKeySet as error:
        raise _Unusable(f"is not a JWK Set to work with: {error}") from None
    if keys.ignored:
        faults = ", ".join(f"{fault}: {count}" for fault, count in sorted(keys.ignored.items()))
        raise _Unusable(f"has entries that are no {wanted} ({faults})")
    if not keys:
        raise _Unusable("holds no key")
    return keys


def _workspace(settings: WorkspaceSettings, origin: str, keys: _Keys, at: int) -> Workspace:
    place = ("workspaces", at)
    connections = {
        each.name: _connection(each, keys, (*place, "connections", number))
        for number, each in enumerate(settings.connections)
    }
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


def _connection(settings: ConnectionSettings, keys: _Keys, at: Location) -> Connection:
    return Connection(
        name=settings.name,
        namespace=settings.namespace,
        audiences=settings.audiences,
        scopes=frozenset(settings.scopes),
        actions={each.name: _action(each) for each in settings.actions},
        provider=None if settings.provider is None else _provider(settings.provider, keys, (*at, "provider")),
    )


def _provider(settings: ProviderSettings, keys: _Keys, at: Location) -> Provider:
    return Provider(
        issuer=settings.issuer,
        clients=settings.clients,
        algorithms=frozenset(settings.algorithms),
        keys=keys.providers.get((*at, "jwks_file")),
        acr=settings.acr,
        amr={frozenset(each.values): each.level for each in settings.amr},
        sign_in_lifetime_s=settings.sign_in_lifetime_s,
    )


def _action(settings: ActionSettings) -> Action:
    return Action(
        name=settings.name,
        audience=settings.audience,
        scopes=frozenset(settings.scopes),
        confirmation=settings.confirmation,
        selector=settings.selector,
    )


def _client(settings: ClientSettings, connections: Mapping[str, Connection], keys: _Keys, at: Location) -> Client:
    every = tuple(audience for name in settings.connections for audience in connections[name].audiences)
    return Client(
        client_id=settings.client_id,
        keys=keys.own.get((*at, "jwks_file"), {}),
        subject_keys=keys.own.get((*at, "subject_jwks_file"), {}),
        secret_sha256=_octets(settings.secret_sha256),
        audiences=every if settings.audiences is None else settings.audiences,
        scopes=frozenset(settings.scopes),
        actions=frozenset(settings.actions),
        agents=settings.agents,
        subject_tokens=frozenset(settings.subject_tokens),
        max_asserted_level=settings.max_asserted_level,
        require_actor_token=settings.require_actor_token,
    )


def _admin(settings: AdminSettings, keys: _Keys, at: Location) -> Admin:
    return Admin(
        name=settings.name,
        secret_sha256=_octets(settings.secret_sha256),
        keys=keys.own.get((*at, "jwks_file"), {}),
        permissions=frozenset(settings.permissions),
    )


def _octets(digests: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(each) for each in digests)
