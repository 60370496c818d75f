"""
What the fields of the configuration are made of: the forms of single values as types, and the table that all models are.
"""

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from . import settings_formats as formats

__all__ = [
    "ActionName",
    "Agent",
    "Audience",
    "ClientID",
    "Count",
    "Digests",
    "File",
    "Kid",
    "Label",
    "Network",
    "ProviderWord",
    "RedisURL",
    "Scopes",
    "Seconds",
    "Table",
    "distinct",
]

_Item = TypeVar("_Item")


def distinct(items: tuple[_Item, ...]) -> tuple[_Item, ...]:
    """
    Check that nothing is named twice.
    """
    if len(set(items)) != len(items):
        raise ValueError("must not name anything twice")
    return items


def _no_bool(value: object) -> object:
    # Python counts a bool as an int, TOML does not.
    if isinstance(value, bool):
        raise ValueError("must be a number")  # noqa: TRY004 -- pydantic collects ValueError only
    return value


def _redis_url(url: SecretStr) -> SecretStr:
    formats.redis_url(url.get_secret_value())
    return url


ActionName = Annotated[str, AfterValidator(formats.action_name)]
Agent = Annotated[str, AfterValidator(formats.agent)]
Audience = Annotated[str, AfterValidator(formats.audience)]
ClientID = Annotated[str, AfterValidator(formats.client_id)]
_Digest = Annotated[str, AfterValidator(formats.secret_digest)]
File = Annotated[Path, AfterValidator(formats.absolute_path)]
Kid = Annotated[str, AfterValidator(formats.kid)]
Label = Annotated[str, AfterValidator(formats.label)]
Network = Annotated[str, AfterValidator(formats.network)]
ProviderWord = Annotated[str, AfterValidator(formats.provider_word)]
RedisURL = Annotated[SecretStr, AfterValidator(_redis_url)]
_ScopeToken = Annotated[str, AfterValidator(formats.scope_token)]
Seconds = Annotated[int, BeforeValidator(_no_bool)]
Count = Annotated[int, BeforeValidator(_no_bool)]
Scopes = Annotated[tuple[_ScopeToken, ...], Field(max_length=64), AfterValidator(distinct)]
Digests = Annotated[tuple[_Digest, ...], Field(max_length=8, repr=False), AfterValidator(distinct)]


class Table(BaseModel):
    """
    A table of the configuration: frozen, without keys it does not know, and silent about values in its error messages.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
