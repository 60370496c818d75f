"""
The limits of a single process: who counts for whom, what is forgotten, and what a full table refuses.
"""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from issuer.limits import Over, Rate, Rates, after_request
from issuer.limits_memory import LimitsFull, MemoryLimits

SECOND_US = 1_000_000
CUSTOMER = ("shop-login", "cus_48213")


class Clock:
    """
    A monotonic clock in the hands of a test, in microseconds.
    """

    def __init__(self, at_us=5_000_000):
        self.at_us = at_us

    def __call__(self):
        # In the middle of a microsecond, so that none is lost in rounding.
        return (self.at_us + 0.5) / SECOND_US


@pytest.fixture
def clock():
    return Clock()


def ask(limits, client="orc_main", customer=CUSTOMER, workspace="root"):
    """
    Make a request; return None, or the limit that is reached with the seconds to wait.
    """
    over = asyncio.run(limits.request(workspace, client, customer))
    return None if over is None else (over.limit, over.retry_after_s)


def guess(limits, name="orc_basic", network="198.51.100.1", owner="client", workspace="root"):
    """
    Send a wrong secret; return None, or the seconds to wait.
    """
    over = asyncio.run(limits.wrong_secret(workspace, owner, name, network))
    return None if over is None else over.retry_after_s


def test_a_client_has_its_burst_and_its_rate(clock):
    """
    200 at once, then one each hundredth of a second, whatever the customers are.
    """
    limits = MemoryLimits(Rates(), clock)

    at_once = [ask(limits, customer=("shop-login", str(number))) for number in range(201)]
    clock.at_us += 9_999
    too_early = ask(limits)
    clock.at_us += 1
    in_time = ask(limits)

    assert at_once == [None] * 200 + [("client", 1)]
    assert (too_early, in_time) == (("client", 1), None)


def test_a_customer_of_a_client_has_a_rate_of_its_own(clock):
    """
    120 at once and one each half second; what is refused for the customer takes nothing from the client, which has 80 left.
    """
    limits = MemoryLimits(Rates(), clock)

    mine = [ask(limits) for _ in range(300)]
    others = [ask(limits, customer=None) for _ in range(81)]

    assert mine == [None] * 120 + [("customer", 1)] * 180
    assert others == [None] * 80 + [("client", 1)]


def test_what_is_refused_for_the_client_takes_nothing_from_the_customer(clock):
    """
    All or nothing the other way round: the customer has everything when the client may ask again.
    """
    limits = MemoryLimits(Rates(client=Rate(SECOND_US, 1), customer=Rate(SECOND_US, 2)), clock)
    assert ask(limits, customer=None) is None

    assert [ask(limits) for _ in range(5)] == [("client", 1)] * 5
    clock.at_us += SECOND_US
    assert ask(limits) is None
    clock.at_us += SECOND_US
    assert ask(limits) is None


def test_nobody_counts_for_anybody_else(clock):
    """
    Another customer, namespace, client or workspace has a rate of its own.
    """
    limits = MemoryLimits(Rates(customer=Rate(SECOND_US, 1)), clock)
    who = [
        {},
        {"customer": ("shop-login", "cus_2")},
        {"customer": ("bank-login", "cus_48213")},
        {"client": "orc_second"},
        {"workspace": "acme"},
    ]

    assert [ask(limits, **each) for each in who] == [None] * 5
    assert [ask(limits, **each) for each in who] == [("customer", 1)] * 5


def test_a_limit_can_be_off(clock):
    """
    Without a limit for the client, for the customer or for both nothing is counted for it.
    """
    one = Rate(SECOND_US, 1)

    for off in (Rates(client=None, customer=one), Rates(client=one, customer=None), Rates(client=None, customer=None)):
        limits = MemoryLimits(off, clock)
        assert [ask(limits), ask(limits)][1:] == [
            ("customer", 1) if off.customer else ("client", 1) if off.client else None
        ]
    assert [guess(MemoryLimits(Rates(wrong_secrets=0), clock)) for _ in range(100)] == [None] * 100


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 40_000)), max_size=150))
def test_what_is_forgotten_was_all_there_again(asked):
    """
    A table from which nothing is ever dropped answers in the same way, and a small one holds no more than what is in use.
    """
    clock, both = Clock(), Rates(client=Rate(9_000, 4), customer=Rate(25_000, 2))
    limits, ends = MemoryLimits(both, clock), {}
    for client, customer, step in asked:
        clock.at_us += step
        keys = {"client": (client,), "customer": (client, customer)}
        known = (("client", both.client), ("customer", both.customer)) if customer else (("client", both.client),)
        expected = after_request(clock.at_us, [(name, rate, ends.get(keys[name], 0)) for name, rate in known])
        over = asyncio.run(limits.request("w", str(client), ("ns", str(customer)) if customer else None))
        if isinstance(expected, Over):
            assert over == expected
        else:
            assert over is None
            ends |= {keys[name]: until for (name, _), until in zip(known, expected, strict=True)}
        assert (
            len(limits._requests._held)
            == len(limits._requests._ends)
            == sum(end > clock.at_us for end in ends.values())
        )


