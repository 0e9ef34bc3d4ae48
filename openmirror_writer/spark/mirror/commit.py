"""The Delta statements. Each carries application id and version, which Delta stores in the same commit.

A statement whose version is not above the stored one is skipped by Delta; so is every later INSERT of the session while
the two settings are left set, which is why they are unset in any case.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody knows

from openmirror_writer.errors import shorten
from openmirror_writer.formats import Footer
from openmirror_writer.spark.mirror.collapse import (
    ACT,
    REPLACED,
    LandingRows,
    collapse,
    count_markers,
    quoted,
    read_rows,
    read_schema,
)
from openmirror_writer.spark.mirror.log import (
    APP_ID,
    DROPPED_PROPERTY,
    FOLDER_PROPERTY,
    GENERATION_PROPERTY,
    KEYS_PROPERTY,
    LATER_KEYS_PROPERTY,
    REQUIRED_PROPERTY,
)
from openmirror_writer.spark.mirror.plan import Algebra
from openmirror_writer.spark.mirror.state import LandedFile
from openmirror_writer.spark.mirror.steps import Bad, Commit, Conflict

_TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_ROWS_PER_PARTITION = 300_000
"""Measured: with 8 partitions instead of 32 for 10 million rows a batch takes twice as long."""
_NEEDS_MAPPING = re.compile(r"[ ,;{}()\n\t=]")
_ODDLY_CONCURRENT = re.compile(
    r"Concurrent\w*Exception|MetadataChangedException|ProtocolChangedException|FileNotFoundException|" + REPLACED
)
_CONFLICTS = (
    "DELTA_CONCURRENT",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "PATH_NOT_FOUND",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
)
_FILE_NAME = re.compile(r"\d{20}\.[A-Za-z0-9]+")
_OURS = re.compile(r"openmirror: file (\d{20}\.[A-Za-z0-9]+) row \d+ has the row marker -?\w+")


@dataclass(frozen=True)
class DeltaTable:
    """Where a commit goes.

    Attributes:
        location: Of the table, as Spark reads it.
        deletion_vectors: Whether a table that is created has deletion vectors.
        littered: Whether files stand there though there is no table: a statement was killed, or is under way.
    """

    location: str
    deletion_vectors: bool
    littered: bool = False

    @property
    def sql(self) -> str:
        """The table in SQL."""
        return f"delta.{quoted(self.location)}"


def run_commit(
    spark: SparkSession, commit: Commit, table: DeltaTable, locations: Sequence[str]
) -> dict[int | None, int] | Conflict | Bad:
    """Run the statement of a commit.

    Args:
        spark: A session with Delta, classic or Connect.
        commit: What to do.
        table: Where.
        locations: Where Spark reads each file of the batch.

    Returns:
        Landing rows by marker, None: without marker. The statement has run or was skipped: read the log to know.
    """
    try:
        rows = None
        counts: dict[int | None, int] = {}
        if commit.files:
            batch = LandingRows(commit.files, locations, commit.columns, commit.upsert, commit.text)
            counts = _count(spark, batch, commit.algebra)
            rows = read_rows(spark, batch, commit.algebra)
        if before := properties_before(commit):
            spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({_listed(before)})").collect()
        with _shuffle_partitions(spark, sum(counts.values())), _transaction(spark, commit.version):
            _run(spark, commit, table, rows)
    except (PySparkException, Py4JError) as error:
        return failure(error)
    return counts


def _run(spark: SparkSession, commit: Commit, table: DeltaTable, rows: DataFrame | None) -> None:
    names = [column.name for column in commit.columns]
    if rows is None:
        empty = read_schema(commit.columns)
        source = spark.range(0).select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in empty.fields))
    else:
        source = collapse(rows, names, commit.keys, commit.algebra)
        if commit.kind == "rebuild":
            source = source.where(F.col(ACT).isin("A", "U"))
    view = f"openmirror_{uuid4().hex}"
    source.createOrReplaceTempView(view)
    try:
        spark.sql(statement(commit, table, view)).collect()
    finally:
        spark.catalog.dropTempView(view)


def statement(commit: Commit, table: DeltaTable, view: str) -> str:
    """Return the SQL of a commit; ``view`` holds the collapsed rows."""
    columns = [quoted(column.name) for column in commit.columns]
    listed = ", ".join(columns)
    if commit.kind in {"rebuild", "drop"}:
        properties = _listed(table_properties(commit, table))
        # Where no table was seen, one that stands there by now must not be replaced: it holds what others applied.
        # CREATE TABLE refuses it, but refuses any file too; among litter, Delta skips what is not above the version.
        is_free = commit.expected is None and not table.littered
        create = "CREATE TABLE" if is_free else "CREATE OR REPLACE TABLE"
        return (
            f"{create} {table.sql} USING delta TBLPROPERTIES ({properties}) "  # noqa: S608 - every name is quoted
            f"AS SELECT {listed} FROM {view}"
        )
    if commit.kind == "append" and not commit.added:
        return f"INSERT INTO {table.sql} ({listed}) SELECT {listed} FROM {view}"  # noqa: S608
    # Columns are added by the commit that needs them first: an ALTER TABLE is not fenced by the version, so that of a
    # mirror that was paused would change the next life of the table.
    merge = "MERGE WITH SCHEMA EVOLUTION INTO" if commit.added else "MERGE INTO"
    values = ", ".join(f"s.{c}" for c in columns)
    if commit.kind == "append":
        return (
            f"{merge} {table.sql} AS t USING {view} AS s ON false "  # noqa: S608
            f"WHEN NOT MATCHED THEN INSERT ({listed}) VALUES ({values})"
        )
    # The flag stands in ON: were the keys of the rows to append made NULL, they would all go to one partition.
    on = " AND ".join(f"t.{quoted(k)} <=> s.{quoted(k)}" for k in commit.keys)
    updates = ", ".join(f"{c} = s.{c}" for c in columns)  # not t.c: Delta does not find it there before it is added
    return (
        f"{merge} {table.sql} AS t USING {view} AS s ON s.{ACT} <> 'A' AND {on} "  # noqa: S608
        f"WHEN MATCHED AND s.{ACT} = 'D' THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {updates} "
        f"WHEN NOT MATCHED AND s.{ACT} IN ('A', 'U') THEN INSERT ({listed}) VALUES ({values})"
    )


def table_properties(commit: Commit, table: DeltaTable) -> dict[str, str]:
    """Return the properties of a table that is created, rebuilt or dropped."""
    names = [column.name for column in commit.columns]
    properties = {
        GENERATION_PROPERTY: commit.generation,
        FOLDER_PROPERTY: commit.table.folder,
        KEYS_PROPERTY: json.dumps(list(commit.keys)),
        REQUIRED_PROPERTY: json.dumps([column.name for column in commit.columns if not column.nullable]),
        "delta.enableDeletionVectors": "true" if table.deletion_vectors else "false",
    }
    if any(_NEEDS_MAPPING.search(name) for name in names):
        properties["delta.columnMapping.mode"] = "name"
    if commit.dropped is not None:
        properties[DROPPED_PROPERTY] = commit.dropped.isoformat()
    return properties


def properties_before(commit: Commit) -> dict[str, str]:
    """Return the properties that a table must have before a statement: harmless where it never comes, or comes late."""
    properties: dict[str, str] = {}
    if any(_NEEDS_MAPPING.search(column.name) for column in commit.added):
        properties["delta.columnMapping.mode"] = "name"
    if any(column.type == "timestamp_ntz" for column in commit.added):
        properties["delta.feature.timestampNtz"] = "supported"
    if commit.keys_came:
        later = {"generation": commit.generation, "keys": list(commit.keys)}
        properties[LATER_KEYS_PROPERTY] = json.dumps(later)
    return properties


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(name)} = {_text(value)}" for name, value in properties.items())


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _count(spark: SparkSession, batch: LandingRows, algebra: Algebra) -> dict[int | None, int]:
    """Count landing rows by marker: from the footers, and where a file mixes markers, from its marker column."""
    counts: Counter[int | None] = Counter()
    mixed: list[tuple[LandedFile, str]] = []
    for file, location in zip(batch.files, batch.locations, strict=True):
        known = _count_from_footer(file)
        if known is None:
            mixed.append((file, location))
        else:
            counts.update(known)
    # One query for each run of numbers without a gap, which is what `read_rows` takes.
    for run in _runs(mixed):
        part = replace(batch, files=[f for f, _ in run], locations=[location for _, location in run])
        counts.update(count_markers(read_rows(spark, part, algebra)))
    return dict(counts)


def _count_from_footer(file: LandedFile) -> Mapping[int | None, int] | None:
    footer = file.footer
    if not isinstance(footer, Footer) or footer.rows == 0:
        return {}
    if not footer.marked:
        return {None: footer.rows}
    if footer.markers is not None and footer.markers[0] == footer.markers[1]:
        return {footer.markers[0]: footer.rows}
    return None


def _runs(files: Sequence[tuple[LandedFile, str]]) -> list[list[tuple[LandedFile, str]]]:
    runs: list[list[tuple[LandedFile, str]]] = []
    for file, location in files:
        if runs and runs[-1][-1][0].number + 1 == file.number:
            runs[-1].append((file, location))
        else:
            runs.append([(file, location)])
    return runs


@contextmanager
def _transaction(spark: SparkSession, version: int) -> Iterator[None]:
    try:
        spark.conf.set(_TXN_APP_ID, APP_ID)
        spark.conf.set(_TXN_VERSION, str(version))
        yield
    finally:
        spark.conf.unset(_TXN_VERSION)
        spark.conf.unset(_TXN_APP_ID)


@contextmanager
def _shuffle_partitions(spark: SparkSession, rows: int) -> Iterator[None]:
    """Raise the shuffle partitions for a big batch; what the session had is put back."""
    before = spark.conf.get(_SHUFFLE_PARTITIONS)
    wanted = math.ceil(rows / _ROWS_PER_PARTITION)
    if before is None or not before.isdecimal() or int(before) >= wanted:
        yield
        return
    spark.conf.set(_SHUFFLE_PARTITIONS, str(wanted))
    try:
        yield
    finally:
        spark.conf.set(_SHUFFLE_PARTITIONS, before)


def failure(error: PySparkException | Py4JError) -> Conflict | Bad:
    """Tell what an error of Spark or Delta means: somebody else was at work, or the batch cannot be applied.

    Delta's errors while a statement runs arrive as plain Java errors, so the text decides where there is no condition.
    """
    text = str(error)
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    cause = _cause(text)
    if condition.startswith(_CONFLICTS) or _ODDLY_CONCURRENT.search(text):
        return Conflict(cause)
    if ours := _OURS.search(text):
        return Bad(ours[1], f"{ours[0].removeprefix('openmirror: ')}: publish the file again")
    name = _FILE_NAME.search(text)
    return Bad(name[0] if name else None, f"Spark could not apply it: {cause}")


def _cause(text: str) -> str:
    """Return the line that says most: the innermost cause, else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return shorten((causes[-1:] or thrown or lines or ["no message"])[0], 400).strip("'\"")
