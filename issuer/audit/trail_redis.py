"""
The audit trail of one workspace in a Redis stream, for instances that share their keys.

A record's number is the id of its stream entry, so that of two writers who want the same place one is told that it is taken. The
client comes from outside, with its addresses, credentials and bounds; what it needs to be able to do is `StreamClient`.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import Any, Final, Protocol

from keys.ring import check_workspace

from .errors import PlaceTaken, TrailUnavailable
from .trail import TrailEnd, confirmed_of

__all__ = ["RedisTrail", "StreamClient"]

_DEADLINE_S: Final = 2.0
_PAGE: Final = 256
_FIELD: Final = b"record"
# All lines or none: after the first id was free, the ids after it are. Errors other than a taken id are passed on.
_APPEND: Final = """
for at = 1, #ARGV, 2 do
  local added = redis.pcall('XADD', KEYS[1], ARGV[at], 'record', ARGV[at + 1])
  if type(added) == 'table' and added.err then
    if string.find(added.err, 'equal or smaller', 1, true) then return 0 end
    return added
  end
end
return 1
"""
# The last id that was given, which outlives its entry, and what was noted.
_END: Final = """
local given = '0-0'
if redis.call('EXISTS', KEYS[1]) == 1 then
  local facts = redis.call('XINFO', 'STREAM', KEYS[1])
  for at = 1, #facts, 2 do
    if facts[at] == 'last-generated-id' then given = facts[at + 1] end
  end
end
return {given, redis.call('GET', KEYS[2])}
"""
# Of two writers that come here in the wrong order, the later record counts.
_CONFIRM: Final = """
local noted = redis.call('GET', KEYS[1])
if noted and tonumber(string.match(noted, '^(%d+)%.') or 0) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""


class StreamClient(Protocol):
    """
    What `redis.asyncio.Redis` and `RedisCluster` offer, as far as a trail needs it; answers are octets, never decoded.
    """

    def eval(self, script: str, numkeys: int, /, *keys_and_args: Any) -> Any:
        """
        Run a script.
        """

    def xrange(self, name: Any, min: Any, max: Any, count: Any, /) -> Any:  # noqa: A002 -- the client's names
        """
        Return entries in ascending order.
        """


class RedisTrail:
    """
    Keeps the lines in the stream `cc:a:{<workspace>}` and what was noted about the last saved ring beside it.

    Writers are not kept apart; the one that comes second starts again. The Redis has to persist what it is told, and a failover
    to a replica that lagged loses records, which the ring then shows as a damage.
    """

    __slots__ = ("_client", "_confirmed", "_deadline_s", "_stream")

    def __init__(self, client: StreamClient, workspace: str, *, deadline_s: float = _DEADLINE_S) -> None:
        """
        Take the client, whose life is somebody else's; no answer is waited for longer than *deadline_s* seconds.

        Raises:
            ValueError: when the workspace name is not one.
        """
        self._client = client
        self._stream = f"cc:a:{{{check_workspace(workspace)}}}"
        self._confirmed = f"{self._stream}:confirmed"
        self._deadline_s = deadline_s

    @property
    def where(self) -> str:
        """
        The name of the stream.
        """
        return self._stream

    def exclusive(self, *, wait_s: float) -> contextlib.nullcontext[None]:  # noqa: ARG002 -- nothing is waited for
        """
        Do nothing: writers are not kept apart.
        """
        return contextlib.nullcontext()

    async def end(self) -> TrailEnd:
        """
        Return how the trail ends; see `Trail.end`.
        """
        given, confirmed = await self._answer(self._client.eval(_END, 2, self._stream, self._confirmed))
        return TrailEnd(top=int(given.partition(b"-")[0]), confirmed=confirmed_of(confirmed))

    async def lines(self, start: int = 1) -> AsyncGenerator[bytes, None]:
        """
        Read the lines; see `Trail.lines`.
        """
        place = f"{start}-0"
        while place:
            entries = await self._answer(self._client.xrange(self._stream, place, "+", _PAGE))
            for _, entry in entries:
                yield entry.get(_FIELD, b"")
            place = f"({entries[-1][0].decode('ascii')}" if len(entries) == _PAGE else ""

    async def append(self, seq: int, lines: Sequence[bytes]) -> None:
        """
        Add lines; see `Trail.append`. After a failure they may be there or not.
        """
        places = [part for at, line in enumerate(lines, start=seq) for part in (f"{at}-0", line)]
        if await self._answer(self._client.eval(_APPEND, 1, self._stream, *places)) != 1:
            raise PlaceTaken(seq)

    async def confirm(self, seq: int, confirmation: str) -> None:
        """
        Note that a ring was saved; see `Trail.confirm`.
        """
        await self._answer(self._client.eval(_CONFIRM, 1, self._confirmed, seq, f"{seq}.{confirmation}"))

    async def _answer(self, asked: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(self._deadline_s):
                return await asked
        except Exception as error:  # a client may fail in any way, and each one means the same here
            raise TrailUnavailable(where=self._stream, problem=_problem(error)) from error


def _problem(error: Exception) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else f"the client raised {type(error).__name__}"
