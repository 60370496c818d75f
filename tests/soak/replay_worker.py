"""
A partner's process: verifies every token it is told of, several times over, and tells what it heard of each.

Reads one token a line, `JTI TOKEN`, and writes one outcome a line, `JTI OUTCOME SECONDS`; the seconds are the wall clock's.
"""

import argparse
import asyncio
import json
import logging
import sys
import time

from verifier import AsyncCustomerContextVerifier, CustomerContextError
from verifier.replay_redis import AsyncRedisReplayStore

ISSUER, AUDIENCE = "https://id.example.com/w/acme", "https://api.shop.example"


async def work(options: argparse.Namespace) -> None:
    store = AsyncRedisReplayStore.from_url(options.url, deadline_ms=options.deadline_ms, replicas=options.replicas)
    verifier = AsyncCustomerContextVerifier(
        issuer=ISSUER,
        audience=AUDIENCE,
        jwks=json.loads(options.jwks),
        replay_store=store,
        clock_tolerance_seconds=options.tolerance,
        now=(lambda: options.at) if options.at else time.time,
    )
    limit = asyncio.Semaphore(options.at_once)

    async def present(jti: str, token: str, delay: float) -> None:
        await asyncio.sleep(delay)
        async with limit:
            try:
                await verifier.verify(token)
                outcome = "accepted"
            except CustomerContextError as refusal:
                outcome = refusal.reason
        sys.stdout.write(f"{jti} {outcome} {time.time():.3f}\n")

    async with store, asyncio.TaskGroup() as presenting:
        print("ready", flush=True)
        lines = asyncio.StreamReader(limit=2**20)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := await lines.readline():
            if line == b"go\n":
                continue
            jti, token = line.decode().split()
            for delay in options.delays:
                presenting.create_task(present(jti, token, delay))
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--jwks", required=True)
    parser.add_argument("--delays", type=float, nargs="+", default=[0.0])
    parser.add_argument("--deadline-ms", type=int, default=250)
    parser.add_argument("--replicas", type=int, default=0)
    parser.add_argument("--tolerance", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--at", type=float, help="verify at this instant instead of now")
    # Hundreds of refusals are what this is about; each would be a line.
    logging.disable()
    asyncio.run(work(parser.parse_args()))


if __name__ == "__main__":
    main()
