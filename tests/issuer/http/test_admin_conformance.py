"""
The rows of the conformance table about administration, keys and key sets: each is named by the test that shows it.
"""

import ast
import asyncio
import csv
import re
from pathlib import Path

import pytest

from issuer.http.admin_problems import ADMIN_PROBLEMS
from issuer.http.problems import PROBLEMS

from ..estate import ADMIN_SECRETS, problem
from ..world import basic

TESTS = Path(__file__).parents[2]
TABLE = TESTS.parent / ".." / "shared" / "conformance.csv"
PREFIXES = ("admin-", "idk-", "jwks-", "key-", "pd-")
KEYS = TESTS / "keys" / "test_conformance.py"
"""Rows whose side is `keys` stand in a table of that package."""


@pytest.mark.skipif(not TABLE.exists(), reason="the conformance table lies beside the repository and is not there")
def test_every_row_is_shown():
    """
    No row of these is left out in silence.
    """
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = {row["id"] for row in csv.DictReader(file) if row["id"].startswith(PREFIXES)}
    trees = (ast.parse(path.read_bytes()) for path in TESTS.rglob("test_*.py"))
    functions = (
        each for tree in trees for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    named = {name for each in functions for name in re.findall(r"[a-z]+(?:-[a-z0-9]+)+", ast.get_docstring(each) or "")}
    named |= set(re.findall(r'"([a-z]+(?:-[a-z0-9]+)+)"', KEYS.read_text()))

    assert rows - named == set()


@pytest.mark.parametrize("admin", ["secops", "robot", "nobody"])
def test_an_admin_cannot_be_guessed_at_speed(admin, desk):
    """
    te-brute-force: the 11th wrong secret in a minute is 429 with problem details, and in the books; the right one still works.
    """
    wrong = {"Authorization": basic(admin, "guessed")}
    known = admin if admin != "nobody" else ""

    answers = [desk.ask("GET", "/admin/keys", headers=wrong) for _ in range(12)]
    right = [desk.ask("GET", "/admin/keys", admin=each) for each in ("secops", "robot")]
    desk.site.clock.at += 60
    desk.site.monotonic.at += 60
    later = desk.ask("GET", "/admin/keys", headers=wrong)
    asyncio.run(desk.site.service.offices["root"].books.enter())

    assert [problem(answer) for answer in answers[:10]] == [(401, "unauthenticated")] * 10
    assert [problem(answer) for answer in answers[10:]] == [(429, "too-many-requests")] * 2
    assert [answer.headers["retry-after"] for answer in answers[10:]] == ["60", "60"]
    assert "www-authenticate" not in answers[10].headers
    assert [answer.status_code for answer in (*right, later)] == [200, 200, 401]
    (record,) = (each for each in desk.trail().records if each["event"] == "attempts_refused")
    assert {(kind["reason"], kind["name"]): kind["count"] for kind in record["after"]["kinds"]} == {
        ("credentials", known): 10,
        ("limit:wrong_secrets", known): 2,
    }


def test_every_error_is_a_problem(desk):
    """
    pd-type: each status of the admin routes, those of the framework too, with a stable type, its own status and longer names.
    """
    key = {"Idempotency-Key": "idk-of-the-conformance"}
    active = {"expected_active": desk.ring().active.kid}
    secret = basic("secops", ADMIN_SECRETS["secops"])
    desk.ask("POST", "/admin/keys/rotate", active, headers=key)
    answers = [
        desk.ask("POST", "/admin/keys/rotate", active),
        desk.ask("GET", "/admin/keys", admin=None),
        desk.ask("GET", "/admin/audit", admin="reader"),
        desk.ask("DELETE", "/admin/suspensions/none"),
        desk.ask("GET", "/admin/nothing"),
        desk.ask("PUT", "/admin/keys"),
        desk.ask("POST", "/admin/keys/rotate", active, headers={"Idempotency-Key": "idk-of-the-conformance-2"}),
        desk.ask("POST", "/admin/keys/revoke-all", b" " * 1_000_000),
        desk.ask("POST", "/admin/keys/revoke-all", b"{}", headers={"Content-Type": "text/plain"}),
        desk.ask("POST", "/admin/keys/rotate", {"expected_active": "x"}, headers=key),
        desk.ask("GET", "/admin/keys", headers={"Authorization": secret, "X-Large": "x" * 40_000}),
    ]
    desk.site.service.state.admin_records._max_records = 0
    answers.append(desk.rotate())
    desk.trail().is_down = True
    answers.append(desk.ask("GET", "/admin/audit"))
    desk.site.ring_stores["root"].failure = RuntimeError("secret-marked-1")
    answers.append(desk.ask("GET", "/admin/keys"))

    found = [problem(answer) for answer in answers]

    assert [status for status, _ in found] == [400, 401, 403, 404, 404, 405, 409, 413, 415, 422, 431, 429, 503, 500]
    known = {each.slug for each in (*PROBLEMS.values(), *ADMIN_PROBLEMS.values())}
    assert {slug for _, slug in found} <= known
    for answer in answers:
        assert all(re.fullmatch("[a-z][a-z0-9_]{2,}", name) for name in answer.json())
        assert "secret-marked-1" not in answer.text
        assert ("www-authenticate" in answer.headers) == (answer.status_code in {401, 403})
        assert ("retry-after" in answer.headers) == (answer.status_code in {429, 503})
