"""The rows of a batch, and what they come to: for each key one keyed row at most, and rows to append.

Per key, everything up to the last delete is dropped (``reset``: there was one). Of the rest, ``r`` is the last update
or upsert, ``i`` the number of inserts before it, ``A`` the inserts after it, and ``firstU`` tells whether the rest
begins with an update or upsert.

| case | keyed row | rows to append |
|---|---|---|
| only inserts | - | A |
| reset, no update after | ``D`` | A |
| reset, update after | ``D`` | (i + firstU) x r, A |
| no reset, begins with update | ``U``: update matches, else insert | i x r, A |
| no reset, begins with insert, has update | ``u``: update matches, else nothing | i x r, A |

Nothing of the target is needed for that. The last case is the trap: an insert and then an update of an absent key give
``i`` rows, not ``i + 1``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows
from pyspark.sql.types import StructType

from openmirror_writer.footers import TextTable
from openmirror_writer.formats import Footer, Parquet, is_parquet
from openmirror_writer.schema import INTERNAL, ROW_MARKER
from openmirror_writer.spark.mirror.columns import Column
from openmirror_writer.spark.mirror.plan import Algebra
from openmirror_writer.spark.mirror.state import LandedFile
from openmirror_writer.spark.mirror.text_rows import FILE_MODIFIED, FILE_NUMBER, FILE_SIZE, ROW_INDEX, read_text_files

ACT = f"{INTERNAL}act"
"""What a collapsed row does: ``A`` append, ``U`` update or else insert, ``u`` update or else nothing, ``D`` delete."""
REPLACED = "was replaced since it was planned"
"""In the message of the error that a batch raises when a file is not the one that was planned."""

_MARKER = f"{INTERNAL}marker"
_NUMBER = f"{INTERNAL}number"
_ROW = f"{INTERNAL}row"
_POSITION = f"{INTERNAL}position"
_LAST_DELETE = f"{INTERNAL}last_delete"
_LAST_UPDATE = f"{INTERNAL}last_update"
_INSERTS = f"{INTERNAL}inserts"
_UPDATE_FIRST = f"{INTERNAL}update_first"
_LAST = f"{INTERNAL}last"
_RESET = f"{INTERNAL}reset"

_ALLOWED: dict[Algebra, tuple[int, ...]] = {"append": (0,), "upsert_only": (1, 2, 4), "merge": (0, 1, 2, 4)}
_CLOCK_TOLERANCE_MS = 1
"""Python rounds a file's time of change to microseconds, Java cuts it to milliseconds."""


@dataclass(frozen=True)
class LandingRows:
    """Which rows to read.

    Attributes:
        files: The batch: numbers without a gap.
        locations: Where Spark reads each.
        columns: The data columns; those that a file lacks are NULL in its rows.
        upsert: Whether rows without markers are upserts.
        text: How text files are read; None where there are none.
    """

    files: Sequence[LandedFile]
    locations: Sequence[str]
    columns: Sequence[Column]
    upsert: bool
    text: TextTable | None = None


@dataclass(frozen=True)
class _Source:
    """Rows of some files, and what tells their place."""

    frame: DataFrame
    extension: str
    number: Expression
    row: Expression
    size: Expression
    modified: Expression


def quoted(name: str) -> str:
    """Return a name as Spark reads it in SQL and in ``col()``.

    >>> quoted("a`b.c")
    '`a``b.c`'
    """
    return "`" + name.replace("`", "``") + "`"


