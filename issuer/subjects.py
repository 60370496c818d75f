"""
For whom a token is asked: the three kinds of subject token, told apart by their type (RFC 8693 section 2.1, D7, D21).

Each client may bring the kinds that it is configured for. Whatever the kind, level and time are those of the customer's sign-in,
never of the request.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from .errors import TokenRefused, invalid_request
from .form import Form
from .registry import Client, SubjectTokenKind, Workspace
from .subject import JWT_TOKEN_TYPE, Subject, read_asserted_subject

__all__ = ["Subjects"]

_KINDS: Final[Mapping[str, SubjectTokenKind]] = {JWT_TOKEN_TYPE: "asserted"}

_Read = Callable[[str, Form, Client, float], Awaitable[Subject]]


class Subjects:
    """
    Find out who the customer of a request is, in one workspace.
    """

    def __init__(self, workspace: Workspace) -> None:
        """
        Take the workspace.
        """
        self._workspace = workspace
        self._readers: Mapping[SubjectTokenKind, _Read] = {"asserted": self._asserted}

    async def read(self, form: Form, client: Client, now: float) -> Subject:
        """
        Verify the subject token of a request.

        Raises:
            TokenRefused: `invalid_request` for a token that is missing or unacceptable; `unauthorized_client` for a kind of
                token that the client may not bring.
        """
        token, token_type = form.require("subject_token"), form.require("subject_token_type")
        kind = _KINDS.get(token_type)
        if kind is None:
            raise invalid_request("The subject_token_type is not supported.", reason="subject_token:token_type")
        if kind not in client.subject_tokens:
            raise TokenRefused(
                "unauthorized_client", "The client may not bring this subject token.", reason="subject_token:not_allowed"
            )
        return await self._readers[kind](token, form, client, now)

    async def _asserted(self, token: str, _form: Form, client: Client, now: float) -> Subject:
        return read_asserted_subject(token, client, self._workspace, now)
