"""
Whether a Redis is fit to remember used tokens: what is looked at, and what each finding asks for.

A finding that `fails` means that tokens can be accepted twice, or none at all. A `warning` is a thing to know: something that
cannot be seen, or that costs refusals when Redis fails over.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import monotonic
from typing import Any, Final, Literal, Protocol

from .replay_redis_script import pack

__all__ = ["Finding", "Links", "Observed", "Outcome", "UnfitRedis", "diagnose", "examine", "observe"]

Outcome = Literal["ok", "warning", "fails"]

_LIMIT_S: Final = 2.0
_ROUNDS: Final = 9
_LEAST_MAJOR: Final = 7
_LEAST_HEADROOM: Final = 0.1
_MOST_CLOCK_DIFFERENCE_S: Final = 5.0
_SETTINGS: Final = ("maxmemory-policy", "min-replicas-to-write")


@dataclass(frozen=True, slots=True)
class Finding:
    """
    One line about one primary: what was looked at, how it is, and what to do about it.
    """

    check: str
    outcome: Outcome
    note: str
    primary: str = ""


class UnfitRedis(Exception):
    """
    Raised at start for a Redis that must not remember used tokens; `findings` holds all that was looked at.
    """

    findings: tuple[Finding, ...]

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("; ".join(f"{each.check}: {each.note}" for each in findings if each.outcome == "fails"))
        self.findings = findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """
    What one primary said; *config* is None where it may not be asked, *clock_ahead_s* is how far its clock is ahead.
    """

    primary: str
    info: Mapping[str, str]
    config: Mapping[str, str] | None
    clock_ahead_s: float
    latency_ms: float


class Links(Protocol):
    """
    The part of a store's links that this needs.
    """

    async def primaries(self, until: float) -> list[tuple[str, ...]]:
        """
        Return the tags that each primary serves.
        """

    async def ask(self, tag: str, packed: bytes, answers: int, until: float) -> list[Any]:
        """
        Send commands to the primary that serves *tag*.
        """


async def observe(links: Links, now: Callable[[], float]) -> tuple[Observed, ...]:
    """
    Ask every primary; *now* is the wall clock, in epoch seconds.

    Raises:
        ReplayStoreUnavailable: when one of them does not answer.
    """
    several = await links.primaries(monotonic() + _LIMIT_S)
    return tuple([await _observe(links, tags[0], now, named=len(several) > 1) for tags in several])


async def _observe(links: Links, tag: str, now: Callable[[], float], *, named: bool) -> Observed:
    asked = pack("INFO") + pack("CONFIG", "GET", *_SETTINGS)
    info, config = await links.ask(tag, asked, 2, monotonic() + _LIMIT_S)
    taken = []
    for _ in range(_ROUNDS):
        began, wall = monotonic(), now()
        (time,) = await links.ask(tag, pack("TIME"), 1, began + _LIMIT_S)
        passed = monotonic() - began
        # The answer was made somewhere between; the quickest exchange says it best.
        taken.append((passed, int(time[0]) + int(time[1]) / 1e6 - wall - passed / 2))
    said = _lines(info)
    return Observed(
        primary=f"the primary of {tag!r}, port {said.get('tcp_port', '?')}" if named else "",
        info=said,
        config=_pairs(config),
        clock_ahead_s=min(taken)[1],
        latency_ms=median(passed for passed, _ in taken) * 1000,
    )


def _lines(info: object) -> dict[str, str]:
    if not isinstance(info, bytes):
        return {}
    parted = (line.partition(":") for line in info.decode("utf-8", "replace").splitlines())
    return {name: value for name, colon, value in parted if colon}


def _pairs(config: object) -> dict[str, str] | None:
    if not isinstance(config, list):
        return None
    words = [word.decode("utf-8", "replace") for word in config]
    return dict(zip(words[::2], words[1::2], strict=True))


def examine(
    observed: Sequence[Observed], *, replicas: int, deadline_ms: int, allow_eviction: bool
) -> tuple[Finding, ...]:
    """
    Return what there is to say about the primaries of a store that is built with *replicas* and *deadline_ms*.

    Raises:
        UnfitRedis: when a finding fails.
    """
    findings = tuple(
        finding
        for each in observed
        for finding in diagnose(each, replicas=replicas, deadline_ms=deadline_ms, allow_eviction=allow_eviction)
    )
    if any(finding.outcome == "fails" for finding in findings):
        raise UnfitRedis(findings)
    return findings


def diagnose(seen: Observed, *, replicas: int, deadline_ms: int, allow_eviction: bool) -> Iterator[Finding]:
    """
    Go through one primary, check by check. Pure.
    """
    for check, (outcome, note) in (
        ("version", _version(seen)),
        ("eviction", _eviction(seen, allow_eviction=allow_eviction)),
        ("memory", _memory(seen)),
        ("persistence", _persistence(seen)),
        ("replicas", _replicas(seen, replicas)),
        ("identity", _identity(seen)),
        ("clock", _clock(seen)),
        ("latency", _latency(seen, deadline_ms)),
    ):
        yield Finding(check, outcome, note, seen.primary)


def _version(seen: Observed) -> tuple[Outcome, str]:
    version = seen.info.get("valkey_version") or seen.info.get("redis_version")
    if version is None:
        return "warning", "hidden; it has to be Redis 7 or later, or Valkey"
    server = "Valkey" if "valkey_version" in seen.info else "Redis"
    major = version.partition(".")[0]
    if major.isdigit() and int(major) < _LEAST_MAJOR:
        return "fails", f"{server} {version}; it has to be Redis 7 or later, or Valkey: upgrade it"
    return "ok", f"{server} {version}"


def _eviction(seen: Observed, *, allow_eviction: bool) -> tuple[Outcome, str]:
    policy = seen.info.get("maxmemory_policy") or (seen.config or {}).get("maxmemory-policy")
    if policy is None:
        return "warning", "the policy is hidden; make sure that it is noeviction, or a used token can be used once more"
    if policy == "noeviction":
        if seen.config is None:
            return "warning", "noeviction as far as INFO says; CONFIG is forbidden, so make sure that it stays"
        return "ok", "noeviction"
    note = f"{policy} forgets used tokens when memory is full: set maxmemory-policy noeviction"
    return ("warning" if allow_eviction else "fails"), note


def _memory(seen: Observed) -> tuple[Outcome, str]:
    if seen.info.get("maxmemory") is None:
        return "warning", "hidden; make sure that maxmemory is below what the machine has"
    used, most = _number(seen, "used_memory"), _number(seen, "maxmemory")
    if not most:
        return "warning", "no maxmemory: set one below what the machine has, so that Redis refuses before it is killed"
    free = max(0, most - used)
    note = f"{free / 2**20:.1f} MiB of {most / 2**20:.1f} MiB free, room for {free // 140} live tokens"
    if not free:
        return "fails", f"{note}: every token is refused; raise maxmemory"
    if free < most * _LEAST_HEADROOM:
        return "warning", f"{note}: raise maxmemory; when it is full every token is refused"
    return "ok", note


def _persistence(seen: Observed) -> tuple[Outcome, str]:
    if seen.info.get("aof_enabled") == "1":
        return "ok", "append-only file; a restart costs the tokens in flight"
    if seen.info.get("rdb_last_save_time") is None:
        return "warning", "hidden; replay records need none, keys that share this Redis need appendonly yes"
    return "ok", "no append-only file; replay records need none, keys that share this Redis need appendonly yes"


def _replicas(seen: Observed, wanted: int) -> tuple[Outcome, str]:
    connected = int(_number(seen, "connected_slaves"))
    if seen.info.get("role") == "slave":
        return "fails", "this is a replica: name the primary, or the Sentinels"
    if seen.info.get("connected_slaves") is None:
        note = f"hidden; the store waits for {wanted}, and refuses every token where there are fewer"
        return ("warning", note) if wanted else ("ok", "hidden; the store waits for none")
    if connected < wanted:
        return "fails", f"{connected} connected, and the store waits for {wanted}: every token is refused"
    if not connected:
        return "ok", "none; while Redis is down every token is refused"
    if seen.config is None:
        return "warning", f"{connected} connected; CONFIG is forbidden, so make sure that min-replicas-to-write is 1"
    if seen.config.get("min-replicas-to-write", "0") == "0":
        return "warning", (
            f"{connected} connected; a primary that is cut off accepts tokens a second time: set min-replicas-to-write 1, "
            "and build the store with replicas=1"
        )
    if not wanted:
        return "ok", f"{connected} connected, min-replicas-to-write is set; replicas=1 would close the last gap"
    return "ok", f"{connected} connected, min-replicas-to-write is set, each token waits for {wanted}"


def _identity(seen: Observed) -> tuple[Outcome, str]:
    if "master_replid" in seen.info:
        return "ok", "the replication id is visible: restarts and failovers are seen"
    if "run_id" in seen.info:
        return "warning", "only the run id is visible: restarts are seen, a failover and the way back may not be"
    return "warning", "hidden: a restart or failover that brings old data back is not seen; ask for INFO to be allowed"


def _clock(seen: Observed) -> tuple[Outcome, str]:
    note = f"{abs(seen.clock_ahead_s):.3f} s {'ahead of' if seen.clock_ahead_s >= 0 else 'behind'} this machine"
    if abs(seen.clock_ahead_s) > _MOST_CLOCK_DIFFERENCE_S:
        return "warning", f"{note}: run NTP on both; a clock that is set while tokens live can make Redis forget them"
    return "ok", note


def _latency(seen: Observed, deadline_ms: int) -> tuple[Outcome, str]:
    note = f"{seen.latency_ms:.2f} ms, deadline {deadline_ms} ms"
    if seen.latency_ms * 4 > deadline_ms:
        return "warning", f"{note}: raise deadline_ms, or move closer; half of it without an answer counts as lost"
    return "ok", note


def _number(seen: Observed, name: str) -> float:
    value = seen.info.get(name, "")
    return int(value) if value.isdigit() else 0
