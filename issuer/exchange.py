"""
What may be minted for a token request: the pure decision between the form and the signature (RFC 8693, D6, D9, D21).

Order: requested type, target, subject, actor, action, scope, demanded authentication. Everything that is not listed is refused.
Who the subject is has been found out before (`subjects`), between the target and the rest.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from verifier.claims import Actor
from verifier.demand import FRESH_SIGN_IN_S, scope_words
from verifier.levels import is_level, satisfies

from .action_request import RequestedAction, read_action
from .errors import TokenRefused, invalid_request, invalid_scope, invalid_target
from .form import Form
from .registry import Client, Connection, Workspace
from .subject import Subject, read_actor_chain
from .suspensions import Target

__all__ = ["ACCESS_TOKEN_TYPE", "GRANT_TYPE", "Exchange", "decide", "find_target"]

GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:access_token"

_MAX_AGE_DIGITS: Final = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """
    Everything a token will say, decided; `not_after` is the epoch second it may not outlive.
    """

    client: Client
    connection: Connection
    audience: str
    subject: Subject
    actor: Actor
    scope: str | None
    action: RequestedAction | None
    not_after: float

    def suspendable(self) -> Iterator[Target]:
        """
        Give everything about the token that may be suspended: client, every agent of the chain, customer, action.
        """
        yield Target("client", self.client.client_id)
        for agent in (self.actor.sub, *self.actor.history()):
            yield Target("agent", agent)
        yield Target("customer", self.subject.sub, self.subject.namespace)
        if self.action is not None:
            yield Target("action", self.action.action.name)


def decide(
    form: Form, client: Client, workspace: Workspace, *, target: tuple[Connection, str], subject: Subject, now: float
) -> Exchange:
    """
    Decide what an authenticated client's request for *target* is granted on behalf of *subject*.

    Raises:
        TokenRefused: for the first thing that does not hold.
    """
    connection, audience = target
    if subject.namespace != connection.namespace or subject.connection not in (None, connection.name):
        raise invalid_request("The subject token is for another namespace.", reason="subject_token:namespace")
    actor, not_after = read_actor_chain(form, client, workspace, subject, now)
    action = read_action(form, client, workspace, audience=audience, subject=subject, now=now)
    scope = _scope(form, client, connection, subject, action)
    _check_demand(form, subject, now)
    return Exchange(
        client=client,
        connection=connection,
        audience=audience,
        subject=subject,
        actor=actor,
        scope=scope,
        action=action,
        not_after=not_after,
    )


def find_target(form: Form, client: Client, workspace: Workspace) -> tuple[Connection, str]:
    """
    Find the one audience (D6) and its connection: `resource` (RFC 8707) and `audience` (RFC 8693) name the same thing here.

    Raises:
        TokenRefused: `invalid_request` when something else than an access token is asked for, `invalid_target` unless exactly one
            audience is named, or is the client's only one, that the client may target.
    """
    if form.get("requested_token_type") not in (None, ACCESS_TOKEN_TYPE):
        raise invalid_request("Only access tokens are issued.", reason="requested_token_type")
    if form.repeated:
        raise invalid_target("A target is named more than once.", reason="target:repeated")
    resource, audience = form.get("resource"), form.get("audience")
    if resource is not None and audience is not None and resource != audience:
        raise invalid_target("resource and audience name different targets.", reason="target:differ")
    target = resource or audience
    if target is None:
        if len(client.audiences) != 1:
            raise invalid_target("The request has to name its target.", reason="target:missing")
        target = client.audiences[0]
    connection = workspace.connection_of(target)
    if connection is None or target not in client.audiences:
        raise invalid_target("The client may not target this API.", reason="target:not_allowed")
    return connection, target


def _scope(
    form: Form, client: Client, connection: Connection, subject: Subject, action: RequestedAction | None
) -> str | None:
    """
    Grant exactly the requested scope, or that of the action when none was requested.
    """
    owned = frozenset() if action is None else action.action.scopes
    requested = form.get("scope")
    if requested is None:
        granted = owned & client.scopes if subject.scope is None else owned & client.scopes & subject.scope
        return " ".join(sorted(granted)) or None
    try:
        words = scope_words(requested)
    except ValueError:
        raise invalid_scope("The scope is malformed.", reason="scope:form") from None
    if len(words) != requested.count(" ") + 1:
        raise invalid_scope("A scope word occurs twice.", reason="scope:form")
    if (words & connection.action_scopes) - owned:
        raise invalid_scope("The scope is minted only together with its action.", reason="scope:needs_action")
    if not words <= client.scopes & (connection.scopes | owned):
        raise invalid_scope("The scope is not available to this client here.", reason="scope:not_allowed")
    if subject.scope is not None and not words <= subject.scope:
        raise invalid_scope("The scope is wider than that of the subject token.", reason="scope:wider")
    return requested


def _check_demand(form: Form, subject: Subject, now: float) -> None:
    """
    Hold the sign-in against `acr_values` and `max_age`; demands, never claims (RFC 9470 section 5).
    """
    acr_values, max_age = form.get("acr_values"), form.get("max_age")
    met = True
    if acr_values is not None:
        # The values stand in the order of preference: the first that is known is the demand, and without one nothing meets it.
        level = next((value for value in acr_values.split(" ") if is_level(value)), None)
        met = level is not None and satisfies(subject.acr, level)
    if max_age is not None:
        if _MAX_AGE_DIGITS.fullmatch(max_age) is None:
            raise invalid_request("max_age is a number of seconds.", reason="max_age:form")
        met = met and now - subject.auth_time <= (int(max_age) or FRESH_SIGN_IN_S)
    if not met:
        raise TokenRefused(
            "unmet_authentication_requirements",
            "The customer has to sign in again, stronger or more recently.",
            reason="authentication:unmet",
        )
