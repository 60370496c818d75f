"""
Case group F, from public bug reports, where it takes a service: keys over HTTP, on one instance and on several.

The steps are numbered from 1. Those about files, sealing and processes are shown by the tests of `keys`; here instances share a
store in memory, whose compare-and-set is that of the real ones, and the real ledger on it.
"""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from keys import KeyTimes, create_ring
from verifier import CustomerContextVerifier, MemoryReplayStore
from verifier.compact import parse_compact
from verifier.fetch import FetchResponse

from .estate import Desk, problem, with_admins
from .site import Site
from .world import NOW, ORIGIN, SHOP, registry

ALL = json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text("utf-8"))
CASES = {case["id"]: case["input"] for case in ALL if case["group"] == "F"}
STEPS = {f"{name}-{number}" for name, case in CASES.items() for number, _ in enumerate(case["steps"], start=1)}
ELSEWHERE = {
    "F01-2": "tests/keys: two creations at once make one ring; a service never creates one",
    **{f"F06-{n}": "tests/keys and tests/issuer/cli: sealing keys" for n in (1, 2, 3, 4, 5, 6)},
    **{f"F08-{n}": "tests/keys: files that do not open" for n in range(1, 8)},
    **{f"F09-{n}": "tests/keys: disks and permissions" for n in range(1, 8)},
    "F12-1": "tests/issuer/cli: serve refuses to start without a ring",
    "F12-2": "tests/keys: a restart with its volume has the same keys",
    "F12-3": "one process at a data folder: the second is refused; tests/issuer/cli",
    "F12-4": "one version exists so far; instances of it verify each other's tokens, F01-5",
    "F13-3": "tests/keys and tests/issuer/test_rings.py: the self-test at every adoption",
    "F13-4": "tests/issuer/test_rings.py: the poll fails, the lease ends, nothing is signed",
}
"""Steps that another test shows, and which."""

WIDE = KeyTimes(max_age_s=300)
WIDE_MATURITY_S = 300 + 120 + 30 + 65 + 15
DAY_S = 86_400
ROUNDS = 50


@pytest.fixture
def instances():
    """
    Four instances on the same keys, trails and clock.
    """
    first = Site(with_admins(registry()))
    desks = [Desk(first), *(Desk(Site(first.registry_in_use, beside=first)) for _ in range(3))]
    for desk in desks:
        assert desk.site.http
    yield desks
    for desk in desks:
        desk.site.close()


@pytest.fixture
def fresh():
    """
    An instance whose ring was created just now, with a max-age of 300 s.
    """
    site = Site(with_admins(registry()), times=WIDE)
    for name, store in site.ring_stores.items():
        store.put(create_ring(name, now=NOW, times=WIDE))
        ring = site.service.rings[name]
        # As at a start: nothing was in use before.
        asyncio.run(ring._look(None))
    yield Desk(site)
    site.close()


def keys_of(desk):
    return desk.site.http.get("/.well-known/jwks.json").json()


def kids_of(desk):
    return [key["kid"] for key in keys_of(desk)["keys"]]


def verifies(desk, token):
    """
    Tell whether a verifier that has the key set of an instance accepts a token.
    """
    verifier = CustomerContextVerifier(
        issuer=ORIGIN,
        audience=SHOP,
        jwks=keys_of(desk),
        replay_store=MemoryReplayStore(now=desk.site.clock),
        now=desk.site.clock,
    )
    return verifier.verify(token).client_id == "orc_main"


def at_once(*calls):
    """
    Make calls in threads that start together.
    """
    together = threading.Barrier(len(calls))

    def run(call):
        together.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_f01_1_two_instances_rotate_at_once(instances):
    """
    F01-1: fifty times the same expected key with two idempotency keys: one new key a round, the other caller hears 409.
    """
    one, two = instances[:2]
    signed_by = [one.ring().active.kid]

    for _ in range(ROUNDS):
        one.site.clock.at += 400
        active = one.ring().active.kid
        answers = at_once(
            lambda active=active: one.rotate(expected_active=active),
            lambda active=active: two.rotate(expected_active=active),
        )

        done = [answer for answer in answers if answer.status_code == 200]
        refused = [answer for answer in answers if answer.status_code != 200]
        assert [problem(answer) for answer in refused] == [(409, "active-key-differs")]
        assert refused[0].json()["active"] == done[0].json()["active"] == one.ring().active.kid
        signed_by.append(one.ring().active.kid)
    assert len(set(signed_by)) == ROUNDS + 1
    carried_out = [
        row for row in one.ask("GET", "/admin/audit?after=0&limit=200").json()["records"] if row["carried_out"]
    ]
    assert [row["event"] for row in carried_out].count("keys_rotated") == ROUNDS


