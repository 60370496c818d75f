"""
Private files: read only when private, replaced whole or not at all, whatever the system calls answer.
"""

import errno
import fcntl
import os
import stat

import pytest

from keys import FileUnreadable, FileUnwritable, LoosePermissions, StoreBusy
from keys.private_file import (
    create_private_file,
    exclusive_lock,
    make_private_folder,
    move_private_file,
    read_private_file,
    replace_private_file,
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old content")
    path.chmod(0o600)
    return path


def failing(monkeypatch, name, *, number=1, code=errno.ENOSPC):
    """
    Let the *number*-th call of an `os` function fail; a close fails after it has closed, as on a full network disk.
    """
    original, calls = getattr(os, name), []

    def call(*args, **kwargs):
        calls.append(args)
        if len(calls) == number:
            if name == "close":
                original(*args, **kwargs)
            raise OSError(code, os.strerror(code))
        return original(*args, **kwargs)

    monkeypatch.setattr(os, name, call)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def traced(monkeypatch, *functions):
    """
    Note the calls of these `os` functions, in order, as (name, arguments).
    """
    calls = []

    def note(name, original):
        def call(*args, **kwargs):
            calls.append((name, args))
            return original(*args, **kwargs)

        return call

    for name in functions:
        monkeypatch.setattr(os, name, note(name, getattr(os, name)))
    return calls


def test_a_private_file_is_read_up_to_a_limit(file):
    """
    One octet more than the limit is read, so that the caller can tell that there is more.
    """
    assert read_private_file(file, limit=100) == b"old content"
    assert read_private_file(file, limit=3) == b"old "


def test_a_file_that_comes_in_pieces_is_read_whole(file, monkeypatch):
    """
    A read that returns less than asked for goes on.
    """
    original = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, size: original(descriptor, min(size, 4)))

    assert read_private_file(file, limit=100) == b"old content"


def test_a_link_is_read_only_when_asked_for(file, tmp_path):
    """
    A symbolic link in the place of a ring is refused, since replacing it would leave its target behind.
    """
    link = tmp_path / "link"
    link.symlink_to(file)

    with pytest.raises(FileUnreadable) as refusal:
        read_private_file(link, limit=100)

    assert "symbolic link" in refusal.value.problem
    assert read_private_file(link, limit=100, follow_links=True) == b"old content"


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o620, 0o601])
def test_a_loose_file_is_refused(file, mode):
    """
    F09: any permission of group or others refuses the file.
    """
    file.chmod(mode)

    with pytest.raises(LoosePermissions):
        read_private_file(file, limit=100)


def test_a_missing_file_is_missing(tmp_path):
    """
    Only the caller knows what a missing file means.
    """
    with pytest.raises(FileNotFoundError):
        read_private_file(tmp_path / "missing", limit=100)


def test_what_cannot_be_read_is_reported(file, monkeypatch):
    """
    A failing disk and a folder in the file's place give our own error, with the path.
    """
    with pytest.raises(FileUnreadable):
        read_private_file(file.parent, limit=100)
    failing(monkeypatch, "read", code=errno.EIO)

    with pytest.raises(FileUnreadable) as refusal:
        read_private_file(file, limit=100)

    assert refusal.value.path == file


def test_replacing_takes_the_durable_steps_in_order(file, monkeypatch):
    """
    F09: a temporary file in the same folder, exclusive and 0600; write, fsync, rename, fsync of the folder.
    """
    calls = traced(monkeypatch, "open", "write", "fsync", "rename")

    replace_private_file(file, b"new content")

    assert [name for name, _ in calls] == ["open", "write", "fsync", "rename", "open", "fsync"]
    temporary, flags, mode = calls[0][1]
    assert temporary.parent == file.parent
    assert flags & os.O_EXCL
    assert flags & os.O_NOFOLLOW
    assert mode == 0o600
    assert calls[4][1][0] == file.parent
    assert file.read_bytes() == b"new content"


@pytest.mark.parametrize("umask", [0, 0o777])
def test_a_file_has_its_mode_from_the_first_instant(file, monkeypatch, umask):
    """
    F09: 0600 whatever the umask gives or takes, before the first octet is written.
    """
    modes = []
    original = os.write

    def write(descriptor, data):
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return original(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    before = os.umask(umask)
    try:
        replace_private_file(file, b"new content")
    finally:
        os.umask(before)

    assert modes == [0o600]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_short_write_goes_on(file, monkeypatch):
    """
    F09: what one write leaves, the next ones take.
    """
    original = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: original(descriptor, bytes(data)[:3]))

    replace_private_file(file, b"new content")

    assert file.read_bytes() == b"new content"


def test_a_write_that_takes_nothing_fails(file, monkeypatch):
    """
    F09: a disk that accepts no octet is not asked for ever.
    """
    monkeypatch.setattr(os, "write", lambda descriptor, data: 0)

    with pytest.raises(FileUnwritable):
        replace_private_file(file, b"new content")

    assert file.read_bytes() == b"old content"


@pytest.mark.parametrize(
    ("name", "number", "outcome"),
    [
        ("open", 1, "unchanged"),
        ("fchmod", 1, "unchanged"),
        ("write", 1, "unchanged"),
        ("fsync", 1, "unchanged"),
        ("close", 1, "unchanged"),
        ("rename", 1, "unchanged"),
        ("open", 2, "unknown"),
        ("fsync", 2, "unknown"),
        ("close", 2, "unknown"),
    ],
)
def test_a_full_disk_leaves_the_old_content_and_no_litter(file, monkeypatch, name, number, outcome):
    """
    F09: whichever call fails, the error says whether the old content is certain to be in place, and nothing is left over.
    """
    with monkeypatch.context() as patched:
        failing(patched, name, number=number)
        with pytest.raises(FileUnwritable) as refusal:
            replace_private_file(file, b"new content")

    assert refusal.value.outcome == outcome
    assert file.read_bytes() == (b"old content" if outcome == "unchanged" else b"new content")
    assert names(file.parent) == ["file"]


