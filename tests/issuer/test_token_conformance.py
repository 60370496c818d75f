"""
The issuer's rows of the conformance table: what the specifications demand, each by the id of its row.

A row is covered when the docstring of a test, here or elsewhere, begins with its id; the others wait, with a reason.
"""

import ast
import asyncio
import csv
import re
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

from issuer.exchange import ACCESS_TOKEN_TYPE
from issuer.registry import Client, Workspace
from keys.key import ALGORITHMS
from verifier import CustomerContextError
from verifier.compact import b64url_encode, parse_compact

from .estate import credential
from .site import Site
from .world import BANK, NOW, SHOP, basic, clients, connections, ring_of, signed

TESTS = Path(__file__).parents[1]
TABLE = TESTS.parent / ".." / "shared" / "conformance.csv"

WAITING = {
    "seed-outcome-unknown": "outcomes are not reported to this service yet",
    "ic-aud-as-only": "identity assertions of other servers are not accepted yet; off until they are",
}
"""Rows that no test covers, and why."""


def test_every_row_is_covered_or_waits():
    """
    Nothing of the table is left out in silence, and nothing that is covered is still said to wait.
    """
    if not TABLE.exists():
        pytest.skip("the conformance table lies beside the repository and is not there")
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = {row["id"] for row in csv.DictReader(file) if row["side"] == "issuer"}
    trees = (ast.parse(path.read_bytes()) for path in TESTS.rglob("test_*.py"))
    functions = (
        each for tree in trees for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    named = {name for each in functions for name in re.findall(r"[a-z]+(?:-[a-z0-9]+)+", ast.get_docstring(each) or "")}

    assert rows - named == set(WAITING)


def refused(answer) -> tuple[int, str]:
    return answer.status, answer.error


def test_every_token_names_customer_agent_and_level(site):
    """
    seed-act-acr-sub: `sub`, `act` and `acr` are in reads and writes alike; a level that does not exist is refused.
    """
    tokens = [site.ask().claims, site.ask(authorization_details=site.details()).claims]

    assert [(each["sub"], each["act"], each["acr"]) for each in tokens] == [
        ("cus_48213", {"sub": "agt_support"}, "standard")
    ] * 2
    assert refused(site.ask(subject_token=site.subject_token(acr="gold"))) == (400, "invalid_request")


def test_the_key_of_an_action_outlives_a_step_up(site):
    """
    seed-idem-same-key: after a new sign-in the same key and arguments are minted again, for the same customer only (D18).
    """
    key = "idk-of-one-action"
    confirmed = {"confirmation": {"by": "client", "at": NOW - 20}, "idempotencyKey": key}

    def ask(details=None, **subject):
        return site.ask(
            subject_token=site.subject_token(**subject),
            authorization_details=site.details(**confirmed) if details is None else details,
        )

    before, after = ask(), ask(acr="high", auth_time=NOW)

    assert (before.claims["acr"], after.claims["acr"]) == ("standard", "high")
    assert before.granted == after.granted
    assert refused(ask(sub="cus_2")) == (400, "invalid_request")
    assert refused(ask(site.details(**confirmed, arguments={"orderId": "A-1002"}))) == (400, "invalid_request")
    assert ask(site.details(**confirmed, action="orders.read")).status == 200


def test_edits_do_not_extend_a_confirmation(site):
    """
    seed-confirm-expiry: arguments edited at 20:00 under a new key and the same instant end at 30:00 all the same.
    """
    confirmation = {"by": "client", "at": NOW}
    site.clock.at = NOW + 1200
    edited = site.details(arguments={"orderId": "A-1002"}, confirmation=confirmation)
    assert site.ask(authorization_details=edited).status == 200

    site.clock.at = NOW + 1799
    last = site.ask(authorization_details=edited)
    site.clock.at = NOW + 1800
    over = site.ask(authorization_details=edited)

    assert (last.claims["exp"], last.members["expires_in"]) == (NOW + 1800, 1)
    assert refused(over) == (400, "invalid_authorization_details")


def test_one_algorithm_signs_and_is_accepted(site):
    """
    at-rs256-deviation: nothing but ES256 is on the list of keys, in the metadata, or in what is accepted; `none` least of all.
    """
    metadata = site.http.get("/.well-known/oauth-authorization-server").json()
    token = site.ask().token

    assert set(ALGORITHMS) == {"ES256"} == set(metadata["token_endpoint_auth_signing_alg_values_supported"])
    for alg in ("RS256", "none"):
        header = b64url_encode(f'{{"alg":"{alg}","typ":"at+jwt","kid":"{parse_compact(token).kid}"}}'.encode())
        with pytest.raises(CustomerContextError) as caught:
            site.verifier().verify(f"{header}.{token.partition('.')[2]}")
        assert caught.value.reason == "algorithm"
        assert refused(site.ask(client_assertion=site.client_assertion(header={"alg": alg}))) == (401, "invalid_client")


READ = {"iss", "sub", "aud", "client_id", "iat", "exp", "jti", "acr", "act", "auth_time", "scope"}


def test_the_required_claims_have_their_types(site):
    """
    at-required-claims, nist-assertion-set: the seven of RFC 9068 and those of the sign-in, each of its JSON type.
    """
    token = parse_compact(site.ask(scope="orders:read").token)

    assert {name: type(value) for name, value in token.claims.items()} == {
        **dict.fromkeys(("iss", "sub", "aud", "client_id", "jti", "acr", "scope"), str),
        **dict.fromkeys(("iat", "exp", "auth_time"), int),
        "act": dict,
    }
    assert token.kid == ring_of("root").active.kid


def test_a_token_has_no_other_claims(site):
    """
    at-privacy-min: the names of the claims, at every level, are those of the allow-list; arguments are there as a digest only.
    """
    act = {"sub": "agt_support", "name": "Ada", "act": {"sub": "a", "email": "ada@example.com"}}
    subject = site.subject_token(act=act, email="ada@example.com", name="Ada", phone_number="+49")

    read = site.ask(subject_token=subject, scope="orders:read")
    write = site.ask(subject_token=subject, authorization_details=site.details(arguments={"note": "ada@example.com"}))

    assert set(read.claims) == READ
    assert set(write.claims) == READ | {"caplo"}
    assert set(write.claims["caplo"]) == {"action", "actionDigest", "idempotencyKey", "confirmation"}
    assert read.claims["act"] == {"sub": "agt_support", "act": {"sub": "a"}}
    assert "ada" not in str((read.claims, write.claims)).lower()


def test_exchanges_do_not_touch_the_sign_in(site):
    """
    at-auth-claims-fixed: minted 40 s apart, `acr` and `auth_time` are equal; neither ever comes from the time of minting.
    """
    subject = site.subject_token()
    first = site.ask(subject_token=subject).claims
    site.clock.at += 40

    second = site.ask(subject_token=subject).claims

    assert second["iat"] == first["iat"] + 40
    assert [(each["acr"], each["auth_time"]) for each in (first, second)] == [("standard", NOW - 360)] * 2


def test_an_audience_belongs_to_one_connection():
    """
    at-distinct-aud: two connections of a workspace cannot have one audience, so a token's audience says whose customer it is.
    """
    shop, bank = connections()

    with pytest.raises(ValueError, match="audience"):
        Workspace(
            name="root",
            path="",
            issuer="https://issuer.test",
            connections=(shop, replace(bank, audiences=(BANK, SHOP))),
            clients={},
            admins={},
        )


def test_no_client_becomes_a_customer(site):
    """
    at-sub-not-client-chosen: `sub` is never taken from the client, and a subject that is a client of the workspace is refused.
    """
    without = site.ask(subject_token=site.subject_token(sub=...))
    clients_as_customers = [site.ask(subject_token=site.subject_token(sub=name)) for name in site.workspace().clients]

    assert [refused(answer) for answer in [without, *clients_as_customers]] == [(400, "invalid_request")] * 8


def test_the_response_has_its_members(site):
    """
    tx-response-fields, tx-no-refresh: the members of RFC 8693 section 2.2.1, and no refresh token ever.
    """
    read, write = site.ask(), site.ask(authorization_details=site.details())

    for answer in (read, write):
        assert answer.members["issued_token_type"] == ACCESS_TOKEN_TYPE
        assert answer.members["token_type"] == "Bearer"
        assert answer.members["expires_in"] == answer.claims["exp"] - answer.claims["iat"] == 60
        assert "refresh_token" not in answer.members
    # Nothing was asked for and the action's own was granted, so it is said.
    assert "scope" not in read.members
    assert write.members["scope"] == write.claims["scope"] == "orders:write"


@pytest.mark.parametrize(
    ("parameters", "outcome"),
    [
        ({"scope": ""}, 200),
        ({"foo": "bar", "client_secret_expires_at": "0"}, 200),
        ({"subject_token": ""}, 400),
        ({"authorization_details": ""}, 200),
    ],
)
def test_empty_parameters_count_as_omitted(parameters, outcome, site):
    """
    te-empty-param: a parameter without a value is not there, and an unknown one is ignored.
    """
    answer = site.ask(**parameters)

    assert answer.status == outcome
    assert outcome == 200 or answer.error == "invalid_request"


@pytest.mark.parametrize("name", ["grant_type", "client_id", "subject_token", "scope", "foo"])
def test_no_parameter_occurs_twice(name, site):
    """
    te-repeat: `invalid_request`, for known and unknown names, whatever the values.
    """
    form = "&".join(
        f"{each}={value}" for each, value in site.form(client_id="orc_main", scope="orders:read", foo="1").items()
    )

    answer = site.post(f"{form}&{name}=x".encode())

    assert answer.refusal == (400, "invalid_request", "form:repeated")


def test_basic_credentials_are_form_encoded_first(site):
    """
    te-basic-encoding: an id and a secret with `+`, `%`, `:` and non-ASCII authenticate encoded, and never raw.
    """
    raw = "Basic " + "YStiJS89IDpjJmTigqw="

    assert site.ask(client="my client:1/é").claims["client_id"] == "my client:1/é"
    assert refused(site.post(site.form(client="my client:1/é"), {"Authorization": raw})) == (401, "invalid_client")


@pytest.mark.parametrize("client", ["orc_basic", "orc_main", "nobody"])
def test_a_secret_cannot_be_guessed_at_speed(client, proxied):
    """
    te-brute-force: the 11th wrong secret in a minute for a client is 429, from wherever, whether there is such a client or not.
    """
    answers = [guess(proxied, client, f"198.51.100.{number}") for number in range(12)]
    proxied.monotonic.at += 59.5
    early = guess(proxied, client, "203.0.113.1")
    proxied.monotonic.at += 0.5
    late = guess(proxied, client, "203.0.113.1")

    assert [answer.refusal for answer in answers[:10]] == [(401, "invalid_client", "client:credentials")] * 10
    assert [answer.refusal for answer in [*answers[10:], early]] == [TOO_MANY] * 3
    assert [answer.headers["retry-after"] for answer in [*answers[10:], early]] == ["60", "60", "1"]
    assert late.refusal == (401, "invalid_client", "client:credentials")


def test_a_source_cannot_guess_at_speed(proxied):
    """
    te-brute-force: the 11th wrong secret in a minute from a source is 429, whatever client and workspace it is for.
    """
    hers, others = "2001:db8:0:1::1", ("2001:db8:0:2::1", "198.51.100.1")

    answers = [guess(proxied, f"client-{number}", hers, ("root", "acme")[number % 2]) for number in range(11)]
    neighbour = guess(proxied, "client-11", "2001:db8:0:1:ffff::9")
    elsewhere = [guess(proxied, f"client-{number}", source) for number, source in enumerate(others)]

    assert [answer.status for answer in answers[:10]] == [401] * 10
    assert [answer.refusal for answer in (answers[10], neighbour)] == [TOO_MANY] * 2
    assert [answer.status for answer in elsewhere] == [401] * 2


def test_guessing_locks_nobody_out(proxied):
    """
    te-brute-force: the right secret works from anywhere, from where it was guessed at too, and counts for nothing.
    """
    for number in range(30):
        guess(proxied, "orc_basic", f"198.51.100.{number}")
        guess(proxied, f"client-{number}", "203.0.113.1")

    for source in ("198.51.100.1", "203.0.113.1", "192.0.2.1"):
        right = {"Authorization": basic("orc_basic", "secret-1"), "X-Forwarded-For": source}
        assert proxied.post(proxied.form(client="orc_basic"), right).status == 200
        assert proxied.post(proxied.form(), {"X-Forwarded-For": source}).status == 200
    assert guess(proxied, "orc_basic", "192.0.2.1").refusal == TOO_MANY
    proxied.renew()
    for _ in range(20):
        assert proxied.ask(client="orc_basic").status == 200
    assert guess(proxied, "orc_basic", "127.0.0.1").status == 401


TOO_MANY = (429, "temporarily_unavailable", "limit:wrong_secrets")


def guess(site: Site, client: str, source: str, workspace: str = "root"):
    lines = {"Authorization": basic(client, "guessed"), "X-Forwarded-For": source}
    return site.post(site.form(client="orc_basic", workspace=workspace), lines, workspace=workspace)


FORWARDED = [
    ("X-Forwarded-For", "198.51.100.7, 192.0.2.1"),
    ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-Proto", "http"),
    ("X-Forwarded-Port", "8443"),
    ("X-Forwarded-Prefix", "/w/other"),
    ("X-Real-IP", "198.51.100.7"),
    ("Forwarded", "for=198.51.100.7;host=evil.example;proto=http"),
]


@pytest.mark.parametrize(("fixture", "source"), [("served", "127.0.0.1"), ("proxied", "192.0.2.1")])
def test_proxy_headers_change_no_url(fixture, source, request):
    """
    te-tls: from an untrusted peer they have no effect at all; from a trusted one they say who asks, and nothing about URLs.
    """
    site = request.getfixturevalue(fixture)
    metadata = "/.well-known/oauth-authorization-server"
    admin = {"issuer": "https://issuer.test", "method": "GET", "path": "/admin/keys"}

    token = site.post(site.form(), FORWARDED)
    minted = dict(site.events)["token_minted"]
    refused = site.post(site.form(scope="unknown"), FORWARDED)
    told = dict(site.events)["token_refused"]
    listed = site.call("GET", "/admin/keys", [("Authorization", credential("robot", **admin)), *FORWARDED])
    by_admin = dict(site.events)["admin_called"]

    assert token.claims["iss"] == "https://issuer.test"
    assert refused.status == 400
    assert site.call("GET", metadata, FORWARDED)[2] == site.call("GET", metadata, [])[2]
    assert listed[0] == 200
    assert [each["source"] for each in (minted, told, by_admin)] == [source] * 3


def test_errors_are_always_of_the_one_form(site):
    """
    te-error-400: 400 JSON with a registered code and a description of safe characters; `site.Answer` checks each one.
    """
    odd = [b"\x00", b"%", b"a=1&a=2", b'scope="\\"', "é=€".encode(), b"grant_type=x", b"&" * 100]

    answers = [site.post(body) for body in odd]

    assert {answer.status for answer in answers} <= {400, 401}
    assert {answer.error for answer in answers} == {"invalid_request", "invalid_client"}


def test_each_client_has_one_way_to_authenticate():
    """
    sec-asym-client-auth: a client has keys or secrets, never both, so that listing keys switches secrets off for it.
    """
    main, narrow = clients()[:2]

    assert (main.authentication_method, narrow.authentication_method) == ("private_key_jwt", "client_secret_basic")
    with pytest.raises(ValueError, match="exactly one"):
        replace(main, secret_sha256=narrow.secret_sha256)
    with pytest.raises(ValueError, match="exactly one"):
        Client(client_id="x", audiences=(), scopes=frozenset(), actions=frozenset(), agents=())


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [
        ({"exp": ...}, False),
        ({"exp": NOW - 1}, False),
        ({"exp": NOW + 7200}, False),
        ({"exp": NOW + 300}, True),
        ({"iss": "orc_second"}, False),
        ({"sub": "orc_second"}, False),
        ({"aud": ["https://issuer.test"]}, True),
        ({"aud": "https://issuer.test/w/acme"}, False),
        ({"aud": "https://issuer.test/oauth/token"}, False),
        ({"header": {"typ": "JWT"}}, True),
        ({"header": {"typ": ...}}, True),
        ({"header": {"typ": "txntoken+jwt"}}, False),
    ],
)
def test_a_client_assertion_is_of_the_client_for_the_issuer(changes, accepted, site):
    """
    ca-exp, ca-iss-sub, ca-aud-sole, ca-typ: who signed it, for whom, until when, and as what.
    """
    answer = site.ask(client_assertion=site.client_assertion(**changes))

    assert refused(answer) == ((200, None) if accepted else (401, "invalid_client"))


