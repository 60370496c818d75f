"""
A file of lines on a real disk: private, durable, and whole after a crash.
"""

import errno
import fcntl
import os
import resource
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from issuer.audit import LineFile
from keys import FileUnreadable, FileUnwritable, LoosePermissions

LINES = [b'{"seq":%d,"text":"%s"}' % (seq, b"x" * 40) for seq in range(1, 9)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audit" / "acme.jsonl"


@pytest.fixture
def file(path):
    return LineFile(path)


@contextmanager
def full_at(size):
    """
    Let no file grow beyond *size*: what a full disk does, half-written line and all.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_lines_are_added_one_behind_the_other(file, path):
    """
    Each with its newline, in a private file in a private folder.
    """
    file.append(LINES[:2])
    file.append(LINES[2:3])

    assert path.read_bytes() == b"".join(line + b"\n" for line in LINES[:3])
    assert file.read(0) == path.read_bytes()
    assert file.read(path.stat().st_size) == b""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_mode_does_not_depend_on_the_umask(tmp_path, umask):
    """
    Neither open to others nor closed to its owner.
    """
    path = tmp_path / "acme.jsonl"
    before = os.umask(umask)
    try:
        LineFile(path).append(LINES[:1])
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_not_there_is_empty(file):
    """
    Nothing is made by looking.
    """
    assert (file.read(0), file.torn_octets(), file.last_seq(), file.offset_of(5)) == (b"", 0, 0, 0)
    assert not file.path.parent.exists()


def test_the_last_number_is_that_of_the_last_whole_line(file, path):
    """
    A torn line has none, and neither has one that is no JSON.
    """
    file.append(LINES[:3])
    assert file.last_seq() == 3

    with path.open("ab") as opened:
        opened.write(b'{"seq":4,')
    assert (file.last_seq(), file.torn_octets()) == (3, 9)

    with path.open("ab") as opened:
        opened.write(b"\n")
    assert (file.last_seq(), file.torn_octets()) == (0, 0)


@pytest.mark.parametrize("block", [7, 64, 1 << 18])
def test_a_place_is_found_from_the_end(file, path, monkeypatch, block):
    """
    However the blocks that are read lie to the lines; unreadable lines are passed over.
    """
    monkeypatch.setattr("issuer.audit.line_file._BLOCK", block)
    file.append([*LINES[:4], b"garbage", *LINES[4:]])
    content = path.read_bytes()

    offsets = [content.index(b'{"seq":%d,' % seq) for seq in (2, 3, 4)]

    assert [file.offset_of(seq) for seq in (2, 3, 4)] == offsets
    assert file.offset_of(5) == content.index(b"garbage")
    assert [file.offset_of(seq) for seq in (-1, 0, 1)] == [0, 0, 0]
    assert file.offset_of(9) == file.offset_of(99) == len(content)
    assert file.torn_octets() == 0


def test_lines_without_numbers_are_all_read(file):
    """
    Where no line says its number, every line may be the one.
    """
    file.append([b"a", b"b"])

    assert file.offset_of(2) == 0


@pytest.mark.parametrize("block", [4, 1 << 18])
def test_a_torn_line_is_set_aside_before_anything_is_added(file, path, monkeypatch, block):
    """
    Octet for octet, one crash behind the other, in a private file.
    """
    monkeypatch.setattr("issuer.audit.line_file._BLOCK", block)
    torn = path.with_name("acme.jsonl.torn")
    file.append(LINES[:1])
    for left in (b'{"seq":2,"te', b"\0\0\0"):
        with path.open("ab") as opened:
            opened.write(left)
        file.append(LINES[1:2])

    assert path.read_bytes() == b"".join(line + b"\n" for line in (LINES[0], LINES[1], LINES[1]))
    assert torn.read_bytes() == b'{"seq":2,"te\n\0\0\0\n'
    assert stat.S_IMODE(torn.stat().st_mode) == 0o600


def test_a_file_that_is_one_torn_line_is_emptied_into_the_other(file, path):
    """
    The first append of all may be the one that crashed.
    """
    path.parent.mkdir(mode=0o700)
    path.touch(mode=0o600)
    path.write_bytes(b'{"se')

    file.append(LINES[:1])

    assert path.read_bytes() == LINES[0] + b"\n"
    assert path.with_name("acme.jsonl.torn").read_bytes() == b'{"se\n'


def test_a_full_disk_leaves_nothing_of_what_was_to_be_added(file, path):
    """
    Neither half a line nor the first of several.
    """
    file.append(LINES[:2])
    before = path.read_bytes()

    with full_at(len(before) + len(LINES[2]) + 10), pytest.raises(FileUnwritable):
        file.append(LINES[2:5])

    assert path.read_bytes() == before
    file.append(LINES[2:3])
    assert file.last_seq() == 3


def test_what_a_full_disk_leaves_and_nobody_can_undo_is_set_aside(file, path, monkeypatch):
    """
    The next writer sees to it.
    """
    file.append(LINES[:1])
    before = path.read_bytes()
    monkeypatch.setattr(os, "ftruncate", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "input/output error")))

    with full_at(len(before) + 10), pytest.raises(FileUnwritable):
        file.append(LINES[1:2])
    monkeypatch.undo()
    file.append(LINES[1:2])

    assert path.read_bytes() == before + LINES[1] + b"\n"
    assert path.with_name("acme.jsonl.torn").read_bytes() == LINES[1][:10] + b"\n"


def test_a_torn_line_that_cannot_be_kept_is_not_removed(file, path):
    """
    The trail then takes nothing more: losing it silently would be worse.
    """
    file.append(LINES[:1])
    with path.open("ab") as opened:
        opened.write(b"torn")
    path.with_name("acme.jsonl.torn").mkdir()

    with pytest.raises((FileUnwritable, FileUnreadable)):
        file.append(LINES[1:2])

    assert path.read_bytes() == LINES[0] + b"\ntorn"


def test_what_is_not_on_the_disk_is_not_taken_for_written(file, path, monkeypatch):
    """
    A failed fsync fails the append and takes the line back.
    """
    file.append(LINES[:1])
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) == 1:
            raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(FileUnwritable):
        file.append(LINES[1:2])

    assert path.read_bytes() == LINES[0] + b"\n"
    assert len(calls) == 2


@pytest.mark.parametrize("mode", [0o640, 0o602, 0o644])
def test_a_file_that_others_may_touch_is_not_used(file, path, mode):
    """
    Who knows who wrote into it.
    """
    file.append(LINES[:1])
    path.chmod(mode)

    for use in (
        lambda: file.append(LINES[1:2]),
        lambda: file.read(0),
        file.torn_octets,
        file.last_seq,
        lambda: file.offset_of(2),
    ):
        with pytest.raises(LoosePermissions):
            use()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to(path.parent / "other")])
def test_only_a_regular_file_is_used(file, path, make):
    """
    A pipe blocks nothing, and a link leads nowhere.
    """
    path.parent.mkdir(mode=0o700)
    make(path)

    with pytest.raises((FileUnreadable, FileUnwritable)):
        file.append(LINES[:1])
    with pytest.raises(FileUnreadable):
        file.read(0)


def test_many_add_at_once_and_every_line_is_whole(file, path):
    """
    Writers take turns, so that none takes a line that another is writing for a torn one.
    """
    lines = [b"%d:" % number + b"x" * 5000 for number in range(64)]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda line: LineFile(path).append([line]), lines))

    assert sorted(path.read_bytes().splitlines()) == sorted(lines)
    assert not path.with_name(path.name + ".torn").exists()


def test_a_writer_that_hangs_is_not_waited_for(file, path, monkeypatch):
    """
    What cannot be added in time is an error, and nothing was written: a revocation must not wait for another process.
    """
    file.append(LINES[:1])
    before = path.read_bytes()
    monkeypatch.setattr("issuer.audit.line_file._LOCK_S", 0.02)

    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(FileUnwritable):
            file.append(LINES[1:2])

    assert path.read_bytes() == before
