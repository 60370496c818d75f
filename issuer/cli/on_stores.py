"""
How commands work on the stores that the configuration names: opened for one piece of work, and let go of again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import click

from ..ring_stores import RingStores, ring_stores
from ..settings import Settings
from ..settings_sealing import load_sealing_keys
from ..workspace_stores import WorkspaceStores, open_stores

__all__ = ["DEADLINE_S", "in_place", "now", "on_stores", "stores_in", "warn"]

_T = TypeVar("_T")

DEADLINE_S: Final = 5.0
"""Seconds that an operation of a Redis may take: longer than in a service, since nobody else waits for a command."""


def on_stores(settings: Settings, workspace_name: str, work: Callable[[WorkspaceStores], Awaitable[_T]]) -> _T:
    """
    Do something with the stores of one workspace, in an event loop of its own.
    """
    sealing = load_sealing_keys(settings)
    place = ring_stores(settings, sealing, deadline_s=DEADLINE_S)
    return in_place(lambda: work(stores_in(place, settings, workspace_name)), place)


def in_place(work: Callable[[], Awaitable[_T]], *places: RingStores) -> _T:
    """
    Do something with those places, in an event loop of its own, and end what is open there.
    """

    async def run() -> _T:
        try:
            return await work()
        finally:
            for place in places:
                await place.aclose()

    return asyncio.run(run())


def stores_in(place: RingStores, settings: Settings, workspace_name: str) -> WorkspaceStores:
    """
    Build the stores of a workspace in a place; what the ledger has to say is printed.
    """
    return open_stores(place, settings, workspace_name, load_sealing_keys(settings), now=now, report=warn)


def now() -> float:
    """
    Return the wall clock, in epoch seconds.
    """
    return time.time()


def warn(event: str, **facts: str | int | None) -> None:
    """
    Print an event as a warning.
    """
    said = ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
    click.echo(f"warning: {event.replace('_', ' ')} ({said})", err=True)
