"""A zone that breaks no rule gives no finding, whoever published it and however far it was processed."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from openmirror_writer import DelimitedText, LandingZone, PartnerEvents, Roll, SourceInfo, Writer, check, drop_table
from openmirror_writer.cli.demo_feed import TABLE, feed
from openmirror_writer.cli.demo_source import Flights
from openmirror_writer.cli.flights_data import flights_path
from openmirror_writer.formats import sha256_of
from openmirror_writer.layout import PROCESSED, READY_TO_DELETE, claim_file, data_file
from openmirror_writer.schema import ROW_MARKER
from openmirror_writer.spark import Mirror
from tests.check.landing import ForeignZone, Landing, OurText, OurZone, csv, parquet, rows
from tests.check.planted import at, leftover, sidecar, text


def test_a_zone_without_tables_is_clean() -> None:
    assert check(Landing().zone) == []


def test_our_files_are_clean() -> None:
    assert check(OurZone().zone) == []


@pytest.mark.rule("4.3", "L38")
@pytest.mark.parametrize("processed", [1, 2, 3])
def test_a_zone_that_the_service_has_processed_in_part_is_clean(processed: int) -> None:
    zone = OurZone()
    for number in range(1, processed + 1):
        zone.process(number)
    assert check(zone.zone) == []


@pytest.mark.rule("4.4", "L63")
def test_moved_files_may_be_deleted_after_seven_days() -> None:
    """And whatever was deleted, the last file tells that it may have been."""
    zone = OurZone()
    for number in (1, 2, 3):
        zone.delete(at(number))
    later = datetime.now(UTC) + timedelta(days=7, seconds=1)
    assert check(zone.zone, now=later) == []
    assert [found.rule for found in check(zone.zone)] == ["4.2"]


def test_the_lower_ones_of_the_moved_files_may_be_gone() -> None:
    zone = OurZone()
    for number in (1, 2, 3):
        zone.process(number)
    zone.delete(f"orders/{PROCESSED}/{data_file(1)}")
    assert check(zone.zone) == []


def test_a_file_that_a_killed_mover_left_twice_is_clean() -> None:
    ours, foreign = OurZone(), ForeignZone()
    for zone in (ours, foreign):
        zone.put(f"orders/{READY_TO_DELETE}/{data_file(1)}", zone.get(at(1)))
        assert check(zone.zone) == []


def test_advances_and_claims_are_clean_also_where_their_files_are_gone() -> None:
    zone = OurZone()
    writer = Writer(zone.table)
    writer.advance(7)
    writer.flush()
    zone.put(f"orders/_{2:020d}.advance-0.json", "of a file that was moved")
    zone.put(f"orders/{claim_file(1, 'abc')}", {"last": 3})
    assert check(zone.zone) == []


def test_a_table_that_was_dropped_and_made_again_is_clean() -> None:
    zone = OurZone()
    drop_table(zone.table)
    Writer(zone.table).upsert([{"id": 1, "v": "a"}])
    assert check(zone.zone) == []


@pytest.mark.rule("2.1", "2.15", "L10")
def test_a_table_without_keys_is_clean() -> None:
    zone = Landing()
    writer = Writer(zone.zone.table("log", key_columns=[], columns={"line": "string"}))
    writer.insert([{"line": "a"}], position=1)
    assert check(zone.zone) == []


def test_our_files_behind_those_of_another_publisher_are_clean() -> None:
    zone = ForeignZone()
    table = zone.zone.table("orders", key_columns=["id"])
    Writer(table, start_at=1).upsert([{"id": 1, "v": "a"}], position=2)
    assert check(zone.zone) == []


@pytest.mark.rule("record.9")
def test_a_create_under_way_is_clean() -> None:
    zone = OurZone()
    leftover(zone, f"orders/_{5:020d}.{'0' * 32}.staged", 0.5)
    assert check(zone.zone) == []


@pytest.mark.rule("1.2", "3.1", "L14", "L16")
def test_partner_events_and_schema_folders_are_clean() -> None:
    partner = PartnerEvents(
        partner_name="testPartner", source_info=SourceInfo(source_type="SQL", source_version="2019")
    )
    zone = LandingZone(Landing().storage, partner=partner)
    for schema in ("Schema1", "Schema2"):
        for name in ("TableA", "TableB"):
            Writer(zone.table(name, schema_name=schema, key_columns=["C1"])).upsert([{"C1": 1}])
    assert check(zone) == []


@pytest.mark.rule("7.1", "7.2", "L56", "L57", "L59")
def test_columns_may_be_added_and_left_out_as_long_as_they_are_nullable() -> None:
    zone = ForeignZone()
    zone.rows(2, rows({"x": pa.array([1.5, 2.5])}))
    zone.rows(3, rows({"v": None, "x": pa.array([1.5, 2.5])}))
    zone.rows(4, rows())
    assert check(zone.zone) == []


def test_types_that_spark_reads_as_one_are_no_change() -> None:
    zone = ForeignZone(files=0)
    zone.rows(1, rows({"v": pa.array(["a", "b"], pa.large_string()), "n": pa.array([1, 2], pa.uint8())}))
    zone.rows(2, rows({"v": pa.array(["a", "b"]).dictionary_encode(), "n": pa.array([1, 2], pa.int16())}))
    assert check(zone.zone) == []


def test_what_arrow_notes_beside_parquet_does_not_count() -> None:
    """Spark reads the Parquet types: an interval is a number, JSON is text, and INT96 is how it writes an instant."""
    zone = ForeignZone(files=0)
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", "[]"]))
    zone.rows(1, rows({"d": pa.array([1, 2], pa.duration("us")), "v": json}))
    zone.rows(2, rows({"d": pa.array([1, 2])}))
    zone.put("items/_metadata.json", {"keyColumns": ["id"]})
    at_ns = pa.array([0, 1000], pa.timestamp("ns"))
    zone.put(f"items/{data_file(1)}", parquet(rows({"at": at_ns}), use_deprecated_int96_timestamps=True))
    assert check(zone.zone) == []


@pytest.mark.rule("2.3", "2.9", "6.5")
def test_rows_without_markers_may_come_between_others_where_they_are_upserts() -> None:
    zone = ForeignZone({"KEYCOLUMNS": ["id"], "isUpsertDefaultRowMarker": True})
    zone.rows(2, rows(markers=None))
    assert check(zone.zone) == []


@pytest.mark.rule("4.8")
def test_a_file_of_zero_rows_is_clean() -> None:
    zone = ForeignZone()
    zone.rows(4, rows().slice(0, 0))
    zone.rows(5, rows(markers=None).slice(0, 0))
    assert check(zone.zone) == []


@pytest.mark.rule("6.1", "L34")
@pytest.mark.parametrize("markers", [[0, 1], [1, 2], [2, 4], [4, 4], [0, 4]])
def test_legal_markers_are_clean_whatever_the_statistics_tell(markers: list[int]) -> None:
    zone = ForeignZone()
    zone.rows(4, rows(markers=markers), write_statistics=False)
    zone.rows(5, rows(markers=markers))
    assert check(zone.zone) == []


@pytest.mark.rule("2.2", "4.7")
def test_files_that_are_ordered_by_time_have_any_name() -> None:
    zone = ForeignZone({"keyColumns": ["id"], "fileDetectionStrategy": "LastUpdateTimeFileDetection"}, files=0)
    for hours, name in enumerate(("b.parquet", "a.parquet", data_file(7))):
        zone.put(f"orders/{name}", parquet(rows()))
        zone.age(f"orders/{name}", timedelta(hours=hours))
    assert check(zone.zone) == []


@pytest.mark.rule("2.4", "L30")
def test_the_documented_text_table_is_clean() -> None:
    columns = [
        {"Name": "id", "DataType": "Int32"},
        {"Name": "name", "DataType": "String", "IsNullable": True},
        {"Name": "age", "DataType": "Int32", "IsNullable": True},
        {"Name": "seqNum", "DataType": "Int64", "IsNullable": False},
    ]
    options = {
        "FirstRowAsHeader": True,
        "RowSeparator": "\r\n",
        "ColumnSeparator": ",",
        "QuoteCharacter": "'",
        "EscapeCharacter": "\\",
        "NullValue": "N/A",
        "Encoding": "UTF-8",
    }
    header = f"id,name,age,seqNum,{ROW_MARKER}"
    table = text(
        csv("1,'it\\'s, \"',N/A,7,0", "2,N/A,3,8,2", header=header),
        gzip.compress(csv("3,'N/A',3,8,4", header=header)),
        keyColumns=None,
        KeyColumns=["id"],
        ConditionalUpdateColumn="seqNum",
        SchemaDefinition={"Columns": columns},
        FileFormatTypeProperties=options,
    )
    assert check(table().zone) == []


@pytest.mark.rule("2.6", "2.7", "L20", "L28", "L29")
def test_csv_needs_neither_format_nor_extension() -> None:
    assert check(text(extension="csv", FileFormat=None, FileExtension=None)().zone) == []


@pytest.mark.parametrize("text_format", [DelimitedText(), DelimitedText(quote="", escape="", encoding="utf-16")])
def test_our_text_files_are_clean_however_far_they_were_processed(text_format: DelimitedText) -> None:
    landing = Landing()
    columns = {"id": "int64 not null", "at": "timestamp", "data": "binary", "v": "string"}
    table = landing.zone.table("orders", key_columns=["id"], columns=columns, format=text_format)
    row = {"id": 1, "at": datetime(2024, 2, 29, tzinfo=UTC), "data": b"\x00", "v": "a"}
    with Writer(table, roll=Roll(rows=1)) as writer:
        writer.initial_load([row, {**row, "id": 2, "v": None}], position=1)
        writer.upsert([{**row, "v": "b"}], position=2)
        writer.advance(7)
    assert check(landing.zone) == []
    for number in (1, 2):
        name = data_file(number, "csv")
        landing.move(f"orders/{name}", f"orders/{PROCESSED}/{name}")
    assert check(landing.zone) == []


def test_text_of_our_writer_that_a_mover_left_twice_is_clean() -> None:
    zone = OurText()
    zone.put(f"orders/{READY_TO_DELETE}/{data_file(1, 'csv')}", zone.get(at(1, "csv")))
    assert check(zone.zone) == []


def test_the_same_rows_from_two_writers_are_clean() -> None:
    """Two records stand beside the file, and either is true."""
    zone = OurText()
    zone.publish(5, 4, previous=sha256_of(zone.get(at(4, "csv"))))
    zone.publish(5, 4, previous=sha256_of(zone.get(at(4, "csv"))))
    assert check(zone.zone) == []


def test_rows_that_were_published_twice_are_clean() -> None:
    """Two files of one content, each with a record of its own."""
    zone = OurText()
    for position in (5, 6):
        Writer(zone.table).upsert([{"id": 1, "v": "a"}], position=position)
    assert zone.get(at(5, "csv")) == zone.get(at(6, "csv"))
    assert check(zone.zone) == []


@pytest.mark.parametrize(("number", "hours"), [(1, 0.9), (2, 2), (4, 2), (5, 2)])
def test_the_record_of_a_file_that_may_come_or_be_needed_is_clean(number: int, hours: float) -> None:
    """Just sent; of a number that a moved file has, that the last one has, or that is the next."""
    zone = OurText()
    zone.process(1)
    zone.process(2)
    zone.delete(f"orders/{PROCESSED}/{data_file(1, 'csv')}")
    leftover(zone, sidecar(number, b"of another writer"), hours)
    assert check(zone.zone) == []


def test_the_zone_of_the_demo_breaks_nothing_but_the_advice_about_keys(tmp_path) -> None:
    """Its flights have a key of six columns."""
    zone = LandingZone(tmp_path)
    feed(zone, Flights(flights_path(), 1))
    assert len(zone.storage.names(TABLE).files) > 5
    assert [(found.rule, found.severity, found.message) for found in check(zone)] == [
        ("2.1", "warning", "there are 6 key columns; fewer than 5 are advised")
    ]


def test_a_zone_that_our_mirror_is_working_on_is_clean(spark, tmp_path) -> None:
    """One batch applied and moved away, files of the next one behind it."""
    zone = LandingZone(tmp_path / "zone")
    writer = Writer(zone.table("orders", key_columns=["id"], columns={"id": "int64"}))
    for n in (1, 2):
        writer.upsert([{"id": n}], position=n)
    Mirror(spark, zone, tmp_path / "target").run_once().raise_for_failures()
    writer.upsert([{"id": 3}], position=3)
    assert zone.storage.names(f"orders/{PROCESSED}").files
    assert check(zone) == []
