"""
`customer-context keys` on a real folder: what is refused leaves the ring as it is, byte for byte.
"""

import asyncio
import json
import time
from datetime import UTC, datetime

import pytest

from issuer.cli.audit import command as audit_command
from issuer.cli.keys import command
from issuer.orchestrator import Ask
from verifier.compact import parse_compact

# A second is promised; the rest is for a machine that is busy with other tests.
NOTICED_S = 3
FORCED = ("--force", "--reason", "laptop stolen")


FAULTS = {
    "missing": lambda dev: dev.ring.unlink(),
    "empty": lambda dev: dev.ring.write_bytes(b""),
    "cut off": lambda dev: dev.ring.write_bytes(dev.ring.read_bytes()[:-40]),
    "readable by others": lambda dev: dev.ring.chmod(0o640),
    "sealed with another key": lambda dev: dev.exchange_sealing_key(),
    "sealed under another name": lambda dev: dev.change('id = "dev-', 'id = "older-'),
    "sealing key readable by others": lambda dev: dev.sealing_key.chmod(0o644),
}


@pytest.fixture
def keys(run, dev):
    """
    Run a subcommand of `keys` on the test's own folder.
    """

    def keys(*words):
        return run(command, words[0], "--config", dev.config, *words[1:])

    return keys


@pytest.fixture
def listed(keys):
    """
    The keys as `list --json` shows them, those of a state or all.
    """

    def listed(state=None):
        rows = json.loads(keys("list", "--json").stdout)["keys"]
        return [row for row in rows if state in (None, row["state"])]

    return listed


def state_of(dev):
    return (dev.ring.read_bytes(), dev.ring.stat().st_mode) if dev.ring.exists() else None


def test_list_shows_what_each_key_waits_for(keys, listed):
    """
    One key signs and two wait; in text each has a line with its state and what happens next, in JSON also every instant.
    """
    text = keys("list")

    rows = listed()
    assert text.exit_code == 0
    assert [row["state"] for row in rows] == ["active", "standby", "standby"]
    assert [line.split()[:2] for line in text.stdout.splitlines()[1:]] == [[row["kid"], row["state"]] for row in rows]
    assert "rotation due" in text.stdout
    assert text.stdout.count("may become active") == 2
    assert rows[1]["next"] == {"what": "may_activate", "at": rows[1]["mature_at"]}
    assert rows[1]["mature_at"] - rows[1]["published_at"] == 350


def test_list_says_what_does_not_stand_on_a_key(keys, listed, dev):
    """
    A key that the configuration revokes is pointed out, whatever its state says.
    """
    kid = listed("standby")[0]["kid"]
    dev.change('path = "/w/demo"', f'revoked_kids = ["{kid}"]\npath = "/w/demo"')

    text = keys("list").stdout

    assert f"note: Key {kid} is revoked in the configuration" in text


def test_an_early_rotation_is_refused_with_the_earliest_instant(keys, listed, dev):
    """
    While no standby is mature nothing rotates, and the message says from when on it will.
    """
    before = state_of(dev)
    mature_at = datetime.fromtimestamp(listed("standby")[0]["mature_at"], UTC)

    result = keys("rotate")

    assert result.exit_code == 2
    assert mature_at.strftime("%Y-%m-%dT%H:%M:%SZ") in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert state_of(dev) == before


@pytest.mark.parametrize("reason", [(), ("--reason", ""), ("--reason", "two\nlines"), ("--reason", "x" * 501)])
def test_force_needs_a_reason(keys, dev, reason):
    """
    An early rotation without a reason that can be kept is refused.
    """
    before = state_of(dev)

    result = keys("rotate", "--force", *reason)

    assert result.exit_code == 2
    assert "reason" in result.stderr
    assert state_of(dev) == before


def test_a_forced_rotation_signs_with_a_standby_at_once(keys, listed):
    """
    The oldest standby signs, the active key retires with the reason, a new standby is published, and the price is said.
    """
    active, standby = listed("active")[0]["kid"], listed("standby")[0]["kid"]

    result = keys("rotate", *FORCED, "--json")

    facts = json.loads(result.stdout)
    retiring = listed("retiring")[0]
    assert result.exit_code == 0
    assert (facts["retired"], facts["active"]) == (active, standby)
    assert [row["kid"] for row in listed("active")] == [standby]
    assert (retiring["kid"], retiring["reason"], retiring["unpublish_at"]) == (
        active,
        FORCED[-1],
        facts["unpublish_at"],
    )
    assert facts["standby"] in [row["kid"] for row in listed("standby")]
    assert len(facts["notices"]) == 1


