"""
Steady minting, and every token shown to a partner at some moment of its life: what was minted, verified and refused, and why.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from estate import Estate, Minted, Presented

__all__ = ["Revoked", "Traffic"]

LEASE_S = 15
# Of the life of a token, so much is left to the way from here to the partner on a machine that has other things to do.
RESERVE_S = 20
TOKEN_LIFE_S = 60


@dataclass(frozen=True)
class Revoked:
    """
    A key that was revoked: when, and until when a conforming verifier may trust it at worst.
    """

    kid: str
    at: float
    trusted_until: float


@dataclass
class Traffic:
    """
    Mints and presents until it is told to stop. Partners in `quiet` are sent nothing.
    """

    estate: Estate
    a_second: float
    seed: int
    quiet: set[int] = field(default_factory=set)
    revoked: dict[str, Revoked] = field(default_factory=dict)
    minted: Counter[str] = field(default_factory=Counter)
    not_minted: Counter[str] = field(default_factory=Counter)
    minted_late: int = 0
    kids: set[str] = field(default_factory=set)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrongly_refused: list[str] = field(default_factory=list)
    accepted_twice: int = 0
    shown_twice: int = 0
    revoked_accepted: list[float] = field(default_factory=list)
    revoked_refused: int = 0
    accepted_after_bound: int = 0
    _shown: list[tuple[Minted, Presented]] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """
        Keep it up while the block runs; what is on its way then is waited for.
        """
        stop = asyncio.Event()
        task = asyncio.create_task(self._mint(stop))
        try:
            yield
        finally:
            stop.set()
            await task
        self._judge()

    async def _mint(self, stop: asyncio.Event) -> None:
        drawn = random.Random(self.seed)
        number = 0
        async with asyncio.TaskGroup() as tasks:
            while not stop.is_set():
                number += 1
                tasks.create_task(self._one(number, drawn.random(), stop))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1 / self.a_second):
                        await stop.wait()

    async def _one(self, number: int, share: float, stop: asyncio.Event) -> None:
        """
        Mint one token at one of the instances, wait for some share of its life, and show it to a partner.
        """
        minted = await self.estate.mint(number % 2, is_write=number % 4 == 0)
        if minted.token is None:
            self.not_minted[f"{minted.status} {minted.error}"] += 1
            return
        self.minted["write" if minted.is_write else "read"] += 1
        self.kids.add(minted.kid)
        awake = [each for each in range(len(self.estate.partners)) if each not in self.quiet]
        partner = awake[number % len(awake)]
        life = TOKEN_LIFE_S + self.estate.kinds[partner].tolerance - RESERVE_S
        with contextlib.suppress(TimeoutError):
            # When all is over, what is on its way need not get old.
            async with asyncio.timeout(share * life / self.estate.clock.factor):
                await stop.wait()
        if partner in self.quiet:
            return
        self._shown.append((minted, await self.estate.present(partner, minted.token, is_write=minted.is_write)))
        if number % 10 == 0 and self.estate.kinds[partner].replay:
            await self._again(minted, partner)

    async def _again(self, minted: Minted, partner: int) -> None:
        again = await self.estate.present(partner, minted.token, is_write=minted.is_write)
        self.shown_twice += 1
        self.accepted_twice += again.reason is None

    def _judge(self) -> None:
        for minted, shown in self._shown:
            revoked = self.revoked.get(minted.kid)
            claims = minted.parts.claims
            if revoked is not None and claims["iat"] > revoked.at + LEASE_S:
                self.minted_late += 1
            if revoked is not None and shown.ended >= revoked.at:
                self._judge_revoked(revoked, shown)
            elif shown.reason is None:
                self.accepted[str(self.estate.kinds[shown.partner])] += 1
            elif shown.ended >= claims["exp"] + self.estate.kinds[shown.partner].tolerance:
                self.refused[f"{shown.reason}, too late"] += 1
            else:
                self.wrongly_refused.append(shown.reason)
                self.refused[shown.reason] += 1

    def _judge_revoked(self, revoked: Revoked, shown: Presented) -> None:
        if shown.reason is None:
            self.revoked_accepted.append(shown.ended - revoked.at)
            # What began before the bound was trusted before it.
            self.accepted_after_bound += shown.began > revoked.trusted_until
        else:
            self.revoked_refused += 1
