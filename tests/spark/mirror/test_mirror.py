"""The mirror on real Delta tables. A merge takes about two seconds, so each test makes few commits."""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openmirror_writer.errors import ApplyError
from openmirror_writer.layout import data_file
from openmirror_writer.schema import ROW_MARKER
from openmirror_writer.zone import LandingZone
from tests.spark.mirror.landing import COLUMNS, Folder, schema, schema_of

pytest.importorskip("pyspark")

from openmirror_writer.spark.mirror import Mirror, MirrorReport
from openmirror_writer.spark.mirror.commit import DeltaTable, run_commit
from openmirror_writer.spark.mirror.state import TableName
from openmirror_writer.spark.mirror.steps import Commit, Conflict, PassResult, Skipped, table_pass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TXN = ("spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion")


class Bench:
    """A zone, a target and a mirror between them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.zone = LandingZone(folder / "zone")
        self.target = folder / "target"
        self.mirror = Mirror(spark, self.zone, self.target)

    def folder(self, name: str = "orders", **more: Any) -> Folder:
        return Folder(self.zone, name, **more)

    def rows(self, place: str = "dbo/orders") -> list[tuple[Any, ...]]:
        found = self.spark.sql(f"SELECT * FROM delta.`{self.target / place}`").collect()  # noqa: S608
        return sorted((tuple(row) for row in found), key=repr)

    def commits(self, place: str = "dbo/orders") -> int:
        return len(list((self.target / place / "_delta_log").glob("*.json")))


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Iterator[Bench]:
    yield Bench(spark, tmp_path)
    for name in TXN:
        assert spark.conf.get(name, None) is None, "left set, the next INSERT would silently be dropped"


@pytest.mark.rule("6.1", "6.4", "6.5", "L34", "L36", "L40", "L41", "L42")
def test_a_backlog_is_one_merge_whatever_the_target_holds(bench: Bench) -> None:
    """Keys 1 to 6 have a row, keys 11 to 16 have none; each pair meets one case of the algebra."""
    folder = bench.folder()
    folder.write(1, *((None, key, "old") for key in [*range(1, 7), None]))
    bench.mirror.run_once().raise_for_failures()
    histories: list[list[tuple[int, str]]] = [
        [(0, "a"), (0, "b")],  # only inserts
        [(1, "x"), (2, ""), (0, "a")],  # reset, no update after
        [(2, ""), (0, "i"), (1, "r"), (0, "a")],  # reset, update after
        [(4, "u"), (0, "i"), (1, "r"), (0, "a")],  # begins with update
        [(0, "i"), (1, "r"), (0, "a")],  # begins with insert, has update: the trap
        [(2, "")],
    ]
    operations = [(m, key + 10 * far, v) for key, h in enumerate(histories, 1) for far in (0, 1) for m, v in h]
    folder.write(2, *operations[:13])
    folder.write(3, *operations[13:], (1, None, "null"))
    report = bench.mirror.run_once()
    assert bench.commits() == 2
    assert bench.rows() == sorted(
        [
            *[(1, "old"), (1, "a"), (1, "b"), (11, "a"), (11, "b")],
            *[(2, "a"), (12, "a")],
            *[(3, "r"), (3, "a"), (13, "r"), (13, "a")],
            *[(4, "r"), (4, "r"), (4, "a"), (14, "r"), (14, "r"), (14, "a")],
            *[(5, "r"), (5, "r"), (5, "a"), (15, "r"), (15, "a")],
            (None, "null"),
        ],
        key=repr,
    )
    table = report.tables["orders"]
    assert (table.status, table.files, table.last_file, table.version) == ("Replicating", 2, 3, 1)
    assert table.rows == {0: 18, 1: 9, 2: 6, 4: 2}


@pytest.mark.rule("2.3", "6.1", "6.5")
def test_a_batch_without_inserts_takes_the_last_operation_of_each_key(bench: Bench) -> None:
    folder = bench.folder(upsert=True)
    folder.write(1, (0, 1, "a"), (0, 1, "b"), (0, 2, "a"), (0, 2, "b"), (0, 3, "a"))
    bench.mirror.run_once().raise_for_failures()
    folder.write(2, (2, 1, None), (2, 2, None), (1, 2, "once"), (4, 3, "x"))
    folder.write(3, (None, 3, "unmarked"), (None, 4, "new"))
    assert bench.mirror.run_once().tables["orders"].rows == {1: 1, 2: 2, 4: 1, None: 2}
    assert bench.rows() == [(2, "once"), (3, "unmarked"), (4, "new")]


@pytest.mark.rule("1.2", "4.3", "4.4", "6.5", "8.1", "L38", "L39", "L53", "L63")
def test_inserts_are_appended_and_files_are_moved_but_for_the_last_one(bench: Bench) -> None:
    folder = bench.folder(schema_name="sales")
    folder.write(1, (None, 1, "a"))
    bench.mirror.run_once().raise_for_failures()
    folder.write(2, (0, 1, "a"))
    folder.write_foreign(3, (None, 2, "b"))
    report = bench.mirror.run_once()
    assert bench.rows("sales/orders") == [(1, "a"), (1, "a"), (2, "b")]
    assert (folder.numbers(), folder.numbers("_ProcessedFiles")) == ([3], [1, 2])
    assert report.tables["sales.orders"].rows == {0: 1, None: 1}
    assert bench.mirror.run_once().tables["sales.orders"].files == 0


def test_a_statement_that_was_carried_out_is_skipped(bench: Bench) -> None:
    """Skipped by Delta itself: the statement is sent a second time, with the same files and version."""
    folder = bench.folder()
    folder.write(1, (None, 1, "a"))
    bench.mirror.run_once().raise_for_failures()
    for number, rows in ((2, [(None, 2, "b")]), (3, [(1, 1, "A"), (0, 3, "c")])):
        folder.write(number, *rows)
        commit = next(request for request in requests(bench) if isinstance(request, Commit))
        for _ in range(2):
            send(bench, commit, folder)
    assert bench.rows() == [(1, "A"), (2, "b"), (3, "c")]
    assert bench.commits() == 3


def send(bench: Bench, commit: Commit, folder: Folder, *, littered: bool = False) -> object:
    """Run a statement without asking first whether the table is as it was planned on."""
    table = DeltaTable(str(bench.target / commit.table.target), deletion_vectors=True, littered=littered)
    return run_commit(bench.spark, commit, table, [location(folder, file.number) for file in commit.files])


def requests(bench: Bench) -> Generator[object, None, None]:
    """Yield the requests of a pass, each before it is carried out."""
    steps = table_pass(TableName("orders"), now=datetime.now(UTC))
    answer: Any = None
    while True:
        try:
            request = steps.send(answer)
        except StopIteration:
            return
        yield request
        answer = bench.mirror._answer(request)


def test_two_mirrors_at_once_never_apply_a_file_twice(bench: Bench) -> None:
    """B reads 0; A commits 1 and 2; B then goes on with 1 to 3."""
    folder = bench.folder()
    folder.write(1, (None, 1, "a"))
    folder.write(2, (0, 2, "b"))
    b = requests(bench)
    next(b)
    next(b)  # B has read that nothing is applied
    bench.mirror.run_once().raise_for_failures()
    folder.write(3, (0, 3, "c"))
    assert len([request for request in b if isinstance(request, Commit)]) == 1
    assert bench.rows() == [(1, "a"), (2, "b"), (3, "c")]


def test_a_statement_that_was_planned_before_another_mirror_worked_changes_nothing(bench: Bench) -> None:
    folder = bench.folder()
    folder.write(1, (None, 1, "a"))
    b = requests(bench)
    late = next(request for request in b if isinstance(request, Commit))
    bench.mirror.run_once().raise_for_failures()
    folder.write(2, (0, 2, "b"))
    bench.mirror.run_once().raise_for_failures()
    assert isinstance(bench.mirror._answer(late), Skipped)
    assert isinstance(send(bench, late, folder), Conflict)
    send(bench, late, folder, littered=True)
    assert bench.rows() == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("committed", [False, True])
def test_a_mirror_that_is_stopped_around_its_commit_and_run_again_gives_the_same_table(
    bench: Bench, *, committed: bool
) -> None:
    folder = bench.folder()
    folder.write(1, (0, 1, "a"))
    folder.write(2, (1, 1, "b"))
    stopped = requests(bench)
    commit = next(request for request in stopped if isinstance(request, Commit))
    if committed:
        bench.mirror._answer(commit)
    stopped.close()
    bench.mirror.run_once().raise_for_failures()
    assert bench.rows() == [(1, "b")]
    assert (bench.commits(), folder.numbers()) == (1, [2])


@pytest.mark.parametrize("left", ["part-0.parquet", f"_delta_log/.{0:020d}.json.killed.tmp"])
def test_what_a_killed_first_statement_left_stops_no_table(bench: Bench, left: str) -> None:
    file = bench.target / "dbo/orders" / left
    file.parent.mkdir(parents=True)
    file.write_bytes(b"half")
    bench.folder().write(1, (None, 1, "a"))
    bench.mirror.run_once().raise_for_failures()
    assert (bench.rows(), bench.commits()) == ([(1, "a")], 1)


@pytest.mark.rule("7.8", "7.9", "7.11", "L48", "L49", "L50", "L58", "L60")
def test_a_dropped_folder_empties_the_table_and_a_new_one_rebuilds_it_each_in_one_commit(bench: Bench) -> None:
    bench.folder("items").write(1, (None, 1, "stays"))
    folder = bench.folder()
    folder.write(1, (None, 1, "a"))
    bench.mirror.run_once().raise_for_failures()
    for name in folder.names():
        folder.remove(name)
    folder.storage.remove_folder("orders")
    report = bench.mirror.run_once()
    assert (report.tables["orders"].status, bench.rows(), bench.commits()) == ("Stopped", [], 2)
    assert bench.mirror.run_once().tables["orders"].status == "Stopped"
    again = bench.folder(generation="g2", columns=schema(id=pa.int32(), w=pa.date32()))
    again.write(1, (None, 7, None))
    report = bench.mirror.run_once()
    assert (report.tables["orders"].status, bench.rows(), bench.commits()) == ("Replicating", [(7, None)], 3)
    assert bench.rows("dbo/items") == [(1, "stays")]


@pytest.mark.rule("4.8", "8.1", "record.5")
def test_a_table_that_fails_stops_no_other_and_all_before_its_bad_file_is_applied(bench: Bench) -> None:
    empty, fork, gap, marker, drift = (bench.folder(name) for name in ("empty", "fork", "gap", "marker", "drift"))
    good = bench.folder("good")
    for folder in (drift, empty, fork, gap, good):
        folder.write(1, (None, 1, "a"))
    empty.put(data_file(2), b"")
    fork.write(2, (None, 2, "b"), previous="another")
    gap.write(3, (None, 3, "c"))
    drift.columns = schema(id=pa.int32(), v=pa.string())
    drift.write(2, (None, 2, "b"))
    marker.write_foreign(1, (0, 1, "a"), (3, 2, "b"), (4, 3, "c"))
    report = bench.mirror.run_once()
    statuses = {name: (table.status, table.file) for name, table in report.tables.items()}
    assert statuses == {
        "drift": ("Failed", f"drift/{data_file(2)}"),
        "empty": ("Failed", f"empty/{data_file(2)}"),
        "fork": ("Failed", f"fork/{data_file(2)}"),
        "gap": ("Replicating", f"gap/{data_file(2)}"),
        "good": ("Replicating", None),
        "marker": ("Failed", f"marker/{data_file(1)}"),
    }
    for name in ("drift", "empty", "fork", "gap", "good"):
        assert bench.rows(f"dbo/{name}") == [(1, "a")]
    assert "row 1 has the row marker 3" in (report.tables["marker"].reason or "")
    assert "Incoming type integer" in (report.tables["drift"].reason or "")
    with pytest.raises(ApplyError, match="column 'id'"):
        report.raise_for_failures()


@pytest.mark.rule("6.1")
@pytest.mark.parametrize("rows", [[(0, 1, "a"), (1, 1, "b")], [(0, 1, "a"), (None, 1, "b")]])
def test_a_marker_that_no_statistics_tell_is_checked_in_each_row(bench: Bench, rows: list[tuple[Any, ...]]) -> None:
    """Without keys only 0 is allowed; the file's statistics, which would tell, are left out."""
    folder = bench.folder(keys=())
    sink = io.BytesIO()
    arrays = [pa.array([row[i] for row in rows]) for i in (1, 2, 0)]
    pq.write_table(pa.table(arrays, ["id", "v", ROW_MARKER]), sink, write_statistics=False)
    folder.put(data_file(1), sink.getvalue())
    report = bench.mirror.run_once()
    assert report.tables["orders"].status == "Failed"
    assert "row 1 has the row marker" in (report.tables["orders"].reason or "")


