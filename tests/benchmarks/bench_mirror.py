"""What the mirror costs: one commit for a backlog against one per file, and a small file against a bare MERGE."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openmirror_writer import LandingZone, Writer
from openmirror_writer.spark import Mirror
from tests.benchmarks.measure import ratio

FILES, FILE_ROWS = 100, 100


def _zone(folder):
    shutil.rmtree(folder, ignore_errors=True)
    zone = LandingZone(folder / "zone")
    return zone, zone.table("t", key_columns=["id"], columns={"id": "int64", "v": "string"})


def _rows(number):
    return [{"id": (number * 37 + n) % 1000, "v": f"{number}-{n}"} for n in range(FILE_ROWS)]


@pytest.mark.spark
def test_a_backlog_in_one_commit_against_one_per_file(spark, tmp_path):
    def publish(folder, after_each=None):
        zone, table = _zone(folder)
        mirror = Mirror(spark, zone, folder / "lake")
        with Writer(table) as writer:
            writer.initial_load([{"id": n, "v": "0"} for n in range(1000)], position=0)
            mirror.run_once().raise_for_failures()
            for number in range(1, FILES + 1):
                writer.upsert(_rows(number), position=number)
                writer.flush()
                if after_each:
                    after_each(mirror)
        return mirror

    def backlog():
        publish(tmp_path / "one").run_once().raise_for_failures()

    def file_by_file():
        publish(tmp_path / "each", lambda mirror: mirror.run_once().raise_for_failures())

    ratio(f"{FILES} files in one run_once, against one run_once each", backlog, file_by_file, runs=1, warm_floor=False)


@pytest.mark.spark
def test_a_small_file_against_a_bare_merge(spark, tmp_path):
    zone, table = _zone(tmp_path / "ours")
    mirror = Mirror(spark, zone, tmp_path / "ours" / "lake")
    writer = Writer(table)
    writer.initial_load([{"id": n, "v": "0"} for n in range(1000)], position=0)
    mirror.run_once().raise_for_failures()
    bare = tmp_path / "bare"
    spark.range(1000).selectExpr("id", "'0' as v").write.format("delta").option(
        "delta.enableDeletionVectors", "true"
    ).save(str(bare))
    number = [0]

    def ours():
        number[0] += 1
        writer.upsert(_rows(number[0]), position=number[0])
        mirror.run_once().raise_for_failures()

    def floor():
        number[0] += 1
        path = tmp_path / f"{number[0]}.parquet"
        pq.write_table(pa.Table.from_pylist(_rows(number[0])), path)
        spark.read.parquet(str(path)).createOrReplaceTempView("bare_source")
        spark.sql(
            f"MERGE INTO delta.`{bare}` t USING bare_source s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    ratio("one file of 100 rows, published and applied, against a file and a bare MERGE", ours, floor, runs=7)
