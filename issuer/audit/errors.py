"""
What can go wrong with the audit trail.

    AuditError                   base, never raised itself
    ├── TrailUnavailable         the trail cannot be read or written at the moment
    ├── TrailDamaged             the trail is not the one that the key ring was sealed with
    ├── RingOlderThanTrail       the key ring is older than what the trail has on record
    ├── LedgerBusy               so many others change the ring that this change found no turn
    └── PlaceTaken               another writer was first; a ledger starts again and lets nobody else see it

They are errors of keys too: whoever shows those to a person shows these. Messages hold no record and no key.
"""

from typing import Final, Literal

from keys import KeysError

__all__ = ["AuditError", "Damage", "LedgerBusy", "PlaceTaken", "RingOlderThanTrail", "TrailDamaged", "TrailUnavailable"]

Damage = Literal[
    "malformed", "workspace", "missing", "out_of_order", "changed", "link", "epoch", "sealing_key", "cut", "state"
]
"""How a record, or the end of a trail, is not what it should be."""

_DAMAGE: Final[dict[Damage, str]] = {
    "malformed": "is no record",
    "workspace": "belongs to another workspace",
    "missing": "is missing",
    "out_of_order": "stands where another one should",
    "changed": "was changed or was not written by this service",
    "link": "does not follow the one before it",
    "epoch": "claims a chain of keys that it cannot belong to",
    "sealing_key": "needs a sealing key that is not configured",
    "cut": "is missing, with everything after it",
    "state": "cannot be looked for: what the key ring says about the trail cannot be read",
}


class AuditError(KeysError):
    """
    Base of every error of the trail; never raised itself.
    """

    code = "audit"


class TrailUnavailable(AuditError):
    """
    Raised when the trail cannot be read or written at the moment; nothing was changed that needs a record.
    """

    code = "trail_unavailable"

    def __init__(self, *, where: str, problem: str) -> None:
        """
        Name the trail, and what went wrong in words without contents.
        """
        super().__init__(f"The audit trail {where} is not available, and nothing was changed: {problem.rstrip('.')}.")
        self.where = where
        self.problem = problem


class TrailDamaged(AuditError):
    """
    Raised when the trail does not end as the sealed key ring says; nothing is written behind such an end.
    """

    code = "trail_damaged"

    def __init__(self, *, workspace: str, seq: int, problem: Damage) -> None:
        """
        Name the record that is not what it should be.
        """
        super().__init__(
            f"Workspace {workspace!r}: record {seq} of the audit trail {_DAMAGE[problem]}. Find out who touched it, "
            "then restart the trail with a reason; until then only revocations go on."
        )
        self.workspace = workspace
        self.seq = seq
        self.problem = problem


class RingOlderThanTrail(AuditError):
    """
    Raised when the trail has a change on record that the key ring does not have: an older ring was put in its place.
    """

    code = "ring_older_than_trail"

    def __init__(self, *, workspace: str, revision: int, recorded: int) -> None:
        """
        Name the revision that was found and the latest one that is on record.
        """
        super().__init__(
            f"Workspace {workspace!r}: the key ring is at revision {revision}, but the audit trail has revision {recorded} on "
            "record. Restore the newer ring; if this one is wanted, say why with `keys restore --accept-older`, or, when it is "
            "in place, with `audit restart`."
        )
        self.workspace = workspace
        self.revision = revision
        self.recorded = recorded


class LedgerBusy(AuditError):
    """
    Raised when a change was overtaken by others again and again.
    """

    code = "ledger_busy"

    def __init__(self, *, workspace: str) -> None:
        """
        Name the workspace.
        """
        super().__init__(f"Workspace {workspace!r}: the key ring is being changed by many at once. Try again.")
        self.workspace = workspace


class PlaceTaken(AuditError):
    """
    Raised by a trail when a record with that number, or a later one, is there already.
    """

    code = "place_taken"

    def __init__(self, seq: int) -> None:
        """
        Name the number.
        """
        super().__init__(f"The audit trail has a record {seq} already.")
        self.seq = seq
