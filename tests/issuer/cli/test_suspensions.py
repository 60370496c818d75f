"""
`customer-context suspensions` on a real folder: added, listed, lifted, and on record.
"""

import json

import pytest

from issuer.cli.audit import command as audit_command
from issuer.cli.suspensions import command

CUSTOMER = ("customer", "cus_48213", "--namespace", "shop-login", "--reason", "account taken over")


@pytest.fixture
def suspensions(run, dev):
    """
    Run a subcommand of `suspensions` on the test's own folder.
    """

    def suspensions(*words):
        return run(command, words[0], "--config", dev.config, *words[1:])

    return suspensions


def listed(suspensions):
    return json.loads(suspensions("list", "--json").stdout)["suspensions"]


def test_what_was_added_is_listed_and_can_be_lifted(suspensions, run, dev):
    """
    A suspension has an id, which lifts it; all of that stands in the trail.
    """
    added = suspensions("add", "client", "orc_main", "--reason", "leaked", "--json")
    text = suspensions("list")

    suspension_id = json.loads(added.stdout)["id"]
    assert f"{suspension_id}  client orc_main" in text.stdout
    assert "until it is lifted" in text.stdout
    lifted = suspensions("lift", suspension_id)
    assert (lifted.exit_code, lifted.stdout.split()[:2]) == (0, ["lifted", suspension_id])
    assert listed(suspensions) == []
    assert "nobody and nothing is suspended" in suspensions("list").stdout
    told = json.loads(run(audit_command, "list", "--config", dev.config, "--json").stdout)
    assert [record["event"] for record in told["records"]] == ["suspension_lifted", "suspension_added"]


def test_a_customer_is_shown_by_a_hash(suspensions):
    """
    Neither the answer nor the list repeats the id.
    """
    added = suspensions("add", *CUSTOMER)
    text = suspensions("list")

    assert added.exit_code == 0
    (row,) = listed(suspensions)
    assert f"customer {row['customer_hash']} of shop-login" in text.stdout
    assert "cus_48213" not in added.stdout + text.stdout


def test_a_suspension_may_end_by_itself(suspensions):
    """
    `--for` gives it an end.
    """
    added = suspensions("add", "agent", "agt_support", "--reason", "x", "--for", "600", "--json")

    facts = json.loads(added.stdout)
    assert 590 <= facts["until"] - facts["at"] <= 610
    assert "until 20" in suspensions("list").stdout


def test_lifting_as_json(suspensions):
    """
    For programs.
    """
    added = json.loads(suspensions("add", "action", "cancel_order", "--reason", "x", "--json").stdout)

    lifted = json.loads(suspensions("lift", added["id"], "--json").stdout)

    assert lifted["lifted"]["value"] == "cancel_order"


@pytest.mark.parametrize(
    "words",
    [
        ("add", "client", "orc_main"),
        ("add", "tenant", "x", "--reason", "x"),
        ("add", "client", "orc_main", "--reason", ""),
        ("add", "client", "a\nb", "--reason", "x"),
        ("add", "client", "x" * 300, "--reason", "x"),
        ("add", "client", "orc_main", "--reason", "x", "--namespace", "shop-login"),
        ("add", "customer", "cus_1", "--reason", "x"),
        ("add", "client", "orc_main", "--reason", "x", "--for", "0"),
        ("lift", "sus_none"),
        ("list", "--workspace", "nobody"),
    ],
)
def test_what_cannot_be_done_is_refused(suspensions, words):
    """
    Exit status 2 and a message; nobody is suspended.
    """
    result = suspensions(*words)

    assert result.exit_code == 2
    assert result.stderr
    assert listed(suspensions) == []


def test_there_is_room_for_so_many(suspensions):
    """
    One too many is refused in a line.
    """
    results = [
        suspensions("add", "customer", f"{at:0>1000}", "--namespace", "shop-login", "--reason", "x") for at in range(18)
    ]

    assert results[-1].exit_code == 2
    assert "room" in results[-1].stderr
