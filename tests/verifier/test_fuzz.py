"""
A short run of the fuzzing that `make fuzz` runs at length: whatever comes in, only the one error comes out.
"""

import importlib
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"


@pytest.fixture
def fuzz(monkeypatch):
    """
    Import the program as it is when it is run.
    """
    monkeypatch.syspath_prepend(str(FUZZ))
    yield importlib.import_module("fuzz")
    for name in ("fuzz", "maker"):
        del sys.modules[name]


@pytest.mark.parametrize("seed", [1, 20261130])
def test_nothing_but_refusals_comes_out(fuzz, seed):
    """
    Random and mutated tokens, demands and headers are accepted or refused, and reach most of the reasons.
    """
    outcomes = {target.__name__: fuzz.run(target, inputs=500, seed=seed) for target in fuzz.TARGETS}

    assert all(counted.total() == 500 for counted in outcomes.values())
    for face in ("verify", "verify_async"):
        assert outcomes[face]["accepted"] > 10
        assert len(outcomes[face]) >= 9
    assert outcomes["read_challenge"].keys() == {"accepted", "nothing"}
    assert outcomes["read_authorization"].keys() == {"accepted", "missing", "request"}


def test_anything_else_is_a_find(fuzz):
    """
    An exception of another type ends the run, and says what was given.
    """

    def broken(_maker, inputs):
        for number in range(inputs):
            yield f"input {number}", lambda: {}["x"]

    with pytest.raises(AssertionError, match="input 0") as find:
        fuzz.run(broken, inputs=5, seed=1)

    assert isinstance(find.value.__cause__, KeyError)


@pytest.mark.parametrize(("find", "status"), [(False, 0), (True, 1)])
def test_the_program_prints_what_came_out(fuzz, monkeypatch, capsys, find, status):
    """
    Counts by reason are printed for each target, and a find ends the program with 1.
    """
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--inputs", "30", "--seed", "1"])
    if find:
        monkeypatch.setattr(fuzz, "TARGETS", (lambda *_: iter([("x", lambda: {}["x"])]),))

    assert fuzz.main() == status
    assert ("malformed" in capsys.readouterr().out) is not find