def test_names_are_sorted_as_utf_16(site):
    """
    jcs-sort: U+1F600 stands before U+FB33 in what is digested, because its first code unit is smaller.
    """
    key = "idk-of-one-action"
    canonical = '{"action":"cancel_order","arguments":{"\U0001f600":2,"\ufb33":1},"idempotencyKey":"idk-of-one-action"}'
    digest = sha256(b"caplo-action-digest:v1\0" + canonical.encode()).digest()

    answer = site.ask(authorization_details=site.details(arguments={"\ufb33": 1, "\U0001f600": 2}, idempotencyKey=key))

    assert answer.granted["actionDigest"] == b64url_encode(digest)


@pytest.mark.parametrize("workspace", ["root", "acme"])
def test_the_metadata_says_what_holds(workspace, site):
    """
    md-insertion, md-json-200, md-response-types, md-auth-methods, su-metadata: inserted path, no empty arrays, every statement.
    """
    path, issuer = site.workspace(workspace).path, site.workspace(workspace).issuer

    response = site.http.get(f"/.well-known/oauth-authorization-server{path}")

    members = response.json()
    AuthorizationServerMetadata(members).validate()
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert (members["issuer"], members["token_endpoint"]) == (issuer, f"{issuer}/oauth/token")
    assert members["response_types_supported"] == ["none"]
    assert members["grant_types_supported"] == ["urn:ietf:params:oauth:grant-type:token-exchange"]
    assert members["token_endpoint_auth_methods_supported"] == ["client_secret_basic", "private_key_jwt"]
    assert members["token_endpoint_auth_signing_alg_values_supported"] == ["ES256"]
    assert members["acr_values_supported"] == ["low", "standard", "high"]
    assert [] not in members.values()


