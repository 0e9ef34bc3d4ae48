"""Text files as rows of Spark: each is read whole by the reader that all of this package shares.

Spark's own reader of CSV knows neither the number of a row in its file nor all options of the landing zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from openmirror_writer.footers import TextTable
from openmirror_writer.schema import INTERNAL, ROW_MARKER

FILE_NUMBER = f"{INTERNAL}file_number"
ROW_INDEX = f"{INTERNAL}row_index"
FILE_SIZE = f"{INTERNAL}file_size"
FILE_MODIFIED = f"{INTERNAL}file_modified"
"""Milliseconds since the epoch."""

_NUMBER = re.compile(r"([0-9]{20})\.[A-Za-z0-9]+$")


def read_text_files(
    spark: SparkSession, locations: Sequence[str], table: TextTable, columns: StructType, *, marked: bool
) -> DataFrame:
    """Read text files; the workers need this package.

    Args:
        spark: A session.
        locations: Of the files, as Spark reads them.
        table: How they are read.
        columns: The data columns in Spark's types.
        marked: Whether the files have ``__rowMarker__``; all or none of them.

    Returns:
        The data columns, ``__rowMarker__`` (long) if ``marked``, and the four internal columns above.
    """
    fields = list(columns.fields)
    if marked:
        fields.append(StructField(ROW_MARKER, LongType()))
    fields += [StructField(name, LongType()) for name in (FILE_NUMBER, ROW_INDEX, FILE_SIZE, FILE_MODIFIED)]
    files = spark.read.format("binaryFile").load(list(locations))
    read = files.selectExpr("path", "unix_millis(modificationTime) AS modified", "length", "content")
    names = [field.name for field in columns.fields]
    return read.mapInArrow(_reader(table, names, marked=marked), StructType(fields))


def _reader(
    table: TextTable, names: Sequence[str], *, marked: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(files: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in files:
            for file in range(batch.num_rows):
                path, modified, size, content = (column[file].as_py() for column in batch.columns)
                rows = table.text.read(content, table.columns, path)
                number = _NUMBER.search(path)
                assert number is not None  # noqa: S101 - only data files are read
                told = {FILE_NUMBER: int(number[1]), FILE_SIZE: size, FILE_MODIFIED: modified}
                yield from _with_places(rows, names, told, marked=marked)

    return read


def _with_places(
    rows: pa.Table, names: Sequence[str], told: dict[str, int], *, marked: bool
) -> Iterator[pa.RecordBatch]:
    columns = {name: rows.column(name) for name in names}
    if marked:
        columns[ROW_MARKER] = rows.column(ROW_MARKER).cast(pa.int64())
    for name in (FILE_NUMBER, ROW_INDEX, FILE_SIZE, FILE_MODIFIED):
        values = range(rows.num_rows) if name == ROW_INDEX else [told[name]] * rows.num_rows
        columns[name] = pa.chunked_array([pa.array(values, pa.int64())])
    yield from pa.table(columns).to_batches()
