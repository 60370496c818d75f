"""
The token endpoint's face in HTTP: status, headers and RFC 6749 JSON whatever the method, the headers or the bytes.

Every answer passes the checks of `site.Answer`: media type, no-store, a challenge with 401 and nowhere else, a registered code.
"""

import asyncio
from urllib.parse import urlencode

import pytest

from .world import SHOP

FORM = "application/x-www-form-urlencoded"


def test_success_is_flat_json_that_is_never_stored(site):
    """
    te-success: 200, the parameters of RFC 8693 section 2.2.1 at the top level, no-store and no-cache.
    """
    answer = site.ask(scope="orders:read")

    assert answer.status == 200
    assert {name: type(value) for name, value in answer.members.items()} == {
        "access_token": str,
        "issued_token_type": str,
        "token_type": str,
        "expires_in": int,
        "scope": str,
    }
    assert (answer.members["token_type"], answer.members["expires_in"]) == ("Bearer", 60)
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "TRACE", "FOO"])
def test_only_post_is_taken(method, site):
    """
    ch-405-allow, tx-form-post: any other method is 405 with Allow, in the format of the endpoint.
    """
    response = site.http.request(method, "/oauth/token")

    assert response.status_code == 405
    assert "POST" in response.headers["allow"]
    assert response.headers["cache-control"] == "no-store"
    assert method == "HEAD" or response.json()["error"] == "invalid_request"


@pytest.mark.parametrize("workspace", ["root", "acme"])
def test_every_401_has_a_challenge(workspace, site):
    """
    ch-401-challenge: Basic, with the issuer as realm, also for a client that used an assertion (D11).
    """
    answers = [
        site.ask(workspace=workspace, client_assertion="x"),
        site.post({}, workspace=workspace),
        site.post({}, {"Authorization": "Basic x"}, workspace=workspace),
    ]

    realm = site.workspace(workspace).issuer
    assert [answer.headers["www-authenticate"] for answer in answers] == [f'Basic realm="{realm}"'] * 3


def test_failed_authentication_looks_the_same_for_everyone(site):
    """
    te-invalid-client: body and headers of an unknown client, a wrong secret, a wrong key and nonsense are equal.
    """
    attempts = [
        *(
            site.post({}, {"Authorization": site_basic})
            for site_basic in ("Basic bm9ib2R5OnM=", "Basic YzE6eA==", "Basic !")
        ),
        site.ask(client_assertion=site.client_assertion(sub="nobody", iss="nobody")),
        site.ask(client_assertion=site.client_assertion(key="subject-1")),
        site.ask(client_assertion=site.client_assertion(header={"jwk": {}, "kid": "client-9"})),
        site.ask(client_assertion="x"),
        site.post({}),
    ]

    assert len({answer.text for answer in attempts}) == 1
    assert len({str(sorted(answer.headers.items())) for answer in attempts}) == 1


@pytest.mark.parametrize(
    "lines",
    [
        [("Authorization", "Basic YzE6cw=="), ("Authorization", "Basic YzE6cw==")],
        [("Authorization", "Basic YzE6cw=="), ("authorization", "Bearer x")],
    ],
)
def test_two_authorization_lines_are_two_methods(lines, served):
    """
    te-one-auth: neither the first nor the last of them is picked.
    """
    answer = served.post(served.form(client="c1"), lines)

    assert answer.refusal == (400, "invalid_request", "client:two_methods")


@pytest.mark.parametrize("second", ["application/json", FORM])
def test_two_media_types_are_none(second, served):
    """
    RFC 9110 section 5.3: several lines are one list, and a list is no media type.
    """
    answer = served.post(served.form(), [("Content-Type", FORM), ("Content-Type", second)])

    assert answer.refusal == (400, "invalid_request", "form:media_type")


@pytest.mark.parametrize("header", ["Basic \u00e9", "Bas\u00efc x", "Basic\u00a0x", "\u00ff"])
def test_header_octets_outside_ascii_authenticate_nobody(header, site):
    """
    Octets that are not ASCII in a credential are a failed authentication, never a failure of the service.
    """
    answer = site.post(site.form(client="c1"), [("Authorization", header.encode("latin-1"))])

    assert answer.refusal[:2] == (401, "invalid_client")


@pytest.mark.parametrize("size", [65_536, 65_537, 1_000_000])
def test_a_body_is_read_up_to_64_kib(size, site):
    """
    Up to the bound it is a form; beyond it, 413 before it is parsed.
    """
    body = b"a=" + b"x" * (size - 2)

    answer = site.post(body)

    assert answer.status == (401 if size == 65_536 else 413)
    assert answer.error == ("invalid_client" if size == 65_536 else "invalid_request")