def test_f01_3_the_timer_and_an_admin(instances):
    """
    F01-3: the rotation that is due on one instance while an admin rotates on the other is one rotation.
    """
    one, two = instances[:2]
    one.site.clock.at += 30 * DAY_S
    active = one.ring().active.kid
    schedule = one.site.service.offices["root"].schedule

    _, answer = at_once(
        lambda: one.site._client.blocking_portal.call(schedule.look), lambda: two.rotate(expected_active=active)
    )

    assert answer.status_code in {200, 409}
    assert one.ring().active.kid != active
    rows = one.ask("GET", "/admin/audit?after=0").json()["records"]
    assert [row["event"] for row in rows if row["carried_out"]] == ["keys_rotated"]
    assert schedule.problem is None


def test_f01_4_a_stale_write_is_refused(instances):
    """
    F01-4: an instance that was paused in the middle of a rotation does not write over the one that another made meanwhile.
    """
    one, two = instances[:2]
    store, paused, resumed = one.site.ring_stores["root"], threading.Event(), threading.Event()
    active, save = one.ring().active.kid, store.save

    async def slow(ring, *, expect):
        if not paused.is_set():
            paused.set()
            await asyncio.to_thread(resumed.wait, 10)
        return await save(ring, expect=expect)

    store.save = slow
    with ThreadPoolExecutor(1) as pool:
        stale = pool.submit(one.rotate, expected_active=active)
        assert paused.wait(10)
        # The record of the paused one stands already: whoever comes next says that it was not carried out.
        other = two.rotate(expected_active=active)
        resumed.set()
        answers = [stale.result(), other]

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert one.ring().active.kid in {answer.json()["active"] for answer in answers}
    assert len({answer.json()["active"] for answer in answers}) == 1


def test_f01_5_tokens_of_either_verify_at_the_other(instances):
    """
    F01-5: while keys rotate on both, a token of one instance is good with the key set of another.
    """
    one, two = instances[:2]
    for turn in range(6):
        one.site.clock.at += 400
        (one, two)[turn % 2].rotate()
        for desk in (one, two):
            desk.site.poll()
        tokens = [desk.site.ask(scope="orders:read").token for desk in (one, two)]
        assert verifies(two, tokens[0])
        assert verifies(one, tokens[1])


def test_f03_1_and_3_a_fresh_ring_waits_or_is_forced(fresh):
    """
    F03-1, F03-3: refused with the earliest instant; by force it is done, audited, and the answer warns of up to 30 s.
    """
    early = fresh.rotate()
    forced = fresh.rotate(force=True, reason="a key was seen on a screen")

    assert problem(early) == (409, "standby-not-mature")
    assert early.json()["earliest"] == NOW + WIDE_MATURITY_S
    assert "30 s" in forced.json()["notices"][0]
    record = fresh.trail().records[-1]
    assert (record["event"], record["after"]["forced"]) == ("keys_rotated", True)


def test_f03_2_and_5_a_mature_standby_signs(fresh):
    """
    F03-2, F03-5: published long enough, the former standby signs; an emergency lets the oldest one sign at once, with no warning.
    """
    fresh.site.clock.at = NOW + WIDE_MATURITY_S
    first, second, third = kids_of(fresh)

    rotated = fresh.rotate()
    token = fresh.site.ask(scope="orders:read").token
    revoked = fresh.ask("POST", f"/admin/keys/{second}/revoke", {"reason": "leaked"})

    assert (rotated.json()["retired"], rotated.json()["active"], rotated.json()["early"]) == (first, second, False)
    assert parse_compact(token).kid == second
    assert (revoked.json()["promoted"], revoked.json()["early"]) == (third, False)
    assert not any("refuse" in notice for notice in revoked.json()["notices"])


class Partner:
    """
    A partner API with a caching verifier, on the clock of the service; it counts what it fetches.
    """

    def __init__(self, desk):
        self.desk, self.fetched = desk, []
        self.verifier = CustomerContextVerifier(
            issuer=ORIGIN,
            audience=SHOP,
            fetch=self._fetch,
            replay_store=MemoryReplayStore(now=desk.site.clock),
            now=desk.site.clock,
            monotonic=desk.site.clock,
        )

    def _fetch(self, url, headers):
        self.fetched.append(headers.get("Cache-Control"))
        answer = self.desk.site.http.get(url.removeprefix(ORIGIN), headers=dict(headers))
        return FetchResponse(answer.status_code, list(answer.headers.items()), answer.content)

    def accepts(self, token):
        return self.verifier.verify(token).client_id == "orc_main"


