"""
The shape of the configuration: every key at its top, its default and its bounds; `settings_workspaces` has the tenants.

Each field is checked here by itself; `settings_rules` has what must hold between fields. All models are frozen, refuse keys they
do not know, and keep configured values out of their error messages.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SecretStr, StrictBool
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from . import settings_formats as formats
from .logs import LogLevel
from .settings_fields import Audience, Count, File, Label, Network, RedisURL, Seconds, Table, distinct
from .settings_problems import Source
from .settings_workspaces import WorkspaceSettings

__all__ = ["ENVIRONMENT_PREFIX", "JWKSSettings", "LimitsSettings", "LogFormat", "SealingKeySettings", "Settings"]

ENVIRONMENT_PREFIX = "CUSTOMER_CONTEXT_"
"""What the name of every environment variable of this service begins with."""

LogFormat = Literal["json", "console"]


class SealingKeySettings(Table):
    """
    A key that opens sealed rings; the first one configured seals.
    """

    id: Label = Field(description="Name that sealed files carry, so that the right key opens them")
    file: File = Field(description="File that holds the key, readable by the service alone")


class JWKSSettings(Table):
    """
    How long readers may keep a key set (D19). Every waiting time of a key counts both in, so short ones bound a theft.
    """

    max_age_s: Seconds = Field(default=120, ge=30, le=3600, description="`max-age` in seconds, 30 to 3600")
    stale_if_error_s: Seconds = Field(default=120, ge=0, le=3600, description="`stale-if-error` in seconds, 0 to 3600")


class LimitsSettings(Table):
    """
    How much anybody may ask of the token endpoint, and how often a secret may be wrong; 0 turns a limit off.

    All workers and instances on one Redis count together. A secret that is right is never refused for wrong ones before it.
    """

    client_per_second: Count = Field(
        default=100,
        ge=0,
        le=10_000,
        description="Requests of a client, each second, about sign-ins too, 0 to 10,000; 0 for no limit",
    )
    client_burst: Count = Field(
        default=200, ge=1, le=10_000, description="Requests of a client that was quiet, at once, 1 to 10,000"
    )
    customer_per_minute: Count = Field(
        default=120,
        ge=0,
        le=10_000,
        description="Token requests of a client for one customer, at once and then each minute, 0 to 10,000; 0 for no limit",
    )
    wrong_secrets_per_minute: Count = Field(
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
    data_dir: File = Field(description="Folder of the sealed rings and the audit trails")
    redis_url: RedisURL = Field(
        default=SecretStr(""), description="Shared state; empty for embedded stores in one process"
    )
    redis_allow_eviction: Annotated[StrictBool, BeforeValidator(formats.flag)] = Field(
        default=False, description="Whether what was used may be kept in a Redis that forgets some when it is full"
    )
    keys_redis_url: RedisURL = Field(
        default=SecretStr(""), description="A Redis of their own for the key rings; empty for the one of redis_url"
    )
    keys_redis_allow_volatile: Annotated[StrictBool, BeforeValidator(formats.flag)] = Field(
        default=False, description="Whether the key rings may be kept in a Redis that loses them when it restarts"
    )
    log_level: LogLevel = Field(default="info", description="Least severe event that is logged")
    log_format: LogFormat = Field(default="json", description="One JSON object a line, or text for a person")
    jwks: JWKSSettings = Field(default=JWKSSettings(), description="How long readers may keep a key set")
    limits: LimitsSettings = Field(default=LimitsSettings(), description="How much anybody may ask, and guess")
    trusted_proxies: Annotated[tuple[Network, ...], Field(max_length=64), AfterValidator(distinct)] = Field(
        default=(),
        description="Addresses and networks of the proxies whose `X-Forwarded-For` says who asks, at most 64; none when empty",
    )
    shared_audiences: Annotated[tuple[Audience, ...], Field(max_length=1000), AfterValidator(distinct)] = Field(
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
        settings_cls: type[BaseSettings],  # noqa: ARG003 -- the signature is the library's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """
        Take only what the caller passes: the environment is read by `load_settings`, which is told which one.
        """
        return (init_settings,)
