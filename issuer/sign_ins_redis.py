"""
The records of sign-ins that several instances share: sealed in Redis, each operation one step there.

All keys of a client of a workspace begin with `cc:s:{<hash of both>}` and so lie in one slot of a cluster. That name itself is
the set of live handles by expiry; behind it stand `:r:<handle>` the sealed record, `:u:`, `:s:` and `:c:` with a keyed hash the
handles of a customer, of a provider's session and of a conversation, `:c:<hash>:m` who was the last one in that conversation, and
`:c` all conversations that are remembered; `:l:` with the hash of a customer or session when they last logged out. Every key has
a relative expiry.
"""

import re
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from secrets import token_urlsafe
from typing import Final, Literal

from keys import SealingKeys
from verifier.replay_redis_script import digester

from .redis_connection import RedisConnection, out_of_step
from .sign_in_sealing import SignInSealing, handle_of, is_handle
from .sign_ins import (
    CONVERSATION_MEMORY_S,
    LOGOUT_MEMORY_S,
    MAX_SIGN_INS,
    MAX_SIGN_INS_OF_CUSTOMER,
    SignIn,
    SignInEvent,
    SignInSummary,
    latest_confirmation,
    lifetime_s,
)

__all__ = ["RedisSignIns"]

# A record is: confirmed_after or 0; when its ID token was issued; the names of customer, session and conversation, each of them
# or `-`; what is sealed.
_COMMON: Final = """
local base = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function tidy(set)
  redis.call('ZREMRANGEBYSCORE', set, '-inf', now)
end

local function forget(handle)
  redis.call('ZREM', base, handle)
  local record = redis.call('GET', base .. ':r:' .. handle)
  if not record then return nil end
  for name in string.gmatch(record, '[usc]:%S+') do redis.call('ZREM', base .. ':' .. name, handle) end
  redis.call('DEL', base .. ':r:' .. handle)
  return record
end
"""
# ARGV: the handle, how long it lives, how long its conversation is remembered (ms), the most sign-ins of the client and of the
# customer, the latest instant of what was confirmed so far, the record; then names of the conversation and of the customer in it,
# a pair for each sealing key. With its first line a server that is full refuses before anything is written. The indexes are
# written before the record: one that is found is also found by what ends it.
_ADD: Final = (
    "#!lua"
    + _COMMON
    + """
local handle, ttl, memory_ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local limit, customer_limit, confirmed = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local record, conversation, who = ARGV[7], ARGV[8], ARGV[9]
local after, is_known = 0, false

local issued, customer, session = string.match(record, '^(%d+) (%S+) (%S+)')
if session == '-' then session = customer .. ':-' end
for _, name in ipairs({customer, session}) do
  local out = redis.call('GET', base .. ':l:' .. name)
  if out and tonumber(issued) <= tonumber(out) then return handle .. ' logged_out' end
end

local function take(set, member, ms)
  redis.call('ZADD', set, now + ms, member)
  if redis.call('PTTL', set) < ms then redis.call('PEXPIRE', set, ms) end
end

local function forget_all(set)
  for _, each in ipairs(redis.call('ZRANGE', set, 0, -1)) do forget(each) end
  redis.call('DEL', set)
end

for i = 8, #ARGV, 2 do
  local set = base .. ':' .. ARGV[i]
  local memory = redis.call('GET', set .. ':m')
  if memory then
    is_known = true
    memory_ttl = math.max(memory_ttl, redis.call('PTTL', set .. ':m'))
    local last, known = string.match(memory, '^(%S+) (%d+)$')
    after = math.max(after, tonumber(known or 0))
    if last ~= ARGV[i + 1] then
      after = math.max(after, confirmed)
      forget_all(set)
    end
    if i > 8 then
      -- Remembered under an earlier sealing key: it moves, as long as that one is configured.
      if redis.call('EXISTS', set) == 1 and redis.call('RENAMENX', set, base .. ':' .. conversation) == 0 then
        forget_all(set)
      end
      redis.call('DEL', set .. ':m')
      redis.call('ZREM', base .. ':c', ARGV[i])
    end
  end
end

if conversation then
  tidy(base .. ':c')
  if not is_known and redis.call('ZCARD', base .. ':c') >= 2 * limit then return handle .. ' full' end
  take(base .. ':c', conversation, memory_ttl)
  redis.call('SET', base .. ':' .. conversation .. ':m', who .. ' ' .. after, 'PX', memory_ttl)
end

customer = base .. ':' .. customer
tidy(base)
tidy(customer)
if redis.call('ZCARD', base) >= limit or redis.call('ZCARD', customer) >= customer_limit then return handle .. ' full' end
take(base, handle, ttl)
for name in string.gmatch(record, '[usc]:%S+') do
  tidy(base .. ':' .. name)
  take(base .. ':' .. name, handle, ttl)
end
redis.call('SET', base .. ':r:' .. handle, after .. ' ' .. record, 'PX', ttl)
return handle .. ' ' .. after
"""
)
_END: Final = _COMMON + "return forget(ARGV[1])"
# ARGV: 1 when the logout is about a session; when it was issued; how long it is remembered (ms); the names of the session, then
# of the customer, under each sealing key. What ends comes first: a server that is full lets pass behind it what is remembered.
_LOGOUT: Final = (
    _COMMON
    + """
local issued, ttl = tonumber(ARGV[2]), tonumber(ARGV[3])
local ended = 0
for i = 4, #ARGV do
  local set, out = base .. ':' .. ARGV[i], base .. ':l:' .. ARGV[i]
  local is_partial = ARGV[1] == '1' and string.sub(ARGV[i], 1, 2) == 'u:'
  tidy(set)
  for _, handle in ipairs(redis.call('ZRANGE', set, 0, -1)) do
    local record = redis.call('GET', base .. ':r:' .. handle) or ''
    local is_later = issued < tonumber(string.match(record, '^%d+ (%d+)') or 0)
    local is_another = is_partial and string.match(record, '^%d+ %d+ %S+ s:')
    if not is_later and not is_another and forget(handle) then ended = ended + 1 end
  end
  if is_partial then out = out .. ':-' end
  if tonumber(redis.call('GET', out) or -1) < issued then redis.call('SET', out, ARGV[2], 'PX', ttl) end
end
return ended
"""
)
# ARGV: this attempt's id, which begins the answer; names. GETEX is no question for a replica, as in `_stored`.
_LAST_LOGOUT: Final = """
local last = -1
for i = 2, #ARGV do last = math.max(last, tonumber(redis.call('GETEX', KEYS[1] .. ':l:' .. ARGV[i]) or -1)) end
return ARGV[1] .. ' ' .. last
"""
_ADDED: Final = re.compile(rb"(\S+) (full|logged_out|\d{1,16})")
_RECORD: Final = re.compile(rb"(\d{1,16}) \d{1,16} \S+ \S+ \S+ (\S+ \S+ \S+)")
_TOLD: Final = re.compile(rb"(\S+) (-1|\d{1,16})")
_LEAST_MEMORY_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class _Client:
    """
    How the sign-ins of one client are sealed, and what their keys begin with.
    """

    sealing: SignInSealing
    key: str


