"""
Case group E, from public bug reports: client authentication, forms and odd bodies, each row over HTTP with its reason.

Rows about lines, octets and parallel requests go to a real server. E20 is about JSON bodies: its rows are sent to an admin
endpoint, the sign-ins and the token endpoint, and as `authorization_details` where they name arguments.
"""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest

from issuer.clients import ASSERTION_TYPE
from verifier.compact import b64url_decode, b64url_encode

from .estate import credential, problem
from .provider import id_token
from .signed_in import SignedIn, with_provider
from .world import NOW, SECRETS, signed

ALL = json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text("utf-8"))
CASES = {case["id"]: case for case in ALL if case["group"] == "E" and case["input"]["kind"] == "token_endpoint"}
ROWS = {f"{name}-{index}": row for name, case in CASES.items() for index, row in enumerate(case["input"]["rows"])}
ELSEWHERE = {"E14", "E15", "E17"}
"""Cases of the group that are about digests alone: tests/verifier has them."""

FORM = "application/x-www-form-urlencoded"
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

Outcome = tuple[int, str | None, str | None]
OK: Outcome = (200, None, None)


def no_client(reason: str) -> Outcome:
    return (401, "invalid_client", reason)


def malformed(reason: str | None) -> Outcome:
    return (400, "invalid_request", reason)


def no_details(reason: str) -> Outcome:
    return (400, "invalid_authorization_details", reason)


# E01, E02: Basic credentials as they arrive

BASIC: dict[str, Outcome] = {
    "E01-0": OK,
    "E01-1": OK,
    "E01-2": no_client("client:credentials"),
    "E01-3": OK,
    "E02-0": OK,
    "E02-1": OK,
    "E02-2": no_client("client:credentials"),
    "E02-3": no_client("client:credentials"),
    "E02-4": no_client("client:credentials"),
    "E02-5": no_client("client:credentials"),
    "E02-6": no_client("client:credentials"),
    "E02-7": no_client("client:credentials"),
    "E02-8": no_client("client:credentials"),
    "E02-9": no_client("client:credentials"),
    "E02-10": OK,
}


@pytest.mark.parametrize("name", BASIC)
def test_basic_credentials(name, site):
    """
    E01, E02: id and secret are form-encoded, then joined; whatever is wrong with them, nobody is authenticated.
    """
    case = CASES[name.partition("-")[0]]["input"]
    assert SECRETS[case["client_id"]] == case["client_secret"]
    expected = BASIC[name]

    answer = site.post(site.form(client=case["client_id"]), {"Authorization": ROWS[name]["authorization"]})

    assert answer.refusal == expected
    assert ROWS[name]["result"].startswith("authenticated" if expected == OK else "invalid_client")


# E03: more than one method

TWO = malformed("client:two_methods")
METHODS: dict[str, Outcome] = {
    "E03-0": TWO,
    "E03-1": no_client("client:other_client_id"),
    "E03-2": OK,
    "E03-3": TWO,
    "E03-4": no_client("client:no_credentials"),
    "E03-5": no_client("client:no_credentials"),
    "E03-6": no_client("client:secret_in_body"),
}


@pytest.mark.parametrize("name", METHODS)
def test_client_authentication_methods(name, site):
    """
    E03: exactly one method, and only the registered one; secrets in the URL are never read.
    """
    row, form = ROWS[name], site.form(client="c1")
    sent = dict(part.split("=", 1) for part in row.get("body", "").split("&") if part)
    added = {key: value for key, value in sent.items() if key != "grant_type"}
    if "client_assertion" in added:
        added |= {"client_assertion": site.client_assertion("c1"), "client_assertion_type": ASSERTION_TYPE}
    if row.get("registered_method") == "private_key_jwt":
        form, added = (
            site.form(client="orc_main", client_assertion=None, client_assertion_type=None),
            added | {"client_id": "orc_main"},
        )
    headers = {"Authorization": row["authorization"]} if "authorization" in row else {}
    query = f"?{row['query']}" if "query" in row else ""

    answer = site.post({**form, **added}, headers, query=query)

    assert answer.refusal == METHODS[name]
    assert (answer.error or "authenticated") in row["result"]


# E04: repeated parameters

