"""
`customer-context verify` and `explain` as they are typed: what goes in, what comes out, and the exit status.
"""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from joserfc import jwt
from joserfc.jwk import ECKey

from verifier import action_digest
from verifier.cli_verify import _token, explain_command, verify_command

FIXTURE = json.loads((Path(__file__).parents[1] / "data" / "fixture.json").read_text())
ISSUER, AUDIENCE, NOW = FIXTURE["issuer"], FIXTURE["audience"], FIXTURE["now"]
BOTH = pytest.mark.parametrize("command", [verify_command, explain_command], ids=["verify", "explain"])
IDEMPOTENCY_KEY = "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"
ARGUMENTS = '{"orderId": "A-1001"}'
BOUND = {
    "action": "cancel_order",
    "actionDigest": action_digest(action="cancel_order", arguments=ARGUMENTS, idempotency_key=IDEMPOTENCY_KEY),
    "idempotencyKey": IDEMPOTENCY_KEY,
    "confirmation": {"by": "client", "at": NOW - 20},
}


class PublishedKeys(ThreadingHTTPServer):
    """
    An issuer that publishes the fixture's keys on loopback and counts how often it was asked.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/w/acme"


class _Handler(BaseHTTPRequestHandler):
    server: PublishedKeys

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = json.dumps(FIXTURE["jwks"]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """
        Say nothing.
        """


@pytest.fixture
def published() -> Iterator[PublishedKeys]:
    with PublishedKeys() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def jwks(tmp_path: Path) -> str:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps(FIXTURE["jwks"]))
    return str(path)


def signed(**claims: object) -> str:
    """
    Sign the fixture's token with changed claims.
    """
    payload = FIXTURE["base_claims"] | {"jti": "7SM1F1g6eyIwdzoeMtPQaQ"} | claims
    return jwt.encode(FIXTURE["base_header"], payload, ECKey.import_key(FIXTURE["private"]["k1"]), algorithms=["ES256"])


def run(command: click.Command, *words: str, stdin: str | bytes | None = None, **options: str) -> Result:
    """
    Run a command at the fixture's time; *options* stand over its issuer and audience.
    """
    chosen = {"issuer": ISSUER, "audience": AUDIENCE, "at": str(NOW)} | options
    flags = [word for name, value in chosen.items() for word in (f"--{name.replace('_', '-')}", value)]
    return CliRunner().invoke(command, [*words, *flags], input=stdin)


def outcomes(result: Result) -> dict[str, str]:
    return {row["check"]: row["outcome"] for row in json.loads(result.stdout)["checks"]}


def test_an_accepted_token_ends_with_0(jwks: str):
    """
    `verify` prints one line a check and the verdict, which depends on the first use alone.
    """
    result = run(verify_command, signed(), jwks=jwks)

    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[-1] == "accepted, were it used for the first time"
    assert lines[0].split() == ["ok", "malformed"]
    assert "  ok     expired            expires in 50.0 s" in lines
    assert "  -      replayed           only a verifier with its replay store can tell" in lines


def test_a_refused_token_ends_with_1(jwks: str):
    """
    `verify` says which check fails, why, and the reason a verifier would give.
    """
    result = run(verify_command, signed(), jwks=jwks, audience=f"{AUDIENCE}/")

    assert result.exit_code == 1
    assert "  FAILS  audience           differs only by a trailing slash" in result.stdout.splitlines()
    assert result.stdout.splitlines()[-1] == "refused: audience"


def test_explain_shows_what_the_token_says_and_ends_with_0_either_way(jwks: str):
    """
    `explain` prints header, claims and every check; a token that would be refused is explained all the same.
    """
    result = run(explain_command, signed(exp=NOW - 3), jwks=jwks)

    header, _, rest = result.stdout.partition("\n")
    claims, end = json.JSONDecoder().raw_decode(rest.removeprefix("claims  "))
    assert result.exit_code == 0
    assert json.loads(header.removeprefix("header  ")) == FIXTURE["base_header"]
    assert claims["sub"] == FIXTURE["base_claims"]["sub"]
    assert "  FAILS  expired            expired 3.0 s ago, tolerance 0 s" in rest[end:].splitlines()


@BOTH
def test_the_token_comes_from_the_arguments_or_from_standard_input(command: click.Command, jwks: str):
    """
    A token is read bare or as a pasted `Bearer` value, quoted or not, from the arguments or from standard input.
    """
    token = signed()

    results = [
        run(command, token, jwks=jwks),
        run(command, f"Bearer {token}", jwks=jwks),
        run(command, "bearer", token, jwks=jwks),
        run(command, stdin=f"{token}\n", jwks=jwks),
        run(command, "-", stdin=f"  Bearer {token}\r\n", jwks=jwks),
    ]

    assert {result.exit_code for result in results} == {0}
    assert len({result.stdout for result in results}) == 1


@BOTH
@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("spoil", ["{}", "{}x", "{} {}", "Bearer Bearer {}", "{}.{}", "x{}", "{}, {}"])
def test_the_signature_is_never_printed(command: click.Command, flags: tuple[str, ...], spoil: str, jwks: str):
    """
    No 20 characters of the third part come out, on either stream, whatever else is wrong with the token.
    """
    token = signed()
    signature = token.rpartition(".")[2]
    pieces = {signature[start : start + 20] for start in range(len(signature) - 19)}

    results = [
        run(command, *flags, spoil.replace("{}", token), jwks=jwks),
        run(command, *flags, *spoil.replace("{}", token).split(), jwks=jwks),
        run(command, *flags, stdin=spoil.replace("{}", token), jwks=jwks),
        run(command, *flags, token, jwks=jwks, issuer="https://elsewhere.test", tolerance="61"),
        *(
            run(command, *flags, jwks=jwks, **{option: spoil.replace("{}", token)})
            for option in ("at", "tolerance", "level", "confirmation", "max_auth_age", "max_confirmation_age")
        ),
    ]

    assert not [piece for piece in pieces for result in results if piece in result.output]
    assert {result.exit_code for result in results} <= {0, 1, 2}


@pytest.mark.parametrize("stdin", [b"", b"\xff\xfe\x00", "ὁ λόγος".encode(), b"a" * 100_000])
def test_junk_is_a_malformed_token(stdin: bytes, jwks: str):
    """
    Whatever octets arrive on standard input are judged, not an error of the program.
    """
    result = run(verify_command, "--json", stdin=stdin, jwks=jwks)

    assert result.exit_code == 1
    assert json.loads(result.stdout)["reason"] == "malformed"


def test_a_closed_standard_input_holds_no_token(monkeypatch: pytest.MonkeyPatch):
    """
    A program that is started without one is told that there is no token, not where the program broke.
    """
    monkeypatch.setattr(sys, "stdin", None)

    assert _token("") == ""
    assert _token("-") == "-"


def test_verify_as_json(jwks: str):
    """
    JSON has the verdict, the reason and each check with its outcome and note.
    """
    accepted = run(verify_command, "--json", signed(), jwks=jwks)
    refused = run(verify_command, "--json", signed(scope="orders.read"), jwks=jwks, scope="orders.write")

    assert (accepted.exit_code, refused.exit_code) == (0, 1)
    assert json.loads(accepted.stdout).keys() == {"accepted", "reason", "checks"}
    assert (json.loads(accepted.stdout)["accepted"], json.loads(accepted.stdout)["reason"]) == (True, None)
    assert (json.loads(refused.stdout)["accepted"], json.loads(refused.stdout)["reason"]) == (False, "scope")
    assert outcomes(refused)["scope"] == "fails"


def test_explain_as_json(jwks: str):
    """
    JSON of `explain` has header, claims, checks and the reason.
    """
    result = run(explain_command, "--json", signed(exp=NOW), jwks=jwks)

    shown = json.loads(result.stdout)
    assert result.exit_code == 0
    assert shown["header"] == FIXTURE["base_header"]
    assert shown["claims"]["exp"] == NOW
    assert shown["reason"] == "expired"
    assert outcomes(result)["expired"] == "fails"


def test_a_bound_token_is_not_accepted_where_no_action_is_named(jwks: str):
    """
    As in the library, a write token is refused by a call that names no action, and accepted by the one it is bound to.
    """
    token = signed(caplo=BOUND, acr="high", auth_time=NOW - 30)
    demand = {"action": "cancel_order", "arguments": ARGUMENTS, "idempotency_key": IDEMPOTENCY_KEY, "level": "high"}
    demand |= {"confirmation": "client", "max_confirmation_age": "60", "max_auth_age": "60", "scope": "orders.write"}

    unnamed = run(verify_command, "--json", token, jwks=jwks)
    named = run(verify_command, "--json", token, jwks=jwks, **demand)

    assert (unnamed.exit_code, json.loads(unnamed.stdout)["reason"]) == (1, "action")
    assert named.exit_code == 0
    assert {outcomes(named)[check] for check in ("scope", "action", "confirmation", "step_up")} == {"holds"}


def test_arguments_are_read_from_a_file(tmp_path: Path, jwks: str):
    """
    `@FILE` stands for the content of a file; arguments that are not strict JSON make the action fail, not the program.
    """
    (tmp_path / "good.json").write_text(ARGUMENTS)
    (tmp_path / "twice.json").write_text('{"orderId": 1, "orderId": 2}')
    token = signed(caplo=BOUND)

    good = run(verify_command, token, jwks=jwks, action="cancel_order", arguments=f"@{tmp_path / 'good.json'}")
    twice = run(verify_command, token, jwks=jwks, action="cancel_order", arguments=f"@{tmp_path / 'twice.json'}")

    assert good.exit_code == 0
    assert (twice.exit_code, twice.stdout.splitlines()[-1]) == (1, "refused: action")


def test_the_clock_tolerance_is_taken_into_account(jwks: str):
    """
    A token that has expired by less than the tolerance is accepted, and the measured skew stands beside it.
    """
    result = run(verify_command, signed(exp=NOW - 3), jwks=jwks, tolerance="5")

    assert result.exit_code == 0
    assert "expired 3.0 s ago, within the tolerance" in result.stdout


def test_without_an_instant_the_token_is_judged_now(jwks: str):
    """
    The fixture's token expired long ago.
    """
    words = [signed(), "--issuer", ISSUER, "--audience", AUDIENCE, "--jwks", jwks]

    result = CliRunner().invoke(verify_command, words)

    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "refused: expired")


@BOTH
@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": "61"},
        {"tolerance": "-1"},
        {"tolerance": "0.5"},
        {"at": "soon"},
        {"at": "nan"},
        {"at": "inf"},
        {"at": "-1"},
        {"scope": "two  spaces"},
        {"scope": 'a"quote'},
        {"level": "gold"},
        {"max_auth_age": "86401"},
        {"max_auth_age": "-1"},
        {"action": "cancel_order"},
        {"action": "cancel order", "arguments": "{}"},
        {"arguments": "{}"},
        {"idempotency_key": IDEMPOTENCY_KEY},
        {"confirmation": "client"},
        {"confirmation": "me", "action": "cancel_order", "arguments": "{}"},
        {"max_confirmation_age": "5"},
        {"action": "cancel_order", "arguments": "@/nowhere/arguments.json"},
        {"jwks": "/nowhere/jwks.json"},
    ],
    ids=str,
)
def test_a_bad_option_is_a_usage_error(command: click.Command, options: dict[str, Any], jwks: str):
    """
    What makes no sense exits with 2, a usage line and one that says what is wrong; nothing is judged.
    """
    result = run(command, signed(), **({"jwks": jwks} | options))

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Usage: ")
    assert "Error: " in result.stderr


@pytest.mark.parametrize("missing", ["--issuer", "--audience"])
def test_issuer_and_audience_are_required(missing: str):
    """
    Nothing is guessed from the token.
    """
    given = {"--issuer": ISSUER, "--audience": AUDIENCE}
    del given[missing]

    result = CliRunner().invoke(verify_command, [signed(), *(word for pair in given.items() for word in pair)])

    assert result.exit_code == 2
    assert missing in result.stderr


@pytest.mark.parametrize("text", ["", "no JSON", '{"keys": []}', '{"keys": [{"kty": "oct"}]}', " " * 65_537])
def test_a_key_set_that_cannot_be_used_is_a_usage_error(text: str, tmp_path: Path):
    """
    A file without a usable key, or larger than a key set may be, exits with 2 and names the option.
    """
    path = tmp_path / "jwks.json"
    path.write_text(text)

    result = run(verify_command, signed(), jwks=str(path))

    assert result.exit_code == 2
    assert "Error: --jwks: " in result.stderr


@pytest.mark.parametrize(
    "issuer", ["http://issuer.test", "issuer.test", "https://issuer.test/?a", "HTTPS://ISSUER.TEST"]
)
def test_an_issuer_that_keys_are_not_fetched_from_is_a_usage_error(issuer: str):
    """
    Keys are fetched over https, or http on loopback, from one spelling of a URL only.
    """
    result = run(verify_command, signed(), issuer=issuer)

    assert result.exit_code == 2
    assert "Error: --issuer: " in result.stderr


def test_keys_are_fetched_from_the_issuer(published: PublishedKeys):
    """
    Without `--jwks` the key comes from the issuer's key set, in one request.
    """
    result = run(verify_command, signed(iss=published.issuer), issuer=published.issuer)

    assert result.exit_code == 0
    assert published.asked == ["/w/acme/.well-known/jwks.json"]


@BOTH
def test_with_a_key_set_nothing_is_fetched(command: click.Command, published: PublishedKeys, jwks: str, tmp_path: Path):
    """
    `--jwks` makes the command work without a network, also when the key is not in the file.
    """
    (tmp_path / "other.json").write_text(json.dumps({"keys": FIXTURE["jwks"]["keys"][1:]}))
    token = signed(iss=published.issuer)

    known = run(command, "--json", token, issuer=published.issuer, jwks=jwks)
    unknown = run(command, "--json", token, issuer=published.issuer, jwks=str(tmp_path / "other.json"))

    assert [json.loads(result.stdout)["reason"] for result in (known, unknown)] == [None, "key"]
    assert published.asked == []


def test_keys_that_cannot_be_fetched_are_said_so(published: PublishedKeys):
    """
    When nobody answers, the refusal is `keys_unavailable`, with exit status 1 and no traceback.
    """
    issuer = published.issuer
    published.server_close()

    result = run(verify_command, "--json", signed(iss=issuer), issuer=issuer)

    assert result.exit_code == 1
    assert json.loads(result.stdout)["reason"] == "keys_unavailable"
    assert outcomes(result)["signature"] == "not_checked"


def test_what_a_token_says_cannot_steer_the_terminal(jwks: str):
    """
    Control characters in claims are printed escaped.
    """
    result = run(explain_command, signed(sub="\x1b[2Jcus\u202e_1"), jwks=jwks)

    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout
    assert "\\u001b[2Jcus\\u202e_1" in result.stdout
