"""
`customer-context verify` and `explain`: a token in, check by check what holds and what does not. Neither uses the token up.
"""

import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from .bearer import bearer_token
from .claims import CONFIRMATIONS, is_time
from .demand import NOT_GIVEN, Demand, NotGiven, check_seconds, scope_words
from .errors import CustomerContextError
from .explain import Explanation, Finding, explain
from .fetch import jwks_url
from .fixed_key_source import FixedKeySource
from .jwk import MAX_DOCUMENT_OCTETS
from .key_source import KeySource
from .levels import LEVELS
from .procedure import Procedure

__all__ = ["explain_command", "verify_command"]

_MARKS: Final = {"holds": "ok", "fails": "FAILS", "not_checked": "-"}
_MAX_INPUT: Final = 64 * 1024

_Given = TypeVar("_Given")
_Read = TypeVar("_Read")


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(
        (
            # Any number of words, so that a value pasted without quotes is no error, which would print the token.
            click.argument("token", nargs=-1),
            click.option("--issuer", required=True, help="The workspace's issuer URL, exactly."),
            click.option("--audience", required=True, help="The API's own identifier, exactly."),
            click.option("--jwks", metavar="FILE", help="Use this key set instead of fetching the issuer's."),
            click.option("--tolerance", default=0, show_default=True, help="Clock tolerance in seconds, 0 to 60."),
            click.option("--at", type=float, help="Judge at this epoch second instead of now."),
            click.option("--scope", help="Scope words the call needs."),
            click.option("--action", help="The action the API is about to do."),
            click.option("--arguments", help="Its arguments as JSON, or @FILE."),
            click.option("--idempotency-key", help="The Idempotency-Key header, where the API gets one."),
            click.option(
                "--confirmation", type=click.Choice(CONFIRMATIONS), help="What has to stand behind the action."
            ),
            click.option("--max-confirmation-age", type=int, help="How old the confirmation may be, in seconds."),
            click.option("--level", type=click.Choice(LEVELS), help="The least level."),
            click.option("--max-auth-age", type=int, help="How old the sign-in may be, in seconds."),
            click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        )
    ):
        command = option(command)
    return command


class _Command(click.Command):
    """
    Does not repeat a value that an option cannot take: whoever leaves one out has the token in its place.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter:
            raise
        except click.BadParameter as error:
            raise click.BadParameter("not a value that it takes", ctx=error.ctx, param=error.param) from None


@click.command("verify", cls=_Command)
@_options
def verify_command(**options: Any) -> None:
    """
    Verify TOKEN (- or nothing: read from standard input) and exit with 1 when it is refused.
    """
    explanation = _explain(options)
    verdict = explanation.refused
    if options["as_json"]:
        click.echo(json.dumps({"accepted": verdict is None, "reason": verdict, "checks": _rows(explanation)}, indent=2))
    else:
        _print_findings(explanation)
        click.echo("accepted, were it used for the first time" if verdict is None else f"refused: {verdict}")
    sys.exit(0 if verdict is None else 1)


@click.command("explain", cls=_Command)
@_options
def explain_command(**options: Any) -> None:
    """
    Show what TOKEN says (- or nothing: read from standard input), then every check. The signature is never shown.
    """
    explanation = _explain(options)
    if options["as_json"]:
        shown = {"header": explanation.header, "claims": explanation.claims, "checks": _rows(explanation)}
        click.echo(json.dumps(shown | {"reason": explanation.refused}, indent=2))
        return
    click.echo("header  " + json.dumps(explanation.header))
    click.echo("claims  " + json.dumps(explanation.claims, indent=2, ensure_ascii=True))
    _print_findings(explanation)


def _explain(options: dict[str, Any]) -> Explanation:
    try:
        return _explanation(options)
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from None


def _explanation(options: dict[str, Any]) -> Explanation:
    check_seconds("--tolerance", options["tolerance"], 60)
    procedure = Procedure(
        issuer=options["issuer"],
        audience=options["audience"],
        required_scope=scope_words(options["scope"]) if options["scope"] else frozenset(),
        clock_tolerance_s=options["tolerance"],
    )
    demand = Demand(
        action=options["action"],
        arguments=_arguments(options["arguments"]),
        idempotency_key=options["idempotency_key"],
        level=options["level"],
        max_auth_age_seconds=options["max_auth_age"],
        confirmation=options["confirmation"],
        max_confirmation_age_seconds=options["max_confirmation_age"],
    )
    now = _now(options["at"])
    token = _token(" ".join(options["token"]))
    with closing(_keys(options)) as keys:
        return explain(token, procedure=procedure, key=keys.key, demand=demand, now=now)


def _keys(options: dict[str, Any]) -> FixedKeySource | KeySource:
    if options["jwks"] is None:
        return KeySource(_of_option("--issuer", jwks_url, options["issuer"]))
    return _of_option("--jwks", FixedKeySource, _read("--jwks", options["jwks"], MAX_DOCUMENT_OCTETS))


def _of_option(option: str, read: Callable[[_Given], _Read], value: _Given) -> _Read:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None


def _now(at: float | None) -> float:
    if at is None:
        return time.time()
    if not is_time(at):
        raise ValueError("--at is in epoch seconds")
    return at


def _token(text: str) -> str:
    if text in ("", "-") and sys.stdin is not None:
        text = sys.stdin.buffer.read(_MAX_INPUT).decode("utf-8", "replace")
    text = text.strip()
    try:
        # A whole Authorization value is what people paste.
        return bearer_token(text)
    except CustomerContextError:
        return text


def _arguments(text: str | None) -> str | bytes | NotGiven:
    if text is None:
        return NOT_GIVEN
    return _read("--arguments", text[1:], _MAX_INPUT) if text.startswith("@") else text


def _read(option: str, path: str, limit: int) -> bytes:
    try:
        with Path(path).open("rb") as opened:
            # One octet more, so that what is too large is refused as such.
            return opened.read(limit + 1)
    except OSError as error:
        raise ValueError(f"{option}: {error.strerror}: {path}") from None


def _rows(explanation: Explanation) -> list[dict[str, str]]:
    return [{"check": each.check, "outcome": each.outcome, "note": each.note} for each in explanation.findings]


def _print_findings(explanation: Explanation) -> None:
    for finding in explanation.findings:
        click.echo(_line(finding))


def _line(finding: Finding) -> str:
    return f"  {_MARKS[finding.outcome]:<6} {finding.check:<18} {finding.note}".rstrip()
