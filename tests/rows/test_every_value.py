"""Any value into any column: it reads back equal from the file, or it is refused with its row and column named."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.column_types import COLUMN_TYPES, ColumnType
from openmirror_writer.errors import InvalidRowError
from openmirror_writer.formats import Parquet
from openmirror_writer.formats.parquet import read_rows
from openmirror_writer.record import Record
from openmirror_writer.rows import Needs, encode
from openmirror_writer.schema import declared_columns
from openmirror_writer.storage import Content
from tests.type_samples import declared
from tests.types_page import ARROW, takes

RECORD = Record(generation="g", number=1, previous=None, batch="b", writer="w", phase="loading", by="x", position=None)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the epoch of timestamps without a zone
FIRST, END = Fraction(-62_135_596_800), Fraction(253_402_300_800)
"""The years 1 to 9999 in seconds since the epoch; the second is the first moment behind them."""


def through_a_file(rows: Any, column: ColumnType) -> list[Any]:
    """Return what a file holds of the column ``v`` of these rows."""
    columns = declared_columns({"id": "int64", "v": declared(column)})
    batches = [ChangeBatch(b) for b in encode(rows, Needs(columns, ("id",), frozenset(columns.names), "orders"))]
    return read_rows(Content(Parquet().encode(columns, batches, RECORD), "e"), "f").column("v").to_pylist()


def stored_or_refused(rows: Callable[[int], Any], count: int, column: ColumnType) -> list[Any]:
    """Return what is stored of the rows before the one that is refused; check that it is that one."""
    try:
        return through_a_file(rows(count), column)
    except InvalidRowError as refused:
        error = refused
    assert error.column == "v"
    assert error.row in range(count)
    assert error.key == {"id": error.row}
    return through_a_file(rows(error.row), column) if error.row else []


# -------------------------------------------------------------------------------------------------------------- Python

INSIDE_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=6,
)
PYTHON: dict[str, st.SearchStrategy[Any]] = {
    "number": st.integers(-300, 300) | st.integers(-(2**65), 2**65) | st.floats() | st.booleans(),
    "decimal": st.decimals() | st.decimals(places=2, allow_nan=False, allow_infinity=False),
    "text": st.text(st.characters()) | st.sampled_from(["{}", "1", "null", "01:02:03.000004", "1e400", "NaN"]),
    "bytes": st.binary(max_size=20),
    "date": st.dates() | st.datetimes(timezones=st.none() | st.just(UTC)) | st.timedeltas(),
    "uuid": st.uuids() | st.uuids().map(str) | st.uuids().map(lambda value: str(value).upper()),
    "time": st.times() | st.times(timezones=st.just(UTC)) | st.times().map(time.isoformat),
    "nested": INSIDE_JSON | st.lists(st.decimals() | st.dates(), max_size=2),
    "odd keys": st.dictionaries(st.integers() | st.none() | st.text(), st.text(), max_size=2),
}


@settings(max_examples=500)
@given(st.sampled_from(COLUMN_TYPES), st.lists(st.one_of(st.none(), *PYTHON.values()), min_size=1, max_size=4))
def test_a_python_value_reads_back_equal_or_is_refused(column: ColumnType, values: list[Any]) -> None:
    back = stored_or_refused(lambda count: [{"id": n, "v": values[n]} for n in range(count)], len(values), column)
    for got, value in zip(back, values[: len(back)], strict=True):
        assert says_the_same(got, value, column), (got, value)


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=int)
    except ValueError:
        return False
    return True


def says_the_same(got: Any, value: Any, column: ColumnType) -> bool:
    if value is None or got is None:
        return value is got
    if column.name == "json" and not isinstance(value, str):
        return repr(json.loads(got)) == repr(value)  # tells 1, 1.0 and True apart, and the order of keys
    if column.name == "json":
        return bool(got == value) and is_json(got)
    if column.name == "uuid":
        return bool(got == str(UUID(str(value))))
    if column.name == "time":
        return bool(time.fromisoformat(got) == (time.fromisoformat(value) if isinstance(value, str) else value))
    if column.name == "float32" and isinstance(value, float):
        value = struct.unpack("f", struct.pack("f", value))[0]
    if isinstance(value, float) and math.isnan(value):
        return isinstance(got, float) and math.isnan(got)
    of_one_kind = isinstance(got, bool) == isinstance(value, bool) and isinstance(got, str) == isinstance(value, str)
    return bool(of_one_kind and isinstance(got, datetime) == isinstance(value, datetime) and got == value)


# --------------------------------------------------------------------------------------------------------------- Arrow

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
ANY_64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[str, pa.Array[Any], list[Any]]:
    """Return a family of docs/types.md, an array of it and its values as `exact` tells them, in any encoding."""
    family, kind, cells = draw(draw(st.sampled_from([integers, floats, moments, days, times, texts, uuids]))())
    nones = draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells)))
    values = [None if is_none else value for is_none, (_, value) in zip(nones, cells, strict=True)]
    array = _array(kind, [None if is_none else raw for is_none, (raw, _) in zip(nones, cells, strict=True)])
    encoding = draw(st.sampled_from(["plain", "dictionary", "runs"]))
    if encoding == "dictionary":
        array = pa.DictionaryArray.from_arrays(pa.array(range(len(array)), pa.int8()), array)
    # pyarrow makes no runs of dates and times out of range.
    if encoding == "runs" and not pa.types.is_temporal(kind):
        ends = pa.array([2 * n + 2 for n in range(len(array))], pa.int32())
        array = pa.RunEndEncodedArray.from_arrays(ends, array)
        values = [value for value in values for _ in range(2)]
    start = draw(st.integers(0, len(values) - 1))
    stop = draw(st.integers(start + 1, len(values)))
    return family, array.slice(start, stop - start), values[start:stop]


def _array(kind: Any, raw: list[Any]) -> Any:
    if isinstance(next((each for each in raw if each is not None), None), int) and not pa.types.is_integer(kind):
        return pa.array(raw, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return pa.nulls(len(raw), kind) if set(raw) == {None} else pa.array(raw, kind)


def _cells(raw: st.SearchStrategy[Any], value: Callable[[Any], Any]) -> st.SearchStrategy[list[tuple[Any, Any]]]:
    return st.lists(raw.map(lambda each: (each, value(each))), min_size=1, max_size=4)


@st.composite
def integers(draw: st.DrawFn) -> tuple[str, Any, Any]:
    bits, signed = draw(st.sampled_from([8, 16, 32, 64])), draw(st.booleans())
    kind = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return "integers", kind, draw(_cells(st.integers(low, high) | st.integers(max(low, -2), 2), Fraction))


@st.composite
def floats(draw: st.DrawFn) -> tuple[str, Any, Any]:
    width: Any = draw(st.sampled_from([16, 32, 64]))
    kind = {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[width]
    return "floats", kind, draw(_cells(st.floats(width=width), float))


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, Any, Any]:
    unit, zone = draw(st.sampled_from(list(PER_SECOND))), draw(st.sampled_from([None, "UTC", "-03:30", "No/Where"]))
    per = PER_SECOND[unit]
    first, end = int(FIRST) * per, int(END) * per
    around = st.sampled_from([0, first, first - 1, end, end - 1])
    counts = (ANY_64 | st.integers(-(10**12), 10**12) | around).filter(lambda count: -(2**63) <= count < 2**63)
    family = "timestamps with a zone" if zone else "timestamps without a zone"
    return family, pa.timestamp(unit, zone), draw(_cells(counts, lambda count: Fraction(count, per)))


@st.composite
def days(draw: st.DrawFn) -> tuple[str, Any, Any]:
    edge = st.sampled_from([-719_162, -719_163, 2_932_896, 2_932_897, 0])
    if draw(st.booleans()):
        return "date32, date64", pa.date32(), draw(_cells(edge | st.integers(-(2**31), 2**31 - 1), Fraction))
    counts = edge.map(lambda day: day * 86_400_000) | ANY_64
    return "date32, date64", pa.date64(), draw(_cells(counts, lambda count: Fraction(count, 86_400_000)))


@st.composite
def times(draw: st.DrawFn) -> tuple[str, Any, Any]:
    unit: Any = draw(st.sampled_from(list(PER_SECOND)))
    kind: Any = (pa.time32 if unit in {"s", "ms"} else pa.time64)(unit)
    per = PER_SECOND[unit]
    edge = st.sampled_from([0, -1, 86_400 * per, 86_400 * per - 1])
    counts = (edge | st.integers(0, 86_400 * per) | ANY_64).filter(
        lambda count: -(2 ** (kind.bit_width - 1)) <= count < 2 ** (kind.bit_width - 1)
    )
    return "time32, time64", kind, draw(_cells(counts, lambda count: Fraction(count, per)))


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, Any, Any]:
    kind = draw(st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]))
    some = st.text() | st.sampled_from(["{}", "01:02:03.000004", "A" * 8 + "-aaaa-aaaa-aaaa-" + "a" * 12])
    return "strings", kind, draw(_cells(some, str))


@st.composite
def uuids(draw: st.DrawFn) -> tuple[str, Any, Any]:
    raw = st.uuids().map(lambda value: value.bytes)
    return "uuid", pa.uuid(), draw(_cells(raw, lambda data: str(UUID(bytes=data))))


TAKERS = {family: [column for column in COLUMN_TYPES if family in takes(column)] for family in ARROW}


@settings(max_examples=500)
@given(arrays(), st.data())
def test_an_arrow_value_reads_back_equal_or_is_refused(
    given_array: tuple[str, pa.Array[Any], list[Any]], data: st.DataObject
) -> None:
    """Of an array that a column of this type takes at all; a value that fits is not refused."""
    family, array, values = given_array
    column = data.draw(st.sampled_from(TAKERS[family]))
    back = stored_or_refused(
        lambda count: pa.table({"id": range(count), "v": array.slice(0, count)}), len(array), column
    )
    for got, value in zip(back, values[: len(back)], strict=True):
        assert exact(got, column) == expected(value, column)
    if len(back) < len(values):
        assert not fits(values[len(back)], column)


def exact(got: Any, column: ColumnType) -> Any:
    """Return a value that was read as a number of which nothing is lost; text as it is."""
    if isinstance(got, datetime):
        return Fraction((got.replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1), 10**6)
    if isinstance(got, date):
        return Fraction((got - EPOCH.date()).days)
    if isinstance(got, str) and column.name == "time" and ":" in got:
        since = datetime.combine(EPOCH, time.fromisoformat(got)) - EPOCH
        return Fraction(since // timedelta(microseconds=1), 10**6)
    if isinstance(got, float):
        return _number(got)
    return Fraction(got) if isinstance(got, (int, Decimal)) else got


def expected(value: Any, column: ColumnType) -> Any:
    if column.name == "float32" and isinstance(value, float):
        value = struct.unpack("f", struct.pack("f", value))[0]
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, str) and column.name == "uuid":
        return value.lower()
    if isinstance(value, str) and column.name == "time":
        return exact(value, column)
    return value


def _number(value: float) -> Any:
    return Fraction(value) if math.isfinite(value) else repr(value)


def fits(value: Any, column: ColumnType) -> Any:
    """Whether the column can hold the value, worked out without pyarrow."""
    if isinstance(value, str):
        return column.name == "string" or (column.name == "json" and is_json(value))
    if isinstance(value, float):
        return column.name == "float64" or not math.isfinite(value) or abs(value) < 2.0**128 * (1 - 2.0**-25)
    if column.name.startswith(("int", "uint")):
        signed, bits = column.name[0] == "i", int(column.name.partition("int")[2])
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
        return bool(low <= value < high)
    if column.name.startswith("timestamp"):
        per = 1000 if "[ms" in column.name else 10**6
        return bool((value * per).denominator == 1 and FIRST <= value < END)
    if column.name == "date":
        return bool(value.denominator == 1 and FIRST <= value * 86_400 < END)
    if column.name == "time":
        return bool((value * 10**6).denominator == 1 and 0 <= value < 86_400)
    if column.name.startswith("float"):
        return Fraction(_rounded(int(value), column)) == value
    return abs(value) < 10**16  # decimal(18,2) of an int


def _rounded(value: int, column: ColumnType) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0]) if column.name == "float32" else float(value)
