"""
A decision becomes a signed token: its times, its identifier, its claims, and nothing else in it.
"""

import asyncio
import json
import secrets
from dataclasses import replace

import pytest

from issuer.action_request import RequestedAction
from issuer.errors import TokenRefused
from issuer.exchange import Exchange
from issuer.minting import Minted, mint, token_claims
from issuer.registry import Action
from issuer.subject import Subject
from keys import LocalSigner, generate_key
from verifier.claims import Actor, TokenClaims
from verifier.compact import MAX_TOKEN_LENGTH, b64url_decode, parse_compact

from .world import NOW, SHOP, clients, connections

ISSUER = "https://issuer.test"
SUBJECT = Subject(
    sub="cus_48213",
    namespace="shop-login",
    acr="standard",
    auth_time=NOW - 360,
    expires_at=NOW + 300,
    scope=None,
    act=None,
    may_act=None,
)
ACTION = RequestedAction(
    action=Action(name="cancel_order", audience=SHOP),
    digest="d" * 43,
    idempotency_key="idk-of-one-action",
    confirmed_by="client",
    confirmed_at=NOW - 20,
)


@pytest.fixture(scope="module")
def signer():
    return LocalSigner(generate_key())


@pytest.fixture(scope="module")
def exchange() -> Exchange:
    return Exchange(
        client=clients()[0],
        connection=connections()[0],
        audience=SHOP,
        subject=SUBJECT,
        actor=Actor("agt_support"),
        scope="orders:read",
        action=None,
        not_after=NOW + 300,
    )


def claims_of(exchange: Exchange, now: float = NOW, confirmed_at: int | None = None, **changes) -> TokenClaims:
    return token_claims(replace(exchange, **changes), issuer=ISSUER, now=now, confirmed_at=confirmed_at)


def test_a_read_token_says_what_was_decided(exchange):
    """
    at-privacy-min, nist-assertion-set: exactly these claims, each from the decision, times and identifier aside.
    """
    payload = claims_of(exchange).to_payload()

    jti = payload.pop("jti")
    assert payload == {
        "iss": ISSUER,
        "sub": "cus_48213",
        "aud": SHOP,
        "client_id": "orc_main",
        "iat": NOW,
        "exp": NOW + 60,
        "acr": "standard",
        "auth_time": NOW - 360,
        "act": {"sub": "agt_support"},
        "scope": "orders:read",
    }
    assert len(b64url_decode(jti.encode())) == 16


def test_a_write_token_says_which_action_too(exchange):
    """
    seed-write-claims: `caplo` has exactly its four members; without scope there is no `scope`.
    """
    payload = claims_of(exchange, action=ACTION, confirmed_at=NOW - 20, scope=None).to_payload()

    assert "scope" not in payload
    assert payload["caplo"] == {
        "action": "cancel_order",
        "actionDigest": "d" * 43,
        "idempotencyKey": "idk-of-one-action",
        "confirmation": {"by": "client", "at": NOW - 20},
    }


@pytest.mark.parametrize(
    ("now", "not_after", "confirmed_at", "lives_s"),
    [
        (NOW, NOW + 300, None, 60),
        (NOW + 0.999, NOW + 300, None, 60),
        (NOW, NOW + 60, None, 60),
        (NOW, NOW + 59.999, None, 59),
        (NOW + 0.5, NOW + 1, None, 1),
        (NOW + 0.5, NOW + 1.25, None, 1),
        (NOW, NOW + 300, NOW - 1740, 60),
        (NOW, NOW + 300, NOW - 1741, 59),
        (NOW + 0.999, NOW + 300, NOW - 1799, 1),
        (NOW, NOW + 5, NOW - 1799, 1),
        (NOW, NOW + 1, NOW - 20, 1),
    ],
)
def test_a_token_ends_with_the_first_thing_that_ends(exchange, now, not_after, confirmed_at, lives_s):
    """
    seed-lifetime-60: `exp` is the least of `iat` + 60 s, the tokens it was made from and the confirmation + 1800 s; all whole.
    """
    action = None if confirmed_at is None else ACTION

    claims = claims_of(exchange, now, confirmed_at, not_after=not_after, action=action)

    assert (type(claims.iat), type(claims.exp)) == (int, int)
    assert (claims.iat, claims.exp - claims.iat) == (NOW, lives_s)


