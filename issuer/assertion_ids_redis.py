"""
Which assertions and ID tokens were used, in a Redis that instances share: the verifier's replay store, for other identifiers.

Each kind has a prefix of its own, and each client of an issuer a scope of its own. What was issued before this Redis is known to
remember everything, and up to 5 seconds after that, is refused as unavailable, as tokens are: when a Redis is met for the first
time, comes back without its data or fails over, clients have to wait for so long and then to sign anew.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from verifier.redis_doctor import Finding
from verifier.replay_redis import AsyncRedisReplayStore
from verifier.replay_redis_scope import AsyncScope

__all__ = ["ASSERTIONS", "ID_TOKENS", "RedisAssertionIds", "SharedIds"]

ASSERTIONS: Final = "cc:j:"
"""Prefix of the identifiers of what clients and admins sign."""
ID_TOKENS: Final = "cc:d:"
"""Prefix of the identifiers of what identity providers sign."""

# At most 300 s old and 300 s from its end. It is used without tolerance, and 5 s before its `iat` at most, which is the margin
# that the store adds by itself.
_LIFETIME_S: Final = 600
# Clients that are not among so many have theirs built again.
_MAX_SCOPES: Final = 4096


class SharedIds:
    """
    The replay store of the service. It connects when it is first used, in every event loop, and anew after `aclose`.
    """

    __slots__ = ("_now", "_scoped", "_store", "_url")

    def __init__(self, url: str, now: Callable[[], float]) -> None:
        """
        Name the Redis; *now* is the wall clock, in epoch seconds.

        Raises:
            ValueError: when the URL is none of a Redis.
        """
        self._url = url
        self._now = now
        self._renew()

    def of(self, prefix: str) -> "RedisAssertionIds":
        """
        Return the identifiers of one kind.
        """
        return RedisAssertionIds(self, prefix)

    def scope(self, prefix: str, issuer: str, client_id: str) -> AsyncScope:
        """
        Return those of one client of one issuer.
        """
        return self._scoped(prefix, issuer, client_id)

    async def check(self, *, allow_eviction: bool) -> tuple[Finding, ...]:
        """
        Begin the epoch of a Redis that is new, and look whether it is fit to remember; see `AsyncRedisReplayStore.check`.

        Raises:
            UnfitRedis: when it is not.
            ReplayStoreUnavailable: when it cannot be asked.
        """
        return await self._store.check(allow_eviction=allow_eviction)

    async def aclose(self) -> None:
        """
        End the connections of this event loop.
        """
        store = self._store
        # A store that was closed stays closed.
        self._renew()
        await store.aclose()

    def _renew(self) -> None:
        store = self._store = AsyncRedisReplayStore.from_url(self._url, now=self._now)

        def scoped(prefix: str, issuer: str, client_id: str) -> AsyncScope:
            return store.scoped(issuer, client_id, prefix=prefix, lifetime_s=_LIFETIME_S)

        self._scoped = lru_cache(_MAX_SCOPES)(scoped)


class RedisAssertionIds:
    """
    The identifiers of one kind.
    """

    __slots__ = ("_ids", "_prefix")

    def __init__(self, ids: SharedIds, prefix: str) -> None:
        """
        Name the kind by its prefix.
        """
        self._ids = ids
        self._prefix = prefix

    async def use(self, issuer: str, client_id: str, jti: str, expires_at: int, issued_at: float) -> bool:
        """
        Record an identifier until *expires_at* (epoch seconds) and tell whether that was its first use.

        Raises:
            ReplayQuarantine: when it was issued before this Redis is known to remember everything.
            ReplayStoreUnavailable: when it cannot be told for another reason.
        """
        return await self._ids.scope(self._prefix, issuer, client_id).use(jti, expires_at, issued_at)