def test_a_rotation_in_text_has_a_line_for_each_fact(keys):
    """
    Instants are written out in UTC, and what an operator must know follows as notes.
    """
    result = keys("rotate", *FORCED)

    lines = result.stdout.splitlines()
    named = [line[:18].strip() for line in lines if not line.startswith("note: ")]
    assert named == ["workspace", "retiring", "active", "standby", "leaves the key set", "may rotate from"]
    assert all(line.endswith("Z") for line in lines if line.startswith(("leaves", "may")))
    assert lines[-1].startswith("note: ")


def test_a_planned_rotation_needs_no_force(keys, listed, monkeypatch: pytest.MonkeyPatch):
    """
    Once a standby is mature, rotating is one word, and there is nothing to warn of.
    """
    mature_at = listed("standby")[0]["mature_at"]
    monkeypatch.setattr("issuer.cli.on_stores.now", lambda: mature_at)

    result = keys("rotate", "--json")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["notices"] == []


def test_a_rotation_may_name_the_key_it_expects(keys, listed, dev):
    """
    `--expected-active` makes a command that is run twice rotate once.
    """
    active = listed("active")[0]["kid"]

    first = keys("rotate", "--expected-active", active, *FORCED)
    after = state_of(dev)
    second = keys("rotate", "--expected-active", active, *FORCED)

    assert (first.exit_code, second.exit_code) == (0, 2)
    assert len(second.stderr.splitlines()) == 1
    assert state_of(dev) == after


def test_revoking_the_active_key_lets_a_standby_sign(keys, listed):
    """
    The key leaves the key set, a standby signs in its place, and until when verifiers may still trust it is said.
    """
    active, standby = listed("active")[0]["kid"], listed("standby")[0]["kid"]

    result = keys("revoke", active, "--reason", "leaked", "--json")

    facts = json.loads(result.stdout)
    revoked = listed("revoked")[0]
    assert result.exit_code == 0
    assert (facts["revoked"], facts["active"]) == (active, standby)
    assert (revoked["kid"], revoked["published"], revoked["reason"]) == (active, False, "leaked")
    assert facts["trusted_until"] == revoked["revoked_at"] + 285
    assert facts["notices"]


def test_revoking_all_keys_starts_anew(keys, listed):
    """
    The ring itself was stolen: every key goes, a new one signs, and two new ones wait.
    """
    before = {row["kid"] for row in listed()}

    result = keys("revoke-all", "--reason", "backup stolen")

    assert result.exit_code == 0
    assert {row["state"] for row in listed() if row["kid"] in before} == {"revoked"}
    assert [row["state"] for row in listed() if row["kid"] not in before] == ["active", "standby", "standby"]
    assert any(line.startswith("note: ") for line in result.stdout.splitlines())


def test_what_is_done_is_on_record(keys, listed, run, dev):
    """
    Under the name of the user that the system knows, from this machine.
    """
    keys("rotate", *FORCED)
    keys("revoke", listed("active")[0]["kid"], "--reason", "leaked")

    told = json.loads(run(audit_command, "list", "--config", dev.config, "--json").stdout)
    assert [(record["event"], record["reason"]) for record in told["records"]] == [
        ("key_revoked", "leaked"),
        ("keys_rotated", "laptop stolen"),
    ]
    assert {(record["actor"]["kind"], record["source"]) for record in told["records"]} == {("cli", "local")}


def test_revoking_a_standby_leaves_the_active_key_alone(keys, listed):
    """
    The text says which key signs, and that is the one from before.
    """
    active, standby = listed("active")[0]["kid"], listed("standby")[1]["kid"]

    result = keys("revoke", standby, "--reason", "leaked")

    assert result.exit_code == 0
    assert ["active", active] in [line.split() for line in result.stdout.splitlines()]
    assert len(listed("standby")) == 2
    assert "(leaked)" in keys("list").stdout


