"""
What goes into the trail from time to time: counted, bounded, kept when it cannot be written, never in the way.
"""

import asyncio

import pytest

from issuer.audit import Actor, Entry, Head
from issuer.bookkeeping import Bookkeeping
from issuer.ledger import Done
from keys import StoreBusy

from .world import NOW

SECOPS = Actor("admin", "secops", "192.0.2.7")
HEAD = Head(7, "Tv8zM67ztTuWb6PFMOGvqOAd2oX7yCCEGig1-pPq6bM")
LATER = Head(8, HEAD.link)


class Clock:
    at = float(NOW)

    def __call__(self):
        return self.at


class Notes:
    """
    Takes entries, or fails.
    """

    def __init__(self):
        self.taken, self.failure = [], None

    async def note(self, *entries):
        if self.failure is not None:
            raise self.failure
        self.taken.append(entries)
        return Done(result=None, revision=2, head=LATER)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def notes():
    return Notes()


@pytest.fixture
def events():
    return []


@pytest.fixture
def books(notes, clock, events):
    return Bookkeeping(
        "acme", notes=notes, head=lambda: HEAD, now=clock, report=lambda event, **facts: events.append((event, facts))
    )


def loaded(at=NOW):
    return Entry(at=at, actor=Actor("service", "issuer"), event="configuration_loaded")


def test_without_news_nothing_is_recorded(books, notes, events):
    """
    The head goes to the log all the same.
    """
    asyncio.run(books.enter())

    assert notes.taken == []
    assert events == [("audit_head", {"workspace": "acme", "head": str(HEAD)})]


def test_the_head_that_is_logged_is_that_of_now(books, events):
    """
    What was just put on record counts.
    """
    books.add(loaded())

    asyncio.run(books.enter())

    assert events[-1] == ("audit_head", {"workspace": "acme", "head": str(LATER)})


def test_calls_and_attempts_are_recorded_together(books, notes, clock):
    """
    One entry for each admin, source and call, one for each source of refused attempts, when the minute is over.
    """
    for _ in range(3):
        books.called(SECOPS, "keys:list")
    books.called(SECOPS, "audit:read")
    books.refused("192.0.2.9", call="keys:list", reason="credentials", admin=None)
    books.refused("192.0.2.9", call="keys:list", reason="credentials", admin="secops")
    books.add(loaded())

    asyncio.run(books.enter())
    clock.at += 60
    asyncio.run(books.enter())

    first, second = notes.taken
    assert [(each.event, each.target, each.count, each.actor) for each in first[1:]] == [
        ("admin_called", "keys:list", 3, SECOPS),
        ("admin_called", "audit:read", 1, SECOPS),
    ]
    assert first[0] == loaded()
    assert [(each.event, each.count, each.actor.source) for each in second] == [("attempts_refused", 2, "192.0.2.9")]


def test_what_cannot_be_recorded_waits(books, notes, clock, events):
    """
    Nothing is lost or counted twice, and a failure is told once.
    """
    books.called(SECOPS, "keys:list")
    books.refused("192.0.2.9", call="keys:list", reason="credentials", admin=None)
    books.add(loaded())
    clock.at += 60
    notes.failure = StoreBusy(path="x", waited_s=10)
    asyncio.run(books.enter())
    books.called(SECOPS, "keys:list")
    asyncio.run(books.enter())
    notes.failure = RuntimeError("secret-marked-1")
    asyncio.run(books.enter())
    notes.failure = None
    asyncio.run(books.enter())

    (entries,) = notes.taken
    assert [(each.event, each.count) for each in entries] == [
        ("configuration_loaded", 1),
        ("admin_called", 2),
        ("attempts_refused", 1),
    ]
    assert [(event, facts["problem"]) for event, facts in events if event != "audit_head"] == [
        ("audit_note_failed", "store_busy"),
        ("audit_note_failed", "RuntimeError"),
        ("audit_note_recovered", None),
    ]


def test_memory_is_bounded(books, notes):
    """
    Beyond the bound calls count for nobody in particular, and the oldest entries that wait are given up.
    """
    for at in range(300):
        books.called(Actor("admin", f"admin-{at}"), "keys:list")
    for at in range(100):
        books.add(loaded(at))

    asyncio.run(books.enter())

    (entries,) = notes.taken
    calls = [each for each in entries if each.event == "admin_called"]
    assert (len(calls), calls[-1].count, calls[-1].actor.name) == (257, 44, "others")
    assert [each.at for each in entries if each.event == "configuration_loaded"] == list(range(36, 100))


def test_the_books_are_closed_in_the_end(books, notes):
    """
    What was counted in the minute that is going on is recorded too when the service stops.
    """
    books.refused("192.0.2.9", call="keys:list", reason="credentials", admin=None)

    async def stopped():
        task = asyncio.create_task(books.watch(0.001))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(stopped())

    assert [[each.event for each in entries] for entries in notes.taken] == [["attempts_refused"]]
