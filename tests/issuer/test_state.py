"""
What one process remembers: each client assertion is used once, and records are its own.
"""

import asyncio

import pytest

from issuer.limits import Rates
from issuer.limits_memory import MemoryLimits
from issuer.state import MemoryAssertionIds, memory_state
from verifier import ReplayStoreUnavailable

from .estate import SEALING

NOW = 1_796_040_000
ISSUER = "https://issuer.test"


class Clock:
    at = float(NOW)

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def use(ids: MemoryAssertionIds, issuer=ISSUER, client="orc_main", jti="jti-1", expires_at=NOW + 60) -> bool:
    return asyncio.run(ids.use(issuer, client, jti, expires_at, expires_at - 60))


def test_an_identifier_is_used_once(clock):
    """
    RFC 7523 section 3 item 7: the first use is one, no later one is.
    """
    ids = MemoryAssertionIds(clock)

    assert [use(ids) for _ in range(3)] == [True, False, False]


def test_an_identifier_belongs_to_its_client_and_issuer(clock):
    """
    The same `jti` of another client or at another issuer is another identifier.
    """
    ids = MemoryAssertionIds(clock)

    assert [use(ids), use(ids, client="orc_second"), use(ids, issuer=f"{ISSUER}/w/acme"), use(ids, jti="jti-2")] == [
        True
    ] * 4


def test_an_identifier_is_kept_until_it_cannot_be_accepted_any_more(clock):
    """
    It is remembered up to its end; afterwards, or when the clock went backwards, it cannot be told, which is no first use.
    """
    ids = MemoryAssertionIds(clock)
    use(ids, expires_at=NOW + 300)

    clock.at = NOW + 299.9
    assert use(ids, expires_at=NOW + 300) is False
    clock.at = NOW + 300.0
    with pytest.raises(ReplayStoreUnavailable):
        use(ids, expires_at=NOW + 300)


def test_a_client_that_asks_too_much_takes_no_room_of_the_others(clock):
    """
    At its bound a client is refused until its own assertions have ended; other clients and other issuers are not.
    """
    ids = MemoryAssertionIds(clock, max_per_client=2)

    assert [use(ids, jti="jti-1"), use(ids, jti="jti-2")] == [True, True]
    with pytest.raises(ReplayStoreUnavailable):
        use(ids, jti="jti-3")
    assert [use(ids, client="orc_second", jti="jti-3"), use(ids, issuer=f"{ISSUER}/w/acme", jti="jti-3")] == [
        True,
        True,
    ]
    clock.at += 60
    assert use(ids, jti="jti-3", expires_at=NOW + 120) is True


def test_the_state_of_a_process_begins_empty(clock):
    """
    Two states share nothing, and in one of them assertions and ID tokens do not.
    """
    first, second = (memory_state(clock, SEALING, MemoryLimits(Rates(), clock)) for _ in range(2))

    assert [use(ids) for state in (first, second) for ids in (state.assertion_ids, state.id_tokens)] == [True] * 4
    assert first.idempotency is not second.idempotency
