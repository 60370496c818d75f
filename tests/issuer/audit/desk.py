"""
One workspace for the tests of the ledger, decisions to take, and things that happen in the middle of a change.
"""

import json
from dataclasses import replace

from issuer.audit import FileTrail, LineFile, RedisTrail, Spill, TrailUnavailable
from issuer.ledger import Change, Ledger
from keys import FileKeyStore, SealingKeys, create_ring, revoke, rotate

from .stage import NEW, NOW, OLD, SEALING, TIMES, entry, read

BEFORE_AND_AFTER = SealingKeys(OLD, NEW)


class Crash(BaseException):
    """
    What ends a process: nothing of ours catches it.
    """


class Hooked:
    """
    The real thing, with something happening before or after one of its methods is called.
    """

    def __init__(self, real, method, *, before=None, after=None):
        self._real, self._method, self._before, self._after = real, method, before, after

    def __getattr__(self, name):
        real = getattr(self._real, name)
        if name != self._method:
            return real

        async def call(*args, **kwargs):
            if self._before:
                await self._before()
            result = await real(*args, **kwargs)
            if self._after:
                await self._after()
            return result

        return call


def once(action):
    """
    Take an action the first time alone.
    """
    left = [action]

    async def take():
        if left:
            await left.pop()()

    return take


def raising(error):
    async def action():
        raise error

    return action


class Desk:
    """
    One workspace: its ring in a real file, its trail, its spill file, and what was reported.
    """

    def __init__(self, folder, trail):
        self.folder, self.trail = folder, trail
        self.path = folder / "rings" / "acme.jwe"
        self.spilled = folder / "audit" / "acme.spill.jsonl"
        self.events = []

    async def opened(self):
        """
        Make the first ring.
        """
        await self.store().save(create_ring("acme", now=NOW, times=TIMES), expect=0)
        return self

    def store(self, sealing=SEALING):
        return FileKeyStore(self.path, "acme", sealing)

    def ledger(self, *, store=None, trail=None, sealing=SEALING, spill=None):
        return Ledger(
            "acme",
            store=store or self.store(sealing),
            trail=trail or self.trail,
            spill=spill or Spill(LineFile(self.spilled)),
            sealing=sealing,
            now=lambda: NOW + 0.5,
            report=lambda event, **facts: self.events.append((event, facts)),
        )

    async def ring(self):
        return (await self.store().load())[0]

    async def events_recorded(self):
        return [json.loads(line)["event"] for line in await read(self.trail)]

    async def carried_out(self):
        """
        Verify the trail and return the numbers of the records that were carried out.
        """
        findings = await self.ledger().verify()
        assert findings.is_sound
        beside = {seq for each in findings.not_carried_out for seq in each}
        return [seq for seq in range(1, findings.head.seq - findings.beyond_head + 1) if seq not in beside]


def rotation(*, expected=None, reason="planned"):
    def decide(ring, now):
        rotated = rotate(ring, now=now, times=TIMES, expected_active=expected, force=True, reason=reason)
        said = entry(at=now, reason=reason, before={"active": rotated.old_kid}, after={"active": rotated.new_kid})
        return Change(ring=rotated.ring, entries=(said,), result=rotated.new_kid)

    return decide


def revocation(kid, reason="leaked"):
    def decide(ring, now):
        revoked = revoke(ring, kid, now=now, times=TIMES, reason=reason)
        said = entry(at=now, event="key_revoked", target=kid, reason=reason)
        return Change(ring=revoked.ring, entries=(said,), result=revoked.promoted_kid)

    return decide


def suspension(name):
    def decide(ring, now):
        suspended = (*ring.companion.get("suspensions", ()), name)
        said = entry(at=now, event="suspension_added", target=name)
        return Change(
            ring=replace(ring, companion={**ring.companion, "suspensions": suspended}), entries=(said,), result=name
        )

    return decide


class Unlocked:
    """
    A trail whose lock somebody else holds: what happens inside a change comes from a writer that does not know of it.
    """

    def __init__(self, trail):
        self._trail = trail

    def __getattr__(self, name):
        return getattr(self._trail, name)

    def exclusive(self, *, wait_s):
        return RedisTrail(None, "acme").exclusive(wait_s=wait_s)


def broken(desk, method="append"):
    return Hooked(desk.trail, method, before=raising(TrailUnavailable(where="trail", problem="out of reach")))


async def rewrite(desk, change):
    """
    Put other lines in the place of the trail, as somebody with write access can.
    """
    lines = change(await read(desk.trail))
    if isinstance(desk.trail, FileTrail):
        (desk.folder / "audit" / "acme.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
        return
    client, stream = desk.trail._client, desk.trail.where
    await client.delete(stream)
    for number, line in enumerate(lines, start=1):
        await client.xadd(stream, {"record": line}, id=f"{number}-0")
