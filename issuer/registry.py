"""
Who may ask for what, as frozen facts that the token endpoint works with; what is not listed is refused.

A `Registry` is built once from checked settings and never changes. It knows nothing of files, of TOML or of pydantic, so that a
test builds one by hand. What could make a token mean two things (an audience in two connections, a client with two ways to
authenticate) cannot be constructed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar

from verifier.claims import ConfirmedBy
from verifier.es256 import PublicKey
from verifier.levels import Level

from .provider import Provider

__all__ = [
    "Action",
    "Admin",
    "AuthenticationMethod",
    "Client",
    "Connection",
    "Permission",
    "ProviderClients",
    "Registry",
    "SubjectTokenKind",
    "Workspace",
]

AuthenticationMethod = Literal["private_key_jwt", "client_secret_basic"]
"""How a client proves who it is, in the registered words of RFC 7591 section 2."""

Permission = Literal["keys:read", "keys:rotate", "keys:revoke", "suspensions", "audit:read"]
"""What an admin may do; there are no others."""

SubjectTokenKind = Literal["asserted", "id_token", "sign_in"]
"""
What a client may bring as subject token (D7): one that it signs itself, an ID token of an identity provider, or the id of a
sign-in that was recorded for it.
"""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def _frozen(mapping: Mapping[_Key, _Value]) -> Mapping[_Key, _Value]:
    return MappingProxyType(dict(mapping))


def _by_name(pairs: Iterable[tuple[str, _Value]], what: str) -> Mapping[str, _Value]:
    found: dict[str, _Value] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{what} {name!r} occurs twice")
        found[name] = value
    return MappingProxyType(found)


def _one_proof(keys: Mapping[str, PublicKey], secret_sha256: tuple[bytes, ...]) -> None:
    if bool(keys) == bool(secret_sha256):
        raise ValueError("exactly one of keys and secret_sha256 is needed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """
    A write that tokens can be minted for.

    `scopes` are minted only together with this action; `confirmation` is the least that is accepted behind it. `selector` is the
    argument that names the customer's resource, which the issuer fills and nobody else may.
    """

    name: str
    audience: str
    scopes: frozenset[str] = frozenset()
    confirmation: ConfirmedBy = "client"
    selector: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """
    One identity namespace of a workspace and the APIs whose customers it names.

    `scopes` are those that need no action; `action_scopes` those that some action owns. Without a `provider`, customers are those
    that clients vouch for.

    Raises:
        ValueError: without an audience, for an action whose name or audience does not fit, or for a selector that could be read
            in two ways.
    """

    name: str
    namespace: str
    audiences: tuple[str, ...]
    scopes: frozenset[str]
    actions: Mapping[str, Action]
    provider: Provider | None = None
    action_scopes: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.audiences:
            raise ValueError("a connection has at least one audience")
        for name, action in self.actions.items():
            if name != action.name or action.audience not in self.audiences:
                raise ValueError(f"action {name!r} does not fit its connection")
            if action.selector is not None and ":" in self.namespace:
                raise ValueError("a namespace with a colon is no part of a selector")
        owned = frozenset(scope for action in self.actions.values() for scope in action.scopes)
        object.__setattr__(self, "actions", _frozen(self.actions))
        object.__setattr__(self, "action_scopes", owned)


ProviderClients = Mapping[str, tuple[Connection, Provider]]
"""The connection, with its provider, behind each client id that an identity provider knows."""


def _by_provider(connections: Iterable[Connection]) -> Mapping[str, ProviderClients]:
    known: dict[str, list[tuple[str, tuple[Connection, Provider]]]] = {}
    for each in connections:
        provider = each.provider
        if provider is not None:
            known.setdefault(provider.issuer, []).extend((name, (each, provider)) for name in provider.clients)
    return MappingProxyType({issuer: _by_name(pairs, "client id") for issuer, pairs in known.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """
    An orchestrator: how it proves who it is and all it may ask for.

    `keys` are the public keys, by kid, that sign client assertions and actor tokens; `subject_keys` those that sign subject
    tokens. `secret_sha256` are SHA-256 digests of generated secrets. Several keys and secrets may be valid at once.
    `audiences` and `agents` (those it may name in `act`) are in configured order.

    Raises:
        ValueError: unless exactly one of `keys` and `secret_sha256` has something in it.
    """

    client_id: str
    keys: Mapping[str, PublicKey] = field(default_factory=dict, repr=False)
    subject_keys: Mapping[str, PublicKey] = field(default_factory=dict, repr=False)
    secret_sha256: tuple[bytes, ...] = field(default=(), repr=False)
    audiences: tuple[str, ...]
    scopes: frozenset[str]
    actions: frozenset[str]
    agents: tuple[str, ...]
    subject_tokens: frozenset[SubjectTokenKind] = frozenset({"asserted"})
    max_asserted_level: Level = "standard"
    require_actor_token: bool = False

    def __post_init__(self) -> None:
        _one_proof(self.keys, self.secret_sha256)
        object.__setattr__(self, "keys", _frozen(self.keys))
        object.__setattr__(self, "subject_keys", _frozen(self.subject_keys))

    @property
    def authentication_method(self) -> AuthenticationMethod:
        """
        Return the one way in which this client authenticates; any other is refused.
        """
        return "private_key_jwt" if self.keys else "client_secret_basic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """
    Someone who administers one workspace, with a generated secret or keys of their own, and a closed list of permissions.

    Raises:
        ValueError: unless exactly one of `keys` and `secret_sha256` has something in it.
    """

    name: str
    secret_sha256: tuple[bytes, ...] = field(default=(), repr=False)
    keys: Mapping[str, PublicKey] = field(default_factory=dict, repr=False)
    permissions: frozenset[Permission]

    def __post_init__(self) -> None:
        _one_proof(self.keys, self.secret_sha256)
        object.__setattr__(self, "keys", _frozen(self.keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """
    One tenant: an issuer URL (D3), the connections behind it, and those who may ask or administer.

    `revoked_kids` are keys that neither sign nor are published, whatever the ring says. `most_keys` is how many keys the client
    with the most of them authenticates with, at least 1.

    Raises:
        ValueError: for an audience in two connections (D13), an action name in two connections, a provider's client id in two
            connections, or a mapping key that is not the name of its value.
    """

    name: str
    path: str
    issuer: str
    connections: tuple[Connection, ...]
    clients: Mapping[str, Client]
    admins: Mapping[str, Admin]
    revoked_kids: frozenset[str] = frozenset()
    most_keys: int = field(init=False, repr=False, compare=False)
    _connections: Mapping[str, Connection] = field(init=False, repr=False, compare=False)
    _actions: Mapping[str, tuple[Connection, Action]] = field(init=False, repr=False, compare=False)
    _provider_clients: Mapping[str, ProviderClients] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if any(name != client.client_id for name, client in self.clients.items()):
            raise ValueError("a client stands under another name")
        if any(name != admin.name for name, admin in self.admins.items()):
            raise ValueError("an admin stands under another name")
        audiences = ((audience, each) for each in self.connections for audience in each.audiences)
        actions = ((name, (each, action)) for each in self.connections for name, action in each.actions.items())
        object.__setattr__(self, "_connections", _by_name(audiences, "audience"))
        object.__setattr__(self, "_actions", _by_name(actions, "action"))
        object.__setattr__(self, "_provider_clients", _by_provider(self.connections))
        object.__setattr__(self, "clients", _frozen(self.clients))
        object.__setattr__(self, "admins", _frozen(self.admins))
        object.__setattr__(self, "most_keys", max((len(each.keys) for each in self.clients.values()), default=1) or 1)

    def connection_of(self, audience: str) -> Connection | None:
        """
        Return the one connection that *audience* belongs to, compared code point by code point, or None.
        """
        return self._connections.get(audience)

    def action(self, name: str) -> tuple[Connection, Action] | None:
        """
        Return the action of that name with its connection, or None.
        """
        return self._actions.get(name)

    def provider_clients(self, issuer: str) -> ProviderClients:
        """
        Return what lies behind each client id that the identity provider *issuer* knows; nothing for a stranger.
        """
        return self._provider_clients.get(issuer, _NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """
    Every workspace of the service, all under one origin.

    Raises:
        ValueError: without a workspace, or when two share a name or a path.
    """

    origin: str
    workspaces: tuple[Workspace, ...]
    _by_name: Mapping[str, Workspace] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.workspaces:
            raise ValueError("a service has at least one workspace")
        # Nobody asks for a workspace by its path, but two of the same would be one issuer.
        _by_name(((each.path, each) for each in self.workspaces), "path")
        object.__setattr__(self, "_by_name", _by_name(((each.name, each) for each in self.workspaces), "workspace"))

    def __iter__(self) -> Iterator[Workspace]:
        return iter(self.workspaces)

    def workspace(self, name: str) -> Workspace | None:
        """
        Return the workspace of that name, or None.
        """
        return self._by_name.get(name)
