"""
A long audit trail verified, and tampered with in every way that somebody may try who gets at the file, the keys or both.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from report import Report

from issuer.audit import Actor, Entry, Findings, Head
from issuer.audit.canonical import canonical
from issuer.audit.chain import Tip, genesis, link_of, next_record
from issuer.audit.record import parse_record
from issuer.audit.sealed_state import TrailState, ring_with_state
from issuer.init_config import write_development_config
from issuer.ring_stores import ring_stores
from issuer.settings import Settings, load_settings
from issuer.settings_sealing import load_sealing_keys, trail_path
from issuer.workspace_stores import open_stores
from keys import SealingKeys

__all__ = ["trail"]

NOW = 1_796_040_000
WORKSPACE = "demo"
ACTOR = Actor("admin", "secops", "192.0.2.7")
BATCH = 100
COMMAND = Path(sys.executable).with_name("customer-context")
LIMIT_S = 120
# Slow enough for a machine that is busy, far below what would keep anybody from verifying.
BOUND_S = 30

Lines = list[bytes]


@dataclass(frozen=True)
class Site:
    """
    A data folder with a trail, and the keys it was written with.
    """

    config: Path
    settings: Settings
    sealing: SealingKeys

    @property
    def path(self) -> Path:
        return trail_path(self.settings, WORKSPACE)

    def stores(self):
        place = ring_stores(self.settings, self.sealing)
        return open_stores(place, self.settings, WORKSPACE, self.sealing, now=lambda: NOW, report=lambda *_, **__: None)

    def write(self, records: int) -> None:
        """
        Put that many records on record, some with every change.
        """

        async def run() -> None:
            ledger = self.stores().ledger
            for number in range(0, records, BATCH):
                entries = (
                    Entry(at=NOW + at, actor=ACTOR, event="admin_called", target="keys:list", count=1 + at % 7)
                    for at in range(number, min(number + BATCH, records))
                )
                await ledger.note(*entries)

        asyncio.run(run())

    def lines(self) -> Lines:
        return self.path.read_bytes().splitlines()

    def put(self, lines: Sequence[bytes]) -> None:
        self.path.write_bytes(b"".join(line + b"\n" for line in lines))

    def verify(self, *expected: Head) -> Findings:
        return asyncio.run(self.stores().ledger.verify(expected))

    def command(self, *options: str) -> tuple[int, dict]:
        """
        Run the command that an auditor runs.
        """
        ran = subprocess.run(
            [COMMAND, "audit", "verify", "--config", self.config, "--json", *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        return ran.returncode, json.loads(ran.stdout or "{}")


def trail(report: Report, folder: Path, *, records: int, commands: bool = True) -> None:
    """
    Write that many records, verify them, and tell what becomes of each kind of tampering; *commands* are run too, or not.
    """
    report.section("trail", f"An audit trail of {records} records verified")
    config = write_development_config(folder / "site", now=NOW).config
    settings = load_settings(config, {})
    site = Site(config, settings, load_sealing_keys(settings))
    site.write(records)
    good, head = site.lines(), site.verify().head
    _tell_speed(report, site, records, commands=commands)
    middle = records // 2
    for name, tampered, wrong in (
        ("a changed byte", _changed(good, middle), ("changed", middle)),
        ("a removed record", good[: middle - 1] + good[middle:], ("missing", middle)),
        ("a cut tail", good[:-10], ("cut", records - 9)),
        ("a chain recomputed without keys", _relinked(_reworded(good, middle)), ("changed", middle)),
        ("a chain recomputed with the sealing key", _rewritten(site, _reworded(good, middle))[0], ("head", records)),
    ):
        site.put(tampered)
        _tell(report, name, site.verify(), wrong)
    if commands:
        _tell_command(report, site)
    _resealed(report, site, _reworded(good, middle), head, commands=commands)


def _tell_speed(report: Report, site: Site, records: int, *, commands: bool) -> None:
    began = time.monotonic()
    findings = site.verify()
    seconds = time.monotonic() - began
    report.promise("records that verify", findings.records, kept=findings.is_sound and findings.records == records)
    report.promise("seconds for it", seconds, kept=seconds < BOUND_S)
    if not commands:
        return
    began = time.monotonic()
    status, told = site.command()
    report.promise("`audit verify` says they are sound", status, kept=status == 0 and told["records"] == records)
    report.fact("seconds for the command", time.monotonic() - began)


def _tell(report: Report, name: str, findings: Findings, wrong: tuple[str, int]) -> None:
    first = findings.findings[0] if findings.findings else None
    shown = "nothing" if first is None else f"{first.problem} at record {first.seq}"
    kept = not findings.is_sound and first is not None and (first.problem, first.seq) == wrong
    report.promise(f"{name}: found", shown, kept=kept)


def _tell_command(report: Report, site: Site) -> None:
    status, told = site.command()
    report.promise("`audit verify` ends with 1 for the last of them", status, kept=status == 1 and not told["sound"])


def _resealed(report: Report, site: Site, lines: Lines, head: Head, *, commands: bool) -> None:
    """
    Rewrite trail and ring, as only somebody can who has the sealing key and both stores: a head that was noted tells.
    """
    rewritten, tip = _rewritten(site, lines)
    site.put(rewritten)

    async def seal() -> None:
        store = site.stores().ring
        ring, revision = await store.load()
        await store.save(ring_with_state(ring, TrailState(tip=tip)), expect=revision)

    asyncio.run(seal())
    report.fact("trail and ring rewritten: sound without a noted head", site.verify().is_sound)
    _tell(report, "trail and ring rewritten, with a noted head", site.verify(head), ("head", head.seq))
    if commands:
        status, _ = site.command("--expect-head", str(head))
        report.promise("`audit verify --expect-head` ends with 1 for that", status, kept=status == 1)


def _changed(lines: Lines, seq: int) -> Lines:
    return _each(lines, seq, lambda line: line.replace(b"secops", b"secopz"))


def _reworded(lines: Lines, seq: int) -> Lines:
    """
    Have a record say something else, in proper form.
    """
    return _each(lines, seq, lambda line: canonical({**json.loads(line), "target": "audit:read"}))


def _each(lines: Lines, seq: int, change: Callable[[bytes], bytes]) -> Lines:
    return [*lines[: seq - 1], change(lines[seq - 1]), *lines[seq:]]


def _relinked(lines: Lines) -> Lines:
    """
    Link all lines anew, with the MACs as they are: that much needs no key.
    """
    link, linked = genesis(WORKSPACE).head.link, []
    for line in lines:
        linked.append(canonical({**json.loads(line), "prev": link}))
        link = link_of(linked[-1])
    return linked


def _rewritten(site: Site, lines: Lines) -> tuple[Lines, Tip]:
    """
    Write the whole trail anew, with keys.
    """
    tip, written = genesis(WORKSPACE), []
    for line in lines:
        record = parse_record(line).record
        _, again, tip = next_record(
            tip,
            record.entry,
            workspace=WORKSPACE,
            revision=record.revision,
            follows=record.follows,
            sealing=site.sealing,
        )
        written.append(again)
    return written, tip
