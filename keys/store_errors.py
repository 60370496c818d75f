"""
What can go wrong with a stored ring and the keys that seal it; the tree stands in `errors`.

Whatever is raised here, the stored ring was left as it is; `FileUnwritable` and `StoreUnreachable` say so in their `outcome`.
"""

from pathlib import Path
from typing import Literal

from .errors import KeysError

__all__ = [
    "CorruptionProblem",
    "FileUnreadable",
    "FileUnwritable",
    "LoosePermissions",
    "RevisionConflict",
    "RingCorrupt",
    "RingMissing",
    "RingOfAnotherWorkspace",
    "RingRolledBack",
    "SealingKeyError",
    "SealingKeyFileInvalid",
    "SealingKeyUnknown",
    "SealingKeyWrong",
    "StoreBusy",
    "StoreError",
    "StoreUnreachable",
]

CorruptionProblem = Literal["empty", "too_large", "not_sealed", "truncated", "damaged", "content"]


class SealingKeyError(KeysError):
    """
    Base of the errors about sealing keys; never raised itself. Nothing that is stored was touched.
    """

    code = "sealing_key"


class SealingKeyFileInvalid(SealingKeyError):
    """
    Raised when a sealing key file is missing or does not hold 32 octets as 43 characters of base64url.
    """

    code = "sealing_key_file_invalid"

    def __init__(self, *, path: Path, problem: Literal["missing", "empty", "length", "alphabet", "exists"]) -> None:
        super().__init__(
            f"Sealing key file {path}: {_SEALING_FILE_PROBLEMS[problem]}. "
            "A sealing key is 32 random octets, written as 43 characters of base64url."
        )
        self.path = path
        self.problem = problem


class SealingKeyUnknown(SealingKeyError):
    """
    Raised when the ring was sealed under a sealing key id that is not configured.
    """

    code = "sealing_key_unknown"

    def __init__(self, *, where: str, needed: str, configured: tuple[str, ...]) -> None:
        super().__init__(
            f"{where} was sealed with the sealing key {needed!r}; configured are {', '.join(configured)}. "
            f"Add {needed!r} to `sealing_keys`; nothing was changed."
        )
        self.where = where
        self.needed = needed
        self.configured = configured


class SealingKeyWrong(SealingKeyError):
    """
    Raised when the configured sealing key of the right id is not the one that the ring was sealed with.
    """

    code = "sealing_key_wrong"

    def __init__(self, *, where: str, needed: str) -> None:
        super().__init__(
            f"{where} was sealed with another sealing key than the one configured as {needed!r}. "
            f"Restore the right file for {needed!r} in `sealing_keys`; nothing was changed."
        )
        self.where = where
        self.needed = needed


class StoreError(KeysError):
    """
    Base of the errors of loading and saving a ring; never raised itself.
    """

    code = "store"


class RingMissing(StoreError):
    """
    Raised when there is no ring; only `customer-context init` and `customer-context keys init` create one.
    """

    code = "ring_missing"

    def __init__(self, *, where: str, workspace: str) -> None:
        super().__init__(
            f"{where}: workspace {workspace!r} has no ring. If it never had one, create it with `customer-context keys init`; "
            "if it had, mount its volume, restore it from a backup, or bring it with `customer-context keys copy`."
        )
        self.where = where
        self.workspace = workspace


class RingCorrupt(StoreError):
    """
    Raised when what is stored is not a whole, untouched ring; it is left as it is.
    """

    code = "ring_corrupt"

    def __init__(self, *, where: str, problem: CorruptionProblem, detail: str | None = None) -> None:
        said = _CORRUPTION_PROBLEMS[problem] + (f" ({detail})" if detail else "")
        super().__init__(f"{where} {said}. It is left as it is: restore it from a backup.")
        self.where = where
        self.problem = problem
        self.detail = detail


class RingOfAnotherWorkspace(StoreError):
    """
    Raised when the stored ring belongs to another workspace.
    """

    code = "ring_of_another_workspace"

    def __init__(self, *, where: str, expected: str, found: str) -> None:
        super().__init__(
            f"{where} holds the ring of workspace {found!r}, not of {expected!r}. Put each ring back in its own place."
        )
        self.where = where
        self.expected = expected
        self.found = found


