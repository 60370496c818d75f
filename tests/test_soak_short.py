"""
A short run of the soak that `make soak` runs at length: a few seconds of each part of it, with real processes, Redis and HTTP.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .redis_server import redis_binary

SOAK = Path(__file__).parent / "soak" / "soak.py"
LIMIT_S = 240
SECTIONS = ("rotations", "at_once", "stopped", "suspensions", "kills", "damage", "trail")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """
    Run the program as it is run by hand, and return what it found.
    """
    if redis_binary() is None:
        pytest.skip("there is no Redis to start: install the development dependencies, or redis-server")
    file = tmp_path_factory.mktemp("soak") / "facts.json"
    ran = subprocess.run(
        [sys.executable, SOAK, "--short", "--json", file], capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert file.exists(), ran.stdout + ran.stderr
    facts = json.loads(file.read_text())
    if facts["broken"] and facts["doubtful"]:
        pytest.skip("the machine paused for longer than a lease by the fast clock, so nothing can be told")
    assert ran.returncode == bool(facts["broken"]), ran.stdout + ran.stderr
    return facts


@pytest.mark.parametrize("section", SECTIONS)
def test_every_promise_is_kept(told, section):
    """
    In each part of the soak something was seen, and no promise broken.
    """
    assert len(told[section]) > 3
    assert [each for each in told["broken"] if each.startswith(f"{section}:")] == []


def test_no_part_is_left_out(told):
    """
    The program runs what is asserted about here, and nothing else.
    """
    assert told.keys() == {*SECTIONS, "broken", "doubtful"}