# Every kind of signed thing, as its owner makes it (D7).

OIDC = {"iss": "https://idp.test", "sub": "cus_48213", "aud": "app-1", "iat": NOW, "exp": NOW + 60, "jti": "j"}
ADMIN = {
    "iss": "secops",
    "sub": "secops",
    "aud": "https://issuer.test",
    "htm": "POST",
    "htu": "https://issuer.test/admin/keys",
}
KINDS: dict[str, Callable[[Site], str]] = {
    "at+jwt": lambda site: site.ask(scope="orders:read").token,
    "client-authentication+jwt": lambda site: site.client_assertion(),
    "caplo-subject+jwt": lambda site: site.subject_token(),
    "caplo-actor+jwt": lambda site: site.actor_token(),
    "caplo-admin+jwt": lambda site: signed(OIDC | ADMIN, typ="caplo-admin+jwt", key="admin-1"),
    "logout+jwt": lambda site: signed(
        OIDC | {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}, typ="logout+jwt", key="idp-1"
    ),
    "JWT": lambda site: signed(OIDC | {"nonce": "n", "auth_time": NOW, "acr": "high"}, typ="JWT", key="idp-1"),
}


def verified(site: Site, token: str) -> str:
    try:
        site.verifier().verify(token)
    except CustomerContextError as error:
        return error.reason
    return "accepted"


