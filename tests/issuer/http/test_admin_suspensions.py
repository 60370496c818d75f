"""
Suspensions over HTTP: in force at once, listed without customers' ids, lifted by their id; all of it on record.
"""

import pytest

from issuer.suspensions import MAX_SUSPENSIONS

from ..estate import problem
from ..world import NOW

CUSTOMER = {"kind": "customer", "namespace": "shop-login", "sub": "cus_48213", "reason": "Account taken over."}


def suspend(desk, body, **options):
    return desk.ask("POST", "/admin/suspensions", body, **options)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"kind": "client", "value": "orc_main", "reason": "leaked"}, "unauthorized_client"),
        ({"kind": "agent", "value": "agt_support", "reason": "leaked"}, "access_denied"),
        ({"kind": "action", "value": "cancel_order", "reason": "leaked"}, "access_denied"),
        (CUSTOMER, "access_denied"),
    ],
)
def test_a_suspension_is_in_force_at_once(desk, body, error):
    """
    The next request for a token is refused, until it is lifted.
    """
    site = desk.site
    assert site.ask(authorization_details=site.details()).status == 200

    answer = suspend(desk, body)

    members = answer.json()
    assert answer.status_code == 201
    assert (members["kind"], members["reason"], members["at"], members["until"]) == (
        body["kind"],
        body["reason"],
        NOW,
        None,
    )
    assert members["tokens_expire_by"] == NOW + 61
    assert len(members["notices"]) == 1
    assert site.ask(authorization_details=site.details()).error == error
    lifted = desk.ask("DELETE", f"/admin/suspensions/{members['id']}")
    assert (lifted.status_code, lifted.json()["lifted"]["id"]) == (200, members["id"])
    assert site.ask(authorization_details=site.details()).status == 200
    assert [record["event"] for record in desk.trail().records] == ["suspension_added", "suspension_lifted"]
    assert desk.trail().records[0]["reason"] == body["reason"]


def test_customers_are_shown_by_their_hash_alone(desk):
    """
    No answer, log line or record holds the id; the hash is the same in all of them.
    """
    added = suspend(desk, CUSTOMER)
    listed = desk.ask("GET", "/admin/suspensions")
    lifted = desk.ask("DELETE", f"/admin/suspensions/{added.json()['id']}")

    hashed = added.json()["customer_hash"]
    (shown,) = listed.json()["suspensions"]
    assert (shown["namespace"], shown["customer_hash"]) == ("shop-login", hashed)
    assert "value" not in shown
    assert [record["target"] for record in desk.trail().records] == [hashed, hashed]
    told = f"{added.text}{listed.text}{lifted.text}{desk.trail().kept}{desk.site.events}"
    assert "cus_48213" not in told


