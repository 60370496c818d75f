"""
What the README shows, held against what there is: its lines run, its TOML loads, commands and options exist, no reason lacks.
"""

import re
import shlex
from itertools import takewhile
from pathlib import Path

import click
import pytest

from issuer.init_config import write_development_config
from issuer.settings import build_registry, load_settings, settings_warnings
from verifier.cli_group import group
from verifier.errors import REASONS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXTS = [README, *((ROOT / name).read_text(encoding="utf-8") for name in (".github/SECURITY.md", "keys/README.md"))]
TEN_LINES, REDIS_LINES, STEP_UP_LINES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
(PROVIDER,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
CONSOLES = "".join(re.findall(r"```console\n(.*?)```", README, re.DOTALL)).replace("\\\n", "")
DEVIATIONS = ("RFC 9068", "RS256", "bearer", "RFC 9700")
COMMANDS = [
    *re.findall(r"^\$ customer-context (.*)$", CONSOLES, re.MULTILINE),
    *(line for text in TEXTS for line in re.findall(r"`customer-context ([^`]+)`", text)),
]


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


def test_the_lines_for_several_processes_open_a_store(redis_server):
    """
    With the URL of a Redis they build a store and open it.
    """
    program: dict[str, object] = {}

    exec(REDIS_LINES.replace("redis://...", redis_server.url), program)

    program["replay_store"].close()


def test_the_lines_of_an_orchestrator_ask_for_a_token_first():
    """
    The client is complete but for the two functions, and what it calls first is the one that mints.
    """
    asked = []

    def mint(request):
        asked.append(request)
        raise LookupError

    with pytest.raises(LookupError):
        exec(STEP_UP_LINES, {"mint": mint, "sign_in": asked.append})

    assert [(each.audience, each.conversation, each.demand) for each in asked] == [
        ("https://api.shop.example", "c-1", None)
    ]


def test_the_provider_that_is_shown_fits_into_what_init_writes(tmp_path):
    """
    Put into its connection, with a client that brings sign-ins, it loads without a warning and maps what it is said to map.
    """
    file = write_development_config(tmp_path, now=1_796_040_000).config
    text = file.read_text(encoding="utf-8")
    client = "  [[workspaces.clients]]"
    assert text.count(client) == text.count("  max_asserted_level") == 1
    text = text.replace(client, f"{PROVIDER}\n{client}")
    file.write_text(
        text.replace("  max_asserted_level", '  subject_tokens = ["sign_in"]\n  max_asserted_level'), "utf-8"
    )

    settings = load_settings(file, {})

    assert settings_warnings(settings) == ()
    (connection,) = build_registry(settings).workspace("demo").connections
    assert connection.provider.clients == {"shop-web": "orc_main"}
    assert connection.provider.acr == {"urn:shop:mfa": "high"}


@pytest.mark.parametrize("line", sorted(set(COMMANDS)))
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


def test_what_is_not_promised_is_said():
    """
    sec-sender-constrained, at-rs256-deviation: both deviations stand in the README, and the way on from bearer tokens with them.
    """
    security = " ".join(TEXTS[1].split())

    assert [word for word in DEVIATIONS if word not in README] == []
    assert [word for word in (*DEVIATIONS, "DPoP", "cnf.jkt") if word not in security] == []
