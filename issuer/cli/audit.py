"""
`customer-context audit`: who did what, and whether the trail is the one that was written.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from keys import MAX_REASON_LENGTH, utc
from keys.record import is_reason

from ..audit import Finding, Findings, Head
from .administer import Administered, StoreAdministration, administered, json_option, operator, workspace_option
from .facts import show_json
from .options import config_option, fail, read_settings, readable_errors, workspace_named

__all__ = ["command"]

_NOT_SOUND: Final = 1
_MAX_PAGE: Final = 200
_WORDS: Final = {
    "malformed": "is no record",
    "workspace": "belongs to another workspace",
    "missing": "is missing",
    "out_of_order": "stands where another one should",
    "changed": "was changed",
    "link": "follows another record than it was written behind",
    "epoch": "needs a key that the records before do not lead to",
    "sealing_key": "needs a sealing key that is not configured",
    "cut": "is missing: the trail ends before",
    "state": "cannot be held against the ring",
    "head": "is another one than the noted head stands for",
    "unproven": "is proven by nothing that can be trusted",
}


@click.group("audit")
def command() -> None:
    """
    Read the audit trail of a workspace, and verify it.
    """


@command.command("list")
@administered
@json_option
@click.option("--after", type=click.IntRange(0), metavar="SEQ", help="Records behind this one, in their order.")
@click.option("--before", type=click.IntRange(1), metavar="SEQ", help="Records before this one, the latest first.")
@click.option("--limit", type=click.IntRange(1, _MAX_PAGE), default=50, show_default=True, help="How many at most.")
def _list(target: Administered, after: int | None, before: int | None, limit: int, *, as_json: bool) -> None:
    """
    Show records, the latest first; nothing is verified.
    """
    if after is not None and before is not None:
        fail("--after and --before exclude each other")
    told = target.audit(before=before, after=after, limit=limit)
    if as_json:
        show_json(told)
        return
    click.echo(f"workspace {told['workspace']}, head {told['head']}")
    for record in told["records"]:
        click.echo(_row(record))


@command.command("verify")
@config_option
@workspace_option
@json_option
@click.option(
    "--expect-head", "heads", multiple=True, help="A head that was noted at any time; may be given several times."
)
@readable_errors
def _verify(config: Path | None, workspace: str | None, heads: tuple[str, ...], *, as_json: bool) -> None:
    """
    Check every record against its MAC, its neighbours, the key ring and the heads that are given; exits with 1 when one is wrong.
    """
    settings = read_settings(config)
    stores = StoreAdministration(settings, workspace_named(settings, workspace))
    try:
        expected = [Head.parse(each) for each in heads]
    except ValueError as error:
        fail(f"--expect-head: {error}")
    findings = stores.with_ledger(lambda ledger: ledger.verify(expected))
    if as_json:
        click.echo(json.dumps(_facts(findings), indent=2))
    else:
        _show(findings)
    if not findings.is_sound:
        raise SystemExit(_NOT_SOUND)


@command.command("restart")
@config_option
@workspace_option
@click.option("--reason", required=True, help="Why it is right to go on; stands in the trail under your name.")
@readable_errors
def _restart(config: Path | None, workspace: str | None, reason: str) -> None:
    """
    Go on behind a trail that is damaged, or with a ring that is older than it. Nothing is removed, and you answer for it.
    """
    if not is_reason(reason):
        fail(f"--reason is 1 to {MAX_REASON_LENGTH} printable characters")
    settings = read_settings(config)
    stores = StoreAdministration(settings, workspace_named(settings, workspace))
    done = stores.with_ledger(lambda ledger: ledger.restart(operator(), reason))
    click.echo(f"the trail goes on; its head is {done.head}")


def _row(record: Mapping[str, Any]) -> str:
    actor = f"{record['actor']['kind']} {record['actor']['name']} from {record['source']}"
    target = "" if record["target"] is None else f" {record['target']}"
    times = "" if record["count"] == 1 else f", {record['count']} times"
    reason = "" if record["reason"] is None else f"  ({record['reason']})"
    outcome = {True: record["outcome"], False: "not carried out", None: "not known to be carried out"}[
        record["carried_out"]
    ]
    return f"  {record['seq']:>6}  {utc(record['at'])}  {record['event']}{target}: {outcome}{times}, {actor}{reason}"


def _show(findings: Findings) -> None:
    for each in findings.findings:
        click.echo(_finding(each))
    if findings.omitted:
        click.echo(f"and {findings.omitted} more")
    beside = sum(len(each) for each in findings.not_carried_out)
    if beside:
        click.echo(f"{beside} records were written and not carried out")
    if findings.beyond_head:
        click.echo(
            f"{findings.beyond_head} records stand behind the head that the ring knows: a change that goes on or crashed"
        )
    if findings.by_hash_alone:
        click.echo(f"{findings.by_hash_alone} records are held by hashes alone; their sealing key is not configured")
    said = "sound" if findings.is_sound else "NOT sound"
    click.echo(f"{said}: {findings.records} records, head {findings.head}")


def _finding(finding: Finding) -> str:
    records = f"record {finding.seq}" if finding.seq == finding.last else f"records {finding.seq} to {finding.last}"
    by = "" if finding.acknowledged_by is None else f"; record {finding.acknowledged_by} answers for it"
    return f"line {finding.line}: {records}: {_WORDS[finding.problem]}{by}"


def _facts(findings: Findings) -> Mapping[str, Any]:
    return {
        "sound": findings.is_sound,
        "records": findings.records,
        "head": str(findings.head),
        "findings": [
            {
                "problem": each.problem,
                "seq": each.seq,
                "last": each.last,
                "line": each.line,
                "acknowledged_by": each.acknowledged_by,
            }
            for each in findings.findings
        ],
        "omitted": findings.omitted,
        "not_carried_out": [[each.start, each.stop - 1] for each in findings.not_carried_out],
        "beyond_head": findings.beyond_head,
        "by_hash_alone": findings.by_hash_alone,
    }
