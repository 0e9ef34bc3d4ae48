"""The columns of landing files and of their Delta table, and what sets them apart. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from openmirror_writer.column_types import column_type
from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.schema import ROW_MARKER, landed_type

INTERNAL = "__om_"
"""Names with this beginning are the mirror's own while it applies a batch."""

_TAKEN = frozenset({ROW_MARKER.casefold(), "_metadata"})
"""Spark and Delta read a file's name and row numbers from ``_metadata``: a merge fails where a column is called so."""
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
        if not name or name.casefold() in _TAKEN or name.startswith(INTERNAL):
            msg = f"the column name {name!r} cannot be mirrored: rename it"
            raise SchemaRefusedError(msg, column=name)
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


def drift(table: Sequence[Column], file: Sequence[Column]) -> str | None:
    """Return in words how the columns of a file differ from the table's, None if they do not; the order is free."""
    there = {column.name: column for column in file}
    for column in table:
        other = there.pop(column.name, None)
        if other is None:
            return (
                f"column {column.name!r} ({_words(column)}) of the table is missing in this file: "
                "publish it with NULLs, or drop_table and load again"
            )
        if (column.type, column.nullable) != (other.type, other.nullable):
            return (
                f"column {column.name!r} is {_words(column)} in the table and {_words(other)} in this file: "
                "publish the table's type, or drop_table and load again"
            )
    for other in there.values():
        return (
            f"column {other.name!r} ({_words(other)}) of this file is not in the table: added columns are not "
            "supported by this version; leave it out, or drop_table and load again"
        )
    return None


def marker_fault(kind: pa.DataType | None) -> str | None:
    """Return what is wrong with the type of a marker column; None = nothing, or no such column."""
    if kind is None or kind in _MARKER_TYPES:
        return None
    return f"{ROW_MARKER} is {kind}: it must be an integer, int32 at best"


def _words(column: Column) -> str:
    return column.type if column.nullable else f"{column.type} not null"
