"""The mirror on tables of delimited text: the same rows as `replay`, file by file, and what it stops at."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from openmirror_writer import InvalidRowError, LandingZone, SchemaRefusedError, Writer, replay
from openmirror_writer.formats import DelimitedText
from openmirror_writer.layout import data_file
from openmirror_writer.spark import Mirror
from tests.formats.dialects import ENCODINGS, NULLS, SPECIAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "id": "int64",
    "v": "string",
    "d": "date",
    "t": "timestamp_ntz",
    "f": "float64",
    "b": "binary",
    "u": "uint8",
    "yes": "bool",
}
FORMATS = {
    "csv": DelimitedText(),
    "tsv": DelimitedText("\t", "\n", "'", "/", null_value="NULL", encoding="UTF-16", extension="tsv"),
    "bare": DelimitedText("|", "\r", "", "\\", null_value="\\N", encoding="windows-1252", compression="gzip"),
}


def row(number: int, value: str | None) -> dict[str, Any]:
    return {
        "id": number,
        "v": value,
        "d": None if value is None else date(2024, 2, 29),
        "t": datetime(2024, 2, 29, 23, 59, 59, number),  # noqa: DTZ001
        "f": 0.1 * number,
        "b": bytes([number, 255]),
        "u": 255,
        "yes": number % 2 == 0,
    }


def _order(found: dict[str, Any]) -> tuple[int, str]:
    return found["id"], found["v"] or ""


def in_delta(spark: SparkSession, target: Path, table: str) -> list[dict[str, Any]]:
    rows = spark.read.format("delta").load(f"{target}/dbo/{table}").collect()
    found = [{k: bytes(v) if isinstance(v, bytearray) else v for k, v in r.asDict().items()} for r in rows]
    return sorted(found, key=_order)


def in_replay(zone: LandingZone, table: str) -> list[dict[str, Any]]:
    return sorted(replay(zone)[table].to_pylist(), key=_order)


@pytest.mark.rule("2.5", "2.18", "4.1", "5.1", "5.3", "5.4", "5.5", "5.6", "5.7", "5.8", "L3", "L4", "L20", "L27")
def test_text_of_any_format_is_mirrored_row_by_row(spark: SparkSession, tmp_path: Path) -> None:
    zone, target = LandingZone(tmp_path / "zone"), tmp_path / "lake"
    mirror = Mirror(spark, zone, target)
    for table, text in FORMATS.items():
        line = "é|\\" if table == "bare" else "é\r\nnext\tline"
        writer = Writer(zone.table(table, key_columns=["id"], columns=COLUMNS, format=text))
        writer.initial_load([row(1, "a"), row(2, "quoted \"b\", 'c' / \\ |"), row(3, None)], position=1)
        writer.upsert([row(2, line), row(4, "NULL")], position=2)
        writer.delete([{"id": 1}], position=3)
    mirror.run_once().raise_for_failures()
    for table, text in FORMATS.items():
        Writer(zone.table(table, columns=COLUMNS, format=text)).insert([row(4, "")], position=4)
    report = mirror.run_once()
    report.raise_for_failures()
    for table in FORMATS:
        assert in_delta(spark, target, table) == in_replay(zone, table)
        assert [found["id"] for found in in_delta(spark, target, table)] == [2, 3, 4, 4]
        assert report.tables[table].last_file == 4


@pytest.mark.exhaustive
@pytest.mark.rule("5.3", "5.4", "5.5", "5.6", "5.7", "5.8", "L21", "L22", "L23", "L24", "L25", "L26")
def test_every_option_and_encoding_is_mirrored_row_by_row(spark: SparkSession, tmp_path: Path) -> None:
    """What the writer refuses is left out; each option comes with each value at least once."""
    zone, target = LandingZone(tmp_path / "zone"), tmp_path / "lake"
    options = zip(
        ENCODINGS, *(cycle(each) for each in (",;|\t", ("\r\n", "\n", "\r"), "\"'", '\\/"', NULLS)), strict=False
    )
    taken: dict[str, list[dict[str, Any]]] = {}
    for number, (encoding, column, row_end, quote, escape, null) in enumerate(options):
        try:
            text = DelimitedText(column, row_end, quote, escape, null_value=null, encoding=encoding)
        except SchemaRefusedError:  # an encoding that lacks a character of them
            text = DelimitedText(column, row_end, quote, "/", encoding=encoding)
        columns = {"id": "int64", "v": "string"}
        writer = Writer(zone.table(f"t{number}", key_columns=["id"], columns=columns, format=text))
        rows = []
        for key, value in enumerate([None, "", *NULLS, *SPECIAL, SPECIAL[:8], "plain", *(f"{c}x{c}" for c in SPECIAL)]):
            with suppress(InvalidRowError):
                writer.upsert([{"id": key, "v": value}], position=key)
                rows.append({"id": key, "v": value})
        assert len(rows) > len(NULLS) + 8
        taken[f"t{number}"] = rows
    Mirror(spark, zone, target).run_once().raise_for_failures()
    for table, rows in taken.items():
        assert in_delta(spark, target, table) == in_replay(zone, table) == rows


def test_a_text_file_that_cannot_be_read_stops_its_table_until_it_is_mended(
    spark: SparkSession, tmp_path: Path
) -> None:
    zone, target = LandingZone(tmp_path / "zone"), tmp_path / "lake"
    mirror = Mirror(spark, zone, target)
    table = zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": "string"}, format=DelimitedText())
    Writer(table).upsert([{"id": 1, "v": "a"}], position=1)
    bad = table.path(data_file(2, "csv"))
    zone.storage.create(bad, b'id,v,__rowMarker__\r\nx,"b",4\r\n')
    report = mirror.run_once().tables["orders"]
    assert (report.status, report.file, report.last_file) == ("Failed", bad, 1)
    assert report.reason is not None
    assert "this text is no value of the column 'id'" in report.reason
    zone.storage.delete(bad)
    Writer(table).upsert([{"id": 2, "v": "b"}], position=2)
    mirror.run_once().raise_for_failures()
    assert in_delta(spark, target, "orders") == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
