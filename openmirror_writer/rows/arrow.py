"""Arrow to batches: columns by name, checked casts without loss, the bad cell found by halves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.changes import RowMarker
from openmirror_writer.column_types import TextForm
from openmirror_writer.errors import InvalidRowError
from openmirror_writer.rows.casts import CAST_FAILURES, Cast, cast_for, is_bytes, is_text, nulls
from openmirror_writer.rows.cells import cell_error, first_null, missing_column, naming, null_error, unknown_column
from openmirror_writer.rows.needs import CHUNK_ROWS, Needs
from openmirror_writer.schema import ROW_MARKER, declared_type, file_type, refuse_unknown_extension, text_form

_MARKERS = frozenset(int(marker) for marker in RowMarker)


def is_arrow(rows: object) -> bool:
    """Return whether rows come as Arrow: pyarrow, polars and pandas data frames, duckdb relations and the like."""
    return not isinstance(rows, type) and (hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"))


def open_stream(rows: object, table: str) -> pa.RecordBatchReader:
    """Open whatever `is_arrow` as a stream of batches.

    Args:
        rows: The Arrow object; one that can be read only once is used up by reading the stream.
        table: For the error.

    Raises:
        InvalidRowError: It holds a single column, not a table; or structs of which one is NULL.
    """
    if isinstance(rows, pa.ChunkedArray | pa.StructArray) and rows.null_count:
        msg = "a struct that is NULL is no row; drop it, or give its fields their values"
        raise InvalidRowError(msg, table=table, row=first_null(rows))
    if isinstance(rows, pa.RecordBatchReader):
        return rows  # not through the C interface, which would turn an error of its generator into another one
    try:
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(rows)
        batch = pa.record_batch(rows)
    except pa.ArrowInvalid as error:
        msg = f"{type(rows).__name__} is not a table ({error}); hand over a table with the columns by name"
        raise InvalidRowError(msg, table=table) from error
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def encode_arrow(rows: object, needs: Needs) -> Iterator[pa.RecordBatch]:
    """Encode Arrow data lazily.

    Args:
        rows: What `is_arrow`; the order of its columns is free.
        needs: Columns, keys and what may be absent.

    Yields:
        Batches of exactly ``needs.columns``, at most `CHUNK_ROWS` rows each.

    Raises:
        InvalidRowError: Columns, types or a value do not fit. The batches before it have been yielded.
        SchemaRefusedError: A type that no column can have, such as a nested one.
    """
    reader = open_stream(rows, needs.table)
    plan = _plan(reader.schema, needs)
    first_row = 0
    for batch in _cut(reader):
        yield from _fitted(batch, plan, needs, first_row)
        first_row += batch.num_rows


def marked_stream(data: object, needs: Needs) -> Iterator[tuple[pa.RecordBatch, pa.Int32Array]]:
    """Encode Arrow data whose last column is ``__rowMarker__``.

    Args:
        data: What `is_arrow`; the data columns may have any order, the marker any integer type.
        needs: Columns, keys and what may be absent.

    Yields:
        Batches of exactly ``needs.columns`` and their markers, at most `CHUNK_ROWS` rows each.

    Raises:
        InvalidRowError: There is no marker column, it is not the last one, one of its values is none of 0, 1, 2 and 4;
            or columns, types or a value do not fit.
        SchemaRefusedError: A type that no column can have, such as a nested one.
    """
    if not is_arrow(data):
        msg = f"write() takes ChangeBatches, or Arrow whose last column is {ROW_MARKER}; got {type(data).__name__}"
        raise InvalidRowError(msg, table=needs.table)
    reader = open_stream(data, needs.table)
    _check_marker_column(reader.schema, needs.table)
    last = len(reader.schema) - 1
    plan = _plan(reader.schema.remove(last), needs)
    first_row = 0
    for batch in _cut(reader):
        rows = batch.select(range(last))
        markers = _markers(batch.column(last), rows, needs, first_row)
        offset = 0
        for fitted in _fitted(rows, plan, needs, first_row):
            yield fitted, markers.slice(offset, fitted.num_rows)
            offset += fitted.num_rows
        first_row += batch.num_rows


def check_batch(batch: pa.RecordBatch, needs: Needs, first_row: int) -> pa.RecordBatch:
    """Return one batch with exactly ``needs.columns``, cast without loss.

    Args:
        batch: Data columns in any order, without markers; any number of rows.
        needs: Columns, keys and what may be absent.
        first_row: Index of its first row in the call, for errors.

    Raises:
        InvalidRowError: Columns, types or a value do not fit, or it holds more than 2 GiB of text in a column.
        SchemaRefusedError: A type that no column can have, such as a nested one.
    """
    plan = _plan(batch.schema, needs)
    if batch.num_rows == 0:
        return pa.RecordBatch.from_pylist([], schema=needs.columns)
    parts = list(_fitted(batch, plan, needs, first_row))
    if len(parts) == 1:
        return parts[0]
    msg = f"a batch of {batch.num_rows} rows holds more than 2 GiB in a column; hand over smaller batches"
    raise InvalidRowError(msg, table=needs.table, row=first_row)


@dataclass(frozen=True)
class _Source:
    """Where a column comes from: index in the caller's batch (None: absent, so NULL) and how it is cast."""

    index: int | None
    cast: Cast | None


