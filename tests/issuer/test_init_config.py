"""
What `customer-context init` writes, and what it leaves alone.
"""

import asyncio
import json
import re
import stat
from hashlib import sha256

import pytest
from pydantic import BaseModel

from issuer import init_config, settings_models, settings_workspaces
from issuer.init_config import AlreadyThere, write_development_config
from issuer.settings import SettingsError, build_registry, load_settings, settings_warnings
from issuer.settings_sealing import key_times, load_sealing_keys, ring_path
from issuer.settings_workspaces import AdminSettings, ClientSettings
from keys import FileKeyStore, import_private_jwk

NOW = 1_796_040_000
TABLES = {
    getattr(models, name)
    for models in (settings_models, settings_workspaces)
    for name in models.__all__
    if name.endswith("Settings")
}


def test_the_service_starts_from_what_is_written(tmp_path):
    """
    The configuration loads without a warning, its keys are read, and the ring opens with one active key and two standbys.
    """
    result = write_development_config(tmp_path / "dev", now=NOW)

    settings = load_settings(result.config, {})
    store = FileKeyStore(ring_path(settings, "demo"), "demo", load_sealing_keys(settings))
    ring, revision = asyncio.run(store.load())
    assert settings_warnings(settings) == ()
    assert settings.sealing_keys[0].id == "dev-2026-11"
    assert revision == 1
    assert sorted(record.state for record in ring.records) == ["active", "standby", "standby"]
    assert ring.active.mature_at == NOW
    assert key_times(settings).max_age_s == 120
    assert build_registry(settings).workspace("demo").clients[result.client_id].max_asserted_level == "high"


def test_the_private_keys_belong_to_the_published_ones(tmp_path):
    """
    The orchestrator's two private keys are those whose public halves the configuration names, and are two keys.
    """
    result = write_development_config(tmp_path, now=NOW)

    client = build_registry(load_settings(result.config, {})).workspace("demo").clients["orc_main"]
    kids = [
        import_private_jwk(json.loads(file.read_text(encoding="utf-8"))).kid
        for file in (result.client_key, result.subject_key)
    ]
    assert kids == [*client.keys, *client.subject_keys]
    assert len(set(kids)) == 2


def test_the_secret_of_the_admin_is_only_stored_as_a_digest(tmp_path):
    """
    The secret has at least 128 bits in characters that need no encoding, and stands in no file and no repr.
    """
    result = write_development_config(tmp_path, now=NOW)

    admin = build_registry(load_settings(result.config, {})).workspace("demo").admins[result.admin]
    assert re.fullmatch(r"[A-Za-z0-9_-]{43,}", result.admin_secret)
    assert admin.secret_sha256 == (sha256(result.admin_secret.encode()).digest(),)
    assert result.admin_secret not in repr(result)
    assert not any(result.admin_secret.encode() in file.read_bytes() for file in result.files)


def test_secrets_and_keys_are_new_each_time(tmp_path):
    """
    Two configurations have no secret in common.
    """
    first, second = (write_development_config(tmp_path / name, now=NOW) for name in ("a", "b"))

    assert first.admin_secret != second.admin_secret
    for name in ("sealing.key", "orchestrator/client.jwk.json", "orchestrator/subject.jwk.json", "data/rings/demo.jwe"):
        assert (tmp_path / "a" / name).read_bytes() != (tmp_path / "b" / name).read_bytes()


def test_everything_is_private_and_listed(tmp_path):
    """
    Files have mode 0600 and folders 0700, and the result lists every file but the lock of the ring.
    """
    folder = tmp_path / "dev"

    result = write_development_config(folder, now=NOW)

    found = [folder, *folder.rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_file()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()} == {0o700}
    assert set(result.files) == {path for path in found if path.is_file() and path.suffix != ".lock"}
    assert result.next_command == f"customer-context serve --config {result.config}"


def test_the_file_is_short_enough_to_be_read():
    """
    The configuration explains itself in fewer than 100 lines.
    """
    lines = init_config._TOML.split("\n")

    assert len(lines) < 100
    assert max(map(len, lines)) <= 120


