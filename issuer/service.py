"""
Everything a running service is made of, in one frozen value, and how it is put together from the settings.

The key rings are opened here, before any socket is bound: a service whose ring cannot be opened does not start.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from keys import KeysError, KeyTimes, SealingKeys

from .audit import Actor, AuditError, RingOlderThanTrail
from .id_tokens import IDTokens
from .limits_memory import MemoryLimits
from .logs import get_logger
from .metrics import Metrics
from .mint_counts import MintCounts
from .office import Office, open_office
from .provider_keys import ProviderKeys
from .registry import Registry, Workspace
from .reports import Report
from .ring_stores import RingStores, ring_stores
from .rings import LiveRing, RingStatus
from .settings import Settings, build_registry
from .settings_limits import limit_rates, sources
from .settings_sealing import key_times, load_sealing_keys
from .sign_in_events import SignInEvents
from .source import Sources
from .state import IssuerState, memory_state
from .state_redis import redis_state
from .workspace_stores import WorkspaceStores, open_stores

__all__ = ["ReportFailure", "Service", "build_service", "open_service", "report", "report_failure"]

ReportFailure = Callable[[Exception], None]
"""Told of an exception that nobody expected."""

# Where the platform has it, the clock that also runs while the machine sleeps: a lease must not survive a suspension.
_MONOTONIC: Final = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
_SERVICE: Final = Actor("service", "issuer")
_LOG: Final = get_logger("issuer")
_FAILURES: Final = frozenset(
    {
        "admin_failed",
        "admin_records_failed",
        "audit_check_failed",
        "audit_confirmation_failed",
        "audit_note_failed",
        "audit_spill_failed",
        "audit_spilled",
        "cache_times_failed",
        "configuration_refused",
        "key_age_alarm",
        "limits_failed",
        "redis_persistence_unknown",
        "ring_poll_failed",
        "rotation_failed",
        "withdrawal_failed",
    }
)
_DOUBTS: Final = frozenset({"redis_doubtful"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """
    The parts of a running service.

    `rings` and `offices` have one entry for each workspace of `registry`, by name. `now` is the wall clock in epoch seconds,
    `monotonic` the clock that leases and durations are measured by. `place` is where the rings are kept, None when nothing of it
    has to be listened to or ended. `sources` tells where requests come from, `provider_keys` are those of the customers' identity
    providers. Nothing here belongs to an event loop.
    """

    registry: Registry
    rings: Mapping[str, LiveRing]
    offices: Mapping[str, Office]
    state: IssuerState
    metrics: Metrics
    mints: MintCounts
    times: KeyTimes
    report: Report
    report_failure: ReportFailure
    now: Callable[[], float]
    monotonic: Callable[[], float]
    place: RingStores | None = None
    sources: Sources = field(default_factory=Sources)
    provider_keys: ProviderKeys = field(default_factory=ProviderKeys)

    def sign_in_events(self, workspace: Workspace) -> SignInEvents:
        """
        Return what reads the tokens of a workspace's identity providers.
        """
        tokens = IDTokens(workspace, self.provider_keys, monotonic=self.monotonic)
        return SignInEvents(workspace, tokens, self.state.id_tokens)

    async def aclose(self) -> None:
        """
        End all connections of this event loop; they are made again when they are needed.
        """
        if self.place is not None:
            await self.place.aclose()
        await self.state.aclose()
        await self.provider_keys.aclose()

    def statuses(self) -> Iterator[RingStatus]:
        """
        Return what operations may know about each ring, as it is now.
        """
        now = self.now()
        return (
            replace(ring.status(now), rotation_problem=self.offices[name].schedule.problem)
            for name, ring in self.rings.items()
        )


def build_service(settings: Settings) -> Service:
    """
    Put the service together where no event loop is running yet; see `open_service`. It may run in any loop after that.
    """

    async def opened() -> Service:
        service = await open_service(settings)
        await service.aclose()
        return service

    return asyncio.run(opened())


async def open_service(
    settings: Settings, *, now: Callable[[], float] = time.time, monotonic: Callable[[], float] = _MONOTONIC
) -> Service:
    """
    Read the key files that *settings* name, open every ring where it is kept, and put the service together.

    Raises:
        SettingsError: when a file of the configuration cannot be used.
        KeysError: when a ring cannot be opened, is older than its audit trail, or its active key fails its self-test, or when a
            Redis cannot be trusted with keys or with what was used; what is stored is left as it is.
    """
    registry, sealing, times = build_registry(settings), load_sealing_keys(settings), key_times(settings)
    place, state = ring_stores(settings, sealing), _state(settings, sealing, now=now, monotonic=monotonic)
    try:
        return await _opened(settings, registry, sealing, times, place=place, state=state, now=now, monotonic=monotonic)
    except BaseException:
        await place.aclose()
        await state.aclose()
        raise


async def _opened(
    settings: Settings,
    registry: Registry,
    sealing: SealingKeys,
    times: KeyTimes,
    *,
    place: RingStores,
    state: IssuerState,
    now: Callable[[], float],
    monotonic: Callable[[], float],
) -> Service:
    await place.check(report)
    await state.open(report)
    mints, store_now = MintCounts(now()), place.clock(now, monotonic)
    rings, offices = {}, {}
    for workspace in registry:
        stores = open_stores(place, settings, workspace.name, sealing, now=now, report=report)
        ring = rings[workspace.name] = await _opened_ring(workspace, stores, times, now=now, monotonic=monotonic)
        office = offices[workspace.name] = open_office(
            workspace,
            ring=ring,
            store=stores.ring,
            ledger=stores.ledger,
            times=times,
            mints=mints,
            now=now,
            store_now=store_now,
            report=report,
        )
        await _change_cache_times(ring, office, times)
    return Service(
        registry=registry,
        rings=rings,
        offices=offices,
        state=state,
        metrics=Metrics(),
        mints=mints,
        times=times,
        report=report,
        report_failure=report_failure,
        now=now,
        monotonic=monotonic,
        place=place,
        sources=sources(settings),
        provider_keys=ProviderKeys(now=now, monotonic=monotonic),
    )


def _state(
    settings: Settings, sealing: SealingKeys, *, now: Callable[[], float], monotonic: Callable[[], float]
) -> IssuerState:
    """
    Return what remembers: the Redis of all instances where the settings name one, the memory of this process otherwise.
    """
    url, rates = settings.redis_url.get_secret_value(), limit_rates(settings)
    if not url:
        return memory_state(now, sealing, MemoryLimits(rates, monotonic))
    return redis_state(url, sealing, rates, now=now, allow_eviction=settings.redis_allow_eviction)


async def _opened_ring(
    workspace: Workspace,
    stores: WorkspaceStores,
    times: KeyTimes,
    *,
    now: Callable[[], float],
    monotonic: Callable[[], float],
) -> LiveRing:
    """
    Open a ring that is not older than its trail; a trail that cannot be used stops planned changes alone, not the service.
    """
    ring = await LiveRing.open(
        workspace.name,
        stores.ring,
        now=now,
        monotonic=monotonic,
        report=report,
        lease_s=times.lease_s,
        revoked=workspace.revoked_kids,
    )
    try:
        await stores.ledger.check()
    except RingOlderThanTrail:
        raise
    except AuditError as error:
        report("audit_check_failed", workspace=workspace.name, problem=error.code)
    return ring


async def _change_cache_times(ring: LiveRing, office: Office, times: KeyTimes) -> None:
    """
    Put the configured cache times into the ring before its key set is served; each start says once what they are.

    Where that fails, nothing is served beyond what the ring counts with, and it goes on counting with that.
    """
    if ring.ring.cache_times.agree_with(times):
        return
    try:
        await office.administration.change_cache_times(_SERVICE)
    except KeysError as error:
        report("cache_times_failed", workspace=ring.workspace, problem=error.code)


def report(event: str, **facts: str | int | None) -> None:
    """
    Log an event: as an error when it names a failure that an operator must see, as information unless it is doubtful.
    """
    if event in _FAILURES:
        _LOG.error(event, **facts)
    elif event in _DOUBTS:
        _LOG.warning(event, **facts)
    else:
        _LOG.info(event, **facts)


def report_failure(error: Exception) -> None:
    """
    Log an exception that nobody expected, by its class and the places it passed; its text may hold what a caller sent.
    """
    _LOG.error("request_failed", error=type(error).__name__, exc_info=error)
