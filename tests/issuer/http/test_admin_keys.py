"""
Keys over HTTP: listed, rotated, revoked, with the trail and the running service following at once.
"""

import asyncio
from dataclasses import replace

import pytest

from keys import FileUnreadable

from ..estate import Desk, problem, with_admins
from ..site import Site
from ..world import NOW, SHOP, connections, registry

MATURE = NOW - 1000 + 350


def test_the_keys_are_listed_with_what_happens_next(one_desk):
    """
    key-policy-inventory: kid, algorithm, state, every instant, what happens next and when; no private part.
    """
    answer = one_desk.ask("GET", "/admin/keys", admin="reader")

    members, ring = answer.json(), one_desk.ring()
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert (members["workspace"], members["active"], members["next_rotation_at"]) == ("root", ring.active.kid, MATURE)
    assert [(row["kid"], row["state"]) for row in members["keys"]] == [
        (ring.active.kid, "active"),
        *((standby.kid, "standby") for standby in ring.standbys),
    ]
    assert members["keys"][0]["next"] == {"what": "rotation_due", "at": ring.active.rotation_due_at}
    assert members["keys"][1]["next"] == {"what": "may_activate", "at": MATURE}
    assert '"d"' not in answer.text
    assert "private" not in answer.text


def test_an_audience_that_ends_in_a_slash_is_pointed_out():
    """
    D6: with and without it are two audiences, which is seldom meant.
    """

    def odd():
        shop, bank = connections()
        return (shop, replace(bank, audiences=("https://api.bank.example/",)))

    site = Site(with_admins(registry(connections=odd)))

    notices = Desk(site).ask("GET", "/admin/keys").json()["notices"]
    site.close()

    assert ["https://api.bank.example/" in notice for notice in notices] == [True]


def test_a_planned_rotation(desk):
    """
    F03: once a standby is mature it signs, the old key stays published, the trail has it, and the instance follows at once.
    """
    before = desk.ring()

    answer = desk.rotate()

    members, after = answer.json(), desk.ring()
    assert answer.status_code == 200
    assert (members["retired"], members["active"]) == (before.active.kid, before.standbys[0].kid)
    assert after.active.kid == members["active"]
    assert members["standby"] in {standby.kid for standby in after.standbys}
    assert (members["unpublish_at"], members["next_rotation_at"]) == (NOW + 140, MATURE)
    assert (members["early"], members["notices"], members["recorded"], members["revision"]) == (False, [], True, 2)
    record = desk.trail().records[-1]
    assert (record["event"], record["target"], record["actor"]) == (
        "keys_rotated",
        before.active.kid,
        {"kind": "admin", "name": "secops"},
    )
    assert record["source"] == "unknown"
    assert answer.headers["audit-head"].startswith(f"{record['seq']}.")
    kids = {key["kid"] for key in desk.site.http.get("/.well-known/jwks.json").json()["keys"]}
    assert kids == {record.kid for record in after.published(NOW)}
    assert desk.site.service.rings["root"].current(NOW).kid == after.active.kid


def test_a_rotation_names_the_key_it_expects(one_desk):
    """
    Another one is active: 409 with the one that is, and nothing was done.
    """
    before = one_desk.ring()

    answer = one_desk.rotate(expected_active=before.standbys[0].kid)

    assert problem(answer) == (409, "active-key-differs")
    assert answer.json()["active"] == before.active.kid
    assert one_desk.ring() is before
    assert answer.headers["audit-head"]


def test_no_rotation_before_a_standby_is_mature(desk):
    """
    F03: 409 with the earliest instant; by force at once, with a reason and a warning.
    """
    desk.site.clock.at = MATURE - 1

    early = desk.rotate()
    without_reason = desk.rotate(force=True)
    forced = desk.rotate(force=True, reason="The key was used on a laptop.")

    assert problem(early) == (409, "standby-not-mature")
    assert (early.json()["earliest"], early.json()["standby"]) == (MATURE, forced.json()["active"])
    assert problem(without_reason) == (400, "invalid-body")
    assert forced.status_code == 200
    assert forced.json()["early"]
    assert "30 s" in forced.json()["notices"][0]
    record = desk.trail().records[-1]
    assert (record["reason"], record["after"]["forced"]) == ("The key was used on a laptop.", True)


def test_too_many_retiring_keys_have_an_earliest_instant(desk):
    """
    409 with the instant from which on there is room again.
    """
    for _ in range(16):
        assert desk.rotate(force=True, reason="exercise").status_code == 200

    answer = desk.rotate(force=True, reason="exercise")

    assert problem(answer) == (409, "too-many-retiring")
    assert answer.json()["earliest"] == NOW + 140


