"""
The commands that show what is planned and move rings: plan, copy, backup, restore, reseal; and which place all of them mean.
"""

import asyncio
import json
import shutil
import time

import click
import pytest

from issuer.audit import Actor, Entry, Head, head_of
from issuer.cli import config as config_cli
from issuer.cli import keys as keys_cli
from issuer.cli import keys_backup, keys_copy, keys_plan, keys_reseal
from issuer.keystore_redis import RedisKeyStore
from issuer.ring_stores import FileStores, redis_stores, ring_stores
from issuer.settings import load_settings
from issuer.settings_sealing import key_times, load_sealing_keys
from issuer.workspace_stores import open_stores
from keys import (
    KeyRing,
    RevisionConflict,
    RingMissing,
    create_ring,
    generate_sealing_key,
    revoke,
    seal_ring,
    sealed_with,
    write_sealing_key,
)

INIT, LIST = keys_cli.command.commands["init"], keys_cli.command.commands["list"]
COMMANDS = {
    "plan": keys_plan.plan_command,
    "copy": keys_copy.copy_command,
    "backup": keys_backup.backup_command,
    "restore": keys_backup.restore_command,
    "reseal": keys_reseal.reseal_command,
}
OPERATOR = Actor("cli", "tester")


@pytest.fixture
def keys(run, dev):
    """
    Run a subcommand of `keys` on the test's own folder.
    """

    def keys(*words):
        return run(COMMANDS[words[0]], "--config", dev.config, *words[1:])

    return keys


@pytest.fixture
def shared(dev, redis_server):
    """
    The folder with a Redis in its configuration, which may forget.
    """
    named = f'keys_redis_url = "{redis_server.url}"\nkeys_redis_allow_volatile = true\n'
    dev.config.write_text(named + dev.config.read_text())
    return dev


def with_stores(dev, work, where="configured", workspace="demo"):
    """
    Do something with the stores of a workspace, where they are configured, in the folder or in the Redis.
    """
    settings = load_settings(dev.config, {})
    sealing = load_sealing_keys(settings)

    async def run():
        places = {"configured": ring_stores, "file": FileStores, "redis": redis_stores}
        place = places[where](settings, sealing)
        stores = open_stores(place, settings, workspace, sealing, now=time.time, report=lambda *_, **__: None)
        try:
            return await work(stores)
        finally:
            await place.aclose()

    return asyncio.run(run())


def ring_of(dev, where="configured", workspace="demo") -> tuple[KeyRing, int]:
    return with_stores(dev, lambda stores: stores.ring.load(), where, workspace)


def noted(dev, where="configured"):
    """
    Put something on record.
    """
    entry = Entry(at=int(time.time()), actor=OPERATOR, event="admin_called", target="test")
    return with_stores(dev, lambda stores: stores.ledger.note(entry), where)


def revoked(dev, where="configured"):
    """
    Revoke the active key, past the trail, and return its kid.
    """
    ring, revision = ring_of(dev, where)
    times = key_times(load_settings(dev.config, {}))
    changed = revoke(ring, ring.active.kid, now=int(time.time()), times=times, reason="leaked").ring
    with_stores(dev, lambda stores: stores.ring.save(changed, expect=revision), where)
    return ring.active.kid


def records(dev, where="configured"):
    """
    The trail, after it was verified: events with what is known after them.
    """

    async def read(stores):
        findings = await stores.ledger.verify()
        page = await stores.ledger.page()
        return findings, [row.record.entry for row in page.rows]

    findings, entries = with_stores(dev, read, where)
    assert findings.is_sound
    return entries


def test_a_plan_shows_what_happens_and_when(keys, dev):
    """
    Each step with its wall time and how long until then; keys that are not made yet are called that.
    """
    ring, _ = ring_of(dev)

    text = keys("plan")
    lines = text.stdout.splitlines()[1:]

    assert text.exit_code == 0
    assert len(lines) == 13
    assert ring.active.kid in next(line for line in lines if "signs no more" in line)
    assert sum("a new key" in line for line in lines) == 4
    assert "in 29 d 23 h" in text.stdout or "in 30 d 0 h" in text.stdout
    assert text.stdout.startswith(f"workspace demo, revision 1, now {time.gmtime().tm_year}-")