class RedisSignIns:
    """
    Sign-ins in Redis, bounded for each client.

    What has ended is gone for every instance, and so is everything after a restart without data: customers sign in again. A
    failover to a replica that lagged brings back what ended in the meantime, until it expires; with `min-replicas-to-write` a
    primary that was left alone is not asked, since finding a record counts as a write.

    Raises:
        RedisUnavailable: from every operation that has no proper answer.
    """

    def __init__(
        self,
        connection: RedisConnection,
        sealing: SealingKeys,
        *,
        max_per_client: int = MAX_SIGN_INS,
        max_per_customer: int = MAX_SIGN_INS_OF_CUSTOMER,
    ) -> None:
        """
        Seal with *sealing*; hold so many live sign-ins of one client of one workspace, and of one customer there.
        """
        self._connection = connection
        self._sealing = sealing
        self._limits = (max_per_client, max_per_customer)
        # No more of them than clients are configured: nobody gets here who has not proved to be one.
        self._clients: dict[tuple[str, str], _Client] = {}

    async def add(
        self, workspace: str, event: SignInEvent, now: float
    ) -> tuple[str, SignIn] | Literal["full", "logged_out"]:
        """
        Record a sign-in; see `SignInRecords.add`.
        """
        remaining_s = lifetime_s(event, now)
        client = self._client(workspace, event.client_id)
        sign_in_id, sign_in, sealed = client.sealing.seal(event, now)
        names = ((name or "-").encode() for name in client.sealing.indexes(event))
        record = b" ".join([str(event.issued_at).encode(), *names, sealed])
        conversation = () if event.conversation is None else client.sealing.conversation(event.conversation)
        customer = client.sealing.customer(event.connection, event.sub)
        answer = await self._connection.eval(
            _ADD,
            1,
            client.key,
            sign_in.handle,
            ceil(remaining_s * 1000),
            ceil((remaining_s + CONVERSATION_MEMORY_S) * 1000),
            *self._limits,
            latest_confirmation(now),
            record,
            *chain.from_iterable(zip(conversation, customer, strict=False)),
        )
        # The answer names the handle, so that an answer to another question cannot be taken for it.
        added = _ADDED.fullmatch(answer) if isinstance(answer, bytes) else None
        if added is None or added[1] != sign_in.handle.encode():
            raise out_of_step(self._connection.where)
        if added[2] == b"full":
            return "full"
        if added[2] == b"logged_out":
            return "logged_out"
        return sign_in_id, replace(sign_in, confirmed_after=int(added[2]) or None)

    async def find(self, workspace: str, client_id: str, sign_in_id: str, now: float) -> SignIn | None:
        """
        Return the sign-in of that id; see `SignInRecords.find`.
        """
        handle = handle_of(sign_in_id)
        if handle is None:
            return None
        client = self._client(workspace, client_id)
        stored = await self._stored(client, handle)
        sign_in = None if stored is None else client.sealing.open(sign_in_id, *stored)
        return sign_in if sign_in is not None and now < sign_in.expires_at else None

    async def describe(self, workspace: str, client_id: str, handle: str, now: float) -> SignInSummary | None:
        """
        Return what may be said of a sign-in; see `SignInRecords.describe`.
        """
        if not is_handle(handle):
            return None
        client = self._client(workspace, client_id)
        return _described(client, handle, await self._stored(client, handle), now)

    async def end(self, workspace: str, client_id: str, handle: str, now: float) -> bool:
        """
        End a sign-in; see `SignInRecords.end`.
        """
        if not is_handle(handle):
            return False
        client = self._client(workspace, client_id)
        ended = _read(await self._connection.eval(_END, 1, client.key, handle))
        return _described(client, handle, ended, now) is not None

    async def end_at_logout(
        self,
        workspace: str,
        client_id: str,
        provider_issuer: str,
        *,
        sub: str | None,
        sid: str | None,
        issued_at: int,
        now: float,
    ) -> int:
        """
        End what a logout is about; see `SignInRecords.end_at_logout`.
        """
        if sub is None and sid is None:
            raise ValueError("a logout names a customer or a session")
        client = self._client(workspace, client_id)
        session = () if sid is None else client.sealing.session(provider_issuer, sid)
        customer = () if sub is None else client.sealing.customer_of_provider(provider_issuer, sub)
        memory_ms = max(_LEAST_MEMORY_MS, ceil((issued_at + LOGOUT_MEMORY_S - now) * 1000))
        ended = await self._connection.eval(
            _LOGOUT, 1, client.key, len(session[:1]), issued_at, memory_ms, *session, *customer
        )
        if type(ended) is not int:
            raise out_of_step(self._connection.where)
        return ended

    async def has_logged_out(
        self, workspace: str, client_id: str, provider_issuer: str, *, sub: str, sid: str | None, issued_at: int
    ) -> bool:
        """
        Tell whether a logout came in between; see `SignInRecords.has_logged_out`.
        """
        client = self._client(workspace, client_id)
        attempt, names = token_urlsafe(8), client.sealing.logouts(provider_issuer, sub, sid)
        answer = await self._connection.eval(_LAST_LOGOUT, 1, client.key, attempt, *names)
        told = _TOLD.fullmatch(answer) if isinstance(answer, bytes) else None
        if told is None or told[1] != attempt.encode():
            raise out_of_step(self._connection.where)
        return issued_at <= int(told[2])

    async def _stored(self, client: _Client, handle: str) -> tuple[bytes, int | None] | None:
        # GETEX without an option is a GET that counts as a write: no replica answers it, nor a primary that lacks its replicas.
        return _read(await self._connection.call("GETEX", f"{client.key}:r:{handle}"))

    def _client(self, workspace: str, client_id: str) -> _Client:
        client = self._clients.get((workspace, client_id))
        if client is None:
            key = f"cc:s:{{{digester(workspace)(client_id)}}}"
            client = self._clients[workspace, client_id] = _Client(
                SignInSealing(self._sealing, workspace, client_id), key
            )
        return client


def _read(stored: object) -> tuple[bytes, int | None] | None:
    record = _RECORD.fullmatch(stored) if isinstance(stored, bytes) else None
    return None if record is None else (record[2], int(record[1]) or None)


def _described(
    client: _Client, handle: str, stored: tuple[bytes, int | None] | None, now: float
) -> SignInSummary | None:
    summary = None if stored is None else client.sealing.describe(handle, *stored)
    return summary if summary is not None and now < summary.expires_at else None
