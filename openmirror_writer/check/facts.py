"""What one Parquet file tells: its footer by range; of its rows, markers and keys only where no statistics tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from openmirror_writer.changes import RowMarker
from openmirror_writer.errors import UnknownPositionError
from openmirror_writer.formats import marker_statistics, null_count, read_metadata, read_rows, read_tail
from openmirror_writer.record import FOOTER_KEY
from openmirror_writer.schema import ROW_MARKER
from openmirror_writer.storage import Steps, reading

MARKER_TYPES = frozenset({pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()})
"""Integers that Spark reads as integers: not uint64, which is a decimal there."""
_LEGAL = frozenset(int(marker) for marker in RowMarker)


@dataclass(frozen=True)
class BadMarker:
    """The first row whose marker is none of 0, 1, 2 and 4.

    Attributes:
        row: Its index, counted from 0.
        value: What stands there; None: NULL. Text: what no integer is.
    """

    row: int
    value: int | str | None


@dataclass(frozen=True)
class ParquetFacts:
    """What a file tells.

    Attributes:
        identity: Of the object that was read.
        rows: How many.
        columns: All of them as Spark sees them, ``__rowMarker__`` too: what Arrow notes beside Parquet does not count.
        codecs: Names of the compressions of its columns, as Parquet spells them.
        record: The record as it stands in the footer; None without one.
        greatest_marker: None if there is none, or no marker column of integers.
        bad_marker: None if there is none, or no marker column of integers.
        null_keys: Key column to how many NULLs it has, where it has some.
    """

    identity: str
    rows: int
    columns: pa.Schema
    codecs: frozenset[str]
    record: bytes | None
    greatest_marker: int | None
    bad_marker: BadMarker | None
    null_keys: Mapping[str, int]


@dataclass(frozen=True)
class Unreadable:
    """A file that is no Parquet, or damaged; ``reason`` is what the reader said."""

    reason: str


def read_facts(path: str, size: int, keys: Sequence[str]) -> Steps[ParquetFacts | Unreadable | None]:
    """Read what a Parquet file tells.

    Args:
        path: Below the zone's root.
        size: In bytes, from the listing.
        keys: The table's key columns; those that the file lacks are skipped.

    Returns:
        None if the file is gone or another by now (list again).
    """
    tail = yield from read_tail(path, size)
    if tail is None:
        return None
    try:
        metadata, columns = read_metadata(tail, path)
        wanted = _columns_to_read(metadata, columns, keys)
        rows = None
        if wanted:
            content = yield from reading(path)
            if content is None or content.identity != tail.identity:
                return None
            rows = read_rows(content, path, wanted)
    except UnknownPositionError as error:
        return Unreadable(str(error.__cause__).strip())
    return _facts(metadata, columns, keys, rows, tail.identity)


def _columns_to_read(metadata: pq.FileMetaData, columns: pa.Schema, keys: Sequence[str]) -> list[str]:
    wanted = [key for key in _single(columns, keys) if null_count(metadata, key) is None]
    if _has_marker(columns) and not _statistics_suffice(metadata):
        wanted.append(ROW_MARKER)
    return wanted


def _statistics_suffice(metadata: pq.FileMetaData) -> bool:
    """Return whether the range of the markers proves that each is legal: one with 3 inside does not."""
    markers, nulls = marker_statistics(metadata)
    if nulls != 0 or markers is None:
        return metadata.num_rows == 0
    low, high = markers
    return min(_LEGAL) <= low and high <= max(_LEGAL) and _LEGAL.issuperset(range(low, high + 1))


def _facts(
    metadata: pq.FileMetaData, columns: pa.Schema, keys: Sequence[str], rows: pa.Table | None, identity: str
) -> ParquetFacts:
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    read = [] if rows is None else rows.column_names
    greatest: int | None = None
    bad: BadMarker | None = None
    if rows is not None and ROW_MARKER in read:
        greatest = pc.max(rows.column(ROW_MARKER)).as_py()
        bad = first_bad_marker(rows.column(ROW_MARKER))
    elif _has_marker(columns):
        markers = marker_statistics(metadata)[0]
        greatest = None if markers is None else markers[1]
    nulls = {
        key: rows.column(key).null_count if rows is not None and key in read else null_count(metadata, key) or 0
        for key in _single(columns, keys)
    }
    return ParquetFacts(
        identity=identity,
        rows=metadata.num_rows,
        columns=_as_parquet_says(metadata, columns),
        codecs=frozenset(group.column(leaf).compression for group in groups for leaf in range(group.num_columns)),
        record=(metadata.metadata or {}).get(FOOTER_KEY),
        greatest_marker=greatest,
        bad_marker=bad,
        null_keys={key: count for key, count in nulls.items() if count},
    )


def _as_parquet_says(metadata: pq.FileMetaData, columns: pa.Schema) -> pa.Schema:
    leaves = [metadata.schema.column(leaf) for leaf in range(metadata.num_columns)]
    simple = {leaf.path: leaf for leaf in leaves}
    return pa.schema(
        [pa.field(f.name, _parquet_type(f.type, simple.get(f.name)), nullable=f.nullable) for f in columns],
    )


def _parquet_type(kind: pa.DataType, leaf: pq.ColumnSchema | None) -> pa.DataType:
    if leaf is not None and leaf.physical_type == "INT96":
        return pa.timestamp(
            "us", tz="UTC"
        )  # Arrow says nanoseconds without a zone; Spark, which writes these, an instant
    if leaf is not None and leaf.logical_type.type == "UUID":
        return pa.uuid()
    if pa.types.is_duration(kind):
        return pa.int64()
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def first_bad_marker(markers: pa.ChunkedArray[Any]) -> BadMarker | None:
    """Return the first marker that means nothing; None if all mean something.

    Args:
        markers: Of an integer type.
    """
    legal = pc.is_in(markers, value_set=pa.array(sorted(_LEGAL), markers.type))  # of NULL: false
    row = pc.index(legal, value=False).as_py()
    return None if row < 0 else BadMarker(row, markers[row].as_py())


def _has_marker(columns: pa.Schema) -> bool:
    return columns.names.count(ROW_MARKER) == 1 and columns.field(ROW_MARKER).type in MARKER_TYPES


def _single(columns: pa.Schema, keys: Sequence[str]) -> list[str]:
    """Return the keys that are one column of a simple type."""
    names = columns.names
    return [key for key in keys if names.count(key) == 1 and not pa.types.is_nested(columns.field(key).type)]
