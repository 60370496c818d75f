"""
A clock that runs faster than the machine's, the same one in every process: what takes minutes is seen in seconds.

Only what is decided by a clock runs faster; deadlines of connections stay as they are, since the network does not hurry.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Self

__all__ = ["FastClock"]


@dataclass(frozen=True)
class FastClock:
    """
    Shows `wall` when the machine's monotonic clock shows `began`, and goes on *factor* times as fast.
    """

    factor: float
    wall: float
    began: float

    @classmethod
    def starting(cls, factor: float) -> Self:
        return cls(factor, time.time(), time.monotonic())

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls(*map(float, text.split("/")))

    def __str__(self) -> str:
        return f"{self.factor!r}/{self.wall!r}/{self.began!r}"

    def now(self) -> float:
        """
        The wall clock, in epoch seconds.
        """
        return self.wall + self.factor * (time.monotonic() - self.began)

    def monotonic(self) -> float:
        """
        The clock of leases and caches; it goes on while a process is stopped.
        """
        return self.factor * time.monotonic()

    def of_store(self, time_s: float) -> float:
        """
        What a store whose own clock shows *time_s* would show if that ran as fast.
        """
        return self.wall + self.factor * (time_s - self.wall)

    async def sleep(self, seconds: float) -> None:
        """
        Sleep that long by this clock.
        """
        await asyncio.sleep(max(0.0, seconds) / self.factor)

    async def sleep_until(self, instant: float) -> None:
        await self.sleep(instant - self.now())
