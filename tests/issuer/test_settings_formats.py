"""
The forms of single configured values, and what is refused of each.
"""

from hashlib import sha256
from pathlib import Path

import pytest

from issuer import settings_formats as formats
from verifier.fetch import jwks_url

ORIGINS = [
    "https://id.example.com",
    "https://id.example.com:8443",
    "https://xn--bcher-kva.example",
    "http://127.0.0.1:8000",
    "http://127.9.9.9",
    "http://localhost:8000",
    "http://[::1]:8000",
]
NOT_ORIGINS = [
    "",
    "id.example.com",
    "ftp://id.example.com",
    "HTTPS://id.example.com",
    "https://",
    "https:///w",
    "https://id.example.com/",
    "https://id.example.com/w",
    "https://id.example.com?",
    "https://id.example.com?a=1",
    "https://id.example.com#",
    "https://id.example.com#f",
    "https://user@id.example.com",
    "https://user:password@id.example.com",
    "https://ID.example.com",
    "https://id.example.com:443",
    "http://localhost:80",
    "https://id.example.com:",
    "https://id.example.com:0",
    "https://id.example.com:08443",
    "https://id.example.com:65536",
    "https://id.example.com:port",
    "https://id.example.com\\@evil.example",
    "https://id.example.com\n",
    "https://id.exa\tmple.com",
    "https://bücher.example",
    "https://-.example-",
    "https://[::1",
    "https://[zz]",
    "http://id.example.com",
    "http://10.0.0.1",
    "http://127.1",
    "http://127.0.0.1.evil.example",
    "http://localhost.evil.example",
    "https://" + "a" * 512 + ".example",
]


@pytest.mark.parametrize("text", ORIGINS)
def test_an_origin_is_scheme_host_and_port(text):
    """
    Any host with https, or a loopback host with http, makes an origin, with a port where it is not the default one.
    """
    assert formats.origin(text) == text


@pytest.mark.parametrize("path", ["", "/w/acme", "/a.b_c~d-e/0"])
@pytest.mark.parametrize("text", ORIGINS)
def test_a_verifier_takes_every_issuer_that_can_be_configured(text, path):
    """
    No issuer gets through here that the verifier would refuse to fetch keys from.
    """
    issuer = formats.origin(text) + formats.workspace_path(path)

    assert jwks_url(issuer) == f"{issuer}/.well-known/jwks.json"


@pytest.mark.parametrize("text", NOT_ORIGINS)
def test_anything_else_is_no_origin(text):
    """
    What two parties could read differently, what has more than scheme and host, and plain http are refused (D3).
    """
    with pytest.raises(ValueError):
        formats.origin(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://api.shop.example",
        "https://api.shop.example/",
        "https://api.shop.example/v1?tenant=a",
        "http://127.0.0.1:9000/api",
        "http://[0:0:0:0:0:0:0:1]/",
    ],
)
def test_an_audience_is_an_https_url(text):
    """
    An audience may have a path, a query and a slash at its end.
    """
    assert formats.audience(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "http://api.shop.example",
        "https://api.shop.example#part",
        "https://user:password@api.shop.example",
        "https://api.shop.example /",
        "urn:example:api",
        "shop",
    ],
)
def test_other_audiences_are_refused(text):
    """
    Plain http, a fragment, userinfo, spaces and other schemes make no audience (seed-audience-config).
    """
    with pytest.raises(ValueError):
        formats.audience(text)


