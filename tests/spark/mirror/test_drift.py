"""Columns and keys that change, on real Delta: the matrix of the landing zone's section 7, beside `replay`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from openmirror_writer.errors import ApplyError
from openmirror_writer.layout import METADATA, data_file
from openmirror_writer.metadata import TableMetadata
from openmirror_writer.replay import replay
from openmirror_writer.schema import declared_columns
from openmirror_writer.zone import LandingZone
from tests.spark.mirror.landing import Folder

pytest.importorskip("pyspark")

from openmirror_writer.spark.mirror import Mirror, MirrorReport
from openmirror_writer.spark.mirror.columns import Column
from openmirror_writer.spark.mirror.commit import DeltaTable, run_commit
from openmirror_writer.spark.mirror.state import TableName
from openmirror_writer.spark.mirror.steps import Commit, table_pass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[tuple[Any, ...]]


class Bench:
    """A zone, a target and a mirror between them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.zone = LandingZone(folder / "zone")
        self.target = folder / "target"
        self.mirror = Mirror(spark, self.zone, self.target)
        self.seen: dict[str, tuple[list[str], Rows]] = {}

    def folder(self, name: str, columns: dict[str, str], **more: Any) -> Folder:
        return Folder(self.zone, name, columns=declared_columns(columns), **more)

    def run(self) -> MirrorReport:
        """Run the mirror; what it applied must equal the replay, and is kept in `seen`."""
        report = self.mirror.run_once()
        if not report.failures:
            for label, table in replay(self.zone).items():
                if report.tables[label].files:
                    self.seen[label] = self.rows(label)
                    assert self.seen[label] == (table.column_names, in_order(table)), label
        return report

    def rows(self, name: str) -> tuple[list[str], Rows]:
        """The columns and the rows of the Delta table."""
        found = self.spark.sql(f"SELECT * FROM delta.`{self.target / 'dbo' / name}`")  # noqa: S608
        return found.columns, sorted((tuple(row) for row in found.collect()), key=repr)

    def commits(self, name: str) -> int:
        return len(list((self.target / "dbo" / name / "_delta_log").glob("*.json")))


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


def in_order(table: pa.Table) -> Rows:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def write(folder: Folder, number: int, columns: dict[str, str], *rows: tuple[Any, ...]) -> None:
    """Write a file with columns of its own."""
    folder.columns = declared_columns(columns)
    folder.write(number, *rows)


@pytest.mark.rule("7.1", "7.2", "7.5", "L56", "L57", "L59", "L62")
def test_columns_come_and_go_in_the_very_commit_that_needs_them(bench: Bench) -> None:
    """Rules 7.1, 7.2 and 7.5; merged, appended and in the batch that makes the table."""
    narrow, wide = {"id": "int64", "v": "string"}, {"id": "int64", "v": "string", "w": "decimal(9,2)"}
    merged, appended, renamed, made = (bench.folder(n, narrow) for n in ("merged", "appended", "renamed", "made"))
    for folder in (merged, appended, renamed):
        write(folder, 1, narrow, (None, 1, "a"), (None, 2, "b"), (None, 3, "c"))
    write(made, 1, narrow, (None, 1, "a"))
    write(made, 2, {"w": "int8", "id": "int64"}, (0, 7, 2), (1, 8, 1))
    bench.run().raise_for_failures()
    assert bench.seen["made"] == (["id", "v", "w"], [(1, None, 8), (2, None, 7)])

    write(merged, 2, narrow, (1, 1, "A"))
    write(merged, 3, wide, (4, 2, "B", 2), (0, 4, "d", 4))
    write(merged, 4, {"id": "int64", "x": "bool"}, (1, 3, True), (0, 5, None))
    write(appended, 2, {"x": "date", **narrow})  # a file without rows tells its columns all the same
    write(renamed, 2, {"id": "int64", "renamed": "string"}, (4, 1, "new name"))
    bench.run().raise_for_failures()
    columns, rows = bench.seen["merged"]
    assert columns == ["id", "v", "w", "x"]
    assert rows == [
        (1, "A", None, None),
        (2, "B", 2, None),
        (3, None, None, True),
        (4, "d", 4, None),
        (5, None, None, None),
    ]
    assert bench.seen["appended"] == (["id", "v", "x"], [(1, "a", None), (2, "b", None), (3, "c", None)])
    assert bench.seen["renamed"] == (["id", "v", "renamed"], [(1, None, "new name"), (2, "b", None), (3, "c", None)])
    assert [bench.commits(name) for name in ("merged", "appended", "renamed", "made")] == [2, 2, 2, 1]


def test_names_and_types_that_a_delta_table_must_be_prepared_for_may_come_later(bench: Bench) -> None:
    base = {"id": "int64"}
    spaced = {**base, "a b": "string", "at": "timestamp_ntz"}
    folder = bench.folder("spaced", base)
    write(folder, 1, base, (None, 1))
    bench.run().raise_for_failures()
    write(folder, 2, spaced, (4, 1, "x", None))
    bench.run().raise_for_failures()
    write(folder, 3, {**spaced, "c,d": "int8", "to": "timestamp_ntz"}, (0, 2, "y", None, 7, None))
    bench.run().raise_for_failures()
    assert bench.seen["spaced"][1] == [(1, "x", None, None, None), (2, "y", None, 7, None)]


