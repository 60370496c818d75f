"""
Planned rotations and revocations under steady minting: no valid token is refused, and no revoked key trusted beyond its bound.

A planned rotation is asked for as soon as a standby is mature, a revocation too: then partners know the next key already. Around
each revocation, somebody who took the private key out of the ring uses it at every partner.
"""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from configuration import WORKSPACE
from estate import PATIENCE_S, Estate
from forger import Forger
from report import Report
from traffic import Revoked, Traffic

from issuer.audit import Findings, RedisTrail, head_of, verify_trail
from issuer.redis_connection import RedisConnection
from issuer.redis_url import parse_redis_url

__all__ = ["Plan", "rotations"]

# Before the revocation the thief is at work already; afterwards partners lose trust one by one.
BEFORE_S = 20
FORGED_EACH_S = 2.0


@dataclass(frozen=True)
class Plan:
    """
    How many steps, which of them are revocations and how partners live through those, and how much is minted.

    `scheduled` is how many rotations the schedule makes beside. With a `busy` revocation partners go on getting tokens; with a
    `quiet` one two of them get none but the thief's; with `cut` these two cannot reach the issuer either, and fetched the keys
    just before: the worst there is.
    """

    steps: int = 23
    revocations: dict[int, str] = field(default_factory=lambda: {6: "busy", 12: "quiet", 18: "cut"})
    a_second: float = 20
    scheduled: int = 1
    seed: int = 1
    longest_pause_s: float = 40


@dataclass
class Course:
    """
    What has happened so far.
    """

    estate: Estate
    report: Report
    traffic: Traffic
    plan: Plan
    rotated: int = 0
    by_instance: list[int] = field(default_factory=lambda: [0, 0])
    forgers: list[tuple[str, Forger]] = field(default_factory=list)

    async def run(self) -> None:
        drawn = random.Random(self.plan.seed)
        async with asyncio.TaskGroup() as tasks:
            for step in range(self.plan.steps):
                await self.estate.clock.sleep(drawn.uniform(5, self.plan.longest_pause_s))
                kind = self.plan.revocations.get(step)
                keys = await self._mature(step % 2)
                if kind is None:
                    await self._rotate(step % 2, keys)
                else:
                    await self._revoke(step % 2, keys["active"], kind, tasks)

    async def _mature(self, instance: int) -> dict[str, Any]:
        """
        Wait until a standby is mature.
        """
        keys = await self.estate.asked(instance, "GET", "/keys")
        await self.estate.clock.sleep_until(keys["next_rotation_at"] + 1)
        # Meanwhile the schedule may have rotated.
        return await self.estate.asked(instance, "GET", "/keys")

    async def _rotate(self, instance: int, keys: dict[str, Any]) -> None:
        body = {"expected_active": keys["active"], "force": False, "reason": None}
        await self.estate.asked(instance, "POST", "/keys/rotate", body)
        self.rotated += 1
        self.by_instance[instance] += 1

    async def _revoke(self, instance: int, kid: str, kind: str, tasks: asyncio.TaskGroup) -> None:
        ring, _ = await self.estate.store().load()
        forger = Forger(self.estate, ring.record(kid).signing_key(), FORGED_EACH_S)
        chosen = () if kind == "busy" else self._a_pair()
        self.traffic.quiet.update(chosen)
        forging = tasks.create_task(forger.run())
        await self.estate.clock.sleep(BEFORE_S)
        if kind == "cut":
            for partner in chosen:
                await self.estate.control(partner, refresh=True)
                await self.estate.control(partner, cut=True)
        told = await self.estate.asked(instance, "POST", f"/keys/{kid}/revoke", {"reason": "soak: it was stolen"})
        self.by_instance[instance] += 1
        forger.revoked = self.traffic.revoked[kid] = Revoked(kid, told["at"], told["trusted_until"])
        self.forgers.append((kind, forger))
        tasks.create_task(self._see_it_through(forging, chosen))

    def _a_pair(self) -> tuple[int, int]:
        kinds = [each.kind for each in self.estate.kinds]
        return kinds.index("sync"), kinds.index("async")

    async def _see_it_through(self, forging: asyncio.Task[None], chosen: tuple[int, ...]) -> None:
        await forging
        for partner in chosen:
            await self.estate.control(partner, cut=False, refresh=True)
        self.traffic.quiet.difference_update(chosen)


