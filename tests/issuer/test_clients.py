"""
Client authentication: exactly one method, only the registered one, the same words whatever was wrong.
"""

import base64

import pytest

from issuer.clients import ASSERTION_TYPE, authenticate_by_assertion, authenticate_by_secret, chosen_method
from issuer.errors import TokenRefused
from issuer.form import Form

from .world import clients

NOW = 1_796_040_000


def refusal(caught: pytest.ExceptionInfo[TokenRefused]) -> tuple[int, str, str]:
    assert caught.value.error != "invalid_client" or str(caught.value) == "Client authentication failed."
    return caught.value.status, caught.value.error, caught.value.reason


def credentials(text: str | bytes) -> str:
    return "Basic " + base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


@pytest.mark.parametrize(
    ("authorization", "parameters", "method"),
    [
        (["Basic x"], {}, "client_secret_basic"),
        (["Basic x"], {"client_id": "c1"}, "client_secret_basic"),
        (["Bearer x"], {}, "client_secret_basic"),
        ([""], {}, "client_secret_basic"),
        ([], {"client_assertion": "x", "client_assertion_type": "y"}, "private_key_jwt"),
        ([], {"client_assertion": "x"}, "private_key_jwt"),
        ([], {"client_assertion_type": "y"}, "private_key_jwt"),
    ],
)
def test_the_method_is_the_one_that_is_there(authorization, parameters, method):
    """
    A header means Basic, an assertion or its type means private_key_jwt; whether it is any good comes later.
    """
    assert chosen_method(authorization, Form(parameters)) == method


@pytest.mark.parametrize(
    ("authorization", "parameters"),
    [
        (["Basic x", "Basic x"], {}),
        (["Basic x"], {"client_secret": "s"}),
        (["Basic x"], {"client_assertion": "x"}),
        (["Basic x"], {"client_assertion_type": "x"}),
        ([], {"client_assertion": "x", "client_secret": "s"}),
        (["Basic x"], {"client_assertion": "x", "client_secret": "s"}),
    ],
)
def test_two_methods_are_one_too_many(authorization, parameters):
    """
    te-one-auth: a request with two mechanisms is malformed, whichever of them would hold (RFC 6749 section 2.3).
    """
    with pytest.raises(TokenRefused) as caught:
        chosen_method(authorization, Form(parameters))

    assert refusal(caught) == (400, "invalid_request", "client:two_methods")


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({}, "client:no_credentials"),
        ({"client_id": "c1"}, "client:no_credentials"),
        ({"client_secret": "s"}, "client:secret_in_body"),
        ({"client_id": "c1", "client_secret": "s"}, "client:secret_in_body"),
    ],
)
def test_no_method_is_a_failed_authentication(parameters, reason):
    """
    A request without credentials, or with a secret in its body, which is not offered, comes from no client.
    """
    with pytest.raises(TokenRefused) as caught:
        chosen_method([], Form(parameters))

    assert refusal(caught) == (401, "invalid_client", reason)


@pytest.mark.parametrize(
    "authorization",
    [
        credentials("c1:s"),
        credentials("c1:s%3Awith%3Acolons%2Bplus"),
        credentials("c1:s:with:colons%2Bplus"),
        credentials("%63%31:%73"),
        credentials("c1:s").replace("Basic", "bASIC"),
        credentials("c1:s").replace(" ", "   "),
        f" \t{credentials('c1:s')} ",
    ],
)
def test_every_secret_that_is_registered_opens(authorization, site):
    """
    Several secrets are valid at once, each in any of its encoded forms; the scheme compares without case.
    """
    authenticated = authenticate_by_secret(site.workspace(), authorization, Form({"client_id": "c1"}))

    assert (authenticated.client.client_id, authenticated.assertion) == ("c1", None)


