"""
The worked example of the decisions: every computed value, from the key's thumbprint to the two tokens and their clock.
"""

import json
from hashlib import sha256

import pytest

from verifier import MemoryReplayStore, action_digest
from verifier.action import canonical_json
from verifier.compact import b64url_encode, parse_compact

ISSUER, AUDIENCE = "https://id.caplo.example/w/acme", "https://api.shop.example"
IAT = 1_796_040_000
KEY = "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"
KID = "lxn_9vHeTQ4ezB3BeyXJr_oRIq0WKNfdgC-fwyOEmUA"
THUMBPRINT_INPUT = (
    '{"crv":"P-256","kty":"EC","x":"eVN9rZfCrsW_4dMDJoTgj3VbwPQMwFVDLp9RTT1uUjk",'
    '"y":"6jDaox70Rg8iz4KEc4d_8Tdoz1DTNgbJfR-UqYCzcTY"}'
)
JWKS = {"keys": [json.loads(THUMBPRINT_INPUT) | {"use": "sig", "alg": "ES256", "kid": KID}]}

ARGUMENTS = (
    '{"refund": {"currency": "EUR", "amount": 1250.0}, "orderId": "A-1001", "reason": "trop tard €", "notify": true, '
    '"note": null}'
)
CANONICAL = (
    '{"action":"cancel_order","arguments":{"note":null,"notify":true,"orderId":"A-1001","reason":"trop tard €",'
    '"refund":{"amount":1250,"currency":"EUR"}},"idempotencyKey":"idk_5pQ0m3m1Yt7uVxk2Rr9aBw"}'
)
PREIMAGE = """
6361706c6f2d616374696f6e2d6469676573743a7631007b22616374696f6e22
3a2263616e63656c5f6f72646572222c22617267756d656e7473223a7b226e6f
7465223a6e756c6c2c226e6f74696679223a747275652c226f72646572496422
3a22412d31303031222c22726561736f6e223a2274726f70207461726420e282
ac222c22726566756e64223a7b22616d6f756e74223a313235302c2263757272
656e6379223a22455552227d7d2c226964656d706f74656e63794b6579223a22
69646b5f357051306d336d315974377556786b32527239614277227d
"""
SHA256 = "83e706ae0b822aafb010299de2ca2563f6ce001d31612679c8ad0b77bfd56ec0"
DIGEST = "g-cGrguCKq-wECmd4solY_bOAB0xYSZ5yK0Ld7_VbsA"

