"""Typed columns as text and back: which ``DataType`` a column has, and how its values are written.

| column | ``DataType`` | text | reads back as |
|---|---|---|---|
| ``float64``, ``float32`` | Double, Single | the shortest that reads back equal; no NaN, no infinities | the same |
| ``int8`` ``int16`` ``uint8`` | Int16 | digits | int16 |
| ``int32`` ``uint16`` | Int32 | digits | int32 |
| ``int64`` ``uint32`` | Int64 | digits | int64 |
| ``timestamp_ntz`` | DateTime | ``YYYY-MM-DD HH:MM:SS.ffffff``, years 0001 to 9999 | timestamp[us] |
| ``timestamp`` | DateTime | its date and time in UTC: text carries no zone | timestamp[us], without a zone |
| ``date`` | IDate | ``YYYY-MM-DD``, years 0001 to 9999 | date32 |
| ``string`` | String | itself | string |
| ``bool`` | Boolean | ``true``, ``false`` | bool |
| ``binary`` | ByteArray | two lower-case hexadecimal digits a byte | binary |
| none | ITime | ``HH:MM:SS.ffffff`` | string |

The documents name no text for NaN and infinities, hence they are refused. They name none for ByteArray either: what the
service reads there is not known; hexadecimal digits need no escape in any dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.column_types import text_type
from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.metadata import ColumnDefinition, SchemaDefinition
from openmirror_writer.schema import ROW_MARKER, check_column_names, type_text

TEXT = pa.large_string()
"""Of cells while they are written: all cells of a file may be more than the 2 GiB that a string column holds."""

ARROW_TYPES: Mapping[str, pa.DataType] = {
    "Double": pa.float64(),
    "Single": pa.float32(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "DateTime": pa.timestamp("us"),
    "IDate": pa.date32(),
    "ITime": pa.string(),
    "String": pa.string(),
    "Boolean": pa.bool_(),
    "ByteArray": pa.binary(),
}
"""Each ``DataType`` of the documents, and the Arrow type that it is read as."""

_FIRST_DAY, _LAST_DAY = date.min, date.max
_FIRST_MOMENT, _LAST_MOMENT = datetime.min, datetime.max  # noqa: DTZ901 - text has no zone
_IN_TYPED_TEXT = frozenset("0123456789+-.: true false abcdef")
"""All characters that numbers, dates, booleans and bytes are written with."""
_HEX = r"^(?:[0-9A-Fa-f]{2})*$"
_DIGITS = r"^-?[0-9]+$"


def data_type(column: pa.Field[Any]) -> str:
    """Return the ``DataType`` of a column.

    Raises:
        SchemaRefusedError: There is none that holds its values; with the ways out.
    """
    kind = column.type
    found = text_type(kind)
    if found is None:
        msg = f"the column {column.name!r} is {type_text(kind)}, which delimited text cannot hold: {_way_out(kind)}"
        raise SchemaRefusedError(msg, column=column.name, type=type_text(kind))
    return found


def definition_of(columns: pa.Schema) -> SchemaDefinition:
    """Return the ``SchemaDefinition`` of a table's columns; ``__rowMarker__`` is not listed in it.

    Raises:
        SchemaRefusedError: As `data_type`.
    """
    return SchemaDefinition(
        columns=tuple(ColumnDefinition(name=f.name, data_type=data_type(f), is_nullable=f.nullable) for f in columns)
    )


def columns_of(definition: SchemaDefinition, *, file: str) -> pa.Schema:
    """Return the columns that a ``SchemaDefinition`` describes; an ``IsNullable`` that is absent is true.

    Args:
        definition: Of a table's metadata; a ``__rowMarker__`` in it is skipped.
        file: Path of the metadata, for errors.

    Raises:
        SchemaRefusedError: A ``DataType`` that the documents do not name, or names that cannot stand in one table.
    """
    fields = []
    for column in definition.columns:
        if column.name == ROW_MARKER:
            continue
        if column.data_type not in ARROW_TYPES:
            msg = f"the DataType {column.data_type!r} is not known; use one of: {', '.join(ARROW_TYPES)}"
            raise SchemaRefusedError(msg, file=file, column=column.name, type=column.data_type)
        fields.append(pa.field(column.name, ARROW_TYPES[column.data_type], nullable=column.is_nullable is not False))
    try:
        check_column_names([f.name for f in fields])
    except SchemaRefusedError as error:
        error.file = file
        raise
    return pa.schema(fields)


def to_text(values: pa.Array[Any]) -> pa.Array[Any]:
    """Return the text of each value, without quotes and escapes; NULL stays NULL.

    Args:
        values: Of a type that has a ``DataType``, and none that `unwritable_values` finds.
    """
    if pa.types.is_binary(values.type):
        return _hexadecimal(values)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us"))  # of a UTC instant its date and time
    return values.cast(TEXT)


def may_stand_as(text: str, kind: pa.DataType) -> bool:
    """Return whether a value of this type could have this text; False is certain."""
    if pa.types.is_string(kind):
        return True
    return set(text) <= _IN_TYPED_TEXT and (bool(text) or pa.types.is_binary(kind))


def unwritable_values(values: pa.Array[Any]) -> tuple[pa.BooleanArray, str] | None:
    """Find the values of a column that have no text.

    Returns:
        True for each of them, and the reason; None if all have one.
    """
    if pa.types.is_floating(values.type):
        finite = pc.is_finite(values)
        if pc.all(finite, min_count=0).as_py():
            return None
        reason = "text has no form for NaN and infinities that the documents name; write NULL, or use Parquet"
        return pc.invert(finite), reason
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        first, last = _extremes(values.type)
        odd = pc.or_(pc.less(values, first), pc.greater(values, last))
        reason = "text holds the years 0001 to 9999; use Parquet, or a string column"
        return (odd, reason) if pc.any(odd).as_py() else None
    return None


def from_text(texts: pa.ChunkedArray[Any], kind: pa.DataType) -> pa.ChunkedArray[Any]:
    """Return the values that texts stand for; NULL stays NULL.

    Args:
        texts: string.
        kind: One of `ARROW_TYPES`.

    Raises:
        pyarrow.ArrowInvalid: One of them stands for none, or for one that the type does not hold.
    """
    if kind == pa.string():
        return texts
    if kind == pa.binary():
        _all_match(texts, _HEX)
        return pa.chunked_array([_from_hexadecimal(chunk) for chunk in texts.chunks], kind)
    if pa.types.is_integer(kind):
        _all_match(texts, _DIGITS)  # Arrow would take 0x10 as well
    values = texts.cast(kind)
    if pa.types.is_floating(kind) and pc.any(pc.invert(pc.is_finite(values))).as_py():
        msg = "NaN, an infinity, or too large for the type"
        raise pa.ArrowInvalid(msg)
    return values


def _way_out(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return "use Parquet, or declare it string (exact) or float64 (rounded)"
    if pa.types.is_uint64(kind):
        return "use Parquet, or declare it int64 if its values fit, else string"
    return "use Parquet, or hand it over as text in a string column"


def _extremes(kind: pa.DataType) -> tuple[pa.Scalar[Any], pa.Scalar[Any]]:
    if pa.types.is_date(kind):
        return pa.scalar(_FIRST_DAY, kind), pa.scalar(_LAST_DAY, kind)
    first, last = (pa.scalar(moment, pa.timestamp("us")) for moment in (_FIRST_MOMENT, _LAST_MOMENT))
    return first.cast(kind), last.cast(kind, safe=False)


def _hexadecimal(values: pa.Array[Any]) -> pa.Array[Any]:
    # Two digits a byte: the digits of all values are those of their common buffer, and each offset is doubled.
    filled = _filled(values, b"")
    offsets = pc.multiply(_offsets(filled), 2)
    digits = pa.py_buffer(value_bytes(filled).hex().encode())
    return _with_nulls_of(values, _from_buffers(TEXT, offsets, digits))


def _from_hexadecimal(texts: pa.Array[Any]) -> pa.Array[Any]:
    filled = _filled(texts, "")
    offsets = pc.divide(_offsets(filled), 2)
    whole = pa.py_buffer(bytes.fromhex(value_bytes(filled).decode()))
    return _with_nulls_of(texts, _from_buffers(pa.large_binary(), offsets, whole).cast(pa.binary()))


def _from_buffers(kind: pa.DataType, offsets: pa.Array[Any], data: pa.Buffer) -> pa.Array[Any]:
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, offsets.buffers()[1], data])


def _filled(values: pa.Array[Any], empty: bytes | str) -> pa.Array[Any]:
    """Return values with empty ones for NULL: whatever lies in the buffers there is no value."""
    fill: Any = pc.fill_null  # its stubs take no array of any type
    filled: pa.Array[Any] = fill(values, empty)
    return filled


def _with_nulls_of(nulls: pa.Array[Any], values: pa.Array[Any]) -> pa.Array[Any]:
    if not nulls.null_count:
        return values
    both: pa.Array[Any] = pc.if_else(nulls.is_valid(), values, pa.scalar(None, values.type))
    return both


def value_bytes(array: pa.Array[Any]) -> bytes:
    """Return the bytes of all values of a string or binary array, one behind the other.

    Args:
        array: Not NULL anywhere, or what stands in the buffers at NULLs is returned too.
    """
    first, last = _bounds(array)
    data = array.buffers()[2]
    return b"" if data is None else data.slice(first, last - first).to_pybytes()


def _offsets(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return where each value begins, counted from the first one's begin, and where the last one ends."""
    stored = _stored_offsets(array).cast(pa.int64())
    return pc.subtract(stored, stored[0])


def _bounds(array: pa.Array[Any]) -> tuple[int, int]:
    stored = _stored_offsets(array)
    return stored[0].as_py(), stored[-1].as_py()


def _stored_offsets(array: pa.Array[Any]) -> pa.Array[Any]:
    width = pa.int64() if array.type in {pa.large_string(), pa.large_binary()} else pa.int32()
    if not len(array):
        return pa.array([0], width)  # an empty array may have no buffers
    return pa.Array.from_buffers(width, len(array) + 1, [None, array.buffers()[1]], offset=array.offset)


def _all_match(texts: pa.ChunkedArray[Any], pattern: str) -> None:
    matches = pc.match_substring_regex(texts, pattern)
    if pc.any(pc.invert(matches)).as_py():
        msg = f"not of the form {pattern}"
        raise pa.ArrowInvalid(msg)
