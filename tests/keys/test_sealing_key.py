"""
Sealing keys: how they are held, and read from files that are private and whole.
"""

import hmac
import os
from itertools import combinations

import pytest

from keys import (
    MAX_SEALING_KEYS,
    FileUnreadable,
    FileUnwritable,
    LoosePermissions,
    SealingKey,
    SealingKeyFileInvalid,
    SealingKeys,
    generate_sealing_key,
    read_sealing_key,
    write_sealing_key,
)
from keys.sealing import _derive

SECRET = bytes(range(32))
TEXT = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"


@pytest.fixture
def file(tmp_path):
    """
    A function that writes a sealing key file.
    """

    def write(content, mode=0o600):
        path = tmp_path / "sealing-2026-11"
        path.write_bytes(content)
        path.chmod(mode)
        return path

    return write


def test_a_sealing_key_does_not_show_its_secret():
    """
    repr has the id alone, of one key and of several.
    """
    key = SealingKey("2026-11", SECRET)

    assert repr(key) == "SealingKey(id='2026-11')"
    assert repr(SealingKeys(key)) == "SealingKeys(ids=('2026-11',))"


@pytest.mark.parametrize("key_id", ["", "-a", "a b", "a" * 65, "ü", "a\n"])
def test_a_sealing_key_has_a_plain_id(key_id):
    """
    An id can stand in messages and headers as it is.
    """
    with pytest.raises(ValueError, match="id"):
        SealingKey(key_id, SECRET)


@pytest.mark.parametrize(
    ("secret", "error"), [(b"", ValueError), (SECRET[:31], ValueError), (SECRET * 2, ValueError), ("x" * 32, TypeError)]
)
def test_a_sealing_key_has_32_octets(secret, error):
    """
    Nothing shorter, longer or textual is taken.
    """
    with pytest.raises(error):
        SealingKey("2026-11", secret)


def test_the_first_sealing_key_seals_and_all_are_found():
    """
    The order of configuration decides.
    """
    new, old = SealingKey("new", b"\x01" * 32), SealingKey("old", b"\x02" * 32)

    keys = SealingKeys(new, old)

    assert keys.current is new
    assert [*keys] == [new, old]
    assert keys.ids == ("new", "old")
    assert (keys.find("old"), keys.find("other")) == (old, None)


@pytest.mark.parametrize(
    "keys",
    [
        (),
        tuple(SealingKey(f"k{n}", bytes([n]) * 32) for n in range(MAX_SEALING_KEYS + 1)),
        (SealingKey("a", b"\x01" * 32), SealingKey("a", b"\x02" * 32)),
        (SealingKey("a", b"\x01" * 32), SealingKey("b", b"\x01" * 32)),
    ],
)
def test_sealing_keys_are_few_and_distinct(keys):
    """
    None, too many, an id twice and a secret twice are mistakes of configuration.
    """
    with pytest.raises(ValueError, match="sealing keys"):
        SealingKeys(*keys)


def test_generated_sealing_keys_differ():
    """
    Each has 32 octets of its own.
    """
    first, second = generate_sealing_key("a"), generate_sealing_key("b")

    assert len(first.secret) == 32
    assert first.secret != second.secret


@pytest.mark.parametrize("content", [TEXT, TEXT + "\n"])
@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_sealing_key_is_read_from_its_file(file, content, mode):
    """
    43 characters of base64url, with or without one newline after them, in a private file.
    """
    key = read_sealing_key("2026-11", file(content.encode(), mode))

    assert (key.id, key.secret) == ("2026-11", SECRET)


def test_a_sealing_key_file_may_be_a_link(file, tmp_path):
    """
    Mounted secrets are symbolic links; what counts is the file behind it.
    """
    link = tmp_path / "link"
    link.symlink_to(file(TEXT.encode()))

    assert read_sealing_key("2026-11", link).secret == SECRET


def test_a_link_to_a_loose_file_is_refused(file, tmp_path):
    """
    A tight link does not make its target private.
    """
    link = tmp_path / "link"
    link.symlink_to(file(TEXT.encode(), 0o644))

    with pytest.raises(LoosePermissions):
        read_sealing_key("2026-11", link)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604, 0o610, 0o601, 0o602])
