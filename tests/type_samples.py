"""For each line of docs/types.md: values that go in, as what they read back, and values that are refused."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from openmirror_writer.column_types import COLUMN_TYPES, DECIMAL, ColumnType

NAIVE = datetime(2024, 5, 6, 7, 8, 9, 123000)  # noqa: DTZ001 - without a zone on purpose
AWARE = NAIVE.replace(tzinfo=timezone(timedelta(hours=2)))
SOME_UUID = UUID("abcdef01-ab23-cd45-ef67-89abcdef0123")


@dataclass(frozen=True)
class Sample:
    """One line.

    Attributes:
        stored: Value and what it reads back as.
        refused: Value and a word of the way out.
    """

    stored: list[tuple[Any, Any]]
    refused: list[tuple[Any, str]]


def _same(*values: Any) -> list[tuple[Any, Any]]:
    return [(value, value) for value in values]


def _integers(bits: int, *, signed: bool) -> Sample:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    out = [(low - 1, "wider type"), (high + 1, "wider type")]
    return Sample(
        _same(low, 0, high, None),
        [*out, *((bad, "hand over an int") for bad in (True, 1.0, Decimal(1), timedelta(1)))],
    )


_NO_DATE = [(date(2024, 1, 1), "hand over a datetime"), (NAIVE.date(), "hand over a datetime")]
_INSTANTS = Sample(
    [
        (AWARE, AWARE.astimezone(UTC)),
        *_same(datetime.min.replace(tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC), None),
    ],
    [(NAIVE, "timestamp_ntz"), *_NO_DATE],
)
_NAIVES = Sample(
    _same(NAIVE, datetime.min, datetime(9999, 12, 31, 23), None),  # noqa: DTZ001, DTZ901 - the same
    [(AWARE, "declare the column timestamp"), *_NO_DATE],
)
_DOCUMENT = {"b": [1, -0.5, None, True, "é\n"], "a": {}, "n": 10**30}

SAMPLES: dict[str, Sample] = {
    **{f"int{bits}": _integers(bits, signed=True) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": _integers(bits, signed=False) for bits in (8, 16, 32, 64)},
    "float32": Sample(
        [(0.1, 0.10000000149011612), *_same(2**24, math.inf, -math.inf, math.nan, -0.0, None)],
        [(True, "float"), (Decimal(1), "float"), (2**24 + 1, "decimal(p,s)"), (1e300, "decimal(p,s)")],
    ),
    "float64": Sample(
        _same(0.1, 2**53, math.inf, -math.inf, math.nan, 5e-324, None),
        [(True, "float"), (Decimal(1), "float"), (2**53 + 1, "decimal(p,s)"), (10**400, "decimal(p,s)")],
    ),
    "decimal(p,s)": Sample(
        [(7, Decimal("7.00")), *_same(Decimal("-9999999999999999.99"), Decimal("1.50"), None)],
        [
            (1.5, "hand over a Decimal"),
            (Decimal("NaN"), "float64"),
            (Decimal("Infinity"), "float64"),
            (Decimal("0.001"), "round it yourself"),
            (10**16, "declare more digits"),
        ],
    ),
    "bool": Sample([(each, each) for each in (True, False, None)], [(1, "True or False")]),
    "string": Sample(
        _same("", "é\n\x00", "null", None),
        [
            (b"x", "binary"),
            ("\ud800", "lone surrogate"),
            ({}, "json"),
            ([], "json"),
            (SOME_UUID, "uuid"),
            (time(1), "declared time"),
            (1, "hand over a str"),
        ],
    ),
    "binary": Sample(
        [(bytearray(b"x"), b"x"), (memoryview(b"y"), b"y"), *_same(b"", b"\x00\xff", None)], [("x", "string")]
    ),
    "date": Sample(_same(date.min, date.max, None), [(NAIVE, "value.date()"), (1, "hand over a datetime.date")]),
    "timestamp": _INSTANTS,
    "timestamp_ntz": _NAIVES,
    "timestamp[ms, tz=UTC]": Sample(
        _INSTANTS.stored, [*_INSTANTS.refused, (AWARE.replace(microsecond=1), "declare the column timestamp")]
    ),
    "timestamp[ms]": Sample(
        _NAIVES.stored, [*_NAIVES.refused, (NAIVE.replace(microsecond=1), "declare the column timestamp")]
    ),
    "json": Sample(
        [
            (_DOCUMENT, '{"b":[1,-0.5,null,true,"é\\n"],"a":{},"n":1000000000000000000000000000000}'),
            ([], "[]"),
            *_same('{ "a": 1.10 }', "null", '"text"', "1e999", None),
        ],
        [
            ([math.nan], "None"),
            ([-math.inf], "None"),
            ({"a": Decimal("1.5")}, "dicts with text keys"),
            ({"a": NAIVE}, "dicts with text keys"),
            ({"a": b"x"}, "dicts with text keys"),
            ({"a": (1, 2)}, "dicts with text keys"),
            ({1: "a"}, "dicts with text keys"),
            (["\ud800"], "dicts with text keys"),
            (1, "json.dumps"),
            (True, "json.dumps"),
            (1.5, "json.dumps"),
            ((1,), "json.dumps"),
            ("text", "json.dumps"),
            ("NaN", "json.dumps"),
            ("", "json.dumps"),
            ("{} {}", "json.dumps"),
        ],
    ),
    "uuid": Sample(
        [(SOME_UUID, str(SOME_UUID)), (str(SOME_UUID).upper(), str(SOME_UUID)), *_same(str(SOME_UUID), None)],
        [
            (SOME_UUID.bytes, "UUID(bytes=value)"),
            (SOME_UUID.hex, "UUID(text)"),
            (f"{{{SOME_UUID}}}", "UUID(text)"),
            (f"{SOME_UUID}\n", "UUID(text)"),
            (SOME_UUID.int, "uuid.UUID"),
        ],
    ),
    "time": Sample(
        [
            (time(1, 2, 3), "01:02:03.000000"),
            (time.max, "23:59:59.999999"),
            *_same("00:00:00.000000", "23:59:59.999999", None),
        ],
        [
            (time(1, tzinfo=UTC), "take the zone off"),
            (timedelta(hours=1), "datetime.time"),
            (NAIVE, "datetime.time"),
            ("01:02:03", "datetime.time"),
            ("24:00:00.000000", "datetime.time"),
            ("01:02:03.000000\n", "datetime.time"),
        ],
    ),
}


def declared(column: ColumnType) -> str | pa.DataType:
    """Return how a column of this line is declared."""
    if column is DECIMAL:
        return "decimal(18,2)"
    return column.name if "[" not in column.name else column.arrow


def column_name(name: str) -> str:
    """Return the name of the column that `columns` has for a line, without signs that Delta must map."""
    return "c_" + re.sub(r"\W+", "_", name).strip("_")


def columns() -> dict[str, str | pa.DataType]:
    """Return a key, and one column for each line."""
    return {"id": "int64", **{column_name(each.name): declared(each) for each in COLUMN_TYPES}}


def rows() -> list[dict[str, Any]]:
    """Return rows whose columns hold all samples that go in."""
    return [_row(n, 0) for n in range(_LONGEST)]


def read_back() -> list[dict[str, Any]]:
    """Return `rows` as they must read back."""
    return [_row(n, 1) for n in range(_LONGEST)]


def is_equal(one: Any, other: Any) -> bool:
    """Whether two values are the same, NaN with NaN."""
    if isinstance(one, float) and isinstance(other, (float, int)) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


_LONGEST = max(len(sample.stored) for sample in SAMPLES.values())


def _row(n: int, side: int) -> dict[str, Any]:
    cells = {
        column_name(name): sample.stored[n][side] if n < len(sample.stored) else None
        for name, sample in SAMPLES.items()
    }
    return {"id": n, **cells}