REPEATED: dict[str, tuple[str, Outcome]] = {
    "E04-0": ("&grant_type=client_credentials", malformed("form:repeated")),
    "E04-1": ("&client_id=c1&client_id=c2&client_secret=s", malformed("form:repeated")),
    "E04-2": ("&client_secret=wrong&client_secret=right", malformed("form:repeated")),
    "E04-3": ("&subject_token=B", malformed("form:repeated")),
    "E04-4": ("&scope=a&scope=b", malformed("form:repeated")),
    "E04-5": ("&scope=a&%73cope=b", malformed("form:repeated")),
    "E04-6": ("&foo=1&foo=2", malformed("form:repeated")),
    "E04-7": ("", OK),
    "E04-8": ("&scope=", OK),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_parameters(name, site):
    """
    E04: nothing is taken first or last; the query does not count, and an empty value is an omitted one.
    """
    added, expected = REPEATED[name]
    query = f"?{ROWS[name]['query']}" if "query" in ROWS[name] else ""

    answer = site.post(urlencode(site.form()).encode() + added.encode(), query=query)

    assert answer.refusal == expected
    assert expected == OK or "invalid_request" in ROWS[name]["result"]
    assert expected != OK or "scope" not in answer.claims


# E06: the audience of a client assertion


@pytest.mark.parametrize("name", [name for name in ROWS if name.startswith("E06-")])
def test_the_audience_of_a_client_assertion(name, site):
    """
    E06: the issuer and nothing else; the token endpoint, a second audience or a lookalike is refused.
    """
    row = ROWS[name]
    assert CASES["E06"]["input"]["issuer"] == site.workspace().issuer

    answer = site.ask(client_assertion=site.client_assertion(aud=row["aud"]))

    assert answer.refusal == (OK if row["result"] == "accept" else no_client("client_assertion:audience"))


# E08: life and times of a client assertion

TIMES: dict[str, Outcome] = {
    "E08-0": OK,
    "E08-1": no_client("client_assertion:lifetime"),
    "E08-2": no_client("client_assertion:lifetime"),
    "E08-3": no_client("client_assertion:exp"),
    "E08-4": no_client("client_assertion:not_yet_valid"),
    "E08-5": no_client("client_assertion:lifetime"),
    "E08-6": OK,
    "E08-7": no_client("client_assertion:expired"),
    "E08-8": no_client("client_assertion:malformed"),
    "E08-9": no_client("client_assertion:not_yet_valid"),
}


@pytest.mark.parametrize("name", TIMES)
def test_the_times_of_a_client_assertion(name, site):
    """
    E08: an end within 300 s, no beginning that lies ahead, no number out of range; a missing `iat` is fine.
    """
    row, claims = (
        ROWS[name],
        {"iss": "orc_main", "sub": "orc_main", "aud": "https://issuer.test", "jti": "j", "exp": NOW + 60},
    )
    for claim in ("exp", "iat", "nbf"):
        if claim in row:
            value = row[claim]
            claims[claim] = NOW + int(value[3:] or 0) if isinstance(value, str) and value.startswith("now") else value
    if row.get("iat", "") is None:
        del claims["iat"]
    payload = json.dumps(claims).replace('"1e400"', "1e400").encode()

    answer = site.ask(client_assertion=signed(payload, typ="client-authentication+jwt", key="client-1"))

    assert answer.refusal == TIMES[name]
    assert row["result"].startswith("accept" if TIMES[name] == OK else "invalid_client")


# E07: an assertion is used once

REPLAYED = no_client("client_assertion:replayed")


def test_e07_0_the_same_assertion_twice(site):
    """
    E07-0: the second use is refused.
    """
    assertion = site.client_assertion()

    assert [site.ask(client_assertion=assertion).refusal for _ in range(2)] == [OK, REPLAYED]


def test_e07_1_the_same_assertion_in_parallel(served):
    """
    E07-1: of twenty requests at once, to the real server, exactly one succeeds.
    """
    form = served.form()

    with ThreadPoolExecutor(20) as threads:
        answers = [each.result() for each in [threads.submit(served.post, form) for _ in range(20)]]

    assert sorted(answer.status for answer in answers) == [200] + [401] * 19
    assert {answer.error for answer in answers} == {None, "invalid_client"}


def test_e07_2_the_same_identifier_of_another_client(site):
    """
    E07-2: identifiers are each client's own.
    """
    mine = site.ask(client_assertion=site.client_assertion(jti="j"))
    others = site.ask(client="orc_second", client_assertion=site.client_assertion("orc_second", jti="j"))

    assert [mine.refusal, others.refusal] == [OK, OK]


def test_e07_3_another_assertion_with_the_same_identifier(site):
    """
    E07-3: other times do not make it another one.
    """
    first = site.ask(client_assertion=site.client_assertion(jti="j"))
    second = site.ask(client_assertion=site.client_assertion(jti="j", iat=NOW - 1, exp=NOW + 30))

    assert [first.refusal, second.refusal] == [OK, REPLAYED]


def test_e07_4_no_identifier(site):
    """
    E07-4: what could not be used up is not accepted.
    """
    answer = site.ask(client_assertion=site.client_assertion(jti=...))

    assert answer.refusal == no_client("client_assertion:jti")


def test_e07_5_another_instance_on_the_same_redis(instances):
    """
    E07-5: used at one instance, then at the other, which refuses it.
    """
    assertion = instances[0].client_assertion()

    assert [each.ask(client_assertion=assertion).refusal for each in instances] == [OK, REPLAYED]


def test_e07_6_a_grant_that_fails(site):
    """
    E07-6: an assertion that authenticated is used up although the grant failed; a new one serves.
    """
    assertion = site.client_assertion()

    failed = site.ask(client_assertion=assertion, subject_token="x")
    again = site.ask(client_assertion=assertion)

    assert [failed.refusal, again.refusal] == [malformed("subject_token:malformed"), REPLAYED]
    assert site.ask().refusal == OK


def test_e07_7_the_twin_of_the_signature(site):
    """
    E07-7: the other valid spelling of the signature is no other assertion.
    """
    assertion = site.client_assertion()
    signing_input, _, signature = assertion.rpartition(".")
    octets = b64url_decode(signature.encode())
    twin = b64url_encode(octets[:32] + (ORDER - int.from_bytes(octets[32:])).to_bytes(32))

    answers = [site.ask(client_assertion=each) for each in (assertion, f"{signing_input}.{twin}")]

    assert [answer.refusal for answer in answers] == [OK, REPLAYED]


# E10: media types and odd bodies

BODIES: dict[str, Outcome] = {
    "E10-0": OK,
    "E10-1": OK,
    "E10-2": OK,
    "E10-3": malformed("form:media_type"),
    "E10-4": malformed("form:media_type"),
    "E10-5": malformed("form:media_type"),
    "E10-6": malformed("form:media_type"),
    "E10-7": malformed("form:encoding"),
    "E10-8": malformed("form:encoding"),
    "E10-9": malformed("form:encoding"),
    "E10-10": malformed("form:syntax"),
    "E10-11": (413, "invalid_request", None),
    "E10-12": malformed("form:media_type"),
    "E10-13": (405, "invalid_request", None),
}


@pytest.mark.parametrize("name", BODIES)
def test_media_types_and_odd_bodies(name, served):
    """
    E10: every answer of the real server is RFC 6749 JSON that is not stored, and an odd body is the client's fault.
    """
    row = ROWS[name]
    form = urlencode(served.form()).encode()
    body = row["body"].replace("<k=v& x 100000>", "k=v&" * 100_000).encode() if "body" in row else form
    method = row.get("method", "POST")

    answer = served.post(body, {"Content-Type": row.get("content_type", FORM)}, method=method)

    assert answer.refusal == BODIES[name]
    assert method == "POST" or "POST" in answer.headers["allow"]


def test_a_complete_request_by_get(served):
    """
    E10-13 once more, with a complete request in the query: nothing is minted by GET.
    """
    answer = served.post(b"", method="GET", query=f"?{urlencode(served.form())}")

    assert answer.refusal == (405, "invalid_request", None)


# E20: JSON bodies, here as forms and as authorization_details


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


ODD_JSON: dict[str, tuple[str, Outcome]] = {
    "E20-0": ("[" * 20_000, no_details("action:json")),
    "E20-1": (f'{{"arguments":{nested(1000)}}}', no_details("action:json")),
    "E20-5": ("\ufeff{}", no_details("action:json")),
    "E20-6": ("{} {}", no_details("action:json")),
    "E20-7": (f'{{"arguments":{"1" * 5000}}}', no_details("action:json")),
    "E20-9": ("null", no_details("action:count")),
}
"""Bodies as the value of `authorization_details`."""


@pytest.mark.parametrize("name", ODD_JSON)
def test_odd_json_as_authorization_details(name, site):
    """
    E20: too deep, too long, more than one value, a byte order mark: a refusal with its reason, never a failure.
    """
    text, expected = ODD_JSON[name]

    assert site.ask(authorization_details=text).refusal == expected


ODD_BODIES: dict[str, tuple[bytes, dict[str, str], Outcome]] = {
    "E20-0": (b"[" * 100_000, {}, (413, "invalid_request", None)),
    "E20-2": (b" " * 10_000_000, {}, (413, "invalid_request", None)),
    "E20-3": (
        urlencode({"authorization_details": json.dumps({f"k{n}": 1 for n in range(100_000)})}).encode(),
        {},
        (413, "invalid_request", None),
    ),
    "E20-4": (b"\x1f\x8b" + b"\x00" * 100, {"Content-Encoding": "gzip"}, malformed(None)),
    "E20-8": (b"{}", {"Content-Type": "application/json; charset=utf-16"}, malformed("form:media_type")),
}
"""Bodies as bodies."""


@pytest.mark.parametrize("name", ODD_BODIES)
def test_odd_bodies(name, site):
    """
    E20: what is too large is refused before it is parsed, what is coded or in another charset before it is decoded.
    """
    body, headers, expected = ODD_BODIES[name]

    assert site.post(body, headers).refusal == expected


def test_many_arguments_are_counted_before_they_are_sorted(site):
    """
    E20-3: as many members as a body holds, in arguments, are refused by their number.
    """
    arguments = {f"k{n}": 1 for n in range(3000)}

    answer = site.ask(authorization_details=site.details(arguments=arguments))

    assert answer.refusal == no_details("action:arguments")


def test_a_body_that_never_ends(impatient):
    """
    E20-10: a chunked body without an end is answered 408 within the time that a body has, in the form of the endpoint.
    """
    head = f"POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: {FORM}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na=\r\n"

    with socket.create_connection(impatient.address, timeout=10) as connection:
        connection.sendall(head.encode())
        received = b""
        while chunk := connection.recv(4096):
            received += chunk

    assert received.startswith(b"HTTP/1.1 408 ")
    assert json.loads(received.partition(b"\r\n\r\n")[2])["error"] == "invalid_request"
    assert b"cache-control: no-store" in received.lower()


# E10 and E20: bodies of an admin endpoint


def test_text_is_no_json(one_desk):
    """
    E10-14: POST /admin/keys/rotate with text/plain JSON is 415, as problem details.
    """
    body = {"expected_active": one_desk.ring().active.kid}
    headers = {"Content-Type": "text/plain", "Idempotency-Key": "idk-of-the-cases-1"}

    answer = one_desk.ask("POST", "/admin/keys/rotate", body, headers=headers)

    assert ROWS["E10-14"]["admin"] == "POST /admin/keys/rotate with text/plain JSON"
    assert problem(answer) == (415, "unsupported-media-type")


ADMIN_BODIES: dict[str, tuple[bytes, dict[str, str], int]] = {
    "E20-0": (b"[" * 100_000, {}, 400),
    "E20-1": (f'{{"arguments":{nested(1000)}}}'.encode(), {}, 400),
    "E20-2": (b" " * 10_000_000, {}, 413),
    "E20-3": (json.dumps({"arguments": {f"k{n}": 1 for n in range(100_000)}}).encode(), {}, 413),
    "E20-4": (b"\x1f\x8b" + b"\x00" * 100, {"Content-Encoding": "gzip"}, 415),
    "E20-5": (b"\xef\xbb\xbf{}", {}, 400),
    "E20-6": (b"{} {}", {}, 400),
    "E20-7": (b'{"arguments":1' + b"0" * 5000 + b"}", {}, 400),
    "E20-8": (b"{}", {"Content-Type": "application/json; charset=utf-16"}, 415),
    "E20-9": (b"null", {}, 400),
}


@pytest.mark.parametrize("name", ADMIN_BODIES)
def test_odd_bodies_of_an_admin_call(name, one_desk):
    """
    E20: refused as problem details with the status of the row, never a failure; nothing was revoked.
    """
    body, headers, expected = ADMIN_BODIES[name]
    before = one_desk.ring()

    answer = one_desk.ask("POST", "/admin/keys/revoke-all", body, headers=headers)

    assert problem(answer)[0] == expected
    assert str(expected) in ROWS[name]["result"]
    assert one_desk.ring() is before
    assert one_desk.site.failures == []


def test_a_body_of_an_admin_call_that_never_ends(impatient):
    """
    E20-10: a chunked body without an end is answered 408 within the time that a body has.
    """
    lines = [
        "POST /admin/keys/revoke-all HTTP/1.1",
        "Host: x",
        f"Authorization: {credential('secops')}",
        "Content-Type: application/json",
        "Transfer-Encoding: chunked",
    ]

    with socket.create_connection(impatient.address, timeout=10) as connection:
        connection.sendall("\r\n".join([*lines, "", "2", '{"', ""]).encode())
        received = b""
        while chunk := connection.recv(4096):
            received += chunk

    assert received.startswith(b"HTTP/1.1 408 ")
    assert json.loads(received.partition(b"\r\n\r\n")[2])["type"] == "urn:caplo:problem:request-timeout"


@pytest.fixture(scope="module")
def signed_in():
    """
    A service that knows the identity provider of E11 and one of its clients.
    """
    clients = {ROW_11["allowed_client_of_idp"]: "orc_basic", "app-2": "c1"}
    site = SignedIn(with_provider(issuer=ROW_11["idp"], clients=clients, algorithms=frozenset({"RS256"})))
    yield site
    site.close()


@pytest.mark.parametrize("name", ADMIN_BODIES)
def test_odd_bodies_of_a_sign_in(name, signed_in):
    """
    E20: refused as problem details with the status of the row, never a failure.
    """
    body, headers, expected = ADMIN_BODIES[name]
    lines = {"Authorization": f"Bearer {signed_in.client_assertion()}", "Content-Type": "application/json", **headers}

    status, answered, text = signed_in.call("POST", "/sign-ins", [*lines.items()], body)

    assert (status, answered["content-type"]) == (expected, "application/problem+json")
    assert json.loads(text)["status"] == expected
    assert signed_in.failures == []


# E11: ID tokens, exchanged and recorded

ROW_11 = CASES["E11"]["input"]
ID_TOKENS: dict[str, str | None] = {
    "E11-0": None,
    "E11-1": "client",
    "E11-2": None,
    "E11-3": "client",
    "E11-4": "azp",
    "E11-5": "audience",
    "E11-6": "issuer",
    "E11-7": "algorithm",
    "E11-8": "algorithm",
    "E11-9": "expired",
    "E11-10": "issuer",
}


def token_of(row: dict, jti: str) -> str:
    changes = {"iss": ROW_11["idp"], "jti": jti, **row["id_token"]}
    made: dict = {}
    match changes.pop("alg", None):
        case "none":
            made = {"header": {"alg": "none"}}
        case "HS256 with client secret":
            made = {"key": SECRETS["orc_basic"].encode(), "header": {"alg": "HS256"}}
    if changes["iss"] == "other tenant's IdP":
        changes["iss"] = "https://idp.other-customer.test"
    if changes.get("exp") == "now-1":
        changes["exp"] = NOW - 1
    return id_token(**made, **changes)


@pytest.mark.parametrize("name", ID_TOKENS)
def test_an_id_token_is_good_for_the_client_it_was_issued_to(name, signed_in):
    """
    E11: exchanged at the token endpoint and recorded as a sign-in, each row has one outcome, and the log one reason.
    """
    row, reason = ROWS[name], ID_TOKENS[name]

    exchanged = signed_in.exchange(token_of(row, f"{name}-exchanged"))
    status, _, told = signed_in.record(token_of(row, f"{name}-recorded"))

    if reason is None:
        assert row["result"] == "ok"
        assert (exchanged.status, status) == (200, 201)
    else:
        assert row["result"].startswith("invalid_request") or "never sub or e-mail alone" in row["result"]
        assert exchanged.refusal == malformed(f"id_token:{reason}")
        assert (status, told["reason"]) == (400, reason)


def test_e11_11_a_provider_that_is_down():
    """
    E11: while its keys are out of reach nothing is minted, and the answer is to come again.
    """
    down = "http://127.0.0.1:9"
    site = SignedIn(with_provider(issuer=down, keys=None))

    answer = site.exchange(site.id_token(issuer=down))
    site.close()

    assert ROWS["E11-11"]["result"].startswith("temporarily_unavailable/503")
    assert answer.refusal == (503, "temporarily_unavailable", "id_token:keys_unavailable")


def test_no_row_is_left_out():
    """
    Each row of the group is run by a table or by a test of its own.
    """
    own = {*(f"E07-{n}" for n in range(8)), *(name for name in ROWS if name.startswith("E06-"))}
    run = {*BASIC, *METHODS, *REPEATED, *TIMES, *BODIES, *ODD_JSON, *ODD_BODIES, *ID_TOKENS, *own}

    assert run | {"E10-14", "E11-11", "E20-10"} == set(ROWS)
    assert {*ADMIN_BODIES, "E20-10"} == {name for name in ROWS if name.startswith("E20-")}
    assert {case["id"] for case in ALL if case["group"] == "E"} == set(CASES) | ELSEWHERE
