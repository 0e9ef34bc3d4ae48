"""Landing files in Parquet: encoding a whole file in memory, reading its footer by range, reading its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import SchemaRefusedError, UnknownPositionError
from openmirror_writer.record import FOOTER_KEY, Record, parse_record
from openmirror_writer.schema import ROW_MARKER
from openmirror_writer.storage import Content, Steps, reading

_TAIL = 64 * 1024
"""Bytes read from the end of a file for its footer; a file of 12 columns and one row group has about 3 kB."""
_TRAILER = 8
"""The last bytes of a file: the length of its metadata (4 bytes, little endian) and ``PAR1``."""
_ROW_GROUP = 1_048_576
_THREADS_BYTES = 1024 * 1024
_CORRUPT = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What pyarrow raises for damaged files, the last one for names of columns."""
_DICTIONARY_ROWS = 10_000
"""Below it files without dictionaries are 15 to 45 % smaller (docs/benchmarks.md)."""


Compression = Literal["snappy", "zstd", "gzip", "none"]
"""What the service reads."""


@dataclass(frozen=True)
class Parquet:
    """The Parquet format of a table.

    Attributes:
        compression: ``snappy`` (default), ``zstd``, ``gzip`` or ``none``.
        extension: Of its files' names, without the dot.
        carries_record: True: a file's record is in the file.
        can_be_empty: True: a file of zero rows is valid.
    """

    compression: Compression = "snappy"

    extension = "parquet"
    carries_record = True
    can_be_empty = True

    def __post_init__(self) -> None:
        """Refuse a compression that the service does not read.

        Raises:
            SchemaRefusedError: As said.
        """
        if self.compression not in get_args(Compression):
            known = ", ".join(get_args(Compression))
            msg = f"compression={self.compression!r} is not one that the service reads; use one of: {known}"
            raise SchemaRefusedError(msg)

    def check_columns(self, columns: pa.Schema) -> None:
        """Accept all columns in the types of `openmirror_writer.schema`."""

    def check_rows(
        self, batch: ChangeBatch, *, table: str | None = None, keys: Sequence[str] = (), first_row: int = 0
    ) -> None:
        """Accept all rows."""

    def encode(self, columns: pa.Schema, batches: Sequence[ChangeBatch], record: Record) -> bytes:
        """Return a whole file: the columns, ``__rowMarker__`` behind them, the record in the footer.

        Args:
            columns: The table's columns; every batch has exactly these.
            batches: All marked, or all marker-free: then the file has no ``__rowMarker__``. No batch at all: a file of
                zero rows without markers.
            record: What the file says of itself.

        Returns:
            The file's bytes.
        """
        return self.begin(columns, batches).finish(record)

    def begin(self, columns: pa.Schema, batches: Sequence[ChangeBatch]) -> Encoding:
        """Encode the rows of a file; its record is given at the end, when the file before it is published.

        Args:
            columns: See `encode`.
            batches: See `encode`.
        """
        table = pa.Table.from_batches([b.rows for b in batches], schema=columns)
        markers = [b.markers for b in batches if b.markers is not None]
        if markers:
            table = table.append_column(pa.field(ROW_MARKER, pa.int32()), pa.chunked_array(markers, pa.int32()))
        sink = pa.BufferOutputStream()
        # store_schema would add about 930 bytes a file; the types of schema.py read back as they are without it.
        writer = pq.ParquetWriter(
            sink,
            table.schema,
            compression=self.compression,
            use_dictionary=table.num_rows >= _DICTIONARY_ROWS,
            store_schema=False,
        )
        writer.write_table(table, row_group_size=_ROW_GROUP)
        return Encoding(sink, writer)

    def read_footer(self, path: str, size: int) -> Steps[Footer | None]:
        """Read what a file says of itself, in one range read unless its footer is huge.

        Args:
            path: Below the zone's root.
            size: In bytes, from the listing.

        Returns:
            None if the file is gone, or stands there with another size (list again).

        Raises:
            UnknownPositionError: It is no Parquet file, it has two marker columns, or its record is damaged or of a
                newer version.
        """
        content = yield from read_tail(path, size)
        return None if content is None else footer_of(content, path)