def test_what_a_crashed_writer_left_is_replaced(file):
    """
    A stale temporary file does not get in the way and does not stay.
    """
    (file.parent / "file.tmp").write_bytes(b"half a r")

    replace_private_file(file, b"new content")

    assert names(file.parent) == ["file"]


def test_a_folder_in_the_place_of_the_temporary_file_is_left_alone(file):
    """
    What is no file was not left by a writer.
    """
    (file.parent / "file.tmp").mkdir()

    with pytest.raises(FileUnwritable):
        replace_private_file(file, b"new content")

    assert file.read_bytes() == b"old content"


def test_a_new_file_is_never_an_old_one(file):
    """
    Creating refuses what exists, a dangling link too.
    """
    link = file.with_name("link")
    link.symlink_to(file.with_name("nowhere"))

    for path in (file, link):
        with pytest.raises(FileExistsError):
            create_private_file(path, b"new content")
    assert file.read_bytes() == b"old content"


@pytest.mark.parametrize(("name", "number"), [("write", 1), ("fsync", 1), ("fsync", 2)])
def test_a_file_that_could_not_be_completed_is_removed(tmp_path, monkeypatch, name, number):
    """
    After a failed creation the way is free for another.
    """
    with monkeypatch.context() as patched:
        failing(patched, name, number=number)
        with pytest.raises(OSError, match="space"):
            create_private_file(tmp_path / "file", b"content")

    assert names(tmp_path) == []


def test_folders_are_made_private(tmp_path):
    """
    Each folder that was missing has mode 0700; one that exists keeps its own.
    """
    tmp_path.chmod(0o755)
    before = os.umask(0)
    try:
        make_private_folder(tmp_path / "data" / "rings")
    finally:
        os.umask(before)
    make_private_folder(tmp_path / "data" / "rings")

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path, tmp_path / "data", tmp_path / "data" / "rings")]
    assert modes == [0o755, 0o700, 0o700]


def test_a_folder_that_cannot_be_made_is_reported(file):
    """
    A file in its way is named.
    """
    with pytest.raises(FileUnwritable):
        make_private_folder(file / "rings")


def test_a_lock_is_held_by_one_at_a_time(tmp_path):
    """
    A second holder waits, and is told when it waited long enough; afterwards the lock is free again.
    """
    path = tmp_path / "lock"

    with exclusive_lock(path, timeout_s=0), pytest.raises(StoreBusy) as refusal, exclusive_lock(path, timeout_s=0.03):
        pytest.fail("two hold the lock")

    assert refusal.value.waited_s == 0.03
    with exclusive_lock(path, timeout_s=0):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_lock_that_is_given_back_is_taken(tmp_path, monkeypatch):
    """
    Waiting ends as soon as the holder lets go.
    """
    path, original, attempts = tmp_path / "lock", fcntl.flock, []

    def flock(descriptor, operation):
        attempts.append(operation)
        if len(attempts) < 3:
            raise BlockingIOError
        original(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)

    with exclusive_lock(path, timeout_s=5):
        assert len(attempts) == 3


def test_a_lock_that_cannot_be_opened_is_reported(tmp_path):
    """
    A link in the place of the lock file is refused, a missing folder is the caller's to explain.
    """
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(FileUnwritable), exclusive_lock(tmp_path / "lock", timeout_s=0):
        pytest.fail("followed the link")
    with pytest.raises(FileNotFoundError), exclusive_lock(tmp_path / "missing" / "lock", timeout_s=0):
        pytest.fail("made the folder")


def test_a_file_is_moved_with_its_content_and_mode(tmp_path):
    """
    Under the other name it is the same file.
    """
    path, target = tmp_path / "a", tmp_path / "b"
    create_private_file(path, b"ring")

    move_private_file(path, target)

    assert (target.read_bytes(), path.exists()) == (b"ring", False)
    assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileNotFoundError):
        move_private_file(path, target)


def test_a_move_that_fails_half_way_says_so(tmp_path, monkeypatch):
    """
    The file has both names then, and nothing is lost.
    """
    path, target = tmp_path / "a", tmp_path / "b"
    create_private_file(path, b"ring")
    failing(monkeypatch, "unlink")

    with pytest.raises(FileUnwritable) as refusal:
        move_private_file(path, target)

    assert refusal.value.outcome == "unknown"
    assert path.read_bytes() == target.read_bytes() == b"ring"


def test_a_file_that_cannot_be_moved_stays(tmp_path, monkeypatch):
    """
    Where links are forbidden, say; and what has the other name already is not replaced.
    """
    path, target = tmp_path / "a", tmp_path / "b"
    create_private_file(path, b"ring")
    with monkeypatch.context() as patch:
        failing(patch, "link", code=errno.EPERM)
        with pytest.raises(FileUnwritable) as refusal:
            move_private_file(path, target)
    target.write_bytes(b"other")
    with pytest.raises(FileExistsError):
        move_private_file(path, target)

    assert refusal.value.outcome == "unchanged"
    assert (path.read_bytes(), target.read_bytes()) == (b"ring", b"other")
