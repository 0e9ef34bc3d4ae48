"""Landing files in Parquet: encoding a whole file in memory, reading its footer by range, reading its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import UnknownPositionError
from openmirror_writer.layout import ROW_MARKER
from openmirror_writer.record import FOOTER_KEY, Record, parse_record
from openmirror_writer.storage import Content, Steps, reading

_TAIL = 64 * 1024
"""Bytes read from the end of a file for its footer; a file of 12 columns and one row group has about 3 kB."""
_TRAILER = 8
_ROW_GROUP = 1_048_576
_DICTIONARY_ROWS = 10_000
"""Below it files without dictionaries are 15 to 45 % smaller (docs/benchmarks.md)."""


@dataclass(frozen=True)
class Parquet:
    """The Parquet format of a table.

    Attributes:
        compression: ``snappy`` (default), ``zstd``, ``gzip`` or ``none``.
    """

    compression: Literal["snappy", "zstd", "gzip", "none"] = "snappy"

    extension = "parquet"

    def encode(self, columns: pa.Schema, batches: Sequence[ChangeBatch], record: Record) -> bytes:
        """Return a whole file: the columns, ``__rowMarker__`` last unless the batches are marker-free, the record in the footer.

        Args:
            columns: The table's columns; every batch has exactly these.
            batches: All marked or all marker-free. None of them: a file of zero rows without markers.
            record: What the file says of itself.
        """
        table = pa.Table.from_batches([b.rows for b in batches], schema=columns)
        markers = [b.markers for b in batches if b.markers is not None]
        if markers:
            table = table.append_column(pa.field(ROW_MARKER, pa.int32()), pa.chunked_array(markers, pa.int32()))
        sink = pa.BufferOutputStream()
        # store_schema would add about 930 bytes a file; the types of schema.py read back as they are without it.
        with pq.ParquetWriter(
            sink,
            table.schema,
            compression=self.compression,
            use_dictionary=table.num_rows >= _DICTIONARY_ROWS,
            store_schema=False,
        ) as writer:
            writer.write_table(table, row_group_size=_ROW_GROUP)
            writer.add_key_value_metadata({FOOTER_KEY: record.to_bytes()})
        return sink.getvalue().to_pybytes()

    def read_footer(self, path: str, size: int) -> Steps[Footer | None]:
        """Read what a file says of itself, in one range read unless its footer is huge.

        Args:
            path: Below the zone's root.
            size: In bytes, from the listing.

        Returns:
            None if the file is gone, or stands there with another size (list again).

        Raises:
            UnknownPositionError: It is no Parquet file, or its record is damaged or of a newer version.
        """
        content = yield from reading(path, max(size - _TAIL, 0), size)
        if content is not None and len(content.data) == min(size, _TAIL) and size > _TAIL:
            length = int.from_bytes(content.data[-_TRAILER:-4], "little") + _TRAILER
            if _TAIL < length <= size:
                content = yield from reading(path, size - length, size)
        if content is None:
            return None
        return footer_of(content, path)


@dataclass(frozen=True)
class Footer:
    """What the end of a landing file tells.

    Attributes:
        identity: Of the object it was read from.
        rows: How many rows.
        columns: The data columns, in order, without the marker.
        marked: Whether there is a ``__rowMarker__`` column.
        markers: Least and greatest marker; None if there are no rows, no markers or no statistics.
        null_markers: NULLs among the markers; None if there are no statistics.
        marker_type: Arrow type of the marker column; None without one.
        record: None if a foreign publisher wrote the file.
    """

    identity: str
    rows: int
    columns: pa.Schema
    marked: bool
    markers: tuple[int, int] | None
    null_markers: int | None
    marker_type: pa.DataType | None
    record: Record | None


def footer_of(content: Content, path: str) -> Footer:
    """Read the footer from the bytes at a file's end.

    Raises:
        UnknownPositionError: As `Parquet.read_footer`.
    """
    try:
        metadata = pq.read_metadata(pa.BufferReader(content.data))
        schema = metadata.schema.to_arrow_schema().remove_metadata()
    except (pa.ArrowException, OSError) as error:
        msg = f"this is no readable Parquet file ({error}): delete it and publish it again under the same name"
        raise UnknownPositionError(msg, file=path) from error
    index = schema.get_field_index(ROW_MARKER)
    columns = schema if index < 0 else schema.remove(index)
    fields = [pa.field(f.name, f.type, nullable=f.nullable) for f in columns]
    data = (metadata.metadata or {}).get(FOOTER_KEY)
    low_high, nulls = (None, None) if index < 0 else _marker_statistics(metadata, index)
    return Footer(
        identity=content.identity,
        rows=metadata.num_rows,
        columns=pa.schema(fields),
        marked=index >= 0,
        markers=low_high,
        null_markers=nulls,
        marker_type=schema.field(index).type if index >= 0 else None,
        record=None if data is None else parse_record(data, file=path),
    )


def read_rows(content: Content, path: str) -> pa.Table:
    """Read all rows of a file, the marker column included where there is one.

    Raises:
        UnknownPositionError: It is no readable Parquet file.
    """
    try:
        return pq.read_table(pa.BufferReader(content.data)).replace_schema_metadata(None)
    except (pa.ArrowException, OSError) as error:
        msg = f"this is no readable Parquet file ({error}): delete it and publish it again under the same name"
        raise UnknownPositionError(msg, file=path) from error


def _marker_statistics(metadata: pq.FileMetaData, index: int) -> tuple[tuple[int, int] | None, int | None]:
    lows: list[int] = []
    highs: list[int] = []
    nulls = 0
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(index).statistics
        if statistics is None or not statistics.has_null_count:
            return None, None
        nulls += statistics.null_count
        if not statistics.has_min_max:
            if statistics.null_count < metadata.row_group(group).num_rows:
                return None, None
            continue
        lows.append(statistics.min)
        highs.append(statistics.max)
    return (min(lows), max(highs)) if lows else None, nulls
