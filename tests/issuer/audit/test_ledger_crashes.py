"""
A process that dies at any step of a change leaves nothing that the next one does not sort out.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .desk import Crash, Hooked, raising, suspension
from .stage import entry, read

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("part", "method", "when"),
    [
        ("store", "load", "after"),
        ("trail", "end", "after"),
        ("trail", "append", "before"),
        ("trail", "append", "after"),
        ("store", "save", "before"),
        ("store", "save", "after"),
        ("trail", "confirm", "before"),
        ("trail", "confirm", "after"),
    ],
)
async def test_a_process_that_dies_leaves_nothing_wrong(desk, part, method, when):
    """
    At whichever step: the change is in force and on record, or neither; the next one goes on and says which.
    """
    await desk.ledger().change(suspension("before"))
    hooked = Hooked(getattr(desk, part)() if part == "store" else desk.trail, method, **{when: raising(Crash())})

    with pytest.raises(Crash):
        await desk.ledger(**{part: hooked}).change(suspension("crashed"))
    crashed = "crashed" in (await desk.ring()).companion["suspensions"]
    await desk.ledger().check()
    await desk.ledger().change(suspension("after"))

    ring = await desk.ring()
    names = [json.loads(line)["target"] for line in await read(desk.trail)]
    assert crashed == (
        (part, method, when)
        in [("store", "save", "after"), ("trail", "confirm", "before"), ("trail", "confirm", "after")]
    )
    assert [names[seq - 1] for seq in await desk.carried_out()] == list(ring.companion["suspensions"])
    assert ("audit_unfinished" in [event for event, _ in desk.events]) == (len(names) == 3 and not crashed)


async def test_several_crashes_leave_several_records(desk):
    """
    The next change skips all of them.
    """
    dying = Hooked(desk.store(), "save", before=raising(Crash()))
    for number in range(3):
        with pytest.raises(Crash):
            await desk.ledger(store=dying).note(entry(reason=f"crash {number}"), entry())

    standing = await desk.ledger().check()
    done = await desk.ledger().note(entry())

    assert standing.unfinished == 6
    assert (done.records[0].seq, done.records[0].follows) == (7, 0)
    assert await desk.carried_out() == [7]


async def test_a_half_written_line_is_set_aside_and_on_record(file_desk):
    """
    What a crash in the middle of a write left.
    """
    await file_desk.ledger().note(entry())
    trail = file_desk.folder / "audit" / "acme.jsonl"
    with trail.open("ab") as opened:
        opened.write(b'{"actor":{"ki')

    done = await file_desk.ledger().note(entry())

    torn, own = done.records
    assert (torn.entry.event, torn.entry.after, torn.entry.actor.kind) == ("audit_torn", {"octets": 13}, "service")
    assert own.follows == torn.seq == 2
    assert trail.with_name("acme.jsonl.torn").read_bytes() == b'{"actor":{"ki\n'
    assert await file_desk.carried_out() == [1, 2, 3]


def test_a_kill_at_any_system_call_leaves_nothing_wrong(tmp_path):
    """
    SIGKILL before, after and in the middle of each one that a rotation and a revocation make, in a process of its own.
    """
    child = Path(__file__).parent / "ledger_child.py"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}

    run = subprocess.run(
        [sys.executable, str(child), str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    reports = [json.loads(line) for line in run.stdout.splitlines()]
    assert [report for report in reports if not report["is_right"]] == []
    assert {report["state"] for report in reports} == {"old", "new"}
    assert {"write", "fsync", "ftruncate", "flock", "rename", "open"} <= {report["call"] for report in reports}
    assert len(reports) > 80
