"""
How records hang together: each names the hash of the line before it and carries a MAC under a key that is used once.

The hash of a line covers its MAC, so the hash of the last line, the *head*, stands for the whole trail, and whoever noted a
head can hold the trail against it without any key. The MAC key of a record is gone, by a one-way step, once the record is
written: what a service holds at one moment does not let anybody change the records before. A chain of keys (an *epoch*) begins
with a key derived from a sealing key; the first record under another sealing key begins a new epoch, so that the old sealing
key can be destroyed and the old records stay bound by the hashes.
"""

import hmac
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Self

from keys import SealingKey, SealingKeys

from .canonical import MAX_NUMBER, canonical
from .errors import Damage
from .record import MAX_LINE_OCTETS, Entry, Malformed, Record, parse_record, record_members

__all__ = [
    "DoesNotFollow",
    "Head",
    "Tip",
    "confirmation",
    "epoch_key",
    "evolve",
    "follow",
    "genesis",
    "link_of",
    "mac_is_valid",
    "next_record",
]

_GENESIS: Final = b"caplo-audit:genesis\0"
_EVOLVE: Final = b"caplo-audit:evolve"
_CONFIRM: Final = b"caplo-audit:confirm"
_HEAD: Final = re.compile(r"(0|[1-9][0-9]{0,15})\.([A-Za-z0-9_-]{42}[AEIMQUYcgkosw048])")


@dataclass(frozen=True, slots=True)
class Head:
    """
    The end of a trail: the number of the last record and the hash of its line. Written `<seq>.<link>`.
    """

    seq: int
    link: str

    def __str__(self) -> str:
        return f"{self.seq}.{self.link}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Read a head as it was written.

        Raises:
            ValueError: when it is none.
        """
        match = _HEAD.fullmatch(text)
        if match is None or int(match[1]) > MAX_NUMBER:
            raise ValueError("a head is a number, a dot and 43 characters of base64url")
        return cls(int(match[1]), match[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """
    Where the next record goes.

    `key` is the MAC key of that record, empty before the first one. `epoch` is 0 and `sealing_key` None until then.
    """

    head: Head
    epoch: int
    sealing_key: str | None
    key: bytes = field(repr=False)


class DoesNotFollow(Exception):
    """
    Raised when a line is not the next record of a trail.
    """

    def __init__(self, problem: Damage) -> None:
        """
        Say in one word why not.
        """
        super().__init__(problem)
        self.problem = problem


def genesis(workspace: str) -> Tip:
    """
    Return the tip of a trail without records.
    """
    link = _base64url(sha256(_GENESIS + workspace.encode("ascii")).digest())
    return Tip(head=Head(0, link), epoch=0, sealing_key=None, key=b"")


def link_of(line: bytes) -> str:
    """
    Return the hash of a line, without its newline.
    """
    return _base64url(sha256(line).digest())


def evolve(key: bytes) -> bytes:
    """
    Return the MAC key after *key*; there is no way back.
    """
    return hmac.digest(key, _EVOLVE, "sha256")


def epoch_key(sealing_key: SealingKey, epoch: int, workspace: str) -> bytes:
    """
    Return the MAC key of the first record of an epoch.
    """
    return sealing_key.derive(f"audit:{epoch}", workspace)


def mac_is_valid(key: bytes, content: bytes, mac: str) -> bool:
    """
    Tell whether *mac* is the MAC of *content*, in constant time.
    """
    return hmac.compare_digest(_mac(key, content), mac)


def confirmation(tip: Tip) -> str:
    """
    Return what is noted beside the trail when the ring was saved with the last record of *tip* as its head.

    Nobody can make it who does not hold the key of the next record.
    """
    return _base64url(hmac.digest(tip.key, _CONFIRM, "sha256"))


def next_record(
    tip: Tip, entry: Entry, *, workspace: str, revision: int, follows: int, sealing: SealingKeys, anew: bool = False
) -> tuple[Record, bytes, Tip]:
    """
    Write the next record, and return it with its line and the tip behind it.

    It begins a new epoch when the sealing key is another one than that of the present epoch, and always with *anew*.

    Raises:
        ValueError: when the line would be longer than `MAX_LINE_OCTETS`, or the numbers are used up.
    """
    key, epoch, begins = tip.key, tip.epoch, None
    if anew or tip.sealing_key != sealing.current.id:
        epoch, begins = epoch + 1, sealing.current.id
        key = epoch_key(sealing.current, epoch, workspace)
    record = Record(
        entry=entry,
        workspace=workspace,
        seq=tip.head.seq + 1,
        revision=revision,
        follows=follows,
        epoch=epoch,
        sealing_key=begins,
        prev=tip.head.link,
    )
    members = record_members(record)
    line = canonical({**members, "mac": _mac(key, canonical(members))})
    if len(line) > MAX_LINE_OCTETS:
        raise ValueError("a record is too long")
    return record, line, _behind(record, line, key, sealing.current.id)


def follow(tip: Tip, line: bytes, *, workspace: str, sealing: SealingKeys) -> tuple[Record, Tip]:
    """
    Check that *line* is the record after *tip*, and return it with the tip behind it.

    Raises:
        DoesNotFollow: when it is not.
    """
    try:
        signed = parse_record(line)
    except Malformed:
        raise DoesNotFollow("malformed") from None
    record = signed.record
    if record.workspace != workspace:
        raise DoesNotFollow("workspace")
    if record.seq != tip.head.seq + 1:
        raise DoesNotFollow("missing" if record.seq > tip.head.seq else "out_of_order")
    key, sealing_key = _key_of(record, tip, sealing)
    if not mac_is_valid(key, signed.content, signed.mac):
        raise DoesNotFollow("changed")
    if record.prev != tip.head.link:
        raise DoesNotFollow("link")
    return record, _behind(record, line, key, sealing_key)


def _key_of(record: Record, tip: Tip, sealing: SealingKeys) -> tuple[bytes, str | None]:
    if record.sealing_key is None:
        if record.epoch != tip.epoch:
            raise DoesNotFollow("epoch")
        return tip.key, tip.sealing_key
    if record.epoch <= tip.epoch:
        raise DoesNotFollow("epoch")
    sealing_key = sealing.find(record.sealing_key)
    if sealing_key is None:
        raise DoesNotFollow("sealing_key")
    return epoch_key(sealing_key, record.epoch, record.workspace), record.sealing_key


def _behind(record: Record, line: bytes, key: bytes, sealing_key: str | None) -> Tip:
    return Tip(head=Head(record.seq, link_of(line)), epoch=record.epoch, sealing_key=sealing_key, key=evolve(key))


def _mac(key: bytes, content: bytes) -> str:
    return _base64url(hmac.digest(key, content, "sha256"))


def _base64url(octets: bytes) -> str:
    return urlsafe_b64encode(octets).rstrip(b"=").decode("ascii")
