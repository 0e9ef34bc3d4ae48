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

`` not null`` behind a type declares a column that is never NULL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.layout import ROW_MARKER

_MAX_PRECISION = 38
_NAMED: Mapping[str, pa.DataType] = {
    **{name: getattr(pa, name)() for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
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
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")

Columns = Mapping[str, "str | pa.DataType"] | pa.Schema
"""How a caller declares columns, in their order; with an Arrow schema, ``nullable=False`` of a field counts."""


def declared_columns(columns: Columns) -> pa.Schema:
    """Return the declaration as an Arrow schema in the types that files carry.

    Args:
        columns: Column name to type (see the table above; Arrow types too), or an Arrow schema.

    Raises:
        SchemaRefusedError: A name or type that the service, or Spark when it reads the file, would refuse.
    """
    if isinstance(columns, pa.Schema):
        fields = [pa.field(f.name, file_type(f.name, f.type), nullable=f.nullable) for f in columns]
    else:
        fields = [_declared(name, kind) for name, kind in columns.items()]
    check_column_names([f.name for f in fields])
    return pa.schema(fields)


def check_column_names(names: Sequence[str]) -> None:
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
            msg = f"a column name must be text that is not empty, got {name!r}"
            raise SchemaRefusedError(msg, column=name if isinstance(name, str) else repr(name))
        if name.casefold() == ROW_MARKER.casefold():
            msg = f"the column {name!r} is the writer's own; rename yours, or hand Arrow with it as last column to write()"
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
    """Refuse key columns that repeat, or that the table does not have.

    Args:
        keys: Key columns.
        columns: The table's columns; None while they are not known.
        table: For the error.

    Raises:
        SchemaRefusedError: As said.
    """
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
    an instant of any zone is one of UTC, seconds are microseconds.

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
        unit = "ms" if kind.unit == "ms" else "us"
        return pa.timestamp(unit, tz="UTC" if kind.tz else None)
    if pa.types.is_decimal(kind):
        return _decimal(name, kind.precision, kind.scale)
    if kind in _ALLOWED:
        return kind
    msg = f"the column {name!r} has type {kind}, which cannot be mirrored: {_way_out(kind)}"
    raise SchemaRefusedError(msg, column=name, type=str(kind))


def type_text(kind: pa.DataType) -> str:
    """Return how a file type is declared, the inverse of `declared_columns` for one type.

    >>> type_text(pa.timestamp("us")), type_text(pa.decimal128(18, 2))
    ('timestamp_ntz', 'decimal(18,2)')
    """
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return next((name for name, named in _NAMED.items() if named == kind and name not in {"float", "boolean"}), str(kind))


def _declared(name: str, kind: str | pa.DataType) -> pa.Field:
    if isinstance(kind, pa.DataType):
        return pa.field(name, file_type(name, kind))
    if not isinstance(kind, str):
        msg = f"the column {name!r} is declared as {kind!r}; use a type name such as 'int64' or an Arrow type"
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
        msg = f"the column {name!r} is decimal({precision},{scale}); Delta holds 1 to 38 digits, 0 to all of them decimal"
        raise SchemaRefusedError(msg, column=name, type=f"decimal({precision},{scale})")
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
