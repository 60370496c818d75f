"""
The rules of OpenID Connect Core 1.0 section 3.1.3.7, each with a token that breaks it and is signed all the same.
"""

from hashlib import sha256

import pytest

from issuer.id_token import admit_id_token
from issuer.id_token_signature import ID_TOKEN_ALGORITHMS, import_provider_key
from issuer.provider_token import MAX_PROVIDER_TOKEN_LENGTH, IDTokenRefused
from verifier.compact import b64url_encode

from .provider import ALGORITHMS, id_token, jwk, provider, signature, signed, workspace
from .world import DROP, NOW

EVERY = frozenset(ID_TOKEN_ALGORITHMS)
OURS = ("at+jwt", "client-authentication+jwt", "caplo-subject+jwt", "caplo-actor+jwt", "caplo-admin+jwt", "logout+jwt")


def shop(**changes):
    return workspace(provider(**changes))


def verified(token=None, *, tenant=None, client="orc_main", nonce=None, now=NOW, key=None):
    tenant = tenant or shop()
    unverified = admit_id_token(token or id_token(), tenant, client=tenant.clients[client], nonce=nonce, now=now)
    name = key or f"{ALGORITHMS[unverified.token.algorithm]}-1"
    return unverified.establish(import_provider_key(jwk(name), EVERY), now)


def reason(token=None, **asked):
    with pytest.raises(IDTokenRefused) as caught:
        verified(token, **asked)
    assert str(caught.value) == caught.value.reason
    return caught.value.reason


def test_a_good_token_says_who_signed_in_when_and_how():
    """
    Everything that a sign-in is made of, and the connection that makes `sub` unique.
    """
    tenant = shop()
    token = id_token(sid="session-1", nonce="n-1", email="customer@shop.example")

    found = verified(token, tenant=tenant, nonce="n-1")

    assert found.connection is tenant.connections[0]
    assert found.provider is tenant.connections[0].provider
    assert (found.audience, found.sub, found.level) == ("app-1", "248289761001", "standard")
    assert (found.auth_time, found.iat, found.exp) == (NOW - 20, NOW - 2, NOW + 600)
    assert (found.nonce, found.sid) == ("n-1", "session-1")
    assert "248289761001" not in repr(found)
    assert not {"n-1", "session-1"} & set(repr(found).split("'"))


@pytest.mark.parametrize("alg", ID_TOKEN_ALGORITHMS)
def test_the_provider_may_sign_with_what_it_is_allowed(alg):
    """
    Each of the four algorithms works where it is configured, and is refused where it is not.
    """
    allowed, others = shop(algorithms=frozenset({alg})), shop(algorithms=EVERY - {alg})

    assert verified(id_token(alg=alg), tenant=allowed).sub == "248289761001"
    assert reason(id_token(alg=alg), tenant=others) == "algorithm"


@pytest.mark.parametrize(
    "alg", ["none", "NoNe", "NONE", "HS256", "HS512", "RS384", "ES384", "Ed25519", "rs256", "", None, 5, ["RS256"], {}]
)
def test_no_other_algorithm_exists(alg):
    """
    Neither what a token says, nor whose secret it was made with, opens another one.
    """
    every = shop(algorithms=EVERY)

    assert reason(id_token(key="rsa-1", header={"alg": alg}), tenant=every) == "algorithm"
    assert reason(id_token(key=b"secret of the client", header={"alg": alg}), tenant=every) == "algorithm"


def test_a_token_without_a_signature_is_no_token():
    """
    An empty third part is malformed, whatever `alg` says.
    """
    unsigned = id_token(header={"alg": "none"}).rpartition(".")[0] + "."

    assert reason(unsigned) == "malformed"


@pytest.mark.parametrize("signer", ["rsa-2", "ec-1", "ed-1"])
def test_only_the_key_of_the_provider_signs(signer):
    """
    A token signed by another key, of the same kind or not, is refused by its signature.
    """
    assert reason(id_token(key=signer)) == "signature"