@pytest.mark.parametrize("kid", ["-abc", "--abc", "-", "-h_-"])
def test_a_kid_may_begin_with_a_dash(keys, kid):
    """
    It is taken for a kid wherever it stands, and the answer is that the ring has none of it.
    """
    results = [keys("revoke", kid, "--reason", "leaked"), keys("revoke", "--reason", "leaked", kid)]

    assert [(result.exit_code, "holds no key" in result.stderr) for result in results] == [(2, True)] * 2


@pytest.mark.parametrize("words", [("no-such-kid", "--reason", "leaked"), ("no-such-kid",), ()])
def test_what_cannot_be_revoked_is_left_alone(keys, dev, words):
    """
    An unknown kid, a missing reason and a missing kid exit with 2.
    """
    before = state_of(dev)

    result = keys("revoke", *words)

    assert result.exit_code == 2
    assert state_of(dev) == before


@pytest.mark.parametrize("spoil", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize(
    "words", [("list",), ("rotate", *FORCED), ("revoke", "kid", "--reason", "leaked")], ids=["list", "rotate", "revoke"]
)
def test_a_ring_that_cannot_be_opened_is_left_as_it_is(keys, dev, spoil, words):
    """
    One line on standard error, exit status 2, and not a byte or a permission of the file is changed.
    """
    spoil(dev)
    before = state_of(dev)

    result = keys(*words)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("customer-context: ")
    assert state_of(dev) == before


@pytest.mark.parametrize("words", [("init",), ("list",), ("rotate",), ("revoke", "kid", "--reason", "leaked")])
def test_a_workspace_that_does_not_exist_is_refused(keys, dev, words):
    """
    A wrong name exits with 2 and names those there are.
    """
    before = state_of(dev)

    result = keys(*words, "--workspace", "dmeo")

    assert result.exit_code == 2
    assert "demo" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert state_of(dev) == before


def test_init_creates_what_is_missing_and_nothing_else(keys, dev):
    """
    Of two workspaces only the one without a ring gets one.
    """
    dev.add_workspace()
    before = state_of(dev)

    result = keys("init")

    assert result.exit_code == 0
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["demo", "other"]
    assert state_of(dev) == before
    assert keys("list", "--workspace", "other").exit_code == 0


def test_init_of_a_workspace_that_has_a_ring_is_refused(keys, dev):
    """
    Asked for by name, a ring that is there is an error, and it stays.
    """
    before = state_of(dev)

    result = keys("init", "--workspace", "demo")

    assert result.exit_code == 2
    assert state_of(dev) == before


@pytest.mark.parametrize("fault", ["empty", "cut off", "readable by others", "sealed with another key"])
def test_init_never_replaces_what_it_cannot_read(keys, dev, fault):
    """
    A file that is no readable ring is not taken for a missing one.
    """
    FAULTS[fault](dev)
    before = state_of(dev)

    result = keys("init")

    assert result.exit_code == 2
    assert state_of(dev) == before


def test_with_several_workspaces_one_must_be_named(keys, dev):
    """
    Nothing is done to a workspace that was not meant.
    """
    dev.add_workspace()
    before = state_of(dev)

    result = keys("rotate", *FORCED)

    assert result.exit_code == 2
    assert "--workspace" in result.stderr
    assert state_of(dev) == before


def test_a_running_service_notices_a_rotation_within_a_second(service, run):
    """
    The new standby is published and the new active key signs, without a restart.
    """
    known = set(service.kids())
    rotated = run(command, "rotate", "--config", service.dev.config, *FORCED, "--json")
    facts = json.loads(rotated.stdout)

    deadline = time.monotonic() + NOTICED_S
    while facts["standby"] not in service.kids() and time.monotonic() < deadline:
        time.sleep(0.05)

    now = time.time()
    ask = Ask(sub="cus_1", acr="low", auth_time=int(now), audience=service.orchestrator.audience, scope="orders:read")
    form = asyncio.run(service.orchestrator.form(ask, now))
    answer = service.exchange(form).json()
    assert set(service.kids()) == known | {facts["standby"]}
    assert parse_compact(answer["access_token"]).kid == facts["active"]
