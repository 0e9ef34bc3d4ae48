"""Which tables there are: folders of the zone, and Delta tables whose folder is gone."""

from __future__ import annotations

from collections.abc import Mapping

from openmirror_writer.errors import ApplyError, SchemaRefusedError
from openmirror_writer.layout import DEFAULT_SCHEMA, check_name, schema_of
from openmirror_writer.spark.mirror.log import read_target
from openmirror_writer.spark.mirror.state import TableName, is_table
from openmirror_writer.storage import Steps, listing


def landed_tables() -> Steps[list[TableName]]:
    """List the table folders of a zone, by schema and name; the requests go to the zone's storage."""
    root = yield from listing("")
    found = [TableName(name) for name in sorted(root.folders) if is_table(name)]
    for folder in sorted(root.folders):
        if (schema := schema_of(folder)) is not None:
            inside = yield from listing(folder)
            found += [TableName(name, *schema) for name in sorted(inside.folders) if not name.startswith("_")]
    return found


def mirrored_tables(landed: list[TableName]) -> Steps[Mapping[TableName, str | None]]:
    """Add the Delta tables whose folder is gone; the requests go to the target's storage.

    Args:
        landed: From `landed_tables`.

    Returns:
        Each table, with what forbids it to be mirrored; None: nothing.
    """
    places: dict[str, TableName] = {}
    tables: dict[TableName, str | None] = {}
    for table in landed:
        tables[table] = _fault(table, places.get(table.target.casefold()))
        places.setdefault(table.target.casefold(), table)
    root = yield from listing("")
    for schema in sorted(name for name in root.folders if not name.startswith("_")):
        inside = yield from listing(schema)
        for name in sorted(inside.folders):
            if f"{schema}/{name}".casefold() not in places:
                orphan = yield from _table_at(schema, name)
                if orphan is not None:
                    tables[orphan] = None
    return tables


def _table_at(schema: str, name: str) -> Steps[TableName | None]:
    """Return the table whose Delta table stands there; None if no mirror made it."""
    try:
        state = yield from read_target(f"{schema}/{name}")
    except ApplyError:
        return TableName(name, None if schema == DEFAULT_SCHEMA else schema)  # its pass says what is wrong
    if not state.exists or state.version is None:
        return None
    if state.folder == TableName(name).folder:
        return TableName(name)
    spelled = schema_of((state.folder or "").rpartition("/")[0])
    return TableName(name, schema) if spelled is None else TableName(name, schema, spelled[1])


def _fault(table: TableName, twin: TableName | None) -> str | None:
    try:
        check_name("table", table.name)
        if table.schema_name is not None:
            check_name("schema", table.schema_name)
    except SchemaRefusedError as error:
        return error.message
    if twin is not None:
        return f"the folder {twin.folder!r} lands in the same Delta table: rename one of the two tables"
    return None
