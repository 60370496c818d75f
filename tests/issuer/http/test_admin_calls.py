"""
What admin calls take: strict JSON of one media type, within bounds, and a key that makes two of them one.
"""

import threading

import pytest

from issuer.admin_idempotency import RETENTION_S, MemoryAdminRecords

from ..estate import NUMBERS, problem
from ..world import NOW

KEY = "idk-of-the-tests-once"
REASON = b'{"reason": "leaked"}'


def revoke_all(desk, body=REASON, **headers):
    return desk.ask("POST", "/admin/keys/revoke-all", body, headers=headers)


def new_key():
    return f"idk-of-the-tests-{next(NUMBERS)}"


@pytest.mark.parametrize(
    "media_type",
    ["application/json", "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"'],
)
def test_json_in_utf_8_is_taken(desk, media_type):
    """
    RFC 8259 section 8.1, whatever its case.
    """
    assert revoke_all(desk, **{"Content-Type": media_type}).status_code == 200


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json, application/json",
        "application/json; charset=utf-16",
        "application/json; charset=utf-8; x=1",
        "application/problem+json",
        "text/json",
        "",
        None,
    ],
)
def test_nothing_else_is_json(one_desk, media_type):
    """
    E10, E20: 415 as problem details, and nothing was done.
    """
    before = one_desk.ring()

    answer = revoke_all(one_desk, **{"Content-Type": media_type})

    assert problem(answer) == (415, "unsupported-media-type")
    assert answer.headers["audit-head"]
    assert one_desk.ring() is before


def test_rotate_as_text_is_refused(one_desk):
    """
    E10, the admin row: POST /admin/keys/rotate with text/plain JSON.
    """
    headers = {"Content-Type": "text/plain", "Idempotency-Key": new_key()}

    answer = one_desk.ask(
        "POST", "/admin/keys/rotate", {"expected_active": one_desk.ring().active.kid}, headers=headers
    )

    assert problem(answer) == (415, "unsupported-media-type")


E20 = {
    "deep array": b"[" * 100_000,
    "deep object": b'{"a":' * 2_000 + b"1" + b"}" * 2_000,
    "BOM": b"\xef\xbb\xbf{}",
    "two values": b"{} {}",
    "many digits": b'{"until":1' + b"0" * 5_000 + b"}",
    "null": b"null",
    "array": b"[]",
    "text": b'"x"',
    "nothing": b"",
    "utf-16": '{"reason":"x"}'.encode("utf-16"),
    "latin-1": b'{"reason":"\xe9"}',
    "equal members": b'{"reason":"a","reason":"b"}',
    "equal members, escaped": b'{"reason":"a","re\\u0061son":"b"}',
    "lone surrogate": b'{"reason":"\\ud800"}',
    "NaN": b'{"reason":NaN}',
    "unfinished": b'{"reason":"x"',
    "many members": b"{" + b",".join(b'"m%d":1' % at for at in range(1_500)) + b"}",
}


@pytest.mark.parametrize("body", E20.values(), ids=E20.keys())
def test_odd_bodies_are_refused(one_desk, body):
    """
    E20: 400 for every one of them, 500 for none, and nothing was done.
    """
    before = one_desk.ring()

    answer = revoke_all(one_desk, body)

    assert problem(answer) == (400, "invalid-body")
    assert one_desk.ring() is before


@pytest.mark.parametrize(("size", "status"), [(128 * 1024, 200), (128 * 1024 + 1, 413), (10_000_000, 413)])
def test_a_body_is_read_up_to_128_kib(desk, size, status):
    """
    E20: 413 before anything is parsed.
    """
    answer = revoke_all(desk, REASON + b" " * (size - len(REASON)))

    assert answer.status_code == status
    assert answer.headers["audit-head"]


def test_a_compressed_body_is_refused(one_desk):
    """
    E20: a content coding is 415, so there is nothing to unpack.
    """
    assert problem(revoke_all(one_desk, **{"Content-Encoding": "gzip"})) == (415, "unsupported-media-type")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"reason": "x", "resaon": "y"}, ["resaon"]),
        ({"reason": "x", "Reason": "y", "a": 1}, ["Reason", "a"]),
        ({"reason": "x", "eyJhbGciOiJFUzI1NiJ9.e30.c2lnbmF0dXJl": 1, "<script>": 2}, []),
        ({"reason": "x", **{f"m{at}": 1 for at in range(20)}}, [f"m{at}" for at in (0, 1, 10, 11, 12, 13, 14, 15)]),
    ],
)
def test_unknown_members_are_named(one_desk, body, named):
    """
    400 with those that look like names, at most eight; nothing that could be a token is repeated.
    """
    answer = one_desk.ask("POST", "/admin/keys/revoke-all", body)

    assert problem(answer) == (400, "invalid-body")
    assert answer.json()["unknown_members"] == named


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"expected_active": None},
        {"expected_active": 7},
        {"expected_active": "{kid}", "force": "true"},
        {"expected_active": "{kid}", "force": 1},
        {"expected_active": "{kid}", "force": None},
        {"expected_active": "{kid}", "reason": 7},
        {"expected_active": "{kid}", "reason": ""},
        {"expected_active": "{kid}", "reason": "x" * 501},
        {"expected_active": "{kid}", "reason": "two\nlines"},
        {"expected_active": "{kid}", "force": True},
    ],
)
def test_members_have_their_types_and_bounds(one_desk, body):
    """
    400 for one that is missing or of another type, and for a reason that says nothing.
    """
    before = one_desk.ring()
    members = {name: before.active.kid if value == "{kid}" else value for name, value in body.items()}

    answer = one_desk.ask("POST", "/admin/keys/rotate", members, headers={"Idempotency-Key": new_key()})

    assert problem(answer) == (400, "invalid-body")
    assert one_desk.ring() is before


