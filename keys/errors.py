"""
Everything that can go wrong with keys.

    KeysError                       base, never raised itself
    ├── InvalidKey                  a JWK is not a usable key
    ├── SelfTestFailed              a key does not sign for the public half it is published with
    ├── TransitionRefused           base: a rotation or revocation is not possible; the ring is as it was
    │   ├── ActiveKeyMismatch       another key is active than the caller expects
    │   ├── StandbyNotMature        no standby has been published long enough
    │   ├── TooManyRetiring         too many keys wait for their last token to expire
    │   ├── ReasonRequired          a forced rotation or a revocation comes without a usable reason
    │   ├── UnknownKey              the ring holds no key with that kid
    │   ├── IllegalTransition       the key is in a state that the step does not start from
    │   └── ClockBehind             the clock is behind what the ring has recorded
    ├── SealingKeyError             base: the ring cannot be opened with the sealing keys at hand
    │   ├── SealingKeyFileInvalid   a sealing key file holds no sealing key
    │   ├── SealingKeyUnknown       the ring was sealed under an id that is not configured
    │   └── SealingKeyWrong         the configured key of that id is another one than the ring was sealed with
    └── StoreError                  base: the ring cannot be loaded or saved
        ├── RingMissing             there is no ring
        ├── RingCorrupt             what is stored is not a whole, untouched ring
        ├── RingOfAnotherWorkspace  the stored ring belongs to another workspace
        ├── RingRolledBack          the stored ring is older than one that was there before
        ├── RevisionConflict        somebody else saved in between
        ├── NameTaken               what a ring is to be set aside as exists
        ├── RingOlder               a ring to be put in place is older than what is known
        ├── RingUnrelated           a ring to be put in place is not what the stored one has become
        ├── LoosePermissions        others may read or write a file that must be private
        ├── FileUnreadable          a file cannot be read
        ├── FileUnwritable          a file cannot be written
        ├── StoreBusy               another process keeps the store locked
        └── StoreUnreachable        a store across the network does not answer as it should

The sealing key and store errors are defined in `store_errors`, those of moving rings in `transfer_errors`. Each class has a
stable `code`. Messages say what to do next and never hold key material or file contents.
"""

from typing import ClassVar

from .timing import utc

__all__ = [
    "ActiveKeyMismatch",
    "ClockBehind",
    "IllegalTransition",
    "InvalidKey",
    "KeysError",
    "ReasonRequired",
    "SelfTestFailed",
    "StandbyNotMature",
    "TooManyRetiring",
    "TransitionRefused",
    "UnknownKey",
]


class KeysError(Exception):
    """
    Base of every error of this package; never raised itself.
    """

    code: ClassVar[str] = "keys"


class InvalidKey(KeysError):
    """
    Raised when a JWK is not a usable key; the message names the problem and none of the values.
    """

    code = "invalid_key"


class SelfTestFailed(KeysError):
    """
    Raised when a key does not sign for the public half it is published with, or its kid is not its thumbprint.
    """

    code = "self_test_failed"

    def __init__(self, *, kid: str, problem: str) -> None:
        super().__init__(
            f"Key {kid} failed its self-test: {problem}. Restore the ring from a backup or revoke the key."
        )
        self.kid = kid
        self.problem = problem


class TransitionRefused(KeysError):
    """
    Base of the refusals of a rotation or revocation; never raised itself. The ring is as it was.
    """

    code = "transition_refused"


class ActiveKeyMismatch(TransitionRefused):
    """
    Raised when another key is active than the caller expects: somebody rotated in between.
    """

    code = "active_key_mismatch"

    def __init__(self, *, active: str) -> None:
        super().__init__(f"The active key is {active}. List the keys again and decide whether to rotate that one.")
        self.active = active


class StandbyNotMature(TransitionRefused):
    """
    Raised when no standby has been published long enough for every verifier to know it.
    """

    code = "standby_not_mature"

    def __init__(self, *, kid: str, earliest: int) -> None:
        super().__init__(f"Standby {kid} may sign from {utc(earliest)} on. Rotate then, or force it with a reason.")
        self.kid = kid
        self.earliest = earliest


class TooManyRetiring(TransitionRefused):
    """
    Raised when so many keys wait for their last token to expire that one more would bloat the key set.
    """

    code = "too_many_retiring"

    def __init__(self, *, earliest: int) -> None:
        super().__init__(f"Too many keys are retiring. Rotate again from {utc(earliest)} on, or revoke the active key.")
        self.earliest = earliest


class ReasonRequired(TransitionRefused):
    """
    Raised when a forced rotation or a revocation comes without a reason of 1 to 500 printable characters.
    """

    code = "reason_required"

    def __init__(self) -> None:
        super().__init__("Give a reason of 1 to 500 printable characters; it is kept on the key.")


class UnknownKey(TransitionRefused):
    """
    Raised when the ring holds no key with that kid.
    """

    code = "unknown_key"

    def __init__(self, *, kid: str) -> None:
        super().__init__("The ring holds no key with that kid. List the keys to see those it has.")
        self.kid = kid


class IllegalTransition(TransitionRefused):
    """
    Raised when the key is in a state that the step does not start from, a retired one to be revoked, say.
    """

    code = "illegal_transition"

    def __init__(self, *, kid: str, state: str, unpublished_at: int) -> None:
        super().__init__(
            f"Key {kid} is {state} and left the key set at {utc(unpublished_at)}: there is nothing left to do."
        )
        self.kid = kid
        self.state = state
        self.unpublished_at = unpublished_at


class ClockBehind(TransitionRefused):
    """
    Raised when the clock is further behind what the ring has recorded than clocks may differ.
    """

    code = "clock_behind"

    def __init__(self, *, now: int, recorded: int) -> None:
        super().__init__(
            f"The clock says {utc(now)}, but the ring was changed at {utc(recorded)}. "
            "Set the clock right, or force the rotation with a reason."
        )
        self.now = now
        self.recorded = recorded
