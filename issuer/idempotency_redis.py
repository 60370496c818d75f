"""
The records behind idempotency keys in a Redis that instances share: one call for each claim, counted once whatever comes of it.

A record is the hash `cc:i:{<client>}:<key>`, and the sorted set `cc:i:{<client>}` has the end of each live record of a client of
a workspace. Both names are hashed and of fixed length, and lie in one slot of a cluster. What a record is about stands there as a
keyed hash alone (D12).

A claim whose answer is lost may have been counted, so it is not asked for again: nothing is minted, and one mint of the key is
gone. What Redis forgets, by a restart without its data or a failover to a replica that lagged, is as if it had never been: the
same key can stand for something else then, and is good for twenty mints again.
"""

import secrets
from math import ceil
from typing import Any, Final

from verifier.claims import ConfirmedBy
from verifier.replay_redis_script import digester

from .idempotency import MAX_MINTS, MAX_RECORDS, RETENTION_S, Claimed, NotClaimed, RecordKey
from .redis_connection import RedisConnection, out_of_step

__all__ = ["RedisIdempotencyRecords"]

# KEYS: the record, the ends of the client's records.
# ARGV: this attempt's id, by whom and when it was confirmed, how long to keep it (ms), most records, most mints, the contents.
# The answer is one string that begins with the attempt's id, so that an answer to another question cannot be taken for it. HSET
# comes before any other command that writes: a Redis whose memory is full refuses it there, and lets it pass behind one.
_CLAIM: Final = """
local stored = redis.call('HMGET', KEYS[1], 'content', 'by', 'at', 'mints')
if stored[1] then
  local same = false
  for at = 7, #ARGV do same = same or ARGV[at] == stored[1] end
  local pinned = ARGV[2] == 'none' or ARGV[3] == stored[3]
  if not (same and pinned and ARGV[2] == stored[2]) then return ARGV[1] .. ' conflict' end
  if tonumber(stored[4]) >= tonumber(ARGV[6]) then return ARGV[1] .. ' exhausted' end
  redis.call('HINCRBY', KEYS[1], 'mints', 1)
  return ARGV[1] .. ' claimed ' .. stored[3]
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local live = redis.call('ZCOUNT', KEYS[2], string.format('(%.0f', now), '+inf')
if live >= tonumber(ARGV[5]) then return ARGV[1] .. ' full' end
redis.call('HSET', KEYS[1], 'content', ARGV[7], 'by', ARGV[2], 'at', ARGV[3], 'mints', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], now + ARGV[4], KEYS[1])
redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), ARGV[4]))
return ARGV[1] .. ' claimed ' .. ARGV[3]
"""
_PREFIX: Final = "cc:i:"
# An end that has passed would leave no record at all, and every claim would be the first one.
_LEAST_RETENTION_MS: Final = 1000


class RedisIdempotencyRecords:
    """
    Records of any number of instances, dropped once their confirmation is 1800 s old plus 120 s; bounded for each client.
    """

    __slots__ = ("_connection", "_max_per_client")

    def __init__(self, connection: RedisConnection, max_per_client: int = MAX_RECORDS) -> None:
        """
        Hold at most *max_per_client* live records of one client of one workspace.
        """
        self._connection = connection
        self._max_per_client = max_per_client

    async def claim(
        self, key: RecordKey, contents: tuple[bytes, ...], confirmed_by: ConfirmedBy, confirmed_at: int, now: float
    ) -> Claimed | NotClaimed:
        """
        Count one mint under *key*.

        Raises:
            RedisUnavailable: when it cannot be told; the mint may have been counted.
        """
        workspace, client, action, idempotency_key = key
        live = f"{_PREFIX}{{{digester(workspace)(client)}}}"
        record = f"{live}:{digester(workspace, client, action)(idempotency_key)}"
        attempt = secrets.token_urlsafe(8)
        retention_ms = max(_LEAST_RETENTION_MS, ceil((confirmed_at + RETENTION_S - now) * 1000))
        bounds = (retention_ms, self._max_per_client, MAX_MINTS)
        answer = await self._connection.eval(
            _CLAIM, 2, record, live, attempt, confirmed_by, confirmed_at, *bounds, *contents
        )
        return self._outcome(answer, attempt.encode())

    def _outcome(self, answer: Any, attempt: bytes) -> Claimed | NotClaimed:
        words = answer.split(b" ") if isinstance(answer, bytes) else []
        match words[1:] if words[:1] == [attempt] else []:
            case [b"claimed", at] if at.isdigit():
                return Claimed(int(at))
            case [b"conflict"]:
                return "conflict"
            case [b"exhausted"]:
                return "exhausted"
            case [b"full"]:
                return "full"
        raise out_of_step(self._connection.where)
