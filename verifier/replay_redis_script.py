"""
What is asked of Redis for one token, in one call, and what its answer means (D4). Pure.

The script claims the key of a token with its expiry and reads what stands there, and compares the age of the primary's epoch
with the age of the token. An epoch is the instant since which a primary is known to have forgotten nothing. Its record names
the primary's replication id, which Redis draws anew at each start and at each promotion, and the script reads that id within
the same call: a restart, a FLUSHALL, a failover and the way back all begin an epoch, whatever a connection has slept through.

Two ages are compared, each taken on one clock: the epoch's on the clock of Redis, the token's on the verifier's. So it does not
matter how far the two clocks stand apart, and the verifier's cannot lag behind the issuer's by more than its tolerance without
refusing every fresh token.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha1, sha256
from typing import Final, NamedTuple

from .action import canonical_json
from .compact import b64url_encode
from .replay import ReplayStoreUnavailable

__all__ = [
    "AnswerOutOfStep",
    "Question",
    "ReplayQuarantine",
    "claim_key",
    "digester",
    "judge",
    "judge_opening",
    "opening",
    "pack",
    "waiting",
]

_EPOCH_KEY: Final = "cc:e"
# Redis looks ten times a second who has waited long enough.
_WAIT_GRAIN_S: Final = 0.1
_ATTEMPT: Final = re.compile(rb"[A-Za-z0-9_-]{11}")

# KEYS: the epoch record, then the key to claim unless a connection is being opened.
# ARGV: this attempt's id, how long to remember (ms), how old the epoch has to be (ms).
# The answer is one string that begins with the attempt's id, so that an answer to another question cannot be taken for it.
# A token in quarantine is never claimed; it is refused as long as it lives. Own id without a claim is a repetition after a lost
# answer; it writes once more, so that a WAIT behind it counts the first write.
_SCRIPT: Final = b"""\
local info = redis.pcall('INFO', 'replication')
if type(info) ~= 'string' then info = '' end
local _, role = string.find(info, 'role:', 1, true)
if role and string.sub(info, role + 1, role + 5) == 'slave' then return redis.error_reply('READONLY a replica') end
local _, at = string.find(info, 'master_replid:', role, true)
if not at then
  info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then info = '' end
  _, at = string.find(info, 'run_id:', 1, true)
