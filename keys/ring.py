"""
The keys of one workspace as one frozen value: which one signs, which are published, which wait.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .cache_times import CacheTimes
from .companion import freeze_companion
from .errors import UnknownKey
from .key import check_pair
from .record import KeyRecord, State
from .signer import LocalSigner

__all__ = ["MAX_RECORDS", "MAX_RETIRING", "STANDBYS", "KeyRing", "check_workspace"]

STANDBYS: Final = 2
"""How many standbys a ring always has, so that a rotation and an emergency after it are each one step."""

MAX_RETIRING: Final = 16
"""How many keys may be retiring at once; it keeps the key set far below what verifiers read."""

MAX_RECORDS: Final = 128

_WORKSPACE: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


@dataclass(frozen=True, slots=True)
class KeyRing:
    """
    All keys of one workspace, in every state.

    Guarantees: exactly one active key, exactly two standbys, at most `MAX_RETIRING` retiring ones, no kid twice.

    `companion` is a JSON object that is sealed and saved with the keys and says nothing about them; every step keeps it.
    `cache_times` are what the key set may be served with at most.

    Raises:
        TypeError, ValueError: when this would not hold, the workspace name is not one (D3), or the companion is refused by
            `freeze_companion`.
    """

    workspace: str
    records: tuple[KeyRecord, ...]
    companion: Mapping[str, Any] = field(default_factory=dict, repr=False)
    cache_times: CacheTimes = field(default_factory=CacheTimes)

    def __post_init__(self) -> None:
        check_workspace(self.workspace)
        object.__setattr__(self, "companion", freeze_companion(self.companion))
        if len(self.records) > MAX_RECORDS:
            raise ValueError("a ring holds too many records")
        if len({record.kid for record in self.records}) != len(self.records):
            raise ValueError("a kid occurs twice in a ring")
        if len(self._in_state("active")) != 1 or len(self.standbys) != STANDBYS:
            raise ValueError("a ring has exactly one active key and two standbys")
        if len(self.retiring) > MAX_RETIRING:
            raise ValueError("a ring has too many retiring keys")

    @property
    def active(self) -> KeyRecord:
        """
        The key that signs.
        """
        return self._in_state("active")[0]

    @property
    def standbys(self) -> tuple[KeyRecord, ...]:
        """
        The keys that wait, the one that may sign first in front; of those that mature together, the one first in the ring.
        """
        return tuple(sorted(self._in_state("standby"), key=lambda key: (key.mature_at, key.created_at)))

    @property
    def retiring(self) -> tuple[KeyRecord, ...]:
        """
        The keys that signed and whose tokens may be alive; those whose time has passed count until `settle` moves them on.
        """
        return self._in_state("retiring")

    @property
    def next_rotation_at(self) -> int:
        """
        The instant from which on a planned rotation is possible.
        """
        return self.standbys[0].mature_at

    @property
    def latest_instant(self) -> int:
        """
        The latest instant at which something was done to a key of this ring.
        """
        return max(
            instant
            for record in self.records
            for instant in (record.published_at, record.activated_at, record.deactivated_at, record.revoked_at)
            if instant is not None
        )

    def record(self, kid: str) -> KeyRecord:
        """
        Return the record of that kid, in whatever state.

        Raises:
            UnknownKey: when there is none.
        """
        for record in self.records:
            if record.kid == kid:
                return record
        raise UnknownKey(kid=kid)

    def published(self, now: int) -> tuple[KeyRecord, ...]:
        """
        Return the keys of the key set at *now*: active, standbys, retiring ones until their instant. No write is needed.
        """
        return (self.active, *self.standbys, *(record for record in self.retiring if record.is_published(now)))

    def jwks(self, now: int) -> dict[str, list[dict[str, str]]]:
        """
        Return the JWK Set at *now* (RFC 7517 section 5), built from the public members alone.
        """
        return {"keys": [dict(record.public_jwk) for record in self.published(now)]}

    def signer(self) -> LocalSigner:
        """
        Make the signer of the active key; keep it as long as the ring.

        Raises:
            InvalidKey: when the private part is not a usable key; a ring that was loaded from a store passed its self-test.
        """
        return LocalSigner(self.active.signing_key())

    def self_test(self) -> None:
        """
        Test every key that signs, waits or is published: its kid is its thumbprint, a private part signs for the published one.

        Keys that have ended are not tested: nothing of them is ever used again.

        Raises:
            SelfTestFailed: for the first key of which this does not hold.
        """
        for record in (self.active, *self.standbys, *self.retiring):
            check_pair(record.public_jwk, record.private_jwk, kid=record.kid, alg=record.alg)

    def _in_state(self, state: State) -> tuple[KeyRecord, ...]:
        return tuple(record for record in self.records if record.state == state)


def check_workspace(name: str) -> str:
    """
    Return *name* when it is a workspace name (D3).

    Raises:
        ValueError: when it is not.
    """
    if not _WORKSPACE.fullmatch(name):
        raise ValueError("a workspace name is 1 to 63 of a-z, 0-9 and -, not beginning with -")
    return name