def test_f03_4_a_cache_from_before_publication(fresh):
    """
    F03-4: a verifier that fetched one second before a key was published accepts all tokens of the next hour.
    """
    clock, partner = fresh.site.clock, Partner(fresh)
    # The hour passes on the wall clock, and not on the one that limits go by.
    fresh.site.lift_limits()
    clock.at = NOW + WIDE_MATURITY_S - 1
    assert partner.accepts(fresh.site.ask(scope="orders:read").token)
    clock.at += 1
    rotations = 0

    for step in range(360):
        clock.at += 10
        fresh.site.monotonic.at += 0.001
        if step % 20 == 0 and fresh.rotate().status_code == 200:
            rotations += 1
        assert partner.accepts(fresh.site.ask(scope="orders:read").token)

    partner.verifier.close()
    assert rotations >= 5


def test_f04_the_old_key_stays_as_long_as_its_tokens(fresh):
    """
    F04-1, F04-2, F04-4, F04-5: a verifier that starts cold accepts its last token; it leaves when that is dead, and for good.
    """
    clock = fresh.site.clock
    clock.at = NOW + 1000 - 1
    token = fresh.site.ask(scope="orders:read").token
    old = parse_compact(token).kid
    clock.at = activated = NOW + 1000
    assert fresh.rotate().json()["unpublish_at"] == activated + 140

    clock.at = activated + 30
    assert Partner(fresh).accepts(token)
    for later, is_published in ((60, True), (139, True), (140, False), (DAY_S, False)):
        clock.at = activated + later
        assert (old in kids_of(fresh)) == is_published


def test_f04_3_a_retiring_key_may_be_revoked(fresh):
    """
    F04-3: allowed and audited; the answer says that its live tokens stop verifying.
    """
    fresh.site.clock.at = NOW + 1000
    old = fresh.rotate().json()["retired"]
    fresh.site.clock.at += 10

    answer = fresh.ask("POST", f"/admin/keys/{old}/revoke", {"reason": "leaked"})

    assert answer.json()["was"] == "retiring"
    assert "stop verifying" in answer.json()["notices"][0]
    assert fresh.trail().records[-1]["event"] == "key_revoked"
    assert old not in kids_of(fresh)


def test_f05_the_key_set_in_each_phase(fresh):
    """
    F05-1, F05-2: active and standbys always, retiring ones until their last token is dead, all that signed in the last 120 s.
    """
    clock, minted, revoked = fresh.site.clock, {}, set()
    for step in range(60):
        clock.at += 97
        if step % 5 == 0:
            assert fresh.rotate().status_code in {200, 409}
        if step == 30:
            kid = fresh.ring().active.kid
            assert fresh.ask("POST", f"/admin/keys/{kid}/revoke", {"reason": "leaked"}).status_code == 200
            revoked.add(kid)
        token = fresh.site.ask(scope="orders:read").token
        minted[parse_compact(token).kid] = clock.at

        published = set(kids_of(fresh))
        states = {row["kid"]: row["state"] for row in fresh.ask("GET", "/admin/keys").json()["keys"]}
        assert {kid for kid, state in states.items() if state in ("active", "standby")} <= published
        assert published.isdisjoint(kid for kid, state in states.items() if state in ("retired", "revoked"))
        assert {kid for kid, at in minted.items() if at >= clock.at - 120} - revoked <= published


def test_f05_3_and_4_every_instance_serves_the_same_document(instances):
    """
    F05-3, F05-4, F13-2: the same set everywhere, of public members only, as a JWK Set with its max-age; HEAD works.
    """
    instances[0].rotate()
    for desk in instances:
        desk.site.poll()

    answers = [desk.site.http.get("/.well-known/jwks.json") for desk in instances]

    assert len({answer.content for answer in answers}) == 1
    assert all(set(key) == {"alg", "use", "kid", "kty", "crv", "x", "y"} for key in answers[0].json()["keys"])
    assert answers[0].headers["content-type"] == "application/jwk-set+json"
    assert answers[0].headers["cache-control"] == "public, max-age=120, stale-if-error=120"
    head = instances[1].site.http.head("/.well-known/jwks.json")
    assert (head.status_code, head.headers["etag"]) == (200, answers[0].headers["etag"])


def test_f13_1_every_instance_signs_with_the_new_key(instances):
    """
    F13-1: from the next look on, at most a second after the answer, 200 tokens of four instances are all under the new kid.
    """
    new = instances[2].rotate().json()["active"]
    for desk in instances:
        desk.site.poll()

    kids = {parse_compact(desk.site.ask(scope="orders:read").token).kid for _ in range(ROUNDS) for desk in instances}

    assert kids == {new}


def test_no_step_is_left_out():
    """
    Each step of the group is run by a test of its name here, or shown elsewhere.
    """
    run = {
        *("F01-1", "F01-3", "F01-4", "F01-5"),
        *(f"F03-{n}" for n in range(1, 6)),
        *(f"F04-{n}" for n in range(1, 6)),
        *(f"F05-{n}" for n in range(1, 5)),
        *("F13-1", "F13-2"),
    }

    assert run | set(ELSEWHERE) == STEPS
    assert run.isdisjoint(ELSEWHERE)
