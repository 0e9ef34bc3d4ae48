"""The report of a run."""

from __future__ import annotations

import pytest

from openmirror_writer.errors import ApplyError
from openmirror_writer.spark.mirror.report import MirrorReport, TableReport
from openmirror_writer.spark.mirror.state import Status


def report(name: str, status: Status, reason: str | None = None) -> TableReport:
    return TableReport(name, status, reason, f"{name}/1.parquet", 0, {}, 0, None, (), 0.0)


def test_a_run_without_failures_raises_nothing() -> None:
    MirrorReport({"a": report("a", "Replicating"), "b": report("b", "Stopped")}, 0.0).raise_for_failures()


def test_the_first_failure_is_raised_and_the_others_are_its_notes() -> None:
    tables = [report("a", "Failed", "a gap"), report("b", "Replicating"), report("c", "Failed", "a fork")]
    with pytest.raises(ApplyError, match="a gap") as error:
        MirrorReport({t.table: t for t in tables}, 0.0).raise_for_failures()
    assert (error.value.table, error.value.file) == ("a", "a/1.parquet")
    assert error.value.__notes__ == ["also failed: c: a fork"]
