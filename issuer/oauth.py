"""
The only door to Authlib: its registries of authentication methods and grants, filled with ours (RFC 6749, RFC 8693).

It decides nothing that is not overridden here: its stock parsers let several attacks through and answer others with 500.
"""

from collections.abc import Callable, Sequence
from typing import Any

from authlib.oauth2.rfc6749 import (
    AuthorizationServer,
    BaseGrant,
    ClientMixin,
    OAuth2Payload,
    OAuth2Request,
    TokenEndpointMixin,
)
from authlib.oauth2.rfc6749.errors import UnsupportedGrantTypeError

from .clients import Authenticated, authenticate_by_assertion, authenticate_by_secret, chosen_method
from .errors import TokenRefused
from .exchange import GRANT_TYPE
from .form import Form
from .registry import Workspace

__all__ = ["OAuthRequest", "OAuthServer"]


class _Payload(OAuth2Payload):
    def __init__(self, form: Form) -> None:
        self._form = form

    @property
    def data(self) -> dict[str, str]:
        return dict(self._form.parameters)


class OAuthRequest(OAuth2Request):
    """
    A token request in Authlib's form. Its URL is a placeholder: TLS is settled by configuration, never by a Host header.
    """

    def __init__(self, form: Form, authorization: Sequence[str]) -> None:
        """
        Take the form and every `Authorization` value.
        """
        super().__init__("POST", "https://issuer.invalid/oauth/token")
        self.payload = _Payload(form)
        self.parameters = form
        self.authorization = authorization


class _Exchange(BaseGrant, TokenEndpointMixin):
    """
    Token exchange (RFC 8693), which Authlib does not have.
    """

    GRANT_TYPE = GRANT_TYPE


class _RegisteredClient(ClientMixin):
    """
    A client as Authlib asks about it.
    """

    def __init__(self, authenticated: Authenticated) -> None:
        self.authenticated = authenticated

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        """
        Allow only the method that the client is registered for.
        """
        return method == self.authenticated.client.authentication_method


class OAuthServer(AuthorizationServer):
    """
    Authlib's registries, filled with our methods and our grant.
    """

    def __init__(self, workspace: Workspace, now: Callable[[], float]) -> None:
        """
        Serve one workspace; *now* is the wall clock in epoch seconds.
        """
        super().__init__()
        self._workspace = workspace
        self._now = now
        self.register_client_auth_method("private_key_jwt", self._by_assertion)
        self.register_client_auth_method("client_secret_basic", self._by_secret)
        self.register_grant(_Exchange)

    def query_client(self, client_id: str) -> Any:  # noqa: ARG002 -- the signature is Authlib's
        """
        Find nobody: our methods look clients up themselves, so that unknown ones cost the same.
        """
        return None

    def authenticate(self, request: OAuthRequest) -> Authenticated:
        """
        Authenticate the client by the one method it chose.
        """
        method = chosen_method(request.authorization, request.parameters)
        registered: Any = self.authenticate_client(request, [method])
        authenticated: Authenticated = registered.authenticated
        return authenticated

    def require_exchange(self, request: OAuthRequest) -> None:
        """
        Let nothing pass but the one grant that is offered.

        Raises:
            TokenRefused: `invalid_request` without a grant type, `unsupported_grant_type` for another one.
        """
        request.parameters.require("grant_type")
        try:
            self.get_token_grant(request)
        except UnsupportedGrantTypeError:
            raise TokenRefused(
                "unsupported_grant_type", "Only token exchange is supported.", reason="grant_type"
            ) from None

    def _by_assertion(self, _query_client: object, request: OAuthRequest) -> _RegisteredClient:
        return _RegisteredClient(authenticate_by_assertion(self._workspace, request.parameters, self._now()))

    def _by_secret(self, _query_client: object, request: OAuthRequest) -> _RegisteredClient:
        return _RegisteredClient(authenticate_by_secret(self._workspace, request.authorization[0], request.parameters))