async def rotations(estate: Estate, report: Report, plan: Plan) -> None:
    """
    Run the plan and tell what came of it.
    """
    report.section("rotations", f"Rotations and revocations on a clock {estate.clock.factor:g} times as fast")
    traffic = Traffic(estate, plan.a_second, plan.seed)
    course = Course(estate, report, traffic, plan)
    began = estate.clock.now()
    async with traffic.running():
        await course.run()
    report.fact("seconds by the fast clock", round(estate.clock.now() - began))
    _tell_changes(course)
    _tell_tokens(report, traffic)
    for number, (kind, forger) in enumerate(course.forgers, start=1):
        _tell_forger(report, f"revocation {number} ({kind})", forger)
    await _tell_trail(course)


def _tell_changes(course: Course) -> None:
    report, asked = course.report, len(course.forgers)
    report.promise("planned rotations", course.rotated, kept=course.rotated == course.plan.steps - asked)
    report.promise("revocations", asked, kept=asked == len(course.plan.revocations))
    report.fact("asked for at each instance", " and ".join(map(str, course.by_instance)))


def _tell_tokens(report: Report, traffic: Traffic) -> None:
    report.promise("tokens minted", dict(traffic.minted), kept=traffic.minted.total() > 0)
    report.fact("keys that tokens were minted under", len(traffic.kids))
    report.fact("token requests refused", dict(traffic.not_minted))
    report.promise("tokens verified", dict(traffic.accepted), kept=len(traffic.accepted) > 0)
    report.fact("tokens refused", dict(traffic.refused))
    wrongly = len(traffic.wrongly_refused)
    report.promise("valid tokens refused", wrongly, kept=wrongly == 0)
    report.promise(
        f"tokens accepted a second time, of {traffic.shown_twice} shown twice",
        traffic.accepted_twice,
        kept=traffic.accepted_twice == 0,
    )
    late = traffic.minted_late
    report.promise("tokens minted under a revoked key later than a lease", late, kept=late == 0)
    report.fact(
        "tokens of a revoked key that were shown after it was revoked",
        {"accepted": len(traffic.revoked_accepted), "refused": traffic.revoked_refused},
    )
    beyond = traffic.accepted_after_bound
    report.promise("of those, accepted after the stated bound", beyond, kept=beyond == 0)


def _tell_forger(report: Report, name: str, forger: Forger) -> None:
    kinds, bound = forger.estate.kinds, forger.revoked.trusted_until - forger.revoked.at
    report.fact(f"{name}: stated bound, seconds after it", bound)
    report.fact(f"{name}: tokens of the stolen key shown", len(forger.shown))
    for partner, last in forger.last_accepted().items():
        # Before the revocation everybody takes them; who took none was not asked.
        seconds = "never" if last is None else f"{last:+.1f}"
        kept = last is not None and last <= bound
        report.promise(f"{name}: last accepted by {kinds[partner]}, seconds after", seconds, kept=kept)
    after = forger.after_bound()
    accepted = sum(each.reason is None for each in after)
    report.promise(f"{name}: accepted after the bound, of {len(after)} shown", accepted, kept=accepted == 0)


async def verified_trail(estate: Estate) -> Findings:
    """
    Verify the whole trail as somebody who holds the sealing key.
    """
    connection = RedisConnection(parse_redis_url(estate.redis.url), PATIENCE_S)
    lines = [line async for line in RedisTrail(connection, WORKSPACE).lines()]
    await connection.aclose()
    ring, _ = await estate.store().load()
    return verify_trail(lines, workspace=WORKSPACE, sealing=estate.configured.sealing, ring_head=head_of(ring))


async def _tell_trail(course: Course) -> None:
    """
    Hold what was asked for against the audit trail, which also has what the schedule did.
    """
    estate, report = course.estate, course.report
    records, after = [], 0
    while True:
        page = await estate.asked(0, "GET", f"/audit?after={after}&limit=200")
        if not page["records"]:
            break
        records, after = [*records, *page["records"]], page["next"]["after"]
    done = [each for each in records if each["carried_out"]]
    by_whom = [each["actor"]["kind"] for each in done if each["event"] == "keys_rotated"]
    revoked = sum(each["event"] == "key_revoked" for each in done)
    report.promise(
        "rotations on record, asked for", by_whom.count("admin"), kept=by_whom.count("admin") == course.rotated
    )
    report.promise(
        "rotations on record, by the schedule",
        by_whom.count("schedule"),
        kept=by_whom.count("schedule") == course.plan.scheduled,
    )
    report.promise("revocations on record", revoked, kept=revoked == len(course.forgers))
    findings = await verified_trail(estate)
    report.promise("records in the trail, which is sound", findings.records, kept=findings.is_sound)
