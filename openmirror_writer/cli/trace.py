"""``openmirror trace``: every landing row of one key."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from openmirror_writer.changes import RowMarker
from openmirror_writer.errors import OpenMirrorError
from openmirror_writer.replay import LandingFiles, LandingRow, landing_files
from openmirror_writer.replay import trace as landing_rows_of
from openmirror_writer.schema import type_text
from openmirror_writer.zone import LandingTable, LandingZone

_NAMES = {marker.value: marker.name.lower() for marker in RowMarker}


def trace(
    zone: Annotated[str, typer.Argument(help="The landing zone: a folder or URL.")],
    table: Annotated[str, typer.Argument(help="The table: orders, or sales.orders with its schema.")],
    key: Annotated[list[str], typer.Argument(help="The key: COLUMN=VALUE, one for each column.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show every landing row of one key, in order: file, row, marker, values, and what became of the file."""
    landing_table = find_table(LandingZone(zone), table)
    landed = landing_files(landing_table)
    if landed is None:
        msg = "the service does not take this folder: it has no _metadata.json, or a drop has begun"
        raise OpenMirrorError(msg, table=table)
    wanted = parse_key(key, landed, table)
    rows = landing_rows_of(landed, wanted)
    if as_json:
        typer.echo(json.dumps([_as_json(row) for row in rows], indent=2))
        return
    console = Console()
    if not rows:
        console.print(f"No landing row of {table} has {' '.join(key)}.", highlight=False, soft_wrap=True)
        return
    console.print(_as_table(rows, wanted))
    if landed.fault:
        console.print(f"The files do not go on: {landed.fault}", style="red", highlight=False, soft_wrap=True)


def find_table(zone: LandingZone, label: str) -> LandingTable:
    """Return the table of a zone by its label.

    Raises:
        OpenMirrorError: There is none of this name; the message names those that are there.
    """
    tables = {table.label: table for table in zone.tables()}
    if label not in tables:
        msg = f"there is no such table in {zone.url}; there are: {', '.join(tables) or 'none'}"
        raise OpenMirrorError(msg, table=label)
    return tables[label]


def parse_key(key: list[str], landed: LandingFiles, table: str) -> dict[str, Any]:
    """Return ``COLUMN=VALUE`` texts as column to value, in the type that the column has in the last file.

    Raises:
        OpenMirrorError: A text is not of this form, its column is none of the table's, or its value does not fit.
    """
    if not landed.files:
        raise OpenMirrorError("the table has no files yet", table=table)
    columns = landed.files[-1][1].footer.columns
    parsed: dict[str, Any] = {}
    for text in key:
        column, equals, value = text.partition("=")
        if not equals or column not in columns.names:
            msg = f"{text!r} is not COLUMN=VALUE with a column of {columns.names}"
            raise OpenMirrorError(msg, table=table)
        kind = columns.field(column).type
        try:
            parsed[column] = pa.scalar(value).cast(kind).as_py()
        except (pa.ArrowException, ValueError) as error:
            msg = f"{value!r} is no {type_text(kind)}"
            raise OpenMirrorError(msg, table=table, column=column, value=value, type=type_text(kind)) from error
    return parsed


def _as_json(row: LandingRow) -> dict[str, Any]:
    plain = {name: value if _is_json(value) else str(value) for name, value in row.values.items()}
    return {
        "file": row.file,
        "row": row.row,
        "marker": row.marker,
        "values": plain,
        "state": row.state,
        "moved": row.moved,
    }


def _is_json(value: object) -> bool:
    return value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and value - value == 0)


def _as_table(rows: list[LandingRow], key: dict[str, Any]) -> Table:
    """One line for each row. The file is told by number and folder: its name is 20 digits wide."""
    table = Table("file", "row", "marker", "values", "state", "in", title=f"{len(rows)} landing rows")
    table.columns[3].overflow = table.columns[5].overflow = "fold"
    before: dict[str, Any] = {}
    for row in rows:
        marker = "unmarked" if row.marker is None else f"{row.marker} {_NAMES.get(row.marker, '?')}"
        folder = PurePosixPath(row.file).parent.name
        values = _values(row, before, key)
        table.add_row(str(row.number), str(row.row), marker, values, row.state, folder, style=_style(row))
        before = row.values
    return table


def _values(row: LandingRow, before: dict[str, Any], key: dict[str, Any]) -> Text:
    """Show the values beside the key; bold what differs from the row above."""
    text = Text()
    for name, value in row.values.items():
        if name in key or (row.marker == RowMarker.DELETE and value is None):
            continue
        changed = bool(before) and before.get(name) != value
        text.append(f"{name}={'NULL' if value is None else value} ", style="bold" if changed else "")
    return text


def _style(row: LandingRow) -> str:
    return {"applied": "", "stale": "red", "waiting": "yellow"}[row.state]