class RingRolledBack(StoreError):
    """
    Raised when the stored ring is older than one that was there before: a copy was put in its place.
    """

    code = "ring_rolled_back"

    def __init__(self, *, where: str, found: int, seen: int) -> None:
        super().__init__(
            f"{where} is at revision {found}, but revision {seen} was there before. Restore the newer one; "
            "if the older one is wanted, restart the service."
        )
        self.where = where
        self.found = found
        self.seen = seen


class RevisionConflict(StoreError):
    """
    Raised when the stored ring is at another revision than the one the change was made from.
    """

    code = "revision_conflict"

    def __init__(self, *, where: str, expected: int, found: int) -> None:
        super().__init__(
            f"{where} is at revision {found}, not {expected}: it was changed in between. Load it again and decide anew."
            if expected
            else f"{where} already holds a ring, at revision {found}; it is not replaced."
        )
        self.where = where
        self.expected = expected
        self.found = found


class LoosePermissions(StoreError):
    """
    Raised when group or others have any permission on a file that must be private.
    """

    code = "loose_permissions"

    def __init__(self, *, path: Path, mode: int) -> None:
        super().__init__(f"{path} has mode {mode:04o}: others may have seen it. Find out who, then `chmod 600` it.")
        self.path = path
        self.mode = mode


class FileUnreadable(StoreError):
    """
    Raised when a file is there but cannot be read.
    """

    code = "file_unreadable"

    def __init__(self, *, path: Path, problem: str) -> None:
        super().__init__(f"{path} cannot be read: {problem}. It must be a regular file that the service's user owns.")
        self.path = path
        self.problem = problem


class FileUnwritable(StoreError):
    """
    Raised when a file cannot be written.

    `outcome` is `unchanged` when the earlier content is certainly in place, and `unknown` when the new content is in place
    but may not survive a loss of power: load again to see.
    """

    code = "file_unwritable"

    def __init__(self, *, path: Path, problem: str, outcome: Literal["unchanged", "unknown"]) -> None:
        after = (
            "The earlier content is untouched"
            if outcome == "unchanged"
            else "Load it again to see which content it has"
        )
        super().__init__(
            f"{path} cannot be written: {problem}. {after}; see to the disk and the folder, then try again."
        )
        self.path = path
        self.problem = problem
        self.outcome = outcome


class StoreBusy(StoreError):
    """
    Raised when another process keeps the store locked for longer than a save takes.
    """

    code = "store_busy"

    def __init__(self, *, path: Path, waited_s: float) -> None:
        super().__init__(
            f"{path} was locked by another process for {waited_s:g} s. Look for one that hangs, then try again."
        )
        self.path = path
        self.waited_s = waited_s


class StoreUnreachable(StoreError):
    """
    Raised when a store across the network does not answer in time, or answers with something else.

    `outcome` is `unchanged` when the stored ring is certainly as it was, and `unknown` when a save may have been carried out, or
    may yet be: load again to see.
    """

    code = "store_unreachable"

    def __init__(self, *, where: str, problem: str, outcome: Literal["unchanged", "unknown"]) -> None:
        after = "Nothing was changed" if outcome == "unchanged" else "Load again to see whether the ring was saved"
        super().__init__(f"{where}: {problem}. {after}; see to the store and the network, then try again.")
        self.where = where
        self.problem = problem
        self.outcome = outcome


_SEALING_FILE_PROBLEMS = {
    "missing": "it does not exist",
    "empty": "it is empty",
    "length": "it has another length",
    "alphabet": "it has other characters",
    "exists": "it exists already and is not replaced",
}

_CORRUPTION_PROBLEMS: dict[CorruptionProblem, str] = {
    "empty": "is empty",
    "too_large": "is too large for a ring",
    "not_sealed": "is not a sealed ring",
    "truncated": "is cut off",
    "damaged": "was changed after it was sealed",
    "content": "was sealed with content that is not a valid ring",
}
