"""The digest by which rows that come again are compared with those that stand in files. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.changes import ChangeBatch

if TYPE_CHECKING:
    from hashlib import _Hash

DIGEST_ROWS = 1000
"""How many of the last pending rows a digest covers."""


def digest(batches: Sequence[ChangeBatch]) -> str:
    """Return ``"<rows>:<sha256>"`` over rows: the same for equal rows, however they are cut into batches.

    Hashed are, column by column: its name and type, one byte per row for "not NULL", then the values that are not NULL
    in Arrow's layout (little endian; text and binary: lengths as int32, then the bytes); at last the markers. A column
    without any value is left out: rows from before a column was added are equal to the same rows with NULL there, which
    is what the mirror shows for them.

    Args:
        batches: At least one; columns of one name have one type, and one order; all marked or all marker-free.
    """
    runs = groupby((b.rows for b in batches), key=attrgetter("schema"))
    table = pa.concat_tables([pa.Table.from_batches(list(run)) for _, run in runs], promote_options="default")
    markers = pa.chunked_array([b.markers for b in batches if b.markers is not None], pa.int32())
    hashed = hashlib.sha256()
    for name, column in [*zip(table.column_names, table.columns, strict=True), ("", markers)]:
        if column.null_count < len(column):
            hashed.update(f"{name}\0{column.type}\0".encode())
            _hash_values(hashed, column.chunks)
    return f"{table.num_rows}:{hashed.hexdigest()}"


def digest_rows(mark: str) -> int:
    """Return how many rows a digest covers.

    >>> digest_rows("12:ab")
    12
    """
    return int(mark.partition(":")[0])


def last_rows(batches: Sequence[ChangeBatch], most: int = DIGEST_ROWS) -> tuple[ChangeBatch, ...]:
    """Return the last ``most`` rows of some batches, as slices."""
    kept: list[ChangeBatch] = []
    for batch in reversed(batches):
        if most <= 0:
            break
        part = batch if batch.num_rows <= most else batch.slice(batch.num_rows - most)
        if part.num_rows:
            kept.append(part)
            most -= part.num_rows
    return tuple(reversed(kept))


def _hash_values(hashed: _Hash, chunks: Sequence[Any]) -> None:
    """Hash a column; chunk by chunk, for one array holds 2 GiB of text at most."""
    for chunk in chunks:
        hashed.update(_fixed_bytes(pc.cast(pc.is_valid(chunk), pa.uint8())))
    values = [chunk.drop_null() for chunk in chunks]
    for part in values:
        if pa.types.is_string(part.type) or pa.types.is_binary(part.type):
            hashed.update(_fixed_bytes(pc.binary_length(part)))
        else:
            hashed.update(_fixed_bytes(pc.cast(part, pa.uint8()) if pa.types.is_boolean(part.type) else part))
    for part in values:
        if pa.types.is_string(part.type) or pa.types.is_binary(part.type):
            hashed.update(_text_bytes(part))


def _fixed_bytes(values: pa.Array[Any]) -> bytes:
    _, data = values.buffers()
    if not len(values) or data is None:
        return b""
    width = values.type.bit_width // 8
    return data.slice(values.offset * width, len(values) * width).to_pybytes()


def _text_bytes(values: pa.Array[Any]) -> bytes:
    _, offsets, data = values.buffers()
    if not len(values) or data is None:
        return b""
    ends = pa.Array.from_buffers(pa.int32(), len(values) + 1, [None, offsets], offset=values.offset)
    first, last = ends[0].as_py(), ends[-1].as_py()
    return data.slice(first, last - first).to_pybytes()
