"""
The file store: compare-and-set, refusals that leave the file as it is, and changes that are noticed.
"""

import asyncio
import shutil
import stat

import pytest

from keys import (
    FileKeyStore,
    FileUnreadable,
    FileUnwritable,
    KeyStore,
    LoosePermissions,
    RevisionConflict,
    RingCorrupt,
    RingMissing,
    RingOfAnotherWorkspace,
    RingRolledBack,
    SealingKey,
    SealingKeys,
    SealingKeyUnknown,
    SealingKeyWrong,
    StoreBusy,
    create_ring,
    revoke,
    rotate,
    seal_ring,
)
from keys import store_file as store_module
from keys.private_file import exclusive_lock


def save(store, ring, expect):
    return asyncio.run(store.save(ring, expect=expect))


def load(store):
    return asyncio.run(store.load())


@pytest.fixture
def saved(store, ring):
    save(store, ring, 0)
    return store


@pytest.fixture
def next_ring(ring, now, times):
    return rotate(ring, now=now + 350, times=times, expected_active=None).ring


def test_a_ring_comes_back_from_its_file(store, ring):
    """
    Creating gives revision 1, loading the equal ring.
    """
    as_protocol: KeyStore = store

    assert save(as_protocol, ring, 0) == 1
    assert load(as_protocol) == (ring, 1)


def test_the_file_and_its_folder_are_private(saved, path):
    """
    F09: file and lock 0600, folder 0700; nothing else lies there.
    """
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

    assert modes == {"acme.jwe": 0o600, "acme.jwe.lock": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert saved.path == path


def test_each_save_counts_up(saved, ring, next_ring):
    """
    The revision goes up by one a save, and the last ring is the one that is loaded.
    """
    assert save(saved, next_ring, 1) == 2
    assert save(saved, ring, 2) == 3
    assert load(saved) == (ring, 3)


def test_a_stale_save_is_refused(saved, ring, next_ring, path, sealing):
    """
    F01: who slept through a change cannot overwrite it.
    """
    save(FileKeyStore(path, "acme", sealing), next_ring, 1)
    before = path.read_bytes()

    with pytest.raises(RevisionConflict) as refusal:
        save(saved, ring, 1)

    assert (refusal.value.expected, refusal.value.found) == (1, 2)
    assert path.read_bytes() == before


def test_creating_never_replaces(saved, ring, path):
    """
    F01: the second of two creations is told that there is a ring.
    """
    before = path.read_bytes()

    with pytest.raises(RevisionConflict) as refusal:
        save(saved, ring, 0)

    assert (refusal.value.expected, refusal.value.found) == (0, 1)
    assert path.read_bytes() == before


def test_two_creations_at_once_make_one_ring(path, sealing, now, times):
    """
    F01: of eight that create together one wins, the others learn of it, and all load the same ring.
    """
    rings = [create_ring("acme", now=now, times=times) for _ in range(8)]
    stores = [FileKeyStore(path, "acme", sealing) for _ in rings]

    async def create():
        attempts = (store.save(ring, expect=0) for store, ring in zip(stores, rings, strict=True))
        return await asyncio.gather(*attempts, return_exceptions=True)

    outcomes = asyncio.run(create())

    assert outcomes.count(1) == 1
    assert sum(isinstance(outcome, RevisionConflict) for outcome in outcomes) == 7
    assert {load(store)[0].active.kid for store in stores} == {rings[outcomes.index(1)].active.kid}


def test_a_missing_ring_is_never_made_up(store, ring):
    """
    F08, F12: loading and saving over nothing say what creates a ring, and nothing appears.
    """
    with pytest.raises(RingMissing) as refusal:
        load(store)
    with pytest.raises(RingMissing):
        save(store, ring, 1)

    assert "keys init" in str(refusal.value)
    assert not store.path.parent.exists()


def test_a_ring_that_was_deleted_is_missed(saved, next_ring, path):
    """
    F08, F13: the folder is there, the file is not: refused, not made anew.
    """
    path.unlink()

    with pytest.raises(RingMissing):
        load(saved)
    with pytest.raises(RingMissing):
        save(saved, next_ring, 1)

    assert not path.exists()


def test_an_empty_lock_file_is_no_ring(path, sealing, ring):
    """
    A creation that ended before its first file did leaves the way free.
    """
    path.parent.mkdir()
    path.with_name("acme.jwe.lock").touch(0o600)

    assert save(FileKeyStore(path, "acme", sealing), ring, 0) == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (lambda blob: b"", "empty"),
        (lambda blob: blob[: len(blob) // 2], "truncated"),
        (lambda blob: b"garbage", "not_sealed"),
        (lambda blob: blob[:-30] + b"A" + blob[-29:], "damaged"),
        (lambda blob: blob + b"A" * 600_000, "too_large"),
    ],
)
@pytest.mark.parametrize("expect", [0, 1])
def test_a_file_that_does_not_open_is_never_replaced(saved, next_ring, path, *, content, problem, expect):
    """
    F08: neither loading nor saving, whatever revision is expected, changes an octet of it.
    """
    damaged = content(path.read_bytes())
    path.write_bytes(damaged)

    with pytest.raises(RingCorrupt) as on_load:
        load(saved)
    with pytest.raises(RingCorrupt) as on_save:
        save(saved, next_ring, expect)

    assert on_load.value.problem == on_save.value.problem == problem
    assert on_load.value.where == str(path)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (SealingKey("2026-11", b"\x99" * 32), SealingKeyWrong),
        (SealingKey("2026-12", b"\x11" * 32), SealingKeyUnknown),
    ],
)
@pytest.mark.parametrize("expect", [0, 1])
def test_a_wrong_sealing_key_destroys_nothing(saved, next_ring, path, *, key, error, expect):
    """
    F06: the file stays octet for octet, and the right key opens it again.
    """
    before = path.read_bytes()
    wrong = FileKeyStore(path, "acme", SealingKeys(key))

    with pytest.raises(error):
        load(wrong)
    with pytest.raises(error):
        save(wrong, next_ring, expect)

    assert path.read_bytes() == before
    assert load(saved)[1] == 1


