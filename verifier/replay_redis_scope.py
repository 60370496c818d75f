"""
From an identifier to the question that Redis is asked: its key, its life there, and how old the epoch has to be (D4).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import ceil
from typing import Final

from .replay_redis_connect import new_attempt
from .replay_redis_script import Question, claim_key, digester
from .replay_redis_settings import Settings

__all__ = ["LIFETIME_S", "TOKENS", "AsyncScope", "BlockingScope", "Options", "Scope"]

TOKENS: Final = "cc:r:"
"""Prefix of the keys of tokens."""
LIFETIME_S: Final = 60
"""Longest life of a token, in seconds (D5)."""

_UNSCOPED: Final = "cc:u:"
_MAX_TOLERANCE_S: Final = 60
# How far the clocks of two verifiers may disagree about when a token is over.
_CLOCK_MARGIN_S: Final = 120
_LEAST_RETENTION_MS: Final = 1000
_EPOCH_MARGIN_S: Final = 5
_digest_unscoped: Final = digester()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    What a store was built with.
    """

    settings: Settings
    deadline_ms: int
    max_connections: int
    replicas: int
    now: Callable[[], float]

    def __post_init__(self) -> None:
        for name, least, most in (("deadline_ms", 1, 60_000), ("max_connections", 1, 1024), ("replicas", 0, 16)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise ValueError(f"{name} is an int, {least} to {most}")
        if not callable(self.now):
            raise TypeError("now is a callable")

    def question(self, prefix: str, digest: str, expires_at: float, issued_at: float) -> Question:
        """
        Ask for an identifier of which nothing may have been forgotten since *issued_at*, an instant of the verifier's clock.
        """
        now = self.now()
        key, tag = claim_key(prefix, digest, clustered=self.settings.kind == "cluster")
        retention_ms = max(_LEAST_RETENTION_MS, ceil((expires_at - now + _CLOCK_MARGIN_S) * 1000))
        reach_ms = max(0, ceil((now - issued_at + _EPOCH_MARGIN_S) * 1000))
        return Question(key, tag, new_attempt(), retention_ms, reach_ms, self.replicas)

    def unscoped(self, jti: str, expires_at: int) -> Question:
        """
        Ask for an identifier that came without issuer, audience and `iat`; it is taken for as old as a token can be.
        """
        return self.question(_UNSCOPED, _digest_unscoped(jti), expires_at, expires_at - LIFETIME_S - _MAX_TOLERANCE_S)


class Scope:
    """
    One issuer's and one audience's share of a store.
    """

    __slots__ = ("_digest", "_lifetime_s", "_options", "_prefix", "_tolerance_s")

    def __init__(self, options: Options, *parts: str, prefix: str, lifetime_s: int) -> None:
        self._options = options
        self._digest = digester(*parts)
        self._prefix = prefix
        self._lifetime_s = lifetime_s
        self._tolerance_s = 0.0

    def question(self, jti: str, expires_at: int, issued_at: float) -> Question:
        """
        Ask for an identifier of this scope.
        """
        # What a token may live beyond the longest life is the verifier's tolerance. A token that lives less hides some of it,
        # so the largest that was seen counts.
        beyond_s = min(expires_at - issued_at - self._lifetime_s, _MAX_TOLERANCE_S)
        self._tolerance_s = max(self._tolerance_s, beyond_s)
        return self._options.question(self._prefix, self._digest(jti), expires_at, issued_at - self._tolerance_s)


class BlockingScope:
    """
    A scope as the blocking verifier asks it.
    """

    __slots__ = ("_claim", "_scope")

    def __init__(self, scope: Scope, claim: Callable[[Question], bool]) -> None:
        self._scope = scope
        self._claim = claim

    def use(self, jti: str, expires_at: int, issued_at: float) -> bool:
        """
        Record *jti* within this scope and tell whether that was its first use.

        Raises:
            ReplayStoreUnavailable: when it cannot be told.
        """
        return self._claim(self._scope.question(jti, expires_at, issued_at))


class AsyncScope:
    """
    A scope as the asynchronous verifier asks it.
    """

    __slots__ = ("_claim", "_scope")

    def __init__(self, scope: Scope, claim: Callable[[Question], Awaitable[bool]]) -> None:
        self._scope = scope
        self._claim = claim

    async def use(self, jti: str, expires_at: int, issued_at: float) -> bool:
        """
        Record *jti* within this scope and tell whether that was its first use.

        Raises:
            ReplayStoreUnavailable: when it cannot be told.
        """
        return await self._claim(self._scope.question(jti, expires_at, issued_at))