GOOD = [
    (formats.workspace_name, ["acme", "0", "a-b", "a" * 63]),
    (formats.workspace_path, ["", "/w/acme", "/a.b_c~d-e", "/a/..b"]),
    (formats.label, ["shop", "Shop_2", "2026-11", "a" * 63]),
    (formats.namespace, ["shop-login", "https://idp.example"]),
    (formats.action_name, ["cancel_order", "a:b.c-d"]),
    (formats.scope_token, ["orders:read", "a/b", "!"]),
    (formats.client_id, ["orc_main", "my client:1/é", "a" * 255]),
    (formats.agent, ["agt_support", "https://agents.example/1", "urn:agent:1"]),
    (
        formats.provider,
        [
            "https://login.shop.example",
            "https://shop.eu.auth0.example/",
            "https://login.example/realms/shop",
            "https://login.example:8443/a/b/",
            "http://127.0.0.1:9000",
            "http://localhost:9000/",
        ],
    ),
    (formats.provider_word, ["1", "urn:mace:incommon:iap:silver", "phr", "p" * 255]),
    (formats.secret_digest, [sha256(b"x").hexdigest()]),
    (formats.kid, ["g-cGrguCKq-wECmd4solY_bOAB0xYSZ5yK0Ld7_VbsA"]),
    (formats.network, ["10.0.0.1", "10.0.0.0/8", "fd00::/8", "2001:db8::1", "0.0.0.0/1"]),
    (formats.redis_url, ["", "redis://db", "redis+cluster://a,b", "rediss+sentinel://u:p@a/main"]),
]
BAD = [
    (formats.workspace_name, ["", "Acme", "-a", "a_b", "a" * 64, "a\n"]),
    (
        formats.workspace_path,
        ["/", "w", "/w/", "//w", "/w//a", "/.", "/w/..", "/w/%61", "/{a}", "/w a", "/" + "a" * 128],
    ),
    (formats.label, ["", "-a", "a b", "a:b", "a" * 64]),
    (formats.namespace, ["", "a b", "é", "a" * 129]),
    (formats.action_name, ["", "a b", "é", "a" * 129]),
    (formats.scope_token, ["", "a b", 'a"', "a\\b", "é", "a" * 129]),
    (formats.client_id, ["", " a", "a ", "a\nb", "a\x00", "a" * 256]),
    (formats.agent, ["", "a b", ":a", "1:a", "a:", "é", "a" * 129]),
    (
        formats.provider,
        [
            "",
            "/",
            "login.shop.example",
            "http://login.shop.example",
            "https://Login.shop.example",
            "https://login.shop.example//",
            "https://login.shop.example/a//b",
            "https://login.shop.example/../a",
            "https://login.shop.example?a=1",
            "https://login.shop.example#a",
            "https://user@login.shop.example",
            "https://login.shop.example\n",
            "https://bücher.example",
            "https://login.shop.example:0",
            "https://login.shop.example/" + "p" * 500,
        ],
    ),
    (formats.provider_word, ["", "a b", "é", "a\n", "p" * 256]),
    (formats.secret_digest, ["", "a" * 63, "A" * 64, "g" * 64, sha256(b"").hexdigest()]),
    (formats.kid, ["", "a" * 42, "a" * 44, "=" + "a" * 42, "é" + "a" * 42]),
    (formats.network, ["", "*", "localhost", "10", "10.0.0.1/8", " 10.0.0.1", "010.0.0.1", "::/0", "0.0.0.0/0"]),
    (formats.network, ["fe80::1%eth0", "::ffff:10.0.0.1", "::ffff:10.0.0.0/104", "10.0.0.0/8/8"]),
    (formats.redis_url, ["db", "http://db", "redis://user@db"]),
]


@pytest.mark.parametrize(("check", "text"), [(check, text) for check, texts in GOOD for text in texts])
def test_a_well_formed_value_is_returned_unchanged(check, text):
    """
    Each check hands back exactly what it was given.
    """
    assert check(text) == text


@pytest.mark.parametrize(("check", "text"), [(check, text) for check, texts in BAD for text in texts])
def test_a_malformed_value_is_refused_without_being_repeated(check, text):
    """
    The message of a refusal says the rule and never the value, which may be a secret in the wrong place.
    """
    with pytest.raises(ValueError) as caught:
        check(text)

    assert len(text) < 8 or text not in str(caught.value)


def test_a_path_is_absolute():
    """
    A path that is relative to nothing known is refused.
    """
    assert formats.absolute_path(Path("/run/secrets/key")) == Path("/run/secrets/key")
    with pytest.raises(ValueError):
        formats.absolute_path(Path("key"))


@pytest.mark.parametrize(("value", "meant"), [("true", True), ("false", False), ("yes", "yes"), (1, 1), (True, True)])
def test_a_variable_says_true_or_false(value, meant):
    """
    In these words and no others; what is no text stays what it is.
    """
    assert formats.flag(value) is meant
