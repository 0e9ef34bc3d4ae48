"""``openmirror check``: which rules a landing zone breaks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from openmirror_writer.check import RULES, Finding, Repaired, Severity, repair
from openmirror_writer.check import check as findings_of
from openmirror_writer.zone import LandingZone

_STYLES: Mapping[Severity, str] = {"error": "red", "warning": "yellow", "note": "dim"}


def check(
    zone: Annotated[str | None, typer.Argument(help="The landing zone: a folder or URL.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    delete_stale: Annotated[
        bool, typer.Option("--repair", help="Delete stale files and leftovers, after saying which and why.")
    ] = False,
    rules: Annotated[bool, typer.Option("--rules", help="Only list the rules, and what check shows of each.")] = False,
) -> None:
    """Look for broken rules in a landing zone, whoever publishes to it.

    Exit code 1 if there is an error that was not repaired; warnings and notes alone are 0.
    """
    if rules:
        _list_rules(as_json=as_json)
        return
    if zone is None:
        raise typer.BadParameter("name the landing zone, or ask for --rules")
    landing_zone = LandingZone(zone)
    findings = findings_of(landing_zone)
    console = Console(highlight=False)
    if not as_json:
        _print_findings(console, landing_zone, findings)
    repaired = _repair(console, landing_zone, findings, quiet=as_json) if delete_stale else []
    if as_json:
        typer.echo(json.dumps([_as_json(finding, repaired) for finding in findings], indent=2))
    gone = [each.finding for each in repaired if each.deleted]
    if any(finding.severity == "error" and finding not in gone for finding in findings):
        raise typer.Exit(1)


def _repair(console: Console, zone: LandingZone, findings: Sequence[Finding], *, quiet: bool) -> list[Repaired]:
    """Delete what can be deleted, one file after the other, each after it was told."""
    repaired: list[Repaired] = []
    for finding in findings:
        if finding.identity is None:
            continue
        if not quiet:
            console.print(f"Deleting {finding.file}: {finding.message}", markup=False, soft_wrap=True)
        repaired += repair(zone, [finding])
        if not quiet and not repaired[-1].deleted:
            console.print("It is gone, or another file by now: nothing was deleted.", style="yellow")
    if not quiet and not repaired:
        console.print("There is nothing to repair.")
    return repaired


def _print_findings(console: Console, zone: LandingZone, findings: Sequence[Finding]) -> None:
    if not findings:
        # A path that was mistyped is a zone without tables: it must not look like one that was checked.
        told = "breaks no rule that a folder can show" if zone.tables() else "holds no table: nothing was checked"
        console.print(f"{zone.url} {told}.", markup=False, soft_wrap=True)
        return
    table = Table("", "rule", "where", "what is wrong", "what to do")
    for column in table.columns[2:]:
        column.overflow = "fold"
    for finding in findings:
        where = (finding.file or finding.table or "the zone") + (f", line {finding.line}" if finding.line else "")
        severity = Text(finding.severity, _STYLES[finding.severity])
        table.add_row(severity, finding.rule, Text(where), Text(finding.message), Text(finding.remedy))
    console.print(table)
    counts = Counter(finding.severity for finding in findings)
    console.print(", ".join(f"{counts[each]} {each}{'' if counts[each] == 1 else 's'}" for each in _STYLES))


def _list_rules(*, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([asdict(rule) for rule in RULES.values()], indent=2))
        return
    table = Table("rule", "wording", "what check shows", "why a folder cannot show it")
    for rule in RULES.values():
        table.add_row(rule.number, Text(rule.wording), Text(rule.shows or ""), Text(rule.unseen or ""))
    Console().print(table)


def _as_json(finding: Finding, repaired: Sequence[Repaired]) -> dict[str, Any]:
    outcome = next((each.deleted for each in repaired if each.finding == finding), None)
    told = asdict(finding)
    del told["identity"]
    return {**told, "repairable": finding.identity is not None} | ({} if outcome is None else {"deleted": outcome})
