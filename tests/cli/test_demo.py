"""The demo from end to end, and the comparison again after somebody changed a row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_demo_ends_with_no_differences_and_notices_a_changed_row(
    run: Any, tmp_path: Path, spark: SparkSession
) -> None:
    """One test, for the demo is the slow part of it."""
    folder = tmp_path / "demo"
    ended = run("demo", "--keep-in", folder, "--days", "2")
    assert ended.code == 0, ended
    assert "SIGKILL when it had read up to 2013-02-" in ended.out
    assert "It looked at the 1 file that the mirror had left and went on behind 2013-02-" in ended.out
    assert "nothing to do" in ended.out
    assert ended.out.count("0 differences") == 4
    assert f"openmirror trace {folder}/zone flights year=2013 month=2 day=7" in ended.out

    assert run("demo", "--verify-only", folder).code == 0

    one_flight = "day = 7 AND carrier = 'UA' AND flight = 1018 AND origin = 'EWR'"
    spark.sql(f"UPDATE delta.`{folder}/lake/dbo/flights` SET air_time = air_time + 1 WHERE {one_flight}")  # noqa: S608
    tampered = run("demo", "--verify-only", folder)
    assert tampered.code == 1
    assert tampered.out.count("│ 1 difference ") == 2
    assert "only in the Delta table: year=2013 month=2 day=7 carrier=UA flight=1018 origin=EWR" in tampered.out


def test_a_folder_that_is_not_empty_is_refused(run: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    ended = run("demo", "--keep-in", tmp_path)
    assert ended.code == 1
    assert f"{tmp_path} is not empty" in ended.err


def test_there_must_be_a_demo_to_compare_again(run: Any, tmp_path: Path) -> None:
    ended = run("demo", "--verify-only", tmp_path)
    assert ended.code == 1
    assert f"no demo was kept in {tmp_path}" in ended.err


@pytest.mark.parametrize("days", [0, 4])
def test_days_that_the_data_do_not_have_are_wrong_usage(run: Any, days: int) -> None:
    assert run("demo", "--days", days).code == 2