def test_what_was_signed_cannot_be_changed():
    """
    Claims of one token under the signature of another are refused.
    """
    first, second = id_token().split("."), id_token(sub="somebody-else").split(".")

    assert reason(f"{first[0]}.{second[1]}.{first[2]}") == "signature"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"aud": ["app-1"]}, None),
        ({"aud": "app-1", "azp": "app-1"}, None),
        ({"aud": ["app-1", "app-2"], "azp": "app-1"}, None),
        ({"aud": ["else", "app-1"], "azp": "app-1"}, None),
        ({"aud": DROP}, "audience"),
        ({"aud": None}, "audience"),
        ({"aud": ""}, "audience"),
        ({"aud": []}, "audience"),
        ({"aud": 5}, "audience"),
        ({"aud": {"app-1": True}}, "audience"),
        ({"aud": ["app-1", 5]}, "audience"),
        ({"aud": ["app-1", ["app-1"]], "azp": "app-1"}, "audience"),
        ({"aud": "app-3"}, "audience"),
        ({"aud": "APP-1"}, "audience"),
        ({"aud": "app-1 "}, "audience"),
        ({"aud": "orc_main"}, "audience"),
        ({"aud": ["else", "more"], "azp": "else"}, "audience"),
        ({"aud": ["app-1", "app-2"]}, "azp"),
        ({"aud": ["app-1", "app-1"]}, "azp"),
        ({"aud": ["app-1", "else"], "azp": "else"}, "azp"),
        ({"aud": ["app-1", "else"], "azp": "app-2"}, "azp"),
        ({"aud": ["app-1", "else"], "azp": None}, "azp"),
        ({"aud": "app-1", "azp": "app-2"}, "azp"),
        ({"aud": "app-1", "azp": None}, "azp"),
        ({"aud": "app-1", "azp": ["app-1"]}, "azp"),
        ({"aud": ["app-1", "app-2"], "azp": "app-2"}, "client"),
        ({"aud": "app-2"}, "client"),
        ({"iss": DROP}, "issuer"),
        ({"iss": "https://login.shop.example/"}, "issuer"),
        ({"iss": "https://LOGIN.shop.example"}, "issuer"),
        ({"iss": "https://login.other.example"}, "issuer"),
        ({"iss": ["https://login.shop.example"]}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"sub": DROP}, "sub"),
        ({"sub": ""}, "sub"),
        ({"sub": "x" * 255}, None),
        ({"sub": "x" * 256}, "sub"),
        ({"sub": "kundé"}, "sub"),
        ({"sub": "a\nb"}, "sub"),
        ({"sub": 42}, "sub"),
        ({"sub": "orc_second"}, "sub"),
        ({"sid": "s"}, None),
        ({"sid": None}, None),
        ({"sid": ""}, "sid"),
        ({"sid": 5}, "sid"),
        ({"sid": "s" * 256}, "sid"),
        ({"events": {}}, "type"),
    ],
)
def test_for_whom_and_about_whom(changes, expected):
    """
    E11 and its siblings: issued to the client that brings it, by the very provider, about a customer.
    """
    token = id_token(**changes)

    if expected is None:
        assert verified(token).audience == "app-1"
    else:
        assert reason(token) == expected


def test_the_same_token_is_good_for_its_own_client():
    """
    What one client may not bring, the client it was issued to may.
    """
    token = id_token(aud=["app-1", "app-2"], azp="app-2")

    assert reason(token) == "client"
    assert verified(token, client="orc_second").audience == "app-2"


def test_a_customer_is_the_pair_of_connection_and_sub():
    """
    Two providers may call two customers by the same name; each token leads to the connection of its own.
    """
    other = "https://login.bank.example"
    tenant = workspace(provider(), provider(other, clients={"app-1": "orc_main"}))

    first, second = (verified(id_token(issuer=issuer), tenant=tenant) for issuer in (provider().issuer, other))

    assert first.sub == second.sub
    assert (first.connection.name, second.connection.name) == ("shop", "bank")


def test_two_connections_of_one_provider_are_told_apart_by_the_client_id():
    """
    Issuer and client id together name the connection; with several audiences, `azp` does.
    """
    tenant = workspace(provider(), provider(clients={"bank-1": "orc_main"}))

    found = [
        verified(token, tenant=tenant).connection.name
        for token in (id_token(), id_token(aud="bank-1"), id_token(aud=["app-1", "bank-1"], azp="bank-1"))
    ]

    assert found == ["shop", "bank", "bank"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"exp": NOW + 1}, None),
        ({"exp": NOW + 0.5}, None),
        ({"exp": NOW + 10**6}, None),
        ({"exp": NOW}, "expired"),
        ({"exp": NOW - 1}, "expired"),
        ({"exp": DROP}, "exp"),
        ({"exp": None}, "exp"),
        ({"exp": str(NOW + 60)}, "exp"),
        ({"exp": True}, "exp"),
        ({"exp": 2**53}, "exp"),
        ({"exp": -1}, "exp"),
        ({"iat": NOW - 300, "auth_time": NOW - 400}, None),
        ({"iat": NOW - 300.5}, "too_old"),
        ({"iat": NOW - 301}, "too_old"),
        ({"iat": 0}, "too_old"),
        ({"iat": NOW + 5}, None),
        ({"iat": NOW + 5.1}, "not_yet_valid"),
        ({"iat": NOW + 6}, "not_yet_valid"),
        ({"iat": DROP}, "iat"),
        ({"iat": "now"}, "iat"),
        ({"iat": False}, "iat"),
        ({"nbf": NOW + 5}, None),
        ({"nbf": NOW + 6}, "not_yet_valid"),
        ({"nbf": None}, "nbf"),
        ({"nbf": "0"}, "nbf"),
        ({"auth_time": NOW - 10**6}, None),
        ({"auth_time": NOW + 3}, None),
        ({"auth_time": NOW + 4}, "auth_time"),
        ({"auth_time": DROP}, "auth_time"),
        ({"auth_time": None}, "auth_time"),
        ({"auth_time": True}, "auth_time"),
        ({"auth_time": -1}, "auth_time"),
        ({"auth_time": "1796039980"}, "auth_time"),
    ],
)
def test_times(changes, expected):
    """
    `exp` without tolerance, `iat` neither old nor ahead, and a sign-in whose time is known and past.
    """
    token = id_token(**changes)

    if expected is None:
        assert verified(token).sub == "248289761001"
    else:
        assert reason(token) == expected


