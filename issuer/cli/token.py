"""
`customer-context token`: ask a running issuer for a token, as an orchestrator does.
"""

import asyncio
import json
import shlex
import time
from pathlib import Path
from typing import Any, Final

import click
import httpx2

from keys import KeysError
from verifier.levels import LEVELS
from verifier.strict_json import StrictJSONError, loads_object

from ..orchestrator import Ask, Orchestrator, RequestedWrite, load_orchestrator, new_idempotency_key
from .options import fail, readable_errors

__all__ = ["command"]

_TIMEOUT_S: Final = 10
_MAX_SIGN_IN_ID: Final = 256


@click.command("token")
@click.option(
    "--orchestrator",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder with orchestrator.json and its two keys, as `customer-context init` writes it.",
)
@click.option("--sub", help="The customer's id.")
@click.option(
    "--sign-in",
    type=click.File("r"),
    metavar="FILE",
    help="In the place of --sub, --level and --auth-age: a file with the id of a recorded sign-in; - is standard input.",
)
@click.option(
    "--level", type=click.Choice(LEVELS), default="standard", show_default=True, help="How well they were verified."
)
@click.option("--auth-age", type=click.IntRange(0), default=60, show_default=True, help="Seconds since they signed in.")
@click.option("--audience", help="The API the token is for; by default the orchestrator's.")
@click.option("--scope", help="Scope words.")
@click.option("--action", help="Ask for a write token for this action, confirmed by the customer now.")
@click.option("--arguments", help="The action's arguments as JSON; {} by default.")
@click.option("--idempotency-key", help="The key of the confirmed action; a new one by default.")
@click.option("--confirmed-at", type=int, help="When the customer confirmed, in epoch seconds; now by default.")
@click.option("--curl", is_flag=True, help="Print the curl command instead of asking; it is good for one try.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer.")
@readable_errors
def command(folder: Path, **options: Any) -> None:
    """
    Ask a running issuer for a token and print it.
    """
    try:
        orchestrator = load_orchestrator(folder)
    except OSError as error:
        fail(
            f"{error.filename}: {error.strerror}; --orchestrator names the folder with orchestrator.json and its two keys"
        )
    except (ValueError, KeysError) as error:
        fail(f"{folder}: {error}")
    now = time.time()
    form = asyncio.run(orchestrator.form(_ask(orchestrator, options, now), now))
    if options["curl"]:
        click.echo(_curl(orchestrator.token_endpoint, form))
        return
    answer = _post(orchestrator.token_endpoint, form)
    click.echo(json.dumps(answer, indent=2) if options["as_json"] else answer["access_token"])


def _ask(orchestrator: Orchestrator, options: dict[str, Any], now: float) -> Ask:
    if (options["sub"] is None) == (options["sign_in"] is None):
        raise click.UsageError("exactly one of --sub and --sign-in says who the customer is")
    return Ask(
        sub=options["sub"] or "",
        sign_in_id=options["sign_in"] and options["sign_in"].read(_MAX_SIGN_IN_ID).strip(),
        acr=options["level"],
        auth_time=int(now) - options["auth_age"],
        audience=options["audience"] or orchestrator.audience,
        scope=options["scope"],
        write=_write(options, now),
    )


def _write(options: dict[str, Any], now: float) -> RequestedWrite | None:
    arguments, key, confirmed_at = (options[name] for name in ("arguments", "idempotency_key", "confirmed_at"))
    if options["action"] is None:
        if any(each is not None for each in (arguments, key, confirmed_at)):
            raise click.UsageError("--arguments, --idempotency-key and --confirmed-at need --action")
        return None
    try:
        read = {} if arguments is None else loads_object(arguments)
    except StrictJSONError as error:
        raise click.UsageError(f"--arguments: {error}") from None
    return RequestedWrite(
        action=options["action"],
        arguments=read,
        idempotency_key=new_idempotency_key() if key is None else key,
        confirmed_at=int(now) if confirmed_at is None else confirmed_at,
    )


def _post(url: str, form: dict[str, str]) -> dict[str, Any]:
    try:
        response = httpx2.post(url, data=form, timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False)
    except UnicodeEncodeError:
        fail("an option holds octets that are not UTF-8")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        fail(f"{url} cannot be reached: {type(error).__name__}; is the service running?")
    try:
        answer = loads_object(response.content)
    except StrictJSONError:
        fail(f"{url} answered {response.status_code} without JSON; is it the issuer?")
    if "error" in answer:
        fail(f"{url} answered {response.status_code} {answer['error']}: {answer.get('error_description')}")
    if response.status_code != httpx2.codes.OK or not isinstance(answer.get("access_token"), str):
        fail(f"{url} answered {response.status_code} without a token; is it the issuer?")
    return answer


def _curl(url: str, form: dict[str, str]) -> str:
    parts = [f"  --data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in form.items()]
    return " \\\n".join([f"curl --silent --show-error {shlex.quote(url)}", *parts])
