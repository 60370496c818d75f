"""
Every error of every route, those of the framework included, in one of two formats (D11).
"""

import json
import re

import pytest
from litestar import get, post
from litestar.exceptions import HTTPException, ValidationException
from litestar.testing import TestClient

from issuer.app import create_app
from issuer.http import errors
from issuer.http.errors import OAUTH_EVENTS, error_response, is_token_path, oauth_error_response
from issuer.http.problems import PROBLEMS, RETRY_AFTER_S, problem_response
from issuer.rings import RingUnavailable

TOKEN_PATHS = ["/oauth/token", "/w/acme/oauth/token", "/w/nobody/oauth/token", "/oauth/token/more", "//oauth//token/"]
OTHER_PATHS = ["/", "/nothing", "/w/acme", "/oauth", "/token", "/oauth/tokens", "/oauth/x/token", "/OAUTH/TOKEN"]
SECRET = "secret-of-a-caller"


def is_problem(response, status):
    """
    Tell whether an answer is a problem of *status* that no cache keeps (RFC 9457 sections 3 and 3.1).
    """
    members = response.json()
    return (
        response.status_code == status == members["status"]
        and response.headers["content-type"] == "application/problem+json"
        and response.headers["cache-control"] == "no-store"
        and members["type"] == PROBLEMS[status].uri
        and set(members) <= {"type", "title", "status", "detail"}
    )


def is_oauth_error(response, status, error):
    """
    Tell whether an answer is an OAuth error that no cache keeps (RFC 6749 section 5.2).
    """
    return (
        response.status_code == status
        and response.headers["content-type"] == "application/json"
        and response.headers["cache-control"] == "no-store"
        and response.headers["pragma"] == "no-cache"
        and response.json() == {"error": error, "error_description": response.json()["error_description"]}
        and re.fullmatch(r"[\x20-\x21\x23-\x5B\x5D-\x7E]+", response.json()["error_description"])
    )


@pytest.fixture
def failing(harness):
    """
    A service with routes that fail, one in each format.
    """
    wanted = {}

    def fail():
        raise wanted["error"]

    @get("/fail")
    async def other() -> None:
        fail()

    @post("/fail/oauth/token")
    async def token() -> None:
        fail()

    app = create_app(harness.service, poll_s=3600)
    app.register(other)
    app.register(token)
    with TestClient(app) as client:
        yield client, wanted


@pytest.mark.parametrize("path", TOKEN_PATHS)
def test_paths_of_token_endpoints_are_told_by_their_segments(path):
    """
    A misspelt workspace is one too, so that its client reads what it can read.
    """
    assert is_token_path(path)


@pytest.mark.parametrize("path", OTHER_PATHS)
def test_other_paths_are_none(path):
    """
    Paths are compared octet by octet, as the routing does.
    """
    assert not is_token_path(path)


@pytest.mark.parametrize("path", OTHER_PATHS)
def test_an_unknown_path_is_a_problem(client, path):
    """
    The framework's own 404.
    """
    assert is_problem(client.get(path), 404)


def test_an_unknown_workspace_has_an_oauth_404(client):
    """
    The same below something that looks like a token endpoint.
    """
    assert is_oauth_error(client.post("/w/nobody/oauth/token"), 404, "invalid_request")


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "TRACE", "BREW"])
def test_the_token_endpoint_takes_post_only(client, method):
    """
    E10: any other method is answered with 405, `Allow` and OAuth JSON (RFC 9110 section 15.5.6).
    """
    response = client.request(method, "/w/acme/oauth/token")

    assert response.status_code == 405
    assert "POST" in response.headers["allow"]
    assert method == "HEAD" or is_oauth_error(response, 405, "invalid_request")


@pytest.mark.parametrize("path", ["/.well-known/jwks.json", "/health/live", "/metrics"])
def test_other_routes_name_their_methods(client, path):
    """
    405 as a problem, with `Allow`.
    """
    response = client.post(path)

    assert is_problem(response, 405)
    assert "GET" in response.headers["allow"]


def test_a_large_body_is_refused(client):
    """
    413 at the token endpoint, before anything is parsed.
    """
    response = client.post("/oauth/token", content=b"a=" + b"x" * 65536)

    assert is_oauth_error(response, 413, "invalid_request")


def test_a_bad_host_header_is_refused(client):
    """
    The framework checks the syntax of `Host`; nothing else looks at it.
    """
    assert is_problem(client.get("/health/live", headers={"Host": "a b"}), 400)
    assert is_oauth_error(client.post("/oauth/token", headers={"Host": "a b"}), 400, "invalid_request")


