"""
Who is let in to the admin routes, what everybody else hears, and what is left of it in log and trail.
"""

import asyncio
import json

import pytest

from verifier.challenge import parse_challenges
from verifier.compact import b64url_encode

from ..estate import ADMIN_SECRETS, credential, problem
from ..world import NOW, ORIGIN, basic

CALLS = [
    ("GET", "/admin/keys", None, "keys:read"),
    ("POST", "/admin/keys/rotate", {"expected_active": "x"}, "keys:rotate"),
    ("POST", "/admin/keys/x/revoke", {"reason": "x"}, "keys:revoke"),
    ("POST", "/admin/keys/revoke-all", {"reason": "x"}, "keys:revoke"),
    ("GET", "/admin/suspensions", None, "suspensions"),
    ("POST", "/admin/suspensions", {"kind": "client", "value": "x", "reason": "x"}, "suspensions"),
    ("DELETE", "/admin/suspensions/x", None, "suspensions"),
    ("GET", "/admin/audit", None, "audit:read"),
]


@pytest.mark.parametrize(("method", "path", "body", "permission"), CALLS)
@pytest.mark.parametrize("workspace", ["root", "acme"])
def test_a_401_offers_both_schemes(one_desk, method, path, body, permission, workspace):
    """
    D11, ch-401-challenge: problem details with a Basic and a Bearer challenge, on every route; the head is for admins alone.
    """
    before = one_desk.ring(workspace)

    answer = one_desk.ask(method, path, body, admin=None, workspace=workspace)

    challenges = parse_challenges(answer.headers.get_list("www-authenticate"))
    realm = {"realm": one_desk.site.workspace(workspace).issuer}
    assert problem(answer) == (401, "unauthenticated")
    assert [(each.scheme, dict(each.params)) for each in challenges] == [("Basic", realm), ("Bearer", realm)]
    assert "audit-head" not in answer.headers
    assert one_desk.ring(workspace) is before


@pytest.mark.parametrize(("method", "path", "body", "permission"), CALLS)
def test_a_403_names_the_permission_that_is_lacking(one_desk, method, path, body, permission):
    """
    Each route needs its own; RFC 6750 section 3.1: insufficient_scope.
    """
    admin = "robot" if permission == "keys:rotate" else "reader"
    allowed = {"robot": {"keys:read", "keys:rotate"}, "reader": {"keys:read"}}[admin]

    answer = one_desk.ask(method, path, body, admin=admin, headers={"Idempotency-Key": "idk-of-the-tests"})

    if permission in allowed:
        assert answer.status_code in {200, 409}
    else:
        (challenge,) = parse_challenges(answer.headers.get_list("www-authenticate"))
        assert problem(answer) == (403, "forbidden")
        assert answer.json()["permission"] == permission
        assert challenge.scheme == "Bearer"
        assert dict(challenge.params) == {"realm": ORIGIN, "error": "insufficient_scope", "scope": permission}
        assert answer.headers["audit-head"]


def test_failed_authentication_looks_the_same_for_everyone(one_desk):
    """
    A wrong secret, an unknown admin, one of a client, one without a secret; and the same among assertions.
    """
    secrets = [
        basic("secops", "wrong"),
        basic("nobody", "wrong"),
        basic("robot", "wrong"),
        basic("orc_basic", "secret-1"),
        "Basic !",
    ]
    call = {"issuer": ORIGIN, "method": "GET", "path": "/admin/keys"}
    assertions = [
        credential("robot", **call, key="client-1"),
        credential("nobody", **call),
        credential("secops2", **call),
        credential("robot", **call, exp=NOW),
        credential("robot", **{**call, "path": "/admin/audit"}),
        "Bearer x",
    ]

    answers = [
        [one_desk.ask("GET", "/admin/keys", headers={"Authorization": each}) for each in group]
        for group in (secrets, assertions)
    ]

    for group in answers:
        assert len({(each.text, str(sorted(each.headers.items()))) for each in group}) == 1
    assert 'error="invalid_token"' in answers[1][0].headers["www-authenticate"]
    assert "error=" not in answers[0][0].headers["www-authenticate"]


def test_what_the_service_signed_itself_administers_nothing(desk):
    """
    Whoever holds a stolen signing key must not be able to administer keys: neither a token nor an assertion under it is accepted.
    """
    site = desk.site
    token = site.ask(scope="orders:read").token
    signer = site.service.rings["root"].current(NOW).signer
    forged = asyncio.run(sign_by(signer, {"sub": "robot", "iss": "robot", "aud": ORIGIN}))

    answers = [desk.ask("GET", "/admin/keys", headers={"Authorization": f"Bearer {each}"}) for each in (token, forged)]

    assert [problem(each) for each in answers] == [(401, "unauthenticated")] * 2


async def sign_by(signer, claims):
    times = {"iat": NOW, "exp": NOW + 60, "jti": "forged-1", "htm": "GET", "htu": f"{ORIGIN}/admin/keys"}
    parts = ({"alg": "ES256", "typ": "caplo-admin+jwt", "kid": signer.kid}, {**claims, **times})
    signing_input = ".".join(b64url_encode(json.dumps(part).encode()) for part in parts)
    return f"{signing_input}.{b64url_encode(await signer.sign(signing_input.encode()))}"


