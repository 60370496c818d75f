"""
The service that other implementations are held against: a process of its own, started as the demonstration does.
"""

import runpy
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from issuer.init_config import write_development_config
from issuer.orchestrator import Orchestrator, load_orchestrator

DEMO = runpy.run_path(str(Path(__file__).parents[1] / "demo" / "demo.py"))


@pytest.fixture(scope="session")
def orchestrator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestrator]:
    """
    Return the orchestrator of a service that runs.
    """
    folder = tmp_path_factory.mktemp("interop")
    origin = f"http://127.0.0.1:{DEMO['free_port']()}"
    config = write_development_config(folder / "dev", origin=origin, now=int(time.time())).config
    serve = [DEMO["COMMAND"], "serve", "--config", config, "--port", origin.rpartition(":")[2]]
    with DEMO["running"](serve, f"{origin}/health/ready", folder / "issuer.log"):
        yield load_orchestrator(config.parent / "orchestrator")
