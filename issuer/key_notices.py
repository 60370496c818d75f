"""
What somebody who looks at the keys of a workspace should know, although it does not stand on a key. Pure.
"""

from collections.abc import Iterator

from keys import KeyRing

from .registry import Workspace

__all__ = ["key_notices"]


def key_notices(workspace: Workspace, ring: KeyRing) -> Iterator[str]:
    """
    Give a sentence for each key that the configuration revokes and the ring does not, and each audience that is odd (D6).
    """
    alive = {record.kid for record in ring.records if record.state != "revoked"}
    for kid in sorted(workspace.revoked_kids & alive):
        yield f"Key {kid} is revoked in the configuration here: it is neither published nor used, whatever its state says."
    for connection in workspace.connections:
        for audience in connection.audiences:
            if audience.endswith("/"):
                yield f"The audience {audience} ends in a slash; without it, it is another audience."
