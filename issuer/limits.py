"""
How much is too much: what rate limits decide, without a clock, a store or I/O.

Requests are limited by the generic cell rate algorithm, whose whole state is one instant: until when what was let in uses the
rate up. Wrong secrets are few and counted strictly: the last ones are remembered, each for a minute. All instants are integers
of microseconds; only their differences matter.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

__all__ = [
    "WRONG_SECRET_US",
    "LimitName",
    "Over",
    "Rate",
    "Rates",
    "RequestLimits",
    "SecretOwner",
    "after_request",
    "after_wrong_secret",
]

WRONG_SECRET_US: Final = 60_000_000
"""How long a wrong secret counts."""

LimitName = Literal["client", "customer", "wrong_secrets"]
"""Which limit is reached; the log says `limit:` and this word."""

SecretOwner = Literal["client", "admin"]
"""Whose secret was wrong: they have names of their own."""

_SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Over:
    """
    A limit that is reached: the same will be let in `wait_us` microseconds from now, and not a moment earlier.
    """

    limit: LimitName
    wait_us: int

    @property
    def retry_after_s(self) -> int:
        """
        The wait in whole seconds, rounded up, at least 1 (RFC 9110 section 10.2.3).
        """
        return max(1, -(-self.wait_us // _SECOND_US))


@dataclass(frozen=True, slots=True)
class Rate:
    """
    `burst` at once, and one more for every `interval_us` that passes.

    Within t microseconds never more than `burst` + t / `interval_us` are let in.

    Raises:
        ValueError: unless both are positive.
    """

    interval_us: int
    burst: int
    window_us: int = field(init=False)
    """How long it takes until all of the burst is there again."""

    def __post_init__(self) -> None:
        if self.interval_us < 1 or self.burst < 1:
            raise ValueError("a rate has a positive interval and burst")
        object.__setattr__(self, "window_us", self.interval_us * self.burst)

    @classmethod
    def of(cls, count: int, *, per_s: int, burst: int) -> "Rate | None":
        """
        Allow *count* each *per_s* seconds, rounded to no more than that; None, which is no limit, for 0.
        """
        return None if count == 0 else cls(-(-per_s * _SECOND_US // count), burst)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """
    What the limits are: of a client, of a client for one customer, of wrong secrets a minute; None and 0 are no limit.
    """

    client: Rate | None = Rate(10_000, 200)
    customer: Rate | None = Rate(500_000, 120)
    wrong_secrets: int = 10

    def concerning(self, *, customer: bool) -> tuple[tuple[LimitName, Rate], ...]:
        """
        Return those that limit a request; only where the *customer* is known there may be one for it.
        """
        found: list[tuple[LimitName, Rate]] = []
        if self.client is not None:
            found.append(("client", self.client))
        if self.customer is not None and customer:
            found.append(("customer", self.customer))
        return tuple(found)


class RequestLimits(Protocol):
    """
    Where it is counted. Any exception means that it cannot be told.
    """

    def request(self, workspace: str, client_id: str, customer: tuple[str, str] | None) -> Awaitable[Over | None]:
        """
        Count a request of an authenticated client, for a customer (namespace and id) where one is known, atomically.

        A request over one of its limits counts for none of them.
        """

    def wrong_secret(self, workspace: str, owner: SecretOwner, name: str, network: str) -> Awaitable[Over | None]:
        """
        Count a wrong secret for the name it came with, known or not, and for the network it came from, atomically.

        One that is over a limit is not counted. Never to be asked about a secret that is right.
        """


def after_request(now: int, asked: Sequence[tuple[LimitName, Rate, int]]) -> tuple[int, ...] | Over:
    """
    Return the instants until which one more request uses each rate up, or what keeps it out.

    *asked* has each limit with its rate and the instant so far; any instant that has passed stands for nothing used. Of several
    limits the first is named, and the wait is the longest.
    """
    used: list[int] = []
    over: Over | None = None
    for limit, rate, until in asked:
        used.append(max(until, now) + rate.interval_us)
        wait = used[-1] - now - rate.window_us
        if wait > 0:
            over = Over(limit, wait) if over is None else Over(over.limit, max(over.wait_us, wait))
    return over or tuple(used)


def after_wrong_secret(now: int, most: int, held: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...] | Over:
    """
    Return the instants until which wrong secrets count, one more than so far, or what keeps it out.

    *held* has the instants of everyone it is counted for; of each the latest *most* are held.
    """
    wait = max((untils[-most] - now for untils in held if len(untils) >= most), default=0)
    if wait > 0:
        return Over("wrong_secrets", wait)
    return tuple((*untils, now + WRONG_SECRET_US)[-most:] for untils in held)
