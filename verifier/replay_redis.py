"""
Replay stores on Redis and Valkey, for any number of processes: once means once, whatever Redis is going through (D4).

**What they see.** One call claims an identifier and reads what stands there. Own id back is a first use, another attempt's a
replay, everything else is `ReplayStoreUnavailable`; a retry after a lost answer is no replay. Each primary carries a record
of the instant since which it is known to have forgotten nothing, its epoch; a token issued before that instant (plus the
tolerance and 5 seconds) is refused as unavailable. An epoch begins after a restart, a FLUSHALL, a failover and the way back,
and for a primary that no store has met before. It begins also when a primary draws another replication id for its own
reasons: with its first replica, and an hour after it lost the last. The price each time is the tokens in flight.

**What they cannot see, and what closes it.**

* Two primaries at once, one of them cut off from its replicas, or stopped for a while, and still asked by someone:
  `min-replicas-to-write 1` on the server and `replicas=1` here, with which nothing counts that is on one machine alone.
* A service that shows neither its replication id nor its run id: a restart from an old snapshot then looks like no restart.
* Records deleted by hand, evicted (the policy has to be `noeviction`), or restored with the memory of a machine.
* A clock of Redis that is set forward: by more than 120 seconds, records expire early; within two minutes after an epoch, the
  epoch looks older than it is.

`check()` and `customer-context doctor redis URL` look for all of this that can be looked for.
"""

import asyncio
import os
import time
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from threading import Lock
from time import monotonic
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

from .redis_doctor import Finding, Observed, examine, observe
from .replay import ReplayStoreUnavailable
from .replay_redis_links import AsyncLinks, BlockingLinks
from .replay_redis_scope import LIFETIME_S, TOKENS, AsyncScope, BlockingScope, Options, Scope
from .replay_redis_script import Question, ReplayQuarantine
from .replay_redis_settings import ASYNCHRONOUS, BLOCKING, Flavour, Settings, settings_from_client, settings_from_url
from .replay_redis_wires import drive

__all__ = ["AsyncRedisReplayStore", "RedisReplayStore", "ReplayQuarantine"]


class _Store:
    """
    What both stores are built with.
    """

    _flavour: ClassVar[Flavour]
    _registry: ClassVar[type]
    _links_of: MutableMapping[Any, Any]

    def __init__(
        self,
        client: object,
        *,
        deadline_ms: int = 250,
        max_connections: int = 16,
        replicas: int = 0,
        now: Callable[[], float] = time.time,
    ) -> None:
        """
        Build a store that connects as *client* does; nothing is connected yet, and the client itself is never used.

        Args:
            client: a `Redis` of redis-py in this face, that of a `Sentinel`'s `master_for` among them, or a `RedisCluster`. Its
                retries, timeouts, decoding and protocol are not taken over.
            deadline_ms: longest that one use takes, connecting and a repetition included, 1 to 60000. An answer that takes more
                than half of it counts as lost and is asked for once more.
            max_connections: most connections of a process, or of an event loop, 1 to 1024.
            replicas: how many replicas have to hold a record before its use counts as the first, 0 to 16.
            now: the wall clock, in epoch seconds.

        Raises:
            ValueError, TypeError: for a value that makes no sense.
        """
        self._options = Options(
            settings=client if isinstance(client, Settings) else settings_from_client(client, self._flavour),
            deadline_ms=deadline_ms,
            max_connections=max_connections,
            replicas=replicas,
            now=now,
        )
        self._closed = False
        self._lock = Lock()
        self._links_of = self._registry()

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        deadline_ms: int = 250,
        max_connections: int = 16,
        replicas: int = 0,
        now: Callable[[], float] = time.time,
    ) -> Self:
        """
        Build a store for a URL; `replay_redis_settings` has its forms, and the other arguments are those of the class.
        """
        settings = settings_from_url(url, cls._flavour)
        return cls(settings, deadline_ms=deadline_ms, max_connections=max_connections, replicas=replicas, now=now)

    def _scope(self, issuer: str, audience: str, prefix: str, lifetime_s: int) -> Scope:
        return Scope(self._options, issuer, audience, prefix=prefix, lifetime_s=lifetime_s)

    def _examine(self, observed: Sequence[Observed], *, allow_eviction: bool) -> tuple[Finding, ...]:
        options = self._options
        return examine(
            observed, replicas=options.replicas, deadline_ms=options.deadline_ms, allow_eviction=allow_eviction
        )

    def _until(self) -> float:
        return monotonic() + self._options.deadline_ms / 1000

    def _demand_open(self) -> None:
        if self._closed:
            raise ReplayStoreUnavailable("the store is closed")


