"""
JWTs that a client signs: one strict reader, three kinds, each refused in the place of another.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jws
from joserfc.jwk import ECKey, OctKey

import issuer.assertions
from issuer.assertions import (
    ACTOR_TOKEN,
    CLIENT_ASSERTION,
    SUBJECT_TOKEN,
    Assertion,
    AssertionKind,
    AssertionRefused,
    verify_assertion,
)
from verifier.compact import b64url_decode, b64url_encode, parse_compact

from .world import private_key, signed

NOW = 1_796_040_000.5
AUDIENCE = "https://issuer.test"
KINDS = {
    "client-authentication+jwt": CLIENT_ASSERTION,
    "caplo-subject+jwt": SUBJECT_TOKEN,
    "caplo-actor+jwt": ACTOR_TOKEN,
}
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


@pytest.fixture
def sign(site) -> Callable[..., str]:
    """
    Sign an assertion that is accepted, but for what is changed.
    """

    def sign(
        *,
        typ: str | None = "caplo-actor+jwt",
        key: str = "client-1",
        header: dict[str, Any] | None = None,
        **changes: Any,
    ):
        times = {"iat": 1_796_040_000, "exp": 1_796_040_060}
        claims = {"iss": "orc_main", "sub": "agt_orders", "aud": AUDIENCE, "jti": "jti-1", **times, **changes}
        kept = {name: value for name, value in claims.items() if value is not ...}
        return signed(kept, typ=... if typ is None else typ, key=key, header=header or {})

    return sign


@pytest.fixture
def verify(site) -> Callable[..., Assertion]:
    keys = {kid: private_key(kid).public_key() for kid in ("client-1", "client-2")}

    def verify(
        token: str, kind: AssertionKind = ACTOR_TOKEN, now: float = NOW, keys: dict[str, Any] = keys
    ) -> Assertion:
        return verify_assertion(token, kind, keys=keys, audience=AUDIENCE, now=now)

    return verify


def test_a_valid_assertion_is_read(sign, verify):
    """
    Who signed it for whom, its identifier and its end come out, and every claim beside them.
    """
    assertion = verify(sign(exp=1_796_040_060.25, namespace="n"))

    assert (assertion.iss, assertion.sub, assertion.jti) == ("orc_main", "agt_orders", "jti-1")
    assert (assertion.exp, assertion.expires_at) == (1_796_040_060.25, 1_796_040_061)
    assert assertion.claims["namespace"] == "n"
    assert "namespace" not in repr(assertion)


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "client-2"},
        {"header": {"kid": ...}},
        {"header": {"kid": ...}, "key": "client-2"},
        {"header": {"jku": "https://evil.test", "jwk": {"kty": "EC"}, "x5u": "https://evil.test"}},
        {"typ": "CAPLO-Actor+JWT"},
        {"aud": [AUDIENCE]},
        {"exp": 1_796_040_300.5},
        {"exp": 1_796_040_000.75},
        {"iat": 1_796_039_700.5},
        {"iat": 1_796_040_005.5},
        {"nbf": 1_796_040_005.5},
        {"nbf": 0},
        {"jti": "j" * 256},
        {"sub": "s" * 1024},
    ],
)
def test_what_lies_within_the_bounds_is_accepted(changes, sign, verify):
    """
    Any registered key, without kid too, and every time up to and including its bound.
    """
    assert verify(sign(**changes)).iss == "orc_main"


@pytest.mark.parametrize(
    ("word", "changes"),
    [
        ("type", {"typ": None}),
        ("type", {"typ": "JWT"}),
        ("type", {"typ": "at+jwt"}),
        ("type", {"typ": "application/caplo-actor+jwt"}),
        ("type", {"typ": "caplo-actor+jwt "}),
        ("type", {"typ": "caplo-a\u212ator+jwt"}),
        ("type", {"typ": ["caplo-actor+jwt"]}),
        ("type", {"typ": 5}),
        ("algorithm", {"header": {"alg": "none"}}),
        ("algorithm", {"header": {"alg": "es256"}}),
        ("algorithm", {"header": {"alg": "HS256"}}),
        ("algorithm", {"header": {"alg": ["ES256"]}}),
        ("algorithm", {"header": {"alg": ...}}),
        ("key", {"header": {"kid": "client-3"}}),
        ("key", {"key": "subject-1"}),
        ("signature", {"key": "subject-1", "header": {"kid": "client-1"}}),
        ("signature", {"key": "subject-1", "header": {"kid": ...}}),
        ("signature", {"key": "client-2", "header": {"kid": "client-1"}}),
        ("malformed", {"header": {"crit": []}}),
        ("malformed", {"header": {"kid": 5}}),
        ("malformed", {"header": {"b64": False}}),
        ("audience", {"aud": ...}),
        ("audience", {"aud": None}),
        ("audience", {"aud": []}),
        ("audience", {"aud": {AUDIENCE: 1}}),
        ("audience", {"aud": f"{AUDIENCE}/"}),
        ("audience", {"aud": f"{AUDIENCE}/oauth/token"}),
        ("audience", {"aud": [AUDIENCE, AUDIENCE]}),
        ("audience", {"aud": [AUDIENCE, "https://evil.test"]}),
        ("expired", {"exp": ...}),
        ("expired", {"exp": 1_796_040_000.5}),
        ("expired", {"exp": 0}),
        ("lifetime", {"exp": 1_796_040_300.75}),
        ("lifetime", {"exp": 4_070_908_800}),
        ("lifetime", {"iat": 1_796_039_700}),
        ("exp", {"exp": None}),
        ("exp", {"exp": True}),
        ("exp", {"exp": "1796040060"}),
        ("exp", {"exp": -1}),
        ("exp", {"exp": 2**53}),
        ("iat", {"iat": ...}),
        ("iat", {"iat": False}),
        ("iat", {"iat": -0.5}),
        ("nbf", {"nbf": "0"}),
        ("not_yet_valid", {"iat": 1_796_040_005.75}),
        ("not_yet_valid", {"nbf": 1_796_040_006}),
        ("iss", {"iss": ...}),
        ("iss", {"iss": ["orc_main"]}),
        ("sub", {"sub": ""}),
        ("sub", {"sub": "s" * 1025}),
        ("jti", {"jti": ...}),
        ("jti", {"jti": 7}),
        ("jti", {"jti": "j" * 257}),
    ],
)
def test_whatever_does_not_hold_is_refused_by_a_closed_word(word, changes, sign, verify):
    """
    One wrong thing in an otherwise valid assertion, one word for the log.
    """
    token = sign(**changes)

    with pytest.raises(AssertionRefused) as caught:
        verify(token)

    assert str(caught.value) == word


MALFORMED = {
    "empty": "",
    "a space before": " {token}",
    "a line after": "{token}\n",
    "two of them": "{token} {token}",
    "a fourth part": "{token}.",
    "no signature": "{head}.{payload}.",
    "two parts": "{head}.{payload}",
    "padding": "{token}=",
    "too long": "{token}" + "A" * 8192,
    "not ASCII": "é{token}",
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_text_that_is_no_compact_jws_is_malformed(text, sign, verify):
    """
    ca-type-exact: exactly one JWT in its one spelling; two joined by a space are none.
    """
    head, payload, _ = (token := sign()).split(".")

    with pytest.raises(AssertionRefused) as caught:
        verify(text.format(token=token, head=head, payload=payload))

    assert str(caught.value) == "malformed"


@pytest.mark.parametrize(
    "payload", [b"[]", b'{"exp": 1e400}', b'{"exp": 1, "exp": 2}', b"[" * 3000, b'{"a": "\\ud800"}']
)
def test_a_payload_that_two_parsers_could_read_differently_is_malformed(payload, site, verify):
    """
    Repeated names, numbers out of range, lone surrogates and depth do not get past the reader, properly signed or not.
    """
    token = signed(payload, typ="caplo-actor+jwt", key="client-1")

    with pytest.raises(AssertionRefused) as caught:
        verify(token)

    assert str(caught.value) == "malformed"


@pytest.mark.parametrize("typ", KINDS)
@pytest.mark.parametrize("presented", [*KINDS, "JWT", None, "at+jwt", "txntoken+jwt", "caplo-admin+jwt", "logout+jwt"])
def test_each_kind_goes_by_its_own_type(typ, presented, sign, verify):
    """
    ca-typ: an otherwise equal JWT of another type is refused; only a client assertion may be a plain JWT (RFC 10070 section 4).
    """
    kind, token = KINDS[typ], sign(typ=presented)
    accepted = presented == typ or (kind is CLIENT_ASSERTION and presented in ("JWT", None))

    if accepted:
        assert verify(token, kind).jti == "jti-1"
    else:
        with pytest.raises(AssertionRefused, match=r"^type$"):
            verify(token, kind)


def test_a_token_that_was_taken_apart_already_is_verified_all_the_same(sign, verify):
    """
    Whoever looked into the token first hands it on parsed; nothing is believed because of that.
    """
    assert verify(parse_compact(sign())) == verify(sign())
    with pytest.raises(AssertionRefused, match=r"^signature$"):
        verify(parse_compact(sign(key="client-2", header={"kid": "client-1"})))


def test_only_a_client_assertion_may_lack_iat(sign, verify):
    """
    Where `iat` is not required, `exp` bounds the life alone.
    """
    assert verify(sign(typ="JWT", iat=...), CLIENT_ASSERTION).exp == 1_796_040_060


def test_no_key_verifies_nothing(sign, verify):
    """
    A client without keys of the kind in question cannot have signed anything.
    """
    with pytest.raises(AssertionRefused, match=r"^key$"):
        verify(sign(), keys={})


@pytest.fixture
def checked(monkeypatch) -> list[Any]:
    """
    Collect what signatures are checked with.
    """
    checked: list[Any] = []
    check = issuer.assertions.signature_is_valid
    monkeypatch.setattr(issuer.assertions, "signature_is_valid", lambda *asked: checked.append(asked) or check(*asked))
    return checked


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({}, {}),
        ({"header": {"kid": ...}}, {}),
        ({"header": {"kid": "client-3"}}, None),
        ({"key": "subject-1", "header": {"kid": "client-1"}}, None),
    ],
    ids=["no client", "no client, no kid", "unknown kid", "wrong signature"],
)
def test_a_refusal_costs_one_signature_check(changes, keys, sign, verify, checked):
    """
    te-invalid-client: the time of the answer does not tell whether the client or the kid is known.
    """
    with pytest.raises(AssertionRefused):
        verify(sign(**changes), **({} if keys is None else {"keys": keys}))

    assert len(checked) == 1


@pytest.mark.parametrize("known", [0, 1, 2])
def test_a_refusal_without_a_kid_costs_what_the_most_keys_cost(known, sign, checked):
    """
    te-invalid-client: where some client has two keys, a client with fewer, or nobody, is refused after two checks as well.
    """
    keys = dict(list({kid: private_key(kid).public_key() for kid in ("client-1", "client-2")}.items())[:known])

    with pytest.raises(AssertionRefused):
        verify_assertion(
            sign(key="subject-1", header={"kid": ...}), ACTOR_TOKEN, keys=keys, audience=AUDIENCE, now=NOW, checks=2
        )

    assert len(checked) == 2


def test_a_second_implementation_signs_what_is_accepted(site, verify):
    """
    What joserfc signs with a registered key is accepted, and its HS256 with the public key as secret is not.
    """
    claims = {"iss": "orc_main", "sub": "a", "aud": AUDIENCE, "jti": "j", "iat": 1_796_040_000, "exp": 1_796_040_060}
    payload, head = json.dumps(claims), {"typ": "caplo-actor+jwt", "kid": "client-1"}
    key = ECKey.import_key(private_key("client-1"))
    point = private_key("client-1").public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    forged = jws.serialize_compact({"alg": "HS256", **head}, payload, OctKey.import_key(point))

    assert verify(jws.serialize_compact({"alg": "ES256", **head}, payload, key)).sub == "a"
    with pytest.raises(AssertionRefused, match=r"^algorithm$"):
        verify(forged)


def test_the_twin_of_a_signature_is_the_same_assertion(sign, verify):
    """
    (r, n-s) verifies as well, with the same `jti`, so that its first use is the only one.
    """
    signing_input, _, signature = (token := sign()).rpartition(".")
    octets = b64url_decode(signature.encode())
    twin = octets[:32] + (ORDER - int.from_bytes(octets[32:])).to_bytes(32)

    assert verify(f"{signing_input}.{b64url_encode(twin)}") == verify(token)


def test_standard_base64_is_another_alphabet(sign, verify):
    """
    An assertion in base64 with `+`, `/` or padding is malformed.
    """
    padded = ".".join(
        base64.b64encode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))).decode() for part in sign().split(".")
    )

    with pytest.raises(AssertionRefused, match=r"^malformed$"):
        verify(padded)
