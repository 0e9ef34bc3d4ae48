"""The worked examples of the documentation, from their files to real Delta tables: all in one run of the mirror."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import worked_examples as examples

pytest.importorskip("pyspark")

from openmirror_writer.spark.mirror import Mirror, MirrorReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Mirrored:
    """All examples, mirrored, and beside them the .tsv table with its metadata as they are printed."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        zone = examples.zone_of_all_examples(folder / "zone")
        examples.put_tsv(zone, examples.TSV_AS_PRINTED, name="printed")
        self.spark = spark
        self.target = folder / "target"
        self.report: MirrorReport = Mirror(spark, zone, self.target).run_once()

    def rows(self, place: str) -> list[tuple[Any, ...]]:
        """The rows of a Delta table, given as ``schema/table``."""
        found = self.spark.read.format("delta").load(str(self.target / place)).collect()
        return sorted((tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in found), key=repr)


@pytest.fixture(scope="module")
def mirrored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mirrored:
    return Mirrored(spark, tmp_path_factory.mktemp("examples"))


@pytest.mark.rule("6.4", "L36", "L41", "L43", "L44")
def test_a_moved_employee_is_updated_by_a_later_row_of_the_file(mirrored: Mirrored) -> None:
    assert mirrored.rows("dbo/moved") == examples.EMPLOYEES["moved"][1]


@pytest.mark.rule("6.3", "L45", "L46", "L47")
def test_a_changed_key_deletes_the_old_row_and_inserts_the_new_one(mirrored: Mirrored) -> None:
    assert mirrored.rows("dbo/changed") == examples.EMPLOYEES["changed"][1]


@pytest.mark.rule("6.1", "L34")
def test_each_marker_meets_a_key_that_is_there_and_one_that_is_not(mirrored: Mirrored) -> None:
    assert mirrored.rows("dbo/markers") == examples.markers_expected()
    assert mirrored.report.tables["markers"].rows == {None: 4, 0: 2, 1: 2, 2: 2, 4: 2}


@pytest.mark.rule("1.2", "L53", "L54")
def test_tables_of_schema_folders_land_in_their_schemas(mirrored: Mirrored) -> None:
    for folder in examples.SCHEMA_FOLDERS:
        assert mirrored.rows(folder.replace(".schema/", "/")) == [(folder,)]


@pytest.mark.rule("4.1", "L3", "L4")
def test_files_of_each_documented_compression_are_mirrored(mirrored: Mirrored) -> None:
    assert mirrored.rows("dbo/codecs") == sorted((codec,) for codec in examples.CODECS)


@pytest.mark.rule("2.5", "2.6", "2.7", "2.8", "2.9", "5.2", "L19", "L20", "L27", "L28", "L29", "L30", "L31")
def test_the_documented_tsv_is_mirrored(mirrored: Mirrored) -> None:
    assert mirrored.rows("dbo/people") == examples.TSV_ROWS


@pytest.mark.rule("2.10", "L30")
def test_the_tsv_metadata_as_printed_stop_their_table_and_no_other(mirrored: Mirrored) -> None:
    (failed,) = mirrored.report.failures
    assert (failed.table, failed.last_file) == ("printed", 0)
    assert "in line 2 indent with plain spaces" in (failed.reason or "")
    assert "in line 8 write" in (failed.reason or "")


@pytest.mark.rule("5.9", "5.11", "5.12", "L12", "L13")
def test_each_documented_data_type_is_mirrored(mirrored: Mirrored) -> None:
    assert mirrored.rows("dbo/types") == [tuple(value for _, value in examples.DATA_TYPES.values())]
