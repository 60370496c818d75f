"""
Where the verifiers get a key from: the issuer's JWK Set (RFC 7517) through a cache, blocking or asynchronous.

Thin shells around `KeyCache`: they run one fetch at a time and let callers wait for it, and nobody waits whose key is at hand.
"""

import asyncio
import inspect
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from threading import Thread
from typing import Any, Final, Generic, TypeVar

from .errors import CustomerContextError
from .es256 import PublicKey
from .fetch import AsyncFetch, AsyncHTTPFetch, Fetch, HTTPFetch
from .flight import Flight
from .jwk import KeySet, parse_key_set
from .key_cache import KeyCache

__all__ = ["WAIT_LIMIT_S", "AsyncKeySource", "KeySource"]

WAIT_LIMIT_S: Final = 10.0
"""Longest a caller waits for a fetch; the default ones end after 5 seconds by themselves."""

_Key = TypeVar("_Key")

# One look-up may find a fetch lost with its event loop, run the next one and look up again; more is not plausible.
_MAX_LOOK_UPS: Final = 4


def _start_thread(run: Callable[[], None]) -> None:
    Thread(target=run, name="jwks-refresh", daemon=True).start()


class KeySource:
    """
    The keys of one issuer for a blocking program; safe to share between threads, and usable in the children of a fork.
    """

    def __init__(
        self,
        url: str,
        *,
        fetch: Fetch | None = None,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        denied_kids: Collection[str] = (),
        wait_limit_s: float = WAIT_LIMIT_S,
        start: Callable[[Callable[[], None]], None] = _start_thread,
    ) -> None:
        """
        Build a source; nothing is fetched yet.

        Args:
            url: of the JWK Set, see `fetch.jwks_url`.
            fetch: the caller's own HTTP; None for `HTTPFetch`.
            now: the wall clock, in epoch seconds; only compared with `Date` headers.
            monotonic: the clock of the cache, in seconds.
            denied_kids: keys that are never trusted, whatever is published.
            wait_limit_s: longest a caller waits for a fetch, in seconds.
            start: runs a fetch; on a daemon thread of its own unless told otherwise.

        Raises:
            ValueError: for a URL that keys are not fetched from.
            TypeError: for a *fetch* that cannot be called or is asynchronous.
        """
        self._fetch = HTTPFetch() if fetch is None else fetch
        if not callable(self._fetch):
            raise TypeError("fetch is a callable, see verifier.fetch.Fetch")
        if inspect.iscoroutinefunction(self._fetch) or inspect.iscoroutinefunction(type(self._fetch).__call__):
            raise TypeError("an asynchronous fetch needs the asynchronous verifier")
        self._wait_limit_s = wait_limit_s
        self._start_run = start
        self._cache = KeyCache(
            url, parse=parse_key_set, now=now, monotonic=monotonic, denied_kids=denied_kids, start=self._start
        )

    def key(self, kid: str) -> PublicKey:
        """
        Return the key for *kid*; from the cache at once whenever it is there and may be used.

        Raises:
            CustomerContextError: (`key`) for a denied or unknown `kid`, (`keys_unavailable`) when that cannot be told.
        """
        for _ in range(_MAX_LOOK_UPS):
            found = self._cache.look_up(kid)
            if not isinstance(found, Flight):
                return found
            self._wait(found)
        raise CustomerContextError("keys_unavailable")

    def used(self, kid: str) -> None:
        """
        Take note that a token under *kid* proved valid; another `kid` than the last one makes the keys be fetched aside.
        """
        self._cache.note_use(kid)

    def refresh(self) -> None:
        """
        Fetch the keys now; a fetch in flight is joined.

        Raises:
            CustomerContextError: (`keys_unavailable`) when there is no usable answer and nothing to fall back on.
        """
        self._wait(self._cache.renew())
        self._cache.demand_usable()

    def state(self) -> Mapping[str, Any]:
        """
        Show the cache as JSON-able values, without any token's text.
        """
        return self._cache.state()

    def close(self) -> None:
        """
        Forget the keys; from here on every look-up is refused as `keys_unavailable`. A fetch in flight is not waited for.
        """
        self._cache.close()

    def _start(self, flight: Flight) -> None:
        try:
            self._start_run(partial(self._run, flight))
        except RuntimeError as error:
            # No thread can be started: at the end of the interpreter, or at a limit of the system.
            self._cache.fail(flight, error)

    def _run(self, flight: Flight) -> None:
        try:
            self._cache.succeed(flight, self._fetch(self._cache.url, flight.headers))
        except BaseException as error:  # noqa: BLE001 -- the caller's own HTTP may fail in any way; the thread ends here anyhow
            self._cache.fail(flight, error)

    def _wait(self, flight: Flight) -> None:
        try:
            flight.done.result(self._wait_limit_s)
        except TimeoutError as error:
            self._cache.fail(flight, error)


