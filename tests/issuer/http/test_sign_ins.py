"""
The routes of sign-ins: what they take, what they answer, who may call them, and what a provider's logout ends.
"""

from types import SimpleNamespace

import pytest

from issuer.limits import Rate, Rates
from issuer.limits_memory import MemoryLimits

from ..signed_in import SignedIn, with_provider
from ..world import DROP, NOW, ORIGIN

HANDLE = "b8lqWkYbJQ0mVh2yqzv3Cg"
BODIES = {
    "open arrays": (b"[" * 60_000, 400),
    "deep objects": (b'{"id_token":' + b'{"a":' * 1000 + b"1" + b"}" * 1000 + b"}", 400),
    "spaces": (b" " * 10_000_000, 413),
    "many members": (b"{" + b",".join(b'"k%d":1' % n for n in range(100_000)) + b"}", 413),
    "byte order mark": (b"\xef\xbb\xbf{}", 400),
    "two values": (b"{} {}", 400),
    "long number": (b'{"id_token":' + b"1" * 5000 + b"}", 400),
    "null": (b"null", 400),
    "empty": (b"", 400),
    "no token": (b"{}", 400),
    "token of another type": (b'{"id_token": 5}', 400),
    "unknown member": (b'{"id_token": "x", "sub": "cus_1"}', 400),
    "equal members": (b'{"id_token": "x", "id_token": "x"}', 400),
    "empty conversation": (b'{"id_token": "x", "conversation": ""}', 400),
    "long conversation": (b'{"id_token": "x", "conversation": "' + b"c" * 129 + b'"}', 400),
    "conversation with a line break": (b'{"id_token": "x", "conversation": "a\\nb"}', 400),
}


@pytest.fixture
def signed_in():
    site = SignedIn()
    yield site
    site.close()


def test_a_sign_in_is_recorded_and_its_id_told_once(signed_in):
    """
    The answer has the id, the handle and what was recorded; asked for again it has everything but the id.
    """
    status, headers, told = signed_in.record(conversation="conv_71")
    path = headers["location"].removeprefix(ORIGIN)
    shown_status, shown_headers, shown = signed_in.about("GET", path)

    assert (status, shown_status) == (201, 200)
    assert headers["cache-control"] == shown_headers["cache-control"] == "no-store"
    assert len(told.pop("sign_in_id")) == 43
    assert told == shown
    assert told.pop("handle") == path.rpartition("/")[2]
    assert told == {
        "connection": "shop",
        "namespace": "shop-login",
        "level": "standard",
        "auth_time": NOW - 20,
        "recorded_at": NOW,
        "expires_at": NOW + 8 * 3600,
        "confirmed_after": None,
    }


def test_a_sign_in_that_is_ended_is_none(signed_in):
    """
    DELETE ends it at once, for tokens as well, and a second time there is none.
    """
    _, headers, told = signed_in.record()
    path = headers["location"].removeprefix(ORIGIN)

    ended = signed_in.about("DELETE", path)
    again = signed_in.about("DELETE", path)
    shown = signed_in.about("GET", path)

    assert (ended[0], ended[2]) == (204, None)
    assert [(answer[0], answer[2]["type"]) for answer in (again, shown)] == [
        (404, "urn:caplo:problem:unknown-sign-in")
    ] * 2
    assert signed_in.ask_with(told["sign_in_id"]).reason == "sign_in:unknown"


def test_the_sign_ins_of_others_are_not_to_be_seen(signed_in):
    """
    Another client, and the same one at another issuer, hear that there is none, and end nothing.
    """
    _, headers, told = signed_in.record()
    path = headers["location"].removeprefix(ORIGIN)

    statuses = {
        signed_in.about(method, path, client=client, workspace=workspace)[0]
        for method in ("GET", "DELETE")
        for client, workspace in (("c1", "root"), ("orc_basic", "acme"))
    }

    assert statuses == {404}
    assert signed_in.ask_with(told["sign_in_id"]).status == 200


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/sign-ins"), ("GET", f"/sign-ins/{HANDLE}"), ("DELETE", f"/sign-ins/{HANDLE}")]
)
def test_only_a_client_gets_in(method, path, signed_in):
    """
    Without a credential, and with a wrong one of any kind, the answer is 401 with both challenges, and the body is not looked at.
    """
    wrong = [
        "Basic eDp5",
        "Bearer x.y.z",
        "Bearer a b",
        "Negotiate x",
        f"Bearer {signed_in.client_assertion(aud='https://other')}",
    ]

    answers = [signed_in.about(method, path, b"[", authorization=each) for each in wrong]

    for status, headers, problem in answers:
        assert (status, problem["type"]) == (401, "urn:caplo:problem:unauthenticated")
        assert headers["content-type"] == "application/problem+json"
        assert headers["www-authenticate"] == f'Basic realm="{ORIGIN}", Bearer realm="{ORIGIN}"'