def test_a_rotation_needs_an_idempotency_key(desk):
    """
    idk-missing: 400 without one; a revocation and a suspension do without.
    """
    before = desk.ring()
    body = {"expected_active": before.active.kid}

    answer = desk.ask("POST", "/admin/keys/rotate", body)

    assert problem(answer) == (400, "idempotency-key-missing")
    assert desk.ring() is before
    assert desk.ask("POST", "/admin/suspensions", {"kind": "agent", "value": "a", "reason": "x"}).status_code == 201
    assert desk.ask("POST", f"/admin/keys/{before.active.kid}/revoke", {"reason": "x"}).status_code == 200


@pytest.mark.parametrize(
    "key",
    ["", "x" * 15, "x" * 129, '"' + "x" * 15 + '"', "x" * 20 + " y", '"' + "x" * 20, "x" * 20 + "\\", "x" * 20 + "/"],
)
def test_a_key_has_its_syntax(one_desk, key):
    """
    idk-syntax: 16 to 128 characters of the alphabet; 400 for anything else, also where no key is needed.
    """
    before = one_desk.ring()

    assert problem(one_desk.rotate(key=key or " ")) == (400, "idempotency-key-malformed")
    assert problem(revoke_all(one_desk, **{"Idempotency-Key": key or " "})) == (400, "idempotency-key-malformed")
    assert one_desk.ring() is before


def test_both_spellings_are_one_key(desk):
    """
    idk-syntax, D17: bare and as a structured-field String.
    """
    first = desk.rotate(key=KEY)
    active = desk.ring().active.kid
    again = desk.rotate(key=f'"{KEY}"', expected_active=first.json()["retired"])

    assert (again.status_code, again.json()) == (200, first.json())
    assert desk.ring().active.kid == active


def test_a_repeated_call_hears_the_same_answer(desk):
    """
    D12, idk-concurrent: the stored status and body; nothing is done again, and the head is that of now.
    """
    body = {"kind": "agent", "value": "agt_support", "reason": "leaked"}
    headers = {"Idempotency-Key": KEY}

    first = desk.ask("POST", "/admin/suspensions", body, headers=headers)
    desk.rotate()
    again = desk.ask("POST", "/admin/suspensions", body, headers=headers)

    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    assert len(desk.ask("GET", "/admin/suspensions").json()["suspensions"]) == 1
    assert (first.headers["audit-head"][:2], again.headers["audit-head"][:2]) == ("1.", "2.")


def test_order_of_members_and_defaults_make_no_difference(desk):
    """
    What counts is what was asked for, not how it was written.
    """
    active = desk.ring().active.kid
    first = desk.rotate(key=KEY, expected_active=active)

    written = f'{{ "reason": null, "force" : false, "expected_active": "{active}" }}'.encode()
    again = desk.ask("POST", "/admin/keys/rotate", written, headers={"Idempotency-Key": KEY})

    assert again.json() == first.json()


def test_the_key_with_another_body_is_refused(desk):
    """
    idk-missing, G01: 422, no second rotation, and the record stays as it is.
    """
    first = desk.rotate(key=KEY)
    ring = desk.ring()

    other = desk.rotate(key=KEY)

    assert problem(other) == (422, "idempotency-key-reused")
    assert desk.ring() is ring
    assert desk.rotate(key=KEY, expected_active=first.json()["retired"]).json() == first.json()


def test_a_key_belongs_to_its_admin_and_path(desk):
    """
    idk-composite, G01: with another admin, path or workspace it is another call, and never hears the other's answer.
    """
    headers = {"Idempotency-Key": KEY}
    body = {"expected_active": desk.ring().active.kid}
    first = desk.ask("POST", "/admin/keys/rotate", body, headers=headers)

    by_robot = desk.ask("POST", "/admin/keys/rotate", body, admin="robot", headers=headers)
    elsewhere = desk.ask("POST", f"/admin/keys/{first.json()['retired']}/revoke", {"reason": "x"}, headers=headers)
    at_acme = desk.rotate(key=KEY, workspace="acme")

    assert problem(by_robot) == (409, "active-key-differs")
    assert elsewhere.json()["revoked"] == first.json()["retired"]
    assert at_acme.json()["workspace"] == "acme"


