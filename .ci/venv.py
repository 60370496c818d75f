"""
Put what this project needs into `.venv`, once, for every make target: the locked packages and the project itself, editable.

Nothing but a Python with `venv` is needed. An older one than the project's may start this: it looks for a newer one then.
Two that start at once take turns, and an environment that is there already is completed, never replaced.
"""

import fcntl
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements-dev.lock"
STAMP = VENV / ".installed"
HINT = "On Debian and Ubuntu: apt-get install python3 python3-venv"


def main() -> None:
    """
    Install unless the last installation is younger than what it was made from.
    """
    if sys.version_info < OLDEST:
        run(newer_python(), __file__)
        return
    VENV.mkdir(exist_ok=True)
    with (VENV / ".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        inputs = (LOCK, ROOT / "pyproject.toml")
        if not STAMP.exists() or any(STAMP.stat().st_mtime_ns < path.stat().st_mtime_ns for path in inputs):
            install()


def install() -> None:
    """
    Create what is missing of the environment; pip refuses every file whose hash is not in the lock.
    """
    if not (VENV / "bin" / "pip").exists():
        print("== .venv: creating it with", sys.executable, flush=True)
        if importlib.util.find_spec("ensurepip") is None:
            sys.exit(f"Python {sys.version.split()[0]} comes without venv. {HINT}")
        run(sys.executable, "-m", "venv", str(VENV))
    print("== .venv: installing what requirements-dev.lock names", flush=True)
    pip = (str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")
    run(*pip, "--require-hashes", "--requirement", str(LOCK))
    run(*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    STAMP.touch()


def newer_python() -> str:
    """
    Return a Python that the project runs on, or end with a hint.
    """
    for minor in range(OLDEST[1], OLDEST[1] + 10):
        found = shutil.which(f"python3.{minor}")
        if found and subprocess.call((found, "-c", ""), stderr=subprocess.DEVNULL) == 0:
            return found
    return sys.exit(f"Python 3.11 or newer is needed, with venv; this is {sys.version.split()[0]}. {HINT}")


def run(*command: str) -> None:
    """
    Run a command; end with its status when it fails.
    """
    status = subprocess.call(command)
    if status:
        sys.exit(status)


if __name__ == "__main__":
    main()
