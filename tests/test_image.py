"""
The image, as far as it goes without an engine: what the Dockerfile says, done step by step in a folder of its own.

The build stage is carried out line by line, with the paths moved into the folder; then the service is started with the command
line of the final stage and asked how it is with the image's own health check.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

Instruction = tuple[str, str]


def stages() -> list[list[Instruction]]:
    """
    Return the instructions of each stage, as pairs of name and argument.
    """
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    starts = [index for index, (name, _) in enumerate(lines) if name == "FROM"]
    ends = [*starts[1:], len(lines)]
    return [[(name, argument) for name, argument in lines[start:end]] for start, end in zip(starts, ends, strict=True)]


def last(stage: list[Instruction], name: str) -> str:
    return [argument for each, argument in stage if each == name][-1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def build(stage: list[Instruction], root: Path) -> None:
    """
    Carry out a stage with *root* in the place of `/`, and this Python as the base image's.
    """
    (root / "bin").mkdir()
    (root / "bin" / "python").symlink_to(sys.executable)
    # Compiling what is installed takes as long as installing it, and changes nothing that is looked at here.
    env = {**os.environ, "PATH": f"{root}/bin:/usr/bin:/bin", "PIP_NO_COMPILE": "1"}
    work = root
    for name, argument in stage:
        if name == "WORKDIR":
            work = root / argument.lstrip("/")
            work.mkdir(parents=True)
        elif name == "COPY":
            *sources, target = argument.split()
            for source in sources:
                copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                copy(ROOT / source, work / target)
        elif name == "RUN":
            command = argument.replace("/opt/", f"{root}/opt/")
            subprocess.run(command, shell=True, cwd=work, check=True, env=env)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("image")
    build(stages()[0], root)
    return root / "opt" / "venv"


@pytest.fixture
def service(environment: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """
    Start what the image starts, on a port of its own, and yield the process and the port.
    """
    final, port = stages()[1], str(free_port())
    env = {
        "PATH": f"{environment}/bin:/usr/bin:/bin",
        "CUSTOMER_CONTEXT_CONFIG": str(tmp_path / "customer-context.toml"),
    }
    init = ["customer-context", "init", str(tmp_path), "--origin", f"http://127.0.0.1:{port}"]
    subprocess.run(init, check=True, env=env)
    command = [*json.loads(last(final, "ENTRYPOINT")), *json.loads(last(final, "CMD"))]
    with subprocess.Popen([port if word == "8000" else word for word in command], env=env, cwd=tmp_path) as process:
        yield process, port
        process.kill()


def health(environment: Path, port: str) -> int:
    check = json.loads(last(stages()[1], "HEALTHCHECK").partition("CMD ")[2])
    command = [word.replace(":8000/", f":{port}/") for word in check]
    return subprocess.run(command, check=False, env={"PATH": f"{environment}/bin"}, capture_output=True).returncode


def test_the_image_holds_nothing_that_built_it_and_runs_as_nobody():
    """
    Two stages on one tagged base; the final one takes the environment alone, has a fixed user without rights and a health check.
    """
    first, final = stages()

    assert re.fullmatch(r"python:3\.\d+-slim-\w+ AS build", last(first, "FROM"))
    assert last(first, "FROM") == f"{last(final, 'FROM')} AS build"
    assert [argument for name, argument in final if name in ("COPY", "ADD")] == ["--from=build /opt/venv /opt/venv"]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", last(final, "USER"))
    assert "/health/live" in last(final, "HEALTHCHECK")


def test_every_file_the_image_is_built_from_is_let_through():
    """
    The builder is sent what the Dockerfile copies, and nothing besides.
    """
    copied = {word for name, argument in stages()[0] if name == "COPY" for word in argument.split()[:-1]}
    lines = (ROOT / ".dockerignore").read_text().splitlines()

    assert lines[1] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == copied


@pytest.mark.packaging
def test_the_image_serves(environment: Path, service: tuple[subprocess.Popen[bytes], str]):
    """
    The image's command line starts a service that its health check finds alive, that publishes keys, and that ends when told to.
    """
    process, port = service

    deadline = time.monotonic() + 30
    while health(environment, port) != 0 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)

    assert process.poll() is None
    assert health(environment, port) == 0
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/w/demo/.well-known/jwks.json", timeout=5) as answer:
        assert len(json.load(answer)["keys"]) == 3
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) in (0, -signal.SIGTERM)
