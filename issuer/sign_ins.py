"""
What is remembered of a customer's sign-in, and for how long: the event that tokens are minted from (D9, D18).

Whoever has the id of a sign-in, and is the client it was recorded for, may have tokens minted from it. The id is a secret and is
never stored; the handle is for URLs and opens nothing. Level, time and expiry are those of the event and never change.
"""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from verifier.claims import CONFIRMATION_LIFETIME_S, MAX_CONFIRMATION_AHEAD_S, MAX_IDENTIFIER_LENGTH, is_time
from verifier.conversation import MAX_CONVERSATION_LENGTH, is_conversation
from verifier.levels import Level, is_level

from .provider_token import MAX_AGE_S

__all__ = [
    "CONVERSATION_MEMORY_S",
    "LOGOUT_MEMORY_S",
    "MAX_SIGN_INS",
    "MAX_SIGN_INS_OF_CUSTOMER",
    "MAX_SIGN_IN_LIFETIME_S",
    "SignIn",
    "SignInEvent",
    "SignInRecords",
    "SignInSummary",
    "latest_confirmation",
    "lifetime_s",
]

MAX_SIGN_INS: Final = 100_000
"""Most live sign-ins of one client of one workspace, and half of the conversations that are remembered for it."""
MAX_SIGN_INS_OF_CUSTOMER: Final = 1000
"""Most live sign-ins of one customer of a provider at one client: nobody takes the room of all others by signing in."""
MAX_SIGN_IN_LIFETIME_S: Final = 30 * 24 * 3600
"""Longest life of a sign-in, in seconds."""
CONVERSATION_MEMORY_S: Final = CONFIRMATION_LIFETIME_S + 120
"""How much longer than its sign-ins a conversation is remembered: as long as anything confirmed in it could be minted (D18)."""
LOGOUT_MEMORY_S: Final = MAX_AGE_S + 120
"""How long a logout is remembered: an ID token from before it is too old then, also by a clock that is behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInEvent:
    """
    A customer's sign-in, as a provider's ID token tells it; `expires_at` is bounded by the connection already (epoch seconds).

    `provider_client_id` is the client id at the provider that the ID token was issued to, `issued_at` when it was, by the
    provider's clock.

    Raises:
        ValueError: for a text that is empty, too long or no Unicode, an unknown level, a time that is none, or a conversation
            that is not 1 to 128 printable ASCII characters.
    """

    client_id: str
    connection: str
    namespace: str
    provider_issuer: str
    provider_client_id: str
    issued_at: int
    sub: str = field(repr=False)
    sid: str | None = field(repr=False)
    level: Level
    auth_time: float
    conversation: str | None = field(repr=False)
    expires_at: int

    def __post_init__(self) -> None:
        for name in ("client_id", "connection", "namespace", "provider_issuer", "provider_client_id", "sub", "sid"):
            text = getattr(self, name)
            if not (_is_text(text) or (name == "sid" and text is None)):
                raise ValueError(f"{name} is not a text of 1 to {MAX_IDENTIFIER_LENGTH} characters")
        if self.conversation is not None and not is_conversation(self.conversation):
            raise ValueError(f"a conversation is 1 to {MAX_CONVERSATION_LENGTH} printable ASCII characters")
        if not is_level(self.level):
            raise ValueError("the level is none")
        if not is_time(self.auth_time) or not all(
            is_time(each) and type(each) is int for each in (self.expires_at, self.issued_at)
        ):
            raise ValueError("a time is no epoch seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInSummary:
    """
    What is known of a sign-in without the id; times are epoch seconds.

    It was the provider of that issuer that vouched for it, to the client id that it has there for the client.
    `confirmed_after` is there when a different customer was signed in to the conversation before: nothing that was confirmed up
    to that instant may be minted from this sign-in.
    """

    handle: str
    client_id: str
    connection: str
    namespace: str
    provider_issuer: str
    provider_client_id: str
    level: Level
    auth_time: float
    recorded_at: int
    expires_at: int
    confirmed_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn(SignInSummary):
    """
    A sign-in with the customer it is of, which only its id opens.
    """

    sub: str = field(repr=False)
    conversation: str | None = field(repr=False)


class SignInRecords(Protocol):
    """
    Where sign-ins are remembered. Any exception means that it cannot be told; then nothing is minted, and nobody is logged out.

    A client sees its own sign-ins only. One of another client, one that has ended or expired, one that was never there and one
    that does not open with the configured sealing keys are all the same: there is none.
    """

    def add(
        self, workspace: str, event: SignInEvent, now: float
    ) -> Awaitable[tuple[str, SignIn] | Literal["full", "logged_out"]]:
        """
        Record a sign-in and return its id, a secret of 43 characters, with the record.

        `full` when the client or the customer has too many; `logged_out`, before anything else, as `has_logged_out` tells.

        When a different customer was the last one of the same conversation, their sign-ins of it end in the same step, also when
        the answer is `full`, and the new record has `confirmed_after`. A further sign-in of the same customer leaves the earlier
        ones alive and has what they have.

        Raises:
            ValueError: when the event has expired, or lives longer than 30 days.
        """

    def find(self, workspace: str, client_id: str, sign_in_id: str, now: float) -> Awaitable[SignIn | None]:
        """
        Return the sign-in of that id.
        """

    def describe(self, workspace: str, client_id: str, handle: str, now: float) -> Awaitable[SignInSummary | None]:
        """
        Return what is known of the sign-in with that handle.
        """

    def end(self, workspace: str, client_id: str, handle: str, now: float) -> Awaitable[bool]:
        """
        End the sign-in with that handle, and tell whether there was one.
        """

    def end_at_logout(
        self,
        workspace: str,
        client_id: str,
        provider_issuer: str,
        *,
        sub: str | None,
        sid: str | None,
        issued_at: int,
        now: float,
    ) -> Awaitable[int]:
        """
        End what a provider's logout is about, and return how many sign-ins that were (Back-Channel Logout 1.0 section 2.4).

        With *sub* alone all of the customer's sign-ins end; with *sid* those of that session, and with both of them also
        those of the customer that have no session to tell them by. Those end, and for `LOGOUT_MEMORY_S` are not recorded any
        more, whose ID token the provider issued until *issued_at*: the same logout again, or late, ends nothing else.

        Raises:
            ValueError: when neither is given.
        """

    def has_logged_out(
        self, workspace: str, client_id: str, provider_issuer: str, *, sub: str, sid: str | None, issued_at: int
    ) -> Awaitable[bool]:
        """
        Tell whether a logout ended what an ID token tells, since the provider issued it.
        """


def latest_confirmation(now: float) -> int:
    """
    Return the latest instant that a confirmation taken until *now* may state (D18).
    """
    return int(now) + MAX_CONFIRMATION_AHEAD_S


def lifetime_s(event: SignInEvent, now: float) -> float:
    """
    Return how long a sign-in has to live.

    Raises:
        ValueError: when that is not more than nothing and at most 30 days.
    """
    remaining = event.expires_at - now
    if not 0 < remaining <= MAX_SIGN_IN_LIFETIME_S:
        raise ValueError("a sign-in lives at most 30 days, and has not expired when it is recorded")
    return remaining


def _is_text(value: object) -> bool:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_IDENTIFIER_LENGTH:
        return False
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
