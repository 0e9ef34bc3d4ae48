"""The command ``openmirror apply``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openmirror_writer import LandingZone, Writer
from openmirror_writer.layout import data_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_failed_table_ends_with_1_and_does_not_stop_the_others(run: Any, tmp_path: Path, spark: SparkSession) -> None:
    zone = LandingZone(tmp_path / "zone")
    for name in ("good", "bad"):
        Writer(zone.table(name, key_columns=["id"])).upsert([{"id": 1}, {"id": 2}])

    ended = run("apply", zone.url, tmp_path / "lake", "--json")
    assert ended.code == 0
    tables = {table["table"]: table for table in json.loads(ended.out)["tables"]}
    assert tables["good"]["rows"] == tables["bad"]["rows"] == {"upsert": 2}

    zone.storage.create(f"bad/{data_file(2)}", b"no parquet")
    Writer(zone.table("good")).delete([{"id": 1}])
    ended = run("apply", zone.url, tmp_path / "lake")
    assert ended.code == 1
    assert "Failed" in ended.out
    assert "no readable Parquet" in ended.out
    assert "1 delete" in ended.out
    assert spark.read.format("delta").load(f"{tmp_path}/lake/dbo/good").collect() == [(2,)]
