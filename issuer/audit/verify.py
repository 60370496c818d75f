"""
A whole trail checked record by record: which one is wrong, and how.

The check goes on behind what it finds, as far as the keys lead. A record whose MAC is right is believed, also about its number;
what stands between two such records was removed, changed or put there. Records of an epoch whose sealing key is not at hand are
held by their hashes alone, and proven by the first record behind them that can be trusted, or by a head that is known.
"""

from collections.abc import Iterable
from typing import Final

from keys import SealingKeys

from .chain import Head, epoch_key, evolve, genesis, link_of, mac_is_valid
from .course import Course
from .errors import Damage
from .findings import FindingList, Findings, Problem
from .record import Malformed, Record, SignedRecord, parse_record

__all__ = ["TrailVerification", "verify_trail"]

_MAX_MISSING: Final = 1_000_000
"""Records in a row that may be missing; behind more, no key is looked for."""

_MAX_GUESSED: Final = 8
"""How far around the missing first record of an epoch its place is looked for."""


def verify_trail(
    lines: Iterable[bytes],
    *,
    workspace: str,
    sealing: SealingKeys | None,
    ring_head: Head | None,
    expected: Iterable[Head] = (),
) -> Findings:
    """
    Verify a trail that is at hand as lines without newlines; see `TrailVerification`.
    """
    verification = TrailVerification(workspace, sealing=sealing, ring_head=ring_head, expected=expected)
    for line in lines:
        verification.feed(line)
    return verification.finish()