def test_a_damaged_page_fails_and_names_the_file(bench: Bench) -> None:
    folder = bench.folder()
    data = bytearray(folder.encode(1, *((None, n, "x" * n) for n in range(1, 50))))
    data[4:400] = bytes(396)
    folder.put(data_file(1), bytes(data))
    report = bench.mirror.run_once().tables["orders"]
    assert (report.status, report.file) == ("Failed", f"orders/{data_file(1)}")


@pytest.mark.rule("4.5")
def test_the_statement_itself_refuses_a_file_that_is_not_the_one_planned(bench: Bench) -> None:
    folder = bench.folder()
    folder.write(1, (None, 1, "a"))
    commit = next(request for request in requests(bench) if isinstance(request, Commit))
    folder.remove(data_file(1))
    folder.write(1, (None, 1, "a"), (None, 2, "b"))
    assert isinstance(send(bench, commit, folder), Conflict)
    assert not (bench.target / "dbo/orders/_delta_log" / f"{0:020d}.json").exists()


def location(folder: Folder, number: int) -> str:
    return folder.storage.location(folder.path(data_file(number)))


@pytest.mark.rule("6.1")
def test_markers_of_different_width_are_read_together(bench: Bench) -> None:
    folder = bench.folder()
    folder.write_foreign(1, (0, 1, "a"), (0, 2, "b"), marker_type=pa.int8())
    folder.write_foreign(2, (1, 1, "A"), marker_type=pa.int64())
    folder.write_foreign(3, (2, 2, None), (0, 3, "c"), marker_type=pa.uint8())
    bench.mirror.run_once().raise_for_failures()
    assert bench.rows() == [(1, "A"), (3, "c")]


