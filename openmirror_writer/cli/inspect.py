"""``openmirror inspect``: what stands in a landing zone."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from openmirror_writer.changes import RowMarker
from openmirror_writer.errors import OpenMirrorError
from openmirror_writer.replay import LandingFile, LandingFiles, landing_files
from openmirror_writer.schema import ROW_MARKER, type_text
from openmirror_writer.storage import perform
from openmirror_writer.writer.resume import open_table
from openmirror_writer.zone import LandingTable, LandingZone, look


@dataclass(frozen=True)
class TableInspection:
    """What stands in one table's folder.

    Attributes:
        table: ``"orders"`` or ``"sales.orders"``.
        folder: Below the zone's root.
        ingested: Whether the service takes the folder: it has a ``_metadata.json`` and no drop has begun.
        keys: The key columns.
        columns: Column to type, of the last file.
        generation: The id of this life of the folder; None in a folder of another publisher.
        phase: What a writer would find: ``new``, ``loading`` or ``following``; None if it would be refused.
        position: Where a writer would go on.
        files: Counts: ``standing`` in the folder, ``moved`` away by the service, and of both ``stale`` ones and those
            that are ``waiting`` above a gap or a fork.
        rows: Rows by what they do: ``unmarked``, ``insert``, ``update``, ``delete``, ``upsert``, or ``marker 7`` for
            one that means nothing; stale files are left out.
        problems: What is wrong, in words.
    """

    table: str
    folder: str
    ingested: bool = True
    keys: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    generation: str | None = None
    phase: str | None = None
    position: Any = None
    files: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def inspect(
    zone: Annotated[str, typer.Argument(help="The landing zone: a folder or URL.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show the tables of a landing zone: files, rows by marker, keys, columns, position, phase, generation."""
    console = Console()
    inspections = inspect_zone(LandingZone(zone))
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in inspections], indent=2))
        return
    if not inspections:
        console.print(f"There is no table in {zone}.", highlight=False, soft_wrap=True)
    for each in inspections:
        console.print(_as_table(each))


def inspect_zone(zone: LandingZone) -> list[TableInspection]:
    """Look at every table of a zone; nothing is changed.

    A table that cannot be read, also because the storage failed there, says so among its problems.

    Raises:
        StorageError: The tables cannot be listed.
    """
    return [_inspect(table) for table in zone.tables()]


def _inspect(table: LandingTable) -> TableInspection:
    try:
        landed = landing_files(table)
    except OpenMirrorError as error:
        return TableInspection(table.label, table.folder, problems=[str(error)])
    if landed is None:
        dropping = perform(table.zone.storage, look(table.folder)).dropping
        reason = "a drop has begun and not ended" if dropping else "no _metadata.json: the service does not take it"
        return TableInspection(table.label, table.folder, ingested=False, problems=[reason])
    problems = [str(landed.fault)] if landed.fault else []
    phase = position = None
    try:
        resumed = perform(table.zone.storage, open_table(table, None, time.monotonic))
        phase, position = resumed.progress.state, resumed.progress.position
    except OpenMirrorError as error:
        problems.append(f"a writer would be refused: {error}")
    counted = [file for state, file in landed.files if state != "stale"]
    last = counted[-1] if counted else None
    return TableInspection(
        table=table.label,
        folder=table.folder,
        keys=list(landed.metadata.key_columns),
        columns={f.name: type_text(f.type) for f in last.footer.columns} if last else {},
        generation=landed.folder.generation,
        phase=phase,
        position=position,
        files=_count_files(landed),
        rows=dict(Counter(kind for file in counted for kind in _kinds(file))),
        problems=problems + [f"stale, never applied: {file.path}" for state, file in landed.files if state == "stale"],
    )


def _count_files(landed: LandingFiles) -> dict[str, int]:
    moved = sum(file.moved for _, file in landed.files)
    states = Counter(state for state, _ in landed.files)
    standing = len(landed.files) - moved
    return {"standing": standing, "moved": moved, "stale": states["stale"], "waiting": states["waiting"]}


def _kinds(file: LandingFile) -> Iterator[str]:
    if not file.footer.marked:
        return iter(["unmarked"] * file.rows.num_rows)
    names: dict[Any, str] = {marker.value: marker.name.lower() for marker in RowMarker}
    return (names.get(marker, f"marker {marker}") for marker in file.rows.column(ROW_MARKER).to_pylist())


def _as_table(inspection: TableInspection) -> Table:
    table = Table(title=inspection.table, title_justify="left", title_style="bold", show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("folder", inspection.folder)
    if inspection.files:
        table.add_row("keys", ", ".join(inspection.keys) or "none: inserts only")
        table.add_row("columns", ", ".join(f"{name} {kind}" for name, kind in inspection.columns.items()))
        table.add_row("generation", inspection.generation or "none: files of another publisher")
        table.add_row("phase", inspection.phase or "?")
        table.add_row("position", "none" if inspection.position is None else json.dumps(inspection.position))
        table.add_row("files", ", ".join(f"{count} {kind}" for kind, count in inspection.files.items()))
        table.add_row("rows", ", ".join(f"{count} {kind}" for kind, count in inspection.rows.items()) or "none")
    for problem in inspection.problems:
        table.add_row("problem", problem, style="red")
    return table