def read_schema(columns: Sequence[Column], marker: str | None = None) -> StructType:
    """Return the schema in which files are read; never inferred, for then Spark takes that of some file.

    Args:
        columns: The data columns.
        marker: Type of the marker column, None: without it.
    """
    fields = [(column.name, column.type) for column in columns]
    if marker is not None:
        fields.append((ROW_MARKER, marker))
    return StructType.fromJson(
        {"type": "struct", "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields]}
    )


def read_rows(spark: SparkSession, batch: LandingRows, algebra: Algebra) -> DataFrame:
    """Read the rows of a batch with their markers and their order.

    A row whose marker does not fit ``algebra``, or whose file is not the one that was planned, makes the query fail
    when it runs; the message names file and row.

    Returns:
        The data columns, and marker, file number and row index under internal names.
    """
    parts = []
    for parquet, marked in product((True, False), (False, True)):
        chosen = [
            location
            for file, location in zip(batch.files, batch.locations, strict=True)
            if isinstance(file.footer, Footer) and file.footer.marked is marked and is_parquet(file.name) is parquet
        ]
        if chosen:
            read = _parquet_source if parquet else _text_source
            parts.append(_read_part(read(spark, batch, chosen, marked=marked), batch, algebra, marked=marked))
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part)
    return rows


def _parquet_source(spark: SparkSession, batch: LandingRows, locations: Sequence[str], *, marked: bool) -> _Source:
    # Spark widens int32 to int64 when it reads; one type serves files whose markers differ in width.
    frame = spark.read.schema(read_schema(batch.columns, "long" if marked else None)).parquet(
        *map(_no_pattern, locations)
    )
    metadata = frame.metadataColumn("_metadata")
    return _Source(
        frame,
        Parquet.extension,
        number=F.substring(metadata["file_name"], 1, 20).cast("bigint"),
        row=metadata["row_index"],
        size=metadata["file_size"],
        modified=F.unix_millis(metadata["file_modification_time"]),
    )


def _text_source(spark: SparkSession, batch: LandingRows, locations: Sequence[str], *, marked: bool) -> _Source:
    assert batch.text is not None  # noqa: S101 - a text file whose metadata describe none has no footer
    paths = [_no_pattern(location) for location in locations]
    frame = read_text_files(spark, paths, batch.text, read_schema(batch.columns), marked=marked)
    places = (frame[name] for name in (FILE_NUMBER, ROW_INDEX, FILE_SIZE, FILE_MODIFIED))
    return _Source(frame, batch.text.text.extension, *places)


def _read_part(source: _Source, batch: LandingRows, algebra: Algebra, *, marked: bool) -> DataFrame:
    frame = source.frame
    marker = frame[quoted(ROW_MARKER)] if marked else F.lit(4 if batch.upsert else 0).cast("bigint")
    fault = F.when(_replaced(batch, source), _raised(source, F.lit(REPLACED)))
    if marked:
        wrong = marker.isNull() | ~marker.isin(*_ALLOWED[algebra])
        what = F.concat(F.lit("has the row marker "), F.coalesce(marker.cast("string"), F.lit("NULL")))
        fault = fault.when(wrong, _raised(source, what))
    # In a filter, because a column that nobody asks for is never computed.
    return frame.where(fault.otherwise(F.expr("true"))).select(
        *(frame[quoted(column.name)] for column in batch.columns),
        marker.cast("int").alias(_MARKER),
        source.number.alias(_NUMBER),
        source.row.alias(_ROW),
    )


def _no_pattern(location: str) -> str:
    """Escape what Spark would take for a pattern of file names."""
    return re.sub(r"[\\{}\[\]*?]", r"\\\g<0>", location)


def _replaced(batch: LandingRows, source: _Source) -> Expression:
    """Tell whether the file of a row is another one, by size and time of change; one look into an array each."""
    first = batch.files[0].number
    sizes = _numbers(file.entry.size for file in batch.files)
    times = _numbers(int(file.entry.modified.timestamp() * 1000) for file in batch.files)
    index = (source.number - F.lit(first)).cast("int")
    drift = F.abs(source.modified - F.get(times, index))
    return (source.size != F.get(sizes, index)) | (drift > F.lit(_CLOCK_TOLERANCE_MS))


def _numbers(values: object) -> Expression:
    # As one text: a literal for each of thousands of files would slow down the analysis of the query.
    text = ",".join(str(value) for value in values)  # type: ignore[attr-defined]
    return F.split(F.lit(text), ",").cast("array<bigint>")


