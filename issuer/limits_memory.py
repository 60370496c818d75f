"""
The limits of a single process: what is used up, in memory, bounded, and forgotten as soon as it is all there again.
"""

from collections.abc import Callable, Mapping
from heapq import heappop, heappush, heapreplace
from typing import Final, Generic, TypeVar

from .fingerprints import keyed_name
from .limits import Over, Rates, SecretOwner, after_request, after_wrong_secret

__all__ = ["LimitsFull", "MemoryLimits"]

_Key = TypeVar("_Key", bytes, tuple[str, ...])

_MAX_REQUESTERS: Final = 100_000
_MAX_GUESSED: Final = 20_000
_PAST: Final = (0,)


class LimitsFull(Exception):
    """
    Raised when no more clients and customers can be counted: as many as there is room for are using their rates.
    """


class MemoryLimits:
    """
    Counts for one process, on its monotonic clock: no change of the time of day gives anybody more, or keeps anybody out.

    Wrong secrets, which anybody can send, take no room of requests. When there is no room for another one, it is over the limit.
    """

    __slots__ = ("_concerning", "_guesses", "_monotonic", "_most", "_requests")

    def __init__(
        self,
        rates: Rates,
        monotonic: Callable[[], float],
        *,
        max_requesters: int = _MAX_REQUESTERS,
        max_guessed: int = _MAX_GUESSED,
    ) -> None:
        """
        Count clients and customers, at most *max_requesters* at a time, and names and networks, at most *max_guessed*.
        """
        self._concerning = {is_known: rates.concerning(customer=is_known) for is_known in (True, False)}
        self._most = rates.wrong_secrets
        self._monotonic = monotonic
        self._requests = _Instants[tuple[str, ...]](max_requesters)
        self._guesses = _Instants[bytes](max_guessed)

    async def request(self, workspace: str, client_id: str, customer: tuple[str, str] | None) -> Over | None:
        """
        Count a request; nothing is awaited in here, so it is one step to every other task.

        Raises:
            LimitsFull: when it cannot be counted.
        """
        concerning = self._concerning[customer is not None]
        if not concerning:
            return None
        now = self._now()
        self._requests.drop_past(now)
        keys = {"client": (workspace, client_id), "customer": (workspace, client_id, *(customer or ()))}
        used = after_request(now, [(limit, rate, self._requests.end(keys[limit])) for limit, rate in concerning])
        if isinstance(used, Over):
            return used
        ends = {keys[limit]: (until,) for (limit, _), until in zip(concerning, used, strict=True)}
        if not self._requests.put(ends):
            raise LimitsFull
        return None

    async def wrong_secret(self, workspace: str, owner: SecretOwner, name: str, network: str) -> Over | None:
        """
        Count a wrong secret; nothing is awaited in here.
        """
        if not self._most:
            return None
        now = self._now()
        self._guesses.drop_past(now)
        # Hashed because of its length: whatever was sent takes the same room.
        keys = (keyed_name(b"", workspace, owner, name), keyed_name(b"", network))
        held = after_wrong_secret(now, self._most, [self._guesses.find(key) for key in keys])
        if isinstance(held, Over):
            return held
        if not self._guesses.put(dict(zip(keys, held, strict=True))):
            return Over("wrong_secrets", self._guesses.first_end - now)
        return None

    def _now(self) -> int:
        return int(self._monotonic() * 1_000_000)


class _Instants(Generic[_Key]):
    """
    Ascending instants under each key, forgotten when the last one has passed; no more keys than there is room for.
    """

    __slots__ = ("_ends", "_held", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[_Key, tuple[int, ...]] = {}
        # One entry for each key, which may be of an earlier end than the one that the key has since.
        self._ends: list[tuple[int, _Key]] = []

    @property
    def first_end(self) -> int:
        return self._ends[0][0]

    def find(self, key: _Key) -> tuple[int, ...]:
        return self._held.get(key, ())

    def end(self, key: _Key) -> int:
        return self._held.get(key, _PAST)[-1]

    def put(self, held: Mapping[_Key, tuple[int, ...]]) -> bool:
        """
        Hold all of them, or, when there is no room, none.
        """
        new = [key for key in held if key not in self._held]
        if len(self._held) + len(new) > self._most:
            return False
        for key in new:
            heappush(self._ends, (held[key][-1], key))
        self._held.update(held)
        return True

    def drop_past(self, now: int) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, key = self._ends[0]
            if (end := self._held[key][-1]) > now:
                heapreplace(self._ends, (end, key))
            else:
                heappop(self._ends)
                del self._held[key]