def test_the_file_shows_every_key_there_is(tmp_path):
    """
    With what stands behind # in place it is a configuration as well: each key of each table, and its default where it has one.

    But for two that exclude others: how a client, or an admin, proves who it is.
    """
    file = write_development_config(tmp_path, now=NOW).config
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"^( *)#(?=\S)", r"\1", text, flags=re.MULTILINE), encoding="utf-8")

    settings = load_settings(file, {})

    tables = [*tables_of(settings)]
    assert {type(each) for each in tables} == TABLES
    lacking = {(type(each), name) for each in tables for name in type(each).model_fields.keys() - each.model_fields_set}
    assert lacking == {(ClientSettings, "secret_sha256"), (AdminSettings, "jwks_file")}
    commented = set(re.findall(r"^ *#(\w+) =", text, re.MULTILINE))
    shown = [
        (getattr(table, name), field.default)
        for table in tables
        for name, field in type(table).model_fields.items()
        if name in commented and isinstance(field.default, bool | int | str | tuple) and field.default != ()
    ]
    assert len(shown) == 13
    assert [value for value, _ in shown] == [default for _, default in shown]


def tables_of(table):
    yield table
    for name in type(table).model_fields:
        value = getattr(table, name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, BaseModel):
                yield from tables_of(each)


@pytest.mark.parametrize("origin", ["https://id.example.com", "http://localhost:9000"])
def test_another_origin_is_written(tmp_path, origin):
    """
    The origin that was asked for stands in the file.
    """
    result = write_development_config(tmp_path, origin=origin, now=NOW)

    assert load_settings(result.config, {}).origin == origin


def test_an_origin_that_the_service_would_refuse_is_refused(tmp_path):
    """
    Nothing is written for an origin with plain http on a host of the network.
    """
    with pytest.raises(ValueError):
        write_development_config(tmp_path / "dev", origin="http://id.example.com", now=NOW)

    assert not (tmp_path / "dev").exists()


@pytest.mark.parametrize("name", ["customer-context.toml", "sealing.key", "data", "orchestrator", "clients"])
def test_nothing_that_exists_is_replaced(tmp_path, name):
    """
    One thing in the way, a dangling link too, is named and stops everything before anything is written.
    """
    (tmp_path / name).symlink_to("nowhere")

    with pytest.raises(AlreadyThere) as caught:
        write_development_config(tmp_path, now=NOW)

    assert caught.value.paths == (tmp_path / name,)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_second_run_leaves_the_first_one_alone(tmp_path):
    """
    Running it twice refuses the second time and changes no octet.
    """
    result = write_development_config(tmp_path, now=NOW)
    before = {file: file.read_bytes() for file in result.files}

    with pytest.raises(AlreadyThere):
        write_development_config(tmp_path, now=NOW)

    assert {file: file.read_bytes() for file in result.files} == before


@pytest.mark.parametrize("is_new", [True, False], ids=["new folder", "folder that exists"])
def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch, is_new):
    """
    When the configuration cannot be completed, the folder is as it was before, or not there.
    """
    folder = tmp_path / "dev"
    if not is_new:
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
    monkeypatch.setattr(init_config, "_TOML", "origin = 1\n")

    with pytest.raises(SettingsError):
        write_development_config(folder, now=NOW)

    assert folder.exists() is not is_new
    assert [path.name for path in tmp_path.rglob("*")] == ([] if is_new else ["dev", "notes.txt"])


def test_a_failure_while_moving_takes_everything_back(tmp_path, monkeypatch):
    """
    Something that comes into the way at the last moment is kept, and what was already moved is taken back.
    """
    real = init_config._write

    def write_and_be_overtaken(folder, **options):
        real(folder, **options)
        (tmp_path / "sealing.key").write_text("theirs")

    monkeypatch.setattr(init_config, "_write", write_and_be_overtaken)

    with pytest.raises(AlreadyThere):
        write_development_config(tmp_path, now=NOW)

    assert [path.name for path in tmp_path.rglob("*")] == ["sealing.key"]
    assert (tmp_path / "sealing.key").read_text() == "theirs"