def test_a_clock_that_is_behind_is_the_services_trouble(desk):
    """
    503 with a word that also stands in the log.
    """
    assert desk.rotate().status_code == 200
    desk.site.clock.at = NOW - 100

    answer = desk.rotate()

    assert problem(answer) == (503, "unavailable")
    assert answer.json()["code"] == "clock_behind"
    assert answer.headers["retry-after"]


def test_a_rotation_whose_record_cannot_be_written_does_not_happen(desk):
    """
    503, and the ring is as it was.
    """
    before = desk.ring()
    desk.trail().is_down = True

    answer = desk.rotate()

    assert problem(answer) == (503, "unavailable")
    assert answer.json()["code"] == "trail_unavailable"
    assert "memory" not in answer.text
    assert desk.ring() is before


def test_revoking_the_active_key(desk):
    """
    key-compromise: it leaves the key set at once, a standby signs, the bound and what was minted under it are told.
    """
    site, before = desk.site, desk.ring()
    assert site.ask(scope="orders:read").status == 200
    assert site.ask(authorization_details=site.details()).status == 200

    answer = desk.ask("POST", f"/admin/keys/{before.active.kid}/revoke", {"reason": "Found in a log."})

    members = answer.json()
    assert answer.status_code == 200
    assert (members["revoked"], members["was"]) == (before.active.kid, "active")
    assert members["active"] == members["promoted"] == before.standbys[0].kid
    assert (members["at"], members["trusted_until"]) == (NOW, NOW + 285)
    assert any("stop verifying" in notice for notice in members["notices"])
    assert members["minted"] == {
        "by": "this instance",
        "since": NOW,
        "total": 2,
        "counts": [
            {"audience": SHOP, "action": None, "count": 1},
            {"audience": SHOP, "action": "cancel_order", "count": 1},
        ],
    }
    kids = [key["kid"] for key in site.http.get("/.well-known/jwks.json").json()["keys"]]
    assert before.active.kid not in kids
    assert len(kids) == 3
    token = site.ask(scope="orders:read")
    assert token.status == 200
    assert desk.trail().records[-1]["event"] == "key_revoked"


@pytest.mark.parametrize("state", ["standby", "retiring"])
def test_revoking_another_published_key(desk, state):
    """
    F04: a standby is replaced, a retiring key is not; the one that signs goes on.
    """
    desk.rotate()
    ring = desk.ring()
    kid = (ring.standbys if state == "standby" else ring.retiring)[0].kid

    answer = desk.ask("POST", f"/admin/keys/{kid}/revoke", {"reason": "leaked"})

    members = answer.json()
    assert (members["was"], members["active"], members["promoted"]) == (state, ring.active.kid, None)
    assert (members["standby"] is None) == (state == "retiring")
    assert len(desk.ring().standbys) == 2


def test_a_revocation_does_not_wait_for_the_trail(desk):
    """
    It is in force and says that it is not on record; the next change tells the trail.
    """
    active = desk.ring().active.kid
    desk.trail().is_down = True

    answer = desk.ask("POST", f"/admin/keys/{active}/revoke", {"reason": "leaked"})

    assert (answer.status_code, answer.json()["recorded"]) == (200, False)
    assert desk.ring().active.kid != active
    assert ("audit_spilled", "root") in [(event, facts["workspace"]) for event, facts in desk.site.events]
    desk.trail().is_down = False
    assert desk.rotate().status_code == 200
    assert [record["event"] for record in desk.trail().records] == ["audit_gap", "keys_rotated"]


def test_only_a_published_key_can_be_revoked(desk):
    """
    404 for one that the ring does not hold, 409 with its state for one that has left the key set.
    """
    active = desk.ring().active.kid
    revoke = f"/admin/keys/{active}/revoke"
    assert desk.ask("POST", revoke, {"reason": "leaked"}).status_code == 200

    again = desk.ask("POST", revoke, {"reason": "leaked"})
    unknown = desk.ask("POST", "/admin/keys/no-such-kid/revoke", {"reason": "leaked"})

    assert problem(again) == (409, "key-not-published")
    assert (again.json()["state"], again.json()["unpublished_at"]) == ("revoked", NOW)
    assert problem(unknown) == (404, "unknown-key")


