"""
Why a token is accepted or refused, check by check: the procedure run to its end instead of to its first refusal.

For people with a token in their hand. Nothing is used up, and the signature is shown to nobody.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from .claims import ClaimsError, TokenClaims
from .compact import MalformedToken, UnverifiedToken, parse_compact
from .demand import Demand
from .errors import CustomerContextError, Reason
from .es256 import PublicKey, signature_is_valid
from .procedure import CLAIM_CHECKS, Procedure, check_algorithm, check_type

__all__ = ["Explanation", "Finding", "Outcome", "explain"]

Outcome = Literal["holds", "fails", "not_checked"]
"""What a check came to."""


@dataclass(frozen=True, slots=True)
class Finding:
    """
    One check: the reason a refusal would have, what came out, and what an operator needs to know about it.
    """

    check: Reason
    outcome: Outcome
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """
    Every check in the order of the procedure, and what the token says, unverified, without its signature.
    """

    findings: tuple[Finding, ...]
    header: dict[str, Any]
    claims: dict[str, Any]

    @property
    def refused(self) -> Reason | None:
        """
        The reason a verifier would give, or None when everything that was checked holds.
        """
        return next((finding.check for finding in self.findings if finding.outcome == "fails"), None)


def explain(
    token: object, *, procedure: Procedure, key: Callable[[str], PublicKey], demand: Demand, now: float
) -> Explanation:
    """
    Run every check on a token at the wall-clock time *now*.

    *key* returns the published key of a kid or raises `CustomerContextError`, as a key source does.
    """
    try:
        unverified = parse_compact(token)
    except MalformedToken as error:
        return Explanation(findings=(Finding("malformed", "fails", str(error)),), header={}, claims={})
    findings = [Finding("malformed", "holds")]
    findings += [_run("type", lambda: check_type(unverified)), _run("algorithm", lambda: check_algorithm(unverified))]
    claims, claim_findings = _claim_findings(procedure, unverified, now)
    trusted, key_findings = _key_findings(unverified, key)
    findings += claim_findings + key_findings
    findings += _demand_findings(procedure, claims if trusted else None, demand, now)
    findings.append(Finding("replayed", "not_checked", "only a verifier with its replay store can tell"))
    header = {"typ": unverified.typ, "alg": unverified.alg, "kid": unverified.kid}
    return Explanation(findings=tuple(findings), header=header, claims=unverified.claims)


def _run(reason: Reason, check: Callable[[], object], note: str = "") -> Finding:
    try:
        check()
    except CustomerContextError as refusal:
        return Finding(refusal.reason, "fails", refusal.hint or str(refusal))
    return Finding(reason, "holds", note)


def _claim_findings(
    procedure: Procedure, token: UnverifiedToken, now: float
) -> tuple[TokenClaims | None, list[Finding]]:
    try:
        claims = TokenClaims.from_payload(token.claims)
    except ClaimsError as error:
        fault = Finding("claims", "fails", f"{error} is missing or has the wrong form")
        return None, [fault, *(Finding(reason, "not_checked") for reason, _ in CLAIM_CHECKS)]
    notes = _measured(claims, now)

    def run(reason: Reason, check: Callable[[Procedure, TokenClaims, float], None]) -> Finding:
        return _run(reason, lambda: check(procedure, claims, now), notes.get(reason, ""))

    return claims, [Finding("claims", "holds"), *(run(reason, check) for reason, check in CLAIM_CHECKS)]


def _measured(claims: TokenClaims, now: float) -> dict[Reason, str]:
    age, left = now - claims.iat, claims.exp - now
    return {
        "not_yet_valid": f"issued {abs(age):.1f} s {'ago by' if age >= 0 else 'ahead of'} this clock",
        "expired": f"expires in {left:.1f} s" if left > 0 else f"expired {-left:.1f} s ago, within the tolerance",
        "lifetime": f"lives {claims.exp - claims.iat:.0f} s",
    }


def _key_findings(token: UnverifiedToken, key: Callable[[str], PublicKey]) -> tuple[bool, list[Finding]]:
    try:
        found = key(token.kid or "")
    except CustomerContextError as refusal:
        finding = Finding(refusal.reason, "fails", refusal.hint or str(refusal))
        return False, [finding, Finding("signature", "not_checked")]
    holds = signature_is_valid(found, token.signing_input, token.signature)
    return holds, [Finding("key", "holds"), Finding("signature", "holds" if holds else "fails")]


def _demand_findings(procedure: Procedure, claims: TokenClaims | None, demand: Demand, now: float) -> list[Finding]:
    reasons: tuple[Reason, ...] = ("scope", "action", "confirmation", "step_up")
    if claims is None:
        return [Finding(reason, "not_checked") for reason in reasons]
    scope = bool(procedure.required_scope) or demand.scope is not None
    step_up = demand.level is not None or demand.max_auth_age_seconds is not None
    return [
        _run("scope", lambda: procedure.check_scope(claims, demand)) if scope else _not_demanded("scope"),
        *_action_findings(procedure, claims, demand, now),
        _run("step_up", lambda: procedure.check_step_up(claims, demand, now)) if step_up else _not_demanded("step_up"),
    ]


def _action_findings(procedure: Procedure, claims: TokenClaims, demand: Demand, now: float) -> list[Finding]:
    action = _run("action", lambda: procedure.check_action(claims, demand, now))
    if action.check == "confirmation":
        # The confirmation is looked at when nothing else speaks against the action.
        return [Finding("action", "holds"), action]
    if demand.confirmation is None and demand.max_confirmation_age_seconds is None:
        return [action, _not_demanded("confirmation")]
    return [action, Finding("confirmation", "holds" if action.outcome == "holds" else "not_checked")]


def _not_demanded(reason: Reason) -> Finding:
    return Finding(reason, "not_checked", "not demanded")