def test_a_client_records_what_it_may_bring():
    """
    One that may bring no sign-in as subject token is told when it records the first, and the ID token is not looked at.
    """
    site = SignedIn(with_provider(kinds={"asserted", "id_token"}))
    try:
        token = site.id_token()
        status, _, problem = site.record(token)
        reasons = site.reasons
        exchanged = site.exchange(token)
    finally:
        site.close()

    assert (status, problem["type"]) == (400, "urn:caplo:problem:sign-ins-not-allowed")
    assert reasons == ["sign_ins:not_allowed"]
    assert exchanged.status == 200


def test_an_assertion_gets_in_once(signed_in):
    """
    ca-jti-once: the client's assertion is good here as at the token endpoint, and for one request at either.
    """
    assertion = signed_in.client_assertion()
    token = signed_in.id_token(aud="app-1")

    first = signed_in.record(token, authorization=f"Bearer {assertion}")
    second = signed_in.record(authorization=f"Bearer {assertion}")
    elsewhere = signed_in.ask(client_assertion=assertion)

    assert (first[0], second[0]) == (201, 401)
    assert elsewhere.reason == "client_assertion:replayed"


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_read_strictly(name, signed_in):
    """
    E20: what is too long, too deep, not one object or not strict JSON is refused before anything is looked up.
    """
    octets, expected = BODIES[name]

    status, headers, problem = signed_in.about("POST", "/sign-ins", octets)

    assert (status, problem["status"]) == (expected, expected)
    assert headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/json; charset=utf-16", "application/x-www-form-urlencoded", None]
)
def test_a_body_is_json_in_utf_8(media_type, signed_in):
    """
    E20: another media type or charset is 415.
    """
    lines = [("Authorization", signed_in_authorization(signed_in))]
    lines += [] if media_type is None else [("Content-Type", media_type)]

    status, _, _ = signed_in.call("POST", "/sign-ins", lines, b"{}")

    assert status == 415


def signed_in_authorization(site):
    return f"Bearer {site.client_assertion()}"


def test_too_many_sign_ins_are_refused(signed_in):
    """
    A client that has as many live sign-ins as there is room for hears 429 until some end.
    """

    async def full(*_asked):
        return "full"

    before = signed_in.service.state.sign_ins.add
    signed_in.service.state.sign_ins.add = full
    try:
        status, headers, problem = signed_in.record()
    finally:
        signed_in.service.state.sign_ins.add = before

    assert (status, problem["type"], headers["retry-after"]) == (429, "urn:caplo:problem:sign-ins-full", "60")


def test_wrong_secrets_are_counted_here_too(signed_in):
    """
    te-brute-force: the eleventh wrong secret in a minute is told to wait, wherever it came; the right one gets in all the same.
    """
    statuses = [signed_in.record(authorization="Basic b3JjX2Jhc2ljOndyb25n")[0] for _ in range(11)]

    assert statuses == [401] * 10 + [429]
    assert signed_in.record()[0] == 201


def test_a_client_over_its_limit_waits_and_may_end_sign_ins(signed_in):
    """
    Recording and showing count with the client's requests for tokens, and its ID token is left to it; ending never waits.
    """
    told = [signed_in.record()[2] for _ in range(2)]
    path = f"/sign-ins/{told[0]['handle']}"
    signed_in.state.limits = MemoryLimits(Rates(client=Rate(10_000_000, 3), customer=None), signed_in.monotonic)
    token = signed_in.id_token()

    within = [signed_in.record()[0], signed_in.about("GET", path)[0], signed_in.ask_with(told[1]["sign_in_id"]).status]
    over = [signed_in.record(token), signed_in.about("GET", path)]
    reasons = [*signed_in.reasons, signed_in.ask_with(told[1]["sign_in_id"]).reason]
    ended, other = signed_in.about("DELETE", path)[0], signed_in.record(signed_in.id_token(aud="app-4"), client="c1")[0]
    signed_in.monotonic.at += 10

    assert within == [201, 200, 200]
    assert [(status, problem["type"]) for status, _, problem in over] == [
        (429, "urn:caplo:problem:too-many-requests")
    ] * 2
    assert [headers["retry-after"] for _, headers, _ in over] == ["10", "10"]
    assert reasons == ["limit:client", "limit:client"]
    assert (ended, other) == (204, 201)
    assert signed_in.record(token)[0] == 201


def test_what_cannot_be_counted_is_not_recorded(signed_in):
    """
    As at the token endpoint: when the limits cannot be asked, the answer is to come again (503).
    """

    async def down(*_asked):
        raise OSError

    signed_in.state.limits = SimpleNamespace(request=down)

    status, headers, problem = signed_in.record()

    assert (status, problem["type"]) == (503, "urn:caplo:problem:unavailable")
    assert "retry-after" in headers
    assert signed_in.reasons == ["limits:cannot_tell"]


