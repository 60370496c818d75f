"""
Once means once, under load and through faults: real processes, real servers, and tokens that are presented again and again.

    python tests/soak/replay_soak.py [--only race,calm,...] [--processes 32] [--tokens 2000] [--rate 20] [--partners 6]

`race` lets all processes present the same tokens at the same time. Every other section presents each token to all partners, at
once and 2, 10 and 30 seconds later, and brings a fault about meanwhile; partners that start after the fault are told of all
tokens that are still alive. Prints what was heard; ends with 1 when a token was accepted twice, when one was called a replay
that nobody can have used, or when nothing was accepted after a fault.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay_faults import FAULTS, Scene
from replay_stage import Mint, Outcomes, Partner

from verifier.replay_redis import AsyncRedisReplayStore
from verifier.replay_redis_script import pack

BEFORE_S, AFTER_S = 15.0, 45.0
DELAYS = ("--delays", "0", "2", "10", "30")
LIFE_S = 65


async def settle(url: str) -> None:
    """
    Begin the epoch as an hour ago, so that nobody has to wait until the first tokens are accepted.
    """
    async with AsyncRedisReplayStore.from_url(url, deadline_ms=10_000) as store:
        links = store._links()
        (record,) = await links.ask("", pack("GET", "cc:e"), 1, time.monotonic() + 10)
        identity, at = record.decode().split()
        await links.ask("", pack("SET", "cc:e", f"{identity} {int(at) - 3_600_000}"), 1, time.monotonic() + 10)


async def race(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """
    Let all processes present the same tokens at the same time; the deadline is raised, so that a slow machine burns no winner.
    """
    mint, outcomes = Mint(), Outcomes()
    async with AsyncExitStack() as stack:
        scene = await FAULTS["calm"](folder, stack)
        await settle(scene.url)
        at = int(time.time())
        tokens = [await mint.token(at) for _ in range(options.tokens)]
        arguments = (scene.url, "--jwks", mint.jwks, "--deadline-ms", "60000", "--at", str(at + 1))
        partners = [await Partner(outcomes).start(*arguments) for _ in range(options.processes)]
        began = time.monotonic()
        for partner in partners:
            partner.tell(*tokens)
        await asyncio.gather(*(partner.end() for partner in partners))
        took = time.monotonic() - began
    return {
        "presented": options.processes * options.tokens,
        "heard": dict(outcomes.counts),
        "tokens accepted twice": outcomes.accepted_twice,
        "seconds": round(took, 1),
        "kept": outcomes.counts["accepted"] == options.tokens and not outcomes.accepted_twice,
    }


@dataclass
class Traffic:
    """
    Mints tokens and tells every partner of each, until it is stopped.
    """

    mint: Mint
    partners: list[Partner]
    rate: float

    def __post_init__(self) -> None:
        self.alive: deque[tuple[float, str]] = deque()

    async def run(self) -> None:
        while True:
            now = time.time()
            line = await self.mint.token(now)
            self.alive.append((now, line))
            while self.alive[0][0] < now - LIFE_S:
                self.alive.popleft()
            for partner in self.partners:
                partner.tell(line)
            await asyncio.sleep(1 / self.rate)


async def through(fault: Callable[..., Awaitable[Scene]], options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """
    Keep presenting tokens while a fault comes and goes.
    """
    mint, outcomes = Mint(), Outcomes()
    async with AsyncExitStack() as stack:
        scene = await fault(folder, stack)
        arguments = (scene.url, "--jwks", mint.jwks, *DELAYS, *scene.arguments)
        partners = [await Partner(outcomes).start(*arguments) for _ in range(options.partners)]
        await settle(scene.url)
        traffic = Traffic(mint, partners, options.rate)
        running = asyncio.create_task(traffic.run())
        await asyncio.sleep(BEFORE_S)
        began = time.time()
        await scene.strike()
        ended = time.time()
        after = await Partner(outcomes).start(*arguments)
        after.tell(*(line for _, line in traffic.alive))
        traffic.partners.append(after)
        await asyncio.sleep(AFTER_S)
        running.cancel()
        await asyncio.gather(*(partner.end() for partner in traffic.partners))
    success = outcomes.first_success_after(ended)
    return {
        "tokens": len(outcomes.heard),
        "heard": dict(outcomes.counts),
        "tokens accepted twice": outcomes.accepted_twice,
        "replays of nothing": outcomes.called_replays_unaccepted,
        "fault lasted, seconds": round(ended - began, 1),
        "first success after it, seconds": None if success is None else round(success, 1),
        "kept": not outcomes.accepted_twice and not outcomes.called_replays_unaccepted and success is not None,
    }


async def run(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    told = {}
    for name in options.only:
        with tempfile.TemporaryDirectory() as folder:
            scene = race(options, Path(folder)) if name == "race" else through(FAULTS[name], options, Path(folder))
            told[name] = await scene
        print(f"\n{name}", flush=True)
        for what, value in told[name].items():
            print(f"  {what:<34} {value}", flush=True)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    everything = ["race", *FAULTS]
    parser.add_argument("--only", type=lambda names: names.split(","), default=everything, metavar=",".join(everything))
    parser.add_argument("--processes", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=20, help="tokens a second")
    parser.add_argument("--partners", type=int, default=6)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    told = asyncio.run(run(options))
    if options.json:
        options.json.write_text(json.dumps(told, indent=2))
    sys.exit(0 if all(section["kept"] for section in told.values()) else 1)


if __name__ == "__main__":
    main()
