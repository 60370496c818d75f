"""
The explanation of a token: every check with its outcome, in agreement with what a verifier decides.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from verifier import CustomerContextError, CustomerContextVerifier, action_digest
from verifier.compact import b64url_decode, b64url_encode
from verifier.demand import Demand
from verifier.explain import Explanation, Finding, explain
from verifier.fixed_key_source import FixedKeySource
from verifier.procedure import Procedure

FIXTURE = json.loads((Path(__file__).parents[1] / "data" / "fixture.json").read_text())
ISSUER, AUDIENCE, NOW = FIXTURE["issuer"], FIXTURE["audience"], FIXTURE["now"]
READ_CHECKS = ["malformed", "type", "algorithm", "claims", "issuer", "audience", "not_yet_valid", "expired", "lifetime"]
KEY_CHECKS = ["key", "signature"]
DEMANDS = ["scope", "action", "confirmation", "step_up"]
IDEMPOTENCY_KEY = "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"
ARGUMENTS = {"orderId": "A-1001"}
BOUND = {
    "action": "cancel_order",
    "actionDigest": action_digest(action="cancel_order", arguments=ARGUMENTS, idempotency_key=IDEMPOTENCY_KEY),
    "idempotencyKey": IDEMPOTENCY_KEY,
    "confirmation": {"by": "client", "at": NOW - 20},
}
CANCEL = {"action": "cancel_order", "arguments": ARGUMENTS}

# What a token says (its changed header is signed too), what the call demands, and the reason it is refused for.
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "another type": ({"header": {"typ": "JWT"}}, {}, "type"),
    "another algorithm": ({"header": {"alg": "RS256"}}, {}, "algorithm"),
    "no client": ({"client_id": None}, {}, "claims"),
    "another issuer": ({"iss": "https://elsewhere.test"}, {}, "issuer"),
    "another audience": ({"aud": "https://elsewhere.test"}, {}, "audience"),
    "two audiences": ({"aud": [AUDIENCE, "https://elsewhere.test"]}, {}, "audience"),
    "dated ahead": ({"iat": NOW + 7}, {}, "not_yet_valid"),
    "not before": ({"nbf": NOW + 2.5}, {}, "not_yet_valid"),
    "expired": ({"exp": NOW}, {}, "expired"),
    "long-lived": ({"exp": NOW + 56}, {}, "lifetime"),
    "an unknown key": ({"header": {"kid": "k9"}}, {}, "key"),
    "signed by somebody else": ({"by": "attacker"}, {}, "signature"),
    "a narrow scope": ({"scope": "orders.read"}, {"scope": "orders.read orders.write"}, "scope"),
    "bound to an action, at a read": ({"caplo": BOUND}, {}, "action"),
    "bound to nothing, at a write": ({}, CANCEL, "action"),
    "other arguments": ({"caplo": BOUND}, CANCEL | {"arguments": {"orderId": "A-1002"}}, "action"),
    "confirmed by the client only": ({"caplo": BOUND}, CANCEL | {"confirmation": "customer"}, "confirmation"),
    "confirmed long ago": ({"caplo": BOUND}, CANCEL | {"max_confirmation_age_seconds": 19}, "confirmation"),
    "a level too low": ({}, {"level": "high"}, "step_up"),
    "an old sign-in": ({}, {"max_auth_age_seconds": 300}, "step_up"),
}
refused = pytest.mark.parametrize(("token", "demand", "reason"), REFUSED.values(), ids=REFUSED.keys())


def signed(*, header: dict[str, Any] | None = None, by: str = "k1", **claims: object) -> str:
    """
    Sign the fixture's token with what is changed in it; a claim of None is left out.
    """
    changed = FIXTURE["base_claims"] | {"jti": "7SM1F1g6eyIwdzoeMtPQaQ"} | claims
    payload = {name: value for name, value in changed.items() if value is not None}
    parts = (FIXTURE["base_header"] | (header or {}), payload)
    signing_input = ".".join(b64url_encode(json.dumps(part).encode()) for part in parts)
    scalar = int.from_bytes(b64url_decode(FIXTURE["private"][by]["d"].encode()))
    key = ec.derive_private_key(scalar, ec.SECP256R1())
    r, s = decode_dss_signature(key.sign(signing_input.encode(), ec.ECDSA(SHA256())))
    return f"{signing_input}.{b64url_encode(r.to_bytes(32) + s.to_bytes(32))}"


def explained(token: str, *, issuer: str = ISSUER, tolerance: int = 0, scope: str = "", **demand: Any) -> Explanation:
    procedure = Procedure(
        issuer=issuer, audience=AUDIENCE, required_scope=frozenset(scope.split()), clock_tolerance_s=tolerance
    )
    keys = FixedKeySource(FIXTURE["jwks"])
    return explain(token, procedure=procedure, key=keys.key, demand=Demand(**demand), now=NOW)


def outcomes(explanation: Explanation) -> dict[str, str]:
    return {finding.check: finding.outcome for finding in explanation.findings}


def note(explanation: Explanation, check: str) -> str:
    (finding,) = (finding for finding in explanation.findings if finding.check == check)
    return finding.note


def test_a_good_token_holds_and_its_times_are_measured():
    """
    Each check that can be made holds, in the order of the procedure; what was not demanded and the first use are not checked.
    """
    explanation = explained(signed())

    unchecked = {"scope", "confirmation", "step_up", "replayed"}
    assert explanation.refused is None
    assert list(outcomes(explanation)) == [*READ_CHECKS, *KEY_CHECKS, *DEMANDS, "replayed"]
    assert {check for check, outcome in outcomes(explanation).items() if outcome == "not_checked"} == unchecked
    assert {outcome for check, outcome in outcomes(explanation).items() if check not in unchecked} == {"holds"}
    assert note(explanation, "not_yet_valid") == "issued 5.0 s ago by this clock"
    assert note(explanation, "expired") == "expires in 50.0 s"
    assert note(explanation, "lifetime") == "lives 55 s"
    assert note(explanation, "step_up") == "not demanded"


def test_what_the_token_says_is_shown_but_not_its_signature():
    """
    Header and claims come out as they are; the third part of the token is nowhere in the explanation.
    """
    token = signed()

    explanation = explained(token)

    assert explanation.header == FIXTURE["base_header"]
    assert explanation.claims["sub"] == FIXTURE["base_claims"]["sub"]
    assert token.rpartition(".")[2] not in repr(explanation)


@refused
def test_one_fault_is_shown_once_and_nothing_else_fails(token: dict[str, Any], demand: dict[str, Any], reason: str):
    """
    Exactly the check that a fault belongs to fails, says why, and is the reason of the refusal.
    """
    explanation = explained(signed(**token), **demand)

    failing = [finding for finding in explanation.findings if finding.outcome == "fails"]
    assert explanation.refused == reason
    assert [finding.check for finding in failing] == [reason]
    assert failing[0].note or reason == "signature"


@refused
def test_the_verifier_decides_the_same(token: dict[str, Any], demand: dict[str, Any], reason: str):
    """
    A verifier refuses each of these tokens for the reason that the explanation gives.
    """
    verifier = CustomerContextVerifier(
        issuer=ISSUER, audience=AUDIENCE, replay_store=None, jwks=FIXTURE["jwks"], now=lambda: NOW
    )

    with pytest.raises(CustomerContextError) as refusal:
        verifier.verify(signed(**token), **demand)

    assert refusal.value.reason == reason


def test_a_malformed_token_is_explained_no_further():
    """
    Of what is no compact token nothing is shown.
    """
    explanation = explained("not.a.token")

    assert outcomes(explanation) == {"malformed": "fails"}
    assert (explanation.header, explanation.claims, explanation.refused) == ({}, {}, "malformed")


def test_every_fault_is_shown_at_once_and_the_first_one_counts():
    """
    The procedure is run to its end: a token with three faults shows three, and is refused for the first.
    """
    explanation = explained(signed(header={"typ": "JWT"}, iss="https://elsewhere.test", exp=NOW - 1), level="high")

    failing = [check for check, outcome in outcomes(explanation).items() if outcome == "fails"]
    assert failing == ["type", "issuer", "expired", "step_up"]
    assert explanation.refused == "type"


def test_claims_of_the_wrong_form_leave_what_follows_from_them_unchecked():
    """
    The claim is named; checks of claims and demands are not made, but key and signature are.
    """
    explanation = explained(signed(exp="soon"), scope="orders.read")

    found = outcomes(explanation)
    assert note(explanation, "claims").startswith("exp ")
    assert {found[check] for check in READ_CHECKS[4:] + DEMANDS} == {"not_checked"}
    assert {found[check] for check in KEY_CHECKS} == {"holds"}


@pytest.mark.parametrize("fault", [{"header": {"kid": "k9"}}, {"by": "attacker"}])
def test_demands_are_not_checked_against_what_nobody_signed(fault: dict[str, Any]):
    """
    Without a signature that holds, nothing is said about scope, action, confirmation and step-up.
    """
    explanation = explained(signed(**fault), scope="orders.read", level="low")

    assert {outcomes(explanation)[check] for check in DEMANDS} == {"not_checked"}


def test_keys_that_cannot_be_fetched_are_not_an_unknown_key():
    """
    When the key source has no answer, the check that fails is `keys_unavailable`, and the signature is not checked.
    """

    def unavailable(_kid: str) -> Any:
        raise CustomerContextError("keys_unavailable")

    procedure = Procedure(issuer=ISSUER, audience=AUDIENCE, required_scope=frozenset(), clock_tolerance_s=0)
    explanation = explain(signed(), procedure=procedure, key=unavailable, demand=Demand(), now=NOW)

    assert explanation.refused == "keys_unavailable"
    assert outcomes(explanation)["signature"] == "not_checked"
    assert "key" not in outcomes(explanation)


def test_what_is_demanded_and_met_holds():
    """
    Scope, action, confirmation, level and age hold when the token has them.
    """
    token = signed(caplo=BOUND, acr="high", auth_time=NOW - 30)
    demand = CANCEL | {"confirmation": "client", "level": "high", "max_auth_age_seconds": 60}

    explanation = explained(token, scope="orders.write", **demand)

    assert {outcomes(explanation)[check] for check in DEMANDS} == {"holds"}


def test_a_confirmation_of_another_action_is_not_looked_at():
    """
    When the action itself fails, its confirmation is not checked; when only the confirmation fails, the action holds.
    """
    other = explained(signed(caplo=BOUND), action="ping", arguments={}, confirmation="client")
    weak = explained(signed(caplo=BOUND), **CANCEL, confirmation="customer")

    assert [outcomes(other)[check] for check in ("action", "confirmation")] == ["fails", "not_checked"]
    assert [outcomes(weak)[check] for check in ("action", "confirmation")] == ["holds", "fails"]


@pytest.mark.parametrize("check", ["issuer", "audience"])
def test_a_trailing_slash_is_named(check: str):
    """
    Of an issuer or audience that differs by nothing else the note says so.
    """
    claim = {"issuer": {"iss": f"{ISSUER}/"}, "audience": {"aud": f"{AUDIENCE}/"}}[check]

    explanation = explained(signed(**claim))

    assert explanation.refused == check
    assert note(explanation, check) == "differs only by a trailing slash"


@pytest.mark.parametrize(
    ("claims", "tolerance", "finding"),
    [
        ({"iat": NOW + 3, "exp": NOW + 50}, 5, Finding("not_yet_valid", "holds", "issued 3.0 s ahead of this clock")),
        ({"iat": NOW + 7}, 5, Finding("not_yet_valid", "fails", "issued 7.0 s ahead of this clock, tolerance 5 s")),
        ({"nbf": NOW + 2.5}, 0, Finding("not_yet_valid", "fails", "valid in 2.5 s, tolerance 0 s")),
        ({"exp": NOW - 4}, 5, Finding("expired", "holds", "expired 4.0 s ago, within the tolerance")),
        ({"exp": NOW}, 5, Finding("expired", "holds", "expired 0.0 s ago, within the tolerance")),
        ({"exp": NOW - 4}, 0, Finding("expired", "fails", "expired 4.0 s ago, tolerance 0 s")),
        ({"exp": NOW + 56}, 0, Finding("lifetime", "fails", "lives 61 s")),
    ],
)
def test_the_measured_skew_is_shown(claims: dict[str, Any], tolerance: int, finding: Finding):
    """
    Whoever looks for a wrong clock reads by how much it is wrong, also where the tolerance still covers it.
    """
    explanation = explained(signed(**claims), tolerance=tolerance)

    assert finding in explanation.findings