def test_a_sign_in_lies_in_the_past_of_this_clock_too():
    """
    With the clock of the provider ahead, what is minted now would say that the customer signs in later.
    """
    assert verified(id_token(iat=NOW + 5, auth_time=NOW + 5)).auth_time == NOW + 5
    assert reason(id_token(iat=NOW + 5, auth_time=NOW + 6)) == "auth_time"


def test_a_token_that_expires_while_its_key_is_fetched():
    """
    It is looked at again once the key is there.
    """
    tenant = shop()
    unverified = admit_id_token(id_token(), tenant, client=tenant.clients["orc_main"], nonce=None, now=NOW)

    with pytest.raises(IDTokenRefused) as caught:
        unverified.establish(import_provider_key(jwk("rsa-1"), EVERY), NOW + 600)

    assert caught.value.reason == "expired"


@pytest.mark.parametrize(
    ("claim", "stated", "accepted"),
    [
        (DROP, None, True),
        (None, None, True),
        ("n-1", "n-1", True),
        ("n-1", None, False),
        (DROP, "n-1", False),
        (None, "n-1", False),
        ("n-1", "n-2", False),
        ("n-1", "N-1", False),
        ("", "", False),
        (5, None, False),
        (["n-1"], "n-1", False),
    ],
)
def test_a_nonce_answers_the_one_that_was_given_out(claim, stated, accepted):
    """
    A token with a nonce is good only where it is stated, and a stated nonce only with a token that carries it.
    """
    token = id_token(nonce=claim)

    if accepted:
        assert verified(token, nonce=stated).nonce == stated
    else:
        assert reason(token, nonce=stated) == "nonce"


@pytest.mark.parametrize("prefix", ["", "application/"])
@pytest.mark.parametrize("typ", [*OURS, "secevent+jwt", "dpop+jwt", "AT+JWT", "at+jwt; x=1"])
def test_a_token_of_another_kind_is_no_id_token(typ, prefix):
    """
    D7: neither this project's kinds nor any other that has a type of its own, in whatever case.
    """
    assert reason(id_token(header={"typ": prefix + typ})) == "type"


@pytest.mark.parametrize("typ", [DROP, "JWT", "jwt", "application/jwt", "", "id_token"])
def test_an_id_token_may_call_itself_what_it_likes(typ):
    """
    There is no registered type of ID tokens.
    """
    assert verified(id_token(header={"typ": typ})).sub == "248289761001"


@pytest.mark.parametrize("typ", [None, 5, ["JWT"], {"typ": "JWT"}])
def test_a_type_is_text(typ):
    """
    JSON null counts as absent, and anything else is refused.
    """
    token = id_token(header={"typ": typ})

    if typ is None:
        assert verified(token).sub == "248289761001"
    else:
        assert reason(token) == "type"


@pytest.mark.parametrize(
    ("claims", "level"),
    [
        ({"acr": DROP}, "low"),
        ({"acr": "urn:shop:pwd"}, "standard"),
        ({"acr": "urn:shop:mfa"}, "high"),
        ({"acr": "URN:SHOP:MFA"}, "low"),
        ({"acr": "high"}, "low"),
        ({"acr": "urn:shop:pwd urn:shop:mfa"}, "low"),
        ({"acr": 1}, "low"),
        ({"acr": ["urn:shop:mfa"]}, "low"),
        ({"acr": DROP, "amr": ["pwd", "otp"]}, "standard"),
        ({"acr": DROP, "amr": ["otp", "pwd"]}, "standard"),
        ({"acr": DROP, "amr": ["otp", "pwd", "pwd"]}, "standard"),
        ({"acr": DROP, "amr": ["pwd", "otp", "mfa"]}, "low"),
        ({"acr": DROP, "amr": ["pwd"]}, "low"),
        ({"acr": DROP, "amr": []}, "low"),
        ({"acr": DROP, "amr": "pwd otp"}, "low"),
        ({"acr": DROP, "amr": ["pwd", ["otp"]]}, "low"),
        ({"acr": DROP, "amr": {"pwd": 1, "otp": 1}}, "low"),
        ({"acr": "urn:shop:pwd", "amr": ["hwk", "user"]}, "high"),
        ({"acr": "urn:shop:mfa", "amr": ["pwd", "otp"]}, "high"),
        ({"acr": "unknown", "amr": ["pwd", "otp"]}, "standard"),
    ],
)
def test_a_level_is_what_the_map_says(claims, level):
    """
    Exactly: the higher of `acr` and the complete set of `amr`, and low for what is not mapped.
    """
    assert verified(id_token(**claims)).level == level


