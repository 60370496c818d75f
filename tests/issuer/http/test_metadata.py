"""
Server metadata (RFC 8414), where clients look for it and what it says.
"""

import pytest
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

from issuer.http.metadata import metadata, metadata_paths
from issuer.registry import Connection, Workspace

ROOT, ACME = "https://id.example", "https://id.example/w/acme"
INSERTED, APPENDED = "/.well-known/oauth-authorization-server/w/acme", "/w/acme/.well-known/oauth-authorization-server"


@pytest.mark.parametrize(
    ("path", "issuer"), [("/.well-known/oauth-authorization-server", ROOT), (INSERTED, ACME), (APPENDED, ACME)]
)
def test_the_document_is_found_and_valid(client, path, issuer):
    """
    200 JSON that an independent validator passes, whose issuer is the one the URL was made from (RFC 8414 section 3.3).
    """
    response = client.get(path)

    members = response.json()
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    AuthorizationServerMetadata(members).validate()
    assert members == {
        "issuer": issuer,
        "token_endpoint": f"{issuer}/oauth/token",
        "jwks_uri": f"{issuer}/.well-known/jwks.json",
        "response_types_supported": ["none"],
        "grant_types_supported": ["urn:ietf:params:oauth:grant-type:token-exchange"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
        "authorization_details_types_supported": ["caplo_action"],
        "acr_values_supported": ["low", "standard", "high"],
        "scopes_supported": ["orders:read", "orders:write"],
    }


def test_both_places_have_the_same_bytes(client):
    """
    The inserted place is the right one; the appended one is for clients that get it wrong (D3).
    """
    assert client.get(INSERTED).content == client.get(APPENDED).content


def test_urls_come_from_configuration(client):
    """
    Neither Host nor forwarding headers change a single octet.
    """
    usual = client.get(INSERTED)

    odd = client.get(
        INSERTED, headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Forwarded": "host=e"}
    )

    assert odd.content == usual.content


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/w/acme/.well-known/openid-configuration"])
def test_this_is_no_openid_provider(client, path):
    """
    Nothing is served under that name (D3).
    """
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_document_may_be_cached_for_a_while(client, method):
    """
    With a validator, and 304 for a current copy.
    """
    full = client.request(method, INSERTED)
    again = client.request(method, INSERTED, headers={"If-None-Match": full.headers["etag"]})

    assert full.headers["cache-control"] == again.headers["cache-control"] == "public, max-age=300"
    assert (full.status_code, again.status_code, again.content) == (200, 304, b"")


def test_no_array_is_empty():
    """
    A workspace without scopes leaves the member out (RFC 8414 section 3.2).
    """
    connection = Connection(
        name="shop", namespace="n", audiences=("https://api.example",), scopes=frozenset(), actions={}
    )
    bare = Workspace(name="bare", path="", issuer=ROOT, connections=(connection,), clients={}, admins={})

    members = metadata(bare)

    assert "scopes_supported" not in members
    assert [] not in members.values()


def test_a_workspace_at_the_root_has_one_place():
    """
    Inserted and appended coincide, and no route is registered twice.
    """
    connection = Connection(
        name="shop", namespace="n", audiences=("https://api.example",), scopes=frozenset(), actions={}
    )
    root = Workspace(name="root", path="", issuer=ROOT, connections=(connection,), clients={}, admins={})

    assert metadata_paths(root) == ("/.well-known/oauth-authorization-server",)