def test_a_sealing_key_that_others_may_touch_is_refused(file, mode):
    """
    Any permission of group or others is one too many; the message says the mode.
    """
    with pytest.raises(LoosePermissions) as refusal:
        read_sealing_key("2026-11", file(TEXT.encode(), mode))

    assert refusal.value.mode == mode


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (TEXT[:42].encode(), "length"),
        (TEXT.encode() + b"A", "length"),
        (TEXT.encode() + b"=", "length"),
        (TEXT.encode() + b"\n\n", "length"),
        (TEXT.encode() + b"\r\n", "length"),
        (b" " + TEXT.encode(), "length"),
        (SECRET, "length"),
        (b"A" * 5000, "length"),
        (b"+" + TEXT[1:].encode(), "alphabet"),
        (TEXT[:42].encode() + b"9", "alphabet"),
        (b"\xff" * 43, "alphabet"),
    ],
)
def test_a_file_without_a_sealing_key_is_refused(file, content, problem):
    """
    F06: empty, cut, padded, raw or otherwise written content is refused; the file is named, its content never.
    """
    path = file(content)

    with pytest.raises(SealingKeyFileInvalid) as refusal:
        read_sealing_key("2026-11", path)

    assert (refusal.value.problem, refusal.value.path) == (problem, path)
    assert TEXT[:20] not in str(refusal.value)


def test_a_missing_sealing_key_file_is_named(tmp_path):
    """
    The path is in the message.
    """
    with pytest.raises(SealingKeyFileInvalid) as refusal:
        read_sealing_key("2026-11", tmp_path / "missing")

    assert refusal.value.problem == "missing"
    assert str(tmp_path / "missing") in str(refusal.value)


def test_what_is_no_regular_file_is_refused(tmp_path):
    """
    A folder is refused, and a named pipe is refused without waiting for its writer.
    """
    os.mkfifo(tmp_path / "pipe", 0o600)

    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(FileUnreadable):
            read_sealing_key("2026-11", path)


def test_a_written_sealing_key_is_read_back(tmp_path):
    """
    The file is made with mode 0600, whatever the umask.
    """
    key, path = generate_sealing_key("2026-11"), tmp_path / "sealing"
    before = os.umask(0)
    try:
        write_sealing_key(path, key)
    finally:
        os.umask(before)

    assert read_sealing_key("2026-11", path).secret == key.secret
    assert path.stat().st_mode & 0o7777 == 0o600


def test_a_sealing_key_file_is_never_replaced(file):
    """
    An existing file stays as it is, whatever it holds.
    """
    path = file(b"something")

    with pytest.raises(SealingKeyFileInvalid) as refusal:
        write_sealing_key(path, generate_sealing_key("2026-11"))

    assert refusal.value.problem == "exists"
    assert path.read_bytes() == b"something"


def test_a_sealing_key_needs_a_folder(tmp_path):
    """
    A folder that is not there is reported, not made.
    """
    with pytest.raises(FileUnwritable):
        write_sealing_key(tmp_path / "missing" / "sealing", generate_sealing_key("2026-11"))

    assert not (tmp_path / "missing").exists()


def test_a_derived_secret_is_that_of_hkdf():
    """
    RFC 5869, with SHA-256, no salt, and purpose and workspace as length-prefixed context.
    """
    context = b"customer-context:derived:v1\x00\x00\x07audit:1\x00\x00\x04acme\x01"
    extracted = hmac.digest(bytes(32), SECRET, "sha256")

    derived = SealingKey("2026-11", SECRET).derive("audit:1", "acme")

    assert derived == hmac.digest(extracted, context, "sha256")


def test_derived_secrets_are_apart():
    """
    Another purpose, workspace or sealing key, or other bounds between the names, give another secret; so does sealing itself.
    """
    key, other = SealingKey("a", SECRET), SealingKey("a", SECRET[::-1])
    derived = [
        key.derive("audit", "acme"),
        key.derive("audit", "globex"),
        key.derive("audita", "cme"),
        key.derive("customer", "acme"),
        other.derive("audit", "acme"),
        _derive(key, "acme").key.raw_value,
    ]

    assert all(len(secret) == 32 for secret in derived)
    assert not any(one == another for one, another in combinations(derived, 2))
    assert key.derive("audit", "acme") == derived[0]


@pytest.mark.parametrize(
    ("purpose", "workspace"),
    [("", "acme"), ("a b", "acme"), ("a\n", "acme"), ("a" * 65, "acme"), ("ü", "acme"), ("audit", "ü")],
)
def test_a_secret_is_derived_for_plain_names(purpose, workspace):
    """
    What names a purpose is a constant of the code; anything else is a mistake.
    """
    with pytest.raises(ValueError):
        SealingKey("2026-11", SECRET).derive(purpose, workspace)
