"""docs/types.md is true for Spark and Delta: what it reads from our file, and what the mirror's table holds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from openmirror_writer import LandingZone, Writer, replay
from openmirror_writer.column_types import COLUMN_TYPES, DECIMAL, ColumnType
from openmirror_writer.layout import data_file
from tests import type_samples
from tests.type_samples import column_name, is_equal

pytest.importorskip("pyspark")

from openmirror_writer.spark.mirror import Mirror

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.rule("4.9", "L12", "L55")
def test_spark_and_delta_hold_each_line_of_the_page_as_it_says(spark: SparkSession, tmp_path: Path) -> None:
    zone = LandingZone(tmp_path / "zone")
    orders = zone.table("orders", key_columns=["id"], columns=type_samples.columns())
    Writer(orders).initial_load(type_samples.rows())
    read = spark.read.parquet(str(tmp_path / "zone" / "orders" / data_file(1)))
    assert dict(read.dtypes) == {
        "id": "bigint",
        **{column_name(each.name): _sql(each, each.spark) for each in COLUMN_TYPES},
    }

    Mirror(spark, zone, tmp_path / "target").run_once().raise_for_failures()
    target = tmp_path / "target" / "dbo" / "orders"
    assert _log_types(target) == {
        "id": "long",
        **{column_name(each.name): _sql(each, each.delta) for each in COLUMN_TYPES},
    }

    wanted = type_samples.read_back()
    assert _differing(replay(zone)["orders"].to_pylist(), wanted) == []
    assert _differing(_table_rows(spark, target), wanted) == []


def _sql(column: ColumnType, name: str) -> str:
    return "decimal(18,2)" if column is DECIMAL else name


def _log_types(target: Path) -> dict[str, Any]:
    for line in (target / "_delta_log" / f"{0:020d}.json").read_text().splitlines():
        action = json.loads(line)
        if "metaData" in action:
            return {field["name"]: field["type"] for field in json.loads(action["metaData"]["schemaString"])["fields"]}
    return {}


def _table_rows(spark: SparkSession, target: Path) -> list[dict[str, Any]]:
    """Return the rows; instants by their count, because Spark's Python turns them into local time."""
    instants = {column_name(each.name) for each in COLUMN_TYPES if each.spark == "timestamp"}
    names = ["id", *(column_name(each.name) for each in COLUMN_TYPES)]
    wanted = ", ".join(f"unix_micros({name}) AS {name}" if name in instants else name for name in names)
    found = spark.sql(f"SELECT {wanted} FROM delta.`{target}` ORDER BY id").collect()  # noqa: S608 - our own names
    return [{name: _plain(value, is_instant=name in instants) for name, value in row.asDict().items()} for row in found]


def _plain(value: Any, *, is_instant: bool) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    return EPOCH + timedelta(microseconds=value) if is_instant and value is not None else value


def _differing(rows: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    assert len(rows) == len(wanted)
    return [
        (name, value, expected[name])
        for row, expected in zip(rows, wanted, strict=True)
        for name, value in row.items()
        if not is_equal(value, expected[name])
    ]
