"""Opening a table: what its folder says about where to go on."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openmirror_writer.errors import SchemaRefusedError, StorageError, TableGoneError, UnknownPositionError
from openmirror_writer.formats import Parquet
from openmirror_writer.layout import DROPPING, GENERATION, METADATA, PROCESSED, READY_TO_DELETE, advance_file, data_file
from openmirror_writer.metadata import Generation, TableMetadata
from openmirror_writer.record import FOOTER_KEY, FOREIGN, Pending, Record
from openmirror_writer.schema import declared_columns, declared_type
from openmirror_writer.storage import ReadFile, Request, answer_to, perform
from openmirror_writer.writer.cut import Skip
from openmirror_writer.writer.drift import FileColumns
from openmirror_writer.writer.resume import Resumed, open_table, skip_of
from openmirror_writer.zone import LandingTable, LandingZone

COLUMNS = declared_columns({"id": "int64", "v": "string"})


def opened(table: LandingTable, start_at: Any = None) -> Resumed:
    return perform(table.zone.storage, open_table(table, start_at, lambda: 42.0))


def put(table: LandingTable, name: str, data: bytes) -> None:
    assert table.zone.storage.create(table.path(name), data) is not None


def a_record(number: int = 1, **changes: Any) -> Record:
    fields: dict[str, Any] = {"generation": "g", "previous": None, "batch": f"b{number}", "writer": "w", "by": "test"}
    return Record(number=number, **{**fields, "phase": "following", "position": 7, **changes})


def stand(table: LandingTable, record: Record | None, columns: pa.Schema = COLUMNS, *, number: int = 1) -> None:
    """Let a folder stand with one file."""
    put(table, METADATA, TableMetadata(key_columns=("id",)).to_bytes())
    put(table, GENERATION, Generation(generation="g").to_bytes())
    put_file(table, record, columns, number=number)


def put_file(table: LandingTable, record: Record | None, columns: pa.Schema = COLUMNS, *, number: int = 1) -> None:
    data = foreign(columns) if record is None else Parquet().encode(columns, [], record)
    put(table, data_file(number if record is None else record.number), data)


def foreign(columns: pa.Schema, metadata: dict[bytes, bytes] | None = None) -> bytes:
    sink = io.BytesIO()
    pq.write_table(columns.empty_table().replace_schema_metadata(metadata), sink)
    return sink.getvalue()


# --------------------------------------------------------------------------------------------------------- new tables


def test_an_absent_folder_is_a_new_table(orders: LandingTable) -> None:
    found = opened(orders)
    assert (found.progress.state, found.progress.position, found.last, found.previous) == ("new", None, 0, None)
    assert (found.generation, found.has_metadata, found.skip, found.proof_at) == (None, False, None, 42.0)
    assert found.columns == FileColumns(COLUMNS)


def test_metadata_without_data_and_without_history_is_a_new_table_with_its_keys(zone: LandingZone) -> None:
    table = zone.table("orders")
    put(table, METADATA, TableMetadata(key_columns=("id",)).to_bytes())
    found = opened(table)
    assert (found.progress.state, found.keys, found.has_metadata) == ("new", ("id",), True)


def test_a_generation_without_data_is_adopted(orders: LandingTable) -> None:
    put(orders, GENERATION, Generation(generation="g").to_bytes())
    assert (opened(orders).generation, opened(orders).progress.state) == ("g", "new")


def test_keys_that_differ_from_the_metadata_are_refused(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["v"])
    put(table, METADATA, TableMetadata(key_columns=("id",)).to_bytes())
    with pytest.raises(SchemaRefusedError, match=r"\['v'\] differ from \['id'\].*drop_table") as caught:
        opened(table)
    assert (caught.value.table, caught.value.file) == ("orders", "orders/_metadata.json")


def test_a_new_table_needs_key_columns(zone: LandingZone) -> None:
    with pytest.raises(SchemaRefusedError, match="key_columns= is needed"):
        opened(zone.table("orders"))


@pytest.mark.parametrize(("name", "schema"), [("orders", "SALES"), ("ORDERS", "sales")])
def test_a_new_folder_that_differs_from_another_by_case_only_is_refused(
    zone: LandingZone, name: str, schema: str
) -> None:
    put(zone.table("orders", schema_name="sales"), "x", b"")
    with pytest.raises(SchemaRefusedError, match="by case only; use its spelling"):
        opened(zone.table(name, schema_name=schema, key_columns=["id"]))


# ----------------------------------------------------------------------------------------------------- folders that end


@pytest.mark.parametrize("folder", [PROCESSED, READY_TO_DELETE])
def test_a_history_without_a_data_file_is_a_table_that_is_gone(orders: LandingTable, folder: str) -> None:
    put(orders, f"{folder}/{data_file(3)}", b"")
    put(orders, f"{folder}/{data_file(4)}", b"")
    with pytest.raises(TableGoneError, match="run drop_table") as caught:
        opened(orders)
    assert caught.value.file == f"orders/{folder}/{data_file(4)}"


def test_an_advance_of_this_generation_without_its_data_file_is_a_history(orders: LandingTable) -> None:
    put(orders, GENERATION, Generation(generation="g").to_bytes())
    put(orders, advance_file(3, 0), a_record(3).to_bytes())
    with pytest.raises(TableGoneError, match="run drop_table"):
        opened(orders)


def test_an_advance_from_before_a_drop_is_no_history(orders: LandingTable) -> None:
    put(orders, GENERATION, Generation(generation="new").to_bytes())
    put(orders, advance_file(3, 0), a_record(3, generation="old").to_bytes())
    assert opened(orders).progress.state == "new"


def test_a_folder_that_is_being_dropped_is_refused(orders: LandingTable) -> None:
    stand(orders, a_record())
    put(orders, DROPPING, b"{}")
    with pytest.raises(TableGoneError, match="run drop_table"):
        opened(orders)


# ------------------------------------------------------------------------------------------------------ the last record


def test_the_last_file_tells_where_to_go_on(orders: LandingTable) -> None:
    stand(orders, a_record(1, position=1))
    put_file(orders, a_record(2, previous="b1", phase="loading", position={"0": [7, "a"]}))
    found = opened(orders)
    assert (found.last, found.previous, found.generation, found.keys) == (2, "b2", "g", ("id",))
    assert (found.progress.state, found.progress.position) == ("loading", {"0": [7, "a"]})
    assert (found.columns, found.skip, found.next_advance, found.has_metadata) == (FileColumns(COLUMNS), None, 0, True)


def test_exact_pending_rows_are_to_be_skipped_and_safe_ones_are_not(zone: LandingZone) -> None:
    exact = zone.table("exact", key_columns=["id"])
    stand(exact, a_record(pending={"": Pending(at=9, rows=3, replay="exact", digest="3:ab")}))
    assert opened(exact).skip == Skip(3, 9, "3:ab")
    safe = zone.table("safe", key_columns=["id"])
    stand(safe, a_record(pending={"": Pending(at=9, rows=3, replay="safe")}))
    assert opened(safe).skip is None


def test_exact_pending_rows_without_a_digest_are_refused() -> None:
    with pytest.raises(UnknownPositionError, match="no digest"):
        skip_of(a_record(pending={"": Pending(at=9, rows=3, replay="exact")}))


@pytest.mark.rule("record.3")
def test_a_file_of_another_generation_is_named_with_its_repair(orders: LandingTable) -> None:
    stand(orders, a_record(generation="before the drop"))
    with pytest.raises(UnknownPositionError, match="came late") as caught:
        opened(orders)
    assert caught.value.file == f"orders/{data_file(1)}"


@pytest.mark.rule("record.2")
def test_a_folder_that_lost_its_generation_is_refused(orders: LandingTable) -> None:
    put_file(orders, a_record())
    with pytest.raises(UnknownPositionError, match="_generation.json is gone.*run drop_table"):
        opened(orders)


def test_a_damaged_record_is_refused_even_with_start_at(orders: LandingTable) -> None:
    put(orders, data_file(1), foreign(COLUMNS, {FOOTER_KEY: b"{"}))
    with pytest.raises(UnknownPositionError, match="damaged"):
        opened(orders, start_at=7)


def test_a_record_of_a_newer_version_is_refused(orders: LandingTable) -> None:
    data = a_record().to_bytes().replace(b'"v":1', b'"v":2')
    put(orders, data_file(1), foreign(COLUMNS, {FOOTER_KEY: data}))
    with pytest.raises(UnknownPositionError, match="version 2.*upgrade"):
        opened(orders)


# ------------------------------------------------------------------------------------------------------------ advances


def test_the_newest_advance_behind_the_last_file_counts(orders: LandingTable) -> None:
    stand(orders, a_record())
    for k, position in enumerate((8, 9)):
        put(orders, advance_file(1, k), a_record(previous="b1", batch=f"a{k}", position=position).to_bytes())
    found = opened(orders)
    assert (found.progress.position, found.previous, found.next_advance) == (9, "b1", 2)


@pytest.mark.parametrize("other", [{"previous": "b0"}, {"generation": "other", "previous": "b1"}])
def test_an_advance_that_does_not_name_the_last_file_is_skipped(orders: LandingTable, other: dict[str, Any]) -> None:
    stand(orders, a_record())
    put(orders, advance_file(1, 0), a_record(previous="b1", position=8).to_bytes())
    put(orders, advance_file(1, 1), a_record(**other, position=9).to_bytes())
    found = opened(orders)
    assert (found.progress.position, found.next_advance) == (8, 2)


def test_an_advance_behind_an_earlier_file_is_skipped(orders: LandingTable) -> None:
    stand(orders, a_record(1))
    put(orders, advance_file(1, 0), a_record(1, previous="b1", position=99).to_bytes())
    put_file(orders, a_record(2, previous="b1", position=8))
    assert (opened(orders).progress.position, opened(orders).next_advance) == (8, 0)


def test_the_pending_rows_of_an_advance_count(orders: LandingTable) -> None:
    stand(orders, a_record())
    pending = {"": Pending(rows=1, replay="exact", digest="1:ab")}
    put(orders, advance_file(1, 0), a_record(previous="b1", position=8, pending=pending).to_bytes())
    assert opened(orders).skip == Skip(1, None, "1:ab")


# ------------------------------------------------------------------------------------------------------- foreign files


def test_a_file_of_another_publisher_needs_start_at(orders: LandingTable) -> None:
    stand(orders, None, number=4)
    with pytest.raises(UnknownPositionError, match="give Writer\\(table, start_at=position\\)") as caught:
        opened(orders)
    assert caught.value.file == f"orders/{data_file(4)}"
    found = opened(orders, start_at=12)
    assert (found.last, found.previous) == (4, FOREIGN)
    assert (found.progress.state, found.progress.position, found.columns) == ("following", 12, FileColumns(COLUMNS))


def test_start_at_is_not_looked_at_where_the_folder_tells(orders: LandingTable) -> None:
    stand(orders, a_record(position=7))
    assert opened(orders, start_at=12).progress.position == 7


def test_columns_of_another_publisher_are_taken_in_our_types(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"])
    stand(
        table,
        None,
        pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("at", pa.timestamp("ms", "+02:00"))]),
    )
    columns = declared_columns({"id": "int64 not null", "at": pa.timestamp("ms", "UTC")})
    assert opened(table, start_at=1).columns == FileColumns(columns)


def test_columns_of_another_publisher_that_spark_cannot_read_are_refused(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"])
    stand(table, None, pa.schema([pa.field("id", pa.int64()), pa.field("at", pa.timestamp("ns"))]))
    with pytest.raises(SchemaRefusedError, match="nanoseconds, which Spark cannot read") as caught:
        opened(table, start_at=1)
    assert (caught.value.table, caught.value.column) == ("orders", "at")


@pytest.mark.parametrize("form", ["json", "uuid", "time"])
def test_a_file_that_says_string_fits_a_column_that_is_stored_as_text(zone: LandingZone, form: str) -> None:
    table = zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": form})
    stand(table, a_record())
    columns = opened(table).columns
    assert columns is not None
    assert declared_type(columns.schema.field("v")) == form


def test_columns_of_another_publisher_that_cannot_be_mirrored_are_refused(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"])
    stand(table, None, pa.schema([pa.field("id", pa.int64()), pa.field("tags", pa.list_(pa.string()))]))
    with pytest.raises(SchemaRefusedError, match="JSON text") as caught:
        opened(table, start_at=1)
    assert (caught.value.table, caught.value.column) == ("orders", "tags")


def test_what_is_no_parquet_file_is_refused(orders: LandingTable) -> None:
    put(orders, data_file(1), b"no parquet")
    with pytest.raises(UnknownPositionError, match="no readable Parquet"):
        opened(orders, start_at=1)


# ------------------------------------------------------------------------------------------------------------- columns


def test_columns_that_the_mirror_would_stop_at_are_refused_with_the_last_file(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": "binary"})
    stand(table, a_record())
    with pytest.raises(SchemaRefusedError, match=r"'v' is declared as binary and is string .*rule 7.4") as caught:
        opened(table)
    assert (caught.value.table, caught.value.file, caught.value.column) == ("orders", f"orders/{data_file(1)}", "v")


def test_declared_columns_go_on_with_those_of_the_last_file(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"], columns={"w": "int8", "id": "int64"})
    stand(table, a_record())
    columns = declared_columns({"id": "int64", "v": "string", "w": "int8"})
    assert opened(table).columns == FileColumns(columns, frozenset({"v"}))


def test_a_column_that_is_stored_as_text_is_not_taken_for_the_one_that_differs(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"], columns={"id": "json", "v": "json"})
    stand(table, a_record())
    with pytest.raises(SchemaRefusedError, match="'id' is declared as json and is int64"):
        opened(table)


def test_columns_and_keys_left_out_are_as_in_the_folder(zone: LandingZone) -> None:
    columns = declared_columns(
        {"id": "uint8", "v": "decimal(9,2) not null", "at": "timestamp", "ms": pa.timestamp("ms")}
    )
    table = zone.table("orders")
    stand(table, a_record(), columns)
    assert (opened(table).columns, opened(table).keys) == (FileColumns(columns), ("id",))


# ---------------------------------------------------------------------------------------------- a folder that changes


def drive(table: LandingTable, before: Callable[[Request], None]) -> Resumed:
    """Open a table and let something happen before each of its requests."""
    steps = open_table(table, None, lambda: 0.0)
    answer: Any = None
    while True:
        try:
            request = steps.send(answer)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        before(request)
        answer = answer_to(table.zone.storage, request)


def test_a_file_that_the_service_moves_meanwhile_is_looked_for_again(orders: LandingTable) -> None:
    stand(orders, a_record(1))
    happened: list[Request] = []

    def move(request: Request) -> None:
        if isinstance(request, ReadFile) and request.path.endswith(".parquet") and not happened:
            happened.append(request)
            put_file(orders, a_record(2, previous="b1", position=8))
            orders.zone.storage.rename(orders.path(data_file(1)), orders.path(f"{PROCESSED}/{data_file(1)}"))

    found = drive(orders, move)
    assert happened
    assert (found.last, found.progress.position) == (2, 8)


def test_a_file_that_is_another_one_at_every_look_is_an_error_in_the_end(orders: LandingTable) -> None:
    stand(orders, a_record(1))

    def repair(request: Request) -> None:
        if isinstance(request, ReadFile) and request.path.endswith(".parquet"):
            orders.zone.storage.delete(request.path)
            put_file(orders, a_record(1))

    with pytest.raises(StorageError, match="changes at every look"):
        drive(orders, repair)
