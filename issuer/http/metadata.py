"""
Authorization server metadata (RFC 8414): what an orchestrator may learn about a workspace before it asks for a token.

The same bytes stand at the place RFC 8414 inserts and at the one that clients append (D3). Nothing is served as
`openid-configuration`: this is no OpenID provider.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from verifier.es256 import ALGORITHM
from verifier.fetch import JWKS_PATH
from verifier.levels import LEVELS

from ..action_request import DETAILS_TYPE
from ..document import Document
from ..exchange import GRANT_TYPE
from ..registry import Workspace
from .documents import document_response, readable
from .errors import TOKEN_PATH
from .public_docs import MetadataOperation

__all__ = ["METADATA_PATH", "metadata", "metadata_paths", "metadata_routes"]

METADATA_PATH: Final = "/.well-known/oauth-authorization-server"

_CACHE_CONTROL: Final = "public, max-age=300"
"""Metadata changes with the configuration only, that is with a restart."""


def metadata(workspace: Workspace) -> Mapping[str, Any]:
    """
    Build the metadata of one workspace; members without a value are left out (RFC 8414 section 3.2).

    `response_types_supported` is `["none"]` because the member is required and there is no authorization endpoint (D15).
    """
    scopes = sorted({scope for each in workspace.connections for scope in each.scopes | each.action_scopes})
    members: dict[str, Any] = {
        "issuer": workspace.issuer,
        "token_endpoint": workspace.issuer + TOKEN_PATH,
        "jwks_uri": workspace.issuer + JWKS_PATH,
        "response_types_supported": ["none"],
        "grant_types_supported": [GRANT_TYPE],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": [ALGORITHM],
        "authorization_details_types_supported": [DETAILS_TYPE],
        "acr_values_supported": list(LEVELS),
    }
    return members | ({"scopes_supported": scopes} if scopes else {})


def metadata_paths(workspace: Workspace) -> tuple[str, ...]:
    """
    Return where the metadata of a workspace is served: inserted before its path (RFC 8414 section 3.1), and appended to it.

    For a workspace at the root the two are one.
    """
    return tuple(dict.fromkeys((METADATA_PATH + workspace.path, workspace.path + METADATA_PATH)))


def metadata_routes(workspace: Workspace) -> tuple[HTTPRouteHandler, ...]:
    """
    Build GET and HEAD of the metadata; the document is encoded here, once.
    """
    document = Document.of(json.dumps(metadata(workspace), separators=(",", ":")).encode())

    async def server_metadata(request: Request[Any, Any, Any]) -> Response[bytes]:
        return document_response(request, document, media_type="application/json", cache_control=_CACHE_CONTROL)

    return readable(metadata_paths(workspace), server_metadata, MetadataOperation)
