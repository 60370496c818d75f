"""
What is asked of Redis about sign-ins: one Lua script for each operation, so that it is one step there.

All keys of a client of a workspace begin with `cc:s:{<hash of both>}` and so lie in one slot of a cluster. That name itself, the
one key that the scripts are given, is the set of live handles by expiry; behind it stand `:r:<handle>` the sealed record, `:u:`,
`:s:` and `:c:` with a keyed hash the handles of a customer, of a provider's session and of a conversation, `:c:<hash>:m` who was
the last one in that conversation, and `:c` all conversations that are remembered; `:l:` with the hash of a customer or session
when they last logged out. Every key has a relative expiry.

A record is: confirmed_after or 0; when its ID token was issued; the names of customer, session and conversation, each of them or
`-`; what is sealed.
"""

from typing import Final

__all__ = ["ADD", "END", "LAST_LOGOUT", "LOGOUT"]

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
ADD: Final = (
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
# ARGV: the handle.
END: Final = _COMMON + "return forget(ARGV[1])"
# ARGV: 1 when the logout is about a session; when it was issued; how long it is remembered (ms); the names of the session, then
# of the customer, under each sealing key. What ends comes first: a server that is full lets pass behind it what is remembered.
LOGOUT: Final = (
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
# ARGV: this attempt's id, which begins the answer; names. GETEX without an option is a GET that no replica answers.
LAST_LOGOUT: Final = """
local last = -1
for i = 2, #ARGV do last = math.max(last, tonumber(redis.call('GETEX', KEYS[1] .. ':l:' .. ARGV[i]) or -1)) end
return ARGV[1] .. ' ' .. last
"""
