"""
The procedure decides in the order of D20, and by the clock to the second (D5).
"""

import itertools
import json

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from verifier.claims import TokenClaims
from verifier.fetch import FetchResponse
from verifier.procedure import Procedure

# One fault for each reason, in the order of D20. `token` changes what is signed, `call` what is demanded, `built` the verifier.
FAULTS = {
    "malformed": {"header": {"crit": []}},
    "type": {"header": {"typ": "JWT"}},
    "algorithm": {"header": {"alg": "RS256"}},
    "claims": {"claims": {"client_id": 5}},
    "issuer": {"claims": {"iss": "https://other.test"}},
    "audience": {"claims": {"aud": ["https://api.test", "https://other.test"]}},
    "not_yet_valid": {"claims": {"nbf": 2**40}},
    "expired": {"claims": {"exp": 1_767_225_599}},
    "lifetime": {"claims": {"iat": 1_767_225_500}},
    "key": {"header": {"kid": "gone"}},
    "signature": {"signer": "attacker"},
    "scope": {"call": {"scope": "orders.delete"}},
    "action": {"call": {"arguments": {}}},
    "confirmation": {"call": {"confirmation": "customer"}},
    "step_up": {"call": {"level": "high"}},
    "replayed": {"store": True},
}


class UsedUp:
    """
    A store that has seen everything.
    """

    def use(self, _jti, _expires_at):
        return False


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(FAULTS, 2)))
def test_the_earlier_check_decides(api, mint, first, second):
    """
    A token or call that is wrong in two ways reports the one that comes first in the order of checks.
    """
    header, claims, call, signer, store = {}, {}, {}, "k1", {}
    for fault in (FAULTS[second], FAULTS[first]):
        header |= fault.get("header", {})
        claims |= fault.get("claims", {})
        call |= fault.get("call", {})
        signer = fault.get("signer", signer)
        store |= {"replay_store": UsedUp()} if fault.get("store") else {}

    reason = api(**store).refused(mint.write(header=header, signer=signer, **claims), **(mint.call | call))

    assert reason == first


def test_unavailable_keys_come_before_the_signature_and_after_the_claims(api, mint):
    """
    Nothing is fetched for a token that its own claims refuse, and a fetch that fails says so before any signature is judged.
    """
    fetched = []

    def fetch(*_args):
        fetched.append(1)
        raise OSError

    assert api(fetch=fetch).refused(mint.signed(iat=mint.now - 90)) == "lifetime"
    assert not fetched
    assert api(fetch=fetch).refused(mint.signed(signer="attacker")) == "keys_unavailable"


@pytest.mark.parametrize("typ", ["at+jwt", "AT+JWT", "At+Jwt", "application/at+jwt", "APPLICATION/AT+JWT"])
def test_the_type_has_two_spellings_in_any_case(api, mint, typ):
    """
    `at+jwt` is written with or without its prefix, and the case of its letters does not matter (D7).
    """
    assert api().verify(mint.signed(header={"typ": typ}))


@pytest.mark.parametrize(
    "typ",
    [
        *(
            "JWT",
            "at+jwt;v=1",
            "at-jwt",
            "at+jwt+x",
            "x/at+jwt",
            "application/",
            "",
            "\u0430t+jwt",
            "at+j\u017ft",
            ["at+jwt"],
            True,
        ),
        *(
            "txntoken+jwt",
            "client-authentication+jwt",
            "caplo-subject+jwt",
            "caplo-actor+jwt",
            "caplo-admin+jwt",
            "logout+jwt",
        ),
    ],
)
def test_another_type_is_another_kind_of_token(api, mint, typ):
    """
    No other kind of signed thing passes for a customer context token, however well it is signed (D7).
    """
    assert api().refused(mint.signed(header={"typ": typ})) == "type"


OTHER_KEYS = {
    **dict.fromkeys(("RS256", "PS256"), lambda: RSAKey.generate_key(2048)),
    "HS256": lambda: OctKey.generate_key(256),
    "ES384": lambda: ECKey.generate_key("P-384"),
    "ES512": lambda: ECKey.generate_key("P-521"),
    "ES256K": lambda: ECKey.generate_key("secp256k1"),
    **dict.fromkeys(("EdDSA", "Ed25519"), lambda: OKPKey.generate_key("Ed25519")),
}


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
@pytest.mark.parametrize("alg", OTHER_KEYS)
def test_no_other_algorithm_is_accepted(api, mint, alg):
    """
    A good signature of another algorithm is refused, though its key is published beside the others (D14).
    """
    key = OTHER_KEYS[alg]()
    published = {**key.as_dict(private=alg == "HS256"), "kid": "other", "alg": alg, "use": "sig"}
    header = {"typ": "at+jwt", "alg": alg, "kid": "other"}
    token = jws.serialize_compact(header, json.dumps(mint.claims()), key, algorithms=[alg])

    assert jws.deserialize_compact(token, key, algorithms=[alg])
    assert api(jwks={"keys": [*mint.jwks["keys"], published]}).refused(token) == "algorithm"


@pytest.mark.parametrize(
    "members",
    [
        b'"sub":"user-1","sub":"user-2"',
        b'"sub":"user-1","act":{"sub":"a","sub":"b"}',
        b'"sub":"user-1","caplo":{"action":"a","action":"b"}',
        b'"sub":"user-1","x":[{"y":{"z":1,"\\u007a":2}}]',
    ],
    ids=["claim", "actor", "action", "unknown"],
)
def test_a_claim_that_stands_twice_is_malformed(api, mint, members):
    """
    A repeated name is refused at any depth, in claims that are known or not, under a good signature.
    """
    claims = json.dumps(mint.claims(sub=..., act=...)).encode().removesuffix(b"}")

    assert (
        api().refused(mint.compact(json.dumps(dict(mint.header)).encode(), claims + b"," + members + b"}"))
        == "malformed"
    )


