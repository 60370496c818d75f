"""
Sealed rings moved as they are: backed up, restored, copied between stores; and rings sealed anew under the first sealing key.
"""

from typing import Final

from .record import STATES
from .ring import KeyRing
from .sealing import blob_sealing_key, open_ring
from .store import SealedStore
from .store_errors import RevisionConflict, RingMissing
from .transfer_errors import RingOlder, RingUnrelated

__all__ = ["check_import", "export_blob", "import_blob", "reseal", "sealed_with"]

_MAX_ATTEMPTS: Final = 10


async def export_blob(store: SealedStore) -> bytes:
    """
    Return the sealed ring as it is stored, after it has opened: a backup that is useless without its sealing key.

    Raises:
        StoreError, SealingKeyError, SelfTestFailed: as `KeyStore.load` does.
    """
    blob = await store.read_blob()
    _opened(store, blob, where=store.where)
    return blob


async def import_blob(store: SealedStore, blob: bytes, *, refuse_older_than: int = 0) -> bool:
    """
    Put a sealed ring in place as it is, revision and all; False when it stands there already.

    It must open with the sealing keys of the store, be no older than the stored ring and than *refuse_older_than* (what the audit
    trail knows of), and be what the stored ring has become. What is stored and does not open is never replaced.

    Raises:
        RingOlder, RingUnrelated: nothing was changed.
        RevisionConflict: when somebody else saved in between.
        StoreError, SealingKeyError, SelfTestFailed: when either ring does not open, or the store cannot be written.
    """
    expect = await check_import(store, blob, refuse_older_than=refuse_older_than)
    if expect is None:
        return False
    await store.write_blob(blob, expect=expect)
    return True


async def check_import(store: SealedStore, blob: bytes, *, refuse_older_than: int = 0) -> int | None:
    """
    Tell whether `import_blob` would put a sealed ring in place: the revision that it would replace, 0 for none.

    None says that it stands there already.

    Raises:
        RingOlder, RingUnrelated, StoreError, SealingKeyError, SelfTestFailed: as `import_blob` does.
    """
    ring, revision = _opened(store, blob, where=f"the ring for {store.where}")
    if revision < refuse_older_than:
        raise RingOlder(where=store.where, found=revision, known=refuse_older_than)
    try:
        present = await store.read_blob()
    except RingMissing:
        return 0
    stored, stored_revision = _opened(store, present, where=store.where)
    if present == blob:
        return None
    if revision < stored_revision:
        raise RingOlder(where=store.where, found=revision, known=stored_revision)
    if revision == stored_revision or not _has_become(stored, ring):
        raise RingUnrelated(where=store.where, found=revision, stored=stored_revision)
    return stored_revision


async def sealed_with(store: SealedStore) -> str:
    """
    Return the id of the sealing key that the stored ring was sealed with.

    Raises:
        StoreError, SealingKeyError, SelfTestFailed: as `KeyStore.load` does; one that lacks the sealing key names it.
    """
    return blob_sealing_key(await export_blob(store), where=store.where)


async def reseal(store: SealedStore) -> bool:
    """
    Seal the stored ring with the first sealing key, as a new revision; False when it is sealed with that one already.

    A crash leaves the ring as it was or resealed; with the old and the new sealing key configured either opens.

    Raises:
        RevisionConflict: when others saved in between again and again.
        StoreError, SealingKeyError, SelfTestFailed: as `KeyStore.load` and `KeyStore.save` do.
    """
    attempts = 0
    while True:
        blob = await store.read_blob()
        ring, revision = _opened(store, blob, where=store.where)
        if blob_sealing_key(blob, where=store.where) == store.sealing.current.id:
            return False
        try:
            await store.save(ring, expect=revision)
        except RevisionConflict:
            attempts += 1
            if attempts == _MAX_ATTEMPTS:
                raise
        else:
            return True


def _opened(store: SealedStore, blob: bytes, *, where: str) -> tuple[KeyRing, int]:
    return open_ring(blob, workspace=store.workspace, keys=store.sealing, where=where)


def _has_become(earlier: KeyRing, later: KeyRing) -> bool:
    """
    Tell whether *later* can be what *earlier* has become: it knows the key that signed there, and no key has gone back.
    """
    reached = {record.kid: STATES.index(record.state) for record in earlier.records}
    known = {record.kid for record in later.records}
    return earlier.active.kid in known and all(
        STATES.index(record.state) >= reached.get(record.kid, 0) for record in later.records
    )
