"""
The verification procedure: every check, in the order of D20, pure.

     1  size, three base64url parts, strict JSON, no critical parameters, kid   RFC 7515 5.2   malformed
     2  typ is at+jwt                                                          RFC 9068 4     type
     3  alg is ES256                                                           RFC 8725 3.1   algorithm
     4  required claims and their form                                         RFC 9068 2.2   claims
     5  iss is the configured issuer, code point by code point                 RFC 9068 4     issuer
     6  aud is the configured audience and nothing else                        RFC 9068 4     audience
     7  nbf and iat are not ahead                                              RFC 7519 4.1.5 not_yet_valid
     8  exp is ahead                                                           RFC 7519 4.1.4 expired
     9  exp - iat is at most 60 s                                              D5             lifetime
    10  the key that kid names is published                                    D19            key, keys_unavailable
    11  the signature holds                                                    RFC 7515 5.2   signature
    12  the demanded scope                                                     RFC 6750 3.1   scope
    13  the action, its digest and what confirms it                            D2, D18        action, confirmation
    14  the demanded level and age of the sign-in                              RFC 9470 3     step_up
    15  the token is used for the first time                                   D4             replayed, replay_unavailable

Steps 10 and 15 need the world outside and belong to `verifiers`. Everything before 10 can only refuse; nothing is believed
before 11 holds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final, NamedTuple

from .action import ArgumentsError, BoundAction, bind_action, read_idempotency_key
from .claims import (
    CONFIRMATIONS,
    MAX_CONFIRMATION_AHEAD_S,
    MAX_LIFETIME_S,
    TOKEN_TYPE,
    ActionClaim,
    ClaimsError,
    TokenClaims,
)
from .compact import MalformedToken, UnverifiedToken, parse_compact
from .context import CustomerContext
from .demand import Demand, scope_words
from .errors import CustomerContextError, Reason
from .es256 import ALGORITHM, PublicKey, signature_is_valid
from .sign_in_rule import WALL_CLOCK_RULE, SignInRule, check_sign_in

__all__ = ["CLAIM_CHECKS", "Candidate", "Procedure", "check_algorithm", "check_type"]

_TYPES: Final = frozenset({TOKEN_TYPE, f"application/{TOKEN_TYPE}"})


class Candidate(NamedTuple):
    """
    A token that nothing speaks against yet; its signature is still unchecked.
    """

    token: UnverifiedToken
    claims: TokenClaims
    kid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """
    The checks for one issuer and one audience; *clock_tolerance_s* is in whole seconds, 0 to 60.
    """

    issuer: str
    audience: str
    required_scope: frozenset[str]
    clock_tolerance_s: int

    def admit(self, token: object, now: float) -> Candidate:
        """
        Run steps 1 to 9 at the wall-clock time *now*.

        Raises:
            CustomerContextError: with the reason of the first check that fails.
        """
        try:
            unverified = parse_compact(token)
        except MalformedToken as error:
            raise CustomerContextError("malformed", hint=str(error)) from None
        check_type(unverified)
        check_algorithm(unverified)
        try:
            claims = TokenClaims.from_payload(unverified.claims)
        except ClaimsError as error:
            raise CustomerContextError("claims", hint=f"the claim {error} is missing or has the wrong form") from None
        for _, check in CLAIM_CHECKS:
            check(self, claims, now)
        return Candidate(unverified, claims, unverified.kid or "")

    def establish(
        self,
        candidate: Candidate,
        key: PublicKey,
        demand: Demand,
        now: float,
        *,
        sign_in_rule: SignInRule = WALL_CLOCK_RULE,
    ) -> CustomerContext:
        """
        Run steps 11 to 14 with the key that the issuer publishes under the candidate's kid.

        Step 8 is run again, because fetching the key may have taken a while. *sign_in_rule* is what the context judges by when
        more is demanded of it later.

        Raises:
            CustomerContextError: with the reason of the first check that fails.
        """
        token, claims = candidate.token, candidate.claims
        if not signature_is_valid(key, token.signing_input, token.signature):
            raise CustomerContextError("signature")
        _check_expired(self, claims, now)
        self.check_scope(claims, demand)
        bound = self.check_action(claims, demand, now)
        self.check_step_up(claims, demand, now)
        return CustomerContext(
            _verified=claims,
            _payload=token.claims,
            action=bound.action if bound else None,
            arguments=bound.arguments if bound else None,
            idempotency_key=bound.idempotency_key if bound else None,
            confirmation=claims.action.confirmation if bound and claims.action else None,
            _sign_in_rule=sign_in_rule,
        )

    def recheck(self, claims: TokenClaims, now: float) -> None:
        """
        Run step 8 once more, after a replay store that took its time.

        Raises:
            CustomerContextError: `expired`.
        """
        _check_expired(self, claims, now)

    def remember_until(self, claims: TokenClaims) -> int:
        """
        Return the first whole epoch second at which the token can no longer be accepted here (D4).
        """
        return math.ceil(claims.exp + self.clock_tolerance_s)

    def check_scope(self, claims: TokenClaims, demand: Demand) -> None:
        """
        Check step 12: every demanded word, the call's and the verifier's.
        """
        needed = self.required_scope if demand.scope is None else self.required_scope | scope_words(demand.scope)
        if needed and not needed <= frozenset((claims.scope or "").split(" ")):
            raise CustomerContextError("scope", parameters={"scope": " ".join(sorted(needed))})

    def check_action(self, claims: TokenClaims, demand: Demand, now: float) -> BoundAction | None:
        """
        Check step 13 and return the action with the arguments that were digested, or None for a read.
        """
        signed = claims.action
        if demand.action is None:
            if signed is not None and not demand.ignore_action:
                raise CustomerContextError("action", hint="a token bound to an action came to a call that names none")
            return None
        if signed is None or signed.action != demand.action:
            raise CustomerContextError("action", hint="the token stands for no action or for another one")
        bound = _bind(signed, demand)
        if not compare_digest(bound.digest.encode(), signed.digest.encode()):
            raise CustomerContextError("action", hint="the digest of the arguments differs from the signed one")
        self._check_confirmation(signed, demand, now)
        return bound

    def _check_confirmation(self, signed: ActionClaim, demand: Demand, now: float) -> None:
        if demand.confirmation is None and demand.max_confirmation_age_seconds is None:
            return
        confirmation = signed.confirmation
        # The issuer takes an instant of up to 5 s ahead of its clock, which may be ahead of this one by the tolerance.
        latest = math.ceil(now) + self.clock_tolerance_s + MAX_CONFIRMATION_AHEAD_S
        if confirmation is None or confirmation.at > latest:
            raise CustomerContextError("confirmation", hint="the token carries no usable confirmation")
        if demand.confirmation and CONFIRMATIONS.index(confirmation.by) < CONFIRMATIONS.index(demand.confirmation):
            raise CustomerContextError("confirmation", hint=f"confirmed by {confirmation.by} only")
        limit = demand.max_confirmation_age_seconds
        if limit is not None and now - confirmation.at > limit + self.clock_tolerance_s:
            raise CustomerContextError("confirmation", hint=f"confirmed {now - confirmation.at:.1f} s ago")

    def check_step_up(self, claims: TokenClaims, demand: Demand, now: float) -> None:
        """
        Check step 14: level and age of the customer's sign-in.
        """
        check_sign_in(claims, demand, now=now, clock_tolerance_s=self.clock_tolerance_s)


def _bind(signed: ActionClaim, demand: Demand) -> BoundAction:
    key = signed.idempotency_key
    if demand.idempotency_key is not None:
        sent = read_idempotency_key(demand.idempotency_key)
        if sent is None or (key is not None and sent != key):
            raise CustomerContextError("action", hint="the idempotency key sent is not the signed one")
        key = sent
    if key is None:
        raise CustomerContextError("action", hint="neither the token nor the call has an idempotency key")
    try:
        return bind_action(action=signed.action, arguments=demand.arguments, idempotency_key=key)
    except ArgumentsError as error:
        raise CustomerContextError("action", hint=str(error)) from None


def check_type(token: UnverifiedToken) -> None:
    """
    Check step 2: ASCII letters compare without case (RFC 7515 section 4.1.9), nothing else is alike.
    """
    typ = token.typ
    if not (isinstance(typ, str) and typ.isascii() and typ.lower() in _TYPES):
        raise CustomerContextError("type")


def check_algorithm(token: UnverifiedToken) -> None:
    """
    Check step 3: exactly `ES256`; the token never chooses the algorithm.
    """
    if token.alg != ALGORITHM:
        raise CustomerContextError("algorithm")


def _check_issuer(procedure: Procedure, claims: TokenClaims, _now: float) -> None:
    if claims.iss != procedure.issuer:
        raise CustomerContextError("issuer", hint=_near_miss(claims.iss, procedure.issuer))


def _check_audience(procedure: Procedure, claims: TokenClaims, _now: float) -> None:
    if claims.aud not in (procedure.audience, (procedure.audience,)):
        raise CustomerContextError("audience", hint=_near_miss(claims.aud, procedure.audience))


def _check_not_yet_valid(procedure: Procedure, claims: TokenClaims, now: float) -> None:
    tolerance = procedure.clock_tolerance_s
    if claims.nbf is not None and now < claims.nbf - tolerance:
        raise CustomerContextError("not_yet_valid", hint=f"valid in {claims.nbf - now:.1f} s, tolerance {tolerance} s")
    if claims.iat > math.ceil(now) + tolerance:
        raise CustomerContextError(
            "not_yet_valid", hint=f"issued {claims.iat - now:.1f} s ahead of this clock, tolerance {tolerance} s"
        )


def _check_expired(procedure: Procedure, claims: TokenClaims, now: float) -> None:
    if now >= claims.exp + procedure.clock_tolerance_s:
        raise CustomerContextError(
            "expired", hint=f"expired {now - claims.exp:.1f} s ago, tolerance {procedure.clock_tolerance_s} s"
        )


def _check_lifetime(_procedure: Procedure, claims: TokenClaims, _now: float) -> None:
    if not 0 < claims.exp - claims.iat <= MAX_LIFETIME_S:
        raise CustomerContextError("lifetime", hint=f"lives {claims.exp - claims.iat:g} s")


def _near_miss(got: object, expected: str) -> str | None:
    if isinstance(got, str) and got.rstrip("/") == expected.rstrip("/"):
        return "differs only by a trailing slash"
    return None


CLAIM_CHECKS: Final[tuple[tuple[Reason, Callable[[Procedure, TokenClaims, float], None]], ...]] = (
    ("issuer", _check_issuer),
    ("audience", _check_audience),
    ("not_yet_valid", _check_not_yet_valid),
    ("expired", _check_expired),
    ("lifetime", _check_lifetime),
)
"""Steps 5 to 9, by reason."""
