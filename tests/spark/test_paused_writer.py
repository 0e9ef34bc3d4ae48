"""A writer that is paused while another publishes and the mirror moves files: it is told, and nothing is doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from openmirror_writer import LandingZone, Writer, replay
from openmirror_writer.layout import PROCESSED, data_file
from openmirror_writer.spark import Mirror

pytestmark = pytest.mark.skipif(os.name == "nt", reason="SIGSTOP is POSIX")

SCRIPT = Path(__file__).with_name("paused_writer_process.py")
STALE = f"orders/{data_file(2)}"


@contextmanager
def paused_writer(zone: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a writer and wait until it has stopped itself; it is gone in the end, whatever happens."""
    command = [sys.executable, str(SCRIPT), str(zone)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        try:
            assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
            yield process
        finally:
            process.kill()


def rows(spark: SparkSession, target: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(f"{target}/dbo/orders").collect())


def test_a_writer_that_was_paused_before_its_create_is_told_and_its_stale_file_is_never_applied(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Another writer's files 2 to 6 are applied and four of them moved, so the name of file 2 is free again."""
    zone, target = LandingZone(tmp_path / "zone"), tmp_path / "target"
    orders = zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": "string"})
    source = [{"id": 1, "v": "load"}]
    Writer(orders).initial_load(source, position=0)
    mirror = Mirror(spark, zone, target)
    with paused_writer(tmp_path / "zone") as paused:
        other = Writer(orders)
        for position in range(1, 6):
            source.append({"id": 1 + position, "v": "other"})
            other.insert(source[-1:], position=position)
        report = mirror.run_once()
        report.raise_for_failures()
        assert report.tables["orders"].last_file == 6
        assert zone.storage.names(f"orders/{PROCESSED}").files.keys() == {data_file(n) for n in range(1, 6)}
        paused.send_signal(signal.SIGCONT)
        told = json.loads(paused.communicate()[0])
    assert told["error"].startswith("ConcurrentWriterError")
    assert STALE in told["error"]
    assert told["published_position"] == 0
    source.append({"id": 7, "v": "other"})
    other.insert(source[-1:], position=6)
    for applied in (1, 0):
        table = mirror.run_once().tables["orders"]
        assert (table.status, table.reason, table.stale) == ("Replicating", None, (STALE,))
        assert (table.files, table.last_file) == (applied, 7)
    assert data_file(2) in zone.storage.names("orders").files, "only a person may delete it"
    expected = [tuple(row.values()) for row in source]
    assert rows(spark, target) == expected
    assert sorted(tuple(row.values()) for row in replay(zone)["orders"].to_pylist()) == expected
