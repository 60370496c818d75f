"""
The configuration read again while the service runs: who may ask for what, who administers, which keys are revoked by hand.

All of it is taken or none: what is wrong, or would need a restart, leaves everything as it was and is said in log and trail. Keys
are withdrawn without asking the store, so that a leaked one goes also where the store is down.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from keys import SelfTestFailed

from .audit import Actor, Entry
from .registry import Registry, Workspace
from .service import Service
from .settings import Settings, SettingsError, build_registry
from .settings_problems import Finding

__all__ = ["Reloader", "loaded"]

_SERVICE: Final = Actor("service", "issuer")
_MAX_PROBLEMS: Final = 16
_RELOADED: Final = frozenset({"workspaces", "shared_audiences"})


class Reloader:
    """
    Reads the configuration again whenever somebody asks for it. To be used from one event loop at a time.
    """

    def __init__(self, settings: Settings, load: Callable[[], Settings]) -> None:
        """
        Take the settings in use, and what reads them again.
        """
        self._settings = settings
        self._load = load
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked = asyncio.Event()

    def request(self) -> None:
        """
        Ask for it, from anywhere: a signal handler, another thread; before anybody waits nothing happens.
        """
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._asked.set)

    async def requested(self) -> None:
        """
        Wait until somebody asks.
        """
        self._loop = asyncio.get_running_loop()
        await self._asked.wait()
        self._asked.clear()

    async def renewed(self, service: Service) -> Service | None:
        """
        Return *service* with what the configuration says now, or None when that cannot be taken.

        Keys that it revokes have been withdrawn then.
        """
        try:
            settings, registry = await asyncio.to_thread(self._read)
        except SettingsError as error:
            _refuse(service, error)
            return None
        for workspace in registry:
            await _withdraw(service, workspace)
        offices = {
            each.name: replace(
                service.offices[each.name], administration=service.offices[each.name].administration.of(each)
            )
            for each in registry
        }
        await service.provider_keys.keep(
            each.provider for workspace in registry for each in workspace.connections if each.provider is not None
        )
        self._settings = settings
        return replace(service, registry=registry, offices=offices)

    def _read(self) -> tuple[Settings, Registry]:
        settings = self._load()
        findings = [*_needing_a_restart(self._settings, settings)]
        if findings:
            raise settings.source.error(findings)
        return settings, build_registry(settings)


def loaded(service: Service, *, is_recorder: bool = True) -> None:
    """
    Put into the log, and on record when this process *is_recorder*, that the configuration of *service* is in use.
    """
    now = int(service.now())
    for workspace in service.registry if is_recorder else ():
        facts = {
            "connections": [each.name for each in workspace.connections],
            "clients": len(workspace.clients),
            "admins": sorted(workspace.admins),
            "revoked_kids": sorted(workspace.revoked_kids),
        }
        entry = Entry(at=now, actor=_SERVICE, event="configuration_loaded", after=facts)
        service.offices[workspace.name].books.add(entry)
    service.report("configuration_loaded")


def _refuse(service: Service, error: SettingsError) -> None:
    for problem in error.problems[:_MAX_PROBLEMS]:
        service.report("configuration_refused", problem=str(problem))
    now = int(service.now())
    for office in service.offices.values():
        facts = {"problems": len(error.problems)}
        office.books.add(Entry(at=now, actor=_SERVICE, event="configuration_refused", outcome="refused", after=facts))


async def _withdraw(service: Service, workspace: Workspace) -> None:
    present = service.registry.workspace(workspace.name)
    if present is not None and present.revoked_kids == workspace.revoked_kids:
        return
    try:
        await service.rings[workspace.name].withdraw(workspace.revoked_kids)
    except SelfTestFailed as error:
        # Nothing is signed or published now, which is what has to be when no other key works.
        service.report("withdrawal_failed", workspace=workspace.name, kid=error.kid)


def _needing_a_restart(present: Settings, new: Settings) -> Iterator[Finding]:
    for name in type(new).model_fields:
        if name not in _RELOADED and getattr(present, name) != getattr(new, name):
            yield (name,), "is changed, which needs a restart"
    places = [[(each.name, each.path) for each in settings.workspaces] for settings in (present, new)]
    if places[0] != places[1]:
        yield ("workspaces",), "are others, or have other paths, which needs a restart"