@pytest.mark.parametrize(
    ("error", "status", "oauth_status", "code"),
    [
        (ValidationException(SECRET), 400, 400, "invalid_request"),
        (HTTPException(SECRET, status_code=415), 415, 400, "invalid_request"),
        (HTTPException(SECRET, status_code=500), 500, 500, "server_error"),
        (HTTPException(SECRET, status_code=503), 503, 503, "temporarily_unavailable"),
        (RingUnavailable("acme"), 503, 503, "temporarily_unavailable"),
        (RuntimeError(SECRET), 500, 500, "server_error"),
        (RecursionError(SECRET), 500, 500, "server_error"),
        (ExceptionGroup(SECRET, [ValueError(SECRET)]), 500, 500, "server_error"),
    ],
)
def test_whatever_is_raised_ends_in_the_format_of_the_route(failing, error, status, oauth_status, code):
    """
    No text of an exception reaches the answer.
    """
    client, wanted = failing
    wanted["error"] = error

    problem, oauth = client.get("/fail"), client.post("/fail/oauth/token")

    assert is_problem(problem, status)
    assert is_oauth_error(oauth, oauth_status, code)
    assert SECRET not in problem.text + oauth.text


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (RuntimeError(SECRET), True),
        (HTTPException(status_code=500), True),
        (HTTPException(status_code=404), False),
        (RingUnavailable("acme"), False),
    ],
)
def test_failures_of_the_service_are_reported(failing, harness, error, reported):
    """
    An operator hears of what nobody expected; the poller has already told of an unusable ring.
    """
    client, wanted = failing
    wanted["error"] = error

    client.get("/fail")

    assert harness.failures == ([error] if reported else [])


@pytest.mark.parametrize(("status", "error"), [(402, "invalid_request"), (507, "server_error")])
def test_a_status_without_an_entry_still_has_both_formats(status, error):
    """
    As a problem its type is `about:blank` (RFC 9457 section 4.2.1).
    """
    problem, oauth = error_response("/", status), error_response("/oauth/token", status)

    assert json.loads(problem.content)["type"] == "about:blank"
    assert "detail" not in json.loads(problem.content)
    assert json.loads(oauth.content)["error"] == error
    assert problem.status_code == oauth.status_code == status


@pytest.mark.parametrize("status", [429, 503])
def test_who_must_wait_is_told_how_long(status):
    """
    `Retry-After` is there by default and can be given.
    """
    given = oauth_error_response(status, "temporarily_unavailable", "Wait", {"retry-after": "60"})

    assert oauth_error_response(status, "temporarily_unavailable", "Wait").headers["Retry-After"] == str(RETRY_AFTER_S)
    assert problem_response(status).headers["Retry-After"] == str(RETRY_AFTER_S)
    assert {name.lower(): value for name, value in given.headers.items()}["retry-after"] == "60"
    assert "Retry-After" not in given.headers


def test_descriptions_hold_only_what_they_may():
    """
    RFC 6749 section 5.2 allows printable ASCII without quote and backslash.
    """
    response = oauth_error_response(400, "invalid_request", 'a"b\\c\nd\x7fé!')

    assert json.loads(response.content)["error_description"] == "a?b?c?d??!"


def test_headers_of_the_caller_win():
    """
    A challenge, or another `Cache-Control`, is handed on.
    """
    response = problem_response(401, headers={"WWW-Authenticate": "Basic", "Cache-Control": "no-cache"})

    assert response.headers == {"WWW-Authenticate": "Basic", "Cache-Control": "no-cache"}


def test_problem_types_are_stable():
    """
    Callers compare them, so a change here is a change of the interface.
    """
    assert {status: problem.uri.removeprefix("urn:caplo:problem:") for status, problem in PROBLEMS.items()} == {
        400: "bad-request",
        401: "unauthenticated",
        403: "forbidden",
        404: "not-found",
        405: "method-not-allowed",
        408: "request-timeout",
        409: "conflict",
        413: "content-too-large",
        414: "uri-too-long",
        415: "unsupported-media-type",
        422: "idempotency-key-reused",
        429: "too-many-requests",
        431: "header-fields-too-large",
        500: "internal-error",
        503: "unavailable",
    }
    assert all(status == problem.status for status, problem in PROBLEMS.items())
    assert set(PROBLEMS) - {401, 403, 409, 422} == set(OAUTH_EVENTS)
    assert errors.TOKEN_PATH == "/oauth/token"
