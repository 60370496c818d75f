"""
Cache times of the key set that change with a restart: recorded before they are served, and counted with until they are over.
"""

import asyncio
import json

import pytest
from litestar.testing import TestClient

from issuer import service as service_module
from issuer.app import create_app
from issuer.audit import Actor
from issuer.cli.administer import StoreAdministration
from issuer.http.jwks import cache_control
from issuer.init_config import CONFIG_NAME, write_development_config
from issuer.ring_stores import ring_stores
from issuer.service import open_service
from issuer.settings import build_registry, load_settings
from issuer.settings_sealing import load_sealing_keys
from keys import CacheTimes, FileKeyStore, FileUnwritable, KeyTimes, export_blob, import_blob, reseal
from keys.ring_json import dump_ring
from verifier import CustomerContextVerifier
from verifier.fetch import FetchResponse

from .site import Clock

NOW = 1_796_040_000
OPERATOR = Actor("cli", "root")
LONG, SHORT = KeyTimes(max_age_s=3600, stale_if_error_s=1800), KeyTimes(max_age_s=60, stale_if_error_s=0)
DEFAULT = KeyTimes()


class Place:
    """
    A configuration, its stores, and what is started on it; every instance has one clock, and is polled by hand.
    """

    def __init__(self, folder, monkeypatch):
        write_development_config(folder, now=NOW)
        self.folder, self.config, self.clock, self.events = folder, folder / CONFIG_NAME, Clock(NOW), []
        self.head = ""
        self.text = self.config.read_text()
        monkeypatch.setattr(service_module, "report", lambda event, **facts: self.events.append((event, facts)))

    def configure(self, times):
        cached = f"jwks = {{ max_age_s = {times.max_age_s}, stale_if_error_s = {times.stale_if_error_s} }}\n"
        self.config.write_text(self.head + cached + self.text)

    def settings(self):
        return load_settings(self.config, {})

    async def open(self, times):
        self.configure(times)
        return await open_service(self.settings(), now=self.clock, monotonic=self.clock)

    def start(self, times):
        async def started():
            service = await self.open(times)
            await service.aclose()
            return service

        return asyncio.run(started())

    def with_store(self, work):
        async def worked():
            settings = self.settings()
            place = ring_stores(settings, load_sealing_keys(settings))
            try:
                return await work(place.ring("demo"))
            finally:
                await place.aclose()

        return asyncio.run(worked())

    def move_to(self, server):
        blob = self.with_store(export_blob)
        (self.folder / "data/rings/demo.jwe").unlink()
        self.head = f'redis_url = "{server.url}"\nkeys_redis_allow_volatile = true\n'
        self.config.write_text(self.head + self.text)
        self.with_store(lambda store: import_blob(store, blob))

    def stored(self):
        return self.with_store(lambda store: store.load())

    def records(self):
        lines = (self.folder / "data/audit/demo.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def by_hand(self):
        settings = self.settings()
        return StoreAdministration(settings, build_registry(settings).workspace("demo"))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """
    A place whose ring was made, and may be served, with the default times.
    """
    return Place(tmp_path / "dev", monkeypatch)


def served(service, method="GET", **headers):
    """
    Return what the key set of an instance may be cached for.
    """
    app = create_app(service, poll_s=3600, books_s=3600)
    with TestClient(app, base_url=service.registry.origin) as client:
        answer = client.request(method, "/w/demo/.well-known/jwks.json", headers=headers)
    assert answer.status_code in {200, 304}
    return answer.headers["cache-control"]


def said(max_age_s, stale_if_error_s):
    return f"public, max-age={max_age_s}, stale-if-error={stale_if_error_s}"


def revoked(service):
    """
    Revoke the active key as an admin does, and return what is told.
    """
    office = service.offices["demo"]
    active = service.rings["demo"].ring.active.kid

    async def revoke():
        told = await office.administration.revoke(OPERATOR, active, reason="leaked")
        await service.aclose()
        return told

    return asyncio.run(revoke()).members


def notices(service):
    async def listed():
        told = await service.offices["demo"].administration.keys()
        await service.aclose()
        return told.members["notices"]

    return asyncio.run(listed())


def test_a_start_with_the_same_times_writes_nothing(place):
    """
    Neither into the ring nor into the trail.
    """
    service = place.start(DEFAULT)

    assert served(service) == said(120, 120)
    assert place.stored()[1] == 1
    assert notices(service) == []
    assert not (place.folder / "data/audit/demo.jsonl").exists()


def test_longer_times_are_recorded_before_they_are_served(place):
    """
    When the service is put together, the sealed ring says so already, and the trail says who did it.
    """
    service = place.start(LONG)

    ring, revision = place.stored()
    (record,) = place.records()
    assert (ring.cache_times, revision) == (
        CacheTimes(max_age_s=3600, stale_if_error_s=1800, earlier_until=NOW + 350),
        2,
    )
    assert (record["event"], record["actor"]) == ("cache_times_changed", {"kind": "service", "name": "issuer"})
    assert record["before"] == {"max_age_s": 120, "stale_if_error_s": 120, "earlier_until": 0}
    assert record["after"] == {"max_age_s": 3600, "stale_if_error_s": 1800, "earlier_until": NOW + 350}
    assert served(service) == served(service, "HEAD") == said(3600, 1800)
    assert served(service, **{"If-None-Match": "*"}) == said(3600, 1800)


def test_after_shorter_times_a_bound_counts_with_the_longer_ones(place):
    """
    The answer, its notice and the new standby go by what verifiers may hold; when that is over, by what they are told.
    """
    place.start(LONG)
    place.clock.at += 5000
    service = place.start(SHORT)
    until = NOW + 5000 + LONG.maturity_s
    place.clock.at += 10

    told = revoked(service)

    assert served(service) == said(60, 0)
    assert told["trusted_until"] == until >= place.clock.at - 10 + LONG.revocation_bound_s
    assert "2026-11-30T14:55:10Z" in told["notices"][1]
    assert place.stored()[0].record(told["standby"]).mature_at == until
    place.clock.at = until
    assert revoked(service)["trusted_until"] == until + SHORT.revocation_bound_s


def test_a_command_on_the_stores_counts_with_them_too(place, monkeypatch):
    """
    Whatever is configured for it, and while no service runs.
    """
    place.start(LONG)
    place.clock.at += 5000
    place.start(SHORT)
    for module in ("administer", "on_stores"):
        monkeypatch.setattr(f"issuer.cli.{module}.now", place.clock)

    told = place.by_hand().revoke_all(reason="stolen")

    assert told["trusted_until"] == place.clock.at + LONG.maturity_s


def test_a_ring_from_before_opens_and_counts_with_the_most(place, monkeypatch):
    """
    Nobody knows what it was served with; from the first start on that runs out.
    """
    largest = KeyTimes(max_age_s=3600, stale_if_error_s=3600)

    def written_before(ring):
        document = json.loads(dump_ring(ring))
        del document["cache_times"]
        return json.dumps({**document, "version": 2}).encode()

    with monkeypatch.context() as patched:
        patched.setattr("keys.sealing.dump_ring", written_before)
        place.with_store(_saved_again)
    assert place.stored()[0].cache_times == CacheTimes()

    service = place.start(DEFAULT)
    told = revoked(service)

    assert served(service) == said(120, 120)
    assert told["trusted_until"] == NOW + largest.maturity_s
    assert [notice for notice in notices(service) if "2026-11-30T14:01:50Z" in notice]
    place.clock.at = NOW + largest.maturity_s
    assert revoked(service)["trusted_until"] == place.clock.at + DEFAULT.revocation_bound_s
    assert notices(service) == []


async def _saved_again(store):
    ring, revision = await store.load()
    await store.save(ring, expect=revision)


def test_what_cannot_be_recorded_is_not_served(place):
    """
    With a trail that is damaged the service starts; it serves neither more than the ring counts with nor more than configured.
    """
    place.start(LONG)
    trail = place.folder / "data/audit/demo.jsonl"
    kept = trail.read_bytes()
    trail.write_bytes(b"")

    mixed = place.start(KeyTimes(max_age_s=60, stale_if_error_s=3000))

    assert ("cache_times_failed", {"workspace": "demo", "problem": "trail_damaged"}) in place.events
    assert served(mixed) == said(60, 1800)
    assert place.stored()[1] == 2
    assert "not what is configured here (60 s and 3000 s)" in notices(mixed)[0]
    assert revoked(mixed)["trusted_until"] == NOW + KeyTimes(max_age_s=3600, stale_if_error_s=3000).revocation_bound_s
    trail.write_bytes(kept)


def test_a_clock_that_is_far_behind_records_nothing(place):
    """
    Until when earlier key sets are in use, it cannot tell; the next start with a better one can.
    """
    place.clock.at = NOW - 66

    service = place.start(SHORT)

    assert ("cache_times_failed", {"workspace": "demo", "problem": "clock_behind"}) in place.events
    assert served(service) == said(60, 0)
    assert place.stored()[0].cache_times == CacheTimes.first(DEFAULT)
    place.clock.at = NOW - 65
    place.start(SHORT)
    assert place.stored()[0].cache_times == CacheTimes(max_age_s=60, stale_if_error_s=0, earlier_until=NOW + 350)


def test_a_ring_that_cannot_be_written_is_served_as_it_counts(place, monkeypatch):
    """
    A folder that is read only does not keep a service from starting.
    """

    async def refused(_store, _ring, *, expect):
        raise FileUnwritable(path="demo.jwe", problem=f"revision {expect} stays", outcome="unchanged")

    monkeypatch.setattr(FileKeyStore, "save", refused)

    service = place.start(LONG)

    assert ("cache_times_failed", {"workspace": "demo", "problem": "file_unwritable"}) in place.events
    assert served(service) == said(120, 120)


def test_moving_and_resealing_keep_them(place, redis_server):
    """
    They are sealed with the keys, so they go where the keys go.
    """
    place.start(LONG)
    place.start(SHORT)
    before = place.stored()[0].cache_times
    (place.folder / "data/newer.key").write_text("B" * 42 + "A")
    (place.folder / "data/newer.key").chmod(0o600)
    newer = '[[sealing_keys]]\nid = "newer"\nfile = "data/newer.key"\n[[sealing_keys]]'
    place.text = place.text.replace("[[sealing_keys]]", newer, 1)
    place.configure(SHORT)

    place.move_to(redis_server)
    assert place.with_store(reseal)

    assert place.stored()[0].cache_times == before
    assert before.earlier_until == NOW + LONG.maturity_s


def test_instances_of_one_store_serve_what_the_last_start_said(place, redis_server):
    """
    A rolling change: the older instance serves no more than what is recorded within its lease, and none more than its own.
    """
    place.move_to(redis_server)

    async def rolled():
        old = await place.open(LONG)
        place.clock.at += 15
        new = await place.open(SHORT)
        lagging = _cached(old)
        await old.rings["demo"].poll()
        followed = _cached(old)
        place.clock.at += 100
        newest = await place.open(KeyTimes(max_age_s=3000, stale_if_error_s=3600))
        for each in (old, new):
            await each.rings["demo"].poll()
        cached = [_cached(each) for each in (old, new, newest)]
        for each in (old, new, newest):
            await each.aclose()
        return lagging, followed, cached

    lagging, followed, cached = asyncio.run(rolled())

    assert (lagging, followed) == (said(3600, 1800), said(60, 0))
    assert cached == [said(3000, 1800), said(60, 0), said(3000, 3600)]
    assert place.stored()[0].cache_times == CacheTimes(
        max_age_s=3000, stale_if_error_s=3600, earlier_until=NOW + 15 + LONG.maturity_s
    )


def _cached(service):
    return cache_control(service.times, service.rings["demo"].current(service.now()).cache_times)


def test_many_instances_that_start_at_once_record_one_change(place, redis_server):
    """
    Whoever is second finds it done; nobody overwrites anybody.
    """
    place.move_to(redis_server)

    async def at_once():
        services = await asyncio.gather(*(place.open(LONG) for _ in range(8)))
        page = await services[0].offices["demo"].administration.audit_after(0, limit=200)
        for each in services:
            await each.aclose()
        return page.members["records"]

    records = asyncio.run(at_once())

    done = [record for record in records if record["carried_out"]]
    assert [record["event"] for record in done] == ["cache_times_changed"]
    assert place.stored()[0].cache_times == CacheTimes(max_age_s=3600, stale_if_error_s=1800, earlier_until=NOW + 350)


def test_a_verifier_that_is_cut_off_forgets_the_key_within_the_bound(place):
    """
    It fetched with the longer times, and reaches nothing since: it uses the key for longer than the new times would say.
    """
    old = place.start(LONG)
    answers, fetched_at = [_fetched(old)], place.clock.at
    verifier = CustomerContextVerifier(
        issuer=old.registry.workspace("demo").issuer,
        audience="https://api.shop.example",
        replay_store=None,
        fetch=lambda _url, _headers: answers.pop(),
        now=place.clock,
        monotonic=place.clock,
    )
    verifier.refresh()
    place.clock.at += 100
    verifier.refresh()
    assert verifier.state()["last_error"]
    told = revoked(place.start(SHORT))

    usable = []
    for second in range(int(place.clock.at), told["trusted_until"] + 10, 10):
        place.clock.at = second
        state = verifier.state()
        if told["revoked"] in state["kids"] and state["usable"]:
            usable.append(second)

    assert usable[-1] == fetched_at + 3600 + 1800 - 10
    assert told["at"] + SHORT.revocation_bound_s < usable[-1] <= told["trusted_until"]


def _fetched(service):
    app = create_app(service, poll_s=3600, books_s=3600)
    with TestClient(app, base_url=service.registry.origin) as client:
        answer = client.get("/w/demo/.well-known/jwks.json")
    return FetchResponse(status=answer.status_code, headers=tuple(answer.headers.items()), body=answer.content)
