"""
What must hold between the fields of a configuration (D3, D8, D13).

Every rule is a generator over settings whose single fields are already in order; it yields what is wrong and where, so that
everything is reported at once.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from .settings_models import Settings
from .settings_problems import Finding, Location
from .settings_workspaces import ClientSettings, ConnectionSettings, ProviderSettings, WorkspaceSettings

__all__ = ["Ownership", "doubts", "violations"]

_OPERATIONS: Final = frozenset({"health", "metrics", ".well-known"})
_ROUTES: Final = frozenset({"oauth", ".well-known", "admin", "sign-ins", "backchannel-logout"})
_MAX_CLIENTS: Final = 10_000


class Ownership:
    """
    Who holds which credential, by anything that identifies it: whoever brings it must be one party in one role.

    The same party may use one credential in several workspaces, since every assertion names its issuer.
    """

    def __init__(self) -> None:
        self._owners: dict[object, tuple[str, str]] = {}

    def is_foreign(self, credential: object, role: str, name: str) -> bool:
        """
        Record that *name* holds *credential* in *role*, and tell whether another party or role holds it already.
        """
        return self._owners.setdefault(credential, (role, name)) != (role, name)


def violations(settings: Settings) -> Iterator[Finding]:
    """
    Yield everything that forbids the start.
    """
    yield from _repeated(((("sealing_keys", at, "id"), key.id) for at, key in enumerate(settings.sealing_keys)), "id")
    yield from _repeated(_each(settings, "name"), "name")
    yield from _repeated(_each(settings, "path"), "path")
    yield from _colliding_paths(settings)
    yield from _audiences_of_two_workspaces(settings)
    yield from _shared_secrets(settings)
    if sum(len(workspace.clients) for workspace in settings.workspaces) > _MAX_CLIENTS:
        yield ("workspaces",), f"must have at most {_MAX_CLIENTS} clients in all"
    for at, workspace in enumerate(settings.workspaces):
        yield from _workspace(workspace, ("workspaces", at))


def doubts(settings: Settings) -> Iterator[Finding]:
    """
    Yield what does not forbid the start but is seldom meant.
    """
    used = set()
    for at, workspace in enumerate(settings.workspaces):
        for location, audience in _audiences(workspace, ("workspaces", at)):
            used.add(audience)
            if audience.endswith("/"):
                yield location, "ends in a slash: it is another audience than the same URL without it (D6)"
        if not workspace.clients:
            yield ("workspaces", at), "has no clients, so nobody can ask for a token"
    for at, audience in enumerate(settings.shared_audiences):
        if audience not in used:
            yield ("shared_audiences", at), "is no audience of any workspace"
    if settings.keys_redis_allow_volatile and not (settings.redis_url or settings.keys_redis_url):
        yield ("keys_redis_allow_volatile",), "is about a Redis, and none is named"
    if settings.redis_allow_eviction and not settings.redis_url:
        yield ("redis_allow_eviction",), "is about the Redis of redis_url, and none is named"


def _each(settings: Settings, field: str) -> Iterator[tuple[Location, str]]:
    for at, workspace in enumerate(settings.workspaces):
        yield ("workspaces", at, field), getattr(workspace, field)


def _repeated(values: Iterable[tuple[Location, str]], what: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for location, value in values:
        if value in seen:
            yield location, f"is the {what} of another one as well"
        seen.add(value)


def _colliding_paths(settings: Settings) -> Iterator[Finding]:
    paths = {workspace.path for workspace in settings.workspaces}
    for location, path in _each(settings, "path"):
        segments = path.split("/")[1:]
        if segments and segments[0] in _OPERATIONS:
            yield location, "collides with the operations routes of the service"
        for length, segment in enumerate(segments):
            if segment in _ROUTES and "/".join(["", *segments[:length]]) in paths:
                yield location, "collides with a route of the workspace above it"


def _audiences(workspace: WorkspaceSettings, at: Location) -> Iterator[tuple[Location, str]]:
    for number, connection in enumerate(workspace.connections):
        for position, audience in enumerate(connection.audiences):
            yield (*at, "connections", number, "audiences", position), audience


def _audiences_of_two_workspaces(settings: Settings) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for at, workspace in enumerate(settings.workspaces):
        for location, audience in _audiences(workspace, ("workspaces", at)):
            if first.setdefault(audience, at) != at and audience not in settings.shared_audiences:
                yield location, "is an audience of another workspace as well; shared_audiences must allow that (D13)"


def _shared_secrets(settings: Settings) -> Iterator[Finding]:
    ownership = Ownership()
    for at, workspace in enumerate(settings.workspaces):
        clients = (
            ("clients", number, each.client_id, each.secret_sha256) for number, each in enumerate(workspace.clients)
        )
        admins = (("admins", number, each.name, each.secret_sha256) for number, each in enumerate(workspace.admins))
        for table, number, name, digests in chain(clients, admins):
            for position, digest in enumerate(digests):
                if ownership.is_foreign(digest, table, name):
                    location = ("workspaces", at, table, number, "secret_sha256", position)
                    yield location, "is the secret of another client or admin as well"


def _workspace(workspace: WorkspaceSettings, at: Location) -> Iterator[Finding]:
    connections, clients, admins = workspace.connections, workspace.clients, workspace.admins
    names = (((*at, "connections", number, "name"), each.name) for number, each in enumerate(connections))
    ids = (((*at, "clients", number, "client_id"), each.client_id) for number, each in enumerate(clients))
    admin_names = (((*at, "admins", number, "name"), each.name) for number, each in enumerate(admins))
    actions = (
        ((*at, "connections", number, "actions", position, "name"), action.name)
        for number, each in enumerate(connections)
        for position, action in enumerate(each.actions)
    )
    yield from _repeated(names, "name")
    yield from _repeated(ids, "client_id")
    yield from _repeated(admin_names, "name")
    yield from _repeated(actions, "name")
    yield from _audiences_of_two_connections(workspace, at)
    for number, connection in enumerate(connections):
        yield from _actions(connection, (*at, "connections", number))
    yield from _providers(workspace, at)
    by_name = {each.name: each for each in connections}
    for number, client in enumerate(clients):
        yield from _client(client, by_name, (*at, "clients", number))
    for number, admin in enumerate(admins):
        if (admin.jwks_file is None) == (not admin.secret_sha256):
            yield (*at, "admins", number), "must have exactly one of jwks_file and secret_sha256"


def _audiences_of_two_connections(workspace: WorkspaceSettings, at: Location) -> Iterator[Finding]:
    for location, message in _repeated(_audiences(workspace, at), "audience"):
        yield location, f"{message}; each belongs to exactly one connection of its workspace (D13)"


def _actions(connection: ConnectionSettings, at: Location) -> Iterator[Finding]:
    for number, action in enumerate(connection.actions):
        if action.audience not in connection.audiences:
            yield (*at, "actions", number, "audience"), "is no audience of this connection"
        if action.selector is not None and ":" in connection.namespace:
            message = "needs a namespace without a colon: namespace:sub must be read in one way only"
            yield (*at, "actions", number, "selector"), message
        for position, scope in enumerate(action.scopes):
            if scope in connection.scopes:
                location = (*at, "actions", number, "scopes", position)
                yield location, "is a scope of the connection as well, so it would be minted without the action"


def _providers(workspace: WorkspaceSettings, at: Location) -> Iterator[Finding]:
    clients = {each.client_id: each for each in workspace.clients}
    pairs: set[tuple[str, str]] = set()
    issuers: dict[str, str] = {}
    for number, connection in enumerate(workspace.connections):
        provider = connection.provider
        if provider is None:
            continue
        place = (*at, "connections", number, "provider")
        if issuers.setdefault(connection.namespace, provider.issuer) != provider.issuer:
            yield (
                (*place, "issuer"),
                "differs from another connection's of this namespace: one sub would be two customers",
            )
        for known_as, client_id in provider.clients.items():
            location = (*place, "clients", known_as)
            if (provider.issuer, known_as) in pairs:
                yield location, "is a client id of this provider in another connection as well"
            pairs.add((provider.issuer, known_as))
            client = clients.get(client_id)
            if client is None or connection.name not in client.connections:
                yield location, "names no client of this workspace that has this connection"
        yield from _repeated_sets(provider, place)


def _repeated_sets(provider: ProviderSettings, at: Location) -> Iterator[Finding]:
    seen: set[frozenset[str]] = set()
    for number, each in enumerate(provider.amr):
        if frozenset(each.values) in seen:
            yield (*at, "amr", number, "values"), "is the same set as another one"
        seen.add(frozenset(each.values))


def _client(client: ClientSettings, by_name: Mapping[str, ConnectionSettings], at: Location) -> Iterator[Finding]:
    yield from _proofs(client, at)
    for position, name in enumerate(client.connections):
        if name not in by_name:
            yield (*at, "connections", position), "is no connection of this workspace"
    connections = [by_name[name] for name in client.connections if name in by_name]
    signs_in = any(each.provider and client.client_id in each.provider.clients.values() for each in connections)
    if not signs_in and not {"id_token", "sign_in"}.isdisjoint(client.subject_tokens):
        yield (*at, "subject_tokens"), "need a provider that names this client, on one of its connections"
    yield from _targets(client, connections, at)


def _proofs(client: ClientSettings, at: Location) -> Iterator[Finding]:
    if (client.jwks_file is None) == (not client.secret_sha256):
        yield at, "must have exactly one of jwks_file and secret_sha256"
    if client.require_actor_token and client.jwks_file is None:
        yield (*at, "require_actor_token"), "needs jwks_file: actor tokens are signed with a key of the client"
    if "asserted" in client.subject_tokens and client.subject_jwks_file is None:
        yield at, "needs subject_jwks_file for the subject tokens that it signs itself"


def _targets(client: ClientSettings, connections: list[ConnectionSettings], at: Location) -> Iterator[Finding]:
    audiences = {audience for each in connections for audience in each.audiences}
    actions = {action.name: action for each in connections for action in each.actions}
    asked = [actions[name] for name in client.actions if name in actions]
    offered = {scope for each in connections for scope in each.scopes} | {
        scope for each in asked for scope in each.scopes
    }
    for position, audience in enumerate(client.audiences or ()):
        if audience not in audiences:
            yield (*at, "audiences", position), "is no audience of the connections of this client"
    for position, name in enumerate(client.actions):
        if name not in actions:
            yield (*at, "actions", position), "is no action of the connections of this client"
        elif client.audiences is not None and actions[name].audience not in client.audiences:
            yield (*at, "actions", position), "has an audience that this client may not target"
    for position, scope in enumerate(client.scopes):
        if scope not in offered:
            location = (*at, "scopes", position)
            yield location, "is offered neither by the connections of this client nor by its actions"