def _plan(schema: pa.Schema, needs: Needs) -> list[_Source]:
    """Match the caller's columns with the table's, before the first row is read."""
    known = frozenset(needs.names)
    for name in schema.names:
        if name not in known:
            raise unknown_column(needs, name)
        if schema.names.count(name) > 1:
            msg = f"the column {name!r} is there {schema.names.count(name)} times; rename or drop the others"
            raise InvalidRowError(msg, table=needs.table, column=name)
    return [_source(schema, field, needs) for field in needs.columns]


def _source(schema: pa.Schema, field: pa.Field[Any], needs: Needs) -> _Source:
    index = schema.get_field_index(field.name)
    if index < 0:
        if field.name in needs.required:
            raise missing_column(needs, field.name)
        return _Source(None, None)
    source = schema.field(index).type
    with naming(needs.table):
        refuse_unknown_extension(schema.field(index))
    form = text_form(field)
    cast = cast_for(source, field.type, form)
    if cast is None:
        if form is None:
            with naming(needs.table):
                file_type(field.name, source)  # raises with the way out where no column could have this type
        way_out = _way_out(source, field.type) if form is None else _FORM_WAY_OUT[form]
        msg = f"{source} is not converted in silence: {way_out}"
        kind = declared_type(field)
        raise InvalidRowError(msg, table=needs.table, column=field.name, value=str(source), type=kind)
    return _Source(index, cast)


_FORM_WAY_OUT: Mapping[TextForm, str] = {
    TextForm.JSON: (
        "a json column takes text, and nested values of text, numbers, booleans and maps with text keys; cast what is "
        "inside first, or declare another type"
    ),
    TextForm.UUID: "cast it to Arrow's uuid, or to text of the form 8-4-4-4-12, or declare another type",
    TextForm.TIME: "cast it to Arrow's time64, or to text HH:MM:SS.ffffff, or declare another type",
}


def _way_out(source: pa.DataType, target: pa.DataType) -> str:
    if pa.types.is_floating(source) and pa.types.is_integer(target):
        return "cast it first (pandas makes floats of ints beside NULLs: use its Int64), or declare float64"
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        return "one has a zone, the other has none; convert it at the source, or declare timestamp_ntz or timestamp"
    if pa.types.is_timestamp(source) and pa.types.is_date(target):
        return "it would lose its time; cast it to a date first, or declare timestamp or timestamp_ntz"
    if (is_text(source) and is_bytes(target)) or (is_bytes(source) and is_text(target)):
        return "encode or decode it first, or declare the other type"
    return "cast it first, or declare another type"


