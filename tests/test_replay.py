"""`replay` and `trace`: the documented semantics, over folders that are written by hand."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import ApplyError, SchemaRefusedError, UnknownPositionError
from openmirror_writer.formats import Parquet
from openmirror_writer.layout import DROPPING, GENERATION, METADATA, PROCESSED, READY_TO_DELETE, data_file
from openmirror_writer.metadata import Generation, TableMetadata
from openmirror_writer.record import FOREIGN, Record, new_id
from openmirror_writer.replay import LandingRow, landing_files, replay, trace
from openmirror_writer.schema import declared_columns
from openmirror_writer.zone import LandingTable, LandingZone

COLUMNS = declared_columns({"id": "int64", "v": "string"})
Row = tuple[Any, ...]
"""The values of one landing row; in marked files the marker stands first."""


class Feeder:
    """Writes landing files of one table, with chained records, marker-free or marked as it is told."""

    def __init__(self, table: LandingTable, columns: pa.Schema = COLUMNS, keys: Sequence[str] = ("id",)) -> None:
        self.table = table
        self.columns = columns
        self.generation = new_id()
        self.last: Record | None = None
        self.put(METADATA, TableMetadata(key_columns=tuple(keys)).to_bytes())
        self.put(GENERATION, Generation(generation=self.generation).to_bytes())

    def put(self, name: str, data: bytes) -> None:
        assert self.table.zone.storage.create(self.table.path(name), data) is not None

    def replace(self, name: str, data: bytes) -> None:
        self.table.zone.storage.delete(self.table.path(name))
        self.put(name, data)

    def record(self, **changes: Any) -> Record:
        """The record that continues the last file."""
        number, previous = (1, None) if self.last is None else (self.last.number + 1, self.last.batch)
        fields = {"generation": self.generation, "number": number, "previous": previous, "batch": new_id(), **changes}
        return Record(writer="w", phase="following", by="test", **fields)

    def unmarked(self, *rows: Row, **changes: Any) -> Record:
        return self._publish([ChangeBatch(self._batch(rows))], changes)

    def marked(self, *rows: Row, **changes: Any) -> Record:
        markers = pa.array([row[0] for row in rows], pa.int32())
        return self._publish([ChangeBatch(self._batch([row[1:] for row in rows]), markers)], changes)

    def foreign(self, number: int, rows: pa.Table) -> None:
        """A file without a record, as other publishers write it."""
        sink = io.BytesIO()
        pq.write_table(rows, sink)
        self.put(data_file(number), sink.getvalue())

    def move(self, number: int, to: str = PROCESSED) -> None:
        name = data_file(number)
        assert self.table.zone.storage.rename(self.table.path(name), self.table.path(f"{to}/{name}"))

    def delete(self, name: str) -> None:
        assert self.table.zone.storage.delete(self.table.path(name))

    def _publish(self, batches: list[ChangeBatch], changes: dict[str, Any]) -> Record:
        record = self.record(**changes)
        self.put(data_file(record.number), Parquet().encode(self.columns, batches, record))
        if not changes:
            self.last = record
        return record

    def _batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        values = [dict(zip(self.columns.names, row, strict=True)) for row in rows]
        return pa.RecordBatch.from_pylist(values, schema=self.columns)


@pytest.fixture
def zone() -> Iterator[LandingZone]:
    zone = LandingZone(f"memory://{uuid4().hex}")
    yield zone
    for name in list(zone.storage.names("orders").files):
        zone.storage.delete(f"orders/{name}")


@pytest.fixture
def orders(zone: LandingZone) -> Feeder:
    return Feeder(zone.table("orders"))


def rows_of(zone: LandingZone, label: str = "orders") -> list[Row]:
    return sorted((tuple(row.values()) for row in replay(zone)[label].to_pylist()), key=repr)


def traced(feeder: Feeder, key: dict[str, Any]) -> list[LandingRow]:
    landed = landing_files(feeder.table)
    assert landed is not None
    return trace(landed, key)


@pytest.mark.rule("6.5", "L39")
def test_marker_free_rows_are_inserts(zone: LandingZone, orders: Feeder) -> None:
    orders.unmarked((1, "a"), (1, "a"), (2, "b"))
    assert rows_of(zone) == [(1, "a"), (1, "a"), (2, "b")]


@pytest.mark.rule("2.3", "6.5")
def test_marker_free_rows_are_upserts_where_the_metadata_says_so(zone: LandingZone, orders: Feeder) -> None:
    orders.replace(METADATA, b'{"keyColumns": ["id"], "isUpsertDefaultRowMarker": true}')
    orders.unmarked((1, "a"), (1, "b"), (2, "c"))
    assert rows_of(zone) == [(1, "b"), (2, "c")]


@pytest.mark.rule("6.1", "6.4", "6.5", "L34", "L36", "L40", "L42")
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(0, 1, "x")], [(1, "a"), (1, "x")]),
        ([(1, 1, "x")], [(1, "x")]),
        ([(4, 1, "x")], [(1, "x")]),
        ([(1, 2, "x")], [(1, "a"), (2, "x")]),
        ([(4, 2, "x")], [(1, "a"), (2, "x")]),
        ([(2, 1, None)], []),
        ([(2, 2, None)], [(1, "a")]),
        ([(0, 1, "x"), (1, 1, "y")], [(1, "y"), (1, "y")]),
        ([(2, 1, None), (0, 1, "x"), (0, 1, "y")], [(1, "x"), (1, "y")]),
        ([(2, 1, None), (0, 2, "a")], [(2, "a")]),
        ([(1, 1, None)], [(1, None)]),
    ],
)
def test_each_marker_does_what_the_documentation_says(
    zone: LandingZone, orders: Feeder, changes: list[Row], expected: list[Row]
) -> None:
    orders.unmarked((1, "a"))
    orders.marked(*changes)
    assert rows_of(zone) == expected


def test_a_null_key_is_a_key_like_any_other(zone: LandingZone, orders: Feeder) -> None:
    orders.marked((0, None, "a"), (0, None, "b"), (1, None, "c"))
    assert rows_of(zone) == [(None, "c"), (None, "c")]


def test_nan_keys_are_equal_and_the_two_zeros_are_too(zone: LandingZone) -> None:
    columns = declared_columns({"id": "double", "v": "string"})
    feeder = Feeder(zone.table("orders"), columns)
    feeder.marked((0, math.nan, "a"), (4, math.nan, "b"), (0, 0.0, "c"), (4, -0.0, "d"))
    assert [row["v"] for row in replay(zone)["orders"].to_pylist()] == ["b", "d"]


def test_values_come_out_as_they_stand_in_the_file(zone: LandingZone) -> None:
    columns = declared_columns({"id": "int64", "t": "timestamp", "d": "decimal(38,2)"})
    feeder = Feeder(zone.table("orders"), columns)
    feeder.marked((4, 1, None, None))
    assert replay(zone)["orders"].schema == columns


@pytest.mark.rule("6.1", "L32", "L33", "L35")
def test_the_marker_is_found_by_name(zone: LandingZone, orders: Feeder) -> None:
    orders.foreign(1, pa.table({"__rowMarker__": pa.array([0, 2], pa.int8()), "id": [1, 1], "v": ["a", None]}))
    orders.foreign(2, pa.table({"id": [2], "__rowMarker__": pa.array([4], pa.int64()), "v": ["b"]}))
    assert rows_of(zone) == [(2, "b")]


@pytest.mark.rule("1.2", "L53")
def test_a_table_with_a_schema_is_named_with_it(zone: LandingZone) -> None:
    Feeder(zone.table("orders", schema_name="sales")).unmarked((1, "a"))
    assert rows_of(zone, "sales.orders") == [(1, "a")]


@pytest.mark.rule("4.8")
def test_a_file_of_no_rows_makes_an_empty_table(zone: LandingZone, orders: Feeder) -> None:
    orders.unmarked()
    assert replay(zone)["orders"].equals(COLUMNS.empty_table())


@pytest.mark.rule("2.12")
def test_a_table_without_files_is_left_out(zone: LandingZone, orders: Feeder) -> None:
    assert orders.last is None
    assert replay(zone) == {}


@pytest.mark.rule("2.11", "L7", "L10")
def test_a_folder_without_metadata_is_left_out(zone: LandingZone, orders: Feeder) -> None:
    orders.unmarked((1, "a"))
    orders.delete(METADATA)
    assert replay(zone) == {}


def test_a_table_that_is_being_dropped_is_left_out(zone: LandingZone, orders: Feeder) -> None:
    orders.unmarked((1, "a"))
    orders.put(DROPPING, b"{}")
    assert replay(zone) == {}


@pytest.mark.rule("2.10")
def test_unreadable_metadata_is_an_error(zone: LandingZone, orders: Feeder) -> None:
    orders.replace(METADATA, b"{")
    with pytest.raises(SchemaRefusedError, match=r"orders/_metadata\.json is not readable"):
        replay(zone)


# ------------------------------------------------------------------------------------------------ the chain


@pytest.mark.rule("4.4", "L63")
def test_moved_files_are_read_too(zone: LandingZone, orders: Feeder) -> None:
    orders.unmarked((1, "a"))
    orders.marked((1, 1, "b"))
    orders.marked((0, 2, "c"))
    orders.move(1)
    orders.move(2, READY_TO_DELETE)
    orders.put(f"{PROCESSED}/notes.txt", b"no data file")
    assert rows_of(zone) == [(1, "b"), (2, "c")]


@pytest.mark.rule("4.2", "L37")
def test_files_above_a_gap_wait(zone: LandingZone, orders: Feeder) -> None:
    orders.marked((0, 1, "a"))
    orders.marked((0, 2, "b"))
    orders.marked((0, 3, "c"))
    orders.delete(data_file(2))
    assert rows_of(zone) == [(1, "a")]


def test_a_first_file_that_is_gone_is_an_error(zone: LandingZone, orders: Feeder) -> None:
    orders.marked((0, 1, "a"))
    orders.marked((0, 2, "b"))
    orders.delete(data_file(1))
    with pytest.raises(ApplyError, match=r"file 1 is gone .* after seven days") as caught:
        replay(zone)
    assert (caught.value.table, caught.value.file) == ("orders", f"orders/{data_file(2)}")


@pytest.mark.rule("record.3")
def test_a_file_of_another_generation_is_skipped(zone: LandingZone, orders: Feeder) -> None:
    orders.marked((0, 1, "a"))
    orders.marked((0, 9, "stale"), generation=new_id())
    assert rows_of(zone) == [(1, "a")]


@pytest.mark.rule("4.5", "record.4")
def test_the_moved_file_wins_over_a_stale_one_that_took_its_number(zone: LandingZone, orders: Feeder) -> None:
    orders.marked((0, 1, "a"))
    orders.marked((0, 2, "b"))
    true = orders.last
    orders.marked((0, 3, "c"))
    assert true is not None
    orders.move(2)
    orders.marked((0, 9, "stale"), number=2, previous=true.previous)
    assert rows_of(zone) == [(1, "a"), (2, "b"), (3, "c")]


def test_the_file_that_the_next_one_names_wins_wherever_it_stands(zone: LandingZone, orders: Feeder) -> None:
    orders.marked((0, 1, "stale"), batch="stale")
    orders.move(1)
    orders.marked((0, 1, "a"))
    orders.marked((0, 2, "b"))
    assert rows_of(zone) == [(1, "a"), (2, "b")]


def test_the_moved_files_win_over_several_stale_ones(zone: LandingZone, orders: Feeder) -> None:
    first = orders.marked((0, 1, "a"))
    orders.marked((0, 2, "b"))
    orders.marked((0, 3, "c"))
    orders.marked((0, 4, "d"))
    orders.move(2)
    orders.move(3)
    stale = orders.marked((0, 9, "stale"), number=2, previous=first.batch)
    orders.marked((0, 9, "stale"), number=3, previous=stale.batch)
    assert rows_of(zone) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert {row.state for row in traced(orders, {"id": 9})} == {"stale"}


def test_a_file_under_both_names_counts_once(zone: LandingZone, orders: Feeder) -> None:
    orders.marked((0, 1, "a"))
    content = zone.storage.read(orders.table.path(data_file(1)))
    assert content is not None
    orders.put(f"{PROCESSED}/{data_file(1)}", content.data)
    assert rows_of(zone) == [(1, "a")]
    assert len(traced(orders, {"id": 1})) == 1


@pytest.mark.rule("record.5")
def test_a_fork_is_an_error_that_names_the_file(zone: LandingZone, orders: Feeder) -> None:
    orders.marked((0, 1, "a"))
    orders.marked((0, 2, "b"), previous=new_id())
    with pytest.raises(ApplyError, match=r"does not continue orders/0+1\.parquet: two writers") as caught:
        replay(zone)
    assert caught.value.file == f"orders/{data_file(2)}"


def test_a_first_file_that_names_a_predecessor_is_a_fork(zone: LandingZone, orders: Feeder) -> None:
    orders.marked((0, 1, "a"), previous=new_id())
    with pytest.raises(ApplyError, match="does not continue the beginning"):
        replay(zone)


@pytest.mark.rule("record.6")
def test_a_record_with_another_number_than_its_file_is_an_error(zone: LandingZone, orders: Feeder) -> None:
    orders.marked((0, 1, "a"))
    record = orders.record(number=3)
    batch = ChangeBatch(pa.RecordBatch.from_pylist([{"id": 2, "v": "b"}], schema=COLUMNS), pa.array([0], pa.int32()))
    orders.put(data_file(2), Parquet().encode(COLUMNS, [batch], record))
    with pytest.raises(ApplyError, match="says that it is number 3: delete it and publish the right one") as caught:
        replay(zone)
    assert caught.value.file == f"orders/{data_file(2)}"


@pytest.mark.rule("record.1", "record.2")
def test_records_without_a_generation_marker_are_an_error(zone: LandingZone, orders: Feeder) -> None:
    orders.marked((0, 1, "a"))
    orders.delete(GENERATION)
    with pytest.raises(ApplyError, match=r"_generation\.json is gone"):
        replay(zone)


@pytest.mark.rule("4.2", "6.4", "L36", "L41")
def test_foreign_files_go_by_number(zone: LandingZone, orders: Feeder) -> None:
    orders.delete(GENERATION)
    for number, marker, text in [(2, 1, "b"), (1, 0, "a"), (10, 0, "gap")]:
        orders.foreign(number, pa.table({"id": [1], "v": [text], "__rowMarker__": pa.array([marker], pa.int32())}))
    assert rows_of(zone) == [(1, "b")]


def test_a_chain_goes_on_behind_a_foreign_file(zone: LandingZone, orders: Feeder) -> None:
    orders.foreign(1, pa.table({"id": [1], "v": ["a"]}))
    orders.marked((4, 1, "b"), number=2, previous=FOREIGN)
    assert rows_of(zone) == [(1, "b")]


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.rule("6.1")
@pytest.mark.parametrize("marker", [3, -1, 5, None])
def test_a_marker_that_means_nothing_is_an_error(zone: LandingZone, orders: Feeder, marker: int | None) -> None:
    markers = pa.array([0, marker], pa.int32())
    orders.foreign(1, pa.table({"id": [1, 2], "v": ["a", "b"], "__rowMarker__": markers}))
    with pytest.raises(ApplyError, match=rf"^{marker} \(int32\) is no row marker") as caught:
        replay(zone)
    assert (caught.value.file, caught.value.row) == (f"orders/{data_file(1)}", 1)


def test_a_marker_of_another_type_is_an_error(zone: LandingZone, orders: Feeder) -> None:
    orders.foreign(1, pa.table({"id": [1], "v": ["a"], "__rowMarker__": [1.0]}))
    with pytest.raises(ApplyError, match=r"1.0 \(double\) is no row marker"):
        replay(zone)


@pytest.mark.rule("2.15", "L10")
@pytest.mark.parametrize("marker", [1, 2, 4])
def test_a_table_without_keys_takes_inserts_only(zone: LandingZone, marker: int) -> None:
    feeder = Feeder(zone.table("orders"), keys=())
    feeder.marked((0, 1, "a"), (marker, 1, "b"))
    with pytest.raises(ApplyError, match="without key columns") as caught:
        replay(zone)
    assert (caught.value.row, caught.value.value) == (1, marker)


def test_a_table_without_keys_keeps_every_row(zone: LandingZone) -> None:
    feeder = Feeder(zone.table("orders"), keys=())
    feeder.marked((0, 1, "a"), (0, 1, "a"))
    assert rows_of(zone) == [(1, "a"), (1, "a")]


@pytest.mark.rule("7.1", "7.2", "L56", "L57", "L59")
def test_a_column_that_came_is_null_in_the_rows_before_and_one_that_went_in_those_behind(
    zone: LandingZone, orders: Feeder
) -> None:
    orders.unmarked((1, "a"), (2, "b"))
    orders.columns = declared_columns({"w": "decimal(9,2)", "id": "int64"})
    orders.marked((4, Decimal("0.50"), 2), (0, None, 3))
    assert replay(zone)["orders"].schema == declared_columns({"id": "int64", "v": "string", "w": "decimal(9,2)"})
    assert rows_of(zone) == [(1, "a", None), (2, None, Decimal("0.50")), (3, None, None)]


STANDING = {"id": "int64", "n": "int32 not null", "d": "date"}


@pytest.mark.rule("7.3", "7.4", "7.5", "L61")
@pytest.mark.parametrize(
    ("columns", "rule", "column"),
    [
        ({"id": "int64", "d": "date"}, "7.3", "n"),
        ({**STANDING, "w": "int8 not null"}, "7.3", "w"),
        ({**STANDING, "n": "int64 not null"}, "7.4", "n"),
        ({**STANDING, "d": "timestamp"}, "7.4", "d"),
        ({**STANDING, "n": "int32"}, "7.4", "n"),
        ({**STANDING, "d": "date not null"}, "7.4", "d"),
        ({"id": "int64", "n": "int32 not null", "D": "date"}, "7.5", "D"),
    ],
)
def test_a_change_of_columns_that_the_mirror_does_not_follow_is_an_error(
    zone: LandingZone, columns: dict[str, str], rule: str, column: str
) -> None:
    orders = Feeder(zone.table("orders"), declared_columns(STANDING))
    orders.unmarked((1, 2, None))
    orders.columns = declared_columns(columns)
    orders.unmarked()
    with pytest.raises(ApplyError, match=rf"{column!r}.*\(rule {rule}\).*publish|keep") as caught:
        replay(zone)
    assert caught.value.column == column
    assert caught.value.file == f"orders/{data_file(2)}"


def test_a_column_that_stands_twice_in_a_file_is_an_error(zone: LandingZone) -> None:
    orders = Feeder(zone.table("orders"), pa.schema([("id", pa.int64()), ("Id", pa.int64())]))
    orders.unmarked((1, 2))
    with pytest.raises(ApplyError, match="'id' stands twice"):
        replay(zone)


@pytest.mark.rule("4.9", "6.1")
@pytest.mark.parametrize("name", ["__rowmarker__", "_metadata", "__om_act"])
def test_a_column_name_that_the_mirror_stops_at_is_an_error(zone: LandingZone, orders: Feeder, name: str) -> None:
    orders.foreign(1, pa.table({"id": [1], name: pa.array([4], pa.int32())}))
    with pytest.raises(ApplyError, match="cannot be mirrored.*rename it") as caught:
        replay(zone)
    assert (caught.value.file, caught.value.column) == (f"orders/{data_file(1)}", name)


def test_columns_keep_the_order_of_the_first_file(zone: LandingZone, orders: Feeder) -> None:
    orders.unmarked((1, "a"))
    orders.columns = declared_columns({"v": "string", "id": "int64"})
    orders.unmarked(("b", 2))
    assert rows_of(zone) == [(1, "a"), (2, "b")]


def test_representations_of_the_same_values_are_one_type(zone: LandingZone, orders: Feeder) -> None:
    orders.unmarked((1, "a"))
    orders.foreign(2, pa.table({"id": [2], "v": pa.array(["b"], pa.large_string()).dictionary_encode()}))
    assert rows_of(zone) == [(1, "a"), (2, "b")]
    assert replay(zone)["orders"].schema == COLUMNS


@pytest.mark.rule("4.9", "L55")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([1], pa.timestamp("ns")), "nanoseconds, which Spark cannot read"),
        (pa.array([1.5], pa.float16()), "16-bit floats, which Spark cannot read"),
        (pa.array([b"x" * 16], pa.uuid()), "declare it as 'uuid'"),
        (pa.array([[1]]), "cannot be mirrored"),
    ],
)
def test_a_type_that_cannot_be_mirrored_is_an_error(
    zone: LandingZone, orders: Feeder, values: pa.Array[Any], message: str
) -> None:
    orders.foreign(1, pa.table({"id": values}))
    with pytest.raises(SchemaRefusedError, match=message) as caught:
        replay(zone)
    assert f"orders/{data_file(1)}" in str(caught.value)


@pytest.mark.rule("2.1", "6.2")
def test_a_key_column_that_no_file_has_is_an_error(zone: LandingZone) -> None:
    Feeder(zone.table("orders"), keys=("nr",)).unmarked((1, "a"))
    with pytest.raises(ApplyError, match="the key column 'nr' is not in this file"):
        replay(zone)


@pytest.mark.rule("4.1", "4.8")
def test_a_file_that_is_no_parquet_is_an_error(zone: LandingZone, orders: Feeder) -> None:
    orders.put(data_file(1), b"")
    with pytest.raises(UnknownPositionError, match="no readable Parquet"):
        replay(zone)


# ------------------------------------------------------------------------------------------------ at work


def test_a_file_that_is_moved_while_it_is_read_is_found_again(
    zone: LandingZone, orders: Feeder, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.marked((0, 1, "a"))
    orders.marked((0, 2, "b"))
    read: Callable[..., Any] = zone.storage.read
    moved: list[int] = []

    def moving(path: str, start: int = 0, end: int | None = None) -> Any:
        if path.endswith(data_file(1)) and not moved:
            moved.append(1)
            orders.move(1)
        return read(path, start, end)

    monkeypatch.setattr(zone.storage, "read", moving)
    assert rows_of(zone) == [(1, "a"), (2, "b")]
    assert moved


# ------------------------------------------------------------------------------------------------ trace


def test_trace_lists_every_landing_row_of_a_key(orders: Feeder) -> None:
    orders.unmarked((1, "a"), (2, "b"))
    orders.marked((1, 2, "x"), (1, 1, "c"), (2, 1, None))
    orders.marked((0, 1, "stale"), generation=new_id())
    orders.move(1)
    rows = traced(orders, {"id": 1})
    found = [(row.number, row.row, row.marker, row.values["v"], row.state, row.moved) for row in rows]
    assert found == [
        (1, 0, None, "a", "applied", True),
        (2, 1, 1, "c", "applied", False),
        (2, 2, 2, None, "applied", False),
        (3, 0, 0, "stale", "stale", False),
    ]
    assert rows[0].file == f"orders/{PROCESSED}/{data_file(1)}"


def test_trace_shows_what_waits_above_a_fork(orders: Feeder) -> None:
    orders.marked((0, 1, "a"))
    orders.marked((1, 1, "b"), previous=new_id())
    assert [row.state for row in traced(orders, {"id": 1})] == ["applied", "waiting"]


def test_a_folder_without_metadata_has_no_landing_files(orders: Feeder) -> None:
    orders.marked((0, 1, "a"))
    orders.delete(METADATA)
    assert landing_files(orders.table) is None


def test_landing_rows_are_plain_data(orders: Feeder) -> None:
    orders.marked((0, 1, "a"))
    assert json.dumps([dataclasses.asdict(row) for row in traced(orders, {"v": "a"})])
