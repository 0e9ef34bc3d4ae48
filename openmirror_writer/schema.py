"""The columns of a table: which types they may have and how they are declared. Producer and consumer share this model.

| declared as | Arrow | in Delta |
|---|---|---|
| ``int8`` ``int16`` ``int32`` ``int64`` | the same | tinyint, smallint, int, bigint |
| ``uint8`` ``uint16`` ``uint32`` ``uint64`` | the same | smallint, int, bigint, decimal(20,0) |
| ``float32`` (``float``), ``float64`` (``double``) | float, double | float, double |
| ``decimal(p,s)``, p up to 38 | decimal128(p, s) | decimal(p,s) |
| ``bool`` (``boolean``), ``string``, ``binary`` | bool, string, binary | boolean, string, binary |
| ``date`` (``date32``) | date32 | date |
| ``timestamp``: an instant | timestamp[us, tz=UTC] | timestamp |
| ``timestamp_ntz``: date and time without a zone | timestamp[us] | timestamp_ntz |

`` not null`` behind a type declares a column that is never NULL. Timestamps in milliseconds have no name here, but stay
what they are where an Arrow schema or a standing file has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from openmirror_writer.errors import SchemaRefusedError, shorten

ROW_MARKER = "__rowMarker__"
"""The column that says what a row does: int32, the last one; `openmirror_writer.changes.RowMarker` has its values."""

_MAX_PRECISION = 38
_NAMED: Mapping[str, pa.DataType] = {  # of two names of one type, the first is the one that we print
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float": pa.float32(),
    "float64": pa.float64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "date32": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_ALLOWED = frozenset(_NAMED.values()) | {pa.timestamp("ms"), pa.timestamp("ms", tz="UTC")}
_DECIMAL = re.compile(r"decimal\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)")

Columns = Mapping[str, "str | pa.DataType"] | pa.Schema
"""How a caller declares columns, in their order; with an Arrow schema, ``nullable=False`` of a field counts."""


def declared_columns(columns: Columns) -> pa.Schema:
    """Return the declaration as an Arrow schema in the types that files carry.

    Args:
        columns: Column name to type (see the table above; Arrow types too), or an Arrow schema.

    Raises:
        SchemaRefusedError: A name or type that the service, or Spark when it reads the file, would refuse; or it is
            neither a map nor a schema.

    >>> declared_columns({"id": "int64 not null", "amount": "decimal(18,2)"})
    id: int64 not null
    amount: decimal128(18, 2)
    """
    given: object = columns
    if isinstance(given, pa.Schema):
        fields = [pa.field(f.name, file_type(f.name, f.type), nullable=f.nullable) for f in given]
    elif isinstance(given, Mapping):
        fields = [_declared(name, kind) for name, kind in given.items()]
    else:
        msg = f"columns= takes a map of name to type or a pyarrow.Schema, got {type(given).__name__}"
        raise SchemaRefusedError(msg)
    check_column_names([f.name for f in fields])
    return pa.schema(fields)


def check_column_names(names: Sequence[object]) -> None:
    """Refuse column names that cannot stand together in one table.

    Raises:
        SchemaRefusedError: No column, an empty name, ``__rowMarker__``, one that UTF-8 cannot hold, or two that differ
            by case at most (Delta does not tell them apart).
    """
    if not names:
        msg = "a table needs at least one column; give columns=, or a first row that has some"
        raise SchemaRefusedError(msg)
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str) or not name:
            msg = f"a column name must be text that is not empty, got {shorten(name)}"
            raise SchemaRefusedError(msg, column=name if isinstance(name, str) else shorten(name))
        if name.casefold() == ROW_MARKER.casefold():
            msg = f"the column {name!r} is the writer's own; rename yours, or hand it to write() as Arrow's last column"
            raise SchemaRefusedError(msg, column=name)
        try:
            name.encode()
        except UnicodeEncodeError as error:
            msg = f"the column name {name!r} holds a lone surrogate, which UTF-8 cannot hold; rename it"
            raise SchemaRefusedError(msg, column=name) from error
        if name.casefold() in seen:
            msg = f"the columns {seen[name.casefold()]!r} and {name!r} differ by case at most; rename one"
            raise SchemaRefusedError(msg, column=name)
        seen[name.casefold()] = name


def check_keys(keys: Sequence[str], columns: pa.Schema | None, *, table: str) -> None:
    """Refuse key columns that are no names, that repeat, or that the table does not have.

    Args:
        keys: Key columns; none: a table that takes inserts only.
        columns: The table's columns; None while they are not known.
        table: For the error.

    Raises:
        SchemaRefusedError: As said.
    """
    odd = [key for key in keys if not _is_text(key)]
    if odd:
        msg = f"the key column {shorten(odd[0])} is no name; give the names of columns"
        raise SchemaRefusedError(msg, table=table)
    if len({k.casefold() for k in keys}) != len(keys):
        msg = f"the key columns {list(keys)} name a column twice"
        raise SchemaRefusedError(msg, table=table)
    for key in keys:
        if columns is not None and key not in columns.names:
            msg = f"the key column {key!r} is none of the table's columns {columns.names}"
            raise SchemaRefusedError(msg, table=table, column=key)


def file_type(name: str, kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column of Arrow type ``kind`` stands in files.

    Representations of the same values are one type: large and view strings are ``string``, dictionaries their values,
    an instant of any zone is one of UTC, seconds and nanoseconds are microseconds. Whether each value fits is not
    looked at here.

    Args:
        name: The column, for the error.
        kind: What the caller has.

    Raises:
        SchemaRefusedError: The service or Spark cannot read the type, or a guess would be needed; with the way out.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ms" if kind.unit == "ms" else "us", tz="UTC" if kind.tz else None)
    if pa.types.is_decimal(kind):
        return _decimal(name, kind.precision, kind.scale)
    if kind in _ALLOWED:
        return kind
    msg = f"the column {name!r} has type {kind}, which cannot be mirrored: {_way_out(kind)}"
    raise SchemaRefusedError(msg, column=name, type=str(kind))


def type_text(kind: pa.DataType) -> str:
    """Return how a file type is declared, the inverse of `declared_columns` for one type; Arrow's name if it has none.

    >>> type_text(pa.timestamp("us")), type_text(pa.decimal128(18, 2))
    ('timestamp_ntz', 'decimal(18,2)')
    """
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return next((name for name, named in _NAMED.items() if named == kind), str(kind))


def _is_text(name: object) -> bool:
    return isinstance(name, str)


def _declared(name: str, kind: object) -> pa.Field[Any]:
    if isinstance(kind, pa.DataType):
        return pa.field(name, file_type(name, kind))
    if not isinstance(kind, str):
        msg = f"the column {name!r} is declared as {shorten(kind)}; use a type name such as 'int64' or an Arrow type"
        raise SchemaRefusedError(msg, column=name)
    text = " ".join(kind.lower().split())
    nullable = not text.endswith(" not null")
    text = text.removesuffix(" not null")
    if match := _DECIMAL.fullmatch(text):
        return pa.field(name, _decimal(name, int(match[1]), int(match[2])), nullable=nullable)
    if text not in _NAMED:
        msg = f"the column {name!r} is declared as {kind!r}; known: decimal(p,s), {', '.join(_NAMED)}"
        raise SchemaRefusedError(msg, column=name, type=kind)
    return pa.field(name, _NAMED[text], nullable=nullable)


def _decimal(name: str, precision: int, scale: int) -> pa.DataType:
    if not 1 <= precision <= _MAX_PRECISION or not 0 <= scale <= precision:
        kind = f"decimal({precision},{scale})"
        msg = f"the column {name!r} is {kind}; Delta holds 1 to {_MAX_PRECISION} digits, 0 to all of them decimal"
        raise SchemaRefusedError(msg, column=name, type=kind)
    return pa.decimal128(precision, scale)


def _way_out(kind: pa.DataType) -> str:
    if pa.types.is_null(kind):
        return "nothing tells its type; declare it with columns="
    if pa.types.is_nested(kind):
        return "hand it over as JSON text in a string column"
    if pa.types.is_time(kind):
        return "Delta has no time of day; hand it over as text HH:MM:SS.ffffff in a string column"
    if pa.types.is_duration(kind):
        return "hand it over as a number in an int64 column"
    if pa.types.is_float16(kind):
        return "hand it over as float32"
    return "hand it over as text in a string column"
