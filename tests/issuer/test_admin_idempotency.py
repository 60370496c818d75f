"""
One admin call under one key: kept for a day, in its own scope, within bounds.
"""

import asyncio

import pytest

from issuer.admin_idempotency import RETENTION_S, AdminScope, MemoryAdminRecords, StoredAnswer

from .world import NOW

SCOPE = AdminScope("root", "secops", "POST", "/admin/keys/rotate", "idk-of-the-tests-1")
ANSWER = StoredAnswer(200, b"{}")


@pytest.fixture
def records():
    return MemoryAdminRecords(3)


@pytest.fixture
def claim(records):
    return lambda scope=SCOPE, content=b"body", now=NOW: asyncio.run(records.claim(scope, content, now))


def test_the_first_call_goes_ahead_and_its_answer_is_kept(records, claim):
    """
    While it goes on the same call hears so; afterwards it hears the answer.
    """
    assert claim() == "first"
    assert claim() == "in_progress"
    asyncio.run(records.finish(SCOPE, ANSWER))

    assert [claim(), claim(now=NOW + RETENTION_S - 1)] == [ANSWER, ANSWER]


@pytest.mark.parametrize("is_finished", [False, True])
def test_another_body_under_the_key_is_a_conflict(records, claim, is_finished):
    """
    G01: whether the first call is over or not, and the record stays as it is.
    """
    claim()
    if is_finished:
        asyncio.run(records.finish(SCOPE, ANSWER))

    assert claim(content=b"other") == "conflict"
    assert claim() == (ANSWER if is_finished else "in_progress")


def test_a_call_that_changed_nothing_is_forgotten(records, claim):
    """
    The key is free for the next try, with whatever body; forgetting twice does no harm.
    """
    claim()
    asyncio.run(records.release(SCOPE))
    asyncio.run(records.release(SCOPE))

    assert claim(content=b"other") == "first"


@pytest.mark.parametrize("change", [{name: "other"} for name in AdminScope._fields])
def test_a_key_belongs_to_its_scope(claim, change):
    """
    idk-composite: another workspace, admin, method, path or key is another call.
    """
    assert [claim(), claim(SCOPE._replace(**change), b"other")] == ["first", "first"]


def test_records_are_gone_after_a_day(records, claim):
    """
    The documented time; what finishes later than that is not kept.
    """
    claim()

    assert claim(content=b"other", now=NOW + RETENTION_S) == "first"
    asyncio.run(records.release(SCOPE))
    asyncio.run(records.finish(SCOPE, ANSWER))
    assert claim(now=NOW + RETENTION_S) == "first"


def test_an_admin_has_a_bounded_number_of_them(records, claim):
    """
    Beyond it nothing new is taken, for this admin alone, until one is forgotten.
    """
    scopes = [SCOPE._replace(key=f"idk-of-the-tests-{at}") for at in range(4)]

    assert [claim(scope) for scope in scopes] == ["first"] * 3 + ["full"]
    assert claim(scopes[0]) == "in_progress"
    assert claim(SCOPE._replace(admin="other")) == "first"
    asyncio.run(records.release(scopes[0]))
    assert claim(scopes[3]) == "first"
    assert claim(SCOPE._replace(key="idk-of-the-tests-9"), now=NOW + RETENTION_S) == "first"
    assert len(records._records) == 1
