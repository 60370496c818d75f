"""
What an API says of itself to those who look for its authorization server: protected resource metadata (RFC 9728).

    URL = protected_resource_metadata_url("https://api.shop.example/v1")
    verifier = CustomerContextVerifier(audience="https://api.shop.example/v1", resource_metadata=URL, ...)
    context = verifier.verify(bearer_token(header, resource_metadata=URL), ...)

and serve `protected_resource_metadata(...)` as `application/json` with status 200 at `protected_resource_metadata_path(...)`.
"""

from collections.abc import Sequence
from typing import Any, Final

from .demand import scope_words
from .url import check_url

__all__ = ["protected_resource_metadata", "protected_resource_metadata_path", "protected_resource_metadata_url"]

_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


def protected_resource_metadata(
    *,
    resource: str,
    authorization_servers: Sequence[str],
    scopes_supported: Sequence[str] = (),
    authorization_details_types_supported: Sequence[str] = (),
    resource_name: str | None = None,
) -> dict[str, Any]:
    """
    Return the members of an API's metadata (RFC 9728 section 2), to which an API may add others of that list.

    Tokens are taken from the `Authorization` header alone, and that is what it says. Levels are no member: an API states them
    in a challenge, to callers whose token passed (RFC 9470 section 9).

    Args:
        resource: the API's identifier, code point by code point the audience of its verifier.
        authorization_servers: the issuers whose tokens the API takes, exactly as its verifiers name them; one or more.
        scopes_supported: the scope words that its calls may need.
        authorization_details_types_supported: `["caplo_action"]` for an API with writes.
        resource_name: what to call the API before people.

    Raises:
        ValueError, TypeError: for a value that makes no sense.
    """
    _origin_and_path(resource)
    servers = _texts("authorization_servers", authorization_servers)
    if not servers:
        raise ValueError("metadata without an authorization server is of no use to anybody")
    for server in servers:
        check_url(server.removesuffix("/"))
    scopes = _texts("scopes_supported", scopes_supported)
    if any(len(scope_words(scope)) != 1 for scope in scopes):
        raise ValueError("scopes_supported is a list of single words")
    members = {
        "resource": resource,
        "authorization_servers": servers,
        "scopes_supported": scopes,
        "bearer_methods_supported": ["header"],
        "authorization_details_types_supported": _texts(
            "authorization_details_types_supported", authorization_details_types_supported
        ),
        "resource_name": resource_name,
    }
    # RFC 9728 section 3.2: what has no value is left out.
    return {name: value for name, value in members.items() if value}


def protected_resource_metadata_url(resource: str) -> str:
    """
    Return where the metadata of *resource* is looked for: inserted between host and path (RFC 9728 section 3.1).

    Raises:
        ValueError, TypeError: when *resource* is no https URL (http on loopback hosts), or has a query or fragment.
    """
    origin, path = _origin_and_path(resource)
    return f"{origin}{_WELL_KNOWN}{path}"


def protected_resource_metadata_path(resource: str) -> str:
    """
    Return the path of `protected_resource_metadata_url`, to route by.
    """
    return f"{_WELL_KNOWN}{_origin_and_path(resource)[1]}"


def _origin_and_path(resource: str) -> tuple[str, str]:
    if not isinstance(resource, str):
        raise TypeError("a resource is named by a URL")
    check_url(resource.removesuffix("/"))
    scheme, _, rest = resource.partition("://")
    host, slash, path = rest.partition("/")
    # The one slash right after the host is no path (RFC 9728 section 3.1).
    return f"{scheme}://{host}", f"{slash}{path}" if path else ""


def _texts(name: str, values: Sequence[str]) -> list[str]:
    # One text is a sequence of its characters too, and would list nothing of what was meant.
    if isinstance(values, str) or not all(isinstance(value, str) and value for value in values):
        raise TypeError(f"{name} is a list of texts")
    return list(values)
