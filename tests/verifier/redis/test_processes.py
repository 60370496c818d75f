"""
Processes that present the same tokens at the same time: each token is accepted once among them all.
"""

import subprocess
import sys
from pathlib import Path

from .processes import race

SOAK = Path(__file__).parents[2] / "soak" / "replay_soak.py"
TOKENS = [f"token-{number}" for number in range(200)]


def test_eight_processes_present_the_same_tokens(settled):
    """
    rp-atomic: of eight processes one hears of each of 200 tokens that it is the first, and the others that they are not.
    """
    heard = race(settled.url, processes=8, tokens=TOKENS)

    assert [sorted(outcomes) for outcomes in heard.values()] == [["accept"] + ["replay"] * 7] * len(TOKENS)


def test_fifty_at_once_through_two_stores(settled):
    """
    rp-atomic: of 50 concurrent uses of one token through two stores of one Redis exactly one passes.
    """
    heard = race(settled.url, processes=2, tokens=["one"], threads=25)

    assert sorted(heard["one"]) == ["accept"] + ["replay"] * 49


def test_the_soak_s_race():
    """
    The program that does this at length, with whole tokens and verifiers, does it briefly here.
    """
    command = [sys.executable, SOAK, "--only", "race", "--processes", "3", "--tokens", "100"]

    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "'accepted': 100" in ran.stdout
