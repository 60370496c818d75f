"""
What somebody who looks at the keys of a workspace should know, although it does not stand on a key. Pure.
"""

from collections.abc import Iterator

from keys import KeyRing, KeyTimes, utc

from .registry import Workspace

__all__ = ["key_notices"]


def key_notices(workspace: Workspace, ring: KeyRing, times: KeyTimes, now: int) -> Iterator[str]:
    """
    Give a sentence for each key that the configuration revokes and the ring does not, and each audience that is odd (D6).

    Also where the cache times of the key set are not only those of the configuration, *times*.
    """
    alive = {record.kid for record in ring.records if record.state != "revoked"}
    for kid in sorted(workspace.revoked_kids & alive):
        yield f"Key {kid} is revoked in the configuration here: it is neither published nor used, whatever its state says."
    for connection in workspace.connections:
        for audience in connection.audiences:
            if audience.endswith("/"):
                yield f"The audience {audience} ends in a slash; without it, it is another audience."
    yield from _cache_notices(ring, times, now)


def _cache_notices(ring: KeyRing, times: KeyTimes, now: int) -> Iterator[str]:
    cached = ring.cache_times
    if not cached.agree_with(times):
        yield (
            f"The key set may be cached for {cached.max_age_s} s and {cached.stale_if_error_s} s on errors, which is not what is "
            f"configured here ({times.max_age_s} s and {times.stale_if_error_s} s): what counts is set when an instance starts."
        )
    until = cached.in_use_until(times, at=now)
    if until > now:
        yield f"Key sets with other cache times may be in use until {utc(until)}; until then revocations count with them."