def test_a_suspension_may_end_by_itself(desk):
    """
    At `until`; then it is not listed, cannot be lifted, and stops nobody.
    """
    added = suspend(desk, {"kind": "client", "value": "orc_main", "reason": "x", "until": NOW + 600})
    desk.site.clock.at = NOW + 600

    assert added.json()["until"] == NOW + 600
    assert desk.site.ask().status == 200
    assert desk.ask("GET", "/admin/suspensions").json()["suspensions"] == []
    assert problem(desk.ask("DELETE", f"/admin/suspensions/{added.json()['id']}")) == (404, "unknown-suspension")


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "client", "value": "orc_mian", "reason": "x"},
        {"kind": "agent", "value": "agt_suport", "reason": "x"},
        {"kind": "action", "value": "cancel", "reason": "x"},
        {**CUSTOMER, "namespace": "shop"},
    ],
)
def test_an_unknown_name_is_suspended_and_pointed_out(desk, body):
    """
    It may be known elsewhere; when it was mistyped, the answer says so.
    """
    answer = suspend(desk, body)

    assert answer.status_code == 201
    assert "has no" in answer.json()["notices"][0]


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "tenant", "value": "x", "reason": "x"},
        {"kind": "client", "reason": "x"},
        {"kind": "client", "value": None, "reason": "x"},
        {"kind": "client", "value": "", "reason": "x"},
        {"kind": "client", "value": "x" * 257, "reason": "x"},
        {"kind": "client", "value": "a\nb", "reason": "x"},
        {"kind": "client", "value": 7, "reason": "x"},
        {"kind": "client", "value": "x"},
        {"kind": "client", "value": "x", "reason": ""},
        {"kind": "client", "value": "x", "reason": "y" * 501},
        {"kind": "client", "value": "x", "sub": "x", "reason": "x"},
        {"kind": "client", "value": "x", "namespace": "x", "reason": "x"},
        {"kind": "client", "value": "x", "reason": "x", "until": NOW},
        {"kind": "client", "value": "x", "reason": "x", "until": NOW - 1},
        {"kind": "client", "value": "x", "reason": "x", "until": 1e10},
        {"kind": "client", "value": "x", "reason": "x", "until": True},
        {"kind": "client", "value": "x", "reason": "x", "until": 10**15},
        {"kind": "customer", "value": "x", "reason": "x"},
        {"kind": "customer", "sub": "x", "reason": "x"},
        {"kind": "customer", "namespace": "x", "reason": "x"},
        {**CUSTOMER, "value": "x"},
        {**CUSTOMER, "sub": "x" * 1025},
        {"value": "x", "reason": "x"},
    ],
)
def test_a_suspension_that_is_none_is_refused(one_desk, body):
    """
    400, and nobody is suspended.
    """
    before = one_desk.ring()

    answer = suspend(one_desk, body)

    assert problem(answer) == (400, "invalid-body")
    assert one_desk.ring() is before


def test_members_that_are_null_are_not_there(desk):
    """
    As a client writes them that sends every member.
    """
    body = {"kind": "client", "value": "orc_main", "namespace": None, "sub": None, "until": None, "reason": "x"}

    assert suspend(desk, body).status_code == 201


def test_there_is_room_for_so_many(desk):
    """
    409 with the limit, and those that have ended make room.
    """
    for at in range(20):
        assert suspend(desk, {**CUSTOMER, "sub": f"{at:0>800}", "until": NOW + 60}).status_code == 201

    answers = [suspend(desk, {**CUSTOMER, "sub": f"{at:0>800}"}) for at in range(3)]

    assert problem(answers[-1]) == (409, "suspensions-full")
    assert answers[-1].json()["limit"] == MAX_SUSPENSIONS
    desk.site.clock.at += 60
    assert suspend(desk, CUSTOMER).status_code == 201


def test_what_cuts_off_does_not_wait_for_the_trail(desk):
    """
    A suspension is in force and says that it is not on record; lifting one waits.
    """
    added = suspend(desk, {"kind": "client", "value": "orc_second", "reason": "x"}).json()["id"]
    desk.trail().is_down = True

    answer = suspend(desk, {"kind": "client", "value": "orc_main", "reason": "leaked"})

    assert (answer.status_code, answer.json()["recorded"]) == (201, False)
    assert desk.site.ask().error == "unauthorized_client"
    assert problem(desk.ask("DELETE", f"/admin/suspensions/{added}")) == (503, "unavailable")


def test_suspensions_live_through_rotations(desk):
    """
    They stand beside the keys, and no step in the life of a key touches them.
    """
    suspend(desk, {"kind": "client", "value": "orc_main", "reason": "leaked"})

    desk.rotate()
    desk.ask("POST", "/admin/keys/revoke-all", {"reason": "stolen"})

    assert desk.site.ask().error == "unauthorized_client"
    assert desk.site.ask(client="orc_second").status == 200


def test_workspaces_do_not_share_them(desk):
    """
    The same client of another workspace goes on.
    """
    suspend(desk, {"kind": "client", "value": "orc_main", "reason": "leaked"})

    assert desk.site.ask(workspace="acme").status == 200
    assert desk.ask("GET", "/admin/suspensions", workspace="acme").json()["suspensions"] == []
