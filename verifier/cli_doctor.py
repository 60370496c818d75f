"""
`customer-context doctor redis`: whether a Redis is fit to remember used tokens, line by line, with what to do.
"""

import json
import sys
from dataclasses import asdict
from typing import Final

import click

from .redis_doctor import Finding, UnfitRedis
from .replay import ReplayStoreUnavailable
from .replay_redis import RedisReplayStore

__all__ = ["command", "redis_command"]

_MARKS: Final = {"ok": "ok", "warning": "warning", "fails": "FAILS"}


@click.group("doctor")
def command() -> None:
    """
    Look whether what this depends on is fit for it.
    """


@command.command("redis")
@click.argument("url", envvar="CUSTOMER_CONTEXT_REDIS_URL")
@click.option("--replicas", default=0, show_default=True, help="How many replicas the store waits for.")
@click.option("--deadline-ms", default=250, show_default=True, help="The deadline of the store.")
@click.option("--allow-eviction", is_flag=True, help="Accept that used tokens are forgotten when memory is full.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def redis_command(url: str, *, replicas: int, deadline_ms: int, allow_eviction: bool, as_json: bool) -> None:
    """
    Look whether the Redis at URL is fit to remember used tokens; exit with 1 when it is not, or cannot be asked.

    URL is redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://. To keep a password from the list of processes,
    give it in the variable CUSTOMER_CONTEXT_REDIS_URL.
    """
    try:
        store = RedisReplayStore.from_url(url, deadline_ms=deadline_ms, replicas=replicas)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    try:
        findings, fit = store.check(allow_eviction=allow_eviction), True
    except UnfitRedis as error:
        findings, fit = error.findings, False
    except ReplayStoreUnavailable as error:
        findings, fit = (
            (Finding("reachable", "fails", f"{error}: check address, password, TLS and permissions"),),
            False,
        )
    finally:
        store.close()
    if as_json:
        click.echo(json.dumps({"fit": fit, "findings": [asdict(each) for each in findings]}, indent=2))
    else:
        for finding in findings:
            click.echo(_line(finding))
        click.echo("fit to remember used tokens" if fit else "not fit to remember used tokens")
    sys.exit(0 if fit else 1)


def _line(finding: Finding) -> str:
    where = f" ({finding.primary})" if finding.primary else ""
    return f"  {_MARKS[finding.outcome]:<8} {finding.check:<12} {finding.note}{where}"
