"""
Every refusal has one closed reason, one answer for HTTP, a fixed text, and nothing of the token in it (D20).
"""

import copy
import pickle
from types import SimpleNamespace

import pytest

from verifier import bearer_token, parse_challenges
from verifier.errors import REASONS, CustomerContextError


def failing(*_args):
    """
    Stand for a network that is down.
    """
    raise OSError("token.text.here")


# What makes each reason: the token, what the call demands of it, what the verifier was built with.
VECTORS = {
    "malformed": lambda mint: (mint.signed() + "=", {}, {}),
    "type": lambda mint: (mint.signed(header={"typ": "JWT"}), {}, {}),
    "algorithm": lambda mint: (mint.signed(header={"alg": "HS256"}), {}, {}),
    "claims": lambda mint: (mint.signed(acr=...), {}, {}),
    "issuer": lambda mint: (mint.signed(iss=mint.issuer + "/"), {}, {}),
    "audience": lambda mint: (mint.signed(aud=mint.audience + "/"), {}, {}),
    "not_yet_valid": lambda mint: (mint.signed(nbf=mint.now + 7), {}, {}),
    "expired": lambda mint: (mint.signed(exp=mint.now), {}, {}),
    "lifetime": lambda mint: (mint.signed(iat=mint.now, exp=mint.now + 61), {}, {}),
    "key": lambda mint: (mint.signed(header={"kid": "gone"}), {}, {}),
    "keys_unavailable": lambda mint: (mint.signed(), {}, {"fetch": failing}),
    "signature": lambda mint: (mint.signed(signer="attacker"), {}, {}),
    "scope": lambda mint: (mint.signed(), {"scope": "orders.delete"}, {"required_scope": "orders.read"}),
    "action": lambda mint: (mint.write(), mint.call | {"arguments": {"orderId": "B-9999"}}, {}),
    "confirmation": lambda mint: (mint.write(), mint.call | {"confirmation": "customer"}, {}),
    "step_up": lambda mint: (mint.signed(), {"level": "high", "max_auth_age_seconds": 300}, {}),
    "replayed": lambda mint: (mint.signed(), {}, {"replay_store": SimpleNamespace(use=lambda *_: False)}),
    "replay_unavailable": lambda mint: (mint.signed(), {}, {"replay_store": SimpleNamespace(use=failing)}),
}
WITHOUT_TOKEN = {"missing": None, "request": ["Bearer a.b.c", "Bearer a.b.c"]}

ANSWERS = (
    dict.fromkeys(REASONS, (401, "invalid_token"))
    | dict.fromkeys(["scope", "action", "confirmation"], (403, "insufficient_scope"))
    | dict.fromkeys(["keys_unavailable", "replay_unavailable"], (503, None))
    | {
        "missing": (401, None),
        "request": (400, "invalid_request"),
        "step_up": (401, "insufficient_user_authentication"),
    }
)
PARAMETERS = {
    "scope": {"scope": "orders.delete orders.read"},
    "step_up": {"acr_values": "high", "max_age": "300"},
}


def shown(error: CustomerContextError) -> str:
    """
    Collect everything that a refusal shows to anybody.
    """
    return " ".join([str(error), repr(error), repr(error.args), repr(error.hint), error.www_authenticate])


def assert_answer(error: CustomerContextError, reason: str) -> None:
    """
    Compare what an API answers with the table.
    """
    status, code = ANSWERS[reason]
    (challenge,) = parse_challenges(error.www_authenticate)
    told = {"error": code, "error_description": str(error)} if code else {}
    parameters = told | PARAMETERS.get(reason, {})
    assert type(error) is CustomerContextError
    assert (error.reason, error.status) == (reason, status)
    assert challenge.scheme == "Bearer"
    assert challenge.params == (parameters or {"realm": "api"})


def test_every_reason_has_a_vector():
    """
    The reasons are these twenty, and none of them goes untested.
    """
    assert len(REASONS) == 20
    assert set(REASONS) == {*VECTORS, *WITHOUT_TOKEN}


@pytest.mark.parametrize("reason", VECTORS)
def test_a_refused_token(api, mint, reason):
    """
    Each reason comes with its status and a challenge that parses back, and shows neither token text nor claim values.
    """
    token, demands, options = VECTORS[reason](mint)

    error = api(**options).refusal(token, **demands)

    assert_answer(error, reason)
    secrets = [*token.split("."), "user-1", "jti-", "A-1001", "B-9999", mint.key, "token.text.here"]
    assert not [secret for secret in secrets if secret in shown(error)]


@pytest.mark.parametrize("reason", WITHOUT_TOKEN)
def test_a_refused_request(reason):
    """
    A request without exactly one token is answered before there is a token to look at.
    """
    with pytest.raises(CustomerContextError) as refusal:
        bearer_token(WITHOUT_TOKEN[reason])

    assert_answer(refusal.value, reason)
    assert "a.b.c" not in shown(refusal.value)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_says_the_same(duplicate):
    """
    A refusal survives the way to another process with everything it says.
    """
    error = CustomerContextError("scope", hint="a hint", parameters={"scope": "a b"})

    twin = duplicate(error)

    assert type(twin) is CustomerContextError
    assert vars(twin) == vars(error)
    assert shown(twin) == shown(error)


def test_each_reason_has_its_own_text():
    """
    No two reasons read alike, and each text is one that a challenge can carry unchanged (RFC 6750 section 3).
    """
    texts = {str(CustomerContextError(reason)) for reason in REASONS}

    assert len(texts) == 20
    assert all(text.isascii() and text.isprintable() and not set(text) & {'"', "\\"} for text in texts)


def test_a_parameter_cannot_break_out_of_the_challenge():
    """
    Quotes, backslashes and line breaks in a parameter end neither its string nor its line.
    """
    error = CustomerContextError("scope", parameters={"scope": 'a", error="x\r\nSet-Cookie: y\\'})

    (challenge,) = parse_challenges(error.www_authenticate)
    assert challenge.params["error"] == "insufficient_scope"
    assert not set(error.www_authenticate) & set("\r\n\\")