def test_what_is_used_once_is_what_was_signed():
    """
    The twin of an ES256 signature, which anybody can make, is the same token; a new token of the same sign-in is another.
    """
    tenant = shop(algorithms=EVERY)
    token = id_token(alg="ES256")
    head = token.rpartition(".")[0]
    again = f"{head}.{b64url_encode(signature('ES256', 'ec-1', head.encode()))}"

    first, second, other = (verified(each, tenant=tenant) for each in (token, again, id_token(alg="ES256", jti="2")))

    assert again != token
    assert first.once == second.once == b64url_encode(sha256(head.encode()).digest())
    assert first.once != other.once


@pytest.mark.parametrize(
    ("iat", "exp", "until"),
    [
        (NOW, NOW + 60, NOW + 60),
        (NOW, NOW + 59.5, NOW + 60),
        (NOW, NOW + 9000, NOW + 301),
        (NOW + 0.5, NOW + 9000, NOW + 301),
    ],
)
def test_a_token_is_remembered_until_it_can_no_longer_be_accepted(iat, exp, until):
    """
    At that whole second it is refused by itself, and it was not a second before.
    """
    token = id_token(iat=iat, exp=exp, auth_time=NOW - 20)

    assert verified(token, now=NOW).expires_at == until
    assert reason(token, now=until) in {"expired", "too_old"}
    assert verified(token, now=until - 1).expires_at == until


MALFORMED = {
    "nothing": "",
    "no text": None,
    "octets": b"a.b.c",
    "two parts": "a.b",
    "five parts, an encrypted token": "a.b.c.d.e",
    "a line break": id_token() + "\n",
    "padding": id_token() + "=",
    "crit": id_token(header={"crit": ["exp"]}),
    "an empty crit": id_token(header={"crit": []}),
    "b64": id_token(header={"b64": False, "crit": ["b64"]}),
    "b64 without crit": id_token(header={"b64": False}),
    "a kid that is a number": id_token(header={"kid": 1}),
    "an empty kid": id_token(header={"kid": ""}),
    "a claim twice": signed(b'{"iss":"https://login.shop.example","iss":"https://login.shop.example"}'),
    "NaN": signed(b'{"exp":NaN}'),
    "an array": signed(b"[]"),
    "no JSON": signed(b"sub=1"),
    "too long": id_token(groups=["g" * 36] * 400),
}


@pytest.mark.parametrize("token", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_compact_jws_is_malformed(token):
    """
    Before anything in it is looked at.
    """
    tenant = shop()

    with pytest.raises(IDTokenRefused) as caught:
        admit_id_token(token, tenant, client=tenant.clients["orc_main"], nonce=None, now=NOW)

    assert caught.value.reason == "malformed"


def test_a_token_with_two_hundred_groups_is_read():
    """
    Providers put that many into one before they point elsewhere; this project's own tokens are never as long.
    """
    token = id_token(groups=["11111111-2222-3333-4444-555555555555"] * 200, header={"x5t": "t" * 27, "typ": "JWT"})

    assert 8192 < len(token) < MAX_PROVIDER_TOKEN_LENGTH
    assert verified(token).sub == "248289761001"


def test_a_key_that_the_token_brings_is_not_looked_at():
    """
    Neither `jwk` nor `jku`, `x5u` or `x5c` in the header changes which key decides (RFC 8725 section 3.10).
    """
    brought = {"jwk": jwk("rsa-2"), "jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/", "x5c": ["MIIC"]}

    assert reason(id_token(key="rsa-2", header={**brought, "kid": "rsa-1"})) == "signature"
    assert verified(id_token(header={**brought, "jwk": {"kty": "oct", "k": "AA"}})).sub == "248289761001"


def test_cheap_checks_come_first():
    """
    What is wrong in every way is told by the first of them, so that no key is asked for.
    """
    token = id_token(
        key="rsa-2", header={"typ": "at+jwt", "alg": "none"}, iss="https://x.example", aud="x", exp=1, sub="", sid=5
    )

    assert reason(token) == "type"
