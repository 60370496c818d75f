"""
Where a rotation or revocation is killed: ring and trail in files or in a Redis, opened as the service opens them.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from beside import module_beside

from issuer.administration import Administration
from issuer.init_config import write_development_config
from issuer.ledger import Ledger
from issuer.ring_stores import ring_stores
from issuer.settings import Settings, load_settings
from issuer.settings_registry import build_registry
from issuer.settings_sealing import key_times, load_sealing_keys
from issuer.workspace_stores import open_stores
from keys import KeyStore, create_ring

__all__ = ["NOW", "KillPlace", "OnFiles", "OnRedis", "Opened", "working"]

_T = TypeVar("_T")

NOW = 1_796_040_000
WORKSPACE = "demo"


@dataclass(frozen=True)
class Opened:
    """
    The stores of a workspace and its administration, in one event loop.
    """

    ring: KeyStore
    ledger: Ledger
    administration: Administration


class KillPlace(Protocol):
    """
    Kills an action at a step, and puts ring and trail back as they were.
    """

    name: str
    settings: Settings

    def remember(self) -> None:
        """
        Keep how everything is.
        """

    def prepare(self) -> None:
        """
        Put everything back as it was before the action.
        """

    def spoil_trail(self) -> None:
        """
        Put something else in the place of the trail.
        """

    def mend_trail(self) -> None:
        """
        Put the trail back in its place.
        """

    def kill(self, action: Callable[[], None], number: int, when: str) -> str | None:
        """
        Take the action and kill it at a step; return the name of that, or None when there are not as many.
        """


def working(settings: Settings, work: Callable[[Opened], Awaitable[_T]], now: float) -> _T:
    """
    Do something in stores that are opened anew, as after a restart.
    """

    async def run() -> _T:
        sealing = load_sealing_keys(settings)
        place = ring_stores(settings, sealing)
        stores = open_stores(place, settings, WORKSPACE, sealing, now=lambda: now, report=lambda *_, **__: None)
        administration = Administration(
            build_registry(settings).workspaces[0],
            changes=stores.ledger,
            ring=stores.ring,
            times=key_times(settings),
            now=lambda: now,
        )
        try:
            return await work(Opened(stores.ring, stores.ledger, administration))
        finally:
            await place.aclose()

    return asyncio.run(run())


class OnFiles:
    """
    Ring and trail in a data folder.
    """

    name = "files"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        config = write_development_config(folder / "site", now=NOW).config
        self.settings = load_settings(config, {})
        self._calls = module_beside("issuer", "audit", "ledger_child.py")
        self._trail = self.settings.data_dir / "audit" / f"{WORKSPACE}.jsonl"
        self._aside = self._trail.with_name("aside")

    def remember(self) -> None:
        shutil.copytree(self.settings.data_dir, self._folder / "prepared")

    def prepare(self) -> None:
        shutil.rmtree(self.settings.data_dir)
        shutil.copytree(self._folder / "prepared", self.settings.data_dir)

    def spoil_trail(self) -> None:
        self._trail.rename(self._aside)
        self._trail.mkdir()

    def mend_trail(self) -> None:
        self._trail.rmdir()
        self._aside.rename(self._trail)

    def kill(self, action: Callable[[], None], number: int, when: str) -> str | None:
        return self._calls.killed(action, number, when)


class OnRedis:
    """
    Ring and trail in a Redis.
    """

    name = "Redis"

    def __init__(self, folder: Path, redis: Any) -> None:
        config = write_development_config(folder / "site", now=NOW).config
        self.settings = load_settings(config, {"CUSTOMER_CONTEXT_REDIS_URL": redis.url})
        self._redis = redis
        self._kept: dict[bytes, bytes] = {}
        self._trail = f"cc:a:{{{WORKSPACE}}}"
        self._messages = module_beside("issuer", "redis_child.py")
        ring = create_ring(WORKSPACE, now=NOW, times=key_times(self.settings))
        working(self.settings, lambda opened: opened.ring.save(ring, expect=0), NOW)

    def remember(self) -> None:
        with self._redis.client() as client:
            self._kept = {key: client.dump(key) for key in client.scan_iter()}

    def prepare(self) -> None:
        with self._redis.client() as client:
            client.flushall()
            for key, value in self._kept.items():
                client.restore(key, 0, value)

    def spoil_trail(self) -> None:
        with self._redis.client() as client:
            client.rename(self._trail, f"{self._trail}:aside")
            client.set(self._trail, "no stream")

    def mend_trail(self) -> None:
        with self._redis.client() as client:
            client.rename(f"{self._trail}:aside", self._trail)

    def kill(self, action: Callable[[], None], number: int, when: str) -> str | None:
        return "message" if self._messages.is_killed(action, number, when) else None
