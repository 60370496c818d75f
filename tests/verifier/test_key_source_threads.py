"""
The blocking key source between threads, and after a fork.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from verifier.errors import CustomerContextError
from verifier.key_source import KeySource

URL = "https://issuer.test/.well-known/jwks.json"


def test_many_threads_share_one_fetch(scripted_issuer):
    """
    Threads that need the same cold cache wait for one fetch, and all of them get the key.
    """
    ready, answered = threading.Semaphore(0), threading.Event()
    scripted_issuer.meanwhile = answered.wait
    source = KeySource(URL, fetch=scripted_issuer.fetch)

    def call() -> object:
        ready.release()
        return source.key("k1")

    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(call) for _ in range(8)]
        for _ in calls:
            ready.acquire()
        answered.set()
        keys = {id(call.result()) for call in calls}

    assert len(keys) == 1
    assert len(scripted_issuer.asked) == 1


def test_no_thread_with_a_fresh_key_waits_for_a_fetch(scripted_issuer, still_clock):
    """
    B13, B17: while a fetch hangs, keys at hand are answered at once, and a kid that is not waits no longer than its limit.
    """
    answered = threading.Event()
    source = KeySource(URL, fetch=scripted_issuer.fetch, monotonic=still_clock)
    source.key("k1")
    scripted_issuer.meanwhile, source._wait_limit_s = answered.wait, 0.05

    still_clock.at = 100
    keys = [source.key("k1"), source.key("k1")]
    with pytest.raises(CustomerContextError) as caught:
        source.key("k3")
    answered.set()

    assert len(keys) == 2
    assert caught.value.reason == "keys_unavailable"
    assert len(scripted_issuer.asked) == 2
    assert source.state()["last_error"] == "TimeoutError"


def test_an_answer_after_the_limit_is_dropped(scripted_issuer, still_clock):
    """
    What comes after everyone was told keys_unavailable changes nothing, neither for the keys nor for the error.
    """
    runs = []
    source = KeySource(URL, fetch=scripted_issuer.fetch, monotonic=still_clock, wait_limit_s=0.01, start=runs.append)
    reasons = []
    for _ in range(2):
        with pytest.raises(CustomerContextError) as caught:
            source.key("k1")
        reasons.append(caught.value.reason)

    runs[0]()

    assert reasons == ["keys_unavailable", "keys_unavailable"]
    assert len(runs) == 1
    assert source.state()["kids"] == []
    assert source.state()["last_error"] == "TimeoutError"


def test_keys_serve_stale_when_the_fetch_hangs(scripted_issuer, still_clock):
    """
    A fetch that does not end within the limit is an error like others: stale-if-error applies.
    """
    hanging = threading.Event()
    source = KeySource(URL, fetch=scripted_issuer.fetch, monotonic=still_clock)
    scripted_issuer.answer = scripted_issuer.jwks("k1", Cache_Control="max-age=60, stale-if-error=60")
    key = source.key("k1")
    scripted_issuer.meanwhile, source._wait_limit_s = hanging.wait, 0.05

    still_clock.at = 61
    stale = source.key("k1")
    hanging.set()

    assert stale is key


def test_where_no_thread_can_be_started_nothing_breaks(scripted_issuer, still_clock):
    """
    At the end of the interpreter, or at a limit of the system, a fetch fails; keys at hand serve.
    """
    source = KeySource(URL, fetch=scripted_issuer.fetch, monotonic=still_clock)
    source.key("k1")

    def refuse(_run: object) -> None:
        raise RuntimeError("can't start new thread")

    source._start_run = refuse
    still_clock.at = 100
    key = source.key("k1")
    with pytest.raises(CustomerContextError) as caught:
        source.key("k3")

    assert key is not None
    assert caught.value.reason == "keys_unavailable"
    assert source.state()["last_error"] == "RuntimeError"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_fetch_that_would_end_its_thread_is_a_failure(scripted_issuer, error: type[BaseException]):
    """
    Exceptions that are none of the usual kind count as failed attempts too, and reach nobody else.
    """

    def leave() -> None:
        raise error

    scripted_issuer.meanwhile = leave
    source = KeySource(URL, fetch=scripted_issuer.fetch)

    for _ in range(2):
        with pytest.raises(CustomerContextError):
            source.key("k1")

    assert len(scripted_issuer.asked) == 1
    assert source.state()["last_error"] == error.__name__


def test_ending_a_blocking_source_releases_those_who_wait(scripted_issuer):
    """
    `close` does not wait for a fetch in flight; whoever waits is refused.
    """
    asked, answered = threading.Event(), threading.Event()
    scripted_issuer.meanwhile = lambda: (asked.set(), answered.wait())
    source = KeySource(URL, fetch=scripted_issuer.fetch)

    with ThreadPoolExecutor(1) as pool:
        caller = pool.submit(source.key, "k1")
        asked.wait()
        source.close()
        error = caller.exception()
    answered.set()

    assert isinstance(error, CustomerContextError)
    assert error.reason == "keys_unavailable"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_a_fork_finds_its_own_way(scripted_issuer):
    """
    A child inherits neither a lock that is held nor a fetch that only its parent can end: it fetches for itself.
    """
    answered, asked = threading.Event(), threading.Event()
    scripted_issuer.meanwhile = lambda: (asked.set(), answered.wait())
    source = KeySource(URL, fetch=scripted_issuer.fetch, wait_limit_s=5)
    parent = threading.Thread(target=source.key, args=("k1",))
    parent.start()
    asked.wait()

    with source._cache._lock():
        child = os.fork()
        if child == 0:
            scripted_issuer.meanwhile = lambda: None
            os._exit(0 if source.key("k1") and source.state()["attempts"] == 2 else 1)
    answered.set()
    parent.join()

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(scripted_issuer.asked) == 1
