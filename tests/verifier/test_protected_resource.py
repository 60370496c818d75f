"""
Protected resource metadata says what RFC 9728 has words for, at the place where RFC 9728 looks for it.
"""

import json

import pytest

from verifier.protected_resource import (
    protected_resource_metadata,
    protected_resource_metadata_path,
    protected_resource_metadata_url,
)

API = "https://api.shop.example"
ISSUER = "https://id.example.com/w/acme"
# RFC 9728 section 2 and the registry that section 8.1 opens.
REGISTERED = {
    *("resource", "authorization_servers", "jwks_uri", "scopes_supported", "bearer_methods_supported"),
    *("resource_signing_alg_values_supported", "resource_name", "resource_documentation", "resource_policy_uri"),
    *("resource_tos_uri", "tls_client_certificate_bound_access_tokens", "authorization_details_types_supported"),
    *("dpop_signing_alg_values_supported", "dpop_bound_access_tokens_required", "signed_metadata"),
}


def test_everything_that_can_be_said():
    """
    Each argument is the registered member of its name, and nothing shows what level an API demands.
    """
    members = protected_resource_metadata(
        resource=f"{API}/v1",
        authorization_servers=[ISSUER, "https://id.example.org"],
        scopes_supported=("orders:read", "orders:write"),
        authorization_details_types_supported=["caplo_action"],
        resource_name="Shop é",
    )

    assert json.loads(json.dumps(members)) == {
        "resource": f"{API}/v1",
        "authorization_servers": [ISSUER, "https://id.example.org"],
        "scopes_supported": ["orders:read", "orders:write"],
        "bearer_methods_supported": ["header"],
        "authorization_details_types_supported": ["caplo_action"],
        "resource_name": "Shop é",
    }
    assert members.keys() <= REGISTERED


def test_what_has_no_value_is_left_out():
    """
    RFC 9728 section 3.2: no member is empty, and the identifier and the issuers stand as they were given.
    """
    members = protected_resource_metadata(resource=f"{API}/", authorization_servers=[f"{ISSUER}/"])

    assert members == {
        "resource": f"{API}/",
        "authorization_servers": [f"{ISSUER}/"],
        "bearer_methods_supported": ["header"],
    }


@pytest.mark.parametrize(
    ("resource", "url", "path"),
    [
        (API, f"{API}/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource"),
        (f"{API}/", f"{API}/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource"),
        (
            "https://resource.example.com/resource1",
            "https://resource.example.com/.well-known/oauth-protected-resource/resource1",
            "/.well-known/oauth-protected-resource/resource1",
        ),
        (
            f"{API}:8443/t/acme/v1",
            f"{API}:8443/.well-known/oauth-protected-resource/t/acme/v1",
            "/.well-known/oauth-protected-resource/t/acme/v1",
        ),
        (
            "http://[::1]:8000/v1/",
            "http://[::1]:8000/.well-known/oauth-protected-resource/v1/",
            "/.well-known/oauth-protected-resource/v1/",
        ),
    ],
)
def test_where_the_metadata_lies(resource, url, path):
    """
    RFC 9728 section 3.1: inserted between host and path, without the one slash that follows the host.
    """
    assert protected_resource_metadata_url(resource) == url
    assert protected_resource_metadata_path(resource) == path


@pytest.mark.parametrize(
    "resource",
    [
        *(
            "",
            "/",
            "api.shop.example",
            "http://api.shop.example",
            "https://API.shop.example",
            "https://",
            "https:///v1",
        ),
        *(f"{API}?x=1", f"{API}#x", f"{API}//", f"{API}/v1//", f"{API}/../x", "https://u:p@api.shop.example"),
        *("urn:shop:api", f"{API}/v1\n", f"{API}/é"),
    ],
)
def test_what_is_no_identifier_of_a_resource(resource):
    """
    RFC 9728 section 1.2: an https URL without a fragment; a query would make two places of one.
    """
    with pytest.raises(ValueError):
        protected_resource_metadata(resource=resource, authorization_servers=[ISSUER])
    with pytest.raises(ValueError):
        protected_resource_metadata_url(resource)
    with pytest.raises(ValueError):
        protected_resource_metadata_path(resource)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"resource": None}, TypeError),
        ({"resource": b"https://api.shop.example"}, TypeError),
        ({"authorization_servers": []}, ValueError),
        ({"authorization_servers": ISSUER}, TypeError),
        ({"authorization_servers": None}, TypeError),
        ({"authorization_servers": [5]}, TypeError),
        ({"authorization_servers": [""]}, TypeError),
        ({"authorization_servers": ["http://id.example.com"]}, ValueError),
        ({"authorization_servers": [f"{ISSUER}?x=1"]}, ValueError),
        ({"scopes_supported": "orders:read"}, TypeError),
        ({"scopes_supported": ["orders:read orders:write"]}, ValueError),
        ({"scopes_supported": ['"']}, ValueError),
        ({"authorization_details_types_supported": "caplo_action"}, TypeError),
        ({"authorization_details_types_supported": [None]}, TypeError),
    ],
    ids=str,
)
def test_metadata_that_makes_no_sense_is_not_written(changed, error):
    """
    A value of another type or out of its range is told to the programmer.
    """
    with pytest.raises(error):
        protected_resource_metadata(**({"resource": API, "authorization_servers": [ISSUER]} | changed))
