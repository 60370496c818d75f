"""
How much is let in, decided purely: never more than the rate, never less, and what is refused takes nothing.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from issuer.limits import WRONG_SECRET_US, Over, Rate, Rates, after_request, after_wrong_secret

SECOND_US = 1_000_000

rates = st.builds(Rate, st.integers(1, 10_000), st.integers(1, 20))
steps = st.lists(st.integers(0, 30_000) | st.just(0), min_size=1, max_size=200)


def answers(rate, moments):
    """
    Ask once at each of *moments*; return for each whether it was let in, or the wait.
    """
    until, found = 0, []
    for now in moments:
        used = after_request(now, [("client", rate, until)])
        if not isinstance(used, Over):
            (until,) = used
        found.append(used)
    return found


def moments_of(steps):
    now = 1_000_000
    return [now := now + step for step in steps]


@given(rates, steps)
def test_no_window_has_more_than_burst_and_rate(rate, steps):
    """
    Within t, wherever it begins, at most burst + t / interval are let in.
    """
    moments = moments_of(steps)
    let_in = [now for now, used in zip(moments, answers(rate, moments), strict=True) if not isinstance(used, Over)]

    for first, begin in enumerate(let_in):
        for count, end in enumerate(let_in[first:], start=1):
            assert count <= rate.burst + (end - begin) / rate.interval_us


@given(rates, steps)
def test_the_wait_is_the_truth(rate, steps):
    """
    What is refused is let in exactly when it was told to come again, and not one moment before.
    """
    until = 0
    for now in moments_of(steps):
        used = after_request(now, [("client", rate, until)])
        if isinstance(used, Over):
            assert used.wait_us > 0
            assert isinstance(after_request(now + used.wait_us - 1, [("client", rate, until)]), Over)
            assert not isinstance(after_request(now + used.wait_us, [("client", rate, until)]), Over)
            assert (used.retry_after_s - 1) * SECOND_US < max(used.wait_us, 1) <= used.retry_after_s * SECOND_US
        else:
            (until,) = used


@given(rates, st.integers(0, 10**15))
def test_whoever_was_quiet_has_the_whole_burst(rate, now):
    """
    Exactly that many are let in at one moment, and after a window as many again.
    """
    for begin in (now, now + rate.window_us):
        found = answers(rate, [begin] * (rate.burst + 3))
        assert [isinstance(used, Over) for used in found] == [False] * rate.burst + [True] * 3


@given(rates, rates, steps, st.lists(st.booleans(), min_size=200, max_size=200))
def test_two_limits_are_asked_as_one(client, customer, steps, known):
    """
    Let in is what both let in; what one of them refuses takes nothing from the other, and the wait is that of the slower.
    """
    ends = {"client": 0, "customer": 0}
    both = {"client": client, "customer": customer}
    for now, is_known in zip(moments_of(steps), known, strict=False):
        names = ("client", "customer") if is_known else ("client",)
        alone = {name: after_request(now, [(name, both[name], ends[name])]) for name in names}
        together = after_request(now, [(name, both[name], ends[name]) for name in names])
        refused = [over for over in alone.values() if isinstance(over, Over)]
        if refused:
            assert together == Over(refused[0].limit, max(over.wait_us for over in refused))
        else:
            assert together == tuple(end for (end,) in alone.values())
            ends |= dict(zip(names, together, strict=True))


@given(st.integers(1, 12), st.lists(st.integers(0, 20 * SECOND_US), min_size=1, max_size=60))
def test_no_minute_has_one_wrong_secret_more(most, steps):
    """
    te-brute-force: not only from a fresh start, in any minute; and one that is refused is counted as soon as it was told.
    """
    held, counted = ((), ()), []
    for now in moments_of(steps):
        found = after_wrong_secret(now, most, held)
        if isinstance(found, Over):
            assert isinstance(after_wrong_secret(now + found.wait_us - 1, most, held), Over)
            assert not isinstance(after_wrong_secret(now + found.wait_us, most, held), Over)
            assert sum(now - WRONG_SECRET_US < each for each in counted) == most
        else:
            held, counted = found, [*counted, now]
            assert max(map(len, held)) <= most
    for first, last in zip(counted, counted[most:], strict=False):
        assert last - first >= WRONG_SECRET_US


@pytest.mark.parametrize(
    ("count", "per_s", "rate"),
    [
        (100, 1, Rate(10_000, 7)),
        (120, 60, Rate(500_000, 7)),
        (7, 1, Rate(142_858, 7)),
        (10_000, 1, Rate(100, 7)),
        (0, 1, None),
    ],
)
def test_a_rate_is_never_rounded_up(count, per_s, rate):
    """
    So many each second or minute are a whole number of microseconds apart; none is no limit.
    """
    assert Rate.of(count, per_s=per_s, burst=7) == rate


@pytest.mark.parametrize(("interval_us", "burst"), [(0, 1), (1, 0), (-1, 1), (1, -1)])
def test_a_rate_is_positive(interval_us, burst):
    """
    What would let in everything, or nothing ever, is no rate.
    """
    with pytest.raises(ValueError):
        Rate(interval_us, burst)


@pytest.mark.parametrize(
    ("wait_us", "seconds"), [(1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2), (60_000_000, 60)]
)
def test_seconds_to_wait_are_rounded_up(wait_us, seconds):
    """
    RFC 9110 section 10.2.3: whole seconds; whoever waits them is let in.
    """
    assert Over("client", wait_us).retry_after_s == seconds


def test_the_defaults_are_those_of_the_design():
    """
    100 a second with 200 at once, 120 a minute, 10 wrong secrets a minute.
    """
    assert Rates() == Rates(
        client=Rate.of(100, per_s=1, burst=200), customer=Rate.of(120, per_s=60, burst=120), wrong_secrets=10
    )
