"""
Two instances on one Redis: what one did, the other knows; and what neither can know, neither answers.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from issuer.idempotency import MAX_MINTS

from .estate import Desk, credential, problem
from .instances import closed, instances_on, mints_of, records_of, wait
from .redis_kinds import LIMIT_S, begin_epoch, said
from .test_cases_g import ARGUMENTS, CONFLICT, EXPIRED, X, ask
from .world import NOW

OK = (200, None, None)
REPLAYED = (401, "invalid_client", "client_assertion:replayed")
CANNOT_TELL = (503, "temporarily_unavailable", "client_assertion:cannot_tell")
KEY = "idk-of-the-tests-once"


def at_once(calls):
    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(lambda call: call(), calls))


# Confirmed actions


def test_g01_another_body_under_the_key_at_the_other_instance(instances, redis_server):
    """
    G01-0, G01-1: it is refused there, and the record is untouched.
    """
    here, there = instances

    granted = ask(here)
    refused = ask(there, ARGUMENTS | {"amount": 1000})
    again = ask(there)

    assert refused.refusal == CONFLICT
    assert granted.granted == again.granted
    assert mints_of(redis_server) == [2]


def test_g01_bodies_at_once_at_both_instances(instances, redis_server):
    """
    G01: of two bodies under one new key one is minted for, whoever is asked.
    """
    bodies = [ARGUMENTS | {"amount": number % 2} for number in range(8)]

    answers = at_once([lambda n=n, body=body: ask(instances[n // 2 % 2], body) for n, body in enumerate(bodies)])

    granted = [answer for answer in answers if answer.status == 200]
    assert len({answer.granted["actionDigest"] for answer in granted}) == 1
    assert [answer.refusal for answer in answers if answer.status != 200] == [CONFLICT] * 4
    assert mints_of(redis_server) == [4]


def test_g01_3_another_client_at_the_other_instance(instances, redis_server):
    """
    G01-3: keys are each client's own, wherever it asks.
    """
    here, there = instances
    ask(here)

    other = ask(there, {"amount": 5}, client="orc_second")

    assert other.claims["client_id"] == "orc_second"
    assert mints_of(redis_server) == [1, 1]


def test_g03_0_a_retry_at_the_other_instance(instances, redis_server):
    """
    G03-0: a new token with a new `jti` and the same digest; the action is recorded once.
    """
    lost, retried = [ask(each) for each in instances]

    assert lost.claims["jti"] != retried.claims["jti"]
    assert lost.claims["caplo"] == retried.claims["caplo"]
    assert mints_of(redis_server) == [2]


def test_g03_1_a_retry_when_the_token_is_over(instances, redis_server):
    """
    G03-1: minted while the confirmation is younger than 30 minutes, at either instance.
    """
    here, there = instances
    first = ask(here)
    wait(instances, redis_server, 61)
    second = ask(there)
    wait(instances, redis_server, 1739)

    assert (first.status, second.status) == (200, 200)
    assert [ask(each).refusal for each in instances] == [EXPIRED] * 2


def test_g03_2_a_failure_before_it_counted(instances, redis_server):
    """
    G03-2: what failed at one instance before anything was recorded leaves all of the key to the other.
    """
    here, there = instances
    here.lose_rings()

    assert ask(here).refusal == (503, "temporarily_unavailable", "ring:unavailable")
    assert ask(there).status == 200
    assert mints_of(redis_server) == [1]


def test_g04_0_many_at_once_at_both_instances(instances, redis_server):
    """
    G04-0: one record, twenty tokens of their own with one digest, wherever they were asked for.
    """
    answers = at_once([lambda n=n: ask(instances[n % 2]) for n in range(50)])

    granted = [answer for answer in answers if answer.status == 200]
    assert len(granted) == len({answer.claims["jti"] for answer in granted}) == MAX_MINTS
    assert len({answer.granted["actionDigest"] for answer in granted}) == 1
    assert {answer.reason for answer in answers if answer.status != 200} == {"idempotency:exhausted"}
    assert mints_of(redis_server) == [MAX_MINTS]


def test_g12_0_after_the_retention(instances, redis_server):
    """
    G12-0: when the record is gone its confirmation has expired, so that nothing is minted a second time.
    """
    here, there = instances
    ask(here)
    wait(instances, redis_server, 1800 + 121)

    assert ask(there).refusal == EXPIRED
    assert records_of(redis_server) == []


def test_g12_1_the_retention_covers_the_confirmation(instances, redis_server):
    """
    G12-1: when somebody could still be granted something, the record is there.
    """
    here, there = instances
    ask(here)
    wait(instances, redis_server, 1799)

    assert ask(there, {"amount": 1000}).refusal == CONFLICT


def test_g12_2_clearing_away_during_retries(instances, redis_server):
    """
    G12-2: clearing away is part of the claim; of many retries at the end none is lost or counted twice.
    """
    ask(instances[0], at=NOW - 1700)
    ask(instances[1], key="idk-case-ended-0001", at=NOW - 1799)
    wait(instances, redis_server, 0.5)

    answers = at_once([lambda n=n: ask(instances[n % 2], at=NOW - 1700) for n in range(40)])

    assert sum(answer.status == 200 for answer in answers) == MAX_MINTS - 1
    assert sorted(mints_of(redis_server)) == [1, MAX_MINTS]


# Admin calls


@pytest.fixture
def desks(instances):
    return [Desk(each) for each in instances]


def test_an_admin_call_is_made_once_for_both_instances(desks):
    """
    D12, G01: the other instance gives the same answer under the same key, and refuses another body.
    """
    here, there = desks
    first = here.rotate(key=KEY)
    there.site.poll()
    active = there.ring().active.kid

    again = there.rotate(key=KEY, expected_active=first.json()["retired"])
    other = there.rotate(key=KEY, expected_active=active)

    assert (again.status_code, again.json()) == (200, first.json())
    assert problem(other) == (422, "idempotency-key-reused")
    assert [record["event"] for record in here.trail().records] == ["keys_rotated"]
    assert there.ring().active.kid == active


def test_an_admin_call_that_is_refused_is_free_at_the_other_instance(desks, redis_server):
    """
    Nothing was changed, and nothing is remembered.
    """
    here, there = desks

    assert problem(here.rotate(key=KEY, expected_active="x"))[0] == 409
    assert records_of(redis_server, "cc:m:") == []
    assert there.rotate(key=KEY).status_code == 200


def test_twenty_calls_with_one_key_at_both_instances_are_one_rotation(desks):
    """
    idk-concurrent: one rotation; the others hear its answer, or that it is going on.
    """
    active, answers = desks[0].ring().active.kid, []
    assert all(desk.site.http for desk in desks)
    calls = [
        threading.Thread(target=lambda n=n: answers.append(desks[n % 2].rotate(key=KEY, expected_active=active)))
        for n in range(20)
    ]
    for call in calls:
        call.start()
    for call in calls:
        call.join()

    done = [answer.json() for answer in answers if answer.status_code == 200]
    assert all(answer == done[0] for answer in done)
    assert {problem(answer) for answer in answers if answer.status_code != 200} <= {(409, "call-in-progress")}
    assert [record["event"] for record in desks[0].trail().records] == ["keys_rotated"]


def test_the_assertion_of_an_admin_is_used_once_for_both_instances(desks):
    """
    E07 for admins; and a client of the same name has identifiers of its own.
    """
    here, there = desks
    shown = credential("robot", issuer="https://issuer.test", method="GET", path="/admin/keys", jti="jti-shared")
    assert here.site.ask(client_assertion=here.site.client_assertion(jti="jti-shared")).status == 200

    answers = [desk.ask("GET", "/admin/keys", headers={"Authorization": shown}) for desk in (here, there)]

    assert [answer.status_code for answer in answers] == [200, 401]


def test_without_its_redis_an_admin_can_cut_off_and_not_rotate(desks, redis_server):
    """
    A rotation needs to be remembered; a revocation is never refused for that, nor a secret for want of a store.
    """
    here, _ = desks
    assert here.site.http
    redis_server.kill()

    refused = here.rotate()
    revoked = here.ask("POST", "/admin/keys/revoke-all", {"reason": "leaked"}, headers={"Idempotency-Key": KEY})
    by_assertion = here.ask("GET", "/admin/keys", admin="robot")

    assert problem(refused) == (503, "unavailable")
    assert revoked.status_code == 200
    assert by_assertion.status_code == 503


# A Redis that cannot tell


@pytest.fixture
def impatient_instances(redis_server):
    """
    Two instances that wait for their Redis no longer than they do in earnest.
    """
    begin_epoch(redis_server, age_s=3600)
    with closed(instances_on(redis_server.url)) as sites:
        yield sites
        redis_server.resume()


@pytest.mark.parametrize("fault", ["pause", "kill"])
def test_without_its_redis_no_instance_mints(impatient_instances, redis_server, fault):
    """
    503 with Retry-After within the deadline, for reads and writes, assertions and secrets alike.
    """
    for site in impatient_instances:
        assert site.http
    getattr(redis_server, fault)()

    for site in impatient_instances:
        for changes in ({}, {"authorization_details": site.details()}, {"client": "orc_basic"}):
            started = time.monotonic()
            answer = site.ask(**changes)
            assert time.monotonic() - started < LIMIT_S / 2
            assert answer.refusal[:2] == (503, "temporarily_unavailable")
            assert int(answer.headers["retry-after"]) > 0
            assert "token_minted" not in dict(site.events)


@pytest.mark.parametrize("fault", ["restart", "flush"])
def test_an_assertion_from_before_it_forgot_is_not_accepted_again(instances, redis_server, fault):
    """
    It is refused as unavailable by both, whatever became of it; what is signed after the first seconds is served.
    """
    used, unused = (instances[0].client_assertion() for _ in range(2))
    assert instances[0].ask(client_assertion=used).refusal == OK
    if fault == "restart":
        redis_server.restart()
    else:
        said(redis_server, "FLUSHALL")

    for site in instances:
        for assertion in (used, unused):
            assert site.ask(client_assertion=assertion).refusal == CANNOT_TELL
            (problem_said,) = (facts["problem"] for event, facts in site.events if event == "token_refused")
            assert problem_said == "ReplayQuarantine"
    begin_epoch(redis_server, age_s=30)
    instances[0].clock.at += 40

    assert [site.ask(client_assertion=used).refusal for site in instances] == [CANNOT_TELL] * 2
    assert [site.ask().refusal for site in instances] == [OK] * 2


def test_every_kind_of_redis_is_shared(redis_url, patient):
    """
    One server, one behind a Sentinel, a cluster: an assertion once, a key for one action, an admin call once.
    """
    with closed(instances_on(redis_url)) as sites:
        here, there = sites
        # On a Redis that is new nothing is accepted that was signed up to five seconds after it was met.
        assert here.ask().refusal == CANNOT_TELL

        def late():
            return {"client_assertion": here.client_assertion(iat=NOW + 5)}

        def write(site, **changes):
            return site.ask(**late(), authorization_details=site.details(idempotencyKey=X, **changes)).refusal

        used = late()
        assert [site.ask(**used).refusal for site in sites] == [OK, REPLAYED]
        assert [write(site) for site in sites] == [OK, OK]
        assert write(there, arguments={"orderId": "other"}) == CONFLICT
        first = Desk(here).rotate(key=KEY)
        there.poll()
        again = Desk(there).rotate(key=KEY, expected_active=first.json()["retired"])
        assert again.json() == first.json()


# What a request costs


def calls(server):
    with server.client() as client:
        stats = client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))


def test_a_request_asks_its_redis_two_or_three_times(instances, redis_server):
    """
    For the assertion, for the limits, and for a write for its key; a client with a secret saves the first.
    """
    site, costs = instances[0], {}
    assert (site.ask().refusal, ask(site).refusal) == (OK, OK)

    for name, changes in {
        "read": {},
        "write": {"authorization_details": site.details()},
        "read with a secret": {"client": "orc_basic"},
    }.items():
        before = calls(redis_server)
        assert site.ask(**changes).status == 200
        costs[name] = calls(redis_server) - before

    assert costs == {"read": 2, "write": 3, "read with a secret": 1}
