"""Rows to delimited text by Arrow kernels: a column at a time, then the cells of each row joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import InvalidRowError
from openmirror_writer.formats.text.cells import Rows, escaped, is_writable_but_for_encoding, refuse_unwritable
from openmirror_writer.formats.text.columns import TEXT, may_stand_as, to_text
from openmirror_writer.formats.text.dialect import Dialect, is_utf_8, transcode
from openmirror_writer.schema import ROW_MARKER

_CHUNK_ROWS = 65_536
"""Rows that are joined at once: with 4,096 the calls cost half as much again, with all of them memory does."""


_THREADS = 2
"""That join chunks, while Arrow lets go of Python's lock: two need 0.55 of the time of one where two cores are free."""


def encode_rows(
    dialect: Dialect, columns: pa.Schema, batches: Sequence[ChangeBatch], *, table: str | None, keys: Sequence[str]
) -> bytes:
    """Return header and rows in the dialect's encoding, see `DelimitedText.encode`."""
    header = dialect.header(columns.names)
    chunks = list(_chunks(columns, batches, table, keys))
    if not chunks:
        msg = "a text file without a row is never published: the service stops the table at it; write no file"
        raise InvalidRowError(msg, table=table)
    if all(is_writable_but_for_encoding(dialect, chunk) for chunk in chunks):
        text = b"".join([header.encode(), *_all_joined(dialect, chunks)])
        if is_utf_8(dialect.encoding):
            return text
        data = transcode(text.decode(), dialect.encoding)
        if data is not None:
            return data
    for chunk in chunks:
        refuse_unwritable(dialect, chunk)
    # Each value by itself fits: only an encoding with shifts could get here.
    msg = f"{dialect.encoding} cannot hold the rows of this file together; use encoding='UTF-8'"
    raise InvalidRowError(msg, table=table)


def _chunks(
    columns: pa.Schema, batches: Sequence[ChangeBatch], table: str | None, keys: Sequence[str]
) -> Iterator[Rows]:
    rows = pa.Table.from_batches([batch.rows for batch in batches], schema=columns)
    markers = pa.chunked_array([markers_of(batch) for batch in batches], pa.int32())
    marked = rows.append_column(pa.field(ROW_MARKER, pa.int32()), markers)
    first_row = 0
    for chunk in marked.combine_chunks().to_batches(max_chunksize=_CHUNK_ROWS):
        data = pa.RecordBatch.from_arrays(chunk.columns[:-1], schema=columns)
        yield Rows(data, chunk.column(ROW_MARKER), table, keys, first_row)  # type: ignore[arg-type] # int32, as said
        first_row += chunk.num_rows


def markers_of(batch: ChangeBatch) -> pa.Int32Array:
    """Return the markers of a batch; 0 for each row of one without markers."""
    return batch.markers if batch.markers is not None else pa.array([0] * batch.num_rows, pa.int32())


def _all_joined(dialect: Dialect, chunks: Sequence[Rows]) -> Sequence[pa.Buffer]:
    if len(chunks) == 1:  # a small file: starting a thread would take longer
        return [_joined(dialect, chunks[0])]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(partial(_joined, dialect), chunks))


def _joined(dialect: Dialect, chunk: Rows) -> pa.Buffer:
    """Return the rows of a chunk, each with its row separator, in UTF-8."""
    cells = [_cells(dialect, column) for column in [*chunk.data.columns, chunk.markers]]
    cells[-1] = _join(cells[-1], _text(dialect.row_separator), separator="")
    rows = _join(*cells, separator=dialect.column_separator, null=dialect.null_value)
    rows_in_one_piece: pa.Buffer = rows.buffers()[2]  # type: ignore[assignment] # of text, it is there
    return rows_in_one_piece


def _cells(dialect: Dialect, column: pa.Array[Any]) -> pa.Array[Any]:
    """Return the cells of a column as they stand in the file; NULL stays NULL."""
    if pa.types.is_string(column.type):
        return _quoted(dialect, escaped(dialect, column.cast(TEXT)))
    texts = to_text(column)
    if pa.types.is_binary(column.type):
        return _quoted(dialect, texts)
    if not may_stand_as(dialect.null_value, column.type):
        return texts
    is_null_text = pc.equal(texts, _text(dialect.null_value))
    if pc.any(is_null_text).as_py():
        texts = pc.if_else(is_null_text, _quoted(dialect, texts), texts)
    return texts


def _quoted(dialect: Dialect, texts: pa.Array[Any]) -> pa.Array[Any]:
    if not dialect.quote:
        return texts
    quote = _text(dialect.quote)
    return _join(quote, texts, quote, separator="")


def _join(*parts: pa.Array[Any] | pa.Scalar[Any], separator: str, null: str | None = None) -> pa.Array[Any]:
    """Join texts element by element; without a text for NULL the whole is NULL if one of them is."""
    join: Any = pc.binary_join_element_wise  # its stubs know no mix of arrays and scalars
    if null is None:
        joined: pa.Array[Any] = join(*parts, _text(separator))
    else:
        joined = join(*parts, _text(separator), null_handling="replace", null_replacement=null)
    return joined


def _text(value: str) -> pa.Scalar[Any]:
    return pa.scalar(value, TEXT)