PLACES: dict[str, Callable[[Site, str], str]] = {
    "at+jwt": verified,
    "client-authentication+jwt": lambda site, token: site.ask(client_assertion=token).reason or "accepted",
    "caplo-subject+jwt": lambda site, token: site.ask(subject_token=token).reason or "accepted",
    "caplo-actor+jwt": lambda site, token: site.ask(**site.actor(token)).reason or "accepted",
}
"""Every place that takes what a client signed, or this service; admins and providers have theirs in tests of their own."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_each_kind_is_taken_in_its_own_place_only(place, kind, site):
    """
    bcp-exclusive: an access token, an assertion, a subject, actor, admin, logout or ID token is refused in every other place.
    """
    outcome = PLACES[place](site, KINDS[kind](site))

    assert (outcome == "accepted") == (place == kind)


def as_if_signed_there(place: str, kind: str, site: Site) -> str:
    """
    Make what *place* takes, with its key and its claims, but typed as another kind.
    """
    if place != "at+jwt":
        maker = {
            "client-authentication+jwt": site.client_assertion,
            "caplo-subject+jwt": site.subject_token,
            "caplo-actor+jwt": site.actor_token,
        }
        return maker[place](header={"typ": kind})
    token, signer = site.ask().token, ring_of("root").signer()
    head = b64url_encode(f'{{"alg":"ES256","typ":"{kind}","kid":"{signer.kid}"}}'.encode())
    signing_input = f"{head}.{token.split('.')[1]}"
    return f"{signing_input}.{b64url_encode(asyncio.run(signer.sign(signing_input.encode())))}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_the_type_alone_keeps_the_kinds_apart(place, kind, site):
    """
    bcp-exclusive: even with the right key and the right claims, another type is refused, but for the plain JWT of a client.
    """
    plain = (place, kind) == ("client-authentication+jwt", "JWT")

    outcome = PLACES[place](site, as_if_signed_there(place, kind, site))

    assert outcome.rpartition(":")[2] == ("accepted" if plain or place == kind else "type")


def test_one_key_signs_one_kind(site):
    """
    bcp-exclusive: keys of assertions sign no subject tokens and the other way round, and no client key signs access tokens.
    """
    subject_key = PLACES["client-authentication+jwt"](site, site.client_assertion(key="subject-1"))
    client_key = PLACES["caplo-subject+jwt"](site, site.subject_token(key="client-1"))
    claims = site.ask().claims | {"jti": "j"}

    assert (subject_key, client_key) == ("client_assertion:key", "subject_token:key")
    assert verified(site, signed(claims, typ="at+jwt", key="client-1")) == "key"