@pytest.mark.parametrize(
    ("token", "ended"),
    [
        ({"sid": DROP}, {1, 2}),
        ({"sub": DROP}, {1}),
        ({}, {1}),
        ({"sid": DROP, "sub": "another"}, set()),
        ({"aud": "app-4"}, set()),
    ],
    ids=["the customer", "the session", "both", "another customer", "another client"],
)
def test_a_logout_ends_what_it_is_about(token, ended, signed_in):
    """
    Back-Channel Logout 1.0: with `sub` alone every sign-in of the customer ends, with `sid` those of the session.
    """
    made = {
        number: signed_in.record(signed_in.id_token(sid=f"session-{number}", sub=f"cus_{token.get('aud')}"))[2][
            "sign_in_id"
        ]
        for number in (1, 2)
    }
    usual = {"sid": "session-1", "sub": f"cus_{token.get('aud')}"}

    status, headers, problem = signed_in.log_out(signed_in.logout_token(**{**usual, **token}))

    assert (status, problem, headers["cache-control"]) == (200, None, "no-store")
    gone = {number for number, sign_in in made.items() if signed_in.ask_with(sign_in).status != 200}
    assert gone == ended


@pytest.mark.parametrize(
    ("reason", "token"),
    [
        ("type", {"header": {"typ": "JWT"}}),
        ("issuer", {"issuer": "https://login.other.example"}),
        ("audience", {"aud": "app-9"}),
        ("signature", {"key": "rsa-2", "header": {"kid": "rsa-1"}}),
        ("nonce", {"nonce": "n"}),
        ("events", {"events": {}}),
        ("jti", {"jti": DROP}),
        ("too_old", {"iat": NOW - 301}),
    ],
)
def test_a_logout_token_that_is_not_acceptable_ends_nothing(reason, token, signed_in):
    """
    Each fault is 400 with its own reason, and the customer stays signed in.
    """
    told = signed_in.record(signed_in.id_token(sid="session-1"))[2]

    status, _, problem = signed_in.log_out(signed_in.logout_token(sid="session-1", **token))

    assert (status, problem["type"], problem["reason"]) == (400, "urn:caplo:problem:logout-token-refused", reason)
    assert signed_in.reasons == [f"logout_token:{reason}"]
    assert signed_in.ask_with(told["sign_in_id"]).status == 200


def test_a_logout_ends_nothing_that_came_after_it(signed_in):
    """
    However late and however often its token arrives, whoever signed in again since stays signed in.
    """
    token = signed_in.logout_token(sid=DROP, iat=NOW - 10)
    before, after = (signed_in.record(signed_in.id_token(iat=NOW - at))[2]["sign_in_id"] for at in (10, 9))

    statuses = [signed_in.log_out(token)[0] for _ in range(2)]

    assert statuses == [200, 200]
    assert [signed_in.ask_with(each).reason for each in (before, after)] == ["sign_in:unknown", None]


@pytest.mark.parametrize(
    ("logout", "refused"),
    [
        ({"sid": DROP}, True),
        ({"sub": DROP}, True),
        ({}, True),
        ({"sid": "session-2"}, False),
        ({"sid": DROP, "iat": NOW - 11}, False),
        ({"sid": DROP, "aud": "app-4"}, False),
    ],
    ids=["the customer", "the session", "both", "another session", "before", "another client"],
)
def test_an_id_token_from_before_a_logout_comes_too_late(logout, refused, signed_in):
    """
    A customer who has signed out meanwhile is not signed in by a token that was on its way, at either endpoint.
    """
    tokens = [signed_in.id_token(sid="session-1", iat=NOW - 10) for _ in range(2)]
    assert signed_in.log_out(signed_in.logout_token(**{"sid": "session-1", "iat": NOW - 10, **logout}))[0] == 200

    status, _, answer = signed_in.record(tokens[0])
    exchanged = signed_in.exchange(tokens[1])

    if refused:
        assert (status, answer["reason"]) == (400, "logged_out")
        assert exchanged.refusal == (400, "invalid_request", "id_token:logged_out")
    else:
        assert (status, exchanged.status) == (201, 200)
    assert signed_in.record(signed_in.id_token(sid="session-3", iat=NOW))[0] == 201


def test_a_logout_that_failed_is_taken_when_it_comes_again(signed_in):
    """
    A provider that hears 503 sends the same token once more, and that ends the sign-in.
    """
    told = signed_in.record(signed_in.id_token(sid="session-1"))[2]
    token = signed_in.logout_token(sid="session-1")
    records = signed_in.service.state.sign_ins

    async def down(*_asked, **_more):
        raise OSError

    records.end_at_logout = down
    try:
        failed = signed_in.log_out(token)
    finally:
        del records.end_at_logout

    assert (failed[0], failed[2]["code"]) == (503, "sign_ins_cannot_tell")
    assert signed_in.log_out(token)[0] == 200
    assert signed_in.ask_with(told["sign_in_id"]).reason == "sign_in:unknown"


@pytest.mark.parametrize("body", [b"", b"logout_token=", b"logout_token=x&logout_token=x", b"token=x", b"\xff"])
def test_a_logout_has_one_token(body, signed_in):
    """
    Anything else than one token in a form is a malformed request.
    """
    status, headers, problem = signed_in.log_out(body=body or b"x")

    assert (status, problem["status"]) == (400, 400)
    assert headers["content-type"] == "application/problem+json"
