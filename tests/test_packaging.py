"""
The wheel as a partner installs it: without extras, into an environment that has nothing else.
"""

import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
BASE = {"cryptography", "httpx2", "joserfc", "rfc8785"}
OPTIONAL = {"authlib", "click", "litestar", "msgspec", "prometheus-client", "pydantic", "redis", "structlog", "uvicorn"}

pytestmark = pytest.mark.packaging


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Return the interpreter of an environment that holds the wheel and what it asks for, in the versions of the lock.
    """
    folder = tmp_path_factory.mktemp("partner")
    pins = folder / "pins.txt"
    pins.write_text("\n".join(re.findall(r"^[^\s#]+==[^\s]+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)))
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    options = ["--quiet", "--no-compile", "--disable-pip-version-check", "--constraint", str(pins)]
    subprocess.run([str(python), "-m", "pip", "install", *options, str(wheel)], check=True)
    return python


def run(python: Path, code: str) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-I", "-W", "error", "-c", code]
    return subprocess.run(command, cwd=python.parent, capture_output=True, text=True, check=False)


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: Path):
    """
    Modules of the three packages, their type markers and the licence go out; tests and configuration stay.
    """
    names = ZipFile(wheel).namelist()

    expected = {
        path.relative_to(ROOT).as_posix()
        for top in ("issuer", "keys", "verifier")
        for path in (ROOT / top).rglob("*.py")
    }
    packed = {name for name in names if ".dist-info/" not in name}

    assert packed == expected | {"issuer/py.typed", "keys/py.typed", "verifier/py.typed"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_verifier_stands_alone(python: Path):
    """
    Without extras only the base dependencies come along, and the verifier imports in isolation without a warning.
    """
    listed = run(python, "import importlib.metadata as m; print(*(d.name.lower() for d in m.distributions()))")
    imported = run(python, "import verifier; verifier.CustomerContextVerifier; print(verifier.__file__)")

    installed = set(listed.stdout.replace("_", "-").split())
    assert installed >= BASE
    assert installed.isdisjoint(OPTIONAL)
    assert (imported.returncode, imported.stderr) == (0, "")
    assert Path(imported.stdout.strip()).is_relative_to(python.parent.parent)


def test_the_keys_stand_alone(python: Path):
    """
    The keys package imports with the base dependencies too.
    """
    imported = run(python, "import keys; keys.FileKeyStore")

    assert (imported.returncode, imported.stderr) == (0, "")


def test_the_command_says_which_extra_it_lacks(python: Path):
    """
    The command is there in every installation and names the extra that a subcommand needs.
    """
    command = [str(python.parent / "customer-context"), "verify"]

    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ended.returncode != 0
    assert "customer-context[cli]" in ended.stderr
    assert "Traceback" not in ended.stderr
