"""
Keys and trail under load, kills, damage and time: what the service promises, held against real processes, Redis and HTTP.

    python tests/soak/soak.py [--short] [--only SECTION,...] [--factor 20] [--json FILE]

Prints one line a fact; ends with 1 when a promise was broken. `--json` writes all facts to a file.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from at_once import at_once
from damage import damage
from estate import Estate, PartnerKind
from kills import kills
from processes import a_redis, open_estate
from report import Report
from rotations import Plan, rotations
from stopped import stopped
from suspensions import suspensions
from trail import trail

from keys import KeyTimes

FOUR = (PartnerKind("sync"), PartnerKind("sync", 60), PartnerKind("async"), PartnerKind("async", 60))
WATCHERS = (PartnerKind("async", replay=False), PartnerKind("sync", 5, replay=False))
# A short run rotates and revokes once, and everything that needs instances happens on the same ones.
SHORT = Plan(steps=2, revocations={1: "busy"}, scheduled=0, longest_pause_s=10)
SHORT_FACTOR, FACTOR = 40, 20
SHORT_TIMES = KeyTimes(max_age_s=60, stale_if_error_s=60)


def together(report: Report, options: argparse.Namespace) -> None:
    """
    Run what needs two instances and four partners on a fast clock, one after the other on the same ones.
    """

    async def run(folder: Path) -> None:
        kinds = (FOUR[0], FOUR[3], *WATCHERS) if options.short else FOUR
        factor = options.factor or (SHORT_FACTOR if options.short else FACTOR)
        times = SHORT_TIMES if options.short else KeyTimes()
        async with open_estate(folder, factor=factor, kinds=kinds, times=times, is_due=not options.short) as estate:
            if "rotations" in options.only:
                await rotations(estate, report, SHORT if options.short else Plan())
            if "at_once" in options.only:
                await at_once(estate, report, calls=50)
            if "stopped" in options.only:
                await stopped(estate, report, rounds=1 if options.short else 12)
            if "suspensions" in options.only and options.short:
                await suspensions(estate, report)
            tell_pulse(report, estate)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


def tell_pulse(report: Report, estate: Estate) -> None:
    """
    Tell how long the machine paused at worst; for longer than a lease, a promise that looks broken may be the machine's.
    """
    report.fact("longest that the machine kept a process waiting, real seconds", round(estate.longest_pause_s, 2))
    report.is_doubtful |= estate.longest_pause_s * estate.clock.factor > estate.times.lease_s


def suspended(report: Report, options: argparse.Namespace) -> None:
    """
    Suspend on the machine's own clock, since a second counts here.
    """

    async def run(folder: Path) -> None:
        factor = options.factor or 1
        async with open_estate(folder, factor=factor, kinds=WATCHERS, times=KeyTimes(), is_due=True) as estate:
            await suspensions(estate, report)
            tell_pulse(report, estate)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


def killed(report: Report, options: argparse.Namespace) -> None:
    """
    Kill at every step, in a short run at some.
    """
    with tempfile.TemporaryDirectory() as temporary, a_redis(Path(temporary)) as redis:
        kills(report, Path(temporary), redis, each=9 if options.short else 1)


def damaged(report: Report, options: argparse.Namespace) -> None:
    """
    Cut a ring at every octet, in a short run at some.
    """
    with tempfile.TemporaryDirectory() as temporary, a_redis(Path(temporary)) as redis:
        damage(report, Path(temporary), redis, each=97 if options.short else 1)


def audited(report: Report, options: argparse.Namespace) -> None:
    """
    Verify a long trail, in a short run one that is less long.
    """
    with tempfile.TemporaryDirectory() as folder:
        trail(report, Path(folder), records=500 if options.short else 10_000, commands=not options.short)


Run = Callable[[Report, argparse.Namespace], None]

SECTIONS: dict[str, Run] = {
    **dict.fromkeys(("rotations", "at_once", "stopped"), together),
    "suspensions": suspended,
    "kills": killed,
    "damage": damaged,
    "trail": audited,
}


def main() -> int:
    """
    Run the sections and print what came out.
    """
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds of everything")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument("--factor", type=float, help="how fast the clock runs")
    parser.add_argument("--json", type=Path, help="a file for all facts")
    options = parser.parse_args()
    # Whoever ends it ends what it started too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options.only = options.only.split(",")
    report, began = Report(), time.monotonic()
    runs = SECTIONS | ({"suspensions": together} if options.short else {})
    # Several sections share a run.
    for run in dict.fromkeys(runs[name] for name in options.only):
        run(report, options)
    if options.json is not None:
        options.json.write_text(report.json())
    print(f"\n{time.monotonic() - began:.0f} seconds; {len(report.broken)} promises broken")
    for each in report.broken:
        print(f"BROKEN  {each}", file=sys.stderr)
    if report.broken and report.is_doubtful:
        print("The machine paused for longer than a lease by the fast clock; try again when it is less busy.")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
