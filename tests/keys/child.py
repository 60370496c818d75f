"""
A process beside the tests: it saves until it is killed, counts with others, or works without the rights of its parent.

    child.py crash <folder>                   kill a save at every step and report what is left, one JSON line a kill point
    child.py count <folder> <name> <saves>    save that often with compare-and-set; print the revisions that were written
    child.py unprivileged <folder>            drop the user id where there is one to drop; print what load and save answer
"""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from issuer.cli.forking import fork
from keys import (
    FileKeyStore,
    KeysError,
    KeyTimes,
    RevisionConflict,
    RingMissing,
    SealingKey,
    SealingKeys,
    create_ring,
    revoke,
    rotate,
    seal_ring,
)

NEW, OLD = SealingKey("2026-11", b"\x11" * 32), SealingKey("2026-05", b"\x22" * 32)
SEALING = SealingKeys(NEW, OLD)
TIMES = KeyTimes()
STEPS = ("open", "fchmod", "write", "fsync", "close", "rename", "unlink", "mkdir")
NOBODY = 65_534


def tell(value):
    sys.stdout.write(json.dumps(value) + "\n")


def store_in(folder, sealing=SEALING):
    return FileKeyStore(folder / "rings" / "acme.jwe", "acme", sealing)


def load(folder):
    return asyncio.run(store_in(folder).load())


def save(folder, ring, expect):
    return asyncio.run(store_in(folder).save(ring, expect=expect))


def arm(number, when, die):
    """
    Die before, after or in the middle of the *number*-th system call of a save that could matter.
    """
    calls = []

    def armed(name, original):
        def call(*args, **kwargs):
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


def crash(folder):
    """
    For each kind of save and each of its steps: kill there, then look at what is stored and whether work goes on.
    """
    now = 1_796_040_000
    first = create_ring("acme", now=now, times=TIMES)
    second = rotate(first, now=now + 350, times=TIMES, expected_active=None).ring
    third = revoke(second, second.active.kid, now=now + 360, times=TIMES, reason="leaked").ring
    for kind, *rings in (
        ("create", None, first),
        ("rotate", first, second),
        ("revoke", second, third),
        ("reseal", first, first),
    ):
        number = 1
        while call := one_kill(folder, kind, rings, (number, "before")):
            if call == "write":
                one_kill(folder, kind, rings, (number, "during"))
            one_kill(folder, kind, rings, (number, "after"))
            number += 1


def one_kill(folder, kind, rings, point):
    """
    Kill one save at one point and report; return the call it died at, or None when the save has no such point.
    """
    before, after = rings
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if before is not None:
        (folder / "rings").mkdir(mode=0o700)
        place = folder / "rings" / "acme.jwe"
        place.touch(mode=0o600)
        place.write_bytes(seal_ring(before, revision=1, keys=SealingKeys(OLD if kind == "reseal" else NEW)))
    expect = 0 if before is None else 1
    call = killed(lambda: save(folder, after, expect), *point)
    if call is None:
        return None
    try:
        found, revision = load(folder)
    except RingMissing:
        found, revision = None, 0
    whole = {"old": (before, expect), "new": (after, expect + 1)}
    state = next((name for name, content in whole.items() if content == (found, revision)), "broken")
    if found is None:
        found, revision = after, save(folder, after, 0)
    again = rotate(found, now=found.next_rotation_at, times=TIMES, expected_active=None).ring
    report = {
        "kind": kind,
        "call": call,
        "when": point[1],
        "state": state,
        "goes_on": save(folder, again, revision) == revision + 1 and load(folder) == (again, revision + 1),
        "left": sorted(path.name for path in (folder / "rings").iterdir()),
    }
    tell(report)
    return call


def count(folder, name, saves):
    """
    Replace a standby that often; each success is one revision that nobody else wrote.
    """
    store, written = store_in(folder), []

    async def work():
        while len(written) < saves:
            ring, revision = await store.load()
            reason = f"{name} {len(written)}"
            changed = revoke(ring, ring.standbys[0].kid, now=int(time.time()), times=TIMES, reason=reason).ring
            try:
                written.append(await store.save(changed, expect=revision))
            except RevisionConflict:
                continue

    asyncio.run(work())
    tell(written)


def unprivileged(folder):
    """
    Load and rotate as a user who owns nothing here.
    """
    # What is imported at its first use is imported while the rights are still there.
    asyncio.run(store_in(folder).stamp())
    asyncio.run(asyncio.to_thread(seal_ring, create_ring("acme", now=0, times=TIMES), revision=1, keys=SEALING))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    answers = {}
    try:
        ring, revision = load(folder)
        answers["load"] = "loaded"
        changed = rotate(ring, now=ring.next_rotation_at, times=TIMES, expected_active=None).ring
        answers["save"] = str(save(folder, changed, revision))
    except KeysError as error:
        answers["save" if "load" in answers else "load"] = error.code
    tell(answers)


if __name__ == "__main__":
    mode, place, *rest = sys.argv[1:]
    if mode == "crash":
        crash(Path(place))
    elif mode == "count":
        count(Path(place), rest[0], int(rest[1]))
    else:
        unprivileged(Path(place))
