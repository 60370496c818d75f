"""
Who gets which connection: bounded, first come first served, and nothing lost when somebody stops waiting.
"""

import time
from concurrent.futures import Future

import pytest

from verifier import ReplayStoreUnavailable
from verifier.replay_redis_pool import Pool, Waiter


class Wire:
    """
    A connection that only knows where it leads.
    """

    def __init__(self, label=""):
        self.label, self.closed = label, False

    def close(self):
        self.closed = True


class Stage:
    """
    A pool whose connections come up when the test says so.
    """

    def __init__(self, limit=2, begin=None):
        self.begun = []
        self.pool = Pool(limit, begin=begin or self.begun.append, future=Future)

    def up(self, label="", routes=None):
        wire = Wire(label)
        self.pool.joined(self.begun.pop(0), wire, routes or {})
        return wire


def given(waiter):
    """
    Return what a waiter was given, or None as long as it waits.
    """
    return waiter.future.result() if waiter.future.done() else None


def test_a_connection_is_used_by_one_at_a_time():
    """
    Who takes one has it until it is given back, and the next one gets the same.
    """
    stage = Stage()
    first = stage.pool.take("")
    wire = stage.up()

    assert given(first) is wire
    assert isinstance(stage.pool.take(""), Waiter)
    stage.pool.give(wire)
    assert given(stage.pool.take("")) is None


def test_no_more_than_the_limit():
    """
    Beyond the limit callers wait, and are served in the order in which they came.
    """
    stage = Stage(limit=2)
    waiters = [stage.pool.take("") for _ in range(5)]
    assert len(stage.begun) == 2

    wires = [stage.up(), stage.up()]
    stage.pool.give(wires[0])
    stage.pool.give(wires[1])

    assert [given(waiter) for waiter in waiters[:4]] == [*wires, *wires]
    assert given(waiters[4]) is None
    assert stage.begun == []


def test_a_crowd_costs_each_of_them_no_more():
    """
    Where everybody was looked at for everyone who comes, many who wait would make all of them late.
    """
    stage = Stage(limit=1)

    started = time.process_time()
    waiters = [stage.pool.take("") for _ in range(8000)]
    wire = stage.up()
    for _ in waiters:
        stage.pool.give(wire)
    took_s = time.process_time() - started

    assert [given(each) for each in waiters] == [wire] * 8000
    assert took_s < 4


def test_a_connection_that_fails_tells_its_waiter_and_makes_room():
    """
    Its own waiter hears why; for the next one another is begun.
    """
    stage = Stage(limit=1)
    first, second = stage.pool.take(""), stage.pool.take("")
    error = ReplayStoreUnavailable("down")

    stage.pool.failed(stage.begun.pop(0), error)

    assert given(first) is error
    assert given(second) is None
    assert stage.begun == [second]


def test_a_failure_that_concerns_nobody_any_more():
    """
    A waiter who was served by another connection does not hear that its own failed.
    """
    stage = Stage(limit=2)
    first, second = stage.pool.take(""), stage.pool.take("")
    wire = stage.up()
    stage.pool.give(wire)
    assert (given(first), given(second)) == (wire, wire)

    stage.pool.failed(stage.begun.pop(0), ReplayStoreUnavailable("down"))

    assert given(second) is wire
    stage.pool.take("")
    assert len(stage.begun) == 1


def test_a_lost_connection_makes_room():
    """
    For whoever waits another one is begun.
    """
    stage = Stage(limit=1)
    stage.pool.take("")
    wire = stage.up()
    waiter = stage.pool.take("")
    assert stage.begun == []

    stage.pool.lost(wire)

    assert wire.closed
    assert stage.begun == [waiter]


def test_who_leaves_is_not_served():
    """
    A connection that was begun for somebody who left waits for the next.
    """
    stage = Stage()
    first = stage.pool.take("")
    stage.pool.leave(first)

    wire = stage.up()

    assert given(first) is None
    assert stage.pool.take("") is wire


def test_what_was_given_in_the_moment_of_leaving_goes_on():
    """
    A connection handed to somebody who no longer looks is handed to the next.
    """
    stage = Stage()
    first = stage.pool.take("")
    wire = stage.up()
    assert given(first) is wire

    stage.pool.leave(first)

    assert stage.pool.take("") is wire


