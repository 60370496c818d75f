"""
An instance that is stopped across a revocation and goes on later: it hands out nothing under the revoked key any more.

It has requests in its hands when it is stopped, gets more while it stands still, and answers them all when it goes on. In every
other round it stops itself right after a signature.
"""

import asyncio
import json
import signal
from collections import Counter
from dataclasses import dataclass, field

import httpx2
from estate import Estate, Minted
from report import Report

__all__ = ["stopped"]

LEASE_S = 15
MINTERS, READERS = 6, 3
STOP_LIMIT_S = 20


@dataclass
class Hammer:
    """
    Asks one instance for tokens and for the key set, on many connections, and keeps every answer.
    """

    estate: Estate
    instance: int
    minted: list[Minted] = field(default_factory=list)
    served: list[tuple[float, float, int, frozenset[str]]] = field(default_factory=list)
    is_over: bool = False

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(MINTERS):
                tasks.create_task(self._mint())
            for _ in range(READERS):
                tasks.create_task(self._read())

    async def _mint(self) -> None:
        while not self.is_over:
            self.minted.append(await self.estate.mint(self.instance))
            await asyncio.sleep(0.02)

    async def _read(self) -> None:
        url = self.estate.at(self.instance, "/.well-known/jwks.json")
        while not self.is_over:
            asked, status, kids = self.estate.clock.now(), 0, frozenset()
            try:
                answer = await self.estate.http.get(url)
                status = answer.status_code
                if status == 200:
                    kids = frozenset(key["kid"] for key in json.loads(answer.content)["keys"])
            except httpx2.HTTPError:
                pass
            self.served.append((asked, self.estate.clock.now(), status, kids))
            await asyncio.sleep(0.02)


@dataclass
class Seen:
    """
    What all rounds have seen.
    """

    rounds: Counter[str] = field(default_factory=Counter)
    minted: int = 0
    served: int = 0
    minted_late: list[Minted] = field(default_factory=list)
    minted_before: int = 0
    served_late: int = 0
    served_before: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    recovered: list[float] = field(default_factory=list)


async def stopped(estate: Estate, report: Report, *, rounds: int, pause_s: float = 20) -> None:
    """
    Stop an instance, revoke the active key at the other one, let more than a lease pass, let it go on; again and again.
    """
    report.section("stopped", f"An instance stopped across a revocation, {rounds} times")
    seen = Seen()
    for number in range(rounds):
        await _round(estate, seen, number, pause_s)
    report.fact("rounds", dict(seen.rounds))
    report.fact(
        "tokens minted and key sets served by the instances that were stopped", f"{seen.minted} and {seen.served}"
    )
    report.fact("requests refused by them", dict(seen.refused))
    late = len(seen.minted_late)
    report.promise("tokens handed out under the revoked key after the lease", late, kept=late == 0)
    report.promise("key sets served with the revoked key after the lease", seen.served_late, kept=seen.served_late == 0)
    report.fact("sent before the stop and under way then: tokens", seen.minted_before)
    report.fact("sent before the stop and under way then: key sets", seen.served_before)
    slowest = max(seen.recovered)
    report.promise("real seconds until it minted again, at most", slowest, kept=len(seen.recovered) == rounds)


async def _round(estate: Estate, seen: Seen, number: int, pause_s: float) -> None:
    still, other = number % 2, 1 - number % 2
    active = (await estate.asked(other, "GET", "/keys"))["active"]
    hammer = Hammer(estate, still)
    hammering = asyncio.create_task(hammer.run())
    await asyncio.sleep(0.3)
    is_trapped = number // 2 % 2 == 0
    seen.rounds["behind a signature" if is_trapped else "anywhere"] += 1
    stopped_at = await _stop(estate, still, is_trapped=is_trapped)
    told = await estate.asked(other, "POST", f"/keys/{active}/revoke", {"reason": "soak: stolen while one stood still"})
    await estate.clock.sleep_until(stopped_at + LEASE_S + pause_s)
    estate.go_on(still)
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(STOP_LIMIT_S):
        while (minted := await estate.mint(still)).token is None:
            hammer.minted.append(minted)
            await asyncio.sleep(0.01)
    hammer.minted.append(minted)
    seen.recovered.append(asyncio.get_running_loop().time() - began)
    await asyncio.sleep(0.2)
    hammer.is_over = True
    await hammering
    _judge(seen, hammer, revoked=told["revoked"], stopped_at=stopped_at, is_trapped=is_trapped)


async def _stop(estate: Estate, instance: int, *, is_trapped: bool) -> float:
    """
    Stop an instance and return when it was seen to be; the last look at its ring was before that.
    """
    if is_trapped:
        estate.instances[instance].send_signal(signal.SIGUSR1)
    else:
        estate.stop(instance)
    await asyncio.to_thread(estate.wait_until_stopped, instance, STOP_LIMIT_S)
    return estate.clock.now()


def _judge(seen: Seen, hammer: Hammer, *, revoked: str, stopped_at: float, is_trapped: bool) -> None:
    """
    Count what came under the revoked key after the lease.

    A process that is stopped anywhere may be stopped between its last look at the lease and the socket. What is sent then says
    itself that it is old: a token by its `iat`, and a verifier counts the age of a key set from when it asked for it. Behind a
    signature is no such place.
    """
    lease_over = stopped_at + LEASE_S
    for minted in hammer.minted:
        if minted.token is None:
            seen.refused[f"{minted.status} {minted.error}"] += 1
            continue
        seen.minted += 1
        if minted.kid == revoked and minted.answered > lease_over:
            was_done = not is_trapped and minted.asked <= stopped_at and minted.parts.claims["iat"] <= stopped_at
            seen.minted_before += was_done
            seen.minted_late += [] if was_done else [minted]
    for asked, answered, status, kids in hammer.served:
        if status != 200:
            seen.refused[f"{status} key set"] += 1
            continue
        seen.served += 1
        if revoked in kids and answered > lease_over:
            was_done = not is_trapped and asked <= stopped_at
            seen.served_before += was_done
            seen.served_late += not was_done
