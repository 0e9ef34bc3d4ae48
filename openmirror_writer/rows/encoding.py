"""The way in for every verb: dicts or Arrow, told apart here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

import pyarrow as pa

from openmirror_writer.errors import InvalidRowError, SchemaRefusedError
from openmirror_writer.rows.arrow import encode_arrow, is_arrow, open_stream
from openmirror_writer.rows.cells import naming
from openmirror_writer.rows.dicts import as_dicts, encode_dicts, gather
from openmirror_writer.rows.inference import infer_type
from openmirror_writer.rows.needs import CHUNK_ROWS, Needs
from openmirror_writer.schema import ROW_MARKER, check_column_names, file_type, refuse_unknown_extension


def encode(rows: object, needs: Needs) -> Iterator[pa.RecordBatch]:
    """Encode the rows of one call, lazily and strictly.

    Args:
        rows: An iterable of mappings of column to value, or Arrow (see `is_arrow`). Rows are read some thousands ahead:
            a generator must make a new dict for each row, not change the last one.
        needs: Columns, keys and what may be absent.

    Yields:
        Batches of exactly ``needs.columns``, 1 to `CHUNK_ROWS` rows each; none if there are no rows.

    Raises:
        InvalidRowError: ``rows`` is no such thing, or a row or a value does not fit: row (counted over the whole call),
            key, column, value and type are named. The batches before it have been yielded.
        SchemaRefusedError: Arrow with a type that no column can have, such as a nested one.
    """
    if is_arrow(rows):
        return encode_arrow(rows, needs)
    return encode_dicts(_iterator(rows, needs.table), needs)


def encode_keys(old_keys: object, needs: Needs) -> Iterator[pa.RecordBatch]:
    """Encode the old keys of an update.

    Args:
        old_keys: As the rows of `encode`, with exactly the key columns.
        needs: Of the update; its key columns are used.

    Yields:
        Batches of the key columns, in the order of ``needs.keys``, 1 to `CHUNK_ROWS` rows each.

    Raises:
        InvalidRowError: As `encode`; also for a column that is no key.
    """
    return encode(old_keys, needs.for_keys)


def peek_columns(rows: object, table: str) -> tuple[pa.Schema, object]:
    """Find the columns of a table that declares none.

    Dicts: the names of the first row, in its order; the types of the first `CHUNK_ROWS` rows. Arrow: the stream's
    schema in the types of files; a last column ``__rowMarker__`` is left out. All columns are nullable: nullability
    is never taken from data.

    Args:
        rows: As for `encode`.
        table: For errors.

    Returns:
        The columns, and rows to go on with in place of ``rows``: nothing that was read is lost.

    Raises:
        InvalidRowError: ``rows`` is no such thing, a row is no mapping, or lacks a column of the first row.
        SchemaRefusedError: There is no row, a type would be a guess, or the mirror would refuse a name or a type.
    """
    if is_arrow(rows):
        reader = open_stream(rows, table)
        return _arrow_columns(reader.schema, table), reader
    iterator = _iterator(rows, table)
    first = list(islice(iterator, CHUNK_ROWS))
    return _dict_columns(first, table), chain(first, iterator)


def _iterator(rows: object, table: str) -> Iterator[object]:
    if isinstance(rows, Mapping):
        msg = "rows is one row; wrap it in a list: [row]"
    elif rows is None:
        msg = "rows is None; hand over an iterable of dicts, an empty one if there are none"
    elif isinstance(rows, (str, bytes, bytearray, memoryview)):
        msg = f"rows is {type(rows).__name__}; parse it first, then hand over an iterable of dicts"
    elif hasattr(rows, "collect") and not isinstance(rows, Iterable):
        msg = f"rows is a {type(rows).__name__}, which holds no rows yet; hand over what collect() returns"
    elif isinstance(rows, type) or not isinstance(rows, Iterable):
        msg = f"rows is a {type(rows).__name__}; hand over an iterable of dicts, or an Arrow table"
    else:
        return iter(rows)
    raise InvalidRowError(msg, table=table)


def _arrow_columns(schema: pa.Schema, table: str) -> pa.Schema:
    fields = list(schema)
    if fields and fields[-1].name == ROW_MARKER:
        fields.pop()
    with naming(table):
        check_column_names([field.name for field in fields])
        for field in fields:
            refuse_unknown_extension(field)
        return pa.schema([pa.field(field.name, file_type(field.name, field.type)) for field in fields])


def _dict_columns(first: list[object], table: str) -> pa.Schema:
    if not first:
        msg = "there is no row that tells the columns; declare them with columns="
        raise SchemaRefusedError(msg, table=table)
    rows = as_dicts(first, table, 0)
    with naming(table):
        check_column_names(list(rows[0]))
    values = gather(rows, list(rows[0]), table)
    return pa.schema([pa.field(name, infer_type(name, column, table)) for name, column in values.items()])
