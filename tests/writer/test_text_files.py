"""`Writer` on a table of delimited text: the record beside each file, the metadata, restarts, refusals."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmirror_writer import (
    ApplyError,
    ConcurrentWriterError,
    InvalidRowError,
    LandingZone,
    ResumeMismatchError,
    Roll,
    SchemaRefusedError,
    StorageError,
    UnknownPositionError,
    Writer,
    drop_table,
    replay,
)
from openmirror_writer.formats import DelimitedText, sha256_of, sidecar_of
from openmirror_writer.layout import METADATA, PROCESSED, data_file, sort_names
from openmirror_writer.record import Record, parse_record
from openmirror_writer.zone import LandingTable
from tests.formats.dialects import DIALECTS, VALUES
from tests.writer.feeder import Tapped

COLUMNS = {"id": "int64", "v": "string"}
A, B, C = {"id": 1, "v": "a"}, {"id": 2, "v": 'say "b",\r\n'}, {"id": 3, "v": None}


@pytest.fixture
def zone() -> LandingZone:
    return LandingZone(f"memory://{uuid4()}")


@pytest.fixture
def orders(zone: LandingZone) -> LandingTable:
    return zone.table("orders", key_columns=["id"], columns=COLUMNS, format=DelimitedText())


def text(table: LandingTable, number: int) -> bytes:
    content = table.zone.storage.read(table.path(data_file(number, "csv")))
    assert content is not None
    return content.data


def records(table: LandingTable, number: int) -> list[Record]:
    """The records that stand beside one file."""
    names = sort_names(table.zone.storage.names(table.folder).files)
    found = [name for (n, _), some in names.sidecars.items() if n == number for name in some]
    contents = [table.zone.storage.read(table.path(name)) for name in found]
    return [parse_record(content.data, file="") for content in contents if content is not None]


def rows(zone: LandingZone) -> list[dict[str, Any]]:
    return sorted(replay(zone)["orders"].to_pylist(), key=lambda row: row["id"])


def test_each_file_has_a_record_beside_it_and_names_the_one_before_by_its_content(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.upsert([A], position=1)
    writer.delete([{"id": 1}], position=2)
    assert text(orders, 1) == b'id,v,__rowMarker__\r\n1,"a",4\r\n'
    assert text(orders, 2) == b"id,v,__rowMarker__\r\n1,,2\r\n"
    (first,), (second,) = records(orders, 1), records(orders, 2)
    assert (first.number, first.previous, first.position) == (1, None, 1)
    assert (second.number, second.previous, second.position) == (2, sha256_of(text(orders, 1)), 2)


@pytest.mark.rule("2.5", "2.16", "5.2", "L3", "L12", "L20", "L27")
def test_the_metadata_tell_how_to_read_the_files(orders: LandingTable) -> None:
    Writer(orders).upsert([A])
    content = orders.zone.storage.read(orders.path(METADATA))
    assert content is not None
    metadata = json.loads(content.data)
    assert metadata["keyColumns"] == ["id"]
    assert metadata["FileFormat"] == "CSV"
    assert metadata["SchemaDefinition"] == {
        "Columns": [
            {"Name": "id", "DataType": "Int64", "IsNullable": True},
            {"Name": "v", "DataType": "String", "IsNullable": True},
        ]
    }


@pytest.mark.rule("4.8", "6.5", "L40")
def test_a_first_load_has_marker_0_and_one_of_no_rows_publishes_nothing(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.initial_load([], position=1)
    assert (writer.state, writer.position) == ("following", 1)
    assert not orders.zone.storage.names(orders.folder).files
    again = Writer(orders)
    assert again.state == "new"
    again.initial_load([A, C], position=1)
    assert text(orders, 1).endswith(b'1,"a",0\r\n3,,0\r\n')
    assert rows(orders.zone) == [A, C]


def test_a_writer_goes_on_behind_text_files(orders: LandingTable) -> None:
    with Writer(orders, roll=Roll(rows=1)) as writer:
        writer.initial_load([A, B], position=1)
        writer.upsert([C], position=2)
        writer.advance(7)
    again = Writer(orders.zone.table("orders", columns=COLUMNS, format=DelimitedText()))
    assert (again.state, again.position) == ("following", 7)
    again.upsert([{"id": 1, "v": ""}], position=8)
    assert rows(orders.zone) == [{"id": 1, "v": ""}, B, C]


def test_rows_of_a_cut_load_are_compared_and_skipped(orders: LandingTable) -> None:
    def refuse(operation: str, path: str) -> None:
        if operation == "create" and path.endswith(data_file(3, "csv")):
            raise StorageError("forbidden")

    full = LandingZone(Tapped(orders.zone.storage, before=refuse))
    table = full.table("orders", key_columns=["id"], columns=COLUMNS, format=DelimitedText())
    with pytest.raises(StorageError, match="forbidden"):
        Writer(table, roll=Roll(rows=1)).initial_load([A, B, C], position=1)
    with pytest.raises(ResumeMismatchError):
        Writer(orders, roll=Roll(rows=1)).initial_load([B, B, C], position=1)
    Writer(orders, roll=Roll(rows=1)).initial_load([A, B, C], position=1)
    assert rows(orders.zone) == [A, B, C]


@pytest.mark.rule("4.3", "4.4")
def test_files_that_the_service_moved_keep_their_records(orders: LandingTable) -> None:
    writer = Writer(orders)
    for position, row in enumerate((A, B, C)):
        writer.upsert([row], position=position)
    for number in (1, 2):
        name = data_file(number, "csv")
        orders.zone.storage.rename(orders.path(name), orders.path(f"{PROCESSED}/{name}"))
    assert rows(orders.zone) == [A, B, C]
    assert Writer(orders).position == 2


@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_a_lost_answer_is_no_harm(orders: LandingTable, ending: str) -> None:
    """The create was carried out and its answer did not come: of the file, or of the record beside it."""
    lost: list[str] = []

    def lose(operation: str, path: str) -> None:
        name = path.rpartition("/")[2]
        if operation == "create" and name.endswith(ending) and "0000" in name and not lost:
            lost.append(name)
            raise StorageError("no answer", retryable=True)

    zone = LandingZone(Tapped(orders.zone.storage, after=lose))
    Writer(zone.table("orders", key_columns=["id"], columns=COLUMNS, format=DelimitedText())).upsert([A], position=1)
    assert len(lost) == 1
    assert rows(orders.zone) == [A]
    assert len(records(orders, 1)) == 1
    assert Writer(orders).position == 1


def test_the_same_rows_of_two_writers_are_not_taken_for_ones_own(orders: LandingTable) -> None:
    """Both write the same bytes under one number: whose file stands there, nobody can tell."""
    Writer(orders).upsert([A], position=1)
    slow = Writer(orders)
    Writer(orders).upsert([B], position=2)
    with pytest.raises(ConcurrentWriterError):
        slow.upsert([B], position=2)
    assert len(records(orders, 2)) == 2
    assert rows(orders.zone) == [A, B]
    assert Writer(orders).position == 2


@pytest.mark.parametrize("batch", ["0", "f"])
def test_of_two_records_of_one_file_the_furthest_counts(orders: LandingTable, batch: str) -> None:
    """Both are true, and the writer that made the file may have called its position durable."""
    Writer(orders).upsert([A], position=4)
    (record,) = records(orders, 1)
    other = record.model_copy(update={"batch": batch + record.batch[1:], "position": 3})
    name, data = sidecar_of(other, sha256_of(text(orders, 1)))
    orders.zone.storage.create(orders.path(name), data)
    assert Writer(orders).position == 4


def test_records_that_name_different_files_before_are_not_chosen_from(orders: LandingTable) -> None:
    """A writer that was paused over several files has published the same text under the same number."""
    Writer(orders).upsert([A], position=1)
    Writer(orders).upsert([B], position=2)
    (record,) = records(orders, 2)
    late = record.model_copy(update={"batch": str(uuid4()), "previous": "0" * 64, "position": 3})
    name, data = sidecar_of(late, sha256_of(text(orders, 2)))
    orders.zone.storage.create(orders.path(name), data)
    for look in (lambda: Writer(orders), lambda: replay(orders.zone)):
        with pytest.raises(UnknownPositionError, match="different files before it.*drop_table") as caught:
            look()
        assert caught.value.file is not None
    drop_table(orders)
    Writer(orders).upsert([A], position=1)
    assert rows(orders.zone) == [A]


def test_text_without_its_record_is_not_taken_for_the_next_file(orders: LandingTable) -> None:
    """It was on its way when the table was dropped, and comes into the next life of the folder."""
    Writer(orders).upsert([A], position=1)
    late = data_file(2, "csv")
    orders.zone.storage.create(orders.path(late), text(orders, 1))
    with pytest.raises(ApplyError, match="has no record, and orders/.*1.csv has one: it came late"):
        replay(orders.zone)
    with pytest.raises(UnknownPositionError, match="drop_table"):
        Writer(orders)


@pytest.mark.rule("7.7", "L27")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, r"files are DelimitedText\(...\) and format= says Parquet"),
        ({"format": DelimitedText(column_separator=";")}, "option column_separator of the text files is ','"),
        ({"format": DelimitedText(extension="txt")}, "option extension of the text files is 'csv'"),
        ({"format": DelimitedText(), "columns": {"id": "int64", "v": "int32"}}, "rule 7.7.*'v' differs"),
        ({"format": DelimitedText(), "columns": {**COLUMNS, "w": "int32"}}, "rule 7.7.*'w' differs"),
        ({"format": DelimitedText(), "columns": {"v": "string", "id": "int64"}}, "rule 7.7.*their order differs"),
    ],
)
def test_the_format_of_a_table_cannot_change(orders: LandingTable, given: dict[str, Any], words: str) -> None:
    Writer(orders).upsert([A])
    with pytest.raises(SchemaRefusedError, match=words) as caught:
        Writer(orders.zone.table("orders", **given))
    assert caught.value.table == "orders"


def test_a_table_of_parquet_is_not_written_as_text(zone: LandingZone) -> None:
    Writer(zone.table("orders", key_columns=["id"])).upsert([A])
    with pytest.raises(SchemaRefusedError, match=r"files are Parquet\(\) and format= says DelimitedText"):
        Writer(zone.table("orders", format=DelimitedText()))


def test_the_compression_may_change_from_file_to_file(orders: LandingTable) -> None:
    Writer(orders).upsert([A])
    Writer(orders.zone.table("orders", format=DelimitedText(compression="gzip"))).upsert([B])
    assert text(orders, 2)[:2] == b"\x1f\x8b"
    assert rows(orders.zone) == [A, B]


@pytest.mark.rule("5.13", "7.7", "L27")
def test_columns_of_a_table_of_text_do_not_change(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.upsert([A])
    with pytest.raises(SchemaRefusedError, match="rule 7.7"):
        writer.change_columns({**COLUMNS, "w": "int64"})


@pytest.mark.parametrize(
    ("columns", "row", "column"),
    [
        ({"id": "int64", "v": "float64"}, {"id": 7, "v": float("nan")}, "v"),
        ({"id": "int64", "v": "float64"}, {"id": 7, "v": float("inf")}, "v"),
    ],
)
def test_a_value_that_text_cannot_hold_is_refused_before_it_is_buffered(
    zone: LandingZone, columns: dict[str, str], row: dict[str, Any], column: str
) -> None:
    table = zone.table("orders", key_columns=["id"], columns=columns, format=DelimitedText())
    with Writer(table) as writer:
        writer.upsert([{"id": 1, "v": 1.0}], position=1)
        with pytest.raises(InvalidRowError) as caught:
            writer.upsert([{"id": 2, "v": 2.0}, row], position=2)
        assert (caught.value.row, caught.value.column, caught.value.key) == (1, column, {"id": 7})
        assert writer.position == 1
    assert rows(zone) == [{"id": 1, "v": 1.0}]


def test_a_character_that_the_encoding_lacks_is_refused(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"], columns=COLUMNS, format=DelimitedText(encoding="ascii"))
    with pytest.raises(InvalidRowError, match="ascii") as caught:
        Writer(table).upsert([{"id": 1, "v": "é"}])
    assert (caught.value.row, caught.value.column, caught.value.value) == (0, "v", "é")


@pytest.mark.rule("5.10")
def test_columns_that_text_has_no_type_for_are_refused_declared_or_inferred(zone: LandingZone) -> None:
    with pytest.raises(SchemaRefusedError, match="decimal") as caught:
        zone.table("orders", columns={"id": "decimal(9,2)"}, format=DelimitedText())
    assert caught.value.table == "orders"
    open_columns = zone.table("orders", key_columns=["id"], format=DelimitedText())
    with pytest.raises(SchemaRefusedError, match="cannot|declare|Decimal|digits"):
        Writer(open_columns).upsert([{"id": 1, "v": Decimal(1)}])
    assert not zone.storage.names("orders").files


def test_a_writer_killed_before_the_metadata_needs_the_columns_again(orders: LandingTable) -> None:
    Writer(orders).upsert([A], position=1)
    orders.zone.storage.delete(orders.path(METADATA))
    with pytest.raises(SchemaRefusedError, match="give format= and columns="):
        Writer(orders.zone.table("orders", key_columns=["id"], format=DelimitedText()))
    writer = Writer(orders)
    writer.upsert([B], position=2)
    assert rows(orders.zone) == [A, B]


def test_narrow_types_stay_strict_when_the_table_is_opened_again(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"], columns={"id": "uint8"}, format=DelimitedText())
    Writer(table).upsert([{"id": 255}])
    with pytest.raises(InvalidRowError):
        Writer(table).upsert([{"id": 256}])


def test_a_dropped_table_leaves_no_record(orders: LandingTable) -> None:
    Writer(orders).upsert([A])
    drop_table(orders)
    assert not orders.zone.storage.names(orders.folder).files


def test_instants_read_back_as_the_date_and_time_of_utc(zone: LandingZone) -> None:
    columns = {"id": "int64", "v": "timestamp"}
    table = zone.table("orders", key_columns=["id"], columns=columns, format=DelimitedText())
    instant = datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=timezone(timedelta(hours=2)))
    Writer(table).upsert([{"id": 1, "v": instant}])
    assert rows(zone) == [{"id": 1, "v": instant.astimezone(UTC).replace(tzinfo=None)}]


@pytest.mark.rule("5.3", "5.4", "5.5", "5.6", "5.7", "5.8", on=("producer", "mirror"))
@settings(max_examples=40)
@given(DIALECTS, st.lists(VALUES, min_size=1, max_size=6))
def test_what_the_writer_takes_is_replayed_as_it_was_whatever_the_options(
    text: DelimitedText, values: list[str | None]
) -> None:
    zone = LandingZone(f"memory://{uuid4()}")
    taken: list[dict[str, Any]] = []
    try:
        writer = Writer(zone.table("orders", key_columns=["id"], columns=COLUMNS, format=text))
    except SchemaRefusedError:
        return  # a header that these options cannot write
    for number, value in enumerate(values):
        with suppress(InvalidRowError):
            writer.upsert([{"id": number, "v": value}], position=number)
            taken.append({"id": number, "v": value})
    assert (rows(zone) if taken else []) == taken
