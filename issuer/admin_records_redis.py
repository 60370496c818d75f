"""
The records behind the idempotency keys of admin calls in a Redis that instances share.

A record is the hash `cc:m:{<admin>}:<call>`, and the sorted set `cc:m:{<admin>}` has the end of each record of an admin of a
workspace. Both names are hashed and of fixed length, and lie in one slot of a cluster; the body of a call stands there as a keyed
hash alone, its answer as it was given. A call that goes on has its place for two minutes, so that nobody waits a day for an
instance that died, and only the call that took a place can fill or clear it.
"""

from typing import Any, Final

from keys import SealingKeys
from verifier.replay_redis_script import digester

from .admin_idempotency import (
    MAX_RECORDS,
    RETENTION_S,
    RUNNING_S,
    AdminScope,
    Claim,
    StoredAnswer,
    Ticket,
    check_size,
    new_ticket,
)
from .fingerprints import Fingerprints
from .redis_connection import RedisConnection, out_of_step

__all__ = ["RedisAdminRecords"]

# KEYS: the record, the ends of the admin's records. ARGV: the id of the call; then for
# a claim: how long a call may go on (ms), most records, the contents; for an answer: how long to keep it (ms), status, body.
# An answer begins with the id of the call, so that an answer to another question cannot be taken for it. HSET comes before any
# other command that writes: a Redis whose memory is full refuses it there, and lets it pass behind one.
_CLAIM: Final = """
local stored = redis.call('HMGET', KEYS[1], 'content', 'status', 'body')
if stored[1] then
  local same = false
  for at = 4, #ARGV do same = same or ARGV[at] == stored[1] end
  if not same then return {ARGV[1], 'conflict'} end
  if not stored[2] then return {ARGV[1], 'in_progress'} end
  return {ARGV[1], 'answered', stored[2], stored[3]}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local live = redis.call('ZCOUNT', KEYS[2], string.format('(%.0f', now), '+inf')
if live >= tonumber(ARGV[3]) then return {ARGV[1], 'full'} end
redis.call('HSET', KEYS[1], 'content', ARGV[4], 'call', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], now + ARGV[2], KEYS[1])
redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), ARGV[2]))
return {ARGV[1], 'taken'}
"""
_FINISH: Final = """
if redis.call('HGET', KEYS[1], 'call') ~= ARGV[1] then return end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'status', ARGV[3], 'body', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2], KEYS[1])
redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), ARGV[2]))
"""
_RELEASE: Final = """
if redis.call('HGET', KEYS[1], 'call') ~= ARGV[1] then return end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], KEYS[1])
"""
_PREFIX: Final = "cc:m:"


class RedisAdminRecords:
    """
    Records of any number of instances.
    """

    __slots__ = ("_connection", "_fingerprints", "_max_records")

    def __init__(self, connection: RedisConnection, sealing: SealingKeys, max_records: int = MAX_RECORDS) -> None:
        """
        Hold at most *max_records* of one admin of one workspace.
        """
        self._connection = connection
        self._fingerprints = Fingerprints(sealing, "admin-records")
        self._max_records = max_records

    async def claim(self, scope: AdminScope, content: bytes, now: float) -> Claim:  # noqa: ARG002 -- the Redis has its own time
        """
        Find or take.

        Raises:
            RedisUnavailable: when it cannot be told; the place may have been taken, for two minutes.
        """
        ticket = new_ticket(scope)
        contents = self._fingerprints.of(scope.workspace, content.hex())
        answer = await self._connection.eval(
            _CLAIM, 2, *_places(scope), ticket.id, RUNNING_S * 1000, self._max_records, *contents
        )
        return self._outcome(answer, ticket)

    async def finish(self, ticket: Ticket, answer: StoredAnswer) -> None:
        """
        Keep an answer.

        Raises:
            RedisUnavailable: when it may not have been kept.
            ValueError: when it is longer than is kept.
        """
        check_size(answer)
        kept = (RETENTION_S * 1000, answer.status, answer.body)
        await self._connection.eval(_FINISH, 2, *_places(ticket.scope), ticket.id, *kept)

    async def release(self, ticket: Ticket) -> None:
        """
        Forget a call.

        Raises:
            RedisUnavailable: when it may still have its place.
        """
        await self._connection.eval(_RELEASE, 2, *_places(ticket.scope), ticket.id)

    def _outcome(self, answer: Any, ticket: Ticket) -> Claim:
        match answer[1:] if isinstance(answer, list) and answer[:1] == [ticket.id.encode()] else []:
            case [b"taken"]:
                return ticket
            case [b"answered", bytes(status), bytes(body)] if status.isdigit():
                return StoredAnswer(int(status), body)
            case [b"in_progress"]:
                return "in_progress"
            case [b"conflict"]:
                return "conflict"
            case [b"full"]:
                return "full"
        raise out_of_step(self._connection.where)


def _places(scope: AdminScope) -> tuple[str, str]:
    live = f"{_PREFIX}{{{digester(scope.workspace)(scope.admin)}}}"
    return f"{live}:{digester(*scope[:4])(scope.key)}", live
