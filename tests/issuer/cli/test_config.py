"""
`customer-context config check`: what is wrong is said, all of it, and nothing is changed.
"""

import shutil

import pytest

from issuer.cli.config import command


def test_a_good_configuration_is_ok(run, dev):
    """
    Each workspace is summed up in a line with its issuer and the key that signs.
    """
    result = run(command, "check", "--config", dev.config)

    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.splitlines()[0].startswith("demo: http://127.0.0.1:8000/w/demo; ")
    assert result.stdout.splitlines()[-1] == "ok"


def test_the_environment_names_the_file_too(run, dev, monkeypatch: pytest.MonkeyPatch):
    """
    `CUSTOMER_CONTEXT_CONFIG` stands for `--config`, and variables stand over the file.
    """
    monkeypatch.setenv("CUSTOMER_CONTEXT_CONFIG", str(dev.config))
    monkeypatch.setenv("CUSTOMER_CONTEXT_ORIGIN", "https://id.example.com")

    result = run(command, "check")

    assert result.exit_code == 0
    assert "https://id.example.com/w/demo" in result.stdout


def test_no_configuration_at_all_says_how_to_get_one(run, monkeypatch: pytest.MonkeyPatch):
    """
    Without a file the message names the option, the variable and `init`.
    """
    monkeypatch.delenv("CUSTOMER_CONTEXT_CONFIG", raising=False)

    result = run(command, "check")

    assert result.exit_code == 2
    assert all(word in result.stderr for word in ("--config", "CUSTOMER_CONTEXT_CONFIG", "init"))


def test_everything_that_is_wrong_is_named_with_its_line(run, dev):
    """
    Two faults give two lines, each with the line and the field to fix.
    """
    dev.change('confirmation = "client"', 'confirmation = "nobody"')
    dev.change('agents = ["agt_support"]', "agents = []")

    result = run(command, "check", "--config", dev.config)

    lines = result.stderr.splitlines()
    assert result.exit_code == 2
    assert result.stdout == ""
    assert [line.count(str(dev.config)) for line in lines] == [1, 1]
    assert "workspaces[0].connections[0].actions[0].confirmation" in lines[0]
    assert "workspaces[0].clients[0].agents" in lines[1]


def test_a_doubt_is_a_warning(run, dev):
    """
    What is seldom meant is said on standard error, and is no error.
    """
    dev.config.write_text(dev.config.read_text().replace("https://api.shop.example", "https://api.shop.example/"))

    result = run(command, "check", "--config", dev.config)

    assert result.exit_code == 0
    assert result.stderr.startswith("warning: ")


def test_every_ring_is_looked_at(run, dev):
    """
    A workspace whose ring is missing is named beside those that are fine, and none is created.
    """
    dev.add_workspace()

    result = run(command, "check", "--config", dev.config)

    assert result.exit_code == 2
    assert result.stdout.splitlines()[0].startswith("demo: ")
    assert "ok" not in result.stdout.splitlines()
    assert any(line.startswith("other: ") for line in result.stderr.splitlines())
    assert not dev.ring.with_name("other.jwe").exists()


def test_a_key_file_that_is_missing_is_named(run, dev):
    """
    Files that the configuration names are read too.
    """
    shutil.rmtree(dev.folder / "clients")

    result = run(command, "check", "--config", dev.config)

    assert result.exit_code == 2
    assert "jwks_file" in result.stderr