def test_an_assertion_serves_one_call(desk):
    """
    D7: of one method at one address of one workspace, once; what stands in Host changes nothing.
    """
    made = credential("robot", issuer=ORIGIN, method="GET", path="/admin/keys")
    shown = {"Authorization": made}
    elsewhere = {
        "Authorization": credential("robot", issuer=ORIGIN, method="GET", path="/admin/keys"),
        "Host": "evil.test",
    }
    for_acme = {"Authorization": credential("robot", issuer=f"{ORIGIN}/w/acme", method="GET", path="/admin/keys")}

    assert desk.ask("HEAD", "/admin/keys", headers=shown).status_code == 401
    assert desk.ask("GET", "/admin/keys", workspace="acme", headers=shown).status_code == 401
    assert desk.ask("GET", "/admin/keys", headers=for_acme).status_code == 401
    assert desk.ask("GET", "/admin/keys", headers=shown).status_code == 200
    assert desk.ask("GET", "/admin/keys", headers=shown).status_code == 401
    assert desk.ask("GET", "/admin/keys", headers=elsewhere).status_code == 200


def test_the_query_is_no_part_of_the_address(one_desk):
    """
    RFC 9449 section 4.3: `htu` has neither query nor fragment.
    """
    assert one_desk.ask("GET", "/admin/keys?x=1", admin="robot").status_code == 200


def test_an_assertion_without_a_store_lets_nobody_in(desk):
    """
    503: it cannot be told whether it was used before; a secret needs no store.
    """

    async def failing(*_asked):
        raise OSError("secret-marked-1")

    desk.site.state.use = failing

    answer = desk.ask("GET", "/admin/keys", admin="robot")

    assert problem(answer) == (503, "unavailable")
    assert answer.json()["code"] == "assertions_unavailable"
    assert desk.ask("GET", "/admin/keys").status_code == 200


def test_wrong_credentials_never_throttle_right_ones(one_desk):
    """
    However many come from the same address.
    """
    for _ in range(100):
        one_desk.ask("GET", "/admin/keys", headers={"Authorization": basic("secops", "wrong")})

    assert one_desk.ask("GET", "/admin/keys").status_code == 200


def test_refused_attempts_are_logged_and_counted_without_the_credential(desk):
    """
    admin-authz-log: one line each with who, what, from where and why; in the trail one record a source and minute.
    """
    attempts = [
        ({"Authorization": basic("secops", "guess-1")}, "credentials", "secops"),
        ({"Authorization": basic("guess-2", "guess-3")}, "credentials", None),
        ({"Authorization": "Bearer eyJhbGciOiJFUzI1NiJ9.eyJndWVzcyI6NH0.guess-5"}, "assertion:malformed", None),
        ({"Authorization": credential("reader")}, "permission", "reader"),
        ({}, "invalid-body", "secops"),
    ]
    for headers, *_ in attempts:
        desk.ask("POST", "/admin/keys/x/revoke", {"guess": "guess-6"}, headers=headers)

    refused = [facts for event, facts in desk.site.events if event == "admin_refused"]
    assert [(each["reason"], each["admin"]) for each in refused] == [(reason, admin) for _, reason, admin in attempts]
    assert all(
        (each["workspace"], each["call"], each["source"]) == ("root", "keys:revoke", "unknown") for each in refused
    )
    assert [each["status"] for each in refused] == [401, 401, 401, 403, 400]
    desk.site.clock.at += 60
    asyncio.run(desk.site.service.offices["root"].books.enter())
    (record,) = desk.trail().records
    assert (record["event"], record["outcome"], record["source"], record["count"]) == (
        "attempts_refused",
        "refused",
        "unknown",
        5,
    )
    assert {(kind["call"], kind["reason"], kind["name"]) for kind in record["after"]["kinds"]} == {
        ("keys:revoke", reason, admin or "") for _, reason, admin in attempts
    }
    told = f"{desk.site.events}{desk.trail().kept}"
    assert "guess" not in told
    assert not any(secret in told for secret in ADMIN_SECRETS.values())


def test_calls_are_logged(desk):
    """
    admin-authz-log: who did what, from where; a call that fails is an error.
    """
    desk.rotate()
    desk.trail().is_down = True
    desk.rotate()

    events = [(event, facts) for event, facts in desk.site.events if event.startswith("admin_")]
    who = {"workspace": "root", "admin": "secops", "source": "unknown", "call": "keys:rotate"}
    assert events == [
        ("admin_called", {**who, "kid": None, "suspension": None, "revision": 2}),
        ("admin_failed", {**who, "status": 503, "reason": "trail_unavailable"}),
    ]


def test_two_credentials_are_no_credential(one_served):
    """
    Exactly one Authorization header: with two, 400, whichever is right.
    """
    one_served.renew()
    lines = [("Authorization", basic("secops", "x")), ("Authorization", basic("secops", "x"))]

    status, headers, text = one_served._send("GET", "/admin/keys", b"", lines)

    assert (status, json.loads(text)["type"]) == (400, "urn:caplo:problem:bad-request")
    assert 'error="invalid_request"' in headers["www-authenticate"]
