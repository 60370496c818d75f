"""
The records of one change, composed: what the trail is owed, then what the change says; nothing here does I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from keys import KeyRing, SealingKeys

from .canonical import MAX_NUMBER
from .chain import Head, Tip, next_record
from .change import Opened
from .errors import Damage, RingOlderThanTrail, TrailDamaged, TrailUnavailable
from .record import Actor, Entry, Record
from .sealed_state import SpilledChange, read_state, ring_with_state
from .survey import Survey

__all__ = ["Batch", "compose", "owed_entries", "restart_entry", "restart_tip", "sealed_without_record"]

_SERVICE: Final = Actor("service", "issuer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """
    Records that are written together, and the tip behind them.
    """

    records: tuple[Record, ...]
    lines: tuple[bytes, ...]
    tip: Tip


def compose(
    tip: Tip,
    entries: Iterable[tuple[Entry, int]],
    *,
    workspace: str,
    follows: int,
    sealing: SealingKeys,
    anew: bool = False,
) -> Batch:
    """
    Write entries, each with the revision it is about, behind *tip*; *follows* is the last record that was carried out.

    Raises:
        ValueError: when one is too long for a record.
    """
    records, lines = [], []
    for entry, revision in entries:
        record, line, tip = next_record(
            tip, entry, workspace=workspace, revision=revision, follows=follows, sealing=sealing, anew=anew
        )
        records.append(record)
        lines.append(line)
        follows, anew = record.seq, False
    return Batch(records=tuple(records), lines=tuple(lines), tip=tip)


def owed_entries(opened: Opened, here: Mapping[str, tuple[Entry, ...]], *, now: int) -> tuple[tuple[Entry, int], ...]:
    """
    Return what the trail has to be told before anything else, each with the revision it is about.

    That is what a crash left of a line, and the changes that were made without a record: their hashes, and their entries as far
    as the spill file that is *here* has them.
    """
    state, owed = opened.state, []
    if opened.end.torn_octets:
        torn = Entry(at=now, actor=_SERVICE, event="audit_torn", after={"octets": opened.end.torn_octets})
        owed.append((torn, opened.revision + 1))
    if state.spilled or state.unlisted:
        listed = [{"revision": each.revision, "line": each.link} for each in state.spilled]
        count = len(listed) + state.unlisted
        gap = Entry(at=now, actor=_SERVICE, event="audit_gap", after={"changes": listed}, count=count)
        owed.append((gap, opened.revision + 1))
        owed += [(entry, each.revision) for each in state.spilled for entry in here.get(each.link, ())]
    return tuple(owed)


def sealed_without_record(ring: KeyRing, change: SpilledChange) -> KeyRing:
    """
    Return *ring* saying that *change* has no record yet.

    An emergency fails for nothing of this: a companion that cannot be read or has no room is left as it is.
    """
    try:
        return ring_with_state(ring, read_state(ring).with_spilled(change))
    except (TrailDamaged, ValueError):
        return ring


def restart_tip(survey: Survey, opened: Opened, *, where: str) -> Tip:
    """
    Return the tip that a restart writes behind: no number that the ring or the trail has used is used again.

    Raises:
        TrailUnavailable: when the trail claims the last numbers there are.
    """
    tip = survey.tip
    top = max(tip.head.seq, opened.end.top)
    if top > MAX_NUMBER // 2:
        problem = f"its last entry claims the number {top}; move the trail away, then restart it"
        raise TrailUnavailable(where=where, problem=problem)
    return Tip(head=Head(top, tip.head.link), epoch=tip.epoch, sealing_key=tip.sealing_key, key=tip.key)


def restart_entry(survey: Survey, opened: Opened, *, actor: Actor, reason: str, now: int) -> Entry:
    """
    Return what a restart puts on record: what the ring knew, what the trail shows, and what did not fit.
    """
    problem: Damage | str = "none"
    try:
        survey.finish()
    except RingOlderThanTrail as error:
        problem = error.code
    except TrailDamaged as error:
        problem = error.problem
    return Entry(
        at=now,
        actor=actor,
        event="trail_restarted",
        reason=reason,
        before={"revision": opened.revision, "head": str(opened.state.tip.head)},
        after={"problem": problem, "followed_to": str(survey.tip.head), "top": opened.end.top},
    )