@pytest.mark.parametrize(
    ("now", "not_after", "confirmed_at", "refusal"),
    [
        (NOW + 0.5, NOW + 0.75, None, ("invalid_request", "mint:dead_on_arrival")),
        (NOW, NOW, None, ("invalid_request", "mint:dead_on_arrival")),
        (NOW + 0.999, NOW + 0.9995, NOW - 20, ("invalid_request", "mint:dead_on_arrival")),
        (NOW, NOW + 300, NOW - 1800, ("invalid_authorization_details", "confirmation:expired")),
        (NOW, NOW + 300, NOW - 9999, ("invalid_authorization_details", "confirmation:expired")),
    ],
)
def test_what_would_be_dead_on_arrival_is_not_minted(exchange, now, not_after, confirmed_at, refusal):
    """
    A token that no verifier would accept is refused here already.
    """
    action = None if confirmed_at is None else ACTION

    with pytest.raises(TokenRefused) as caught:
        claims_of(exchange, now, confirmed_at, not_after=not_after, action=action)

    assert (caught.value.error, caught.value.reason) == refusal


def test_identifiers_never_repeat(exchange):
    """
    jwt-jti-unique: 100,000 identifiers of one decision are 100,000.
    """
    assert len({claims_of(exchange).jti for _ in range(100_000)}) == 100_000


def test_an_identifier_is_drawn_from_the_system_and_from_nothing_else(exchange, monkeypatch):
    """
    rand-128: `jti` is 16 octets of `secrets`, whatever the token says, the idempotency key included.
    """
    monkeypatch.setattr(secrets, "token_bytes", lambda octets: bytes(range(octets)))

    assert b64url_decode(claims_of(exchange).jti.encode()) == bytes(range(16))
    assert claims_of(exchange, action=ACTION, confirmed_at=NOW).jti == claims_of(exchange).jti


def test_the_header_names_type_algorithm_and_key(exchange, signer):
    """
    at-typ-issue: `typ` is `at+jwt` exactly, `kid` the thumbprint of the signing key, and nothing else stands there.
    """
    minted = asyncio.run(mint(claims_of(exchange), signer))

    header = json.loads(b64url_decode(minted.token.partition(".")[0].encode()))
    assert header == {"alg": "ES256", "typ": "at+jwt", "kid": signer.kid}
    assert (minted.kid, minted.expires_in_s) == (signer.kid, 60)
    assert TokenClaims.from_payload(parse_compact(minted.token).claims).jti == minted.jti


def test_a_minted_token_does_not_show_itself(exchange, signer):
    """
    The representation holds identifier and key, which are safe to log, and never the token.
    """
    minted = asyncio.run(mint(claims_of(exchange), signer))

    assert isinstance(minted, Minted)
    assert minted.token not in repr(minted)


def test_no_token_is_longer_than_a_verifier_reads(exchange, signer):
    """
    A token above the verifier's bound is refused; the longest below it is minted.
    """
    fixed = len(asyncio.run(mint(claims_of(exchange), signer)).token)
    room = (MAX_TOKEN_LENGTH - fixed) * 3 // 4
    longest = claims_of(exchange, subject=replace(SUBJECT, sub="cus_48213" + "x" * (room - 2)))
    longer = claims_of(exchange, subject=replace(SUBJECT, sub="cus_48213" + "x" * (room + 2)))

    assert MAX_TOKEN_LENGTH - 4 < len(asyncio.run(mint(longest, signer)).token) <= MAX_TOKEN_LENGTH
    with pytest.raises(TokenRefused) as caught:
        asyncio.run(mint(longer, signer))
    assert (caught.value.error, caught.value.reason) == ("invalid_request", "mint:too_long")
