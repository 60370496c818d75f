"""
What the issuer remembers, in a Redis that any number of instances share.

Every kind has a prefix of its own: `cc:j:` and `cc:d:` for what was used, `cc:i:` for confirmed actions, `cc:m:` for admin calls,
`cc:l:` for limits, `cc:s:` for customers' sign-ins, beside `cc:e` for the epoch. None of them is that of the key rings (`cc:k:`)
or the audit trails (`cc:a:`), which may lie in the same Redis and have to stay. All of this ends by itself, and nothing that a
client sent is readable there. Nothing has to survive a restart of the Redis either: assertions from before it are refused then,
and customers sign in again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from keys import SealingKeys

from .admin_records_redis import RedisAdminRecords
from .assertion_ids_redis import ASSERTIONS, ID_TOKENS, SharedIds
from .fingerprints import Fingerprints
from .idempotency_redis import RedisIdempotencyRecords
from .limits import Rates
from .limits_redis import RedisLimits
from .redis_check import check_memory
from .redis_connection import RedisConnection
from .redis_url import parse_redis_url
from .reports import Report
from .sign_ins_redis import RedisSignIns
from .state import IssuerState

__all__ = ["RedisPlace", "redis_state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisPlace:
    """
    The Redis of a state, and whether it may forget before the time.
    """

    connection: RedisConnection
    ids: SharedIds
    allow_eviction: bool

    async def open(self, report: Report) -> None:
        """
        See to it that it is fit to remember, and begin the epoch of one that is new.

        Raises:
            RedisUnfit: when it is not fit.
            StoreUnreachable: when it does not answer.
        """
        where = self.connection.where
        await check_memory(self.ids, where=where, allow_eviction=self.allow_eviction, report=report)

    async def aclose(self) -> None:
        """
        End the connections of this event loop; they are made again when they are needed.
        """
        await self.ids.aclose()
        await self.connection.aclose()


def redis_state(
    url: str, sealing: SealingKeys, rates: Rates, *, now: Callable[[], float], allow_eviction: bool = False
) -> IssuerState:
    """
    Build the state in the Redis at *url*, which is checked already; nothing is connected yet.

    *now* is the wall clock in epoch seconds. With *allow_eviction* a Redis may forget what was used when its memory is full.
    """
    connection, ids = RedisConnection(parse_redis_url(url)), SharedIds(url, now)
    return IssuerState(
        assertion_ids=ids.of(ASSERTIONS),
        id_tokens=ids.of(ID_TOKENS),
        fingerprints=Fingerprints(sealing, "idempotency"),
        idempotency=RedisIdempotencyRecords(connection),
        admin_records=RedisAdminRecords(connection, sealing),
        limits=RedisLimits(connection, rates, key=sealing.current.derive("limits", "")),
        sign_ins=RedisSignIns(connection, sealing),
        place=RedisPlace(connection=connection, ids=ids, allow_eviction=allow_eviction),
    )
