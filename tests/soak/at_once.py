"""
Many who ask for the same rotation at the same moment, at both instances: one rotation.
"""

import asyncio
from collections import Counter

from estate import Estate
from report import Report

__all__ = ["at_once"]


async def at_once(estate: Estate, report: Report, *, calls: int) -> None:
    """
    Ask *calls* times at once, each with an idempotency key of its own, and count what came of it.
    """
    report.section("at_once", f"{calls} rotations asked for at once at two instances")
    keys = await estate.asked(0, "GET", "/keys")
    await estate.clock.sleep_until(keys["next_rotation_at"] + 1)
    before = await estate.asked(0, "GET", "/keys")
    seq = await _last_record(estate)
    body = {"expected_active": before["active"], "force": False, "reason": None}
    answers = await asyncio.gather(*(estate.admin(number % 2, "POST", "/keys/rotate", body) for number in range(calls)))
    after = await estate.asked(1, "GET", "/keys")
    records = (await estate.asked(1, "GET", f"/audit?after={seq}&limit=200"))["records"]
    carried_out = [each for each in records if each["event"] == "keys_rotated" and each["carried_out"]]
    states = Counter(each["state"] for each in after["keys"] if each["kid"] in {key["kid"] for key in before["keys"]})

    statuses = Counter(f"{answer.status_code} {answer.json().get('title', 'rotated')}" for answer in answers)
    done = [answer.json()["active"] for answer in answers if answer.is_success]
    report.fact("answers", dict(sorted(statuses.items())))
    report.promise("calls that were told that they rotated", len(done), kept=len(done) == 1)
    report.promise("rotations on record", len(carried_out), kept=len(carried_out) == 1)
    report.promise(
        "the key that signs is the one that was told", done == [after["active"]], kept=done == [after["active"]]
    )
    report.promise("keys that became active", states["active"], kept=states["active"] == 1)
    report.fact("records of attempts that were overtaken", sum(not each["carried_out"] for each in records))


async def _last_record(estate: Estate) -> int:
    records = (await estate.asked(0, "GET", "/audit?limit=1"))["records"]
    return records[0]["seq"] if records else 0
