"""
The file store among processes: killed at every step, raced for, and used without the rights to write or read.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import keys
from keys import FileKeyStore, KeyTimes, SealingKey, SealingKeys, create_ring

CHILD = Path(__file__).with_name("child.py")
SEALING = SealingKeys(SealingKey("2026-11", b"\x11" * 32))
NOBODY = 65_534
# The children neither write coverage data nor byte code: they may be killed or have no right to.
ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "PYTHONPATH": str(Path(keys.__file__).parents[1]),
    "PYTHONDONTWRITEBYTECODE": "1",
}


def child(*arguments):
    return subprocess.Popen(
        [sys.executable, str(CHILD), *map(str, arguments)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )


def told(process):
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return [json.loads(line) for line in output.splitlines()]


def created(folder):
    """
    A store with a fresh ring in the place where the children look for it.
    """
    store = FileKeyStore(folder / "rings" / "acme.jwe", "acme", SEALING)
    asyncio.run(store.save(create_ring("acme", now=1_796_040_000, times=KeyTimes()), expect=0))
    return store


@pytest.fixture
def open_folder():
    """
    A folder that other users may enter, unlike those of pytest.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_kill_at_any_step_leaves_a_whole_ring(quick_folder):
    """
    Creating, rotating, revoking and resealing are killed before, after and within each system call, more than 120 times.

    What is left is the old ring or the new one, never anything else; the next rotation works and sweeps up.
    """
    reports = told(child("crash", quick_folder / "crash"))

    assert len(reports) > 120
    assert {report["state"] for report in reports} == {"old", "new"}
    assert all(report["goes_on"] for report in reports)
    assert all(report["left"] == ["acme.jwe", "acme.jwe.lock"] for report in reports)
    assert {report["kind"] for report in reports} == {"create", "rotate", "revoke", "reseal"}
    for kind in ("rotate", "revoke", "reseal"):
        calls = [report["call"] for report in reports if (report["kind"], report["when"]) == (kind, "before")]
        durable = ["open", "fchmod", "write", "fsync", "close", "rename", "open", "fsync", "close"]
        assert calls[-len(durable) - 1 : -1] == durable


def test_four_processes_lose_no_save(quick_folder):
    """
    F01: 4 processes save 15 times each with compare-and-set: 60 revisions, each written by exactly one of them.
    """
    store = created(quick_folder)

    counters = [child("count", quick_folder, name, 15) for name in ("a", "b", "c", "d")]
    written = [revision for counter in counters for revision in told(counter)[0]]

    assert sorted(written) == list(range(2, 62))
    assert asyncio.run(store.load())[1] == 61


def test_an_unreadable_file_is_reported_on_load(open_folder):
    """
    F09: a ring that belongs to another user is refused when it is loaded, not at the first mint.
    """
    store = created(open_folder)
    (open_folder / "rings").chmod(0o755)
    if os.geteuid() != 0:
        store.path.chmod(0)

    answers = told(child("unprivileged", open_folder))

    assert answers == [{"load": "file_unreadable"}]


def test_a_read_only_folder_serves_but_does_not_rotate(open_folder):
    """
    F09: the ring loads where nothing can be written; a rotation reports it and changes nothing.
    """
    store = created(open_folder)
    before = store.path.read_bytes()
    if os.geteuid() == 0:
        (open_folder / "rings").chmod(0o755)
        os.chown(store.path, NOBODY, NOBODY)
        os.chown(store.path.with_name("acme.jwe.lock"), NOBODY, NOBODY)
    else:
        (open_folder / "rings").chmod(0o500)

    answers = told(child("unprivileged", open_folder))

    assert answers == [{"load": "loaded", "save": "file_unwritable"}]
    assert store.path.read_bytes() == before
    (open_folder / "rings").chmod(0o700)