def is_parquet(path: str) -> bool:
    """Return whether the name of a data file is that of a Parquet file; all others are text."""
    return path.endswith(f".{Parquet.extension}")


class Encoding:
    """A file whose rows are encoded, and whose record is still to come."""

    def __init__(self, sink: pa.BufferOutputStream, writer: pq.ParquetWriter) -> None:
        """Take over what the rows were written to."""
        self._sink = sink
        self._writer = writer

    def finish(self, record: Record) -> bytes:
        """Add the record and return the file's bytes; once only."""
        self._writer.add_key_value_metadata({FOOTER_KEY: record.to_bytes()})  # type: ignore[dict-item] # bytes do as well
        self._writer.close()
        return self._sink.getvalue().to_pybytes()


@dataclass(frozen=True)
class Footer:
    """What the end of a landing file tells.

    Attributes:
        identity: Of the object it was read from.
        rows: How many rows.
        columns: The data columns, in order, without the marker.
        marked: Whether there is a ``__rowMarker__`` column, wherever it stands.
        markers: Least and greatest marker; None if there are no rows, no markers, no statistics or no integers.
        null_markers: NULLs among the markers; None if there are no markers, no statistics or no integers.
        marker_type: Arrow type of the marker column; None without one.
        record: None if a foreign publisher wrote the file.
        sha256: Of the whole file, hexadecimal; only of a file that cannot carry its record inside.
    """

    identity: str
    rows: int
    columns: pa.Schema
    marked: bool
    markers: tuple[int, int] | None
    null_markers: int | None
    marker_type: pa.DataType | None
    record: Record | None
    sha256: str | None = None

    @property
    def batch(self) -> str | None:
        """What the next file's record names as ``previous``; None if a foreign publisher wrote the file."""
        if self.record is None:
            return None
        return self.record.batch if self.sha256 is None else self.sha256


def read_tail(path: str, size: int) -> Steps[Content | None]:
    """Read the end of a file, with all of its metadata in it: one range read unless its footer is huge.

    Args:
        path: Below the zone's root.
        size: In bytes, from the listing.

    Returns:
        None if the file is gone, or stands there with another size (list again).
    """
    tail = min(size, _TAIL)
    content = yield from _read_last(path, size, tail)
    if content is not None and tail == _TAIL:
        length = int.from_bytes(content.data[-_TRAILER:-4], "little") + _TRAILER
        if tail < length <= size:
            content = yield from _read_last(path, size, length)
    return content


def read_metadata(content: Content, path: str) -> tuple[pq.FileMetaData, pa.Schema]:
    """Return a file's metadata and all of its columns, the marker included, from the bytes at its end.

    Args:
        content: As `footer_of`.
        path: Below the zone's root, for errors.

    Raises:
        UnknownPositionError: It is no readable Parquet file.
    """
    try:
        metadata = pq.read_metadata(pa.BufferReader(content.data))
        return metadata, metadata.schema.to_arrow_schema()
    except _CORRUPT as error:
        raise _unreadable(error, path) from error


def footer_of(content: Content, path: str) -> Footer:
    """Read the footer from the bytes at a file's end.

    Args:
        content: The whole file, or so much of its end that all of its metadata is there.
        path: Below the zone's root, for errors.

    Raises:
        UnknownPositionError: As `Parquet.read_footer`.
    """
    try:
        metadata = pq.read_metadata(pa.BufferReader(content.data))
        return _footer(metadata, content.identity, path)
    except _CORRUPT as error:
        raise _unreadable(error, path) from error


