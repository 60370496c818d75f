"""
A client, an agent, a customer and an action that are suspended: when the last token was minted, and when the last one verified.

Four of them are cut off at once, each at one of the two instances; a fifth, whom nobody suspended, goes on. Partners without a
replay store are shown the last token of each again and again, so that the moment of its death is seen.
"""

import asyncio
import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from configuration import CLIENTS
from estate import Estate, Minted
from report import Report

__all__ = ["suspensions"]

TOKEN_LIFE_S, NOTICE_S, LEASE_S = 60, 1, 15
UNAVAILABLE = {"503 temporarily_unavailable"}
# Everybody mints and is verified for a while before.
BEFORE_S = 3
BEYOND_S = 3
# Real seconds.
EPOCH_S = 30


@dataclass
class Stream:
    """
    Tokens for one combination of client, agent, customer and action.
    """

    name: str
    asks: dict[str, Any]
    target: dict[str, Any] | None
    code: str | None
    minted: list[Minted] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    verified: dict[int, float] = field(default_factory=dict)
    dead: Counter[str] = field(default_factory=Counter)
    called: float = 0
    told: dict[str, Any] = field(default_factory=dict)

    async def going(self, watchers: list[int]) -> None:
        """
        Wait until both instances have minted and all watchers verified.
        """
        while {each.instance for each in self.minted} != {0, 1} or self.verified.keys() != set(watchers):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def streams() -> list[Stream]:
    customer = {"kind": "customer", "namespace": "shop-login", "sub": "cus_2"}
    return [
        Stream("client", {"client": CLIENTS[1]}, {"kind": "client", "value": CLIENTS[1]}, "unauthorized_client"),
        Stream("agent", {"agent": "agt_second"}, {"kind": "agent", "value": "agt_second"}, "access_denied"),
        Stream("customer", {"sub": "cus_2"}, customer, "access_denied"),
        Stream("action", {"is_write": True}, {"kind": "action", "value": "cancel_order"}, "access_denied"),
        Stream("nobody", {}, None, None),
    ]


@dataclass
class Watch:
    """
    Mints and presents for all streams until it is over.
    """

    estate: Estate
    is_over: bool = False

    async def mint(self, stream: Stream) -> None:
        for number in itertools.count():
            if self.is_over:
                return
            minted = await self.estate.mint(number % 2, **stream.asks)
            if minted.token is None:
                stream.refused[f"{minted.status} {minted.error}"] += 1
            else:
                stream.minted.append(minted)
            await asyncio.sleep(0.1)

    async def present(self, stream: Stream, partner: int) -> None:
        while not self.is_over:
            if stream.minted:
                last = stream.minted[-1]
                shown = await self.estate.present(partner, last.token, is_write=last.is_write)
                if shown.reason is None:
                    stream.verified[partner] = shown.began
                else:
                    stream.dead[shown.reason] += 1
            await asyncio.sleep(0.1)


async def suspensions(estate: Estate, report: Report) -> None:
    """
    Suspend four, wait until every token must be dead, lift it all, and tell.
    """
    speed = "the machine's clock" if estate.clock.factor == 1 else f"a clock {estate.clock.factor:g} times as fast"
    report.section("suspensions", f"Suspensions at two instances, on {speed}")
    watch, found = Watch(estate), streams()
    watchers = [partner for partner, kind in enumerate(estate.kinds) if not kind.replay]
    await _past_the_epoch(estate)
    async with asyncio.TaskGroup() as tasks:
        for stream in found:
            tasks.create_task(watch.mint(stream))
            for partner in watchers:
                tasks.create_task(watch.present(stream, partner))
        await estate.clock.sleep(BEFORE_S)
        await asyncio.gather(*(stream.going(watchers) for stream in found))
        await _suspend(estate, found)
        longest = max(estate.kinds[partner].tolerance for partner in watchers)
        await estate.clock.sleep(NOTICE_S + TOKEN_LIFE_S + longest + BEYOND_S)
        ended = estate.clock.now()
        watch.is_over = True
    for stream in found:
        if stream.target is not None:
            _tell(estate, report, stream)
    _tell_control(estate, report, found[-1], ended)
    await _lift(estate, report, found)


async def _past_the_epoch(estate: Estate) -> None:
    """
    Wait until both instances mint: what was signed in the first seconds of a Redis is refused.
    """
    async with asyncio.timeout(EPOCH_S):
        for instance in range(2):
            while (await estate.mint(instance)).token is None:  # noqa: ASYNC110
                await asyncio.sleep(0.2)


async def _suspend(estate: Estate, found: list[Stream]) -> None:
    for number, stream in enumerate(each for each in found if each.target is not None):
        stream.called = estate.clock.now()
        body = {**stream.target, "reason": "soak"}
        stream.told = await estate.asked(number % 2, "POST", "/suspensions", body)


def _tell(estate: Estate, report: Report, stream: Stream) -> None:
    # On a fast clock the delays of the machine count for more than the second in which a change is noticed; a lease bounds both.
    is_fast = estate.clock.factor != 1
    notice = NOTICE_S + LEASE_S if is_fast else NOTICE_S
    for instance in range(2):
        # It was minted within the second that it names, and before it was answered.
        mints = (
            min(each.answered, each.parts.claims["iat"] + 1) for each in stream.minted if each.instance == instance
        )
        last = max(mints) - stream.called
        report.promise(
            f"{stream.name}: last token minted at instance {instance}, seconds after the call",
            last,
            kept=last <= notice,
        )
    for partner, verified in sorted(stream.verified.items()):
        kind, last = estate.kinds[partner], verified - stream.called
        bound = notice + TOKEN_LIFE_S + kind.tolerance
        report.promise(
            f"{stream.name}: last token verified by {kind}, seconds after the call", last, kept=last <= bound
        )
    codes = {f"400 {stream.code}"}
    kept = codes <= stream.refused.keys() <= codes | (UNAVAILABLE if is_fast else set())
    report.promise(f"{stream.name}: requests refused", dict(stream.refused), kept=kept)
    report.promise(f"{stream.name}: tokens refused", dict(stream.dead), kept=stream.dead.keys() == {"expired"})


def _tell_control(estate: Estate, report: Report, control: Stream, ended: float) -> None:
    """
    Tell of whom nobody suspended; on a fast clock a busy machine may pause for longer than a lease, or a token lives.
    """
    is_fast = estate.clock.factor != 1
    refused, dead = control.refused.keys(), control.dead.keys()
    kept = refused <= (UNAVAILABLE if is_fast else set()) and dead <= ({"expired"} if is_fast else set())
    went_on = ended - control.minted[-1].answered < TOKEN_LIFE_S / 2
    report.promise("nobody: refused", {**control.refused, **control.dead}, kept=kept and went_on)


async def _lift(estate: Estate, report: Report, found: list[Stream]) -> None:
    """
    End the suspensions, and see that everybody gets tokens again at both instances.
    """
    for number, stream in enumerate(each for each in found if each.target is not None):
        await estate.asked(number % 2, "DELETE", f"/suspensions/{stream.told['id']}")
    await asyncio.sleep(NOTICE_S)
    again = [await estate.mint(instance, **stream.asks) for stream in found for instance in range(2)]
    minting = sum(each.token is not None for each in again)
    report.promise("lifted: tokens minted again, of as many", f"{minting} of {len(again)}", kept=minting == len(again))
