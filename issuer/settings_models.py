"""
The shape of the configuration: every table, every key, its default and its bounds.

Each field is checked here by itself; `settings_rules` has what must hold between fields. All models are frozen, refuse keys they
do not know, and keep configured values out of their error messages.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, SecretStr, StrictBool
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from verifier.claims import ConfirmedBy
from verifier.levels import Level

from . import settings_formats as formats
from .id_token_signature import IDTokenAlgorithm
from .logs import LogLevel
from .registry import Permission, SubjectTokenKind
from .settings_problems import Source

__all__ = [
    "ENVIRONMENT_PREFIX",
    "ActionSettings",
    "AdminSettings",
    "AmrSettings",
    "ClientSettings",
    "ConnectionSettings",
    "JWKSSettings",
    "LimitsSettings",
    "LogFormat",
    "ProviderSettings",
    "SealingKeySettings",
    "Settings",
    "WorkspaceSettings",
]

ENVIRONMENT_PREFIX = "CUSTOMER_CONTEXT_"
"""What the name of every environment variable of this service begins with."""

LogFormat = Literal["json", "console"]

_Item = TypeVar("_Item")


def _distinct(items: tuple[_Item, ...]) -> tuple[_Item, ...]:
    if len(set(items)) != len(items):
        raise ValueError("must not name anything twice")
    return items


def _no_bool(value: object) -> object:
    # Python counts a bool as an int, TOML does not.
    if isinstance(value, bool):
        raise ValueError("must be a number")  # noqa: TRY004  pydantic collects ValueError only
    return value


def _supported_confirmation(by: ConfirmedBy) -> ConfirmedBy:
    if by == "customer":
        raise ValueError("customer is reserved until the service takes confirmations itself; use client or none")
    return by


def _redis_url(url: SecretStr) -> SecretStr:
    formats.redis_url(url.get_secret_value())
    return url


_ActionName = Annotated[str, AfterValidator(formats.action_name)]
_Agent = Annotated[str, AfterValidator(formats.agent)]
_Audience = Annotated[str, AfterValidator(formats.audience)]
_ClientId = Annotated[str, AfterValidator(formats.client_id)]
_Digest = Annotated[str, AfterValidator(formats.secret_digest)]
_File = Annotated[Path, AfterValidator(formats.absolute_path)]
_Kid = Annotated[str, AfterValidator(formats.kid)]
_Label = Annotated[str, AfterValidator(formats.label)]
_Network = Annotated[str, AfterValidator(formats.network)]
_ProviderWord = Annotated[str, AfterValidator(formats.provider_word)]
_RedisURL = Annotated[SecretStr, AfterValidator(_redis_url)]
_ScopeToken = Annotated[str, AfterValidator(formats.scope_token)]
_Seconds = Annotated[int, BeforeValidator(_no_bool)]
_Count = Annotated[int, BeforeValidator(_no_bool)]
_Scopes = Annotated[tuple[_ScopeToken, ...], Field(max_length=64), AfterValidator(_distinct)]
_Digests = Annotated[tuple[_Digest, ...], Field(max_length=8, repr=False), AfterValidator(_distinct)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class SealingKeySettings(_Table):
    """
    A key that opens sealed rings; the first one configured seals.
    """

    id: _Label = Field(description="Name that sealed files carry, so that the right key opens them")
    file: _File = Field(description="File that holds the key, readable by the service alone")


class ActionSettings(_Table):
    """
    A write that tokens can be minted for.
    """

    name: _ActionName = Field(description="Operation name, the same as in `caplo.action`")
    audience: _Audience = Field(description="API that carries it out, one of the connection's audiences")
    scopes: _Scopes = Field(default=(), description="Scopes that are minted only together with this action; at most 64")
    confirmation: Annotated[ConfirmedBy, AfterValidator(_supported_confirmation)] = Field(
        default="client", description="Least confirmation that is accepted: none or client"
    )
    selector: Annotated[str, AfterValidator(formats.argument_name)] | None = Field(
        default=None,
        description="Argument that the service fills with `namespace:sub`; a request that brings it is refused",
    )


class AmrSettings(_Table):
    """
    A complete set of `amr` values of an identity provider, and the level of a sign-in that has exactly these.
    """

    values: Annotated[tuple[_ProviderWord, ...], Field(min_length=1, max_length=16), AfterValidator(_distinct)] = Field(
        description="The values in any order, 1 to 16; a token with one more, or one less, has another set"
    )
    level: Level = Field(description="Level of such a sign-in")


class ProviderSettings(_Table):
    """
    The identity provider where the customers of a connection sign in.
    """

    issuer: Annotated[str, AfterValidator(formats.provider)] = Field(
        description="Its `iss`, exactly; its keys are found from there by OpenID Connect Discovery, unless a file has them"
    )
    clients: Annotated[dict[_ClientId, _ClientId], Field(min_length=1, max_length=1000)] = Field(
        description="For each client id that the provider knows, the client that may bring tokens issued to it; 1 to 1,000"
    )
    algorithms: Annotated[tuple[IDTokenAlgorithm, ...], Field(min_length=1), AfterValidator(_distinct)] = Field(
        default=("RS256",), description="What it may sign with: RS256, ES256, PS256, EdDSA"
    )
    jwks_file: _File | None = Field(default=None, description="Its public keys, where they are not to be fetched")
    sign_in_lifetime_s: _Seconds = Field(
        default=28_800,
        ge=60,
        le=2_592_000,
        description="How long a recorded sign-in is good for, 60 to 2,592,000 seconds",
    )
    acr: Annotated[dict[_ProviderWord, Level], Field(max_length=64)] = Field(
        default={}, description="Levels of its `acr` values, exactly; at most 64, and what is not here is low"
    )
    amr: Annotated[tuple[AmrSettings, ...], Field(max_length=64)] = Field(
        default=(), description="Levels of complete sets of its `amr` values; at most 64, and what is not here is low"
    )


class ConnectionSettings(_Table):
    """
    One identity namespace and the APIs whose customers it names.
    """

    name: _Label = Field(description="Name that clients refer to")
    namespace: Annotated[str, AfterValidator(formats.namespace)] = Field(
        description="Identity namespace that subject tokens for these audiences must name"
    )
    audiences: Annotated[tuple[_Audience, ...], Field(min_length=1, max_length=8), AfterValidator(_distinct)] = Field(
        description="URLs of the APIs, 1 to 8; each belongs to this connection alone"
    )
    scopes: _Scopes = Field(default=(), description="Scopes that need no action; at most 64")
    actions: Annotated[tuple[ActionSettings, ...], Field(max_length=256)] = Field(
        default=(), description="Writes of these APIs; at most 256"
    )
    provider: ProviderSettings | None = Field(
        default=None, description="Where its customers sign in; without it, clients vouch for them"
    )


class ClientSettings(_Table):
    """
    An orchestrator, how it proves who it is, and all it may ask for.
    """

    client_id: _ClientId = Field(description="Its id, 1 to 255 characters")
    jwks_file: _File | None = Field(
        default=None, description="Public keys of its assertions and actor tokens; at most 8"
    )
    secret_sha256: _Digests = Field(default=(), description="Digests of its secrets, instead of keys; at most 8")
    subject_jwks_file: _File | None = Field(
        default=None, description="Public keys of the subject tokens it signs itself; at most 8"
    )
    connections: Annotated[tuple[_Label, ...], Field(min_length=1, max_length=64), AfterValidator(_distinct)] = Field(
        description="Connections it may target, 1 to 64"
    )
    audiences: (
        Annotated[tuple[_Audience, ...], Field(min_length=1, max_length=512), AfterValidator(_distinct)] | None
    ) = Field(default=None, description="Narrows the audiences to these; all of its connections when absent")
    scopes: _Scopes = Field(default=(), description="Scopes it may ask for; at most 64")
    actions: Annotated[tuple[_ActionName, ...], Field(max_length=256), AfterValidator(_distinct)] = Field(
        default=(), description="Actions it may ask for; at most 256"
    )
    agents: Annotated[tuple[_Agent, ...], Field(min_length=1, max_length=256), AfterValidator(_distinct)] = Field(
        description="Agents it may name in `act`, 1 to 256"
    )
    subject_tokens: Annotated[
        tuple[SubjectTokenKind, ...], Field(min_length=1, max_length=8), AfterValidator(_distinct)
    ] = Field(default=("asserted",), description="Kinds of subject token it may bring: asserted, id_token, sign_in")
    max_asserted_level: Level = Field(
        default="standard", description="Highest level it may state in subject tokens it signs"
    )
    require_actor_token: StrictBool = Field(
        default=False, description="Whether a request without an actor token is refused"
    )


class AdminSettings(_Table):
    """
    Someone who administers one workspace.
    """

    name: _Label = Field(description="Name that stands in the audit trail")
    jwks_file: _File | None = Field(default=None, description="Public keys of its assertions; at most 8")
    secret_sha256: _Digests = Field(default=(), description="Digests of its secrets, instead of keys; at most 8")
    permissions: Annotated[tuple[Permission, ...], Field(min_length=1), AfterValidator(_distinct)] = Field(
        description="What it may do; everything else is refused"
    )


class WorkspaceSettings(_Table):
    """
    One tenant; its issuer is the origin followed by its path.
    """

    name: Annotated[str, AfterValidator(formats.workspace_name)] = Field(
        description="Its id, which also names the file of its ring"
    )
    path: Annotated[str, AfterValidator(formats.workspace_path)] = Field(
        description='Such as "/w/acme"; "" for the root'
    )
    connections: Annotated[tuple[ConnectionSettings, ...], Field(min_length=1, max_length=64)] = Field(
        description="Identity namespaces with their APIs, 1 to 64"
    )
    clients: Annotated[tuple[ClientSettings, ...], Field(max_length=10_000)] = Field(
        default=(), description="Orchestrators; at most 10,000"
    )
    admins: Annotated[tuple[AdminSettings, ...], Field(max_length=100)] = Field(
        default=(), description="Those who administer it; at most 100"
    )
    revoked_kids: Annotated[tuple[_Kid, ...], Field(max_length=100), AfterValidator(_distinct)] = Field(
        default=(), description="Keys that are revoked whatever the key ring says; at most 100"
    )


class JWKSSettings(_Table):
    """
    How long readers may keep a key set (D19). Every waiting time of a key counts both in, so short ones bound a theft.
    """

    max_age_s: _Seconds = Field(default=120, ge=30, le=3600, description="`max-age` in seconds, 30 to 3600")
    stale_if_error_s: _Seconds = Field(default=120, ge=0, le=3600, description="`stale-if-error` in seconds, 0 to 3600")


class LimitsSettings(_Table):
    """
    How much anybody may ask of the token endpoint, and how often a secret may be wrong; 0 turns a limit off.

    All workers and instances on one Redis count together. A secret that is right is never refused for wrong ones before it.
    """

    client_per_second: _Count = Field(
        default=100,
        ge=0,
        le=10_000,
        description="Requests of a client, each second, about sign-ins too, 0 to 10,000; 0 for no limit",
    )
    client_burst: _Count = Field(
        default=200, ge=1, le=10_000, description="Requests of a client that was quiet, at once, 1 to 10,000"
    )
    customer_per_minute: _Count = Field(
        default=120,
        ge=0,
        le=10_000,
        description="Token requests of a client for one customer, at once and then each minute, 0 to 10,000; 0 for no limit",
    )
    wrong_secrets_per_minute: _Count = Field(
        default=10,
        ge=0,
        le=100,
        description="Wrong secrets for one client or admin, and from one address, in any minute, 0 to 100; 0 for no limit",
    )


class Settings(BaseSettings):
    """
    The whole configuration. `settings.load_settings` builds one from a file and an environment; nothing is read implicitly.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        env_prefix=ENVIRONMENT_PREFIX,
        env_nested_delimiter="__",
    )

    origin: Annotated[str, AfterValidator(formats.origin)] = Field(
        description="Scheme and host that every issuer URL begins with; https, or http on a loopback host"
    )
    data_dir: _File = Field(description="Folder of the sealed rings and the audit trails")
    redis_url: _RedisURL = Field(
        default=SecretStr(""), description="Shared state; empty for embedded stores in one process"
    )
    redis_allow_eviction: Annotated[StrictBool, BeforeValidator(formats.flag)] = Field(
        default=False, description="Whether what was used may be kept in a Redis that forgets some when it is full"
    )
    keys_redis_url: _RedisURL = Field(
        default=SecretStr(""), description="A Redis of their own for the key rings; empty for the one of redis_url"
    )
    keys_redis_allow_volatile: Annotated[StrictBool, BeforeValidator(formats.flag)] = Field(
        default=False, description="Whether the key rings may be kept in a Redis that loses them when it restarts"
    )
    log_level: LogLevel = Field(default="info", description="Least severe event that is logged")
    log_format: LogFormat = Field(default="json", description="One JSON object a line, or text for a person")
    jwks: JWKSSettings = Field(default=JWKSSettings(), description="How long readers may keep a key set")
    limits: LimitsSettings = Field(default=LimitsSettings(), description="How much anybody may ask, and guess")
    trusted_proxies: Annotated[tuple[_Network, ...], Field(max_length=64), AfterValidator(_distinct)] = Field(
        default=(),
        description="Addresses and networks of the proxies whose `X-Forwarded-For` says who asks, at most 64; none when empty",
    )
    shared_audiences: Annotated[tuple[_Audience, ...], Field(max_length=1000), AfterValidator(_distinct)] = Field(
        default=(), description="Audiences that several workspaces may use (D13); at most 1,000"
    )
    sealing_keys: Annotated[tuple[SealingKeySettings, ...], Field(min_length=1, max_length=8)] = Field(
        description="Keys of the sealed rings, 1 to 8: the first seals, all open"
    )
    workspaces: Annotated[tuple[WorkspaceSettings, ...], Field(min_length=1, max_length=1000)] = Field(
        description="Tenants, 1 to 1,000"
    )

    _source: Source = PrivateAttr(default_factory=Source)

    @classmethod
    def from_source(cls, values: Mapping[str, Any], source: Source) -> "Settings":
        """
        Check *values* field by field, and remember where they came from.

        Raises:
            pydantic.ValidationError: with every field that is wrong.
        """
        settings = cls(**values)
        settings._source = source
        return settings

    @property
    def source(self) -> Source:
        """
        Return where the settings came from, to say where something is wrong with them.
        """
        return self._source

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  the signature is the library's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """
        Take only what the caller passes: the environment is read by `load_settings`, which is told which one.
        """
        return (init_settings,)