STANDING = {"id": "int64", "n": "int32 not null", "d": "date", "v": "string"}
REFUSED: list[tuple[dict[str, str], str, str]] = [
    ({**STANDING, "w": "int8 not null"}, "7.3", "w"),
    ({"id": "int64", "d": "date", "v": "string"}, "7.3", "n"),
    ({**STANDING, "id": "int32"}, "7.4", "id"),
    ({**STANDING, "n": "int64 not null"}, "7.4", "n"),
    ({**STANDING, "d": "timestamp"}, "7.4", "d"),
    ({**STANDING, "v": "binary"}, "7.4", "v"),
    ({**STANDING, "n": "int32"}, "7.4", "n"),
    ({**STANDING, "v": "string not null"}, "7.4", "v"),
    ({"id": "int64", "n": "int32 not null", "D": "date", "v": "string"}, "7.5", "D"),
]


@pytest.mark.rule("7.3", "7.4", "7.5", "8.3", "L61")
def test_a_change_that_cannot_be_followed_stops_its_table_until_the_file_is_repaired(bench: Bench) -> None:
    """Rules 7.3 to 7.5: everything before the file is applied, the other tables go on."""
    stopped, other = bench.folder("stopped", STANDING), bench.folder("other", {"id": "int64"})
    write(stopped, 1, STANDING, (None, 1, 5, None, "a"))
    for number, (columns, rule, column) in enumerate(REFUSED):
        if number == 1:
            write(other, 1, {"id": "int64"}, (None, 1))
        write(stopped, 2, columns)
        report = bench.run()
        failed = report.tables["stopped"]
        assert (failed.status, failed.file, failed.last_file) == ("Failed", stopped.path(data_file(2)), 1), columns
        assert failed.reason is not None
        assert failed.reason.startswith("SchemaMergeFailure: "), columns
        assert repr(column) in failed.reason, columns
        assert f"(rule {rule})" in failed.reason, columns
        with pytest.raises(ApplyError, match=rf"{column!r}.*\(rule {rule}\)") as caught:
            replay(bench.zone)
        assert caught.value.file == stopped.path(data_file(2))
        stopped.remove(data_file(2))
    assert report.tables["other"].last_file == 1
    write(stopped, 2, STANDING, (4, 1, 6, None, "b"))
    bench.run().raise_for_failures()
    assert bench.seen["stopped"][1] == [(1, 6, None, "b")]


def test_a_bad_file_in_a_backlog_leaves_those_before_it_applied(bench: Bench) -> None:
    folder = bench.folder("orders", {"id": "int64"})
    write(folder, 1, {"id": "int64"}, (None, 1))
    write(folder, 2, {"id": "int64", "v": "string"}, (0, 2, "b"))
    write(folder, 3, {"id": "int64", "v": "int8"}, (0, 3, 3))
    report = bench.run().tables["orders"]
    assert (report.status, report.last_file, report.file) == ("Failed", 2, folder.path(data_file(3)))
    assert bench.rows("orders") == (["id", "v"], [(1, None), (2, "b")])


def test_a_statement_that_comes_late_adds_no_column(bench: Bench) -> None:
    """The version fences the column like the rows: a mirror that was paused changes nothing of the next life."""
    folder = bench.folder("orders", {"id": "int64"})
    write(folder, 1, {"id": "int64"}, (None, 1))
    bench.run().raise_for_failures()
    write(folder, 2, {"id": "int64", "v": "string"}, (0, 2, "b"))
    commit = planned(bench)
    assert commit.added == (Column("v", "string"),)
    assert commit.expected is not None
    table = DeltaTable(str(bench.target / commit.table.target), deletion_vectors=True)
    for kind in ("append", "merge"):
        late = replace(commit, kind=kind, algebra=kind, version=commit.expected)
        outcome = run_commit(bench.spark, late, table, [folder.storage.location(folder.path(data_file(2)))])
        assert outcome == {0: 1}, "it failed and did not come to be skipped"
        assert bench.rows("orders") == (["id"], [(1,)]), kind
    bench.run().raise_for_failures()
    assert bench.seen["orders"] == (["id", "v"], [(1, None), (2, "b")])


def planned(bench: Bench) -> Commit:
    """The statement that the next pass begins with."""
    steps = table_pass(TableName("orders"), now=datetime.now(UTC))
    request: object = next(steps)
    while not isinstance(request, Commit):
        request = steps.send(bench.mirror._answer(request))
    return request


def keys(folder: Folder, *names: str) -> None:
    """Replace the metadata by one with these keys."""
    folder.remove(METADATA)
    folder.put(METADATA, TableMetadata(key_columns=names).to_bytes())


@pytest.mark.rule("2.1", "7.6", "7.9", "L8", "L11", "L50")
def test_keys_may_come_later_and_never_change_before_the_folder_is_made_again(bench: Bench) -> None:
    """Rules 2.1, 7.6 and 7.9; the new life has neither the column nor the keys that came in the old one."""
    columns = {"id": "int64", "v": "string"}
    folder = bench.folder("orders", columns, keys=())
    write(folder, 1, columns, (0, 1, "a"), (0, 1, "b"))
    bench.run().raise_for_failures()
    keys(folder, "id")
    write(folder, 2, {**columns, "a b": "int8"}, (1, 1, "A", 7))
    bench.run().raise_for_failures()
    assert bench.seen["orders"][1] == [(1, "A", 7), (1, "A", 7)]
    for names in ([], ["v"], ["id", "v"]):
        keys(folder, *names)
        failed = bench.run().tables["orders"]
        assert (failed.status, failed.file) == ("Failed", folder.path(METADATA)), names
        assert "keyColumns were ['id']" in (failed.reason or "")
    for place in ("", "_ProcessedFiles"):
        for name in folder.names(place):
            folder.remove(f"{place}/{name}" if place else name)
    again = bench.folder("orders", {"v": "int8"}, keys=("v",), generation="g2")
    write(again, 1, {"v": "int8"}, (0, 7))
    bench.run().raise_for_failures()
    assert bench.seen["orders"] == (["v"], [(7,)])