def test_a_body_without_a_length_is_read_up_to_64_kib(site):
    """
    The bound holds in mid-stream, too, where no length was announced.
    """
    chunks = (b"x" * 10_000 for _ in range(100))

    response = site.http.post("/oauth/token", content=chunks, headers={"Content-Type": FORM})

    assert (response.status_code, response.json()["error"]) == (413, "invalid_request")


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip"])
def test_a_coded_body_is_not_read(coding, site):
    """
    A content coding is refused before anything is decoded, so that nothing small becomes large.
    """
    answer = site.post(site.form(), {"Content-Encoding": coding})

    assert (answer.status, answer.error) == (400, "invalid_request")


def test_parameters_in_the_query_are_never_read(site):
    """
    te-one-auth: neither secrets nor anything else counts in the URL.
    """
    query = urlencode(site.form())

    alone = site.post(b"", query=f"?{query}")
    beside = site.post(site.form(), query="?grant_type=client_credentials&scope=unknown&client_secret=s")

    assert alone.refusal == (401, "invalid_client", "client:no_credentials")
    assert beside.status == 200


@pytest.mark.parametrize(
    "lines",
    [
        {"Idempotency-Key": "one"},
        {"Host": "evil.test"},
        {"X-Forwarded-Host": "evil.test", "X-Forwarded-Proto": "http"},
        {"Origin": "https://evil.test"},
        {"Accept": "application/problem+json"},
        {"Content-Type": f"{FORM}; charset=UTF-8"},
    ],
)
def test_other_headers_change_nothing(lines, site):
    """
    D12, D3: an `Idempotency-Key` is ignored, so that no token is given out twice, and no URL comes from a header.
    """
    first, second = site.post(site.form(), lines), site.post(site.form(), lines)

    assert first.claims["iss"] == second.claims["iss"] == "https://issuer.test"
    assert first.claims["jti"] != second.claims["jti"]
    assert "access-control-allow-origin" not in first.headers


@pytest.mark.parametrize(
    "path", ["/w/none/oauth/token", "/oauth/token/x", "/OAUTH/token", "/oauth/tokens", "/w/oauth/token"]
)
def test_near_the_endpoint_no_token_is_minted(path, site):
    """
    A path of no endpoint mints nothing; where a client looks for one, it still reads an OAuth error.
    """
    response = site.http.post(path, data=site.form())

    assert response.status_code in (404, 405)
    assert "access_token" not in response.json()
    assert ("error" in response.json()) == ("/oauth/token" in path.replace("tokens", ""))


@pytest.mark.parametrize("path", ["/oauth/token/", "/oauth//token", "//oauth/token"])
def test_slashes_too_many_lead_to_the_same_endpoint(path, site):
    """
    The routing reads them as one, and the answer keeps its format and headers.
    """
    response = site.http.post(f"https://issuer.test{path}", data=site.form())

    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")


def test_a_workspace_at_a_path_answers_for_itself(site):
    """
    The same request goes to the endpoint of the workspace it was made for, and to no other.
    """
    form = site.form(workspace="acme")

    here, there = site.post(form, workspace="root"), site.post(form, workspace="acme")

    assert here.refusal == (401, "invalid_client", "client_assertion:audience")
    assert (there.claims["iss"], there.claims["aud"]) == ("https://issuer.test/w/acme", SHOP)


def test_what_nobody_expected_is_a_server_error(build_site):
    """
    An exception that is no refusal is 500 `server_error`, is reported, and tells the client nothing.
    """
    site = build_site()
    site.service.rings["root"]._view = "no view"

    answer = site.ask()

    assert answer.refusal == (500, "server_error", None)
    assert [type(failure) for failure in site.failures] == [AttributeError]


@pytest.mark.parametrize("authorization_details", [None, "write"])
def test_a_service_without_its_ring_says_when_to_come_back(authorization_details, site):
    """
    503 `temporarily_unavailable` with Retry-After, for reads and writes, while the signing keys cannot be used.
    """
    details = authorization_details and site.details()
    site.lose_rings()

    answer = site.ask(authorization_details=details)

    assert answer.refusal == (503, "temporarily_unavailable", "ring:unavailable")
    assert answer.headers["retry-after"] == "1"


def test_many_requests_at_once_are_as_many_tokens(site):
    """
    The endpoint keeps nothing of one request in another: fifty at once give fifty tokens of their own.
    """

    async def all_at_once():
        endpoint = site.endpoint()
        requests = [site.token_request(subject_token=site.subject_token(sub=f"cus_{n}")) for n in range(50)]
        return await asyncio.gather(*(endpoint.answer(request) for request in requests))

    answers = asyncio.run(all_at_once())

    contexts = [site.verifier().verify(answer["access_token"]) for answer in answers]
    assert [context.sub for context in contexts] == [f"cus_{n}" for n in range(50)]
    assert len({context.jti for context in contexts}) == 50
