"""
`customer-context token` against a running service: what it prints is a token, and what goes wrong is one line.
"""

import json
import shutil
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from issuer.cli.token import command
from verifier import CustomerContextError, CustomerContextVerifier, MemoryReplayStore

READ = ("--sub", "cus_48213", "--scope", "orders:read")
WRITE = ("--sub", "cus_48213", "--scope", "orders:write", "--action", "cancel_order")
IDEMPOTENCY_KEY = "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"


@pytest.fixture
def verifier(service):
    return CustomerContextVerifier(
        issuer=service.orchestrator.issuer,
        audience=service.orchestrator.audience,
        replay_store=MemoryReplayStore(),
    )


@pytest.fixture
def ask(run, service):
    """
    Ask the running service, as the orchestrator that it knows.
    """
    return lambda *words: run(command, "--orchestrator", service.dev.orchestrator, *words)


@pytest.fixture
def elsewhere(service, tmp_path):
    """
    The orchestrator's folder, changed: `elsewhere(issuer)` sends it to another place.
    """
    folder = shutil.copytree(service.dev.orchestrator, tmp_path / "orchestrator")
    facts = json.loads((folder / "orchestrator.json").read_text())

    def elsewhere(issuer):
        (folder / "orchestrator.json").write_text(json.dumps(facts | {"issuer": issuer}))
        return folder

    return elsewhere


@pytest.fixture
def answering():
    """
    Something else than an issuer: `answering(status, body)` starts it and returns its URL.
    """
    servers = []

    def answering(status, body):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """
                Say nothing.
                """

        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield answering
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_read_token_is_printed(ask, verifier):
    """
    One line comes out, and it is a token that the verifier accepts, with the level and the age that were asked for.
    """
    result = ask(*READ, "--level", "high", "--auth-age", "30")

    context = verifier.verify(result.stdout.strip(), scope="orders:read", level="high", max_auth_age_seconds=40)
    assert (result.exit_code, result.stderr) == (0, "")
    assert len(result.stdout.splitlines()) == 1
    assert (context.sub, context.actor, context.client_id) == ("cus_48213", "agt_support", "orc_main")


def test_a_write_token_stands_for_its_action(ask, verifier):
    """
    The token opens the action with the arguments and the key it was asked for, and nothing else.
    """
    arguments = '{"orderId": "A-1001", "refund": 12.5}'

    token = ask(*WRITE, "--arguments", arguments, "--idempotency-key", IDEMPOTENCY_KEY).stdout.strip()

    with pytest.raises(CustomerContextError) as refusal:
        verifier.verify(token, action="cancel_order", arguments={"orderId": "A-1002"})
    context = verifier.verify(token, action="cancel_order", arguments=arguments, confirmation="client")
    assert refusal.value.reason == "action"
    assert context.idempotency_key == IDEMPOTENCY_KEY


def test_a_write_without_more_has_no_arguments_and_a_new_key(ask, verifier):
    """
    Arguments are {} when none are given, and each confirmed action has an idempotency key of its own.
    """
    tokens = [ask(*WRITE).stdout.strip() for _ in range(2)]

    contexts = [verifier.verify(token, action="cancel_order", arguments={}) for token in tokens]
    assert len({context.idempotency_key for context in contexts}) == 2


def test_the_whole_answer_as_json(ask):
    """
    `--json` shows the answer as the token endpoint gave it, with the digest of what was confirmed.
    """
    result = ask(*WRITE, "--json")

    answer = json.loads(result.stdout)
    assert (answer["token_type"], answer["scope"]) == ("Bearer", "orders:write")
    # The subject token was signed a moment before, perhaps in the second before, and no token outlives it.
    assert answer["expires_in"] in {59, 60}
    assert answer["authorization_details"][0]["action"] == "cancel_order"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
@pytest.mark.parametrize("words", [READ, (*WRITE, "--arguments", """{"note": "it's $HOME `x` \\"é\\""}""")])
def test_the_curl_command_gets_a_token(ask, verifier, words):
    """
    What `--curl` prints is a command for any shell; it survives quotes and gets a token.
    """
    printed = ask(*words, "--curl").stdout

    ran = subprocess.run(["sh", "-c", printed], capture_output=True, text=True, check=True, timeout=30)

    demand = {"action": "cancel_order", "arguments": words[-1]} if words is not READ else {}
    assert verifier.verify(json.loads(ran.stdout)["access_token"], **demand).sub == "cus_48213"