def _raised(source: _Source, what: Expression) -> Expression:
    name = F.concat(F.lpad(source.number.cast("string"), 20, "0"), F.lit(f".{source.extension}"))
    message = F.concat(F.lit("openmirror: file "), name, F.lit(" row "), source.row.cast("string"), F.lit(" "), what)
    return F.raise_error(message).cast("boolean")


def count_markers(rows: DataFrame) -> dict[int, int]:
    """Count rows by marker; runs a query that reads the marker column only."""
    return {found[0]: found[1] for found in rows.groupBy(_MARKER).count().collect()}


def collapse(rows: DataFrame, columns: Sequence[str], keys: Sequence[str], algebra: Algebra) -> DataFrame:
    """Return what the rows come to: the data columns and `ACT`.

    Args:
        rows: From `read_rows`.
        columns: The data columns.
        keys: The key columns; NULL equals NULL. Not used for ``append``.
        algebra: ``append``: only inserts, no shuffle; ``upsert_only``: no inserts, one aggregate; ``merge``: anything.
    """
    if algebra == "append":
        return rows.select(*(rows[quoted(c)] for c in columns), F.lit("A").alias(ACT))
    if algebra == "upsert_only":
        return _last_of_key(rows, columns, keys)
    return _whole_history(rows, columns, keys)


def _last_of_key(rows: DataFrame, columns: Sequence[str], keys: Sequence[str]) -> DataFrame:
    values = F.struct(*(F.col(quoted(c)) for c in columns), F.col(_MARKER))
    last = rows.groupBy(*(F.col(quoted(k)) for k in keys)).agg(
        F.max_by(values, F.struct(_NUMBER, _ROW)).alias(_LAST),
        F.max(F.col(_MARKER) == 2).alias(_RESET),  # noqa: PLR2004 - a row marker
    )
    deleted = F.col(_LAST)[_MARKER] == 2  # noqa: PLR2004
    acts = F.when(deleted, _acts("D")).when(F.col(_RESET), _acts("D", "A")).otherwise(_acts("U"))
    return last.select(*(F.col(f"{_LAST}.{quoted(c)}").alias(c) for c in columns), F.explode(acts).alias(ACT))


def _whole_history(rows: DataFrame, columns: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """Tell each row what it does, by windows over its key that share one sort."""
    order = Window.partitionBy(*(F.col(quoted(k)) for k in keys)).orderBy(_NUMBER, _ROW)
    key = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    position, marker = F.col(_POSITION), F.col(_MARKER)
    last_delete, last_update = F.col(_LAST_DELETE), F.col(_LAST_UPDATE)
    is_update = marker.isin(1, 4)
    alive = position > last_delete

    def highest(condition: Expression) -> Expression:
        return F.coalesce(F.max(F.when(condition, position)).over(key), F.lit(0))

    told = (
        rows.withColumn(_POSITION, F.row_number().over(order))
        .withColumn(_LAST_DELETE, highest(marker == 2))  # noqa: PLR2004
        .withColumn(_LAST_UPDATE, highest(is_update & alive))
        .withColumn(_INSERTS, F.count(F.when((marker == 0) & alive & (position < last_update), 1)).over(key))
        .withColumn(_UPDATE_FIRST, highest(is_update & (position == last_delete + 1)) > 0)
    )
    reset, update_first, inserts = last_delete > 0, F.col(_UPDATE_FIRST), F.col(_INSERTS).cast("int")
    keyed = F.when(reset, _acts()).when(update_first, _acts("U")).otherwise(_acts("u"))
    copies = inserts + F.when(reset & update_first, 1).otherwise(0)
    acts = (
        F.when(position == last_update, F.concat(keyed, F.array_repeat(F.lit("A"), copies)))
        .when(position == last_delete, _acts("D"))
        .when((marker == 0) & (position > F.greatest(last_delete, last_update)), _acts("A"))
        .otherwise(_acts())
    )
    return told.select(*(F.col(quoted(c)) for c in columns), F.explode(acts).alias(ACT))


def _acts(*acts: str) -> Expression:
    return F.array(*(F.lit(act) for act in acts)).cast("array<string>")
