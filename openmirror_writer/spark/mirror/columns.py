"""The columns of landing files and of their Delta table, and what sets them apart. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from openmirror_writer.column_types import column_type
from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.schema import ROW_MARKER, landed_type, name_fault

_MARKER_TYPES = frozenset(
    {pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()},
)


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: As the file spells it.
        type: As Delta spells it in its log: ``long``, ``decimal(18,2)``, ``timestamp_ntz``.
        nullable: False where the files declare the column as required. Delta's own column is always nullable.
    """

    name: str
    type: str
    nullable: bool = True


def columns_of(schema: pa.Schema) -> tuple[Column, ...]:
    """Return the columns in which Spark reads a landing file.

    Args:
        schema: The file's data columns, without the marker.

    Raises:
        SchemaRefusedError: A type that Spark or Delta cannot hold, or a name that Delta cannot tell from another.
    """
    seen: dict[str, str] = {}
    for name in schema.names:
        if name.casefold() in seen:
            msg = (
                f"the columns {seen[name.casefold()]!r} and {name!r} differ by case at most, "
                "which Delta does not tell apart: rename one"
            )
            raise SchemaRefusedError(msg, column=name)
        fault = name_fault(name)
        if fault is not None:
            raise SchemaRefusedError(fault, column=name)
        seen[name.casefold()] = name
    return tuple(Column(field.name, delta_type(field.name, field.type), field.nullable) for field in schema)


def delta_type(name: str, kind: pa.DataType) -> str:
    """Return the Delta type in which a column of a Parquet file lands.

    Args:
        name: The column, for the error.
        kind: Its Arrow type in the file.

    Raises:
        SchemaRefusedError: Spark cannot read the type.

    >>> delta_type("amount", pa.decimal128(18, 2)), delta_type("at", pa.timestamp("us", tz="Europe/Vienna"))
    ('decimal(18,2)', 'timestamp')
    """
    plain = landed_type(name, kind)
    found = column_type(plain)
    assert found is not None  # noqa: S101 - every type of a file is one of the list
    return found.delta


def columns_behind(table: Sequence[Column], file: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns of the table when a file is applied: those that it adds stand behind the others.

    A column that the file leaves out stays, and is NULL in its rows.

    Args:
        table: Columns of the table before.
        file: Columns of the file, in any order.

    Raises:
        SchemaRefusedError: A column changed its type, or whether it may be NULL, or its spelling; or one that is not
            null came or went. In the words of the service, and with the rule of the landing zone.
    """
    there = {column.name.casefold(): column for column in file}
    for column in table:
        other = there.pop(column.name.casefold(), None)
        if other is not None:
            _refuse_changed(column, other)
        elif not column.nullable:
            what = f"Column {column.name!r} ({_words(column)}) is missing in this file (rule 7.3)"
            raise _schema_merge_failure(what, "with a value in each row", column)
    added = [column for column in file if column.name.casefold() in there]
    for column in added:
        if not column.nullable:
            what = f"Column {column.name!r} ({_words(column)}) is not in the table and not nullable (rule 7.3)"
            raise _schema_merge_failure(what, "with a nullable column", column)
    return (*table, *added)


def _refuse_changed(column: Column, other: Column) -> None:
    if column.name != other.name:
        what = f"Column {other.name!r} is {column.name!r} in the table, which does not tell them apart (rule 7.5)"
        raise _schema_merge_failure(what, "with the name of the table", other)
    if (column.type, column.nullable) != (other.type, other.nullable):
        what = (
            f"Type mismatch for column {column.name!r}. "
            f"Incoming type {_words(other)}, existing type {_words(column)} (rule 7.4)"
        )
        raise _schema_merge_failure(what, "with the existing type", other)


def _schema_merge_failure(what: str, how: str, column: Column) -> SchemaRefusedError:
    msg = (
        f"SchemaMergeFailure: Failed to write table due to schema mismatch. {what}: "
        f"publish the file again {how}, or drop_table and load again"
    )
    return SchemaRefusedError(msg, column=column.name, type=_words(column))


def marker_fault(kind: pa.DataType | None) -> str | None:
    """Return what is wrong with the type of a marker column; None = nothing, or no such column."""
    if kind is None or kind in _MARKER_TYPES:
        return None
    return f"{ROW_MARKER} is {kind}: it must be an integer, int32 at best"


def _words(column: Column) -> str:
    return column.type if column.nullable else f"{column.type} not null"