def test_a_ring_of_another_workspace_is_refused(saved, path, sealing, other_ring):
    """
    A file that was moved to another workspace's place opens for nobody and is not replaced.
    """
    stranger = FileKeyStore(path, "globex", sealing)

    with pytest.raises(RingOfAnotherWorkspace):
        load(stranger)
    with pytest.raises(RingOfAnotherWorkspace):
        save(stranger, other_ring, 1)

    assert load(saved)[1] == 1


def test_a_ring_of_another_workspace_is_not_saved(saved, other_ring):
    """
    Mixing up two workspaces is a mistake of the programmer.
    """
    with pytest.raises(ValueError, match="workspace"):
        save(saved, other_ring, 1)
    with pytest.raises(ValueError, match="expect"):
        save(saved, load(saved)[0], -1)
    with pytest.raises(ValueError, match="workspace"):
        FileKeyStore(saved.path, "A/B", SealingKeys(SealingKey("a", bytes(32))))


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o606])
def test_a_loose_file_is_refused(saved, next_ring, path, mode):
    """
    F09: a ring that others may read or write is neither used nor replaced.
    """
    path.chmod(mode)

    with pytest.raises(LoosePermissions) as refusal:
        load(saved)
    with pytest.raises(LoosePermissions):
        save(saved, next_ring, 1)

    assert refusal.value.mode == mode


def test_a_link_in_the_place_of_the_file_is_refused(saved, path):
    """
    Replacing a link would leave the ring it points to behind.
    """
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))

    with pytest.raises(FileUnreadable):
        load(saved)


def test_an_older_ring_in_its_place_is_refused(saved, ring, next_ring, path, sealing):
    """
    A copy that was put back is found by whoever saw the newer one; a fresh start cannot know.
    """
    old = path.read_bytes()
    save(saved, next_ring, 1)
    path.write_bytes(old)

    with pytest.raises(RingRolledBack) as refusal:
        load(saved)
    with pytest.raises(RingRolledBack):
        save(saved, ring, 1)

    assert (refusal.value.found, refusal.value.seen) == (1, 2)
    assert path.read_bytes() == old
    assert load(FileKeyStore(path, "acme", sealing))[1] == 1


def test_a_load_that_is_overtaken_is_no_rollback(saved, next_ring, path, monkeypatch):
    """
    A reader that opened the old file just before a save is not told that somebody put it back.
    """
    original = store_module.read_private_file

    def read(path, *, limit):
        blob = original(path, limit=limit)
        monkeypatch.setattr(store_module, "read_private_file", original)
        save(saved, next_ring, 1)
        return blob

    monkeypatch.setattr(store_module, "read_private_file", read)

    assert load(saved)[1] == 1
    assert load(saved)[1] == 2


def damages(blob):
    """
    The blob cut after every octet, and with one bit of every 64th octet flipped.
    """
    for length in range(len(blob)):
        yield blob[:length]
    for at in range(0, len(blob), 64):
        yield blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]