def test_a_full_table_counts_nobody_new(clock):
    """
    Whoever is counted already goes on; who is not cannot be told apart from one that is over, until somebody is forgotten.
    """
    limits = MemoryLimits(Rates(client=Rate(SECOND_US, 5), customer=Rate(2 * SECOND_US, 5)), clock, max_requesters=3)
    assert [ask(limits), ask(limits, client="orc_second", customer=None)] == [None, None]

    with pytest.raises(LimitsFull):
        ask(limits, client="orc_third", customer=None)
    with pytest.raises(LimitsFull):
        ask(limits, client="orc_second")
    assert ask(limits) is None
    clock.at_us += SECOND_US
    assert ask(limits, client="orc_third", customer=None) is None


def test_the_eleventh_wrong_secret_in_a_minute_has_to_wait(clock):
    """
    te-brute-force: for a client from anywhere, and from a source whatever the client, until the first is a minute old.
    """
    by_client = MemoryLimits(Rates(), clock)
    by_source = MemoryLimits(Rates(), clock)

    for_one = [guess(by_client, network=f"198.51.100.{number}") for number in range(12)]
    from_one = [guess(by_source, name=f"client-{number}") for number in range(12)]
    clock.at_us += 59_999_999
    before = [guess(by_client), guess(by_source)]
    clock.at_us += 1
    after = [guess(by_client), guess(by_source)]

    assert for_one == from_one == [None] * 10 + [60, 60]
    assert before == [1, 1]
    assert after == [None, None]


def test_a_wrong_secret_counts_for_its_own(clock):
    """
    A client and an admin of one name, or clients of two workspaces, are guessed at by themselves; a source is one everywhere.
    """
    limits = MemoryLimits(Rates(wrong_secrets=1), clock)
    who = [{"owner": "client"}, {"owner": "admin"}, {"workspace": "acme"}, {"name": "orc_second"}]

    assert [guess(limits, network=str(number), **each) for number, each in enumerate(who)] == [None] * 4
    assert [guess(limits, network=str(number), name="another") for number in range(4)] == [60] * 4


def test_guessing_takes_no_room(clock):
    """
    A source over its limit leaves nothing behind; a full table answers that a wrong secret has to wait; requests go on.
    """
    limits = MemoryLimits(Rates(wrong_secrets=2), clock, max_guessed=5)

    flood = [guess(limits, name=f"client-{number}") for number in range(100)]
    held = len(limits._guesses._held)
    clock.at_us += 10 * SECOND_US
    others = [guess(limits, name=f"client-{number}", network="198.51.100.2") for number in range(100, 103)]
    full = [guess(limits, name=f"client-{number}", network=f"198.51.{number}.1") for number in range(103, 110)]

    assert (flood, held) == ([None] * 2 + [60] * 98, 3)
    assert (others, full) == ([None, 50, 50], [50] * 7)
    assert ask(limits) is None
    clock.at_us += 50 * SECOND_US
    assert guess(limits, name="client-110", network="198.51.100.3") is None


def test_many_at_once_are_let_in_one_after_the_other(clock):
    """
    Tasks of one loop do not get between each other.
    """
    limits = MemoryLimits(Rates(client=Rate(SECOND_US, 50), customer=None), clock)

    async def crowd():
        return await asyncio.gather(*(limits.request("root", "orc_main", CUSTOMER) for _ in range(200)))

    found = asyncio.run(crowd())

    assert sum(over is None for over in found) == 50
