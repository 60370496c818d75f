"""
One workspace's token endpoint, without HTTP (RFC 6749 section 3.2, RFC 8693).

Order of checks: media type, size, form, repeated parameters, client authentication, assertion used once, grant type, grant,
limits, suspensions, ID token used once, idempotency key. A request whose grant is refused counts for its client all the same, and
uses no ID token up; what stands under an idempotency key is looked at last, since nothing is recorded for an ID token of before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from verifier.claims import TokenClaims

from .action_request import DETAILS_TYPE, RequestedAction
from .client_entry import ClientEntry
from .errors import (
    TokenRefused,
    invalid_authorization_details,
    invalid_request,
    suspended,
    temporarily_unavailable,
)
from .exchange import ACCESS_TOKEN_TYPE, Exchange, decide, find_target
from .form import Form, parse_form
from .idempotency import Claimed
from .metrics import Metrics
from .mint_counts import MintCounts
from .minting import Minted, mint, token_claims
from .oauth import OAuthRequest, OAuthServer
from .registry import Client, Workspace
from .reports import Report
from .rings import LiveRing, RingUnavailable
from .sign_in_events import SignInEvents
from .source import UNKNOWN
from .state import IssuerState
from .store_answers import answered, cannot_tell
from .subjects import Subjects

__all__ = ["TokenEndpoint", "TokenRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """
    What arrived: every `Authorization` value, the media type, the body; and from where (`source.Sources`).
    """

    authorization: Sequence[str] = field(repr=False)
    content_type: str | None
    body: bytes = field(repr=False)
    source: str = UNKNOWN


class TokenEndpoint:
    """
    Answer token requests of one workspace.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        ring: LiveRing,
        server: OAuthServer,
        entry: ClientEntry,
        state: IssuerState,
        events: SignInEvents,
        metrics: Metrics,
        mints: MintCounts,
        report: Report,
        now: Callable[[], float],
    ) -> None:
        """
        Keep the parts; *mints* is told of every token, *now* is the wall clock in epoch seconds.
        """
        self._workspace = workspace
        self._ring = ring
        self._state = state
        self._metrics = metrics
        self._mints = mints
        self._report = report
        self._now = now
        self._server = server
        self._entry = entry
        self._subjects = Subjects(workspace, events=events, sign_ins=state.sign_ins)

    async def answer(self, request: TokenRequest) -> Mapping[str, Any]:
        """
        Mint a token and return the members of a successful answer (RFC 8693 section 2.2.1).

        Raises:
            TokenRefused: when no token is minted; it has been counted and reported.
        """
        known = {"source": request.source}
        try:
            return await self._answer(request, known)
        except TokenRefused as refused:
            known |= {name: fact for name in ("problem", "suspension") if (fact := getattr(refused, name)) is not None}
            self._metrics.refused(self._workspace.name, refused.error)
            self._report(
                "token_refused", workspace=self._workspace.name, error=refused.error, reason=refused.reason, **known
            )
            raise

    async def _answer(self, request: TokenRequest, known: dict[str, str]) -> Mapping[str, Any]:
        form = parse_form(request.content_type, request.body)
        oauth_request = OAuthRequest(form, request.authorization)
        authenticated = await self._entry.authenticate(oauth_request, request.source)
        known["client_id"] = authenticated.client.client_id
        await self._entry.use_up(authenticated)
        return await self._mint(await self._granted(oauth_request, authenticated.client), request.source)

    async def _granted(self, request: OAuthRequest, client: Client) -> Exchange:
        """
        Decide what is granted, and count the request whatever comes of it.
        """
        try:
            self._server.require_exchange(request)
            exchange = await self._decide(request.parameters, client)
        except TokenRefused:
            await self._entry.count(client)
            raise
        await self._entry.count(client, (exchange.subject.namespace, exchange.subject.sub))
        return exchange

    async def _decide(self, form: Form, client: Client) -> Exchange:
        target = find_target(form, client, self._workspace)
        subject = await self._subjects.read(form, client, self._now())
        # To find out who it is may have taken seconds, which count for every age.
        return decide(form, client, self._workspace, target=target, subject=subject, now=self._now())

    async def _mint(self, exchange: Exchange, source: str) -> Mapping[str, Any]:
        try:
            view = self._ring.current(self._now())
        except RingUnavailable:
            raise _no_key() from None
        if (suspension := view.suspensions.find(exchange.suspendable(), self._now())) is not None:
            raise suspended(suspension.target.kind, suspension.id)
        await self._subjects.use_up(exchange.subject)
        confirmed_at = None if exchange.action is None else await self._claim(exchange, exchange.action)
        claims = token_claims(exchange, issuer=self._workspace.issuer, now=self._now(), confirmed_at=confirmed_at)
        minted = await mint(claims, view.signer)
        # The lease is looked at again after signing: a process that was paused in between hands nothing out.
        if not self._ring.confirm(view):
            raise _no_key()
        self._take_note(exchange, claims, minted, source)
        return _members(exchange, minted)

    async def _claim(self, exchange: Exchange, action: RequestedAction) -> int:
        """
        Count this mint under its idempotency key and return the instant of the confirmation (D12, D18).
        """
        now = self._now()
        key = (self._workspace.name, exchange.client.client_id, action.action.name, action.idempotency_key)
        contents = self._state.fingerprints.of(
            self._workspace.name, action.digest, exchange.subject.sub, exchange.connection.name, exchange.audience
        )
        confirmed_at = int(now) if action.confirmed_at is None else action.confirmed_at
        claimed = await answered(
            self._state.idempotency.claim(key, contents, action.confirmed_by, confirmed_at, now),
            reason="idempotency:cannot_tell",
        )
        if isinstance(claimed, Claimed):
            return claimed.confirmed_at
        if claimed == "exhausted":
            raise invalid_authorization_details("The key was minted for too often.", reason="idempotency:exhausted")
        if claimed == "full":
            raise temporarily_unavailable(
                "The client has too many confirmed actions alive.",
                reason="idempotency:full",
                status=429,
                retry_after_s=60,
            )
        if claimed == "conflict":
            raise invalid_request("The idempotency key stands for something else.", reason="idempotency:conflict")
        raise cannot_tell(claimed, reason="idempotency:cannot_tell")

    def _take_note(self, exchange: Exchange, claims: TokenClaims, minted: Minted, source: str) -> None:
        action = claims.action
        self._metrics.minted(self._workspace.name, exchange.audience, "read" if action is None else "write")
        self._mints.add(minted.kid, exchange.audience, action.action if action else None, claims.iat)
        self._report(
            "token_minted",
            workspace=self._workspace.name,
            client_id=claims.client_id,
            source=source,
            agent=claims.act.sub,
            audience=exchange.audience,
            scope=claims.scope,
            acr=claims.acr,
            action=action.action if action else None,
            action_digest=action.digest if action else None,
            jti=claims.jti,
            kid=minted.kid,
        )


def _no_key() -> TokenRefused:
    return temporarily_unavailable("The signing keys cannot be used right now.", reason="ring:unavailable")


def _members(exchange: Exchange, minted: Minted) -> Mapping[str, Any]:
    members: dict[str, Any] = {
        "access_token": minted.token,
        "issued_token_type": ACCESS_TOKEN_TYPE,
        "token_type": "Bearer",
        "expires_in": minted.expires_in_s,
    }
    if exchange.scope is not None:
        members["scope"] = exchange.scope
    if exchange.action is not None:
        action = exchange.action
        granted: dict[str, Any] = {"type": DETAILS_TYPE, "action": action.action.name, "actionDigest": action.digest}
        if action.filled:
            granted["selector"] = action.filled
        members["authorization_details"] = [granted]
    return members
