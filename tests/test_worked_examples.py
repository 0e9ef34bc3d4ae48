"""The worked examples of the documentation, from the writer, or as they stand there, to `replay` and `check`."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from openmirror_writer import ChangeBatch, LandingTable, LandingZone, SchemaRefusedError, Writer, check, replay
from openmirror_writer.formats import read_rows
from openmirror_writer.layout import METADATA, PARTNER_EVENTS, data_file
from openmirror_writer.schema import declared_columns
from tests import worked_examples as examples


@pytest.fixture
def zone() -> LandingZone:
    return LandingZone(f"memory://{uuid4().hex}")


def rows_of(zone: LandingZone, label: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in replay(zone)[label].to_pylist()), key=repr)


def data(table: LandingTable, name: str) -> bytes:
    content = table.zone.storage.read(table.path(name))
    assert content is not None, name
    return content.data


def shown(table: LandingTable, number: int) -> str:
    """The rows of a Parquet file, as the documents show them."""
    content = table.zone.storage.read(table.path(data_file(number)))
    assert content is not None
    rows = read_rows(content, "")
    lines = [rows.column_names, *([("NULL" if v is None else v) for v in row.values()] for row in rows.to_pylist())]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)


@pytest.mark.rule("2.1", "L8", "L9")
def test_a_composite_key_stands_in_the_metadata_and_both_columns_tell_rows_apart(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["C1", "C2"])
    writer = Writer(table)
    writer.upsert([{"C1": 1, "C2": "a", "v": "x"}, {"C1": 1, "C2": "b", "v": "y"}], position=1)
    writer.update([{"C1": 1, "C2": "b", "v": "z"}], position=2)
    assert json.loads(data(table, METADATA)) == json.loads(examples.COMPOSITE_KEY)
    assert rows_of(zone, "orders") == [(1, "a", "x"), (1, "b", "z")]
    assert check(zone) == []


@pytest.mark.rule("3.1", "L14", "L15", "L16", "L17", "L18", on=("producer", "check"))
def test_the_partner_events_stand_at_the_root_as_documented() -> None:
    zone = LandingZone(f"memory://{uuid4().hex}", partner=examples.partner())
    Writer(zone.table("orders", schema_name="sales", key_columns=["id"])).upsert([{"id": 1}])
    content = zone.storage.read("_partnerEvents.json")
    assert content is not None
    assert json.loads(content.data) == examples.PARTNER
    assert PARTNER_EVENTS not in zone.storage.names("sales.schema/orders").files
    assert check(zone) == []


@pytest.mark.rule("4.2", "L37")
def test_files_are_numbered_with_20_digits_from_1_on(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"])
    writer = Writer(table)
    for number in (1, 2):
        writer.upsert([{"id": 1, "v": number}], position=number)
    names = zone.storage.names(table.folder).files
    assert tuple(sorted(name for name in names if not name.startswith("_"))) == examples.FIRST_FILES
    assert rows_of(zone, "orders") == [(1, 2)]
    assert check(zone) == []


@pytest.mark.rule("6.1", "L34")
def test_each_marker_meets_a_key_that_is_there_and_one_that_is_not(zone: LandingZone) -> None:
    examples.publish_markers(zone)
    assert rows_of(zone, "markers") == examples.markers_expected()
    assert check(zone) == []


@pytest.mark.rule("6.4", "L36", "L41", "L43", "L44")
def test_a_moved_employee_is_updated_by_a_later_row_of_the_file(zone: LandingZone) -> None:
    table = examples.publish_employees(zone, "moved")
    documented, expected = examples.EMPLOYEES["moved"]
    assert shown(table, 1) == documented
    assert rows_of(zone, "moved") == expected
    assert check(zone) == []


@pytest.mark.rule("6.3", "L45", "L46", "L47")
def test_a_changed_key_is_a_delete_with_its_key_only_and_an_insert(zone: LandingZone) -> None:
    table = examples.publish_employees(zone, "changed")
    documented, expected = examples.EMPLOYEES["changed"]
    assert shown(table, 1) == documented
    assert rows_of(zone, "changed") == expected
    assert check(zone) == []


@pytest.mark.rule("1.2", "L53", "L54")
def test_tables_stand_in_as_many_schema_folders_as_one_likes(zone: LandingZone) -> None:
    for folder in examples.SCHEMA_FOLDERS:
        table = examples.publish_in_schema(zone, folder)
        assert table.folder == folder
        assert data(table, examples.FIRST_FILES[0])
    assert {label: rows.to_pylist() for label, rows in replay(zone).items()} == {
        folder.replace(".schema/", "."): [{"C1": folder}] for folder in examples.SCHEMA_FOLDERS
    }
    assert check(zone) == []


@pytest.mark.rule("1.1", "L6")
def test_each_table_has_a_folder_of_its_name_at_the_root(zone: LandingZone) -> None:
    for name in ("TableA", "TableB", "TableC"):
        Writer(zone.table(name, key_columns=["C1"])).upsert([{"C1": name}])
    assert zone.storage.names("").folders == {"TableA", "TableB", "TableC"}
    assert {label: rows.to_pylist() for label, rows in replay(zone).items()} == {
        name: [{"C1": name}] for name in ("TableA", "TableB", "TableC")
    }
    assert check(zone) == []


@pytest.mark.rule("4.1", "L3", "L4", on=("mirror", "check"))
def test_files_of_each_documented_compression_are_read(zone: LandingZone) -> None:
    examples.put_codecs(zone)
    assert rows_of(zone, "codecs") == sorted((codec,) for codec in examples.CODECS)
    assert check(zone) == []


# ------------------------------------------------------------------------------------------------------ delimited text


@pytest.mark.rule(
    "2.5", "2.6", "2.7", "2.8", "2.9", "5.2", "L19", "L20", "L27", "L28", "L29", "L30", "L31", on="producer"
)
def test_the_writer_writes_the_documented_tsv_by_the_metadata_that_stand(zone: LandingZone) -> None:
    table = zone.table("people", columns=examples.TSV_COLUMNS, format=examples.TSV_FORMAT)
    assert zone.storage.create(table.path(METADATA), examples.TSV_METADATA.encode()) is not None
    batch = pa.RecordBatch.from_pylist(
        [
            {"id": 1, "name": "Smith, John", "age": 40, "seqNum": 1},
            {"id": 2, "name": "O'Neill", "age": None, "seqNum": 2},
            {"id": 3, "name": "N/A", "age": 41, "seqNum": 3},
            {"id": 1, "name": None, "age": 42, "seqNum": 4},
        ],
        declared_columns(examples.TSV_COLUMNS),
    )
    Writer(table).write(ChangeBatch(batch, pa.array([0, 0, 0, 4], pa.int32())), position=1)
    assert data(table, data_file(1, "tsv")).decode() == examples.TSV_FILE
    assert data(table, METADATA).decode() == examples.TSV_METADATA
    assert rows_of(zone, "people") == examples.TSV_ROWS


@pytest.mark.rule(
    "2.5", "2.6", "2.7", "2.8", "2.9", "5.2", "L19", "L20", "L27", "L28", "L29", "L30", "L31", on=("mirror", "check")
)
def test_the_documented_tsv_is_read_by_its_metadata(zone: LandingZone) -> None:
    examples.put_tsv(zone)
    assert rows_of(zone, "people") == examples.TSV_ROWS
    assert check(zone) == []


@pytest.mark.rule("L30", on="producer")
def test_a_writer_goes_on_behind_the_documented_tsv(zone: LandingZone) -> None:
    table = examples.put_tsv(zone)
    Writer(table, start_at=0).upsert([{"id": 3, "name": None, "age": None, "seqNum": 5}], position=1)
    assert data(table, data_file(2, "tsv")) == b"id,name,age,seqNum,__rowMarker__\r\n3,N/A,N/A,5,4\r\n"
    assert rows_of(zone, "people") == [*examples.TSV_ROWS[:2], (3, None, None, 5)]


@pytest.mark.rule("2.10", "L30")
def test_the_tsv_metadata_as_printed_are_refused_with_both_lines_and_how_to_mend_them(zone: LandingZone) -> None:
    table = examples.put_tsv(zone, examples.TSV_AS_PRINTED)
    mended = r'in line 2 indent with plain spaces.*; in line 8 write "EscapeCharacter": "\\\\"'
    with pytest.raises(SchemaRefusedError, match=mended):
        Writer(table)
    with pytest.raises(SchemaRefusedError, match=mended):
        replay(zone)
    found = sorted(check(zone), key=lambda finding: finding.line or 0)
    assert [(finding.rule, finding.file, finding.line) for finding in found] == [
        ("2.10", table.path(METADATA), 2),
        ("2.10", table.path(METADATA), 8),
    ]
    assert "plain spaces" in found[0].remedy
    assert r'"\\"' in found[1].remedy


@pytest.mark.rule("5.9", "5.11", "5.12", "L12", "L13", on=("mirror", "check"))
def test_each_documented_data_type_is_read(zone: LandingZone) -> None:
    examples.put_data_types(zone)
    assert rows_of(zone, "types") == [tuple(value for _, value in examples.DATA_TYPES.values())]
    assert check(zone) == []
