"""
How a client gets in wherever it has to prove who it is: by the right credential, an assertion only once, and not too often.
"""

from .clients import Authenticated
from .errors import WrongSecret, invalid_client, over_limit
from .limits import Over
from .oauth import OAuthRequest, OAuthServer
from .registry import Client, Workspace
from .reports import Report
from .state import IssuerState
from .store_answers import CannotTell, answered, cannot_tell, is_first_use
from .wrong_secrets import WrongSecrets

__all__ = ["ClientEntry"]


class ClientEntry:
    """
    Lets in the clients of one workspace.
    """

    __slots__ = ("_ids", "_limits", "_server", "_workspace", "_wrong_secrets")

    def __init__(self, workspace: Workspace, server: OAuthServer, state: IssuerState, report: Report) -> None:
        """
        Take what authenticates them, and what remembers used assertions and counts requests and wrong secrets.
        """
        self._workspace = workspace
        self._server = server
        self._limits = state.limits
        self._ids = state.assertion_ids
        self._wrong_secrets = WrongSecrets(workspace.name, state.limits, report)

    async def authenticate(self, request: OAuthRequest, source: str) -> Authenticated:
        """
        Authenticate the client by the one method it chose; an assertion is still to be used up.

        Raises:
            TokenRefused: `invalid_client` or `invalid_request` when it is nobody; `temporarily_unavailable` (429) for a wrong
                secret after too many of them.
        """
        try:
            return self._server.authenticate(request)
        except WrongSecret as wrong:
            over = await self._wrong_secrets.count("client", wrong.name, source)
            if over is None:
                raise
            raise over_limit(over) from None

    async def use_up(self, authenticated: Authenticated) -> None:
        """
        Use up the assertion of an authenticated client, if it came with one (RFC 7523 section 3 item 7).

        Raises:
            TokenRefused: `invalid_client` when it was used before, `temporarily_unavailable` when that cannot be told.
        """
        assertion = authenticated.assertion
        if assertion is None:
            return
        try:
            is_first = await is_first_use(
                self._ids,
                self._workspace.issuer,
                authenticated.client.client_id,
                assertion.jti,
                expires_at=assertion.expires_at,
                issued_at=assertion.issued_at,
            )
        except CannotTell as unknown:
            raise cannot_tell(unknown, reason="client_assertion:cannot_tell") from None
        if not is_first:
            raise invalid_client(reason="client_assertion:replayed")

    async def count(self, client: Client, customer: tuple[str, str] | None = None) -> None:
        """
        Count a request of an authenticated client, for a customer (namespace and id) where one is known.

        Raises:
            TokenRefused: `temporarily_unavailable`, 429 over a limit, 503 when that cannot be told.
        """
        asked = self._limits.request(self._workspace.name, client.client_id, customer)
        over = await answered(asked, reason="limits:cannot_tell")
        if isinstance(over, Over):
            raise over_limit(over)
        if over is not None:
            raise cannot_tell(over, reason="limits:cannot_tell")