def test_revoking_all_published_keys(desk):
    """
    Every key goes and a new one signs now; what was minted under any of them is told.
    """
    desk.site.ask()
    before = desk.ring()

    answer = desk.ask("POST", "/admin/keys/revoke-all", {"reason": "A backup was stolen."})

    members, after = answer.json(), desk.ring()
    assert answer.status_code == 200
    assert set(members["revoked"]) == {record.kid for record in before.published(NOW)}
    assert {record.kid for record in after.published(NOW)}.isdisjoint(members["revoked"])
    assert (members["active"], members["standbys"]) == (after.active.kid, [each.kid for each in after.standbys])
    assert (members["trusted_until"], members["minted"]["total"]) == (NOW + 285, 1)
    record = desk.trail().records[-1]
    assert (record["event"], record["after"]["revoked"]) == ("keys_revoked", members["revoked"])


def test_records_that_a_ring_no_longer_holds_stay_in_the_trail(desk):
    """
    The oldest ended keys are handed over with all their instants and their public point.
    """
    first = desk.ring().active
    while first.kid in {record.kid for record in desk.ring().records}:
        desk.site.clock.at += 1
        assert desk.ask("POST", "/admin/keys/revoke-all", {"reason": "exercise"}).status_code == 200

    pruned = [each for record in desk.trail().records for each in record["after"]["pruned"]]
    found = next(each for each in pruned if each["kid"] == first.kid)
    assert (found["state"], found["activated_at"], found["x"]) == ("revoked", NOW - 1000, first.public_jwk["x"])
    assert "private_jwk" not in str(pruned)
    assert "'d'" not in str(pruned)


def test_a_store_that_is_down_is_a_problem_of_its_own(desk):
    """
    503 with the code of what failed, never a file's name; the ring that is in use goes on.
    """
    desk.site.ring_stores["root"].failure = FileUnreadable(path="/secret-place", problem="gone")

    answers = [desk.ask("GET", "/admin/keys"), desk.rotate(), desk.ask("GET", "/admin/suspensions")]

    assert [problem(answer) for answer in answers] == [(503, "unavailable")] * 3
    assert {answer.json()["code"] for answer in answers} == {"file_unreadable"}
    assert all("secret-place" not in answer.text for answer in answers)
    assert all(answer.headers["audit-head"] for answer in answers)
    assert desk.site.ask().status == 200


def test_what_nobody_expected_is_reported_and_says_nothing(desk):
    """
    pd-no-leak: a generic 500 as problem details.
    """
    desk.site.ring_stores["root"].failure = RuntimeError("secret-marked-1")

    answer = desk.ask("GET", "/admin/keys")

    assert problem(answer) == (500, "internal-error")
    assert "secret-marked-1" not in answer.text
    assert [type(failure) for failure in desk.site.failures] == [RuntimeError]


def test_each_workspace_has_its_own_keys(desk):
    """
    A rotation below one issuer leaves the keys of the other alone.
    """
    before = desk.ring("root")

    answer = desk.rotate(workspace="acme")

    assert answer.json()["workspace"] == "acme"
    assert desk.ring("root") is before
    assert desk.trail("root").records == []


def test_head_is_answered_as_get_without_a_body(one_desk):
    """
    RFC 9110 section 9.3.2; an assertion names the method.
    """
    answer = one_desk.ask("HEAD", "/admin/keys", admin="robot")

    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["audit-head"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", "/admin/keys"), ("GET", "/admin/keys/rotate"), ("PUT", "/admin/suspensions"), ("POST", "/admin/audit")],
)
def test_other_methods_are_not_allowed(one_desk, method, path):
    """
    405 as a problem with the methods there are.
    """
    answer = one_desk.ask(method, path)

    assert problem(answer) == (405, "method-not-allowed")
    assert answer.headers["allow"]


def test_calls_are_counted_by_their_template(desk):
    """
    Neither a workspace nor a kid is a label of a metric.
    """
    desk.ask("POST", "/admin/keys/some-kid/revoke", {"reason": "x"}, workspace="acme")
    desk.ask("DELETE", "/admin/suspensions/sus-1")

    text = desk.site.http.get("/metrics").text
    assert '{method="POST",route="{workspace}/admin/keys/{kid}/revoke",status="404"} 1.0' in text
    assert '{method="DELETE",route="{workspace}/admin/suspensions/{suspension_id}",status="404"} 1.0' in text
    assert "some-kid" not in text


def test_the_books_are_entered(desk):
    """
    Calls that only read are counted and put on record together.
    """
    for _ in range(3):
        desk.ask("GET", "/admin/keys", admin="reader")

    asyncio.run(desk.site.service.offices["root"].books.enter())

    records = [record for record in desk.trail().records if record["event"] == "admin_called"]
    assert [(record["target"], record["actor"]["name"], record["count"]) for record in records] == [
        ("keys:list", "reader", 3)
    ]
