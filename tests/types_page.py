"""docs/types.md as the list of types makes it. `python -m tests.types_page` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from openmirror_writer.column_types import COLUMN_TYPES, ColumnType
from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.rows.casts import cast_for
from openmirror_writer.schema import file_type

PAGE = Path(__file__).parent.parent / "docs" / "types.md"

_UNITS: tuple[Any, ...] = ("s", "ms", "us", "ns")
ARROW: dict[str, list[Any]] = {
    "integers": [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)],
    "floats": [pa.float16(), pa.float32(), pa.float64()],
    "decimals": [pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2), pa.decimal256(76, 2)],
    "bool": [pa.bool_()],
    "strings": [pa.string(), pa.large_string(), pa.string_view()],
    "binaries": [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(16)],
    "date32, date64": [pa.date32(), pa.date64()],
    "timestamps with a zone": [pa.timestamp(unit, zone) for unit in _UNITS for zone in ("UTC", "+02:00")],
    "timestamps without a zone": [pa.timestamp(unit) for unit in _UNITS],
    "time32, time64": [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
    "json": [pa.json_(), pa.json_(pa.large_string())],
    "uuid": [pa.uuid()],
    "nested": [
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        pa.list_(pa.float64()),
        pa.large_list(pa.bool_()),
        pa.list_view(pa.string()),
        pa.map_(pa.string(), pa.list_(pa.int64())),
    ],
}
"""Families of Arrow types: a column takes all of one, or none."""

REFUSED: dict[str, Any] = {
    "null in every batch": pa.null(),
    "struct, list, map": pa.list_(pa.int64()),
    "time32, time64": pa.time64("us"),
    "uuid": pa.uuid(),
    "duration": pa.duration("us"),
    "month_day_nano_interval": pa.month_day_nano_interval(),
    "decimals of more than 38 digits": pa.decimal256(40, 0),
    "bool8, other extension types": pa.bool8(),
}
"""Arrow types from which no column is inferred."""

_HEAD = """\
# Types

Made from `openmirror_writer/column_types.py` by `python -m tests.types_page`. `tests/test_column_types.py` checks each
line on real files, `tests/spark/test_types.py` with real Spark and a real Delta table.

A column is declared by its name in `zone.table(..., columns={"id": "int64 not null", "tags": "json"})`, or with an
Arrow type or schema. What fits goes in and reads back equal; the rest is an `InvalidRowError` that names row, key,
column and value. NULL goes into every column that is not a key and not declared `not null`; a NULL in JSON's sense is
the text `null` in a `json` column.

"""
_NOTES = """
* Arrow dictionaries and run-end encoded arrays count as their values; columns of Arrow's null type go in anywhere.
  Every value is checked: an int64 column takes a uint64 array whose values fit, a `timestamp` column takes nanoseconds
  that are whole microseconds.
* What goes into `json` from nested Arrow: structs with different names, lists, maps with text keys that differ, and
  inside them text, numbers and booleans. Timestamps, decimals and bytes have no form of their own in JSON: cast them
  first. JSON text is kept as it is, so `1.10` stays `1.10`. The keys of dicts keep their order.
* A timestamp in milliseconds is for those who have such a column already: declared, it stays in milliseconds.
* Delta has no unsigned integers, no time of day and no UUID. Its columns are the next wider integer, or text.
* In delimited text, `json`, `uuid` and `time` are `String` columns. A decimal or `uint64` has no `DataType` there.
* float32 rounds, as the name says. No number becomes infinite by it.
* No column is called `__rowMarker__` or `_metadata`, or begins with `__om_`, in any casing: the mirror would stop.
* A file does not say which text is JSON, a UUID or a time of day: give `columns=` again when a writer is opened again,
  else such a column takes any text, and only text.

## Arrow types from which no column is inferred

| Arrow | way out |
|---|---|
"""
_TITLES = ("declared", "Python", "Arrow", "Parquet", "`DataType` in text", "Spark", "Delta", "refused → way out")


def page() -> str:
    """Return the whole page."""
    lines = [_row(_TITLES), _row(["---"] * len(_TITLES)), *(_row(_cells(each)) for each in COLUMN_TYPES)]
    refused = [_row([arrow, _way_out(kind)]) for arrow, kind in REFUSED.items()]
    return _HEAD + "\n".join(lines) + "\n" + _NOTES + "\n".join(refused) + "\n"


def takes(column: ColumnType) -> list[str]:
    """Return the families of Arrow types that a column takes."""
    return [
        family for family, kinds in ARROW.items() if all(cast_for(kind, column.arrow, column.form) for kind in kinds)
    ]


def _cells(column: ColumnType) -> list[str]:
    names = ", ".join(f"`{name}`" for name in (column.name, *column.synonyms))
    logical = "" if column.logical == "None" else f" {column.logical}"
    families = ", ".join(takes(column))
    text = column.text or "none"
    return [names, column.takes, families, column.physical + logical, text, column.spark, column.delta, column.refuses]


def _way_out(kind: Any) -> str:
    try:
        file_type("v", kind)
    except SchemaRefusedError as error:
        return error.message.rpartition(": ")[2]
    msg = f"{kind} is not refused"
    raise AssertionError(msg)


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
