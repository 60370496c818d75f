"""
The rules of OpenID Connect Back-Channel Logout 1.0 section 2.6.
"""

import pytest

from issuer.id_token import admit_id_token
from issuer.id_token_signature import ID_TOKEN_ALGORITHMS, import_provider_key
from issuer.logout_token import admit_logout_token
from issuer.provider_token import IDTokenRefused

from .provider import LOGOUT_EVENT, id_token, jwk, logout_token, provider, workspace
from .world import DROP, NOW

KEY = import_provider_key(jwk("rsa-1"), frozenset(ID_TOKEN_ALGORITHMS))


def verified(token, *, tenant=None, now=NOW):
    return admit_logout_token(token, tenant or workspace(provider()), now).establish(KEY, now)


def reason(token, **asked):
    with pytest.raises(IDTokenRefused) as caught:
        verified(token, **asked)
    return caught.value.reason


def test_a_good_token_says_who_signed_out():
    """
    Customer, session, identifier and times, and for which client of the provider.
    """
    tenant = workspace(provider())

    found = verified(logout_token(), tenant=tenant)

    assert found.connection is tenant.connections[0]
    assert found.provider is tenant.connections[0].provider
    assert (found.audience, found.sub, found.sid, found.jti) == ("app-1", "248289761001", "session-1", "logout-1")
    assert (found.iat, found.exp, found.expires_at) == (NOW - 2, NOW + 120, NOW + 120)
    assert not {"248289761001", "session-1"} & set(repr(found).split("'"))


@pytest.mark.parametrize("typ", ["logout+jwt", "LOGOUT+JWT", "application/logout+jwt"])
def test_its_type_is_told_in_two_ways(typ):
    """
    With and without the first half of the media type, in any case (RFC 7515 section 4.1.9).
    """
    assert verified(logout_token(header={"typ": typ})).jti == "logout-1"


@pytest.mark.parametrize("typ", [DROP, None, "JWT", "at+jwt", "secevent+jwt", "logout+jwt; x", "", 5, ["logout+jwt"]])
def test_its_type_is_required(typ):
    """
    D7: what does not say that it is a logout token is none, so that nothing else can be taken for one.
    """
    assert reason(logout_token(header={"typ": typ})) == "type"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sid": DROP}, None),
        ({"sub": DROP}, None),
        ({"sub": None}, None),
        ({"sid": None}, None),
        ({"sub": DROP, "sid": DROP}, "sid"),
        ({"sub": None, "sid": None}, "sid"),
        ({"sub": ""}, "sub"),
        ({"sub": 5}, "sub"),
        ({"sub": "kundé"}, "sub"),
        ({"sid": ""}, "sid"),
        ({"sid": ["session-1"]}, "sid"),
        ({"jti": DROP}, "jti"),
        ({"jti": ""}, "jti"),
        ({"jti": 5}, "jti"),
        ({"jti": "j" * 257}, "jti"),
        ({"events": DROP}, "events"),
        ({"events": None}, "events"),
        ({"events": [LOGOUT_EVENT]}, "events"),
        ({"events": {}}, "events"),
        ({"events": {LOGOUT_EVENT + "/": {}}}, "events"),
        ({"events": {LOGOUT_EVENT: None}}, "events"),
        ({"events": {LOGOUT_EVENT: "{}"}}, "events"),
        ({"events": {LOGOUT_EVENT: []}}, "events"),
        ({"events": {LOGOUT_EVENT: {"more": 1}, "https://else.example": {}}}, None),
        ({"nonce": "n-1"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"iss": "https://login.other.example"}, "issuer"),
        ({"iss": DROP}, "issuer"),
        ({"aud": ["app-1"]}, None),
        ({"aud": ["app-1", "else"]}, None),
        ({"aud": ["app-1", "app-2"]}, "audience"),
        ({"aud": "app-3"}, "audience"),
        ({"aud": []}, "audience"),
        ({"aud": DROP}, "audience"),
        ({"exp": NOW}, "expired"),
        ({"exp": DROP}, "exp"),
        ({"iat": NOW - 301}, "too_old"),
        ({"iat": NOW + 6}, "not_yet_valid"),
        ({"iat": DROP}, "iat"),
    ],
)
def test_each_claim_is_checked(changes, expected):
    """
    Somebody and something has to have ended, it is said for us, and now.
    """
    token = logout_token(**changes)

    if expected is None:
        assert verified(token).jti == "logout-1"
    else:
        assert reason(token) == expected


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (logout_token(alg="ES256"), "algorithm"),
        (logout_token(header={"alg": "none"}), "algorithm"),
        (logout_token(key=b"secret", header={"alg": "HS256"}), "algorithm"),
        (logout_token(key="rsa-2"), "signature"),
        (logout_token(header={"crit": ["typ"]}), "malformed"),
    ],
)
def test_it_is_signed_as_id_tokens_are(token, expected):
    """
    By the same algorithms and the same keys.
    """
    assert reason(token) == expected


def test_neither_kind_is_taken_for_the_other():
    """
    A token that signs somebody out signs nobody in, also without its type, and the other way about.
    """
    tenant = workspace(provider())
    client = tenant.clients["orc_main"]

    for token in (
        logout_token(auth_time=NOW - 20),
        logout_token(auth_time=NOW - 20, header={"typ": DROP}),
        logout_token(auth_time=NOW - 20, events={}, header={"typ": "JWT"}),
    ):
        with pytest.raises(IDTokenRefused) as caught:
            admit_id_token(token, tenant, client=client, nonce=None, now=NOW)
        assert caught.value.reason == "type"
    assert reason(id_token()) == "type"
    assert reason(id_token(header={"typ": "logout+jwt"}, jti="1")) == "events"
