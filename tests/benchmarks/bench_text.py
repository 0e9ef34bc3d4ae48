"""1 M rows of 12 columns as text in memory, against `pyarrow.csv.write_csv` of the same rows, without quoting.

The floor checks nothing and names no bad cell; its file has the same header, rows and markers. Goal: 1.5 times at most.
Other encodings pay for a transcode of the finished file, which the floor cannot do at all.
"""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.formats import DelimitedText
from openmirror_writer.schema import ROW_MARKER, declared_columns
from tests.benchmarks.measure import ratio

ROWS, BATCH_ROWS = 1_000_000, 8_192
COLUMNS = declared_columns(
    {
        "id": "int64",
        "customer": "int32",
        "region": "string",
        "name": "string",
        "note": "string",
        "amount": "float64",
        "tax": "float64",
        "active": "bool",
        "day": "date",
        "at": "timestamp_ntz",  # pyarrow writes instants five times slower than all the rest, which would flatter us
        "score": "int64",
        "level": "int16",
    }
)
REGIONS = ("north", "east", "south", "west")


@pytest.fixture(scope="module")
def table():
    start = datetime(2026, 1, 1)  # noqa: DTZ001 - a column without a zone
    values = {
        "id": range(ROWS),
        "customer": [n % 5000 for n in range(ROWS)],
        "region": [REGIONS[n % 4] for n in range(ROWS)],
        "name": [f"customer {n % 5000}" for n in range(ROWS)],
        "note": [None if n % 10 == 0 else f"note {n}" for n in range(ROWS)],
        "amount": [n * 0.25 for n in range(ROWS)],
        "tax": [n * 0.01 for n in range(ROWS)],
        "active": [n % 3 == 0 for n in range(ROWS)],
        "day": [(start + timedelta(days=n % 300)).date() for n in range(ROWS)],
        "at": [start + timedelta(seconds=n) for n in range(ROWS)],
        "score": [n * 7 for n in range(ROWS)],
        "level": [n % 100 for n in range(ROWS)],
    }
    return pa.table(values, schema=COLUMNS)


@pytest.fixture(scope="module")
def batches(table):
    return [
        ChangeBatch(rows, pa.array([4] * rows.num_rows, pa.int32()))
        for rows in table.to_batches(max_chunksize=BATCH_ROWS)
    ]


@pytest.fixture(scope="module")
def floor(table):
    marked = table.append_column(ROW_MARKER, pa.array([4] * ROWS, pa.int32()))

    def write():
        sink = io.BytesIO()
        pcsv.write_csv(marked, sink)
        return sink.getvalue()

    return write


@pytest.mark.parametrize(
    "text",
    [
        DelimitedText(),
        DelimitedText(escape='"', null_value="NULL"),
        DelimitedText(quote="", null_value="\\N"),
        DelimitedText(encoding="utf-16"),
        DelimitedText(encoding="windows-1252"),
    ],
    ids=["default", "RFC 4180", "escapes only", "UTF-16", "windows-1252"],
)
def test_writing(request, text, batches, floor):
    name = f"1 M rows x 12 as text ({request.node.callspec.id}), against pyarrow.csv.write_csv"
    ratio(name, lambda: text.encode(COLUMNS, batches), floor)


def test_reading(batches, floor):
    text = DelimitedText()
    data = text.encode(COLUMNS, batches)

    def read():
        pcsv.read_csv(io.BytesIO(data), parse_options=pcsv.ParseOptions(newlines_in_values=True))

    ratio("1 M rows x 12 from text, against pyarrow.csv.read_csv", lambda: text.read(data, COLUMNS, "t/1"), read)
