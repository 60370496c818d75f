"""
Who is asking: client authentication at the token endpoint (RFC 6749 section 2.3, RFC 7523 section 2.2, RFC 10070).

Exactly one method per request, and only the one the client is registered for. Whatever is wrong, the client hears the same
words; an unknown client costs the same work as a wrong secret or a wrong signature.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from verifier.compact import MalformedToken, UnverifiedToken, parse_compact

from .assertions import CLIENT_ASSERTION, Assertion, AssertionRefused, verify_assertion
from .basic import is_secret, read_basic
from .errors import WrongSecret, invalid_client, invalid_request
from .form import Form
from .registry import Client, Workspace

__all__ = ["ASSERTION_TYPE", "Authenticated", "authenticate_by_assertion", "authenticate_by_secret", "chosen_method"]

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authenticated:
    """
    A client that proved who it is; `assertion` is what it signed, still to be used up, or None with a secret.
    """

    client: Client
    assertion: Assertion | None


def chosen_method(authorization: Sequence[str], form: Form) -> str:
    """
    Return the one authentication method a request uses.

    Raises:
        TokenRefused: (`invalid_request`) for more than one, (`invalid_client`) for none or one that is not offered.
    """
    by_header = bool(authorization)
    by_assertion = form.get("client_assertion") is not None or form.get("client_assertion_type") is not None
    by_body = form.get("client_secret") is not None
    if len(authorization) > 1 or by_header + by_assertion + by_body > 1:
        raise invalid_request("Exactly one client authentication method is allowed.", reason="client:two_methods")
    if by_header:
        return "client_secret_basic"
    if by_assertion:
        return "private_key_jwt"
    raise invalid_client(reason="client:secret_in_body" if by_body else "client:no_credentials")


def authenticate_by_secret(workspace: Workspace, authorization: str, form: Form) -> Authenticated:
    """
    Authenticate with HTTP Basic, id and secret form-encoded before they were joined (RFC 6749 section 2.3.1).

    Raises:
        TokenRefused: `invalid_client`, as `WrongSecret` when there is a secret and it is not that of a client of this name.
    """
    try:
        client_id, secret = read_basic(authorization)
    except ValueError as error:
        raise invalid_client(reason=f"client:{error}") from None
    client = workspace.clients.get(client_id)
    is_right = is_secret(secret, () if client is None else client.secret_sha256)
    if client is None or not is_right:
        raise WrongSecret(client_id)
    _check_client_id(client, form)
    return Authenticated(client=client, assertion=None)


def authenticate_by_assertion(workspace: Workspace, form: Form, now: float) -> Authenticated:
    """
    Authenticate with a JWT that the client signed for this issuer alone; its `jti` is still to be used up.

    Raises:
        TokenRefused: `invalid_client`.
    """
    if form.get("client_assertion_type") != ASSERTION_TYPE:
        raise invalid_client(reason="client:assertion_type")
    unverified = _unverified(form.get("client_assertion") or "")
    claimed = unverified.claims.get("sub")
    client = workspace.clients.get(claimed) if isinstance(claimed, str) else None
    keys = {} if client is None else client.keys
    try:
        assertion = verify_assertion(
            unverified, CLIENT_ASSERTION, keys=keys, audience=workspace.issuer, now=now, checks=workspace.most_keys
        )
    except AssertionRefused as refusal:
        raise invalid_client(reason=f"client_assertion:{refusal}") from None
    if client is None or not assertion.iss == assertion.sub == client.client_id:
        raise invalid_client(reason="client_assertion:issuer")
    _check_client_id(client, form)
    return Authenticated(client=client, assertion=assertion)


def _unverified(assertion: str) -> UnverifiedToken:
    try:
        return parse_compact(assertion, kid_required=False)
    except MalformedToken:
        raise invalid_client(reason="client_assertion:malformed") from None


def _check_client_id(client: Client, form: Form) -> None:
    named = form.get("client_id")
    if named is not None and named != client.client_id:
        raise invalid_client(reason="client:other_client_id")