def test_a_plan_is_json_for_programs(keys, dev):
    """
    Instants as numbers and as text.
    """
    ring, _ = ring_of(dev)

    told = json.loads(keys("plan", "--json").stdout)
    activation = next(step for step in told["steps"] if step["what"] == "activate")

    assert (told["workspace"], told["revision"], told["active"]) == ("demo", 1, ring.active.kid)
    assert activation["kid"] == ring.standbys[0].kid
    assert activation["at"] == ring.active.rotation_due_at
    assert activation["in_seconds"] == activation["at"] - told["at"]
    assert activation["time"].endswith("Z")
    assert [step["at"] for step in told["steps"]] == sorted(step["at"] for step in told["steps"])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "in 0 s"),
        (59, "in 59 s"),
        (60, "in 1 min 0 s"),
        (350, "in 5 min 50 s"),
        (7_200, "in 2 h 0 min"),
        (2_592_000, "in 30 d 0 h"),
    ],
)
def test_a_wait_is_written_in_two_units(seconds, text):
    """
    Nobody needs the seconds of a month.
    """
    assert keys_plan._waiting(seconds) == text


def test_a_plan_changes_nothing(keys, dev):
    """
    It is only looked at.
    """
    before = dev.ring.read_bytes()

    keys("plan")

    assert dev.ring.read_bytes() == before


def test_a_backup_is_the_sealed_ring_in_a_private_file(keys, dev, tmp_path):
    """
    Nothing that exists is replaced, and what cannot be written is said.
    """
    file = tmp_path / "backup.jwe"

    first = keys("backup", file)
    second = keys("backup", file)
    nowhere = keys("backup", tmp_path / "none" / "backup.jwe")

    assert (first.exit_code, second.exit_code, nowhere.exit_code) == (0, 2, 2)
    assert "sealed with 'dev-" in first.stdout
    assert "exists" in second.stderr
    assert "cannot be written" in nowhere.stderr
    assert file.read_bytes() == dev.ring.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_ring_is_restored_where_none_is(keys, dev, tmp_path):
    """
    The same keys are back, on record.
    """
    noted(dev)
    ring, revision = ring_of(dev)
    keys("backup", tmp_path / "backup.jwe")
    dev.ring.unlink()

    result = keys("restore", tmp_path / "backup.jwe")

    assert result.exit_code == 0
    found, now_at = ring_of(dev)
    assert (found.records, now_at) == (ring.records, revision + 1)
    assert records(dev)[0].event == "ring_restored"
    assert records(dev)[0].after == {"restored": revision}
    assert (records(dev)[0].actor.kind, records(dev)[0].actor.source) == ("cli", "local")


def test_what_is_stored_already_is_not_restored_again(keys, dev, tmp_path):
    """
    And nothing is put on record.
    """
    keys("backup", tmp_path / "backup.jwe")
    before = dev.ring.read_bytes()

    result = keys("restore", tmp_path / "backup.jwe")

    assert result.exit_code == 0
    assert "already" in result.stdout
    assert dev.ring.read_bytes() == before


def test_a_backup_from_before_a_revocation_is_not_restored(keys, dev, tmp_path):
    """
    Neither over the newer ring nor, since the trail knows of it, where that is lost.
    """
    noted(dev)
    keys("backup", tmp_path / "backup.jwe")
    gone = revoked(dev)
    for _ in range(2):
        noted(dev)
    newer = dev.ring.read_bytes()

    over = keys("restore", tmp_path / "backup.jwe")
    assert dev.ring.read_bytes() == newer
    dev.ring.unlink()
    lost = keys("restore", tmp_path / "backup.jwe")
    assert not dev.ring.exists()

    assert (over.exit_code, lost.exit_code) == (2, 2)
    assert "on record" in lost.stderr
    accepted = keys("restore", "--accept-older", "the disk is gone", tmp_path / "backup.jwe")
    assert accepted.exit_code == 0
    assert "revoke and suspend it again" in accepted.stdout
    assert ring_of(dev)[0].active.kid == gone
    assert {"trail_restarted", "ring_restored"} <= {entry.event for entry in with_stores(dev, _entries)}