class TrailVerification:
    """
    Takes the lines of a trail one by one; what it keeps does not grow with them, but for records that were not carried out.
    """

    __slots__ = (
        "_by_hash",
        "_course",
        "_findings",
        "_head",
        "_heads",
        "_keys",
        "_lines",
        "_restart",
        "_ring_head",
        "_sealing_keys",
        "_unproven",
        "_workspace",
        "_wrong",
    )

    def __init__(
        self, workspace: str, *, sealing: SealingKeys | None, ring_head: Head | None, expected: Iterable[Head] = ()
    ) -> None:
        """
        Take the keys at hand, the head that the ring was sealed with, and heads that somebody noted at any time.

        Without keys, hashes alone are checked. Without a ring, a tail that was cut off is found by noted heads only.
        """
        self._workspace = workspace
        self._sealing_keys = [*(sealing or ())]
        self._ring_head = ring_head
        self._heads: dict[int, set[str]] = {}
        for head in (*expected, *([] if ring_head is None else [ring_head])):
            self._heads.setdefault(head.seq, set()).add(head.link)
        self._keys = _EpochKeys()
        self._head = genesis(workspace).head
        self._lines = self._by_hash = 0
        # Lines behind the last record that are none, or not as they were written: each may stand for one or for nothing.
        self._wrong = 0
        # The first record that is held by its hash alone and not proven yet, 0 when there is none.
        self._unproven = 0
        # The last restart that is not proven yet, and how much had been found before it.
        self._restart: tuple[int, int] | None = None
        self._course = Course()
        self._findings = FindingList()
        self._compare_heads()

    def feed(self, line: bytes) -> None:
        """
        Take the next line.
        """
        self._lines += 1
        try:
            signed = parse_record(line)
        except Malformed:
            self._count_as_wrong("malformed")
            return
        record = signed.record
        if record.workspace != self._workspace:
            self._count_as_wrong("workspace")
        elif record.sealing_key is not None:
            self._take_first(signed, line)
        elif record.seq <= self._head.seq:
            self._find("out_of_order", record.seq)
        else:
            self._take_next(signed, line)

    def finish(self) -> Findings:
        """
        Return what was found; no more lines come.
        """
        last = self._head.seq
        known = max(self._heads, default=0)
        if known > last + self._wrong:
            self._findings.add("cut", last + self._wrong + 1, last=known, line=self._lines)
        if self._unproven:
            self._findings.add("unproven", self._unproven, last=last, line=self._lines)
        ring_seq = last if self._ring_head is None else min(last, self._ring_head.seq)
        return Findings(
            is_sound=self._findings.are_answered,
            records=self._lines,
            head=self._head,
            findings=self._findings.listed,
            omitted=self._findings.omitted,
            not_carried_out=self._course.beside(ring_seq),
            beyond_head=last - ring_seq,
            by_hash_alone=self._by_hash,
        )

    def _take_first(self, signed: SignedRecord, line: bytes) -> None:
        """
        Take a record that says that an epoch begins with it.
        """
        record = signed.record
        sealing_key = next((key for key in self._sealing_keys if key.id == record.sealing_key), None)
        key = None if sealing_key is None else epoch_key(sealing_key, record.epoch, self._workspace)
        if key is not None and not mac_is_valid(key, signed.content, signed.mac):
            self._count_as_wrong("changed")
        elif record.seq <= self._head.seq or record.epoch <= self._keys.epoch:
            self._find("out_of_order", record.seq)
        else:
            self._keys.begin(record.epoch, record.seq, key)
            self._accept(record, line, is_trusted=key is not None)

    def _take_next(self, signed: SignedRecord, line: bytes) -> None:
        record = signed.record
        if record.epoch < self._keys.epoch:
            self._count_as_wrong("epoch")
        elif record.epoch > self._keys.epoch:
            self._take_without_first(signed, line)
        elif not self._keys.are_known:
            self._accept(record, line, is_trusted=False)
        elif (key := self._keys.key_of(record.seq, furthest=_MAX_MISSING)) and mac_is_valid(
            key, signed.content, signed.mac
        ):
            self._accept(record, line, is_trusted=True)
        else:
            self._count_as_wrong("changed")

    def _take_without_first(self, signed: SignedRecord, line: bytes) -> None:
        """
        Take a record whose epoch began with a record that is not there, or not as it was written.
        """
        record = signed.record
        keys = self._guessed_keys(signed)
        if keys is not None:
            self._keys = keys
        else:
            if record.seq <= self._head.seq + 1 + self._wrong:
                self._find("epoch", record.seq)
            self._keys.begin(record.epoch, record.seq, None)
        self._accept(record, line, is_trusted=keys is not None)

    def _guessed_keys(self, signed: SignedRecord) -> "_EpochKeys | None":
        """
        Find the keys of an epoch without its first record, which stood right behind the last good one or one of the wrong lines.
        """
        record, expected = signed.record, self._head.seq + 1
        for first in range(expected, min(record.seq, expected + 1 + min(self._wrong, _MAX_GUESSED))):
            for sealing_key in self._sealing_keys:
                keys = _EpochKeys()
                keys.begin(record.epoch, first, epoch_key(sealing_key, record.epoch, self._workspace))
                key = keys.key_of(record.seq, furthest=_MAX_GUESSED)
                if key is not None and mac_is_valid(key, signed.content, signed.mac):
                    return keys
        return None

    def _accept(self, record: Record, line: bytes, *, is_trusted: bool) -> None:
        expected = self._head.seq + 1
        is_linked = record.seq == expected and record.prev == self._head.link
        if record.seq > expected + self._wrong:
            self._find("missing", expected + self._wrong, last=record.seq - 1)
        elif record.seq == expected and not is_linked:
            self._find("link", record.seq)
        if self._unproven and not is_linked:
            self._find("unproven", self._unproven, last=self._head.seq)
            self._unproven, self._restart = 0, None
        if record.entry.event == "trail_restarted":
            self._restart = (record.seq, self._findings.added)
        self._head = Head(record.seq, link_of(line))
        self._wrong = 0
        self._keys.advance(record.seq + 1)
        self._course.add(record)
        if is_trusted:
            self._count_as_proven()
        else:
            self._by_hash += 1
            self._unproven = self._unproven or record.seq
        self._compare_heads()

    def _count_as_proven(self) -> None:
        self._unproven = 0
        if self._restart is not None:
            by, added = self._restart
            self._findings.acknowledge(by, added=added)
            self._restart = None

    def _compare_heads(self) -> None:
        links = self._heads.get(self._head.seq, set())
        if self._head.link in links:
            self._count_as_proven()
        if links - {self._head.link}:
            self._find("head", self._head.seq)

    def _count_as_wrong(self, problem: Damage) -> None:
        self._find(problem, self._head.seq + 1 + self._wrong)
        self._wrong += 1

    def _find(self, problem: Problem, seq: int, *, last: int | None = None) -> None:
        self._findings.add(problem, seq, last=last, line=self._lines)


class _EpochKeys:
    """
    The MAC keys of an epoch from the next record on, in both ways they are asked for: one further, or some further.
    """

    __slots__ = ("_ahead", "_next", "epoch")

    def __init__(self) -> None:
        self.epoch = 0
        self._next: tuple[int, bytes] | None = None
        self._ahead: tuple[int, bytes] | None = None

    @property
    def are_known(self) -> bool:
        return self._next is not None

    def begin(self, epoch: int, seq: int, key: bytes | None) -> None:
        self.epoch = epoch
        self._next = self._ahead = None if key is None else (seq, key)

    def key_of(self, seq: int, *, furthest: int) -> bytes | None:
        """
        Return the key of a record that is not before the next one; None when none is known or it is too far away.
        """
        if self._next is None or self._ahead is None or seq - self._next[0] > furthest:
            return None
        at, key = self._ahead if seq >= self._ahead[0] else self._next
        for _ in range(seq - at):
            key = evolve(key)
        self._ahead = (seq, key)
        return key

    def advance(self, seq: int) -> None:
        """
        Forget the keys before that of record *seq*.
        """
        key = self.key_of(seq, furthest=_MAX_MISSING + 1)
        self._next = self._ahead = None if key is None else (seq, key)
