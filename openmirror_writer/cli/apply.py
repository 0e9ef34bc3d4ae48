"""``openmirror apply``: one run of the mirror."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from openmirror_writer.changes import RowMarker
from openmirror_writer.cli import spark_extra
from openmirror_writer.zone import LandingZone

if TYPE_CHECKING:
    from openmirror_writer.spark import MirrorReport, TableReport


def apply(
    zone: Annotated[str, typer.Argument(help="The landing zone: a folder.")],
    target: Annotated[str, typer.Argument(help="The folder of the Delta tables: TARGET/SCHEMA/TABLE.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Apply a landing zone to Delta tables once; never a zone that a service reads. Exit code 1 if a table failed."""
    landing_zone = LandingZone(zone)
    console = Console()
    if as_json:
        report = spark_extra.mirror(landing_zone, target).run_once()
        typer.echo(json.dumps(report_as_json(report), indent=2))
    else:
        with console.status("Starting Spark"):
            mirror = spark_extra.mirror(landing_zone, target)
        with console.status(f"Applying {zone}"):
            report = mirror.run_once()
        console.print(report_table(report, f"{zone} applied"))
    if report.failures:
        raise typer.Exit(1)


def report_as_json(report: MirrorReport) -> dict[str, object]:
    """Return a report as JSON takes it; rows by the name of their marker."""
    tables = [{**asdict(table), "rows": _named(table.rows)} for table in report.tables.values()]
    return {"seconds": report.seconds, "tables": tables}


def report_table(report: MirrorReport, title: str) -> Table:
    """Return a report as a table for the terminal: one line for each table of the zone."""
    table = Table(title=f"{title} ({report.seconds:.1f} s)", title_justify="left")
    for column in ("table", "status", "files", "rows applied", "last file", "Delta version"):
        table.add_column(column)
    for each in report.tables.values():
        rows = "\n".join(f"{count} {name}" for name, count in _named(each.rows).items()) or "nothing to do"
        version = "none" if each.version is None else str(each.version)
        style = "red" if each.failed else ""
        table.add_row(each.table, each.status, str(each.files), rows, str(each.last_file), version, style=style)
        for remark in _remarks(each):
            table.add_row("", remark, style=style or "yellow")
    return table


def _remarks(table: TableReport) -> list[str]:
    about = f"{table.file}: " if table.file else ""
    reason = [f"{about}{table.reason}"] if table.reason else []
    return reason + [f"stale, never applied: {path}" for path in table.stale]


def _named(rows: Mapping[int | None, int]) -> dict[str, int]:
    names: dict[int | None, str] = {None: "unmarked", **{marker.value: marker.name.lower() for marker in RowMarker}}
    return {name: rows[marker] for marker, name in names.items() if marker in rows}
