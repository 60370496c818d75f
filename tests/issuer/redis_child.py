"""
A process beside the tests of the store of rings in Redis.

    redis_child.py crash <url>            kill a save at every step and report what is stored, one JSON line a kill point
    redis_child.py race <url> <savers>    wait for a line, then save that often at once from revision 1; print the outcomes
"""

import asyncio
import json
import os
import signal
import sys

from redis.asyncio.connection import AbstractConnection

from issuer.cli.forking import fork
from issuer.keystore_redis import RedisKeyStore
from issuer.redis_connection import RedisConnection
from issuer.redis_url import parse_redis_url
from keys import (
    KeyTimes,
    RevisionConflict,
    RingMissing,
    SealingKey,
    SealingKeys,
    create_ring,
    revoke,
    rotate,
)

NOW = 1_796_040_000
TIMES = KeyTimes()
NEW, OLD = SealingKey("2026-11", b"\x11" * 32), SealingKey("2026-05", b"\x22" * 32)
# The steps of a save that reach or leave the server.
STEPS = ("send_packed_command", "read_response")
PATIENCE_S = 30.0


def tell(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def at(url, work, sealing=(NEW, OLD)):
    """
    Do something with a store of its own in an event loop of its own.
    """

    async def run():
        connection = RedisConnection(parse_redis_url(url), PATIENCE_S)
        try:
            return await work(RedisKeyStore(connection, "acme", SealingKeys(*sealing)), connection)
        finally:
            await connection.aclose()

    return asyncio.run(run())


def arm(number, when):
    """
    Die before or after the *number*-th step of a save.
    """
    steps = []

    def armed(original):
        async def step(*args, **kwargs):
            steps.append(original)
            is_the_one = len(steps) == number
            if is_the_one and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            answer = await original(*args, **kwargs)
            if is_the_one:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return step

    for name in STEPS:
        setattr(AbstractConnection, name, armed(getattr(AbstractConnection, name)))


def is_killed(action, number, when):
    child = fork()
    if child == 0:
        # Whatever it may wait for, the tests do not wait for ever.
        signal.alarm(60)
        arm(number, when)
        action()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def crash(url):
    """
    For each kind of save and each of its steps: kill there, then look at what is stored and whether work goes on.
    """
    first = create_ring("acme", now=NOW, times=TIMES)
    second = rotate(first, now=NOW + 350, times=TIMES, expected_active=None).ring
    third = revoke(second, second.active.kid, now=NOW + 360, times=TIMES, reason="leaked").ring
    for kind, before, after in (
        ("create", None, first),
        ("rotate", first, second),
        ("revoke", second, third),
        ("reseal", first, first),
    ):
        number = 1
        while one_kill(url, kind, before, after, number, "before"):
            one_kill(url, kind, before, after, number, "after")
            number += 1


def one_kill(url, kind, before, after, number, when):
    """
    Kill one save at one point and report; False when the save has no such point.
    """
    at(url, lambda _, connection: connection.call("FLUSHALL"))
    expect = 0
    if before is not None:
        sealing = (OLD,) if kind == "reseal" else (NEW,)
        expect = at(url, lambda store, _: store.save(before, expect=0), sealing)
    if not is_killed(lambda: at(url, lambda store, _: store.save(after, expect=expect)), number, when):
        return False
    found, revision = found_at(url)
    whole = {"old": (before, expect), "new": (after, expect + 1)}
    state = next((name for name, content in whole.items() if content == (found, revision)), "broken")
    ring = after if found is None else found
    if found is None:
        revision = at(url, lambda store, _: store.save(after, expect=0))
    again = rotate(ring, now=ring.next_rotation_at, times=TIMES, expected_active=ring.active.kid).ring
    saved = at(url, lambda store, _: store.save(again, expect=revision))
    tell(
        {"kind": kind, "when": when, "state": state, "goes_on": found_at(url) == (again, revision + 1) and bool(saved)}
    )
    return True


def found_at(url):
    try:
        return at(url, lambda store, _: store.load())
    except RingMissing:
        return None, 0


def race(url, savers):
    """
    Save that often at once, each another ring, when told to.
    """

    async def save_all(store, _connection):
        ring, revision = await store.load()
        rings = [rotate(ring, now=NOW + 350, times=TIMES, expected_active=None).ring for _ in range(savers)]
        tell("ready")
        await asyncio.to_thread(sys.stdin.readline)
        return await asyncio.gather(*(save(store, each, revision) for each in rings))

    async def save(store, ring, revision):
        try:
            return [await store.save(ring, expect=revision), ring.active.kid, ring.standbys[-1].kid]
        except RevisionConflict as conflict:
            return [conflict.code, conflict.expected, conflict.found]

    tell(at(url, save_all))


if __name__ == "__main__":
    mode, where, *rest = sys.argv[1:]
    if mode == "crash":
        crash(where)
    else:
        race(where, int(rest[0]))
