"""
What a Redis must be before keys are kept in it: new enough, and set up to have them after a restart.

And before it remembers what was used: set up to forget nothing before its time.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal, Protocol

from keys import KeysError, StoreUnreachable
from verifier import ReplayStoreUnavailable
from verifier.redis_doctor import Finding, UnfitRedis

from .redis_connection import RedisConnection, RedisUnavailable
from .reports import Report

__all__ = [
    "Persistence",
    "RedisTooOld",
    "RedisUnfit",
    "RedisVolatile",
    "Remembering",
    "check_memory",
    "check_persistence",
    "check_version",
]

Persistence = Literal["yes", "no", "unknown"]

_LEAST_VERSION: Final = 7
_TRIES: Final = 20


class RedisTooOld(KeysError):
    """
    Raised when a server is older than Redis 7; every Valkey is new enough.
    """

    code = "redis_too_old"

    def __init__(self, where: str, version: str) -> None:
        """
        Name the place and what the server says it is.
        """
        super().__init__(f"{where} is Redis {version[:20]}; at least Redis {_LEAST_VERSION}, or any Valkey, is needed.")
        self.where = where
        self.version = version


class RedisVolatile(KeysError):
    """
    Raised when a server keeps nothing over a restart, or throws out what it pleases, which would end every key and token.
    """

    code = "redis_volatile"

    def __init__(self, where: str) -> None:
        """
        Name the place.
        """
        super().__init__(
            f"{where} may lose keys: it neither writes an append-only file nor snapshots, or evicts keys that do not expire. "
            "Set `appendonly yes` and `maxmemory-policy noeviction`, or name another Redis in `keys_redis_url`, or say with "
            "`keys_redis_allow_volatile = true` that keys may be lost."
        )
        self.where = where


class RedisUnfit(KeysError):
    """
    Raised when a server must not remember what was used: it would forget some of it, or refuse everything.
    """

    code = "redis_unfit"

    def __init__(self, where: str, findings: tuple[Finding, ...]) -> None:
        """
        Name the place; of the findings, those that fail are told.
        """
        failed = [finding for finding in findings if finding.outcome == "fails"]
        problems = "; ".join(f"{finding.check}: {finding.note}" for finding in failed)
        mended = (
            ", or say with `redis_allow_eviction = true` that what was used may be used once more"
            if any(finding.check == "eviction" for finding in failed)
            else ""
        )
        super().__init__(f"{where} is not fit to remember what was used: {problems}{mended}.")
        self.where = where
        self.findings = findings


class Remembering(Protocol):
    """
    What remembers what was used, as far as it can be checked.
    """

    async def check(self, *, allow_eviction: bool) -> tuple[Finding, ...]:
        """
        Look whether it is fit for that.
        """
        ...


async def check_version(connection: RedisConnection) -> None:
    """
    See to it that every server is new enough for what is asked of it; one that does not tell its version passes.

    Raises:
        RedisTooOld: when one is not.
        RedisUnavailable: when one does not answer.
    """
    for members in await _info(connection, "server"):
        version = str(members.get("redis_version", _LEAST_VERSION))
        major = version.partition(".")[0]
        if not major.isdigit() or int(major) < _LEAST_VERSION:
            raise RedisTooOld(connection.where, version)


async def check_persistence(connection: RedisConnection, *, allow_volatile: bool, report: Report) -> None:
    """
    See to it that every server writes what it is told to a disk and keeps it; what cannot be found out is reported.

    Raises:
        RedisVolatile: when one does not, unless *allow_volatile*.
        RedisUnavailable: when one does not answer.
    """
    found = await _persistence(connection)
    if "no" in found and not allow_volatile:
        raise RedisVolatile(connection.where)
    if "unknown" in found:
        report("redis_persistence_unknown", where=connection.where)


async def check_memory(remembering: Remembering, *, where: str, allow_eviction: bool, report: Report) -> None:
    """
    See to it that a Redis is fit to remember what was used, and report what is doubtful about it, with what to do.

    Raises:
        RedisUnfit: when it is not; an eviction policy is doubtful only where *allow_eviction* says that it may forget.
        StoreUnreachable: when it does not answer.
    """
    try:
        findings = await _patiently(remembering, allow_eviction=allow_eviction)
    except UnfitRedis as error:
        raise RedisUnfit(where, error.findings) from None
    except ReplayStoreUnavailable as error:
        raise StoreUnreachable(where=where, problem=str(error), outcome="unchanged") from None
    for finding in findings:
        if finding.outcome == "warning":
            about = f"{where}, {finding.primary}" if finding.primary else where
            report("redis_doubtful", where=about, reason=finding.check, problem=finding.note)


async def _patiently(remembering: Remembering, *, allow_eviction: bool) -> tuple[Finding, ...]:
    # A use has little time, and a connection that takes longer comes up meanwhile: it is there for the next try.
    for _ in range(_TRIES - 1):
        with suppress(ReplayStoreUnavailable):
            return await remembering.check(allow_eviction=allow_eviction)
    return await remembering.check(allow_eviction=allow_eviction)


async def _persistence(connection: RedisConnection) -> set[Persistence]:
    try:
        answers = await connection.each_primary("CONFIG GET", "appendonly", "save", "maxmemory-policy")
    except RedisUnavailable as error:
        if not error.is_refusal:
            raise
        # Managed services forbid CONFIG; what they say about the append-only file is enough when it is on.
        told = await _info(connection, "persistence")
        return {"yes" if members.get("aof_enabled") == 1 else "unknown" for members in told} or {"unknown"}
    return {_configured(answer) for answer in answers}


def _configured(answer: Any) -> Persistence:
    if not isinstance(answer, Mapping) or not {"appendonly", "save"} <= answer.keys():
        return "unknown"
    evicts = str(answer.get("maxmemory-policy")).startswith("allkeys")
    return "yes" if (answer["appendonly"] == "yes" or answer["save"]) and not evicts else "no"


async def _info(connection: RedisConnection, section: str) -> list[Mapping[str, Any]]:
    """
    Ask every server about itself; nothing comes back where that is forbidden.
    """
    try:
        answers = await connection.each_primary("INFO", section)
    except RedisUnavailable as error:
        if error.is_refusal:
            return []
        raise
    return [answer for answer in answers if isinstance(answer, Mapping)]