def test_a_damaged_file_is_refused_and_left(quick_folder, sealing, ring, next_ring):
    """
    F08: cut anywhere, or with a bit flipped, it is neither loaded nor saved over, and nothing else appears beside it.
    """
    path = quick_folder / "rings" / "acme.jwe"
    saved = FileKeyStore(path, "acme", sealing)
    save(saved, ring, 0)
    whole = path.read_bytes()

    for number, damaged in enumerate(damages(whole)):
        path.write_bytes(damaged)
        # The damage is told before anything is written, so one look stands for load and save alike but now and then.
        with pytest.raises((RingCorrupt, SealingKeyUnknown, RingOfAnotherWorkspace)):
            saved._load() if number % 50 else save(saved, next_ring, 1)
        assert path.read_bytes() == damaged

    assert {file.name for file in path.parent.iterdir()} == {"acme.jwe", "acme.jwe.lock"}
    path.write_bytes(whole)
    assert save(saved, next_ring, 1) == 2


def test_resealing_moves_a_ring_to_the_new_key(path, ring):
    """
    F06: with old and new configured, a load and a save put the ring under the new key; then the old one is not needed.
    """
    old, new = SealingKey("2026-05", b"\x05" * 32), SealingKey("2026-11", b"\x11" * 32)
    save(FileKeyStore(path, "acme", SealingKeys(old)), ring, 0)
    both = FileKeyStore(path, "acme", SealingKeys(new, old))

    found, revision = load(both)
    save(both, found, revision)

    assert load(FileKeyStore(path, "acme", SealingKeys(new))) == (ring, 2)
    with pytest.raises(SealingKeyUnknown):
        load(FileKeyStore(path, "acme", SealingKeys(old)))


def test_a_stamp_changes_with_every_save(saved, ring, next_ring):
    """
    F13: a service that compares stamps notices each change without opening the file.
    """
    stamps = [asyncio.run(saved.stamp())]
    for revision, changed in enumerate((next_ring, ring, next_ring), start=1):
        save(saved, changed, revision)
        stamps.append(asyncio.run(saved.stamp()))

    assert len(set(stamps)) == 4
    assert asyncio.run(saved.stamp()) == stamps[-1]


def test_a_stamp_tells_that_the_file_is_gone(saved, path):
    """
    F13: no exception, a value of its own.
    """
    path.unlink()

    assert asyncio.run(saved.stamp()) is None


def test_a_busy_store_is_reported(saved, next_ring, path, monkeypatch):
    """
    A process that hangs while it holds the lock does not hang the others.
    """
    monkeypatch.setattr(store_module, "_LOCK_TIMEOUT_S", 0.02)

    with exclusive_lock(path.with_name("acme.jwe.lock"), timeout_s=0), pytest.raises(StoreBusy):
        save(saved, next_ring, 1)

    assert load(saved)[1] == 1


def test_the_store_does_not_block_the_event_loop(saved, next_ring, path):
    """
    While one save waits for the lock, other tasks run.
    """

    async def wait_and_release():
        with exclusive_lock(path.with_name("acme.jwe.lock"), timeout_s=0):
            task = asyncio.create_task(saved.save(next_ring, expect=1))
            for _ in range(50):
                await asyncio.sleep(0)
            assert not task.done()
        return await task

    assert asyncio.run(wait_and_release()) == 2


def test_a_revocation_leaves_no_private_octets(saved, ring, path, *, now, times, sealing):
    """
    What is stored after a revocation opens to a ring without the private part of the revoked key.
    """
    done = revoke(ring, ring.active.kid, now=now, times=times, reason="leaked")
    save(saved, done.ring, 1)

    stored, _ = load(FileKeyStore(path, "acme", sealing))

    assert stored.record(ring.active.kid).private_jwk is None


def test_a_save_into_a_file_is_reported(tmp_path, sealing, ring):
    """
    A file in the place of the folder stops the creation with the path.
    """
    (tmp_path / "rings").write_bytes(b"")

    with pytest.raises(FileUnwritable):
        save(FileKeyStore(tmp_path / "rings" / "acme.jwe", "acme", sealing), ring, 0)


def test_a_folder_that_vanishes_is_a_missing_ring(saved, next_ring, path):
    """
    A volume that is not mounted any more is no reason to make a ring.
    """
    shutil.rmtree(path.parent)

    with pytest.raises(RingMissing):
        save(saved, next_ring, 1)


def test_a_backup_that_is_put_in_place_opens(store, ring, path, sealing):
    """
    A sealed blob is all that a restore needs.
    """
    path.parent.mkdir()
    path.write_bytes(seal_ring(ring, revision=41, keys=sealing))
    path.chmod(0o600)

    assert load(store) == (ring, 41)