async def _entries(stores):
    return [row.record.entry for row in (await stores.ledger.page()).rows]


def test_taking_an_older_ring_needs_a_reason(keys, dev, tmp_path):
    """
    It stands in the trail for ever.
    """
    keys("backup", tmp_path / "backup.jwe")

    assert keys("restore", "--accept-older", " ", tmp_path / "backup.jwe").exit_code == 2


def test_a_damaged_ring_is_replaced_only_when_it_is_set_aside(keys, dev, tmp_path):
    """
    What does not open is kept under another name.
    """
    keys("backup", tmp_path / "backup.jwe")
    whole = dev.ring.read_bytes()
    dev.ring.write_bytes(whole[:-10])

    refused = keys("restore", tmp_path / "backup.jwe")
    assert dev.ring.read_bytes() == whole[:-10]
    done = keys("restore", "--set-aside", tmp_path / "backup.jwe")

    assert (refused.exit_code, done.exit_code) == (2, 0)
    (aside,) = dev.ring.parent.glob("demo.jwe.2*")
    assert aside.read_bytes() == whole[:-10]
    assert str(aside) in done.stdout
    assert ring_of(dev)[1] == 2


FAULTS = {
    "cut off": lambda blob, _dev: blob[:-10],
    "another workspace": lambda _blob, dev: _sealed(dev, "other", 5),
    "another ring": lambda _blob, dev: _sealed(dev, "demo", 5),
}


def _sealed(dev, workspace, revision):
    settings = load_settings(dev.config, {})
    ring = create_ring(workspace, now=int(time.time()), times=key_times(settings))
    return seal_ring(ring, revision=revision, keys=load_sealing_keys(settings))


@pytest.mark.parametrize("fault", FAULTS)
def test_what_does_not_belong_there_is_not_restored(fault, keys, dev, tmp_path):
    """
    What is stored stays, byte for byte.
    """
    before = dev.ring.read_bytes()
    (tmp_path / "backup.jwe").write_bytes(FAULTS[fault](before, dev))

    result = keys("restore", tmp_path / "backup.jwe")

    assert result.exit_code == 2
    assert dev.ring.read_bytes() == before


def test_an_older_ring_that_the_trail_does_not_know_of_is_told_from_a_newer_one(keys, dev, tmp_path):
    """
    Where nothing is on record, what is stored says which is the newer one.
    """
    keys("backup", tmp_path / "backup.jwe")
    revoked(dev)

    result = keys("restore", tmp_path / "backup.jwe")

    assert result.exit_code == 2
    assert "revision 2 is known" in result.stderr


def test_a_backup_that_is_not_there_is_said(keys, tmp_path):
    """
    In one line.
    """
    result = keys("restore", tmp_path / "none.jwe")

    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


def new_sealing_key(dev, *, keep_old):
    """
    Configure a new first sealing key, with the old one behind it or without.
    """
    write_sealing_key(dev.folder / "new.key", generate_sealing_key("new"))
    text = dev.config.read_text()
    entry = '[[sealing_keys]]\nid = "new"\nfile = "new.key"\n\n'
    at = text.index("[[sealing_keys]]")
    rest = text[at:] if keep_old else text[text.index("[[workspaces]]") :]
    dev.config.write_text(text[:at] + entry + rest)


def test_resealing_makes_the_old_sealing_key_needless(keys, dev):
    """
    F06: a second time there is nothing to do, and without the old key everything opens.
    """
    ring, _ = ring_of(dev)
    new_sealing_key(dev, keep_old=True)

    first, second = keys("reseal"), keys("reseal")

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "resealed" in first.stdout
    assert "already" in second.stdout
    assert with_stores(dev, lambda stores: sealed_with(stores.ring)) == "new"
    text = dev.config.read_text()
    dev.config.write_text(text.replace(text[text.rindex("[[sealing_keys]]") : text.index("[[workspaces]]")], ""))
    assert ring_of(dev)[0].records == ring.records
    (entry,) = records(dev)
    assert (entry.event, entry.after) == ("ring_resealed", {"sealing_key": "new"})
    assert entry.before["sealing_key"].startswith("dev-")


