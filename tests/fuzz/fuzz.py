"""
Random and mutated input into everything that reads what arrives from outside: only the one error may come out.

    python tests/fuzz/fuzz.py [--inputs 10000] [--seed 1]

Every target gets that many inputs, made from the seed alone, so that a find can be made again. Outcomes are counted by reason and
printed; the first exception of another type is printed with its input, and the program ends with 1.
"""

import argparse
import asyncio
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from maker import AUDIENCE, ISSUER, NOW, Maker, jwks
from token_endpoint import Refused, token_endpoint

from verifier import (
    AsyncCustomerContextVerifier,
    CustomerContextError,
    CustomerContextVerifier,
    MemoryReplayStore,
    bearer_token,
    step_up_from_challenge,
)


def options() -> dict[str, Any]:
    """
    Return what both verifiers are built with.
    """
    store = MemoryReplayStore(max_entries=10**7, now=lambda: NOW)
    return {"issuer": ISSUER, "audience": AUDIENCE, "replay_store": store, "jwks": jwks(), "now": lambda: NOW}


# What is given, to be shown, and the call that is given it.
Attempt = tuple[str, Callable[[], Any]]


def verify(maker: Maker, inputs: int) -> Iterator[Attempt]:
    """
    Give the blocking verifier tokens and demands.
    """
    verifier = CustomerContextVerifier(**options())
    for _ in range(inputs):
        token, demands = maker.token(), maker.demands()
        yield repr((token, demands)), lambda: verifier.verify(token, **demands)  # noqa: B023 -- called before the next


def verify_async(maker: Maker, inputs: int) -> Iterator[Attempt]:
    """
    Give the asynchronous verifier tokens and demands, on one event loop.
    """
    verifier = AsyncCustomerContextVerifier(**options())
    with asyncio.Runner() as runner:
        for _ in range(inputs):
            token, demands = maker.token(), maker.demands()
            yield repr((token, demands)), lambda: runner.run(verifier.verify(token, **demands))  # noqa: B023


def read_challenge(maker: Maker, inputs: int) -> Iterator[Attempt]:
    """
    Give the reader of step-up challenges header lines; it raises nothing at all.
    """
    for _ in range(inputs):
        lines = maker.header_lines()
        yield repr(lines), lambda: step_up_from_challenge(lines)  # noqa: B023


def read_authorization(maker: Maker, inputs: int) -> Iterator[Attempt]:
    """
    Give the reader of the Authorization header tokens in headers.
    """
    for _ in range(inputs):
        scheme = maker.random.choice(["Bearer ", "bearer  ", "Basic ", "", "Bearer"])
        value = maker.random.choice(
            [f"{scheme}{maker.token()}", maker.token(), [scheme, maker.token()], maker.header_lines()]
        )
        yield repr(value), lambda: bearer_token(value)  # noqa: B023


# What an API reads with; `token_endpoint` is what the issuer reads with.
TARGETS = (verify, verify_async, read_challenge, read_authorization)


def run(target: Callable[[Maker, int], Iterator[Attempt]], *, inputs: int, seed: int) -> Counter[str]:
    """
    Give one target its inputs and count the outcomes by reason; what is accepted counts as such.

    Raises:
        AssertionError: with the input, from the first exception that is not `CustomerContextError` or an OAuth error.
    """
    outcomes: Counter[str] = Counter()
    for shown, call in target(Maker(seed), inputs):
        try:
            value = call()
        except (CustomerContextError, Refused) as refusal:
            outcomes[refusal.reason] += 1
        except Exception as error:
            raise AssertionError(f"{target.__name__}, seed {seed}: {shown[:2000]}") from error
        else:
            outcomes["nothing" if value is None else "accepted"] += 1
    return outcomes


def main() -> int:
    """
    Run every target and print what came out.
    """
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10_000, help="for each target")
    parser.add_argument("--seed", type=int, default=None, help="random unless given")
    arguments = parser.parse_args()
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    for target in (*TARGETS, token_endpoint):
        began = time.monotonic()
        try:
            outcomes = run(target, inputs=arguments.inputs, seed=seed)
        except AssertionError:
            traceback.print_exc()
            return 1
        print(f"{target.__name__}: {outcomes.total()} inputs in {time.monotonic() - began:.1f} s, seed {seed}")
        for reason, number in outcomes.most_common():
            print(f"  {reason:<20} {number:>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
