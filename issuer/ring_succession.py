"""
Whether a ring that was read may take the place of the one in use. Nothing here does I/O.
"""

from keys import STATES, KeyRing, KeysError

from .ring_view import AdoptedRing

__all__ = ["RingReplaced", "is_successor"]


class RingReplaced(KeysError):
    """
    Raised when the stored ring does not follow the one in use.

    It is older, another one of the same revision, or of a later revision but with a key in an earlier state than it had reached.
    Whoever restored a backup might bring a revoked key back, so a running service does not follow; a restart does.
    """

    code = "ring_replaced"

    def __init__(self, workspace: str, *, found: int, in_use: int) -> None:
        """
        Name the revisions.
        """
        super().__init__(
            f"Workspace {workspace!r}: the stored ring (revision {found}) does not follow the one in use (revision {in_use}). "
            "Restart the service if it was replaced on purpose."
        )


def is_successor(ring: KeyRing, revision: int, present: AdoptedRing | None) -> bool:
    """
    Tell whether what was read takes the place of what is in use; False when the two are the same.
    """
    if present is None:
        return True
    if revision == present.revision and ring == present.ring:
        return False
    if revision <= present.revision or _brings_back(ring, present.ring):
        raise RingReplaced(ring.workspace, found=revision, in_use=present.revision)
    return True


def _brings_back(ring: KeyRing, earlier: KeyRing) -> bool:
    # A key's states follow each other; what was changed from an older copy has passed the revision, but not those.
    reached = {record.kid: STATES.index(record.state) for record in earlier.records}
    return any(STATES.index(record.state) < reached.get(record.kid, 0) for record in ring.records)