def test_names_that_need_quotes_are_mirrored(bench: Bench) -> None:
    columns = schema_of({"the `id`, it's": pa.int64(), "a.b": pa.string(), "nr.`": pa.string()})
    folder = bench.folder("my [orders] {1}", columns=columns, keys=["the `id`, it's"])
    folder.write(1, (None, 1, "a", "m"), (None, 2, "b", "m"))
    bench.mirror.run_once().raise_for_failures()
    folder.write(2, (1, 1, "A", "m"), (0, 3, "c", None))
    bench.mirror.run_once().raise_for_failures()
    assert bench.rows("dbo/my [orders] {1}") == [(1, "A", "m"), (2, "b", "m"), (3, "c", None)]


def test_a_required_column_that_becomes_nullable_is_refused(bench: Bench) -> None:
    required = COLUMNS.set(0, pa.field("id", pa.int64(), nullable=False))
    folder = bench.folder(columns=required)
    folder.write(1, (None, 1, "a"))
    folder.write(2, (0, 2, "b"))
    bench.mirror.run_once().raise_for_failures()
    folder.columns = schema(id=pa.int64(), v=pa.string())
    folder.write(3, (0, 3, "c"))
    reason = bench.mirror.run_once().tables["orders"].reason or ""
    assert "column 'id'. Incoming type long, existing type long not null (rule 7.4)" in reason


