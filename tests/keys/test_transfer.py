"""
Sealed rings on the move: backups, restores and copies that never bring back what was left behind, and resealing.
"""

import asyncio
from dataclasses import replace

import pytest

from keys import (
    FileKeyStore,
    NameTaken,
    RevisionConflict,
    RingCorrupt,
    RingMissing,
    RingOfAnotherWorkspace,
    RingOlder,
    RingUnrelated,
    SealedStore,
    SealingKey,
    SealingKeys,
    SealingKeyUnknown,
    SealingKeyWrong,
    StoreUnreachable,
    check_import,
    create_ring,
    export_blob,
    import_blob,
    reseal,
    revoke,
    rotate,
    seal_ring,
    sealed_with,
)
from keys.sealing import blob_sealing_key

OLD, NEW = SealingKey("2026-05", b"\x05" * 32), SealingKey("2026-11", b"\x11" * 32)


def run(work):
    return asyncio.run(work)


@pytest.fixture
def sealing():
    return SealingKeys(NEW, OLD)


@pytest.fixture
def saved(store, ring):
    """
    A store with a ring at revision 1.
    """
    run(store.save(ring, expect=0))
    return store


@pytest.fixture
def next_ring(ring, now, times):
    return rotate(ring, now=now + 350, times=times, expected_active=None).ring


@pytest.fixture
def elsewhere(tmp_path, sealing):
    """
    A second store of the same workspace, empty.
    """
    return FileKeyStore(tmp_path / "elsewhere" / "acme.jwe", "acme", sealing)


def test_a_backup_is_the_sealed_text_as_it_is(saved, path):
    """
    Nothing of it is readable without the sealing key, and nothing is sealed anew.
    """
    as_protocol: SealedStore = saved

    blob = run(export_blob(as_protocol))

    assert blob == path.read_bytes()


def test_a_backup_of_what_does_not_open_is_refused(saved, path):
    """
    Whoever makes backups learns that there is nothing left to back up.
    """
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(RingCorrupt):
        run(export_blob(saved))


def test_a_backup_restores_where_nothing_is(saved, elsewhere, ring):
    """
    The revision comes with it, so that instances that saw it go on.
    """
    run(saved.save(ring, expect=1))
    blob = run(export_blob(saved))

    assert run(import_blob(elsewhere, blob))

    assert run(elsewhere.read_blob()) == blob
    assert run(elsewhere.load()) == (ring, 2)


def test_whether_a_ring_would_be_put_in_place_can_be_asked_first(saved, elsewhere, next_ring, sealing):
    """
    The answer is the revision that would go, 0 for none, None when there is nothing to do; nothing is changed.
    """
    blob = run(export_blob(saved))
    later = seal_ring(next_ring, revision=2, keys=sealing)

    answers = [run(check_import(*each)) for each in ((elsewhere, blob), (saved, blob), (saved, later))]

    assert answers == [0, None, 1]
    assert run(saved.load())[1] == 1
    assert not elsewhere.path.exists()


def test_a_later_ring_takes_the_place_of_an_earlier_one(saved, elsewhere, next_ring):
    """
    It knows the key that signed there.
    """
    run(import_blob(elsewhere, run(export_blob(saved))))
    run(saved.save(next_ring, expect=1))

    assert run(import_blob(elsewhere, run(export_blob(saved))))

    assert run(elsewhere.load()) == (next_ring, 2)


def test_what_stands_there_already_is_left(saved, path):
    """
    Restoring twice changes nothing.
    """
    before = path.stat().st_mtime_ns

    assert not run(import_blob(saved, run(export_blob(saved))))

    assert path.stat().st_mtime_ns == before


def test_an_older_ring_is_refused(saved, next_ring, path):
    """
    It would bring back a key that was revoked since.
    """
    backup = run(export_blob(saved))
    run(saved.save(next_ring, expect=1))
    before = path.read_bytes()

    with pytest.raises(RingOlder) as refusal:
        run(import_blob(saved, backup))

    assert (refusal.value.found, refusal.value.known) == (1, 2)
    assert path.read_bytes() == before


def test_a_ring_older_than_what_the_trail_knows_is_refused(saved, elsewhere):
    """
    Also where nothing is stored.
    """
    backup = run(export_blob(saved))

    with pytest.raises(RingOlder) as refusal:
        run(import_blob(elsewhere, backup, refuse_older_than=2))

    assert (refusal.value.found, refusal.value.known) == (1, 2)
    assert not elsewhere.path.exists()
    assert run(import_blob(elsewhere, backup, refuse_older_than=1))


