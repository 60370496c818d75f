"""
The shape of a workspace in the configuration: who may ask and administer, for which APIs, and where customers sign in.

As in `settings_models`, each field is checked by itself.
"""

from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool

from verifier.claims import ConfirmedBy
from verifier.levels import Level

from . import settings_formats as formats
from .id_token_signature import IDTokenAlgorithm
from .registry import Permission, SubjectTokenKind
from .settings_fields import (
    ActionName,
    Agent,
    Audience,
    ClientID,
    Digests,
    File,
    Kid,
    Label,
    ProviderWord,
    Scopes,
    Seconds,
    Table,
    distinct,
)

__all__ = [
    "ActionSettings",
    "AdminSettings",
    "AmrSettings",
    "ClientSettings",
    "ConnectionSettings",
    "ProviderSettings",
    "WorkspaceSettings",
]


def _supported_confirmation(by: ConfirmedBy) -> ConfirmedBy:
    if by == "customer":
        raise ValueError("customer is reserved until the service takes confirmations itself; use client or none")
    return by


class ActionSettings(Table):
    """
    A write that tokens can be minted for.
    """

    name: ActionName = Field(description="Operation name, the same as in `caplo.action`")
    audience: Audience = Field(description="API that carries it out, one of the connection's audiences")
    scopes: Scopes = Field(default=(), description="Scopes that are minted only together with this action; at most 64")
    confirmation: Annotated[ConfirmedBy, AfterValidator(_supported_confirmation)] = Field(
        default="client", description="Least confirmation that is accepted: none or client"
    )
    selector: Annotated[str, AfterValidator(formats.argument_name)] | None = Field(
        default=None,
        description="Argument that the service fills with `namespace:sub`; a request that brings it is refused",
    )


class AmrSettings(Table):
    """
    A complete set of `amr` values of an identity provider, and the level of a sign-in that has exactly these.
    """

    values: Annotated[tuple[ProviderWord, ...], Field(min_length=1, max_length=16), AfterValidator(distinct)] = Field(
        description="The values in any order, 1 to 16; a token with one more, or one less, has another set"
    )
    level: Level = Field(description="Level of such a sign-in")


class ProviderSettings(Table):
    """
    The identity provider where the customers of a connection sign in.
    """

    issuer: Annotated[str, AfterValidator(formats.provider)] = Field(
        description="Its `iss`, exactly; its keys are found from there by OpenID Connect Discovery, unless a file has them"
    )
    clients: Annotated[dict[ClientID, ClientID], Field(min_length=1, max_length=1000)] = Field(
        description="For each client id that the provider knows, the client that may bring tokens issued to it; 1 to 1,000"
    )
    algorithms: Annotated[tuple[IDTokenAlgorithm, ...], Field(min_length=1), AfterValidator(distinct)] = Field(
        default=("RS256",), description="What it may sign with: RS256, ES256, PS256, EdDSA"
    )
    jwks_file: File | None = Field(default=None, description="Its public keys, where they are not to be fetched")
    sign_in_lifetime_s: Seconds = Field(
        default=28_800,
        ge=60,
        le=2_592_000,
        description="How long a recorded sign-in is good for, 60 to 2,592,000 seconds",
    )
    acr: Annotated[dict[ProviderWord, Level], Field(max_length=64)] = Field(
        default={}, description="Levels of its `acr` values, exactly; at most 64, and what is not here is low"
    )
    amr: Annotated[tuple[AmrSettings, ...], Field(max_length=64)] = Field(
        default=(), description="Levels of complete sets of its `amr` values; at most 64, and what is not here is low"
    )


class ConnectionSettings(Table):
    """
    One identity namespace and the APIs whose customers it names.
    """

    name: Label = Field(description="Name that clients refer to")
    namespace: Annotated[str, AfterValidator(formats.namespace)] = Field(
        description="Identity namespace that subject tokens for these audiences must name"
    )
    audiences: Annotated[tuple[Audience, ...], Field(min_length=1, max_length=8), AfterValidator(distinct)] = Field(
        description="URLs of the APIs, 1 to 8; each belongs to this connection alone"
    )
    scopes: Scopes = Field(default=(), description="Scopes that need no action; at most 64")
    actions: Annotated[tuple[ActionSettings, ...], Field(max_length=256)] = Field(
        default=(), description="Writes of these APIs; at most 256"
    )
    provider: ProviderSettings | None = Field(
        default=None, description="Where its customers sign in; without it, clients vouch for them"
    )


class ClientSettings(Table):
    """
    An orchestrator, how it proves who it is, and all it may ask for.
    """

    client_id: ClientID = Field(description="Its id, 1 to 255 characters")
    jwks_file: File | None = Field(
        default=None, description="Public keys of its assertions and actor tokens; at most 8"
    )
    secret_sha256: Digests = Field(default=(), description="Digests of its secrets, instead of keys; at most 8")
    subject_jwks_file: File | None = Field(
        default=None, description="Public keys of the subject tokens it signs itself; at most 8"
    )
    connections: Annotated[tuple[Label, ...], Field(min_length=1, max_length=64), AfterValidator(distinct)] = Field(
        description="Connections it may target, 1 to 64"
    )
    audiences: Annotated[tuple[Audience, ...], Field(min_length=1, max_length=512), AfterValidator(distinct)] | None = (
        Field(default=None, description="Narrows the audiences to these; all of its connections when absent")
    )
    scopes: Scopes = Field(default=(), description="Scopes it may ask for; at most 64")
    actions: Annotated[tuple[ActionName, ...], Field(max_length=256), AfterValidator(distinct)] = Field(
        default=(), description="Actions it may ask for; at most 256"
    )
    agents: Annotated[tuple[Agent, ...], Field(min_length=1, max_length=256), AfterValidator(distinct)] = Field(
        description="Agents it may name in `act`, 1 to 256"
    )
    subject_tokens: Annotated[
        tuple[SubjectTokenKind, ...], Field(min_length=1, max_length=8), AfterValidator(distinct)
    ] = Field(default=("asserted",), description="Kinds of subject token it may bring: asserted, id_token, sign_in")
    max_asserted_level: Level = Field(
        default="standard", description="Highest level it may state in subject tokens it signs"
    )
    require_actor_token: StrictBool = Field(
        default=False, description="Whether a request without an actor token is refused"
    )


class AdminSettings(Table):
    """
    Someone who administers one workspace.
    """

    name: Label = Field(description="Name that stands in the audit trail")
    jwks_file: File | None = Field(default=None, description="Public keys of its assertions; at most 8")
    secret_sha256: Digests = Field(default=(), description="Digests of its secrets, instead of keys; at most 8")
    permissions: Annotated[tuple[Permission, ...], Field(min_length=1), AfterValidator(distinct)] = Field(
        description="What it may do; everything else is refused"
    )


class WorkspaceSettings(Table):
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
    revoked_kids: Annotated[tuple[Kid, ...], Field(max_length=100), AfterValidator(distinct)] = Field(
        default=(), description="Keys that are revoked whatever the key ring says; at most 100"
    )