HEADER = (
    "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6Imx4bl85dkhlVFE0ZXpCM0JleVhKcl9vUklxMFdLTmZkZ0MtZnd5T0VtVUEifQ"
)
READ = (
    f"{HEADER}.eyJpc3MiOiJodHRwczovL2lkLmNhcGxvLmV4YW1wbGUvdy9hY21lIiwic3ViIjoiY3VzXzQ4MjEzIiwiYXVkIjoiaHR0cHM6Ly9hcGkuc2hvcC5l"
    "eGFtcGxlIiwiY2xpZW50X2lkIjoib3JjX21haW4iLCJpYXQiOjE3OTYwNDAwMDAsImV4cCI6MTc5NjA0MDA2MCwianRpIjoiN1NNMUYxZzZleUl3ZHpvZU10UF"
    "FhUSIsInNjb3BlIjoib3JkZXJzOnJlYWQiLCJhY3IiOiJzdGFuZGFyZCIsImF1dGhfdGltZSI6MTc5NjAzOTY0MCwiYWN0Ijp7InN1YiI6ImFndF9zdXBwb3J0"
    "In19.4MJ4CYQEdAd-LOczbzhIRZYfcjwX1X87WbQfifLIkvuaYoMtOQRjd4uAUrmvkxG6EFo2NRY62nu0Gb1gAxqK5w"
)
WRITE = (
    f"{HEADER}.eyJpc3MiOiJodHRwczovL2lkLmNhcGxvLmV4YW1wbGUvdy9hY21lIiwic3ViIjoiY3VzXzQ4MjEzIiwiYXVkIjoiaHR0cHM6Ly9hcGkuc2hvcC5l"
    "eGFtcGxlIiwiY2xpZW50X2lkIjoib3JjX21haW4iLCJpYXQiOjE3OTYwNDAwMDAsImV4cCI6MTc5NjA0MDA2MCwianRpIjoiSmtpeEE3cVVtcldFTDFydURNUE"
    "pWUSIsInNjb3BlIjoib3JkZXJzOndyaXRlIiwiYWNyIjoiaGlnaCIsImF1dGhfdGltZSI6MTc5NjAzOTk1NSwiYWN0Ijp7InN1YiI6ImFndF9vcmRlcnMiLCJh"
    "Y3QiOnsic3ViIjoiYWd0X3N1cHBvcnQifX0sImNhcGxvIjp7ImFjdGlvbiI6ImNhbmNlbF9vcmRlciIsImFjdGlvbkRpZ2VzdCI6ImctY0dyZ3VDS3Etd0VDbW"
    "Q0c29sWV9iT0FCMHhZU1o1eUswTGQ3X1Zic0EiLCJpZGVtcG90ZW5jeUtleSI6Imlka181cFEwbTNtMVl0N3VWeGsyUnI5YUJ3IiwiY29uZmlybWF0aW9uIjp7"
    "ImJ5IjoiY2xpZW50IiwiYXQiOjE3OTYwMzk5ODB9fX0.TMlDM5mi2bF6Qrvt9i5gcUj9DYM5peOv8q3r6Subm1vjaAsbJ8_6TCiq5tY163fuzMTt0Jh28XtL6v"
    "O5Bk4yPw"
)
READ_CLAIMS = {
    "iss": ISSUER,
    "sub": "cus_48213",
    "aud": AUDIENCE,
    "client_id": "orc_main",
    "iat": IAT,
    "exp": IAT + 60,
    "jti": "7SM1F1g6eyIwdzoeMtPQaQ",
    "scope": "orders:read",
    "acr": "standard",
    "auth_time": 1_796_039_640,
    "act": {"sub": "agt_support"},
}
WRITE_CLAIMS = READ_CLAIMS | {
    "jti": "JkixA7qUmrWEL1ruDMPJVQ",
    "scope": "orders:write",
    "acr": "high",
    "auth_time": 1_796_039_955,
    "act": {"sub": "agt_orders", "act": {"sub": "agt_support"}},
    "caplo": {
        "action": "cancel_order",
        "actionDigest": DIGEST,
        "idempotencyKey": KEY,
        "confirmation": {"by": "client", "at": 1_796_039_980},
    },
}
CALL = {"action": "cancel_order", "arguments": ARGUMENTS}


@pytest.fixture
def shop(api):
    """
    Build the example's API at an instant.
    """

    def build(now: float, tolerance: int = 0):
        return api(
            issuer=ISSUER,
            audience=AUDIENCE,
            jwks=JWKS,
            clock_tolerance_seconds=tolerance,
            now=lambda: now,
            replay_store=MemoryReplayStore(now=lambda: now),
        )

    return build


def changed(**changes: object) -> dict[str, object]:
    """
    Return the arguments with changes; `...` leaves one out.
    """
    return {name: value for name, value in (json.loads(ARGUMENTS) | changes).items() if value is not ...}


def test_the_kid_is_the_thumbprint():
    """
    The kid is base64url of SHA-256 of the thumbprint input, which is the canonical form of the required members (RFC 7638).
    """
    required = {name: JWKS["keys"][0][name] for name in ("kty", "crv", "x", "y")}

    assert canonical_json(required).decode() == THUMBPRINT_INPUT
    assert b64url_encode(sha256(THUMBPRINT_INPUT.encode()).digest()) == KID


def test_the_canonical_form_and_its_hash():
    """
    Canonical form, preimage and digest are those of the example, octet by octet.
    """
    canonical = canonical_json({"idempotencyKey": KEY, "action": "cancel_order", "arguments": json.loads(ARGUMENTS)})
    preimage = b"caplo-action-digest:v1\0" + canonical

    assert canonical.decode() == CANONICAL
    assert (len(canonical), len(preimage)) == (197, 220)
    assert preimage == bytes.fromhex(PREIMAGE)
    assert sha256(preimage).hexdigest() == SHA256
    assert b64url_encode(bytes.fromhex(SHA256)) == DIGEST
    assert action_digest(action="cancel_order", arguments=ARGUMENTS, idempotency_key=KEY) == DIGEST


@pytest.mark.parametrize(
    ("arguments", "digest"),
    [
        (ARGUMENTS.encode(), DIGEST),
        (changed(orderId="A-1002"), "zqc1h_H5DQgJvn3e_xtCbInAx8j55nLX0cM_T1YPNKo"),
        (changed(note=...), "qyI5_GZ2rElqNB7NbRNd7GVEyKKKMTW0XVd4eK2DSvE"),
        (changed(refund={"amount": 1250, "currency": "EUR"}), DIGEST),
        (changed(refund={"amount": "1250.00", "currency": "EUR"}), "KG59dSj9Kby4FDN38zbZFJv8HflFZXr6Tlz8C77aAfM"),
    ],
    ids=["raw", "order", "note", "integer", "text"],
)
def test_the_variants_of_arguments(arguments, digest):
    """
    Each variant of the table has its digest.
    """
    assert action_digest(action="cancel_order", arguments=arguments, idempotency_key=KEY) == digest


