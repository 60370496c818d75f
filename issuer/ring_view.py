"""
What a key ring says at an instant: who signs, which bytes are published, and until when that holds. Nothing here does I/O.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from keys import CacheTimes, KeyRecord, KeyRing, LocalSigner, SelfTestFailed, Signer, State
from verifier.es256 import signature_is_valid
from verifier.jwk import UnusableKeySet, parse_key_set

from .audit import Head, TrailDamaged, head_of
from .document import Document
from .suspensions import Suspensions, read_suspensions

__all__ = ["AdoptedRing", "RingStatus", "RingView", "self_test"]

_SELF_TEST: Final = b"customer-context:ring-self-test"


@dataclass(frozen=True, slots=True, kw_only=True)
class RingView:
    """
    What a ring says between two instants: who signs, the key set as it is served, and for whom nothing is signed.

    The key set is served with `cache_times` at most: the ring counts with no more. The view holds from `valid_from` until just
    before `valid_until`, in epoch seconds: a retiring key leaves the key set without a write.
    """

    kid: str
    signer: Signer
    jwks: Document
    cache_times: CacheTimes
    suspensions: Suspensions
    revision: int
    valid_from: float
    valid_until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RingStatus:
    """
    What operations may know about a ring: no key material and no key ids.

    `view_age_s` is how long ago the store confirmed it, `next_due` the epoch second at which the active key should be replaced,
    `alarm` whether it has signed for far too long, `keys` how many there are in each state, `failures` how many looks failed,
    `problem` why the last one did, if it did, or why the ring cannot be used, `rotation_problem` why a rotation that is due does
    not happen.
    """

    workspace: str
    usable: bool
    view_age_s: float
    active_age_s: int
    next_due: int
    overdue: bool
    keys: Mapping[str, int]
    failures: int
    problem: str | None
    alarm: bool = False
    rotation_problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedRing:
    """
    A ring that is in use, with the signer that is made once for it, and what it says about suspensions.

    `revoked` are keys that neither sign nor are published whatever the ring says: while the active one is among them, the first
    standby that is not signs in its place, the same one at every instance. There is no signer when there is no such standby.

    Raises:
        SuspensionsUnreadable: when that cannot be read; such a ring is not used.
    """

    ring: KeyRing = field(repr=False)
    revision: int
    signer: Signer | None
    revoked: frozenset[str] = frozenset()
    suspensions: Suspensions = field(init=False, repr=False)

    @classmethod
    def of(cls, ring: KeyRing, revision: int, revoked: frozenset[str]) -> Self:
        """
        Take a ring into use.
        """
        signing = [record for record in (ring.active, *ring.standbys) if record.kid not in revoked]
        signer = LocalSigner(signing[0].signing_key()) if signing else None
        return cls(ring=ring, revision=revision, signer=signer, revoked=revoked)

    def __post_init__(self) -> None:
        object.__setattr__(self, "suspensions", read_suspensions(self.ring))

    @property
    def head(self) -> Head | None:
        """
        The end of the audit trail as the ring has it, None when it says nothing about it that can be read.
        """
        try:
            return head_of(self.ring)
        except TrailDamaged:
            return None

    def view(self, now: float) -> RingView | None:
        """
        Encode the key set at *now* and find out how long it holds; None when no key may sign.
        """
        if self.signer is None:
            return None
        published = (record for record in self.ring.published(int(now)) if record.kid not in self.revoked)
        body = json.dumps({"keys": [dict(record.public_jwk) for record in published]}, separators=(",", ":")).encode()
        leaving = [record.gone_at for record in self.ring.retiring]
        return RingView(
            kid=self.signer.kid,
            signer=self.signer,
            jwks=Document.of(body),
            cache_times=self.ring.cache_times,
            suspensions=self.suspensions,
            revision=self.revision,
            valid_from=max((instant for instant in leaving if instant <= now), default=-math.inf),
            valid_until=min((instant for instant in leaving if instant > now), default=math.inf),
        )

    def by_state(self, now: int) -> Mapping[str, int]:
        """
        Count the keys in each state.

        A retiring key whose instant has passed counts as retired, though the ring says so only with its next write.
        """
        return Counter(self._state(record, now) for record in self.ring.records)

    def _state(self, record: KeyRecord, now: int) -> State:
        if record.kid in self.revoked:
            return "revoked"
        return "retired" if record.state == "retiring" and not record.is_published(now) else record.state


async def self_test(view: RingView) -> None:
    """
    Sign, and verify with the key that a partner would take from the very bytes that are going to be served.
    """
    try:
        key = parse_key_set(view.jwks.body).get(view.kid)
    except UnusableKeySet:
        key = None
    if key is None:
        raise SelfTestFailed(kid=view.kid, problem="partners would not find it in the key set")
    if not signature_is_valid(key, _SELF_TEST, await view.signer.sign(_SELF_TEST)):
        raise SelfTestFailed(kid=view.kid, problem="it does not sign for its published part")