def test_printing_curl_asks_nobody(run, elsewhere):
    """
    `--curl` works without a service.
    """
    result = run(command, "--orchestrator", elsewhere("http://127.0.0.1:1/w/demo"), *READ, "--curl")

    assert result.exit_code == 0
    assert result.stdout.startswith("curl ")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--sub", "cus_1", "--scope", "orders:write"), "invalid_scope"),
        (("--sub", "cus_1", "--scope", "nothing"), "invalid_scope"),
        (("--sub", "cus_1", "--audience", "https://elsewhere.example"), "invalid_target"),
        (("--sub", "cus_1", "--action", "drop_table"), "invalid_authorization_details"),
        ((*WRITE, "--confirmed-at", "0"), "invalid_authorization_details"),
        ((*WRITE, "--idempotency-key", ""), "invalid_authorization_details"),
        (("--sub", "", "--scope", "orders:read"), "invalid_request"),
    ],
)
def test_a_refusal_is_one_line_with_the_issuer_s_code(ask, words, error):
    """
    What the issuer refuses ends with 2 and its registered code; nothing that was asked for is silently replaced.
    """
    result = ask(*words)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert f" 400 {error}: " in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--sub", "cus_1", "--level", "gold"),
        ("--sub", "cus_1", "--auth-age", "-1"),
        ("--sub", "cus_1", "--arguments", "{}"),
        ("--sub", "cus_1", "--idempotency-key", IDEMPOTENCY_KEY),
        ("--sub", "cus_1", "--confirmed-at", "0"),
        (*WRITE, "--arguments", ""),
        (*WRITE, "--arguments", "[]"),
        (*WRITE, "--arguments", '{"a": 1, "a": 2}'),
    ],
)
def test_a_bad_option_is_a_usage_error(ask, words):
    """
    What makes no sense exits with 2 and a usage line, and nobody is asked.
    """
    result = ask(*words)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Usage: ")


@pytest.mark.parametrize("option", ["--scope", "--audience"])
def test_octets_that_are_no_text_are_said_so_in_one_line(ask, option):
    """
    What a terminal of another encoding hands over does not end in a traceback.
    """
    result = ask(*READ, option, "orders:read\udcff")

    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert "UTF-8" in result.stderr


def test_a_service_that_does_not_run_is_said_so_in_one_line(run, elsewhere):
    """
    Without an issuer there is no traceback, but the URL that nobody answers at.
    """
    with socket.create_server(("127.0.0.1", 0)) as closed:
        issuer = f"http://127.0.0.1:{closed.getsockname()[1]}/w/demo"

    result = run(command, "--orchestrator", elsewhere(issuer), *READ)

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert f"{issuer}/oauth/token" in result.stderr


@pytest.mark.parametrize("issuer", ["http://[::1", "ftp://127.0.0.1", "127.0.0.1", ""])
def test_an_issuer_that_is_no_url_is_one_line(run, elsewhere, issuer):
    """
    A damaged orchestrator.json does not end in a traceback.
    """
    result = run(command, "--orchestrator", elsewhere(issuer), *READ)

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>"),
        (200, b"{}"),
        (200, b'{"access_token": 1}'),
        (404, b"gone"),
        (302, b""),
        (503, b'{"status": 503}'),
    ],
)
def test_another_server_is_not_taken_for_the_issuer(run, elsewhere, answering, status, body):
    """
    Whatever else answers, one line says that it was no token.
    """
    result = run(command, "--orchestrator", elsewhere(answering(status, body)), *READ)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("orchestrator.json", None),
        ("orchestrator.json", "{}"),
        ("orchestrator.json", "not JSON"),
        ("orchestrator.json", '{"issuer": 1, "client_id": "", "namespace": "", "audience": "", "agent": ""}'),
        ("client.jwk.json", None),
        ("subject.jwk.json", '{"kty": "EC"}'),
    ],
)
def test_a_folder_that_is_no_orchestrator_is_one_line(run, elsewhere, name, text):
    """
    A missing or damaged file ends with 2 and names the folder; no part of a key is shown.
    """
    folder = elsewhere("http://127.0.0.1:1/w/demo")
    (folder / name).unlink()
    if text is not None:
        (folder / name).write_text(text)

    result = run(command, "--orchestrator", folder, *READ)

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert str(folder) in result.stderr


def test_a_sign_in_is_brought_from_a_file(ask, tmp_path):
    """
    The id of a sign-in goes as the subject token of its own type, and never stands among the words of the command.
    """
    file = tmp_path / "sign-in"
    file.write_text("iDdLLG1D" * 5 + "iDd\n")

    shown = ask("--sign-in", file, "--scope", "orders:read", "--curl")

    assert f"subject_token={'iDdLLG1D' * 5}iDd " in shown.stdout
    assert "subject_token_type=urn:caplo:params:oauth:token-type:sign-in" in shown.stdout


def test_a_customer_is_named_in_one_way(ask, tmp_path):
    """
    By an id or by a sign-in; without either, and with both, nobody is asked.
    """
    file = tmp_path / "sign-in"
    file.write_text("x")

    results = [ask("--scope", "orders:read"), ask("--sub", "cus_1", "--sign-in", file)]

    assert [result.exit_code for result in results] == [2, 2]
    assert all("exactly one of --sub and --sign-in" in result.stderr for result in results)


def test_two_tokens_are_two_tokens(ask, verifier):
    """
    Each call signs its own assertions, so that asking again is no replay.
    """
    tokens = [ask(*READ).stdout.strip() for _ in range(2)]

    assert {verifier.verify(token).sub for token in tokens} == {"cus_48213"}
    assert tokens[0] != tokens[1]


def test_a_confirmation_of_long_ago_is_passed_on_as_it_is(ask):
    """
    `--confirmed-at` is what the issuer judges: within half an hour it mints.
    """
    recent = ask(*WRITE, "--confirmed-at", str(int(time.time()) - 60))
    old = ask(*WRITE, "--confirmed-at", str(int(time.time()) - 1800))

    assert (recent.exit_code, old.exit_code) == (0, 2)
