"""The cells of a file before they are written: the one that these options cannot write is found and named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.errors import InvalidRowError
from openmirror_writer.formats.text.columns import TEXT, may_stand_as, to_text, unwritable_values, value_bytes
from openmirror_writer.formats.text.dialect import Dialect, is_utf_8, transcode
from openmirror_writer.schema import ROW_MARKER, type_text


@dataclass(frozen=True)
class _BadCell:
    row: int
    column: str
    reason: str


@dataclass(frozen=True)
class Rows:
    """Rows to be written, and what names them in errors.

    Attributes:
        data: The data columns.
        markers: One per row.
        table: Of the error.
        keys: The key columns.
        first_row: What the first row counts as.
    """

    data: pa.RecordBatch
    markers: pa.Int32Array
    table: str | None = None
    keys: Sequence[str] = ()
    first_row: int = 0


def refuse_unwritable(dialect: Dialect, rows: Rows) -> None:
    """Refuse rows that hold a value which cannot be written, or would read back as another one.

    Raises:
        InvalidRowError: The first such row, with its key, column, value and type.
    """
    _refuse_first(chain(_bad_cells(dialect, rows), _outside_cells(dialect, rows)), rows)


def is_writable_but_for_encoding(dialect: Dialect, rows: Rows) -> bool:
    """Return whether only characters that the encoding lacks can keep the rows from being written."""
    return next(_bad_cells(dialect, rows), None) is None


def _outside_cells(dialect: Dialect, rows: Rows) -> Iterator[_BadCell]:
    """Yield the first cell of each column that holds a character which the encoding lacks."""
    if is_utf_8(dialect.encoding):
        return
    reason = f"{dialect.encoding} lacks a character of it; use encoding='UTF-8'"
    for name, values in zip(rows.data.schema.names, rows.data.columns, strict=True):
        if pa.types.is_string(values.type):
            row = _first(_outside(dialect.encoding, values))
            if row is not None:
                yield _BadCell(row, name, reason)


def _refuse_first(cells: Iterable[_BadCell], rows: Rows) -> None:
    bad = min(cells, key=lambda cell: cell.row, default=None)
    if bad is None:
        return
    values = rows.markers if bad.column == ROW_MARKER else rows.data.column(bad.column)
    msg = f"this value cannot be written to the column {bad.column!r}: {bad.reason}"
    raise InvalidRowError(
        msg,
        table=rows.table,
        row=rows.first_row + bad.row,
        key={name: rows.data.column(name)[bad.row].as_py() for name in rows.keys} or None,
        column=bad.column,
        value=_python_value(values, bad.row),
        type=type_text(values.type),
    )


def _bad_cells(dialect: Dialect, rows: Rows) -> Iterator[_BadCell]:
    """Yield the first bad cell of each column and reason."""
    for name, values in zip([*rows.data.schema.names, ROW_MARKER], [*rows.data.columns, rows.markers], strict=True):
        for odd, reason in _oddities(dialect, values):
            row = _first(odd)
            if row is not None:
                yield _BadCell(row, name, reason)


def _first(odd: pa.BooleanArray | None) -> int | None:
    row = -1 if odd is None else pc.index(odd, pa.scalar(value=True)).as_py()
    return None if row < 0 else row


def _oddities(dialect: Dialect, values: pa.Array[Any]) -> Iterator[tuple[pa.BooleanArray, str]]:
    """Yield masks of cells that cannot be written, each with its reason; NULL is none of them."""
    unwritable = unwritable_values(values)
    if unwritable is not None:
        yield unwritable
        return  # its text is not defined
    if not dialect.quote and may_stand_as(dialect.null_value, values.type):
        yield from _null_twins(dialect, values)
    if pa.types.is_string(values.type):
        yield from _unprotected(dialect, values)


def _null_twins(dialect: Dialect, values: pa.Array[Any]) -> Iterator[tuple[pa.BooleanArray, str]]:
    null = pa.scalar(dialect.null_value, TEXT)
    texts = to_text(values)
    reason = f"without a quote the text {dialect.null_value!r} is NULL; give quote=, or another null_value="
    yield pc.equal(texts, null), reason
    if dialect.escape and dialect.escape in dialect.null_value:
        yield pc.equal(escaped(dialect, texts), null), reason


def _unprotected(dialect: Dialect, values: pa.Array[Any]) -> Iterator[tuple[pa.BooleanArray, str]]:
    for char in dialect.unwritable:
        if char.encode() in value_bytes(values):
            if dialect.quote:
                reason = (
                    f"it holds the quote {char!r}, and there is no escape=; {dialect.quote!r} as escape= doubles it"
                )
            else:
                reason = f"it holds {char!r}, and neither quote= nor escape= protects it; give one"
            yield pc.match_substring(values, char), reason


def _outside(encoding: str, values: pa.Array[Any]) -> pa.BooleanArray | None:
    if transcode(value_bytes(values.drop_null()).decode(), encoding) is not None:
        return None
    fits = [value is None or transcode(value, encoding) is not None for value in values.to_pylist()]
    return pc.invert(pa.array(fits, pa.bool_()))


def escaped(dialect: Dialect, texts: pa.Array[Any]) -> pa.Array[Any]:
    """Return text values with an escape before each character that needs one, still without quotes.

    Args:
        dialect: How they are to be written.
        texts: Without characters that cannot be written.
    """
    if not dialect.escape:
        return texts
    data = value_bytes(texts)
    for char in dialect.escape + dialect.unsafe.replace(dialect.escape, ""):  # the escape first, or it is escaped twice
        if char.encode() in data:
            texts = pc.replace_substring(texts, char, dialect.escape + char)
    return texts


def _python_value(values: pa.Array[Any], row: int) -> object:
    try:
        return values[row].as_py()
    except (OverflowError, ValueError):  # a date or a moment that Python does not hold
        kind = values.type
        naive = values.cast(pa.timestamp(kind.unit)) if pa.types.is_timestamp(kind) else values
        return naive.slice(row, 1).cast(pa.string())[0].as_py()
