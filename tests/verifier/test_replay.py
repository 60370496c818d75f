"""
The memory store accepts an identifier once, forgets nothing that is still live, and refuses when it cannot tell (D4).
"""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier import MemoryReplayStore, ReplayStoreUnavailable
from verifier.replay import SupportsScope


@pytest.fixture
def store(still_clock):
    still_clock.at = 1000.0
    return MemoryReplayStore(now=still_clock)


def test_once_means_once(store):
    """
    The first use is told from every later one, for each identifier by itself.
    """
    assert store.use("a", 1060) is True
    assert store.use("b", 1060) is True
    assert [store.use("a", 1060), store.use("a", 1060), store.use("b", 2000)] == [False] * 3
    assert len(store) == 2


def test_scopes_are_apart(store):
    """
    Equal identifiers of two issuers, of two audiences, and outside any scope are different ones; one scope is one.
    """
    scopes = [("i", "a"), ("i", "b"), ("j", "a"), ("i", "ab"), ("ia", "b")]

    assert isinstance(store, SupportsScope)
    assert all(store.scoped(*scope).use("x", 1060, 1000) is True for scope in scopes)
    assert store.use("x", 1060) is True
    assert [store.scoped(*scope).use("x", 1060, 1000) for scope in scopes] == [False] * 5


def test_a_record_lives_as_long_as_its_token(store, still_clock):
    """
    A record is there up to its end and gone at it.
    """
    assert store.use("a", 1100)

    still_clock.at = 1099.999
    assert store.use("a", 1100) is False
    assert len(store) == 1

    still_clock.at = 1100
    assert store.use("b", 1160)
    assert len(store) == 1


def test_a_record_lives_a_minute_at_least(store, still_clock):
    """
    A store whose clock is ahead of the verifier's keeps a record although it looks expired from the start.
    """
    assert store.use("a", 900) is True

    still_clock.at = 1059.9
    assert store.use("a", 900) is False
    still_clock.at = 1060
    with pytest.raises(ReplayStoreUnavailable):
        store.use("a", 900)


def test_a_clock_that_goes_backwards_is_no_second_chance(store, still_clock):
    """
    What may have been forgotten while the clock was ahead is refused as unknown, and what cannot have been is taken.
    """
    assert store.use("a", 1060)
    still_clock.at = 1200
    assert store.use("b", 1260)
    still_clock.at = 1000

    with pytest.raises(ReplayStoreUnavailable):
        store.use("a", 1060)
    with pytest.raises(ReplayStoreUnavailable):
        store.use("never seen", 1060)
    assert store.use("b", 1260) is False
    assert store.use("c", 1061) is True


def test_a_full_store_refuses(still_clock):
    """
    When every record is live nothing is forgotten for a new one; a used identifier is still told, and room comes with time.
    """
    store = MemoryReplayStore(max_entries=2, now=still_clock)
    assert [store.use("a", 100), store.use("b", 200)] == [True, True]

    with pytest.raises(ReplayStoreUnavailable):
        store.use("c", 300)
    assert [store.use("a", 100), store.use("b", 200)] == [False, False]

    still_clock.at = 100
    assert store.use("c", 300) is True
    assert store.use("b", 200) is False
    with pytest.raises(ReplayStoreUnavailable):
        store.use("d", 300)


@pytest.mark.parametrize("max_entries", [0, -1, True, 1.5, "5", None])
def test_a_limit_is_a_positive_int(max_entries):
    """
    Another limit is the programmer's mistake.
    """
    with pytest.raises(ValueError):
        MemoryReplayStore(max_entries=max_entries)


def test_the_default_clock_is_the_wall_clock():
    """
    Without a clock of its own the store goes by epoch seconds.
    """
    store = MemoryReplayStore()

    assert store.use("a", 2**40) is True
    assert store.use("a", 2**40) is False


@pytest.mark.parametrize("face", ["plain", "scoped"])
def test_threads_agree_on_the_first_use(store, face):
    """
    However many threads use one identifier at once, exactly one of them hears that it was the first.
    """
    use = store.use if face == "plain" else lambda jti, until: store.scoped("i", "a").use(jti, until, 1000)
    start, answers = threading.Barrier(8), []

    def run():
        start.wait()
        answers.extend((number, use(str(number), 1060)) for number in range(500))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(number for number, first in answers if first) == list(range(500))
    assert len(answers) == 4000


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(-90, 90)), max_size=40),
    st.fixed_dictionaries(dict.fromkeys("abcdef", st.integers(1000, 1150))),
)
def test_no_token_is_accepted_twice(steps, ends):
    """
    Whatever the order of uses and whichever way the clock goes, a token that has not expired is accepted at most once.
    """
    clock = [1000.0]
    store = MemoryReplayStore(max_entries=3, now=lambda: clock[0])
    accepted = []

    for jti, step in steps:
        clock[0] += step
        if ends[jti] <= clock[0]:
            continue
        try:
            accepted += [jti] if store.use(jti, ends[jti]) else []
        except ReplayStoreUnavailable:
            continue

    assert len(accepted) == len(set(accepted))