def test_resealing_without_the_old_key_names_it_and_goes_on(keys, dev):
    """
    The rings of other workspaces are resealed all the same, and the end says that not all are.
    """
    old = load_sealing_keys(load_settings(dev.config, {})).current.id
    dev.add_workspace()
    new_sealing_key(dev, keep_old=False)
    settings = load_settings(dev.config, {})
    ring = create_ring("other", now=int(time.time()), times=key_times(settings))
    with_stores(dev, lambda stores: stores.ring.save(ring, expect=0), workspace="other")
    before = dev.ring.read_bytes()

    result = keys("reseal")

    assert result.exit_code == 2
    assert f"'{old}'" in result.stderr
    assert "other: is sealed with it already" in result.stdout
    assert dev.ring.read_bytes() == before
    assert keys("reseal", "--workspace", "other").exit_code == 0


def test_rings_are_copied_to_redis_and_back(keys, shared):
    """
    With their trails, which go on in the new place; the copy back carries on the old trail.
    """
    noted(shared, "file")
    ring, revision = ring_of(shared, "file")

    there = keys("copy", "--from", "file", "--to", "redis")
    assert there.exit_code == 0
    assert "with 1 audit records" in there.stdout
    assert ring_of(shared) == ring_of(shared, "redis")
    assert ring_of(shared)[0].records == ring.records
    assert ring_of(shared)[1] == revision + 1
    assert [entry.event for entry in records(shared)] == ["ring_copied", "admin_called"]
    gone = revoked(shared)

    back = keys("copy", "--from", "redis", "--to", "file")

    assert back.exit_code == 0
    assert ring_of(shared, "file")[0].record(gone).state == "revoked"
    assert [entry.event for entry in records(shared, "file")] == ["ring_copied", "ring_copied", "admin_called"]
    assert records(shared, "file")[0].after["from"] == records(shared, "file")[1].after["to"]


def test_a_newer_ring_is_not_copied_over(keys, shared):
    """
    Copying the same way twice would lose what was changed in the new place.
    """
    assert keys("copy", "--from", "file", "--to", "redis").exit_code == 0
    before = ring_of(shared, "redis")

    again = keys("copy", "--from", "file", "--to", "redis")

    assert again.exit_code == 2
    assert "revision" in again.stderr
    assert ring_of(shared, "redis") == before


def test_another_ring_is_not_copied_over(keys, shared):
    """
    Whatever its revision.
    """
    times = key_times(load_settings(shared.config, {}))
    stranger = create_ring("demo", now=int(time.time()), times=times)
    with_stores(shared, lambda stores: stores.ring.save(stranger, expect=0), "redis")

    result = keys("copy", "--from", "file", "--to", "redis")

    assert result.exit_code == 2
    assert ring_of(shared, "redis") == (stranger, 1)


def test_the_trail_of_another_history_is_not_carried_on(keys, shared):
    """
    A ring that was changed in both places is not copied, and neither trail changes.
    """
    assert keys("copy", "--from", "file", "--to", "redis").exit_code == 0
    for _ in range(3):
        noted(shared, "file")
    before = head_of(ring_of(shared, "redis")[0])

    result = keys("copy", "--from", "file", "--to", "redis")

    assert result.exit_code == 2
    assert "another history" in result.stderr
    assert isinstance(before, Head)
    assert head_of(ring_of(shared, "redis")[0]) == before
    assert records(shared, "redis")[0].event == "ring_copied"


def test_a_copy_that_was_cut_short_is_finished(keys, shared, monkeypatch):
    """
    The trail is there and the ring is not: the next copy goes on. When both are there, there is nothing to do.
    """
    noted(shared, "file")

    async def interrupted(*_args, **_kwargs):
        raise RevisionConflict(where="there", expected=0, found=1)

    with monkeypatch.context() as patch:
        patch.setattr(keys_copy, "import_blob", interrupted)
        assert keys("copy", "--from", "file", "--to", "redis").exit_code == 2
    again = keys("copy", "--from", "file", "--to", "redis")

    assert again.exit_code == 0
    assert "with 0 audit records" in again.stdout
    assert records(shared)[0].event == "ring_copied"