class AsyncKeySource(Generic[_Key]):
    """
    The keys of one issuer for an asyncio program; it may serve several event loops, one after the other or at once.

    Unlike the blocking one it is also used for the keys of others than this project's issuer, whatever form they have.
    """

    def __init__(
        self,
        url: str,
        *,
        parse: Callable[[bytes], KeySet[_Key]],
        fetch: AsyncFetch | None = None,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        denied_kids: Collection[str] = (),
        wait_limit_s: float = WAIT_LIMIT_S,
        max_waiting: int | None = None,
    ) -> None:
        """
        Build a source; nothing is fetched yet, and no event loop is needed. See `KeySource` for the other arguments.

        *parse* reads a document, or raises an exception for one that brings no keys: see `jwk.collect_keys`. At most
        *max_waiting* callers wait for a fetch at a time, None for any number; more of them hear `keys_unavailable` at once.
        """
        self._fetch = AsyncHTTPFetch() if fetch is None else fetch
        if not callable(self._fetch):
            raise TypeError("fetch is a callable, see verifier.fetch.AsyncFetch")
        self._wait_limit_s = wait_limit_s
        self._max_waiting = max_waiting
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._cache = KeyCache(
            url,
            parse=parse,
            now=now,
            monotonic=monotonic,
            denied_kids=denied_kids,
            start=self._start,
            current_loop=asyncio.get_running_loop,
        )

    async def key(self, kid: str) -> _Key:
        """
        Return the key for *kid*; see `KeySource.key`. A cancelled caller leaves the fetch to the others.
        """
        for _ in range(_MAX_LOOK_UPS):
            found = self._cache.look_up(kid)
            if not isinstance(found, Flight):
                return found
            await self._wait(found)
        raise CustomerContextError("keys_unavailable")

    def used(self, kid: str) -> None:
        """
        Take note that a token under *kid* proved valid, on the event loop; see `KeySource.used`.
        """
        self._cache.note_use(kid)

    async def refresh(self) -> None:
        """
        Fetch the keys now; see `KeySource.refresh`.
        """
        await self._wait(self._cache.renew())
        self._cache.demand_usable()

    def state(self) -> Mapping[str, Any]:
        """
        Show the cache as JSON-able values, without any token's text.
        """
        return self._cache.state()

    async def aclose(self) -> None:
        """
        Forget the keys and end the fetch in flight; from here on every look-up is refused as `keys_unavailable`.
        """
        self._cache.close()
        loop = asyncio.get_running_loop()
        own = [task for task in tuple(self._tasks) if task.get_loop() is loop]
        for task in own:
            task.cancel()
        if own:
            await asyncio.wait(own, timeout=self._wait_limit_s)

    def _start(self, flight: Flight) -> None:
        # A task of its own, held here: neither a caller's cancellation nor the garbage collector ends it.
        task = asyncio.get_running_loop().create_task(self._run(flight))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step never gets to a `finally` of its own.
        task.add_done_callback(lambda _: flight.land())

    async def _run(self, flight: Flight) -> None:
        try:
            async with asyncio.timeout(self._wait_limit_s):
                answer = await self._fetch(self._cache.url, flight.headers)
            self._cache.succeed(flight, answer)
        except asyncio.CancelledError as error:
            # Cancelled with its loop, the fetch is lost; a cancellation of the caller's own HTTP's making is a failure of that.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._cache.fail(flight, error)
        except Exception as error:  # noqa: BLE001 -- the caller's own HTTP may fail in any way; none of them brings keys
            self._cache.fail(flight, error)

    async def _wait(self, flight: Flight) -> None:
        if self._waiting == self._max_waiting:
            raise CustomerContextError("keys_unavailable", hint="too many wait for the keys already")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._wait_limit_s):
                await asyncio.wrap_future(flight.done)
        except TimeoutError as error:
            self._cache.fail(flight, error)
        finally:
            self._waiting -= 1