def test_leaving_with_an_error_or_cancelled_leaves_nothing():
    """
    There is nothing to hand on then.
    """
    stage = Stage()
    failed, cancelled = stage.pool.take(""), stage.pool.take("")
    stage.pool.failed(stage.begun.pop(0), ReplayStoreUnavailable("down"))
    cancelled.future.cancel()
    wire = stage.up()
    assert not wire.closed

    stage.pool.leave(failed)
    stage.pool.leave(cancelled)
    stage.pool.leave(cancelled)

    assert stage.pool.take("") is wire


def test_a_cancelled_waiter_is_passed_over():
    """
    A waiter whose future is cancelled but who has not left yet is neither served nor told.
    """
    stage = Stage(limit=1)
    cancelled, second = stage.pool.take(""), stage.pool.take("")
    cancelled.future.cancel()

    stage.pool.failed(stage.begun.pop(0), ReplayStoreUnavailable("down"))
    wire = stage.up()

    assert given(second) is wire


def test_forgetting_drops_what_is_free():
    """
    Free connections to a primary are dropped with its routes; those in use come back as they were.
    """
    stage = Stage(limit=3)
    for tag in ("a", "b"):
        stage.pool.take(tag)
    there = stage.up("one", {"a": "one", "b": "two"})
    other = stage.up("two")
    assert stage.pool.routes == {"a": "one", "b": "two"}
    stage.pool.give(there)
    stage.pool.give(other)

    stage.pool.forget("one")

    assert (there.closed, other.closed) == (True, False)
    assert stage.pool.routes == {"b": "two"}
    assert stage.pool.take("b") is other
    assert isinstance(stage.pool.take("a"), Waiter)


def test_routes_that_become_known_serve_who_waits():
    """
    A connection that is free already serves a waiter as soon as it is known to lead to the right primary.
    """
    stage = Stage(limit=2)
    stage.pool.take("a")
    first = stage.up("one", {"a": "one"})
    waiter = stage.pool.take("b")
    assert stage.begun == [waiter]
    stage.pool.give(first)

    second = stage.up("two", {"b": "one"})

    assert given(waiter) is first
    assert not second.closed


def test_a_free_connection_to_elsewhere_makes_room():
    """
    At the limit a connection to another primary is dropped for one that is waited for.
    """
    stage = Stage(limit=1)
    stage.pool.take("a")
    wire = stage.up("one", {"a": "one", "b": "two"})
    stage.pool.give(wire)

    waiter = stage.pool.take("b")

    assert wire.closed
    assert stage.begun == [waiter]


def test_closing_ends_everything():
    """
    Free connections are dropped, those in use when they come back, waiters hear of it, and nobody is served any more.
    """
    stage = Stage(limit=3)
    stage.pool.take("")
    stage.pool.take("")
    free, busy = stage.up(), stage.up()
    stage.pool.give(free)
    stage.pool.take("")
    waiter = stage.pool.take("")

    stage.pool.give(free)
    stage.pool.close()
    stage.pool.give(busy)

    assert (free.closed, busy.closed) == (False, True)
    assert waiter.future.done()
    with pytest.raises(ReplayStoreUnavailable):
        stage.pool.take("")
    late = Wire()
    stage.pool.joined(waiter, late, {})
    assert late.closed


def test_closing_tells_who_waits():
    """
    Whoever waits at that moment hears that the store is closed.
    """
    stage = Stage(limit=1)
    waiter, idle = stage.pool.take(""), Wire()
    stage.pool.close()

    assert isinstance(given(waiter), ReplayStoreUnavailable)
    stage.pool.give(idle)
    assert idle.closed


def test_a_connection_that_cannot_even_be_begun():
    """
    At the end of the interpreter no thread starts any more: the waiter hears of it at once.
    """

    def begin(_waiter):
        raise RuntimeError("can't start new thread at interpreter shutdown")

    waiter = Stage(begin=begin).pool.take("")

    assert isinstance(given(waiter), ReplayStoreUnavailable)