def _footer(metadata: pq.FileMetaData, identity: str, path: str) -> Footer:
    schema = metadata.schema.to_arrow_schema()
    markers = [f for f in schema if f.name == ROW_MARKER]
    if len(markers) > 1:
        msg = f"this file has {len(markers)} columns {ROW_MARKER}: publish it again with one, the last"
        raise UnknownPositionError(msg, file=path, column=ROW_MARKER)
    marker_type = markers[0].type if markers else None
    countable = marker_type is not None and pa.types.is_integer(marker_type)
    leaves = [metadata.schema.column(leaf) for leaf in range(metadata.num_columns)]
    uuids = {leaf.path for leaf in leaves if leaf.logical_type.type == "UUID"}
    low_high, nulls = marker_statistics(metadata) if countable else (None, None)
    data = (metadata.metadata or {}).get(FOOTER_KEY)
    return Footer(
        identity=identity,
        rows=metadata.num_rows,
        columns=pa.schema([_column(f, uuids) for f in schema if f.name != ROW_MARKER]),
        marked=bool(markers),
        markers=low_high,
        null_markers=nulls,
        marker_type=marker_type,
        record=None if data is None else parse_record(data, file=path),
    )


def _column(field: pa.Field[Any], uuids: set[str]) -> pa.Field[Any]:
    """Return a column without its metadata; pyarrow takes UUIDs for plain bytes, Spark refuses them."""
    kind = pa.uuid() if field.name in uuids else field.type
    return pa.field(field.name, kind, nullable=field.nullable)


def read_rows(content: Content, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read all rows of a file.

    Args:
        content: The whole file.
        path: Below the zone's root, for errors.
        columns: Only these; None: all, the marker column included where there is one.

    Raises:
        UnknownPositionError: It is no readable Parquet file.
    """
    try:
        # pq.read_table takes 420 us for a file of two rows, this 37 us; threads only pay for large files.
        file = pq.ParquetFile(pa.BufferReader(content.data))
        names = None if columns is None else list(columns)
        return file.read(names, use_threads=len(content.data) > _THREADS_BYTES).replace_schema_metadata(None)
    except _CORRUPT as error:
        raise _unreadable(error, path) from error


def _read_last(path: str, size: int, length: int) -> Steps[Content | None]:
    """Read the last bytes of a file; None if it is gone or has another size."""
    content = yield from reading(path, size - length)  # to the end, so that a longer file shows
    return content if content is not None and len(content.data) == length else None


def _unreadable(error: Exception, path: str) -> UnknownPositionError:
    msg = f"this is no readable Parquet file ({str(error).strip()}): delete it and publish it again under the same name"
    return UnknownPositionError(msg, file=path)


def null_count(metadata: pq.FileMetaData, column: str) -> int | None:
    """Return how many NULLs a column of a simple type has, from the statistics; None if they do not tell."""
    index = _leaf(metadata, column)
    nulls = 0
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(index).statistics
        if statistics is None or statistics.null_count is None:
            return None
        nulls += statistics.null_count
    return nulls


def marker_statistics(metadata: pq.FileMetaData) -> tuple[tuple[int, int] | None, int | None]:
    """Return the least and greatest row marker, and the NULLs among them, from the statistics.

    Args:
        metadata: Of a file with one marker column, of integers.

    Returns:
        None for what the statistics do not tell; no range where there are no markers at all.
    """
    index = _leaf(metadata, ROW_MARKER)
    lows: list[int] = []
    highs: list[int] = []
    nulls = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        statistics = metadata.row_group(group).column(index).statistics
        if statistics is None or statistics.null_count is None:
            return None, None
        nulls += statistics.null_count
        if statistics.has_min_max:
            lows.append(statistics.min)  # type: ignore[arg-type] # known, has_min_max says
            highs.append(statistics.max)  # type: ignore[arg-type]
        elif statistics.null_count < rows:
            return None, None
    return (min(lows), max(highs)) if lows else None, nulls


def _leaf(metadata: pq.FileMetaData, column: str) -> int:
    """Return the index of a column's leaf: not that of the column, a nested one before it has several leaves."""
    return [metadata.schema.column(leaf).path for leaf in range(metadata.num_columns)].index(column)