def test_the_token_endpoint_and_the_admin_routes_share_no_keys(desk):
    """
    G01: the key of a confirmed action says nothing about an admin call.
    """
    site = desk.site
    assert site.ask(authorization_details=site.details(idempotencyKey=KEY)).status == 200

    assert desk.rotate(key=KEY).status_code == 200


def test_a_refused_call_is_not_remembered(desk):
    """
    Nothing was done: the same key asks again, and is done once it is possible.
    """
    desk.site.clock.at = NOW - 700
    early = desk.rotate(key=KEY)
    desk.site.clock.at = NOW

    assert problem(early) == (409, "standby-not-mature")
    assert desk.rotate(key=KEY).status_code == 200


def test_a_record_is_gone_after_a_day(desk):
    """
    The time that is documented.
    """
    first = desk.rotate(key=KEY)
    desk.site.clock.at += RETENTION_S

    answer = desk.rotate(key=KEY)

    assert (first.status_code, answer.status_code) == (200, 200)
    assert answer.json()["retired"] == first.json()["active"]


def test_twenty_calls_with_one_key_are_one_rotation(desk):
    """
    idk-concurrent: one rotation; the others hear its answer, or that it is going on.
    """
    active, answers = desk.ring().active.kid, []
    assert desk.site.http
    threads = [
        threading.Thread(target=lambda: answers.append(desk.rotate(key=KEY, expected_active=active))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    done = [answer.json() for answer in answers if answer.status_code == 200]
    assert all(answer == done[0] for answer in done)
    assert {problem(answer) for answer in answers if answer.status_code != 200} <= {(409, "call-in-progress")}
    assert [record["event"] for record in desk.trail().records] == ["keys_rotated"]


def with_records(desk, records):
    # What the service remembers was settled when its routes were built.
    object.__setattr__(desk.site.service.state, "admin_records", records)
    return desk


class EndlessCalls(MemoryAdminRecords):
    """
    A store that never hears of the end of a call.
    """

    async def finish(self, *asked):
        pass


def test_a_call_that_goes_on_is_said_to(desk):
    """
    idk-concurrent: 409 while the first is running.
    """
    with_records(desk, EndlessCalls())
    active = desk.ring().active.kid
    desk.rotate(key=KEY, expected_active=active)

    answer = desk.rotate(key=KEY, expected_active=active)

    assert problem(answer) == (409, "call-in-progress")


@pytest.fixture
def full(desk):
    """
    A service that remembers no more calls.
    """
    return with_records(desk, MemoryAdminRecords(max_records=0))


def test_too_many_remembered_calls(full):
    """
    429 for a rotation, which needs to be remembered; what cuts off is never refused for that.
    """
    answer = full.rotate()

    assert problem(answer) == (429, "too-many-requests")
    assert answer.headers["retry-after"]
    assert revoke_all(full, **{"Idempotency-Key": KEY}).status_code == 200


class BrokenRecords(MemoryAdminRecords):
    """
    A store that fails when it is asked, or only when it is told.
    """

    def __init__(self, *broken):
        super().__init__()
        self.broken = broken

    async def claim(self, *asked):
        self.fail("claim")
        return await super().claim(*asked)

    async def finish(self, *asked):
        self.fail("finish")

    async def release(self, *asked):
        self.fail("release")

    def fail(self, name):
        if name in self.broken:
            raise OSError("secret-marked-1")


def test_without_its_store_a_rotation_is_refused_and_a_revocation_is_not(desk):
    """
    503 where a key is needed; an emergency goes on, and the log says that it was not remembered.
    """
    with_records(desk, BrokenRecords("claim"))

    answer = desk.rotate()

    assert problem(answer) == (503, "unavailable")
    assert answer.json()["code"] == "records_unavailable"
    assert revoke_all(desk, **{"Idempotency-Key": KEY}).status_code == 200
    assert [facts for event, facts in desk.site.events if event == "admin_records_failed"] == [
        {"workspace": "root", "problem": "OSError"}
    ] * 2


def test_what_was_done_is_answered_although_it_cannot_be_remembered(desk):
    """
    A store that fails afterwards turns no answer into another one.
    """
    with_records(desk, BrokenRecords("finish", "release"))

    assert desk.rotate(expected_active="another").status_code == 409
    assert desk.rotate().status_code == 200


def test_a_call_that_fails_is_forgotten(desk):
    """
    The key does not stay taken when nobody knows what went wrong.
    """
    store, active = desk.site.ring_stores["root"], desk.ring().active.kid
    store.failure = RuntimeError("gone")

    failed = desk.rotate(key=KEY, expected_active="x")
    store.failure = None

    assert failed.status_code == 500
    assert desk.rotate(key=KEY, expected_active=active).status_code == 200


@pytest.mark.parametrize(("method", "path"), [("GET", "/admin/keys"), ("GET", "/admin/suspensions")])
def test_bodies_of_calls_that_take_none_are_not_read(one_desk, method, path):
    """
    RFC 9110 section 9.3.1: content of GET means nothing.
    """
    assert one_desk.ask(method, path, b"x" * 100_000).status_code == 200