def test_another_ring_of_the_same_revision_is_refused(saved, next_ring, sealing, path):
    """
    Two histories from one revision are two rings.
    """
    before = path.read_bytes()

    with pytest.raises(RingUnrelated):
        run(import_blob(saved, seal_ring(next_ring, revision=1, keys=sealing)))

    assert path.read_bytes() == before


def test_a_ring_that_does_not_know_the_active_key_is_refused(saved, now, times, sealing, path):
    """
    A higher revision alone does not make it the same ring.
    """
    stranger = create_ring("acme", now=now, times=times)
    before = path.read_bytes()

    with pytest.raises(RingUnrelated) as refusal:
        run(import_blob(saved, seal_ring(stranger, revision=7, keys=sealing)))

    assert (refusal.value.found, refusal.value.stored) == (7, 1)
    assert path.read_bytes() == before


def test_a_ring_in_which_a_key_has_gone_back_is_refused(saved, ring, now, times, sealing, path):
    """
    An older copy that was changed until its revision is the later one still has the revoked key as it was.
    """
    signed = rotate(ring, now=now + 350, times=times, expected_active=None).ring
    run(saved.save(signed, expect=1))
    run(saved.save(revoke(signed, ring.active.kid, now=now + 360, times=times, reason="leaked").ring, expect=2))
    changed = rotate(signed, now=now + 900, times=times, expected_active=None).ring
    before = path.read_bytes()

    with pytest.raises(RingUnrelated):
        run(import_blob(saved, seal_ring(changed, revision=9, keys=sealing)))

    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda blob, _other: blob[:-1], RingCorrupt),
        (lambda _blob, other: other, RingOfAnotherWorkspace),
        (lambda blob, _other: blob.replace(b".", b"", 1), RingCorrupt),
    ],
    ids=["cut", "another workspace", "no form"],
)
def test_what_does_not_open_is_not_restored(spoil, error, saved, next_ring, other_ring, sealing, path):
    """
    Neither a damaged backup nor that of another workspace takes the place of a good ring.
    """
    blob = seal_ring(next_ring, revision=2, keys=sealing)
    before = path.read_bytes()

    with pytest.raises(error):
        run(import_blob(saved, spoil(blob, seal_ring(other_ring, revision=2, keys=sealing))))

    assert path.read_bytes() == before


@pytest.mark.parametrize(("key_id", "error"), [("lost", SealingKeyUnknown), ("2026-11", SealingKeyWrong)])
def test_a_restore_needs_the_sealing_key_of_the_backup(key_id, error, saved, next_ring, path):
    """
    The refusal says which one, and what is stored stays.
    """
    before, key = path.read_bytes(), SealingKey(key_id, b"\x07" * 32)

    with pytest.raises(error) as refusal:
        run(import_blob(saved, seal_ring(next_ring, revision=2, keys=SealingKeys(key))))

    assert refusal.value.needed == key_id
    assert path.read_bytes() == before


def test_what_is_stored_and_does_not_open_is_not_replaced(saved, next_ring, sealing, path):
    """
    It has to be set aside first, on purpose.
    """
    path.write_bytes(path.read_bytes()[:-1])
    damaged = path.read_bytes()
    backup = seal_ring(next_ring, revision=2, keys=sealing)

    with pytest.raises(RingCorrupt):
        run(import_blob(saved, backup))
    aside = run(saved.set_aside("damaged"))
    run(import_blob(saved, backup))

    assert aside == f"{path}.damaged"
    assert path.with_name("acme.jwe.damaged").read_bytes() == damaged
    assert run(saved.load()) == (next_ring, 2)


def test_setting_aside_replaces_nothing(saved, path):
    """
    A name that is taken is refused; so is a store that has nothing, and a label that is none.
    """
    run(saved.set_aside("a"))
    with pytest.raises(RingMissing):
        run(saved.set_aside("b"))
    path.with_name("acme.jwe.a").rename(path)
    path.with_name("acme.jwe.b").write_bytes(b"")
    with pytest.raises(NameTaken) as refusal:
        run(saved.set_aside("b"))
    with pytest.raises(ValueError, match="label"):
        run(saved.set_aside("../b"))

    assert refusal.value.name == f"{path}.b"
    assert run(saved.load())[1] == 1


