"""
The store of rings that several instances share: the sealed ring of a workspace in a Redis hash, changed by compare-and-set.

The hash `cc:k:{<workspace>}` has `rev` and `blob`; the new revision is published on the channel of the same name. A blob is
sealed and opened here and authenticates its revision: whoever can write to the Redis can take a ring away or put an older one
back, but neither make nor read one.
"""

from typing import Any, Final, Literal

from keys import (
    KeyRing,
    NameTaken,
    RevisionConflict,
    RingMissing,
    RingRolledBack,
    SealingKeys,
    StoreUnreachable,
    open_ring,
    seal_ring,
)
from keys.ring import check_workspace
from keys.store import check_label

from .redis_connection import RedisConnection, RedisUnavailable

__all__ = ["RedisKeyStore"]

# The blob that was looked at is compared as a whole. The second writing of one blob is the first whose answer was lost.
_SAVE: Final = """
local blob = redis.call('HGET', KEYS[1], 'blob')
if blob == ARGV[2] then return 'saved' end
if (blob or '') ~= ARGV[1] then return 'conflict' end
if not blob and redis.call('EXISTS', KEYS[1]) == 1 then return 'conflict' end
redis.call('HSET', KEYS[1], 'rev', ARGV[3], 'blob', ARGV[2])
redis.pcall('PUBLISH', KEYS[1], ARGV[3])
return 'saved'
"""
# The tail of a blob is its authentication tag: two rings of one revision differ there.
_STAMP: Final = """
local stored = redis.call('HMGET', KEYS[1], 'rev', 'blob')
return {stored[1] or '', string.sub(stored[2] or '', -22)}
"""
_SET_ASIDE: Final = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 'missing' end
if redis.call('RENAMENX', KEYS[1], KEYS[2]) == 0 then return 'taken' end
return 'moved'
"""


class RedisKeyStore:
    """
    Keeps the ring of one workspace in Redis.

    Guarantees: of any number of savers from one revision exactly one succeeds; what does not open is never replaced; a ring older
    than one that this object has seen is refused. A save whose answer is lost is repeated once with the same sealed text, which
    cannot take effect twice.

    The Redis has to persist what it is told, and must not evict. A failover to a replica that lagged brings an older ring back:
    instances that saw the newer one refuse it.
    """

    __slots__ = ("_connection", "_key", "_sealing", "_seen", "_workspace")

    def __init__(self, connection: RedisConnection, workspace: str, sealing: SealingKeys) -> None:
        """
        Name the Redis, the workspace and the keys that seal its ring; nothing is asked yet.

        Raises:
            ValueError: when the workspace name is not one.
        """
        self._connection = connection
        self._workspace = check_workspace(workspace)
        self._sealing = sealing
        self._key = f"cc:k:{{{workspace}}}"
        self._seen = 0

    @property
    def workspace(self) -> str:
        """
        The workspace whose ring it keeps.
        """
        return self._workspace

    @property
    def where(self) -> str:
        """
        The address without credentials, and the name of the hash.
        """
        return f"{self._connection.where} {self._key}"

    @property
    def sealing(self) -> SealingKeys:
        """
        The keys that it seals and opens with.
        """
        return self._sealing

    @property
    def channel(self) -> str:
        """
        The channel on which a change is published.
        """
        return self._key

    async def load(self) -> tuple[KeyRing, int]:
        """
        Return the ring and its revision; see `KeyStore.load`.

        Raises:
            RingMissing: when there is none.
            RingCorrupt, RingOfAnotherWorkspace, RingRolledBack: when it is not the ring that belongs here.
            SealingKeyUnknown, SealingKeyWrong: when it was sealed with another key.
            SelfTestFailed: when a key in it does not work.
            StoreUnreachable: when the Redis does not answer.
        """
        return self._opened(await self.read_blob())

    async def save(self, ring: KeyRing, *, expect: int) -> int:
        """
        Store the ring; see `KeyStore.save`. What is there is opened first, and left alone when it does not open.

        Raises:
            RevisionConflict: when another revision is stored, or one at all and *expect* is 0.
            RingMissing: when none is stored and *expect* is not 0.
            StoreUnreachable: when the Redis does not answer; `outcome` says whether the ring may have been saved.
            ValueError: when the ring is of another workspace or *expect* is negative.
        """
        if ring.workspace != self._workspace:
            raise ValueError("the ring belongs to another workspace")
        if expect < 0:
            raise ValueError("expect is a revision, or 0 to create")
        present = await self._present(expect)
        return await self._write(present, seal_ring(ring, revision=expect + 1, keys=self._sealing), expect, expect + 1)

    async def read_blob(self) -> bytes:
        """
        Return the sealed ring as it is stored; see `SealedStore.read_blob`.

        Raises:
            RingMissing: when there is none.
            StoreUnreachable: when the Redis does not answer, or something that is no hash has the place of the ring.
        """
        rev, blob = await self._ask("HMGET", self._key, "rev", "blob")
        if rev is None and blob is None:
            raise RingMissing(where=self.where, workspace=self._workspace)
        # A hash without a blob is no place where a ring may be created: what comes back does not open.
        sealed: bytes = blob or b""
        return sealed

    async def write_blob(self, blob: bytes, *, expect: int) -> int:
        """
        Store a sealed ring as it is; see `SealedStore.write_blob`.

        Raises:
            RevisionConflict, RingMissing, StoreUnreachable: as `save` does.
            RingCorrupt, RingOfAnotherWorkspace, SealingKeyUnknown, SealingKeyWrong, SelfTestFailed: when it does not open.
            ValueError: when its revision is not later than *expect*.
        """
        where = f"the ring for {self.where}"
        _, revision = open_ring(blob, workspace=self._workspace, keys=self._sealing, where=where)
        if not 0 <= expect < revision:
            raise ValueError("the revision of the ring is not later than the expected one")
        return await self._write(await self._present(expect), blob, expect, revision)

    async def set_aside(self, label: str) -> str:
        """
        Rename the hash to `<name>:<label>`; see `SealedStore.set_aside`.

        Raises:
            RingMissing: when there is none.
            NameTaken: when there is something of the other name.
            StoreUnreachable: when the Redis does not answer.
        """
        aside = f"{self._key}:{check_label(label)}"
        answer = await self._ask("EVAL", _SET_ASIDE, 2, self._key, aside)
        if answer == b"missing":
            raise RingMissing(where=self.where, workspace=self._workspace)
        if answer == b"taken":
            raise NameTaken(where=self.where, name=aside)
        return aside

    async def stamp(self) -> object:
        """
        Return a value that changes whenever the stored ring does, without reading it whole.

        Raises:
            StoreUnreachable: when the Redis does not answer.
        """
        return await self._ask("EVAL", _STAMP, 1, self._key)

    def _opened(self, blob: bytes) -> tuple[KeyRing, int]:
        seen = self._seen
        ring, revision = open_ring(blob, workspace=self._workspace, keys=self._sealing, where=self.where)
        if revision < seen:
            raise RingRolledBack(where=self.where, found=revision, seen=seen)
        self._seen = max(self._seen, revision)
        return ring, revision

    async def _present(self, expect: int) -> bytes:
        """
        Return what is stored, after it has opened as the expected revision; nothing when nothing is stored or expected.
        """
        try:
            blob = await self.read_blob()
        except RingMissing:
            if expect == 0:
                return b""
            raise
        _, found = self._opened(blob)
        if found != expect:
            raise RevisionConflict(where=self.where, expected=expect, found=found)
        return blob

    async def _write(self, present: bytes, blob: bytes, expect: int, revision: int) -> int:
        answer = await self._change(_SAVE, 1, self._key, present, blob, revision)
        if answer != b"saved":
            _, found = self._opened(await self.read_blob())
            raise RevisionConflict(where=self.where, expected=expect, found=found)
        self._seen = max(self._seen, revision)
        return revision

    async def _change(self, script: str, *arguments: str | bytes | int) -> Any:
        """
        Run a script that does the same when it runs twice; it is asked for again, once, when there is no answer.
        """
        try:
            return await self._connection.call("EVAL", script, *arguments)
        except RedisUnavailable as error:
            if error.is_refusal:
                raise self._unreachable(error, "unchanged") from None
        try:
            return await self._connection.call("EVAL", script, *arguments)
        except RedisUnavailable as error:
            raise self._unreachable(error, "unknown") from None

    async def _ask(self, command: str, *arguments: str | bytes | int) -> Any:
        try:
            return await self._connection.call(command, *arguments)
        except RedisUnavailable as error:
            raise self._unreachable(error, "unchanged") from None

    def _unreachable(self, error: RedisUnavailable, outcome: Literal["unchanged", "unknown"]) -> StoreUnreachable:
        return StoreUnreachable(where=self.where, problem=error.problem, outcome=outcome)