end
local identity = at and string.sub(info, at + 1, at + 40) or '-'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local record = redis.call('GET', KEYS[1]) or ''
local epoch = string.sub(record, 1, #identity + 1) == identity .. ' ' and tonumber(string.sub(record, #identity + 2))
local begun = not (epoch and epoch <= now)
if begun then
  epoch = now
  redis.call('SET', KEYS[1], identity .. ' ' .. string.format('%.0f', now))
end
if not KEYS[2] then return ARGV[1] .. (begun and ' new' or ' old') end
if now - epoch <= tonumber(ARGV[3]) then
  local standing = redis.call('GET', KEYS[2])
  return ARGV[1] .. ' ' .. (standing and standing ~= ARGV[1] and standing or '?')
end
local claimed = redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2])
local standing = redis.call('GET', KEYS[2])
if standing == ARGV[1] and not claimed then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return ARGV[1] .. ' ' .. (standing or '-')
"""
_SHA: Final = sha1(_SCRIPT, usedforsecurity=False).hexdigest().encode()


class AnswerOutOfStep(ReplayStoreUnavailable):
    """
    Raised for what is no answer to the question that was asked; the connection is of no use any more.
    """


class ReplayQuarantine(ReplayStoreUnavailable):
    """
    Raised for a token that was issued before this Redis is known to remember everything; a newer token is served.
    """


class Question(NamedTuple):
    """
    One attempt at one identifier.

    *key* is where it is remembered and *tag* its hash tag in a cluster; *attempt* is drawn for this attempt alone;
    *retention_ms* is how long it is remembered, *reach_ms* how old the primary's epoch has to be, and *replicas* how many of
    them have to hold the record before it counts.
    """

    key: bytes
    tag: str
    attempt: bytes
    retention_ms: int
    reach_ms: int
    replicas: int

    def packed(self, *, whole: bool = False) -> bytes:
        """
        Return the command; *whole* for a server that does not know the script yet.
        """
        retention, reach = b"%d" % self.retention_ms, b"%d" % self.reach_ms
        return b"%b$%d\r\n%b\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (
            *(_head(self.tag, whole), len(self.key), self.key, len(self.attempt), self.attempt),
            *(len(retention), retention, len(reach), reach),
        )


def pack(*words: bytes | str | int) -> bytes:
    """
    Write one command in the Redis serialization protocol.
    """
    octets = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(octets) + b"".join([b"$%d\r\n%b\r\n" % (len(each), each) for each in octets])


def digester(*parts: str) -> Callable[[str], str]:
    """
    Return what names identifiers among *parts*: b64url of the first 16 octets of SHA-256(JCS([*parts, jti])), 22 characters.
    """
    # The canonical form of a list is made of those of its members, so all but the last is hashed once.
    begun = sha256(b"".join([b"[", *(canonical_json(part) + b"," for part in parts)]))

    def digest(jti: str) -> str:
        ended = begun.copy()
        ended.update(canonical_json(jti) + b"]")
        return b64url_encode(ended.digest()[:16])

    return digest


def claim_key(prefix: str, digest: str, *, clustered: bool) -> tuple[bytes, str]:
    """
    Return the key of a digest and its hash tag; in a cluster the digest's first character is the tag, elsewhere there is none.
    """
    if clustered:
        return f"{prefix}{{{digest[0]}}}{digest[1:]}".encode(), digest[0]
    return (prefix + digest).encode(), ""


def opening(tags: Sequence[str], attempt: bytes) -> bytes:
    """
    Return the commands that write the epoch records missing on a primary, one answer for each of *tags*.
    """
    first, *others = tags
    return pack(b"EVAL", _SCRIPT, 1, _epoch_key(first), attempt) + b"".join(
        pack(b"EVALSHA", _SHA, 1, _epoch_key(tag), attempt) for tag in others
    )


def judge_opening(reply: object, attempt: bytes) -> bool:
    """
    Tell whether an epoch began.

    Raises:
        AnswerOutOfStep: for anything but the answer of `opening`.
    """
    if reply not in (attempt + b" new", attempt + b" old"):
        raise AnswerOutOfStep("Redis gave another answer than was asked for")
    return reply == attempt + b" new"


def judge(reply: object, question: Question) -> bool:
    """
    Tell a first use from a replay: own id back is a first use, another attempt's id is a replay, nothing else is either.

    Raises:
        AnswerOutOfStep: for what does not begin with this attempt's id.
        ReplayQuarantine: when the token was issued before the primary's epoch.
        ReplayStoreUnavailable: for every other answer.
    """
    attempt = question.attempt
    if not isinstance(reply, bytes) or not reply.startswith(attempt + b" "):
        raise AnswerOutOfStep("Redis gave another answer than was asked for")
    standing = reply[len(attempt) + 1 :]
    if standing == attempt:
        return True
    if standing == b"?":
        raise ReplayQuarantine("the token is older than what this Redis is known to remember")
    if _ATTEMPT.fullmatch(standing) is None:
        raise ReplayStoreUnavailable("something else than an attempt stands at the key")
    return False


def waiting(replicas: int, remaining_s: float) -> bytes:
    """
    Return the command that waits for so many replicas to hold what was written, and gives up before *remaining_s* are over.
    """
    return pack(b"WAIT", replicas, max(1, int((remaining_s - _WAIT_GRAIN_S) * 1000)))


@cache
def _head(tag: str, whole: bool) -> bytes:  # noqa: FBT001 -- the key of a cache
    script = (b"EVAL", _SCRIPT) if whole else (b"EVALSHA", _SHA)
    # Everything that is the same in each question of a tag; the last four of eight words are missing.
    return pack(*script, 2, _epoch_key(tag)).replace(b"*4", b"*8", 1)


def _epoch_key(tag: str) -> str:
    return f"{_EPOCH_KEY}:{{{tag}}}" if tag else _EPOCH_KEY