def test_a_blob_is_written_from_the_revision_it_was_decided_on(saved, next_ring, sealing):
    """
    Compare-and-set holds for sealed text as for rings.
    """
    blob = seal_ring(next_ring, revision=5, keys=sealing)

    with pytest.raises(RevisionConflict):
        run(saved.write_blob(blob, expect=0))
    with pytest.raises(RevisionConflict):
        run(saved.write_blob(blob, expect=4))
    assert run(saved.write_blob(blob, expect=1)) == 5
    assert run(saved.load()) == (next_ring, 5)


@pytest.mark.parametrize("expect", [-1, 2, 3])
def test_a_blob_goes_forwards(expect, saved, next_ring, sealing):
    """
    An expected revision that is not before its own is a mistake of the programmer.
    """
    with pytest.raises(ValueError, match="later"):
        run(saved.write_blob(seal_ring(next_ring, revision=2, keys=sealing), expect=expect))


def test_resealing_seals_with_the_first_key(path, sealing, ring):
    """
    F06: afterwards the old sealing key is not needed any more; a second time there is nothing to do.
    """
    run(FileKeyStore(path, "acme", SealingKeys(OLD)).save(ring, expect=0))
    store = FileKeyStore(path, "acme", sealing)

    assert run(sealed_with(store)) == "2026-05"
    assert run(reseal(store))
    assert run(sealed_with(store)) == "2026-11"
    assert not run(reseal(store))

    assert run(FileKeyStore(path, "acme", SealingKeys(NEW)).load()) == (ring, 2)


def test_resealing_names_the_sealing_key_it_needs(path, ring):
    """
    F06: without the old one nothing happens.
    """
    run(FileKeyStore(path, "acme", SealingKeys(OLD)).save(ring, expect=0))
    before = path.read_bytes()

    with pytest.raises(SealingKeyUnknown) as refusal:
        run(reseal(FileKeyStore(path, "acme", SealingKeys(NEW))))

    assert (refusal.value.needed, refusal.value.configured) == ("2026-05", ("2026-11",))
    assert path.read_bytes() == before


class Contested(FileKeyStore):
    """
    A store that others save to whenever this one is about to.
    """

    def __init__(self, *parts, times):
        super().__init__(*parts)
        self.left = times

    async def save(self, ring, *, expect):
        if self.left:
            self.left -= 1
            other = FileKeyStore(self.path, self.workspace, SealingKeys(OLD, NEW))
            await other.save(replace(ring, companion={"left": self.left}), expect=expect)
        return await super().save(ring, expect=expect)


def test_resealing_goes_on_when_others_save(path, sealing, ring):
    """
    What they saved is kept; only when that never ends it gives up.
    """
    run(FileKeyStore(path, "acme", SealingKeys(OLD)).save(ring, expect=0))

    assert run(reseal(Contested(path, "acme", sealing, times=2)))
    assert run(FileKeyStore(path, "acme", sealing).load()) == (replace(ring, companion={"left": 0}), 4)
    run(FileKeyStore(path, "acme", SealingKeys(OLD, NEW)).save(ring, expect=4))
    with pytest.raises(RevisionConflict):
        run(reseal(Contested(path, "acme", sealing, times=-1)))


def test_the_sealing_key_of_a_blob_can_be_told_by_its_form(ring, sealing):
    """
    Of text that has none, nothing is told.
    """
    assert blob_sealing_key(seal_ring(ring, revision=1, keys=sealing), where="ring.jwe") == "2026-11"
    with pytest.raises(RingCorrupt):
        blob_sealing_key(b"text", where="ring.jwe")


def test_a_revoked_key_does_not_come_back(saved, ring, now, times):
    """
    The whole point: after a revocation the backup from before it is refused.
    """
    backup = run(export_blob(saved))
    run(saved.save(revoke(ring, ring.active.kid, now=now + 1, times=times, reason="leaked").ring, expect=1))

    with pytest.raises(RingOlder):
        run(import_blob(saved, backup))

    assert run(saved.load())[0].record(ring.active.kid).state == "revoked"


@pytest.mark.parametrize(("outcome", "said"), [("unchanged", "Nothing was changed"), ("unknown", "Load again")])
def test_an_unreachable_store_says_what_is_known(outcome, said):
    """
    After a save without an answer, only loading tells.
    """
    error = StoreUnreachable(where="redis://there", problem="no answer in time", outcome=outcome)

    assert (error.code, error.outcome) == ("store_unreachable", outcome)
    assert said in str(error)
