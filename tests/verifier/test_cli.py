"""
The command itself: it is there in every installation, finds its subcommands and says which extra they need.
"""

import subprocess
import sys
from importlib.metadata import EntryPoint, version
from pathlib import Path

import pytest
from click.testing import CliRunner

from verifier import cli, cli_group
from verifier.cli_group import group

COMMAND = Path(sys.executable).with_name("customer-context")
SUBCOMMANDS = ("audit", "config", "doctor", "explain", "init", "keys", "serve", "suspensions", "token", "verify")


def without(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """
    Run the command in a Python that lacks *module*.
    """
    code = f"import sys; sys.modules[{module!r}] = None; from verifier.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_installed_command_says_its_version():
    """
    What the distribution installs runs the group.
    """
    ran = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True, timeout=60)

    assert ran.stdout.split()[-1] == version("customer-context")


def test_help_lists_every_subcommand_without_loading_any(monkeypatch: pytest.MonkeyPatch):
    """
    `--help` names each subcommand with what it is for, and works where none of them could be loaded.
    """
    monkeypatch.setattr(EntryPoint, "load", lambda _: pytest.fail("loaded"))

    result = CliRunner().invoke(group, ["--help"], terminal_width=120)

    rows = [line.split(maxsplit=1) for line in result.stdout.partition("Commands:\n")[2].splitlines()]
    assert result.exit_code == 0
    assert [name for name, _ in rows] == list(SUBCOMMANDS)
    assert all(summary.endswith(".") for _, summary in rows)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_a_subcommand_is_there(name: str):
    """
    Each subcommand loads and has a help text of its own.
    """
    result = CliRunner().invoke(group, [name, "--help"], prog_name="customer-context")

    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: customer-context {name} ")


def test_a_subcommand_that_does_not_exist_is_a_usage_error():
    """
    An unknown name exits with 2.
    """
    result = CliRunner().invoke(group, ["mint"])

    assert result.exit_code == 2
    assert "mint" in result.stderr


@pytest.mark.parametrize("missing", ["litestar", "uvicorn", "pydantic_settings"])
def test_a_missing_package_names_the_extra(missing: str):
    """
    A subcommand of the issuer says that it needs the extra issuer and exits with 2, without a traceback.
    """
    ended = without(missing, "serve")

    assert ended.returncode == 2
    assert "customer-context[issuer]" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_missing_redis_names_its_extra():
    """
    The doctor says that it needs the extra redis.
    """
    ended = without("redis", "doctor", "redis")

    assert ended.returncode == 2
    assert "customer-context[redis]" in ended.stderr


def test_the_verifier_s_subcommands_need_no_issuer():
    """
    `verify` runs where the service's packages are missing.
    """
    ended = without("litestar", "verify", "--help")

    assert (ended.returncode, ended.stderr) == (0, "")


def test_without_click_the_extra_cli_is_named():
    """
    An installation without extras has the command all the same; it says what it needs and exits with 2.
    """
    ended = without("click", "verify")

    assert ended.returncode == 2
    assert ended.stdout == ""
    assert "customer-context[cli]" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_another_module_that_is_missing_is_not_taken_for_an_extra(monkeypatch: pytest.MonkeyPatch):
    """
    A fault of the installation itself is shown as it is.
    """
    monkeypatch.setitem(sys.modules, "verifier.cli_group", None)

    with pytest.raises(ModuleNotFoundError) as raised:
        cli.main()

    assert raised.value.name == "verifier.cli_group"


def test_a_module_of_ours_that_is_missing_is_no_missing_extra(monkeypatch: pytest.MonkeyPatch):
    """
    A subcommand that cannot find our own code fails as such: no extra would bring it.
    """
    nowhere = EntryPoint("verify", "verifier.nowhere:command", "customer_context.commands")
    monkeypatch.setattr(cli_group, "_found", lambda: {"verify": nowhere})

    result = CliRunner().invoke(group, ["verify"])

    assert isinstance(result.exception, ModuleNotFoundError)


def test_main_runs_the_group_under_its_own_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """
    Messages speak of `customer-context`, however Python was started.
    """
    monkeypatch.setattr(sys, "argv", ["something", "--version"])

    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("customer-context")