EDGES = [
    # claim, tolerance, now less claim, accepted
    *(("exp", 0, -1, True), ("exp", 0, -0.25, True), ("exp", 0, 0, False), ("exp", 0, 0.25, False)),
    *(
        ("exp", 5, 4, True),
        ("exp", 5, 4.75, True),
        ("exp", 5, 5, False),
        ("exp", 60, 59.75, True),
        ("exp", 60, 60, False),
    ),
    *(("nbf", 0, 0, True), ("nbf", 0, -0.25, False), ("nbf", 0, -1, False)),
    *(("nbf", 5, -5, True), ("nbf", 5, -5.25, False), ("nbf", 60, -60, True), ("nbf", 60, -61, False)),
    # The issuer writes whole seconds, so a clock that is behind by less than one is given it.
    *(("iat", 0, 0, True), ("iat", 0, -0.75, True), ("iat", 0, -1, False)),
    *(
        ("iat", 5, -5, True),
        ("iat", 5, -5.75, True),
        ("iat", 5, -6, False),
        ("iat", 60, -60, True),
        ("iat", 60, -61, False),
    ),
]


@pytest.mark.parametrize("edge", EDGES, ids=str)
def test_a_time_is_good_up_to_its_edge(api, mint, wall_clock, edge):
    """
    `exp` itself is outside, `nbf` and `iat` are inside, and the tolerance shifts each edge by exactly its value (D5).
    """
    claim, tolerance, now_less_claim, accepted = edge
    times = {"exp": {"iat": mint.now - 50, "exp": mint.now}, "nbf": {"nbf": mint.now}, "iat": {"iat": mint.now}}[claim]
    built, token = api(clock_tolerance_seconds=tolerance), mint.signed(**times)
    wall_clock.at = mint.now + now_less_claim

    if accepted:
        assert built.verify(token)
    else:
        assert built.refused(token) == ("expired" if claim == "exp" else "not_yet_valid")


@pytest.mark.parametrize(("behind", "accepted"), [(-0.5, True), (0.5, True), (0.99, True), (1, False), (1.5, False)])
def test_the_end_may_be_a_fraction(api, mint, wall_clock, behind, accepted):
    """
    A fractional `exp` ends where it says, not a whole second earlier or later.
    """
    wall_clock.at = mint.now + behind
    token = mint.signed(iat=mint.now - 10, exp=mint.now + 0.995)

    if accepted:
        assert api().verify(token)
    else:
        assert api().refused(token) == "expired"


@pytest.mark.parametrize("tolerance", [0, 60])
@pytest.mark.parametrize(
    ("life", "accepted"), [(0.5, True), (1, True), (60, True), (60.5, False), (61, False), (300, False)]
)
def test_a_life_is_at_most_a_minute(api, mint, life, accepted, tolerance):
    """
    `exp - iat` is at most 60 seconds; no tolerance is applied to it.
    """
    built, token = api(clock_tolerance_seconds=tolerance), mint.signed(iat=mint.now, exp=mint.now + life)

    if accepted:
        assert built.verify(token)
    else:
        assert built.refused(token) == "lifetime"


@pytest.mark.parametrize("life", [0, -1, -29])
def test_a_life_is_longer_than_nothing(api, mint, life):
    """
    A token that ends before or when it begins is refused also where the tolerance keeps it from having expired.
    """
    assert api(clock_tolerance_seconds=30).refused(mint.signed(iat=mint.now, exp=mint.now + life)) == "lifetime"


def test_a_token_can_expire_while_its_key_is_fetched(api, mint, wall_clock):
    """
    The end of the token is looked at again once the key is there.
    """

    def fetch(*_args):
        wall_clock.at = mint.now + 50
        return FetchResponse(200, (), json.dumps(mint.jwks).encode())

    token = mint.signed(exp=mint.now + 50)

    assert api(fetch=fetch).refused(token) == "expired"


@pytest.mark.parametrize(
    ("iss", "aud", "hint"),
    [
        ("https://issuer.test/", "https://api.test", "differs only by a trailing slash"),
        ("https://issuer.test", "https://api.test/", "differs only by a trailing slash"),
        ("https://other.test", "https://api.test", None),
        ("https://issuer.test", ["https://api.test/"], None),
    ],
)
def test_an_operator_is_told_of_a_slash(api, mint, iss, aud, hint):
    """
    The commonest mistake of all has a hint of its own, in our words.
    """
    assert api().refusal(mint.signed(iss=iss, aud=aud)).hint == hint


@pytest.mark.parametrize(
    ("exp", "tolerance", "until"), [(1060, 0, 1060), (1060, 5, 1065), (1060.25, 0, 1061), (0.5, 60, 61)]
)
def test_a_record_is_kept_until_nobody_can_accept_the_token(exp, tolerance, until):
    """
    The first whole second at which the token has expired, tolerance counted, is the end of its record (D4).
    """
    procedure = Procedure(issuer="i", audience="a", required_scope=frozenset(), clock_tolerance_s=tolerance)
    claims = TokenClaims.from_payload(
        {
            "iss": "i",
            "sub": "s",
            "aud": "a",
            "client_id": "c",
            "iat": 0,
            "exp": exp,
            "jti": "j",
            "acr": "low",
            "act": {"sub": "g"},
        }
    )

    assert procedure.remember_until(claims) == until
    assert type(procedure.remember_until(claims)) is int