@pytest.mark.rule("4.8")
def test_a_long_backlog_takes_several_commits_and_a_file_without_rows_is_applied(
    bench: Bench, spark: SparkSession
) -> None:
    folder = bench.folder()
    folder.write(1, (None, 1, "a"))
    folder.write(2)
    folder.write(3, (0, 3, "c"))
    report = Mirror(spark, bench.zone, bench.target, files_per_commit=1, deletion_vectors=False).run_once()
    assert (report.tables["orders"].files, report.tables["orders"].version) == (3, 2)
    assert bench.rows() == [(1, "a"), (3, "c")]
    metadata = (bench.target / "dbo/orders/_delta_log" / f"{0:020d}.json").read_text().splitlines()
    (found,) = [json.loads(line)["metaData"] for line in metadata if "metaData" in line]
    assert found["configuration"]["delta.enableDeletionVectors"] == "false"


def test_two_folders_that_land_in_one_table_are_not_both_mirrored(bench: Bench) -> None:
    bench.folder().write(1, (None, 1, "a"))
    bench.folder(schema_name="dbo").write(1, (None, 2, "b"))
    report = bench.mirror.run_once()
    assert report.tables["orders"].status == "Replicating"
    assert "lands in the same Delta table" in (report.tables["dbo.orders"].reason or "")
    assert bench.rows() == [(1, "a")]


def test_the_loop_ends_when_it_is_told_to(bench: Bench) -> None:
    reports: list[MirrorReport] = []

    def enough(report: MirrorReport) -> None:
        reports.append(report)
        if len(reports) == 2:
            bench.mirror.stop()

    bench.mirror.run(0.0, on_report=enough)
    assert [report.tables for report in reports] == [{}, {}]


def test_a_pass_is_the_same_when_another_thread_reads_its_footers(bench: Bench) -> None:
    """The footers are read by several threads, and answered in the order they were asked for."""
    folder = bench.folder()
    for number in range(1, 30):
        folder.write(number, (0, number, "x"))
    result = bench.mirror._drive(table_pass(TableName("orders"), now=datetime.now(UTC)))
    assert isinstance(result, PassResult)
    assert [(batch.first, batch.last) for batch in result.applied] == [(1, 29)]
