"""
`customer-context init` as it is typed; what it writes is the matter of `test_init_config`.
"""

import re
import stat
from pathlib import Path

import pytest

from issuer.cli.config import command as config_command
from issuer.cli.init import command


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_written_can_be_served(run, tmp_path: Path):
    """
    Every file is named, the admin's secret is shown once, and the configuration passes its check.
    """
    folder = tmp_path / "dev"

    result = run(command, folder, "--origin", "http://localhost:9000")
    checked = run(config_command, "check", "--config", folder / "customer-context.toml")

    lines = result.stdout.splitlines()
    written = [Path(line.removeprefix("wrote ")) for line in lines if line.startswith("wrote ")]
    secret = re.search(r"cca_[A-Za-z0-9_-]+", result.stdout)[0]
    assert result.exit_code == 0
    assert folder / "customer-context.toml" in written
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in written)
    assert lines[-1].startswith(f"next: customer-context serve --config {folder}")
    assert not any(secret.encode() in content for content in contents(folder).values())
    assert (checked.exit_code, checked.stdout.splitlines()[-1]) == (0, "ok")
    assert "http://localhost:9000/w/demo" in checked.stdout


def test_the_folder_is_dot_dev_when_none_is_named(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """
    Without an argument `.dev` of the working directory is written.
    """
    monkeypatch.chdir(tmp_path)

    result = run(command)

    assert result.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == [".dev"]


def test_nothing_that_exists_is_replaced(run, dev):
    """
    A second run ends with one line and status 2, and every file is as it was.
    """
    before = contents(dev.folder)

    result = run(command, dev.folder)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert contents(dev.folder) == before


@pytest.mark.parametrize(
    "origin", ["http://id.example.com", "https://id.example.com/", "id.example.com", "https://a b"]
)
def test_an_origin_that_cannot_be_one_is_refused(run, tmp_path: Path, origin: str):
    """
    Only https, or http on loopback, without anything behind it; nothing is written otherwise.
    """
    result = run(command, tmp_path / "dev", "--origin", origin)

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said_in_one_line(run, tmp_path: Path):
    """
    A file in the way of the folder ends in one line, not in a traceback.
    """
    (tmp_path / "file").touch()

    result = run(command, tmp_path / "file" / "dev")

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
