"""
What the README shows, held against what there is: its ten lines run, its commands and options exist, its reasons are all of them.
"""

import re
import shlex
from itertools import takewhile
from pathlib import Path

import click
import pytest

from verifier.cli_group import group
from verifier.errors import REASONS

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
TEN_LINES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
CONSOLES = "".join(re.findall(r"```console\n(.*?)```", README, re.DOTALL)).replace("\\\n", "")
COMMANDS = re.findall(r"^\$ customer-context (.*)$", CONSOLES, re.MULTILINE)


def test_the_ten_lines_run():
    """
    The example is complete but for the function of the API, and answers what a verifier refuses.
    """
    api: dict[str, object] = {}
    exec(TEN_LINES, api)

    answers = [api["cancel_order"](headers, b"{}") for headers in ({}, {"authorization": "Bearer a.b.c"})]

    assert [(status, body) for status, _, body in answers] == [
        (401, {"reason": "missing"}),
        (401, {"reason": "malformed"}),
    ]


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_exists_with_its_options(line: str):
    """
    A command that is shown is one of `customer-context`, and has every option it is shown with.
    """
    words = [*takewhile(lambda word: word not in {"<", ">", "#"}, shlex.split(line, comments=True))]
    command: click.Command | None = group
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words.pop(0))
    assert command is not None
    known = {option for parameter in command.params for option in parameter.opts}

    assert {word for word in words if word.startswith("--")} <= known


def test_every_reason_is_explained_once():
    """
    The table of reasons has every reason of a refusal, and no other word.
    """
    table = re.search(r"\| Reason \|.*?\n\n", README, re.DOTALL)
    assert table is not None
    first_cells = [row.split("|")[1] for row in table[0].splitlines()[2:] if row]

    assert sorted(reason for cell in first_cells for reason in re.findall(r"`(\w+)`", cell)) == sorted(REASONS)