@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        ("", "client:scheme"),
        ("Basic" + "c1:s", "client:scheme"),
        ("Bearer abc", "client:scheme"),
        ("Digest abc", "client:scheme"),
        ("Basic " + "A" * 2052, "client:scheme"),
        ("Basic", "client:credentials"),
        ("Basic ====", "client:credentials"),
        ("Basic c1:s", "client:credentials"),
        ("Basic YzE6cw", "client:credentials"),
        ("Basic YzE6cw==\u00e9", "client:credentials"),
        ("Basic YzE6 cw==", "client:credentials"),
        (credentials("c1"), "client:credentials"),
        (credentials("c1:"), "client:credentials"),
        (credentials(":s"), "client:credentials"),
        (credentials("c1:t"), "client:credentials"),
        (credentials("c1:s "), "client:credentials"),
        (credentials("C1:s"), "client:credentials"),
        (credentials("c2:s"), "client:credentials"),
        (credentials("c1:%zz"), "client:credentials"),
        (credentials("c1:%00"), "client:credentials"),
        (credentials(b"c1:\xff"), "client:credentials"),
        (credentials("é:s"), "client:credentials"),
        (credentials("orc_main:s"), "client:credentials"),
        (credentials("orc_main:"), "client:credentials"),
    ],
)
def test_a_client_without_its_secret_is_nobody(authorization, reason, site):
    """
    te-invalid-client: malformed, unknown, wrong, or registered for keys: one answer, and never another exception.
    """
    with pytest.raises(TokenRefused) as caught:
        authenticate_by_secret(site.workspace(), authorization, Form({}))

    assert refusal(caught) == (401, "invalid_client", reason)


def test_an_authenticated_client_may_not_call_itself_another(site):
    """
    ca-iss-sub: a `client_id` parameter names the client that authenticated, or the request is refused.
    """
    form = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": site.client_assertion(), "client_id": "c1"}

    with pytest.raises(TokenRefused) as by_secret:
        authenticate_by_secret(site.workspace(), credentials("c1:s"), Form({"client_id": "orc_basic"}))
    with pytest.raises(TokenRefused) as by_assertion:
        authenticate_by_assertion(site.workspace(), Form(form), NOW)

    assert refusal(by_secret) == refusal(by_assertion) == (401, "invalid_client", "client:other_client_id")


@pytest.mark.parametrize("key", ["client-1", "client-2"])
def test_every_key_that_is_registered_opens(key, site):
    """
    Several keys are valid at once; the verified assertion comes back, still to be used up.
    """
    assertion = site.client_assertion(key=key, jti="jti-x")
    form = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion, "client_id": "orc_main"}

    authenticated = authenticate_by_assertion(site.workspace(), Form(form), NOW)

    assert authenticated.client.client_id == "orc_main"
    assert authenticated.assertion.jti == "jti-x"
    assert "cus_" not in repr(authenticated)


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("client_assertion:key", {"sub": "nobody", "iss": "nobody"}),
        ("client_assertion:key", {"sub": ["orc_main"]}),
        ("client_assertion:key", {"sub": ...}),
        ("client_assertion:key", {"sub": "orc_basic", "iss": "orc_basic"}),
        ("client_assertion:key", {"key": "subject-1"}),
        ("client_assertion:signature", {"key": "subject-1", "header": {"kid": "client-1"}}),
        ("client_assertion:issuer", {"iss": "orc_second"}),
        ("client_assertion:audience", {"aud": "https://issuer.test/oauth/token"}),
        ("client_assertion:audience", {"aud": "https://issuer.test/w/acme"}),
        ("client_assertion:type", {"header": {"typ": "caplo-subject+jwt"}}),
    ],
)
def test_an_assertion_that_does_not_hold_is_a_failed_authentication(reason, changes, site):
    """
    ca-signature: whatever is wrong with it, the client hears the same words, and only the log says more.
    """
    form = Form({"client_assertion_type": ASSERTION_TYPE, "client_assertion": site.client_assertion(**changes)})

    with pytest.raises(TokenRefused) as caught:
        authenticate_by_assertion(site.workspace(), form, NOW)

    assert refusal(caught) == (401, "invalid_client", reason)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"client_assertion": "x"}, "client:assertion_type"),
        ({"client_assertion_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}, "client:assertion_type"),
        ({"client_assertion_type": ASSERTION_TYPE}, "client_assertion:malformed"),
        ({"client_assertion_type": ASSERTION_TYPE, "client_assertion": "a.b.c"}, "client_assertion:malformed"),
    ],
)
def test_an_assertion_comes_with_its_type(parameters, reason, site):
    """
    ca-type-exact: the type is the jwt-bearer URN and the assertion is one JWT, or nobody is authenticated.
    """
    with pytest.raises(TokenRefused) as caught:
        authenticate_by_assertion(site.workspace(), Form(parameters), NOW)

    assert refusal(caught) == (401, "invalid_client", reason)


def test_a_client_of_another_workspace_is_nobody_here(build_site, site):
    """
    A client exists in the workspaces that list it and nowhere else.
    """
    other = build_site(clients=lambda: clients()[:1])

    with pytest.raises(TokenRefused) as caught:
        authenticate_by_secret(other.workspace(), credentials("c1:s"), Form({}))

    assert refusal(caught) == (401, "invalid_client", "client:credentials")
