"""
The audit trail: who did what to the keys of a workspace, in records that cannot be changed, dropped or cut off unnoticed.
"""

from .chain import Head
from .customers import customer_hash
from .errors import AuditError, Damage, LedgerBusy, RingOlderThanTrail, TrailDamaged, TrailUnavailable
from .findings import Finding, Findings, Problem
from .line_file import LineFile
from .record import Actor, ActorKind, Entry, Event, Malformed, Outcome, Record
from .refused import Attempts
from .sealed_state import COMPANION_ROOM, head_of
from .spill import Spill
from .trail import Trail, TrailEnd, copy_trail
from .trail_file import FileTrail
from .trail_redis import RedisTrail, StreamClient
from .verify import TrailVerification, verify_trail

__all__ = [
    "COMPANION_ROOM",
    "Actor",
    "ActorKind",
    "Attempts",
    "AuditError",
    "Damage",
    "Entry",
    "Event",
    "FileTrail",
    "Finding",
    "Findings",
    "Head",
    "LedgerBusy",
    "LineFile",
    "Malformed",
    "Outcome",
    "Problem",
    "Record",
    "RedisTrail",
    "RingOlderThanTrail",
    "Spill",
    "StreamClient",
    "Trail",
    "TrailDamaged",
    "TrailEnd",
    "TrailUnavailable",
    "TrailVerification",
    "copy_trail",
    "customer_hash",
    "head_of",
    "verify_trail",
]
