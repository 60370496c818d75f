"""
A process beside the tests: it changes ring and trail until it is killed, at every system call that could matter.

    ledger_child.py <folder>    print one JSON line a kill point, saying whether everything is right afterwards
"""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from issuer.audit import Actor, Entry, FileTrail, LineFile, Spill
from issuer.cli.forking import fork
from issuer.ledger import Change, Ledger
from keys import FileKeyStore, KeyTimes, SealingKey, SealingKeys, create_ring, revoke, rotate

NOW = 1_796_040_000
TIMES = KeyTimes()
SEALING = SealingKeys(SealingKey("2026-11", b"\x11" * 32))
ACTOR = Actor("cli", "root")
STEPS = ("open", "fchmod", "write", "fsync", "rename", "unlink", "mkdir", "ftruncate")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def store_in(folder):
    return FileKeyStore(folder / "rings" / "acme.jwe", "acme", SEALING)


def trail_in(folder):
    return FileTrail(folder / "audit" / "acme.jsonl")


def ledger_in(folder):
    return Ledger(
        "acme",
        store=store_in(folder),
        trail=trail_in(folder),
        spill=Spill(LineFile(folder / "audit" / "acme.spill.jsonl")),
        sealing=SEALING,
        now=lambda: NOW + 1000,
        report=lambda _event, **_facts: None,
    )


def rotation(ring, now):
    rotated = rotate(ring, now=now, times=TIMES, expected_active=None, force=True, reason="rotated")
    said = Entry(at=now, actor=ACTOR, event="keys_rotated", target=rotated.new_kid)
    return Change(ring=rotated.ring, entries=(said,), result=rotated.new_kid)


def revocation(ring, now):
    revoked = revoke(ring, ring.active.kid, now=now, times=TIMES, reason="leaked")
    said = Entry(at=now, actor=ACTOR, event="key_revoked", target=revoked.promoted_kid)
    return Change(ring=revoked.ring, entries=(said,), result=revoked.promoted_kid)


def change(folder, decide):
    return asyncio.run(ledger_in(folder).change(decide, emergency=decide is revocation))


def arm(number, when, die):
    """
    Die before, after or in the middle of the *number*-th system call of a change that could matter.
    """
    calls = []

    def armed(name, original):
        def call(*args, **kwargs):
            # What only reads leaves nothing behind.
            if name == "open" and not args[1] & WRITES:
                return original(*args, **kwargs)
            calls.append(name)
            if len(calls) != number:
                return original(*args, **kwargs)
            try:
                if when == "during" and name == "write":
                    original(args[0], bytes(args[1])[: len(args[1]) // 2])
                elif when == "after":
                    original(*args, **kwargs)
            finally:
                die(name)

        return call

    for name in STEPS:
        setattr(os, name, armed(name, getattr(os, name)))
    fcntl.flock = armed("flock", fcntl.flock)


def killed(action, number, when):
    """
    Fork and take the action with the trap armed; return the call it died at, or None when it came to its end.
    """
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        write = os.write

        def die(name):
            write(writer, name.encode())
            os.kill(os.getpid(), signal.SIGKILL)

        # Whatever it may wait for, the tests do not wait for ever.
        signal.alarm(60)
        arm(number, when, die)
        action()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        call = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return call if os.WIFSIGNALED(status) else None


def one_kill(folder, decide, prepared, point):
    """
    Kill one change at one point, look at what is left and go on; return the call it died at, or None.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared, folder)
    before = asyncio.run(store_in(folder).load())[0].active.kid
    call = killed(lambda: change(folder, decide), *point)
    if call is not None:
        sys.stdout.write(json.dumps({"call": call, "when": point[1], **looked_at(folder, before)}) + "\n")
    return call


def looked_at(folder, before):
    """
    Check what the crash left, make another change, and check that the trail tells what happened and nothing else.
    """
    ring, _ = asyncio.run(store_in(folder).load())
    after = ring.active.kid
    asyncio.run(ledger_in(folder).check())
    last = change(folder, rotation).result
    findings = asyncio.run(ledger_in(folder).verify())
    lines = [json.loads(line) for line in (folder / "audit" / "acme.jsonl").read_bytes().splitlines()]
    beside = {seq for each in findings.not_carried_out for seq in each}
    told = [line["target"] for line in lines if line["seq"] not in beside and line["target"] is not None]
    expected = ([] if before == FIRST else [before]) + ([] if after == before else [after]) + [last]
    return {"state": "old" if after == before else "new", "is_right": findings.is_sound and told == expected}


def main(folder):
    """
    Kill the first change of a new ring, a revocation, and a rotation behind a torn line.
    """
    global FIRST  # noqa: PLW0603
    new, used, torn = folder / "new", folder / "used", folder / "torn"
    ring = create_ring("acme", now=NOW, times=TIMES)
    FIRST = ring.active.kid
    asyncio.run(store_in(new).save(ring, expect=0))
    shutil.copytree(new, used)
    change(used, rotation)
    shutil.copytree(used, torn)
    with (torn / "audit" / "acme.jsonl").open("ab") as opened:
        opened.write(b'{"torn')
    for decide, prepared in ((rotation, new), (revocation, used), (rotation, torn)):
        number = 1
        while call := one_kill(folder / "work", decide, prepared, (number, "before")):
            if call == "write":
                one_kill(folder / "work", decide, prepared, (number, "during"))
            one_kill(folder / "work", decide, prepared, (number, "after"))
            number += 1


FIRST = ""

if __name__ == "__main__":
    main(Path(sys.argv[1]))