def _cut(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        for offset in range(0, batch.num_rows, CHUNK_ROWS):
            yield batch.slice(offset, CHUNK_ROWS)


def _fitted(batch: pa.RecordBatch, plan: list[_Source], needs: Needs, first_row: int) -> Iterator[pa.RecordBatch]:
    """Cast the rows; in several batches only where one cannot hold them."""
    try:
        fitted = _cast(batch, plan, needs)
    except CAST_FAILURES:
        if batch.num_rows == 1:
            raise _bad_cell(batch, plan, needs, first_row) from None
        middle = batch.num_rows // 2
        yield from _fitted(batch.slice(0, middle), plan, needs, first_row)
        yield from _fitted(batch.slice(middle), plan, needs, first_row + middle)
        return
    for name in needs.never_null:
        column = fitted.column(name)
        if column.null_count:
            row = first_null(column)
            raise null_error(needs, row=first_row + row, column=name, key=_key(batch, row, needs))
    yield fitted


def _cast(batch: pa.RecordBatch, plan: list[_Source], needs: Needs) -> pa.RecordBatch:
    arrays = [
        nulls(batch.num_rows, field.type)
        if source.index is None or source.cast is None
        else source.cast(batch.column(source.index))
        for source, field in zip(plan, needs.columns, strict=True)
    ]
    fitted = pa.RecordBatch.from_arrays(arrays, schema=needs.columns)
    fitted.validate(full=True)  # the caller's buffers may hold text that is no UTF-8, and decimals of too many digits
    return fitted


def _bad_cell(batch: pa.RecordBatch, plan: list[_Source], needs: Needs, row: int) -> InvalidRowError:
    """Return the error for the one row of a batch that cannot be cast."""
    for source, name in zip(plan, needs.names, strict=True):
        if source.index is None or source.cast is None:
            continue
        column = batch.column(source.index)
        try:
            source.cast(column).validate(full=True)
        except CAST_FAILURES as error:
            reason = f"{error}; nothing is cut or rounded: mend the value, or declare another type"
            return cell_error(reason, needs, row=row, column=name, value=_value(column[0]), key=_key(batch, 0, needs))
    msg = "this row cannot be cast"  # not reached: a row fails because one of its cells does
    return InvalidRowError(msg, table=needs.table, row=row)


def _key(batch: pa.RecordBatch, row: int, needs: Needs) -> Mapping[str, Any]:
    names = batch.schema.names
    return {name: _value(batch.column(name)[row]) for name in needs.keys if name in names}


def _value(scalar: pa.Scalar[Any]) -> Any:  # noqa: ANN401 - any cell
    try:
        if not pa.types.is_time(scalar.type):  # pyarrow cuts its nanoseconds, and begins anew after midnight
            return scalar.as_py()
    except (ValueError, OverflowError):
        pass
    try:
        return scalar.cast(pa.string()).as_py()  # nanoseconds, and years that Python does not hold
    except (ValueError, pa.ArrowNotImplementedError):  # zones that nobody knows, text that is not UTF-8
        return f"a {scalar.type} that cannot be shown"


def _check_marker_column(schema: pa.Schema, table: str) -> None:
    names = schema.names
    if names and names[-1] == ROW_MARKER:
        if pa.types.is_integer(schema.field(len(names) - 1).type):
            return
        msg = f"{ROW_MARKER} must be an integer, got {schema.field(len(names) - 1).type}; cast it to int32"
    elif ROW_MARKER in names:
        msg = f"{ROW_MARKER} must be the last column, here it is number {names.index(ROW_MARKER) + 1} of {len(names)}"
    else:
        msg = f"the last column must be {ROW_MARKER}; add it, or call insert, update, upsert or delete"
    raise InvalidRowError(msg, table=table, column=ROW_MARKER)


def _markers(column: pa.Array[Any], rows: pa.RecordBatch, needs: Needs, first_row: int) -> pa.Int32Array:
    if set(pc.unique(column).to_pylist()) <= _MARKERS:
        markers: Any = column.cast(pa.int32())
        return markers  # type: ignore[no-any-return] # the stubs call it an array of some kind
    row, marker = next((row, value) for row, value in enumerate(column.to_pylist()) if value not in _MARKERS)
    msg = f"{marker!r} is no row marker; use 0 (insert), 1 (update), 2 (delete) or 4 (upsert)"
    key = dict(_key(rows, row, needs)) or None
    raise InvalidRowError(
        msg, table=needs.table, row=first_row + row, key=key, column=ROW_MARKER, value=marker, type="int32"
    )