class RedisReplayStore(_Store):
    """
    A replay store on Redis for a blocking program; safe between its threads, and usable in the children of a fork.

    At a Redis that no store has met before, and after whatever begins an epoch, tokens are refused for some seconds. Open the
    store when the program starts, by `open`, `check` or a `with` block, and these have passed when the first token comes.
    """

    _flavour = BLOCKING

    _links_of: dict[int, BlockingLinks]
    _registry = dict

    def use(self, jti: str, expires_at: int) -> bool:
        """
        Record *jti* until *expires_at* (epoch seconds) and tell whether that was its first use.

        For lack of a better instant it is taken to be issued 120 seconds before *expires_at*, as old as a token can be.

        Raises:
            ReplayQuarantine: when it was issued before this Redis is known to remember everything.
            ReplayStoreUnavailable: when it cannot be told for another reason.
        """
        return self._claim(self._options.unscoped(jti, expires_at))

    def scoped(
        self, issuer: str, audience: str, *, prefix: str = TOKENS, lifetime_s: int = LIFETIME_S
    ) -> BlockingScope:
        """
        Return the view for one issuer and one audience; equal identifiers in two scopes are two identifiers.

        Identifiers of another kind than tokens have a *prefix* of their own; *lifetime_s* is the longest they live, clock
        tolerance left aside.
        """
        return BlockingScope(self._scope(issuer, audience, prefix, lifetime_s), self._claim)

    def open(self) -> None:
        """
        Connect, and begin the epoch of a Redis that no store has met before; harmless at any time.

        Raises:
            ReplayStoreUnavailable: when Redis cannot be reached within the deadline.
        """
        drive(self._links().open(self._until()))

    def check(self, *, allow_eviction: bool = False) -> tuple[Finding, ...]:
        """
        Open the store and look whether this Redis is fit to remember used tokens; takes a second or two at most.

        Args:
            allow_eviction: accept that Redis forgets tokens when its memory is full, which makes them usable once more.

        Raises:
            UnfitRedis: (of `redis_doctor`) when it is not; the findings are on it.
            ReplayStoreUnavailable: when it cannot be asked.
        """
        self.open()
        return self._examine(drive(observe(self._links(), self._options.now)), allow_eviction=allow_eviction)

    def close(self) -> None:
        """
        Drop all connections; from here on every use is refused as unavailable.
        """
        self._closed = True
        links = self._links_of.pop(os.getpid(), None)
        if links is not None:
            links.pool.close()

    def __enter__(self) -> Self:
        # A Redis that is down keeps no program from starting: it is refused what it asks until Redis is back.
        with suppress(ReplayStoreUnavailable):
            self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _claim(self, question: Question) -> bool:
        return drive(self._links().claim(question, self._until()))

    def _links(self) -> BlockingLinks:
        self._demand_open()
        links = self._links_of.get(os.getpid())
        if links is None:
            # The child of a fork has connections of its own: two processes on one would read each other's answers.
            made = BlockingLinks(self._options.settings, self._options.max_connections)
            links = self._links_of.setdefault(os.getpid(), made)
        return links


class AsyncRedisReplayStore(_Store):
    """
    A replay store on Redis for an asyncio program; it may serve several event loops, one after the other or at once.

    See `RedisReplayStore` for what it promises; open it with `open`, `check` or an `async with` block when the program starts.
    """

    _flavour = ASYNCHRONOUS

    _links_of: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncLinks]
    _registry = WeakKeyDictionary

    async def use(self, jti: str, expires_at: int) -> bool:
        """
        Record *jti* until *expires_at* (epoch seconds) and tell whether that was its first use; see `RedisReplayStore.use`.
        """
        return await self._claim(self._options.unscoped(jti, expires_at))

    def scoped(self, issuer: str, audience: str, *, prefix: str = TOKENS, lifetime_s: int = LIFETIME_S) -> AsyncScope:
        """
        Return the view for one issuer and one audience; see `RedisReplayStore.scoped`.
        """
        return AsyncScope(self._scope(issuer, audience, prefix, lifetime_s), self._claim)

    async def open(self) -> None:
        """
        Connect, and begin the epoch of a Redis that no store has met before; see `RedisReplayStore.open`.
        """
        await self._links().open(self._until())

    async def check(self, *, allow_eviction: bool = False) -> tuple[Finding, ...]:
        """
        Open the store and look whether this Redis is fit to remember used tokens; see `RedisReplayStore.check`.
        """
        await self.open()
        return self._examine(await observe(self._links(), self._options.now), allow_eviction=allow_eviction)

    async def aclose(self) -> None:
        """
        Drop the connections of this event loop; from here on every use, on any loop, is refused as unavailable.
        """
        self._closed = True
        links = self._links_of.pop(asyncio.get_running_loop(), None)
        if links is not None:
            await links.aclose()

    async def __aenter__(self) -> Self:
        with suppress(ReplayStoreUnavailable):
            await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _claim(self, question: Question) -> bool:
        return await self._links().claim(question, self._until())

    def _links(self) -> AsyncLinks:
        self._demand_open()
        loop = asyncio.get_running_loop()
        return self._links_of.get(loop) or self._new_links(loop)

    def _new_links(self, loop: asyncio.AbstractEventLoop) -> AsyncLinks:
        with self._lock:
            # A connection cannot outlive its event loop; what is left of those on earlier ones is dropped.
            for ended in [each for each in self._links_of if each.is_closed()]:
                self._links_of.pop(ended).pool.close()
            links = self._links_of[loop] = AsyncLinks(self._options.settings, self._options.max_connections)
            return links