def test_what_is_there_already_is_left(keys, shared):
    """
    A backup that was restored there, say.
    """
    shutil.copy(shared.ring, shared.folder / "backup.jwe")
    blob = shared.ring.read_bytes()
    with_stores(shared, lambda stores: stores.ring.write_blob(blob, expect=0), "redis")

    result = keys("copy", "--from", "file", "--to", "redis")

    assert result.exit_code == 0
    assert "already" in result.stdout
    assert ring_of(shared, "redis")[1] == 1


def test_a_copy_needs_two_places(keys, dev):
    """
    Both of them known.
    """
    same = keys("copy", "--from", "file", "--to", "file")
    none = keys("copy", "--from", "file", "--to", "redis")

    assert (same.exit_code, none.exit_code) == (2, 2)
    assert "same place" in same.stderr
    assert "keys_redis_url" in none.stderr


def test_a_redis_that_forgets_is_not_copied_to(keys, shared):
    """
    Unless the configuration says that it may.
    """
    shared.change("keys_redis_allow_volatile = true", "keys_redis_allow_volatile = false")

    result = keys("copy", "--from", "file", "--to", "redis", "--workspace", "demo")

    assert result.exit_code == 2
    assert "may lose keys" in result.stderr


def test_a_ring_is_created_where_the_configuration_says(run, shared):
    """
    Once, on record, and all commands find it there; nothing appears in the data folder.
    """
    shared.ring.unlink()

    first, second = run(INIT, "--config", shared.config), run(INIT, "--config", shared.config)
    listed = json.loads(run(LIST, "--config", shared.config, "--json").stdout)
    checked = run(config_cli.command, "check", "--config", shared.config)

    assert (first.exit_code, second.exit_code, checked.exit_code) == (0, 0, 0)
    assert "already" in second.stdout
    ring, _ = ring_of(shared, "redis")
    assert listed["active"] == ring.active.kid
    assert ring.active.kid in checked.stdout
    assert [(entry.event, entry.target) for entry in records(shared)] == [("ring_created", ring.active.kid)]
    assert not shared.ring.exists()


@pytest.mark.parametrize("where", ["file", "redis"])
def test_a_ring_that_was_lost_is_not_made_anew(where, run, shared, redis_server):
    """
    F08: the trail knows that there was one; what is lost is to be restored.
    """
    if where == "file":
        shared.config.write_text(shared.config.read_text().replace("keys_redis", "#"))
    shared.ring.unlink()
    assert run(INIT, "--config", shared.config).exit_code == 0
    if where == "file":
        shared.ring.unlink()
    else:
        with redis_server.client() as client:
            client.delete("cc:k:{demo}")

    result = run(INIT, "--config", shared.config)

    assert result.exit_code == 2
    assert "on record" in result.stderr
    with pytest.raises(RingMissing):
        ring_of(shared)


def test_of_two_that_create_at_once_one_does(run, shared, monkeypatch):
    """
    F01: the other one leaves the ring as it is.
    """
    shared.ring.unlink()

    async def overtaken(self, ring, *, expect):
        raise RevisionConflict(where=self.where, expected=expect, found=1)

    monkeypatch.setattr(RedisKeyStore, "save", overtaken)
    result = run(INIT, "--config", shared.config, "--workspace", "demo")

    assert result.exit_code == 2
    assert "already" in result.stderr


def test_a_redis_that_may_not_have_keys_is_a_wrong_configuration(run, shared, redis_server):
    """
    One that forgets, and one that does not answer; either is told before a service trips over it.
    """
    shared.change("keys_redis_allow_volatile = true", "keys_redis_allow_volatile = false")
    forgetful = run(config_cli.command, "check", "--config", shared.config)
    redis_server.kill()
    gone = run(config_cli.command, "check", "--config", shared.config)

    assert (forgetful.exit_code, gone.exit_code) == (2, 2)
    assert "may lose keys" in forgetful.stderr
    assert redis_server.url in gone.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_is_for(command, run):
    """
    Help comes without a configuration.
    """
    found = COMMANDS[command]

    result = run(found, "--help")

    assert isinstance(found, click.Command)
    assert (found.name, result.exit_code) == (command, 0)
