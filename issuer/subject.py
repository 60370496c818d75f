"""
For whom and through whom: subject and actor tokens that an orchestrator signs (RFC 8693 sections 2.1 and 4, D8, D9, D21).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from verifier.claims import ACTOR_DEPTH, MAX_AUTH_TIME_AHEAD_S, Actor, ClaimsError, is_time, read_actor
from verifier.es256 import PublicKey
from verifier.levels import Level, is_level, satisfies

from .assertions import ACTOR_TOKEN, SUBJECT_TOKEN, Assertion, AssertionKind, AssertionRefused, verify_assertion
from .errors import TokenRefused, invalid_request
from .form import Form
from .id_token import VerifiedIDToken
from .registry import Client, Workspace

__all__ = ["JWT_TOKEN_TYPE", "Subject", "read_actor_chain", "read_asserted_subject"]

JWT_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:jwt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """
    The customer, as the event of their sign-in has it: nothing here comes from the time of minting.

    `namespace` is the identity namespace `sub` belongs to; `expires_at` bounds every token minted from it (epoch seconds).
    `connection` is the only one it holds for, None where the namespace alone decides. Nothing that was confirmed up to
    `confirmed_after` is minted, because somebody else was signed in then. `id_token` is still to be used up, if it was brought.
    """

    sub: str = field(repr=False)
    namespace: str
    acr: Level
    auth_time: float
    expires_at: float
    scope: frozenset[str] | None = None
    act: Actor | None = None
    may_act: str | None = None
    connection: str | None = None
    confirmed_after: int | None = None
    id_token: VerifiedIDToken | None = field(default=None, repr=False)


def read_asserted_subject(token: str, client: Client, workspace: Workspace, now: float) -> Subject:
    """
    Verify a subject token that the client signed itself.

    Raises:
        TokenRefused: `invalid_request` when it is not acceptable.
    """
    assertion = _verify(SUBJECT_TOKEN, token, keys=client.subject_keys, issuer=workspace.issuer, now=now)
    # A customer must never be one of the workspace's own clients (RFC 9068 section 5).
    if assertion.iss != client.client_id or assertion.sub in workspace.clients:
        raise invalid_request("The subject token is not acceptable.", reason="subject_token:subject")
    claims = assertion.claims
    return Subject(
        sub=assertion.sub,
        namespace=_text(claims, "namespace"),
        acr=_level(claims, client),
        auth_time=_auth_time(claims, now),
        expires_at=assertion.exp,
        scope=_scope(claims),
        act=_actor(claims) if "act" in claims else None,
        may_act=_may_act(claims) if "may_act" in claims else None,
    )


def read_actor_chain(
    form: Form, client: Client, workspace: Workspace, subject: Subject, now: float
) -> tuple[Actor, float]:
    """
    Build `act` (D8) and return it with the time no token may outlive.

    The actor is that of the actor token, else the one the subject token names, else the client's only agent; with an actor
    token the subject token's own `act` moves one level in.

    Raises:
        TokenRefused: `invalid_request`.
    """
    token = form.get("actor_token")
    if (token is None) != (form.get("actor_token_type") is None):
        raise invalid_request("actor_token and actor_token_type come together.", reason="actor_token:pair")
    if token is None:
        return _checked(_actor_without_token(client, subject), client, subject), subject.expires_at
    if form.get("actor_token_type") != JWT_TOKEN_TYPE:
        raise invalid_request("The actor_token_type is not supported.", reason="actor_token:token_type")
    assertion = _verify(ACTOR_TOKEN, token, keys=client.keys, issuer=workspace.issuer, now=now)
    if assertion.iss != client.client_id:
        raise invalid_request("The actor token is not acceptable.", reason="actor_token:issuer")
    actor = Actor(assertion.sub, None, subject.act)
    return _checked(actor, client, subject), min(subject.expires_at, assertion.exp)


def _actor_without_token(client: Client, subject: Subject) -> Actor:
    if client.require_actor_token:
        raise invalid_request("This client has to send an actor token.", reason="actor_token:missing")
    if subject.act is not None:
        return subject.act
    if len(client.agents) != 1:
        raise invalid_request("The request has to name the agent.", reason="actor:ambiguous")
    return Actor(client.agents[0])


def _checked(actor: Actor, client: Client, subject: Subject) -> Actor:
    if len(actor.history()) >= ACTOR_DEPTH:
        raise invalid_request("The chain of actors is too deep.", reason="actor:depth")
    if actor.sub not in client.agents or actor.iss is not None:
        raise invalid_request("The client may not act through this agent.", reason="actor:not_allowed")
    if subject.may_act is not None and subject.may_act != actor.sub:
        raise invalid_request("The subject token does not allow this actor.", reason="actor:may_act")
    return actor


def _verify(kind: AssertionKind, token: str, *, keys: Mapping[str, PublicKey], issuer: str, now: float) -> Assertion:
    try:
        return verify_assertion(token, kind, keys=keys, audience=issuer, now=now)
    except AssertionRefused as refusal:
        raise invalid_request(f"The {kind.name} is not acceptable.", reason=f"{kind.name}:{refusal}") from None


def _refused(claim: str) -> TokenRefused:
    return invalid_request("A claim of the subject token is not acceptable.", reason=f"subject_token:{claim}")


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value:
        raise _refused(name)
    return value


def _level(claims: Mapping[str, Any], client: Client) -> Level:
    acr = claims.get("acr")
    if not is_level(acr) or not satisfies(client.max_asserted_level, acr):
        raise _refused("acr")
    return acr


def _auth_time(claims: Mapping[str, Any], now: float) -> float:
    auth_time = claims.get("auth_time")
    # Compared with the whole second that becomes iat, because that is what a verifier compares with.
    if not is_time(auth_time) or auth_time > int(now) + MAX_AUTH_TIME_AHEAD_S:
        raise _refused("auth_time")
    return auth_time


def _scope(claims: Mapping[str, Any]) -> frozenset[str] | None:
    if "scope" not in claims:
        return None
    scope = claims["scope"]
    if not isinstance(scope, str):
        raise _refused("scope")
    return frozenset(scope.split(" "))


def _actor(claims: Mapping[str, Any]) -> Actor:
    try:
        return read_actor(claims["act"])
    except ClaimsError:
        raise _refused("act") from None


def _may_act(claims: Mapping[str, Any]) -> str:
    may_act = claims["may_act"]
    # With `iss` it names an agent of another issuer, which no client may act through.
    if type(may_act) is not dict or "iss" in may_act or not isinstance(may_act.get("sub"), str):
        raise _refused("may_act")
    sub: str = may_act["sub"]
    return sub
