"""
Which action, confirmed how: the `authorization_details` of a token request (RFC 9396, D2, D18, D21).

The arguments are digested here and forgotten; nothing after this module sees them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from verifier.action import ArgumentsError, bind_action, is_idempotency_key
from verifier.claims import CONFIRMATION_LIFETIME_S, CONFIRMATIONS, MAX_CONFIRMATION_AHEAD_S, ConfirmedBy
from verifier.strict_json import StrictJSONError, loads

from .errors import invalid_authorization_details
from .form import Form
from .registry import Action, Client, Workspace
from .subject import Subject

__all__ = ["DETAILS_TYPE", "RequestedAction", "read_action"]

DETAILS_TYPE: Final = "caplo_action"

_MEMBERS: Final = frozenset({"type", "action", "arguments", "idempotencyKey", "confirmation"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedAction:
    """
    One action as asked for; `confirmed_at` (epoch seconds) is None with `none`, where the first mint is the instant (D18).

    `filled` is the argument that the service put in, by name, when the action has a selector.
    """

    action: Action
    digest: str
    idempotency_key: str
    confirmed_by: ConfirmedBy
    confirmed_at: int | None
    filled: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_action(
    form: Form, client: Client, workspace: Workspace, *, audience: str, subject: Subject, now: float
) -> RequestedAction | None:
    """
    Read the action of a request, or None for a read.

    The argument that selects the customer's resource is filled here, before the digest is taken: whoever chose the other
    arguments, a model among them, cannot choose the customer.

    Raises:
        TokenRefused: (`invalid_authorization_details`) for anything but exactly one `caplo_action` without unknown members,
            whose action the client may ask for at this audience, with arguments that have a digest and a live confirmation that
            is strong enough, and not of a customer who was there before.
    """
    text = form.get("authorization_details")
    if text is None:
        return None
    details = _one_object(text)
    action = _action(details["action"], client, workspace, audience)
    key = details["idempotencyKey"]
    if not is_idempotency_key(key):
        raise invalid_authorization_details("The idempotencyKey is malformed.", reason="action:idempotency_key")
    arguments = details["arguments"]
    if type(arguments) is not dict:
        raise invalid_authorization_details("The arguments are not an object.", reason="action:arguments")
    filled = _filled(action, arguments, subject)
    try:
        bound = bind_action(action=action.name, arguments=arguments | filled, idempotency_key=key)
    except ArgumentsError as error:
        raise invalid_authorization_details(f"No digest: {error}.", reason="action:arguments") from None
    confirmed_by, confirmed_at = _confirmation(details["confirmation"], action, subject, now)
    return RequestedAction(
        action=action,
        digest=bound.digest,
        idempotency_key=key,
        confirmed_by=confirmed_by,
        confirmed_at=confirmed_at,
        filled=filled,
    )


def _one_object(text: str) -> dict[str, Any]:
    try:
        value = loads(text)
    except StrictJSONError as error:
        raise invalid_authorization_details(
            f"authorization_details is not strict JSON: {error}.", reason="action:json"
        ) from None
    if type(value) is not list or len(value) != 1 or type(value[0]) is not dict:
        raise invalid_authorization_details("Exactly one object is expected.", reason="action:count")
    details: dict[str, Any] = value[0]
    if details.get("type") != DETAILS_TYPE:
        raise invalid_authorization_details("The type is not supported.", reason="action:type")
    if details.keys() != _MEMBERS:
        raise invalid_authorization_details("A member is missing or unknown.", reason="action:members")
    return details


def _action(name: object, client: Client, workspace: Workspace, audience: str) -> Action:
    found = workspace.action(name) if isinstance(name, str) else None
    if found is None or found[1].name not in client.actions or found[1].audience != audience:
        raise invalid_authorization_details("The action is unknown here.", reason="action:unknown")
    return found[1]


def _filled(action: Action, arguments: Mapping[str, Any], subject: Subject) -> dict[str, str]:
    if action.selector is None:
        return {}
    if action.selector in arguments:
        raise invalid_authorization_details("The selector is filled by this service alone.", reason="action:selector")
    return {action.selector: f"{subject.namespace}:{subject.sub}"}


def _confirmation(value: object, action: Action, subject: Subject, now: float) -> tuple[ConfirmedBy, int | None]:
    if type(value) is not dict or value.get("by") not in CONFIRMATIONS:
        raise invalid_authorization_details("The confirmation is malformed.", reason="confirmation:form")
    confirmed_by: ConfirmedBy = value["by"]
    if confirmed_by == "customer":
        raise invalid_authorization_details("This service takes no confirmations.", reason="confirmation:customer")
    if CONFIRMATIONS.index(confirmed_by) < CONFIRMATIONS.index(action.confirmation):
        raise invalid_authorization_details("The action needs a confirmation.", reason="confirmation:too_weak")
    if confirmed_by == "none":
        if value.keys() != {"by"}:
            raise invalid_authorization_details("The confirmation is malformed.", reason="confirmation:form")
        # Nobody confirmed anything, so nobody else did; what stands under the key holds the action to its customer.
        return confirmed_by, None
    confirmed_at = _confirmed_at(value, now)
    if subject.confirmed_after is not None and confirmed_at <= subject.confirmed_after:
        raise invalid_authorization_details(
            "It was confirmed while another customer was signed in.", reason="confirmation:other_customer"
        )
    return confirmed_by, confirmed_at


def _confirmed_at(value: dict[str, Any], now: float) -> int:
    at = value.get("at")
    if value.keys() != {"by", "at"} or type(at) is not int or not 0 <= at <= now + MAX_CONFIRMATION_AHEAD_S:
        raise invalid_authorization_details("The confirmation is malformed.", reason="confirmation:form")
    if now >= at + CONFIRMATION_LIFETIME_S:
        raise invalid_authorization_details("The confirmation has expired.", reason="confirmation:expired")
    return at
