"""
The signing keys of a workspace: made, published, rotated, revoked, and sealed at rest.

    ring = create_ring("acme", now=now, times=KeyTimes())
    store = FileKeyStore(Path("rings/acme.jwe"), "acme", SealingKeys(read_sealing_key("2026-11", path)))
    await store.save(ring, expect=0)

    ring, revision = await store.load()
    rotation = rotate(ring, now=now, times=KeyTimes(), expected_active=ring.active.kid)
    await store.save(rotation.ring, expect=revision)

This package knows nothing of HTTP, of tokens or of configuration. The key policy stands in `README.md` beside it.
"""

from .cache_times import CacheTimes
from .companion import MAX_COMPANION_OCTETS
from .errors import (
    ActiveKeyMismatch,
    ClockBehind,
    IllegalTransition,
    InvalidKey,
    KeysError,
    ReasonRequired,
    SelfTestFailed,
    StandbyNotMature,
    TooManyRetiring,
    TransitionRefused,
    UnknownKey,
)
from .es256 import DETERMINISTIC_SIGNATURES
from .inventory import inventory
from .key import PrivateJWK, SigningKey, check_pair, generate_key, import_private_jwk, thumbprint
from .lifecycle import MAX_HISTORY, Generate, change_cache_times, create_ring, revoke, revoke_all, rotate, settle
from .outcome import FullRevocation, Revocation, Rotation
from .record import MAX_REASON_LENGTH, STATES, KeyRecord, State
from .ring import MAX_RETIRING, STANDBYS, KeyRing
from .schedule import ALARM_S, Due, Planned, PlannedStep, alarm, due, plan
from .sealing import open_ring, seal_ring
from .sealing_key import (
    MAX_SEALING_KEYS,
    SealingKey,
    SealingKeys,
    generate_sealing_key,
    read_sealing_key,
    write_sealing_key,
)
from .signer import LocalSigner, Signer
from .store import KeyStore, SealedStore
from .store_errors import (
    FileUnreadable,
    FileUnwritable,
    LoosePermissions,
    RevisionConflict,
    RingCorrupt,
    RingMissing,
    RingOfAnotherWorkspace,
    RingRolledBack,
    SealingKeyError,
    SealingKeyFileInvalid,
    SealingKeyUnknown,
    SealingKeyWrong,
    StoreBusy,
    StoreError,
    StoreUnreachable,
)
from .store_file import FileKeyStore
from .timing import KeyTimes, utc
from .transfer import check_import, export_blob, import_blob, reseal, sealed_with
from .transfer_errors import NameTaken, RingOlder, RingUnrelated

__all__ = [
    "ALARM_S",
    "DETERMINISTIC_SIGNATURES",
    "MAX_COMPANION_OCTETS",
    "MAX_HISTORY",
    "MAX_REASON_LENGTH",
    "MAX_RETIRING",
    "MAX_SEALING_KEYS",
    "STANDBYS",
    "STATES",
    "ActiveKeyMismatch",
    "CacheTimes",
    "ClockBehind",
    "Due",
    "FileKeyStore",
    "FileUnreadable",
    "FileUnwritable",
    "FullRevocation",
    "Generate",
    "IllegalTransition",
    "InvalidKey",
    "KeyRecord",
    "KeyRing",
    "KeyStore",
    "KeyTimes",
    "KeysError",
    "LocalSigner",
    "LoosePermissions",
    "NameTaken",
    "Planned",
    "PlannedStep",
    "PrivateJWK",
    "ReasonRequired",
    "RevisionConflict",
    "Revocation",
    "RingCorrupt",
    "RingMissing",
    "RingOfAnotherWorkspace",
    "RingOlder",
    "RingRolledBack",
    "RingUnrelated",
    "Rotation",
    "SealedStore",
    "SealingKey",
    "SealingKeyError",
    "SealingKeyFileInvalid",
    "SealingKeyUnknown",
    "SealingKeyWrong",
    "SealingKeys",
    "SelfTestFailed",
    "Signer",
    "SigningKey",
    "StandbyNotMature",
    "State",
    "StoreBusy",
    "StoreError",
    "StoreUnreachable",
    "TooManyRetiring",
    "TransitionRefused",
    "UnknownKey",
    "alarm",
    "change_cache_times",
    "check_import",
    "check_pair",
    "create_ring",
    "due",
    "export_blob",
    "generate_key",
    "generate_sealing_key",
    "import_blob",
    "import_private_jwk",
    "inventory",
    "open_ring",
    "plan",
    "read_sealing_key",
    "reseal",
    "revoke",
    "revoke_all",
    "rotate",
    "seal_ring",
    "sealed_with",
    "settle",
    "thumbprint",
    "utc",
    "write_sealing_key",
]
