"""1 M rows of 12 columns into 100 files, against a bare pyarrow loop that writes the same rows into as many files.

The floor is a table per 10,000 rows and `pq.write_table` to a local path: no markers, no checks, no names that
resume. It stands in two versions: bare, and with each file and its folder synced to disk, as the writer does before it
calls a file published.
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openmirror_writer import LandingZone, Roll, Writer
from tests.benchmarks.measure import ratio

ROWS, FILE_ROWS = 1_000_000, 10_000
COLUMNS = {
    "id": "int64",
    "customer": "int32",
    "region": "string",
    "name": "string",
    "note": "string",
    "amount": "float64",
    "tax": "float64",
    "price": "decimal(12,2)",
    "active": "bool",
    "day": "date",
    "at": "timestamp",
    "score": "int64",
}
REGIONS = ("north", "east", "south", "west")


@pytest.fixture(scope="module")
def rows():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    prices = [Decimal(n).scaleb(-2) for n in range(1000)]
    days = [date(2026, 1, 1) + timedelta(days=n) for n in range(300)]
    return [
        {
            "id": n,
            "customer": n % 5000,
            "region": REGIONS[n % 4],
            "name": f"customer {n % 5000}",
            "note": None if n % 10 == 0 else f"note {n}",
            "amount": n * 0.25,
            "tax": n * 0.01,
            "price": prices[n % 1000],
            "active": n % 3 == 0,
            "day": days[n % 300],
            "at": start + timedelta(seconds=n),
            "score": n * 7,
        }
        for n in range(ROWS)
    ]


def _table(folder: Path):
    shutil.rmtree(folder, ignore_errors=True)
    return LandingZone(folder).table("bench", key_columns=["id"], columns=COLUMNS)


def _bare(folder: Path, parts, *, synced: bool) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number, part in enumerate(parts):
        pq.write_table(part, folder / f"{number:020d}.parquet")
        if synced:
            _sync(folder / f"{number:020d}.parquet")
            _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@pytest.mark.parametrize("synced", [False, True], ids=["bare", "synced"])
def test_dict_rows(rows, tmp_path, synced):
    schema = _table(tmp_path / "zone").columns

    def ours():
        with Writer(_table(tmp_path / "zone"), roll=Roll(rows=FILE_ROWS)) as writer:
            writer.upsert(rows, position=1)

    def floor():
        starts = range(0, ROWS, FILE_ROWS)
        parts = (pa.Table.from_pylist(rows[n : n + FILE_ROWS], schema=schema) for n in starts)
        _bare(tmp_path / "bare", parts, synced=synced)

    ratio(f"1 M dict rows x 12 into 100 files, against from_pylist and write_table{', synced' * synced}", ours, floor)
    assert len(list((tmp_path / "zone" / "bench").glob("0*.parquet"))) == ROWS // FILE_ROWS


@pytest.mark.parametrize("synced", [False, True], ids=["bare", "synced"])
def test_arrow(rows, tmp_path, synced):
    table = pa.Table.from_pylist(rows, schema=_table(tmp_path / "zone").columns)

    def ours():
        with Writer(_table(tmp_path / "zone"), roll=Roll(rows=FILE_ROWS)) as writer:
            writer.upsert(table, position=1)

    def floor():
        parts = (table.slice(n, FILE_ROWS) for n in range(0, ROWS, FILE_ROWS))
        _bare(tmp_path / "bare", parts, synced=synced)

    ratio(f"1 M Arrow rows x 12 into 100 files, against write_table{', synced' * synced}", ours, floor)
    assert len(list((tmp_path / "zone" / "bench").glob("0*.parquet"))) == ROWS // FILE_ROWS
