"""
A bearer token comes in one `Authorization` header in one form, or not at all (RFC 6750 section 2, D17, row 0 of D20).
"""

import string
import traceback

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verifier.bearer import MAX_AUTHORIZATION_LENGTH, bearer_token
from verifier.errors import CustomerContextError

B64TOKEN = set(string.ascii_letters + string.digits + "-._~+/")
credentials = st.text(max_size=12).map("Bearer {}".format)


@pytest.mark.parametrize(
    ("authorization", "token"),
    [
        ("Bearer x", "x"),
        ("bearer x", "x"),
        ("BEARER x", "x"),
        ("Bearer  x", "x"),
        (" \tBearer x\t ", "x"),
        (["Bearer x"], "x"),
        (("Bearer x",), "x"),
        ("Bearer aA0-._~+/==", "aA0-._~+/=="),
        ("Bearer eyJ.eyJ.c2ln", "eyJ.eyJ.c2ln"),
        ("Bearer " + "x" * (MAX_AUTHORIZATION_LENGTH - 7), "x" * (MAX_AUTHORIZATION_LENGTH - 7)),
    ],
)
def test_a_token_is_taken_out(authorization, token):
    """
    The scheme in any case, one or more spaces and one b64token give the token.
    """
    assert bearer_token(authorization) == token


@pytest.mark.parametrize("authorization", [None, [], (), "", " \t", [""]])
def test_no_credentials_are_missing(authorization):
    """
    No header, and an empty one, carry no credentials: 401 with the realm only and no error code (RFC 6750 section 3.1).
    """
    with pytest.raises(CustomerContextError) as refusal:
        bearer_token(authorization)

    assert refusal.value.reason == "missing"
    assert refusal.value.status == 401
    assert refusal.value.www_authenticate == 'Bearer realm="api"'


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearerx",
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer\tx",
        "Bearer \tx",
        "Bearer x,",
        "Bearer x, Bearer x",
        "Bearer x,Bearer y",
        "Bearer =",
        "Bearer x=y",
        'Bearer "x"',
        "Bearer x\n",
        "Bearer x\r\nX: y",
        "Bearer x\x00",
        "Bearer \xe9",
        "Bearer \u212a",
        "Bearer \u0663",
        "Bearer\xa0x",
        "\xa0Bearer x",
        "Basic eDp5",
        "DPoP x",
        "x",
        "Token x",
        ["Bearer x", "Bearer x"],
        ["Bearer x", ""],
        ["", ""],
        ("Basic eDp5", "Bearer x"),
        "Bearer " + "x" * (MAX_AUTHORIZATION_LENGTH - 6),
    ],
)
def test_anything_but_one_bearer_token_is_refused(authorization):
    """
    Two headers, two tokens, another scheme and foreign characters are 400 invalid_request.
    """
    with pytest.raises(CustomerContextError) as refusal:
        bearer_token(authorization)

    assert refusal.value.reason == "request"
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    "authorization", [b"Bearer x", [b"Bearer x"], [None], [["Bearer x"]], 5, object(), {"Bearer x"}, {}]
)
def test_what_is_no_header_value_is_refused(authorization):
    """
    Values of other types end in a refusal too, never in another exception.
    """
    with pytest.raises(CustomerContextError) as refusal:
        bearer_token(authorization)

    assert refusal.value.reason == "request"


def test_a_refusal_does_not_show_the_token():
    """
    Neither the error nor its traceback holds any of the header.
    """
    with pytest.raises(CustomerContextError) as refusal:
        bearer_token("Bearer c2VjcmV0 c2VjcmV0")

    shown = repr(refusal.value) + str(vars(refusal.value)) + refusal.value.www_authenticate
    assert "c2VjcmV0" not in shown + "".join(traceback.format_exception_only(refusal.value))
    assert refusal.value.__context__ is None


@settings(deadline=None)
@given(st.one_of(st.none(), st.text(), credentials, st.lists(credentials), st.binary()))
def test_any_authorization_gives_a_token_or_a_refusal(authorization):
    """
    A token has the characters of b64token and stood in the value; everything else is refused, without its text.
    """
    try:
        token = bearer_token(authorization)
    except CustomerContextError as error:
        reason = error.reason
    else:
        reason = None
        assert token.rstrip("=")
        assert set(token.rstrip("=")) <= B64TOKEN
        assert token in "".join(authorization)

    assert reason in {None, "missing", "request"}
