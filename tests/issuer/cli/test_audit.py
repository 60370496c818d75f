"""
`customer-context audit` on a real folder: what was done is listed, and what was tampered with is found.
"""

import json
import os
from typing import get_args

import pytest

from issuer.audit import Finding, Findings, Head, Problem
from issuer.cli import administer
from issuer.cli.audit import _WORDS, command
from issuer.cli.keys import command as keys_command
from issuer.cli.suspensions import command as suspensions_command


@pytest.fixture
def audit(run, dev):
    """
    Run a subcommand of `audit` on the test's own folder.
    """

    def audit(*words):
        return run(command, words[0], "--config", dev.config, *words[1:])

    return audit


@pytest.fixture
def trail(run, dev):
    """
    A trail of five records, as a file.
    """
    for at in range(5):
        words = ("add", "--config", dev.config, "agent", f"agt_{at}", "--reason", "exercise")
        assert run(suspensions_command, *words).exit_code == 0
    return dev.folder / "data" / "audit" / "demo.jsonl"


def head(audit):
    return json.loads(audit("list", "--json").stdout)["head"]


def test_records_are_listed(audit, trail):
    """
    A line each, the latest first, with who did what, when and why.
    """
    result = audit("list", "--limit", "2")

    first, *rows = result.stdout.splitlines()
    assert first == f"workspace demo, head {head(audit)}"
    assert [row.split()[0] for row in rows] == ["5", "4"]
    assert "suspension_added agt_4: done, cli" in rows[0]
    assert rows[0].endswith("from local  (exercise)")


@pytest.mark.parametrize(("words", "seqs"), [(("--after", "3"), [4, 5]), (("--before", "3"), [2, 1])])
def test_pages(audit, trail, words, seqs):
    """
    Behind a record in order, or before it.
    """
    told = json.loads(audit("list", *words, "--json").stdout)

    assert [record["seq"] for record in told["records"]] == seqs


@pytest.mark.parametrize(
    "words", [("--after", "1", "--before", "2"), ("--limit", "0"), ("--limit", "201"), ("--after", "-1")]
)
def test_a_page_that_is_none_is_refused(audit, words):
    """
    Exit status 2.
    """
    assert audit("list", *words).exit_code == 2


def test_a_trail_as_it_was_written_is_sound(audit, trail):
    """
    Exit status 0, with every head that was noted on the way.
    """
    early, late = json.loads(audit("list", "--json", "--before", "3").stdout)["records"][0], head(audit)

    result = audit("verify", "--expect-head", late, "--expect-head", f"{early['seq']}.{early['hash']}")
    facts = json.loads(audit("verify", "--json").stdout)

    assert (result.exit_code, result.stdout) == (0, f"sound: 5 records, head {late}\n")
    assert facts == {
        "sound": True,
        "records": 5,
        "head": late,
        "findings": [],
        "omitted": 0,
        "not_carried_out": [],
        "beyond_head": 0,
        "by_hash_alone": 0,
    }


def change(lines):
    lines[2] = lines[2].replace(b"exercise", b"accident")


def drop(lines):
    del lines[2]


def cut(lines):
    del lines[4]


@pytest.mark.parametrize(
    ("tamper", "said"), [(change, "record 3: was changed"), (drop, "record 3: is missing"), (cut, "record 5")]
)
def test_what_was_tampered_with_is_found(audit, trail, tamper, said):
    """
    Exit status 1, and which record it is.
    """
    lines = trail.read_bytes().splitlines(keepends=True)
    tamper(lines)
    trail.write_bytes(b"".join(lines))

    result = audit("verify")
    facts = json.loads(audit("verify", "--json").stdout)

    assert result.exit_code == 1
    assert said in result.stdout
    assert result.stdout.splitlines()[-1].startswith("NOT sound")
    assert not facts["sound"]
    assert facts["findings"]


def test_another_trail_than_the_one_noted_is_found(audit, trail):
    """
    A head that was noted elsewhere is of another record.
    """
    link = head(audit).partition(".")[2]

    result = audit("verify", "--expect-head", f"3.{link}")

    assert result.exit_code == 1
    assert "record 3: is another one than the noted head stands for" in result.stdout


def test_a_head_that_is_none_is_refused(audit):
    """
    Exit status 2.
    """
    assert audit("verify", "--expect-head", "latest").exit_code == 2


def test_a_trail_goes_on_when_somebody_answers_for_it(audit, run, trail, dev):
    """
    Behind a cut tail nothing planned is done, until it is restarted with a reason; the verification goes on showing it.
    """
    trail.write_bytes(b"".join(trail.read_bytes().splitlines(keepends=True)[:3]))
    rotate = ("rotate", "--config", dev.config, "--force", "--reason", "exercise")
    refused = run(keys_command, *rotate)

    restarted = audit("restart", "--reason", "the disk was replaced")

    assert refused.exit_code == 2
    assert restarted.exit_code == 0
    assert run(keys_command, *rotate).exit_code == 0
    result = audit("verify")
    assert result.exit_code == 0
    assert "answers for it" in result.stdout


@pytest.mark.parametrize("reason", ["", " ", "two\nlines", "x" * 501])
def test_a_restart_needs_a_reason(audit, trail, reason):
    """
    One that says something and can be kept.
    """
    before = trail.read_bytes()

    assert audit("restart", "--reason", reason).exit_code == 2
    assert trail.read_bytes() == before


def test_a_revocation_without_a_trail_says_so(run, dev, audit, trail):
    """
    It is in force, a warning stands on standard error, and the trail is told with the next change.
    """
    trail.unlink()
    trail.mkdir()
    words = ("revoke-all", "--config", dev.config, "--reason", "stolen")

    result = run(keys_command, *words)

    assert result.exit_code == 0
    assert "note: The audit trail could not be written" in result.stdout
    assert "warning: audit spilled" in result.stderr


def test_everything_that_was_found_is_shown(audit, monkeypatch):
    """
    Spans of records, those beyond the list, what was not carried out or is under way, and what no key could prove.
    """
    found = Findings(
        is_sound=False,
        records=9,
        head=Head(9, "Tv8zM67ztTuWb6PFMOGvqOAd2oX7yCCEGig1-pPq6bM"),
        findings=(Finding(problem="missing", seq=3, last=5, line=3, acknowledged_by=7),),
        omitted=2,
        not_carried_out=(range(6, 8),),
        beyond_head=1,
        by_hash_alone=4,
    )
    monkeypatch.setattr(administer.StoreAdministration, "with_ledger", lambda *_: found)

    lines = audit("verify").stdout.splitlines()
    facts = json.loads(audit("verify", "--json").stdout)

    assert lines == [
        "line 3: records 3 to 5: is missing; record 7 answers for it",
        "and 2 more",
        "2 records were written and not carried out",
        "1 records stand behind the head that the ring knows: a change that goes on or crashed",
        "4 records are held by hashes alone; their sealing key is not configured",
        f"NOT sound: 9 records, head {found.head}",
    ]
    assert facts["not_carried_out"] == [[6, 7]]
    assert facts["findings"][0]["acknowledged_by"] == 7


def test_every_problem_has_words():
    """
    One that is found is never shown by its code alone.
    """
    assert set(_WORDS) == {word for words in get_args(Problem) for word in get_args(words)}


def test_the_operator_is_whom_the_system_knows(monkeypatch):
    """
    Not what a variable claims; a user without a name is known by number.
    """
    monkeypatch.setenv("USER", "somebody-else")
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert administer.operator().name != "somebody-else"

    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    assert administer.operator().name == "uid 4000000000"
