"""
The limits of all instances together, in Redis: one Lua call counts a request, or a wrong secret, everywhere at once.

Names are keyed hashes of fixed length under `cc:l:`, with those of one client in one slot of a cluster, and those of all wrong
secrets in another. The clock is that of the server. What is stored ends by itself when it is used up no more.
"""

from typing import Final

from .fingerprints import keyed_name
from .limits import WRONG_SECRET_US, Over, Rates, SecretOwner
from .redis_connection import RedisConnection, out_of_step

__all__ = ["RedisLimits"]

# `after_request`. A clock that was set back would keep everybody out until it is where it was: no more than all is used up then.
_REQUEST: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local used, over, longest = {}, 0, 0
local function store(key, till)
  redis.call('SET', key, string.format('%.0f', till), 'PX', math.ceil((till - now) / 1000))
end
for i, key in ipairs(KEYS) do
  local interval, window = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local till = math.max(tonumber(redis.call('GET', key) or 0) or 0, now)
  if till > now + window then
    till = now + window
    store(key, till)
  end
  used[i] = till + interval
  local wait = used[i] - now - window
  if wait > 0 and over == 0 then over = i end
  longest = math.max(longest, wait)
end
if over == 0 then
  for i, key in ipairs(KEYS) do store(key, used[i]) end
end
return {over, longest}
"""
# `after_wrong_secret`, the newest first. What ends later than it may is from before the clock was set back, and counts no more.
_WRONG_SECRET: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local most, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local longest = 0
for _, key in ipairs(KEYS) do
  local wait = tonumber(redis.call('LINDEX', key, most - 1) or 0) - now
  if wait > window then redis.call('DEL', key) else longest = math.max(longest, wait) end
end
if longest == 0 then
  for _, key in ipairs(KEYS) do
    redis.call('LPUSH', key, string.format('%.0f', now + window))
    redis.call('LTRIM', key, 0, most - 1)
    redis.call('PEXPIRE', key, math.ceil(window / 1000))
  end
end
return longest
"""


class RedisLimits:
    """
    Counts for every instance that has the same Redis, the same rates and the same *key* for names.

    Raises:
        RedisUnavailable: from every operation that cannot tell.
    """

    __slots__ = ("_connection", "_key", "_rates")

    def __init__(self, connection: RedisConnection, rates: Rates, *, key: bytes) -> None:
        """
        Take the Redis, what is allowed, and the secret that names are hashed with.
        """
        self._connection = connection
        self._rates = rates
        self._key = key

    async def request(self, workspace: str, client_id: str, customer: tuple[str, str] | None) -> Over | None:
        """
        Count a request.
        """
        concerning = self._rates.concerning(customer=customer is not None)
        if not concerning:
            return None
        client = b"cc:l:{%b}" % keyed_name(self._key, workspace, client_id)
        names = {"client": client}
        if customer is not None:
            names["customer"] = client + keyed_name(self._key, workspace, client_id, *customer)
        keys = [names[limit] for limit, _ in concerning]
        numbers = [number for _, rate in concerning for number in (rate.interval_us, rate.window_us)]
        match await self._connection.eval(_REQUEST, len(keys), *keys, *numbers):
            case [0, int()]:
                return None
            case [1 | 2 as place, int() as wait_us] if place <= len(concerning) and wait_us > 0:
                return Over(concerning[place - 1][0], wait_us)
        raise out_of_step(self._connection.where)

    async def wrong_secret(self, workspace: str, owner: SecretOwner, name: str, network: str) -> Over | None:
        """
        Count a wrong secret.
        """
        most = self._rates.wrong_secrets
        if not most:
            return None
        names = (keyed_name(self._key, workspace, owner, name), keyed_name(self._key, network))
        keys = [b"cc:l:{wrong}%b" % each for each in names]
        match await self._connection.eval(_WRONG_SECRET, 2, *keys, most, WRONG_SECRET_US):
            case 0:
                return None
            case int() as wait_us if wait_us > 0:
                return Over("wrong_secrets", wait_us)
        raise out_of_step(self._connection.where)
