"""
One admin call under one key, in memory and in Redis alike: kept for a day, in its own scope, within bounds.
"""

import pytest

from issuer.admin_idempotency import (
    MAX_ANSWER_OCTETS,
    RETENTION_S,
    RUNNING_S,
    AdminScope,
    MemoryAdminRecords,
    StoredAnswer,
    Ticket,
)
from issuer.admin_records_redis import RedisAdminRecords

from .estate import SEALING
from .records import kept_in

SCOPE = AdminScope("root", "secops", "POST", "/admin/keys/rotate", "idk-of-the-tests-1")
ANSWER = StoredAnswer(200, b"{}")


def in_redis(connection, **options):
    return RedisAdminRecords(connection, SEALING, **options)


@pytest.fixture(params=["memory", "redis"])
def kept(request):
    """
    Records that hold at most three of an admin.
    """
    return kept_in(request.param, request, MemoryAdminRecords, in_redis, max_records=3)


@pytest.fixture
def claim(kept):
    """
    Claim, and tell what came of it: "first" for a ticket.
    """

    def claim(scope=SCOPE, content=b"body"):
        claimed = kept.run(kept.records.claim(scope, content, kept.now))
        if not isinstance(claimed, Ticket):
            return claimed
        tickets[scope] = claimed
        return "first"

    tickets = claim.tickets = {}
    return claim


@pytest.fixture
def finish(kept, claim):
    return lambda ticket=None, answer=ANSWER: kept.run(kept.records.finish(ticket or claim.tickets[SCOPE], answer))


@pytest.fixture
def release(kept, claim):
    return lambda ticket=None: kept.run(kept.records.release(ticket or claim.tickets[SCOPE]))


def test_the_first_call_goes_ahead_and_its_answer_is_kept(kept, claim, finish):
    """
    While it goes on the same call hears so; afterwards it hears the answer.
    """
    assert claim() == "first"
    assert claim() == "in_progress"
    finish(answer=StoredAnswer(201, b'{"reason": "\xc3\xa9"}'))

    assert claim() == StoredAnswer(201, b'{"reason": "\xc3\xa9"}')
    kept.wait(RETENTION_S - RUNNING_S)
    assert claim() == StoredAnswer(201, b'{"reason": "\xc3\xa9"}')


@pytest.mark.parametrize("is_finished", [False, True])
def test_another_body_under_the_key_is_a_conflict(claim, finish, is_finished):
    """
    G01: whether the first call is over or not, and the record stays as it is.
    """
    claim()
    if is_finished:
        finish()

    assert claim(content=b"other") == "conflict"
    assert claim() == (ANSWER if is_finished else "in_progress")


def test_a_call_that_changed_nothing_is_forgotten(claim, release):
    """
    The key is free for the next try, with whatever body; forgetting twice does no harm.
    """
    claim()
    release()
    release()

    assert claim(content=b"other") == "first"


@pytest.mark.parametrize("change", [{name: "other"} for name in AdminScope._fields])
def test_a_key_belongs_to_its_scope(claim, change):
    """
    idk-composite: another workspace, admin, method, path or key is another call.
    """
    assert [claim(), claim(SCOPE._replace(**change), b"other")] == ["first", "first"]


def test_records_are_gone_after_a_day(kept, claim, finish):
    """
    The documented time.
    """
    claim()
    finish()
    kept.wait(RETENTION_S)

    assert claim(content=b"other") == "first"


def test_a_call_that_never_ends_stands_in_the_way_for_two_minutes(kept, claim):
    """
    Its instance died between the two: the same call is let through then, and no answer is made up.
    """
    claim()
    kept.wait(RUNNING_S - 20)
    assert claim() == "in_progress"
    kept.wait(20)

    assert claim() == "first"


@pytest.mark.parametrize("content", [b"body", b"other"])
def test_a_call_that_took_too_long_has_lost_its_place(kept, claim, finish, release, content):
    """
    What it has to say is not taken for the answer of the call that has its place now, and clears nothing away.
    """
    claim()
    late = claim.tickets[SCOPE]
    kept.wait(RUNNING_S)
    claim(content=content)

    finish(late)
    release(late)

    assert claim(content=content) == "in_progress"
    finish(answer=StoredAnswer(204, b""))
    release(late)
    assert claim(content=content) == StoredAnswer(204, b"")


def test_a_place_that_is_gone_is_not_filled(claim, finish, release):
    """
    A call that was forgotten leaves no answer behind.
    """
    claim()
    release()
    finish()

    assert claim(content=b"other") == "first"


def test_an_admin_has_a_bounded_number_of_them(kept, claim, finish, release):
    """
    Beyond it nothing new is taken, for this admin alone, until one is forgotten or over.
    """
    scopes = [SCOPE._replace(key=f"idk-of-the-tests-{at}") for at in range(5)]

    assert [claim(scope) for scope in scopes[:4]] == ["first"] * 3 + ["full"]
    assert claim(scopes[0]) == "in_progress"
    assert claim(SCOPE._replace(admin="other")) == "first"
    assert claim(SCOPE._replace(workspace="acme")) == "first"
    release(claim.tickets[scopes[0]])
    assert claim(scopes[3]) == "first"
    finish(claim.tickets[scopes[3]])
    kept.wait(RUNNING_S)
    assert [claim(scope) for scope in scopes] == ["first", "first", "full", ANSWER, "full"]
    kept.wait(RETENTION_S)
    assert [claim(scope) for scope in scopes] == ["first"] * 3 + ["full"] * 2


def test_an_answer_that_is_too_long_is_not_kept(claim, finish):
    """
    The bound is several times what any answer has.
    """
    claim()
    with pytest.raises(ValueError):
        finish(answer=StoredAnswer(200, b"x" * (MAX_ANSWER_OCTETS + 1)))
    assert claim() == "in_progress"

    finish(answer=StoredAnswer(200, b"x" * MAX_ANSWER_OCTETS))

    assert claim() == StoredAnswer(200, b"x" * MAX_ANSWER_OCTETS)
