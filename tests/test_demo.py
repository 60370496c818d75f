"""
The demonstration, run as `make demo` runs it.
"""

import re
import runpy
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import httpx2
import pytest

DEMO = Path(__file__).parent / "demo" / "demo.py"
LIMIT_S = 180
# What the demonstration promises to show, in its order: a piece of the step's line and of its outcome.
STEPS = (
    ("a read token", "200"),
    ("same token again", "401 replayed"),
    ("a write token opens", "200"),
    ("retry", "200"),
    ("changed argument", "403 action"),
    ("write token at a read endpoint", "403 action"),
    ("another audience", "401 audience"),
    ("expired token", "401 expired"),
    ("no token at all", "401 missing"),
    ("level too low", "401 step_up"),
    ("challenge reads", 'error="insufficient_user_authentication"'),
    ("read back", "level='high'"),
    ("stronger sign-in", "200"),
    ("rotated early, by force and with a reason", ""),
    ("from before the rotation", "200"),
    ("from after it", "200"),
)


@pytest.fixture(scope="module")
def transcript() -> list[str]:
    ran = subprocess.run([sys.executable, DEMO], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.splitlines()


def test_every_step_has_its_line(transcript: list[str]):
    """
    Each step is one numbered line with what came out, in the order of the story.
    """
    steps = [re.fullmatch(r" *(\d+)  (.*)", line) for line in transcript[1:-1]]

    assert [int(step[1]) for step in steps] == list(range(1, len(STEPS) + 1))
    for step, (said, outcome) in zip(steps, STEPS, strict=True):
        assert said in step[2]
        assert outcome in step[2].partition(said)[2]


def test_it_ends_with_a_verdict_and_shows_no_token(transcript: list[str]):
    """
    The last line says that all went well; nothing that could be used is on the screen.
    """
    assert transcript[-1] == "every step went as it should"
    assert "eyJ" not in "\n".join(transcript)


def test_a_step_that_goes_otherwise_ends_it():
    """
    An answer of another status, or with another reason, is noticed.
    """
    demo = runpy.run_path(str(DEMO))
    steps = demo["Demo"](orchestrator=None, config=Path(), partner="")
    accepted = httpx2.Response(200, json={"customer": "cus_1", "agent": "agt_1"})
    refused = httpx2.Response(401, json={"reason": "expired"})

    for answer in (accepted, refused):
        with pytest.raises(demo["Went"]):
            steps.expect("the same token again is refused", answer, 401, "replayed")


def test_a_demonstration_that_went_otherwise_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """
    The program exits with 1 then, and says which step it was.
    """
    demo = runpy.run_path(str(DEMO))
    parts = demo["main"].__globals__

    def otherwise(*_: object) -> None:
        raise demo["Went"]("a read token opens the read endpoint")

    monkeypatch.setitem(parts, "running", lambda *_: nullcontext())
    monkeypatch.setitem(parts, "Demo", otherwise)

    status = demo["main"]()

    assert status == 1
    assert "a read token opens the read endpoint" in capsys.readouterr().err
