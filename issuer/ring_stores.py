"""
Where rings and audit trails are kept, as the configuration says: in the data folder, or in a Redis that instances share.

The service and the commands come through here, so that both mean the same place. A trail lies where its ring does.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from keys import FileKeyStore, SealedStore, SealingKeys, StoreUnreachable

from .audit import FileTrail, RedisTrail, Trail
from .keystore_redis import RedisKeyStore
from .redis_check import check_persistence, check_version
from .redis_connection import DEADLINE_S, RedisConnection, RedisUnavailable
from .reports import Report
from .rings import RingStore
from .schedule import Clock, StoreClock, steady_clock
from .settings import Settings
from .settings_sealing import keys_redis, ring_path, trail_path

__all__ = ["FileStores", "RedisStores", "RingStores", "StoredRing", "redis_stores", "ring_stores"]

_CHECK_S: Final = 5.0
# Longer than the deadline of a trail, which is the one that counts.
_TRAIL_S: Final = 10.0


class StoredRing(SealedStore, RingStore, Protocol):
    """
    A ring as a service and the commands need it: loaded, changed, watched and moved.
    """


class RingStores(Protocol):
    """
    Hands out the stores of each workspace, all in one place.
    """

    @property
    def where(self) -> str:
        """
        The place in words, for messages.
        """
        ...

    def ring(self, workspace_name: str) -> StoredRing:
        """
        Return the store of a ring; nothing is opened yet.
        """
        ...

    def trail(self, workspace_name: str) -> Trail:
        """
        Return the store of an audit trail; nothing is opened yet.
        """
        ...

    def clock(self, now: Clock, monotonic: Clock) -> StoreClock:
        """
        Return the time of the place, which does not depend on what the wall clock *now* of this process is set to.
        """
        ...

    async def check(self, report: Report) -> None:
        """
        See to it that the place can be trusted with keys.

        Raises:
            KeysError: when it cannot, or does not answer.
        """
        ...

    async def listen(self, heard: Mapping[str, Callable[[], None]]) -> None:
        """
        Call what stands for a workspace in *heard* when its ring may have changed, until cancelled, where the place tells.
        """
        ...

    async def aclose(self) -> None:
        """
        End what is open in this event loop; it is opened again when it is needed.
        """
        ...


class FileStores:
    """
    The data folder.
    """

    def __init__(self, settings: Settings, sealing: SealingKeys) -> None:
        """
        Take the settings, and the keys that rings are sealed with.
        """
        self._settings = settings
        self._sealing = sealing

    @property
    def where(self) -> str:
        """
        The folder.
        """
        return str(self._settings.data_dir)

    def ring(self, workspace_name: str) -> FileKeyStore:
        """
        Return the store of a ring.
        """
        return FileKeyStore(ring_path(self._settings, workspace_name), workspace_name, self._sealing)

    def trail(self, workspace_name: str) -> FileTrail:
        """
        Return the store of an audit trail.
        """
        return FileTrail(trail_path(self._settings, workspace_name))

    def clock(self, now: Clock, monotonic: Clock) -> StoreClock:
        """
        Carry on what the wall clock says at this moment: a folder has no time of its own.
        """
        return steady_clock(now, monotonic)

    async def check(self, report: Report) -> None:
        """
        Accept every folder: each file is looked at when it is opened.
        """

    async def listen(self, heard: Mapping[str, Callable[[], None]]) -> None:
        """
        Tell of nothing: files are only looked at.
        """

    async def aclose(self) -> None:
        """
        End nothing: no file stays open.
        """


class RedisStores:
    """
    A Redis.
    """

    def __init__(self, connection: RedisConnection, sealing: SealingKeys, *, allow_volatile: bool) -> None:
        """
        Take the connection, the keys that rings are sealed with, and whether the Redis may forget.
        """
        self._connection = connection
        self._sealing = sealing
        self._allow_volatile = allow_volatile

    @property
    def where(self) -> str:
        """
        The address without credentials.
        """
        return self._connection.where

    def ring(self, workspace_name: str) -> RedisKeyStore:
        """
        Return the store of a ring.
        """
        return RedisKeyStore(self._connection, workspace_name, self._sealing)

    def trail(self, workspace_name: str) -> RedisTrail:
        """
        Return the store of an audit trail.
        """
        return RedisTrail(self._connection.within(_TRAIL_S), workspace_name)

    def clock(self, now: Clock, monotonic: Clock) -> StoreClock:  # noqa: ARG002 -- the Redis has a time of its own
        """
        Ask the Redis.
        """
        return self._now

    async def check(self, report: Report) -> None:
        """
        See to it that it is new enough, persists what it is told and keeps it.

        Raises:
            RedisTooOld, RedisVolatile: when it is not or does not.
            StoreUnreachable: when it does not answer.
        """
        patient = self._connection.within(_CHECK_S)
        try:
            await check_version(patient)
            await check_persistence(patient, allow_volatile=self._allow_volatile, report=report)
        except RedisUnavailable as error:
            raise self._unreachable(error) from None

    async def listen(self, heard: Mapping[str, Callable[[], None]]) -> None:
        """
        Subscribe to the changes of those workspaces.
        """
        channels = {self.ring(name).channel: call for name, call in heard.items()}
        await self._connection.listen(tuple(channels), lambda channel: channels[channel]())

    async def aclose(self) -> None:
        """
        End the connections.
        """
        await self._connection.aclose()

    async def _now(self) -> float:
        try:
            return await self._connection.now()
        except RedisUnavailable as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: RedisUnavailable) -> StoreUnreachable:
        return StoreUnreachable(where=self.where, problem=error.problem, outcome="unchanged")


def ring_stores(settings: Settings, sealing: SealingKeys, *, deadline_s: float = DEADLINE_S) -> RingStores:
    """
    Return the place that the settings name: a Redis where there is one, the data folder otherwise.

    *deadline_s* is how long each operation of a Redis may take; a command can wait longer than a service.
    """
    return redis_stores(settings, sealing, deadline_s=deadline_s) or FileStores(settings, sealing)


def redis_stores(settings: Settings, sealing: SealingKeys, *, deadline_s: float = DEADLINE_S) -> RedisStores | None:
    """
    Return the Redis that the settings name for rings, None when they name none.
    """
    address = keys_redis(settings)
    if address is None:
        return None
    connection = RedisConnection(address, deadline_s)
    return RedisStores(connection, sealing, allow_volatile=settings.keys_redis_allow_volatile)
