"""
What an API may believe once a token has passed every check.
"""

from dataclasses import dataclass, field
from typing import Any, Self

from .claims import Confirmation, TokenClaims
from .demand import Demand
from .frozen import FrozenDict, freeze
from .levels import Level, is_level
from .sign_in_rule import WALL_CLOCK_RULE, SignInRule

__all__ = ["CustomerContext"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class CustomerContext:
    """
    A verified customer context: who, through which agent, how well verified, and for a write, which confirmed action.

    The token itself is not kept, so that it cannot leak from here; the representation names no customer either. Identify the
    customer by `iss` and `sub` together, and execute a write from `action`, `arguments` and `idempotency_key`, nothing else.

    Attributes:
        action: the confirmed action, or None when the call named none.
        arguments: the arguments whose digest the token carries, deeply frozen, or None.
        idempotency_key: the signed key of the action, or None.
        confirmation: what stands behind the action, or None.
    """

    _verified: TokenClaims
    _payload: dict[str, Any] = field(repr=False)
    action: str | None
    arguments: FrozenDict | None
    idempotency_key: str | None
    confirmation: Confirmation | None
    _sign_in_rule: SignInRule = field(default=WALL_CLOCK_RULE, repr=False)

    def require(self, *, level: Level | None = None, max_auth_age_seconds: int | None = None) -> Self:
        """
        Demand more of the customer's sign-in than the call to `verify` did, and return this same context.

        For an API that learns only after verification what it is about to do, say from the amount. The token is used up by
        then: an orchestrator that is asked to step up comes back with another. Demand it before anything is executed.

        Args:
            level: the least verification level.
            max_auth_age_seconds: how old the sign-in may be by now, 0 to 86400 seconds; 0 asks for one made for this call.

        Raises:
            CustomerContextError: `step_up`, as from `verify` with the same demand.
            ValueError, TypeError: the demand makes no sense.
        """
        self._sign_in_rule.check(self._verified, Demand(level=level, max_auth_age_seconds=max_auth_age_seconds))
        return self

    @property
    def iss(self) -> str:
        """
        The workspace's issuer URL.
        """
        return self._verified.iss

    @property
    def sub(self) -> str:
        """
        The customer's id in the API's own system; unique together with `iss`.
        """
        return self._verified.sub

    @property
    def client_id(self) -> str:
        """
        The orchestrator that asked for the token.
        """
        return self._verified.client_id

    @property
    def actor(self) -> str:
        """
        The agent that makes this call: the outermost `act.sub`, the only one to decide on (RFC 8693 section 4.1).
        """
        return self._verified.act.sub

    @property
    def actor_issuer(self) -> str | None:
        """
        The issuer the agent belongs to when it is another one than `iss`, else None.
        """
        return self._verified.act.iss

    @property
    def actor_history(self) -> tuple[str, ...]:
        """
        The agents before the present one, latest first. Informational only: RFC 8693 section 4.1 forbids deciding on them.
        """
        return self._verified.act.history()

    @property
    def acr(self) -> str:
        """
        The authentication context class as signed, known to this profile or not.
        """
        return self._verified.acr

    @property
    def level(self) -> Level | None:
        """
        The verification level, or None when `acr` is no level of this profile.
        """
        acr = self._verified.acr
        return acr if is_level(acr) else None

    @property
    def auth_time(self) -> float | None:
        """
        When the customer signed in, in epoch seconds, or None when the token does not say.
        """
        return self._verified.auth_time

    @property
    def issued_at(self) -> float:
        """
        When the token was minted, in epoch seconds.
        """
        return self._verified.iat

    @property
    def expires_at(self) -> float:
        """
        When the token ends, in epoch seconds.
        """
        return self._verified.exp

    @property
    def jti(self) -> str:
        """
        The token's identifier, safe to log.
        """
        return self._verified.jti

    @property
    def scopes(self) -> frozenset[str]:
        """
        The granted scope words.
        """
        scope = self._verified.scope
        return frozenset(scope.split(" ")) if scope else frozenset()

    @property
    def claims(self) -> FrozenDict:
        """
        Every claim as signed, deeply frozen, those unknown to this profile too.
        """
        frozen: FrozenDict = freeze(self._payload)
        return frozen

    def __repr__(self) -> str:
        return f"CustomerContext(level={self.level!r}, actor={self.actor!r}, action={self.action!r}, jti={self.jti!r})"
