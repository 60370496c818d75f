"""
A stored ring that is not what was stored: cut, changed, another workspace's, an older one, sealed with another key.

Each is put in the place of the good one, on files and in a Redis. Whoever reads it has to refuse it, whoever would write has to
leave it alone, and afterwards it has to stand there as it was put.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from report import Report

from issuer.administration import Administration
from issuer.audit import Actor, FileTrail, LineFile, RedisTrail, Spill
from issuer.keystore_redis import RedisKeyStore
from issuer.ledger import Ledger
from issuer.redis_connection import RedisConnection
from issuer.redis_url import parse_redis_url
from issuer.registry import Workspace
from issuer.rings import LiveRing
from keys import (
    FileKeyStore,
    KeyRing,
    KeysError,
    KeyTimes,
    SealingKey,
    SealingKeys,
    create_ring,
    rotate,
    seal_ring,
)

__all__ = ["damage"]

NOW = 1_796_040_000
TIMES = KeyTimes()
ACTOR = Actor("cli", "soak")
KEY = SealingKey("2026-11", b"\x11" * 32)
SEALING = SealingKeys(KEY)
PATIENCE_S = 30.0
# Of the many that are cut or changed, each so-manieth is also brought before a service that starts, and those that change keys.
THOROUGHLY = 16


class Place(Protocol):
    """
    Where a ring lies: what is there can be looked at and replaced behind everybody's back.
    """

    name: str

    def store(self, sealing: SealingKeys = SEALING) -> Any:
        """
        Return a store of the ring that has seen nothing yet.
        """

    def trail(self) -> Any:
        """
        Return the trail of the ring.
        """

    def get(self) -> bytes:
        """
        Return what is stored.
        """

    def put(self, blob: bytes) -> None:
        """
        Replace what is stored.
        """


class OnFiles:
    name = "files"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "rings" / "acme.jwe"

    def store(self, sealing: SealingKeys = SEALING) -> FileKeyStore:
        return FileKeyStore(self._path, "acme", sealing)

    def trail(self) -> FileTrail:
        return FileTrail(self._path.parents[1] / "audit" / "acme.jsonl")

    def get(self) -> bytes:
        return self._path.read_bytes()

    def put(self, blob: bytes) -> None:
        self._path.write_bytes(blob)


class OnRedis:
    name = "Redis"

    def __init__(self, redis: Any, client: Any) -> None:
        self._client = client
        self._connection = RedisConnection(parse_redis_url(redis.url), PATIENCE_S)

    def store(self, sealing: SealingKeys = SEALING) -> RedisKeyStore:
        return RedisKeyStore(self._connection, "acme", sealing)

    def trail(self) -> RedisTrail:
        return RedisTrail(self._connection, "acme")

    def get(self) -> bytes:
        return self._client.hget("cc:k:{acme}", "blob")

    def put(self, blob: bytes) -> None:
        self._client.hset("cc:k:{acme}", "blob", blob)


@dataclass
class Found:
    """
    What came of one kind of damage.
    """

    tried: int = 0
    attempts: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    accepted: list[str] = field(default_factory=list)
    overwritten: int = 0


@dataclass(frozen=True)
class Site:
    """
    A place with a ring that has been changed once, and a store that has seen it.
    """

    place: Place
    seen: Any
    ring: KeyRing
    revision: int
    older: bytes
    spill: Path

    def ledger(self, store: Any) -> Ledger:
        return Ledger(
            "acme",
            store=store,
            trail=self.place.trail(),
            spill=Spill(LineFile(self.spill)),
            sealing=SEALING,
            now=lambda: NOW + 700,
            report=lambda *_, **__: None,
        )

    def administration(self, store: Any) -> Administration:
        workspace = Workspace(name="acme", path="", issuer="https://id.example", connections=(), clients={}, admins={})
        return Administration(workspace, changes=self.ledger(store), ring=store, times=TIMES, now=lambda: NOW + 700)

    def attempts(self, store: Any, *, thoroughly: bool) -> Iterator[tuple[str, Callable[[], Awaitable[Any]]]]:
        """
        Give what has to be refused: reading, writing, and when it is to be thorough, whatever reads and writes in the end.
        """
        after = rotate(self.ring, now=NOW + 700, times=TIMES, expected_active=None).ring
        yield "load", store.load
        yield "save", lambda: store.save(after, expect=self.revision)
        if thoroughly:
            yield "create", lambda: store.save(after, expect=0)
            clocks = {"now": lambda: NOW + 700, "monotonic": lambda: 0.0, "report": lambda *_, **__: None}
            administration = self.administration(store)
            kid = self.ring.active.kid
            yield "start", lambda: LiveRing.open("acme", store, **clocks)
            yield "rotate", lambda: administration.rotate(ACTOR, expected_active=None, force=True, reason="soak")
            yield "revoke", lambda: administration.revoke(ACTOR, kid, reason="soak")

    async def hold(self, found: Found, blob: bytes, *, store: Any = None, thoroughly: bool = True) -> None:
        """
        Put *blob* in place, try everything, and put the good ring back.
        """
        good = self.place.get()
        self.place.put(blob)
        found.tried += 1
        for name, attempt in self.attempts(store or self.place.store(), thoroughly=thoroughly):
            found.attempts += 1
            try:
                await attempt()
            except KeysError as error:
                found.refused[error.code] += 1
            else:
                found.accepted.append(name)
        found.overwritten += self.place.get() != blob
        self.place.put(good)


def damage(report: Report, folder: Path, redis: Any, *, each: int = 1) -> None:
    """
    Damage rings in both places, cutting at each *each*-th octet, and tell.
    """
    report.section("damage", "A stored ring that is not what was stored")
    with redis.client() as client:
        client.flushall()
        for place in (OnFiles(folder), OnRedis(redis, client)):
            asyncio.run(_damage(report, place, folder / f"{place.name}.spilled", each))


async def _damage(report: Report, place: Place, spill: Path, each: int) -> None:
    site = await _prepared(place, spill)
    good = place.get()
    cuts = [good[:length] for length in range(0, len(good), each)]
    flips = [_flipped(good, at) for at in range(0, len(good), 64)]
    foreign = create_ring("globex", now=NOW, times=TIMES)
    for name, blobs, store in (
        ("cut at every octet" if each == 1 else "cut", cuts, None),
        ("one bit changed in every 64th octet", flips, None),
        ("another workspace's", [seal_ring(foreign, revision=2, keys=SEALING)], None),
        ("sealed with another key of the same name", [_sealed(site, SealingKey(KEY.id, b"\x07" * 32))], None),
        ("sealed with a key of another name", [_sealed(site, SealingKey("2020-01", b"\x07" * 32))], None),
        ("an older one, to whoever has seen the newer one", [site.older], site.seen),
    ):
        found = Found()
        for number, blob in enumerate(blobs):
            thoroughly = len(blobs) == 1 or number % THOROUGHLY == 0
            await site.hold(found, blob, store=store, thoroughly=thoroughly)
        _tell(report, f"{name}, on {place.name}", found)
    await _older_after_restart(report, site)
    loaded = await place.store().load()
    report.promise(
        f"the good ring opens as before, on {place.name}", loaded[1], kept=loaded == (site.ring, site.revision)
    )


async def _prepared(place: Place, spill: Path) -> Site:
    store = place.store()
    await store.save(create_ring("acme", now=NOW, times=TIMES), expect=0)
    older = place.get()
    first = Site(place, store, *await store.load(), older, spill)
    await first.administration(store).rotate(ACTOR, expected_active=None)
    return Site(place, store, *await store.load(), older, spill)


async def _older_after_restart(report: Report, site: Site) -> None:
    """
    Put an older ring in place for somebody who has seen nothing: the trail knows; only what cuts off goes on.
    """
    good = site.place.get()
    site.place.put(site.older)
    refused = Counter()
    store = site.place.store()
    for attempt in (
        site.ledger(store).check,
        lambda: site.administration(store).rotate(ACTOR, expected_active=None),
    ):
        try:
            await attempt()
        except KeysError as error:
            refused[error.code] += 1
    kept = refused == {"ring_older_than_trail": 2} and site.place.get() == site.older
    site.place.put(good)
    report.promise(
        f"an older one, to a start and a rotation that saw nothing, on {site.place.name}", dict(refused), kept=kept
    )


def _tell(report: Report, name: str, found: Found) -> None:
    kept = not found.accepted and found.refused.total() == found.attempts
    report.promise(f"{name}: {found.tried}, attempts refused", dict(found.refused), kept=kept)
    report.promise(f"{name}: overwritten", found.overwritten, kept=found.overwritten == 0)


def _flipped(blob: bytes, at: int) -> bytes:
    return blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]


def _sealed(site: Site, key: SealingKey) -> bytes:
    return seal_ring(site.ring, revision=site.revision, keys=SealingKeys(key))