def test_the_other_variants():
    """
    The second positive vector, a hash without the tag and another key have the digests of the table.
    """
    other = action_digest(action="cancel_order", arguments=ARGUMENTS, idempotency_key="idk_" + "A" * 22)

    assert (
        action_digest(action="ping", arguments={}, idempotency_key=KEY) == "MzM32ZT-g42GSF6PNs8MPrTtT0-gIQfKF0xpmw9emhg"
    )
    assert b64url_encode(sha256(CANONICAL.encode()).digest()) == "Tv8zM67ztTuWb6PFMOGvqOAd2oX7yCCEGig1-pPq6bM"
    assert other == "flMIs4bvVg1jST5gaMutWya6drjmSZW9qhEL35-HfvY"


def test_the_replay_key_of_the_write_token():
    """
    The key of a shared store is the first half of the hash of issuer, audience and jti (D4).
    """
    scoped = canonical_json([ISSUER, AUDIENCE, WRITE_CLAIMS["jti"]])

    assert "cc:r:" + b64url_encode(sha256(scoped).digest()[:16]) == "cc:r:UkDvNUB4V403id1iZOwHeg"


@pytest.mark.parametrize(
    ("token", "claims", "length"), [(READ, READ_CLAIMS, 558), (WRITE, WRITE_CLAIMS, 841)], ids=["read", "write"]
)
def test_the_compact_forms(token, claims, length):
    """
    Both tokens have the header, the claims and the length of the example.
    """
    taken_apart = parse_compact(token)

    assert len(token) == length
    assert (taken_apart.typ, taken_apart.alg, taken_apart.kid) == ("at+jwt", "ES256", KID)
    assert taken_apart.claims == claims
    assert list(taken_apart.claims) == list(claims)


def test_the_read_token_is_accepted(shop):
    """
    The read token opens a read at the standard level, once.
    """
    built = shop(IAT)

    context = built.verify(READ, scope="orders:read", level="standard", max_auth_age_seconds=360)

    assert (context.sub, context.actor, context.client_id) == ("cus_48213", "agt_support", "orc_main")
    assert dict(context.claims) == READ_CLAIMS
    assert built.refused(READ) == "replayed"


def test_the_write_token_is_accepted(shop):
    """
    The write token opens exactly the action that was confirmed, with the arguments as the orchestrator holds them.
    """
    built = shop(IAT)

    context = built.verify(
        WRITE,
        **CALL,
        idempotency_key=KEY,
        scope="orders:write",
        level="high",
        max_auth_age_seconds=45,
        confirmation="client",
        max_confirmation_age_seconds=20,
    )

    assert (context.action, context.idempotency_key) == ("cancel_order", KEY)
    assert context.arguments == json.loads(ARGUMENTS)
    assert (context.actor, context.actor_history) == ("agt_orders", ("agt_support",))


def test_the_write_token_opens_nothing_else(shop):
    """
    Another order, another action and a read are refused.
    """
    built = shop(IAT)

    assert built.refused(WRITE, action="cancel_order", arguments=changed(orderId="A-1002")) == "action"
    assert built.refused(WRITE, action="refund_order", arguments=ARGUMENTS) == "action"
    assert built.refused(WRITE) == "action"
    assert built.refused(READ, **CALL) == "action"


@pytest.mark.parametrize(
    ("past_the_end", "tolerance", "accepted"),
    [
        *((-1, 0, True), (0, 0, False), (4, 0, False), (5, 0, False)),
        *((-1, 5, True), (0, 5, True), (4, 5, True), (5, 5, False)),
    ],
)
def test_the_table_of_times(shop, past_the_end, tolerance, accepted):
    """
    Each cell of the table in D5 is as it stands there.
    """
    built = shop(IAT + 60 + past_the_end, tolerance)

    if accepted:
        assert built.verify(READ)
    else:
        assert built.refused(READ) == "expired"


def test_the_second_before(shop):
    """
    A second before it was issued the token is not valid yet.
    """
    assert shop(IAT - 1).refused(READ) == "not_yet_valid"
    assert shop(IAT - 1, 1).verify(READ)
