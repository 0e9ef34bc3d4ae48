"""What Python values become, one cell at a time: each silent conversion of pyarrow is an error here."""

import math
import struct
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Context, Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmirror_writer.errors import InvalidRowError
from openmirror_writer.rows import Needs, encode
from openmirror_writer.schema import declared_columns

WIDE = Context(prec=50)
BERLIN = ZoneInfo("Europe/Berlin")
MIDNIGHT = datetime(2024, 5, 6, tzinfo=UTC)
NAIVE = datetime(2024, 5, 6, 7, 8, 9, 123456)  # noqa: DTZ001
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def cell(kind: str | pa.DataType, *values: Any) -> list[Any]:
    """Return what the values become in a column of this type."""
    columns = declared_columns({"v": kind})
    needs = Needs(columns, (), frozenset({"v"}), "t")
    return pa.Table.from_batches(encode([{"v": value} for value in values], needs), columns).column("v").to_pylist()


def refused_row(kind: str | pa.DataType, *values: Any) -> int | None:
    """Return the row that is refused, None if all values are accepted."""
    try:
        cell(kind, *values)
    except InvalidRowError as error:
        return error.row
    return None


# Each line is one conversion that pyarrow makes without a word.
SILENT = [
    ("a fraction is cut", "int64", 1.5),
    ("a float becomes an int", "int32", 1.0),
    ("a Decimal becomes an int", "int64", Decimal(1)),
    ("a Decimal is cut to an int", "int64", Decimal("1.5")),
    ("a bool becomes an int", "int64", True),
    ("a datetime loses its time", "date", NAIVE),
    ("an instant loses its time", "date", MIDNIGHT),
    ("an int becomes a date", "date", 1),
    ("a float becomes a date", "date", 1.5),
    ("microseconds are cut to ms", pa.timestamp("ms"), NAIVE),
    ("an instant's microseconds are cut to ms", pa.timestamp("ms", tz="UTC"), NAIVE.replace(tzinfo=UTC)),
    ("nanoseconds are cut", "timestamp_ntz", pd.Timestamp("2024-01-01T00:00:00.000000001")),
    ("nanoseconds of an instant are cut", "timestamp", pd.Timestamp("2024-01-01T00:00:00.000000001", tz="UTC")),
    ("a naive datetime becomes an instant", "timestamp", NAIVE),
    ("an instant loses its zone", "timestamp_ntz", MIDNIGHT),
    ("an int becomes a timestamp", "timestamp", 1),
    ("an int becomes a timestamp without zone", "timestamp_ntz", 1),
    ("a float becomes a timestamp", "timestamp", 1.5),
    ("a Decimal becomes a timestamp", "timestamp_ntz", Decimal(1)),
    ("a date becomes a timestamp", "timestamp_ntz", date(2024, 1, 1)),
    ("a date becomes an instant", "timestamp", date(2024, 1, 1)),
    ("bytes become text", "string", b"x"),
    ("a bytearray becomes text", "string", bytearray(b"x")),
    ("a memoryview becomes text", "string", memoryview(b"x")),
    ("text becomes bytes", "binary", "x"),
    ("a bool becomes a double", "float64", True),
    ("a bool becomes a float", "float32", True),
    ("a bool of numpy becomes an int", "int64", np.bool_(True)),  # noqa: FBT003
    ("a tiny Decimal becomes zero", "decimal(38,0)", Decimal("5.7481149248871138651955276180208E-28")),
    ("39 digits overflow 128 bits", "decimal(38,34)", Decimal("3828.47603078815906002836979322301686926")),
    ("a float of numpy becomes an int", "int64", np.float32(1)),
    ("a large float becomes infinite", "float32", 1e300),
    ("a time of day becomes a number", "int64", time(1, 2)),
    ("an int becomes a bool", "bool", 1),
]
# pyarrow refuses these itself, or never gets them; they stay refused.
LOUD = [
    ("int to text", "string", 1),
    ("time of day to text", "string", time(1)),
    ("text to int", "int64", "1"),
    ("text to decimal", "decimal(5,2)", "1"),
    ("bool to decimal", "decimal(5,2)", True),
    ("float to decimal", "decimal(5,2)", 1.0),
    ("digits are rounded", "decimal(5,2)", Decimal("1.005")),
    ("too many digits", "decimal(5,2)", Decimal(1000)),
    ("too many digits of an int", "decimal(5,2)", 1000),
    ("a NaN Decimal", "decimal(5,2)", Decimal("NaN")),
    ("a signalling NaN", "decimal(5,2)", Decimal("sNaN")),
    ("an infinite Decimal", "decimal(5,2)", Decimal("-Infinity")),
    ("a huge Decimal", "decimal(5,2)", Decimal("1E+999999")),
    ("a tiny Decimal", "decimal(5,2)", Decimal("1E-999999")),
    ("a huge int to decimal", "decimal(38,0)", 10**38),
    ("Decimal to float", "float64", Decimal(1)),
    ("Fraction to float", "float64", Fraction(1, 2)),
    ("an inexact int to double", "float64", 2**53 + 1),
    ("an inexact int to float", "float32", 2**24 + 1),
    ("a huge int to double", "float64", 10**400),
    ("a longdouble with more digits", "float64", np.longdouble(1) + np.finfo(np.longdouble).eps),
    ("complex to float", "float64", 1j),
    ("NaN to int", "int64", math.nan),
    ("a lone surrogate", "string", "\ud800"),
    ("NaT", "timestamp", pd.NaT),
    ("NaT in a date", "date", pd.NaT),
    ("pandas' NA", "int64", pd.NA),
    ("datetime64", "timestamp_ntz", np.datetime64("2024-01-01")),
    ("timedelta", "int64", timedelta(1)),
    ("an instant before year 1", "timestamp", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
    ("an instant after year 9999", "timestamp", datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-2)))),
    ("a list", "string", ["x"]),
    ("a dict", "string", {}),
    ("an object", "string", object()),
]


@pytest.mark.parametrize(
    ("kind", "value"), [case[1:] for case in SILENT + LOUD], ids=[case[0] for case in SILENT + LOUD]
)
@pytest.mark.parametrize("place", [0, 1, 2], ids=["alone", "after NULL", "after a good value"])
def test_a_value_that_would_change_is_refused(kind: str | pa.DataType, value: Any, place: int) -> None:
    """Wherever it stands: pyarrow decides some things by the first value."""
    good = GOOD[str(kind).partition("(")[0]]
    before = [[], [None], [good]][place]
    with pytest.raises(InvalidRowError) as caught:
        cell(kind, *before, value)
    assert (caught.value.row, caught.value.column) == (len(before), "v")
    assert caught.value.value is value
    assert any(way_out in str(caught.value) for way_out in ("hand over", "declare", "lone surrogate", "holds"))


GOOD: dict[str, Any] = {
    "int32": 1,
    "int64": 1,
    "float32": 0.5,
    "float64": 0.5,
    "decimal": Decimal(1),
    "bool": True,
    "string": "x",
    "binary": b"x",
    "date": date(2024, 1, 1),
    "timestamp": MIDNIGHT,
    "timestamp_ntz": datetime(2024, 1, 1),  # noqa: DTZ001
    "timestamp[ms]": datetime(2024, 1, 1),  # noqa: DTZ001
    "timestamp[ms, tz=UTC]": MIDNIGHT,
}


@pytest.mark.parametrize("kind", INTS)
def test_an_int_at_the_edge_fits_and_one_beyond_is_refused(kind: str) -> None:
    bits = int(kind.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    assert cell(kind, low, None, high) == [low, None, high]
    for outside in (low - 1, high + 1):
        with pytest.raises(InvalidRowError, match=f"holds {low} to {high}"):
            cell(kind, low, outside)


class Size(IntEnum):
    SMALL = 3


class Colour(StrEnum):
    RED = "red"


class Oddity(datetime):
    """A subclass with an arithmetic of its own."""

    def __sub__(self, other: Any) -> Any:
        return timedelta(0)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int64", Size.SMALL, 3),
        ("int8", np.int64(5), 5),
        ("uint64", np.uint64(2**64 - 1), 2**64 - 1),
        ("string", Colour.RED, "red"),
        ("string", np.str_("x"), "x"),
        ("string", "😀\x00", "😀\x00"),
        ("bool", np.bool_(True), True),  # noqa: FBT003
        ("binary", bytearray(b"ab"), b"ab"),
        pytest.param("binary", memoryview(b"abcd")[::2], b"ac", id="a view with a step"),
        ("float64", 2**60, float(2**60)),
        ("float64", -(2**53), -(2.0**53)),
        ("float64", np.float32(0.1), float(np.float32(0.1))),
        ("float64", np.float64(0.1), 0.1),
        ("float64", math.inf, math.inf),
        ("float32", -math.inf, -math.inf),
        ("float32", 0.1, struct.unpack("f", struct.pack("f", 0.1))[0]),
        ("float32", 2**30, float(2**30)),
        ("decimal(5,2)", 7, Decimal("7.00")),
        ("decimal(5,2)", Decimal("1.5000000"), Decimal("1.50")),
        ("decimal(5,2)", Decimal("1E+2"), Decimal("100.00")),
        ("decimal(5,2)", Decimal("1." + "0" * 60), Decimal("1.00")),
        ("decimal(38,0)", 10**38 - 1, Decimal(10**38 - 1)),
        ("date", date.max, date.max),
        ("timestamp", datetime(2024, 7, 1, 12, tzinfo=BERLIN), datetime(2024, 7, 1, 10, tzinfo=UTC)),
        ("timestamp", datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1), datetime(2024, 10, 27, 1, 30, tzinfo=UTC)),
        (
            "timestamp",
            pd.Timestamp("2024-01-01T00:00:00.000001", tz="UTC"),
            datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        ),
        ("timestamp", Oddity(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)),
        ("timestamp_ntz", pd.Timestamp("2024-01-01"), datetime(2024, 1, 1)),  # noqa: DTZ001
        ("timestamp_ntz", datetime.min, datetime.min),  # noqa: DTZ901
        ("timestamp_ntz", datetime.max, datetime.max),  # noqa: DTZ901
        (pa.timestamp("ms"), NAIVE.replace(microsecond=123000), NAIVE.replace(microsecond=123000)),
    ],
    ids=repr,
)
def test_an_unusual_value_that_is_exact_goes_in(kind: str | pa.DataType, value: Any, expected: Any) -> None:
    got = cell(kind, None, value)
    assert got == [None, expected]
    assert type(got[1]) is type(expected)


def test_nan_stays_nan_in_a_float_column() -> None:
    assert math.isnan(cell("float64", math.nan)[0])
    assert math.isnan(cell("float32", np.float32("nan"))[0])


class NoOffset(tzinfo):
    """A zone that tells no offset: Python calls such a datetime naive."""

    def utcoffset(self, dt: datetime | None) -> None:
        return None

    dst = utcoffset

    def tzname(self, dt: datetime | None) -> None:
        return None


def test_a_datetime_whose_zone_has_no_offset_is_no_instant() -> None:
    with pytest.raises(InvalidRowError, match="with a zone"):
        cell("timestamp", datetime(2024, 1, 1, tzinfo=NoOffset()))


def test_datetimes_with_and_without_zone_in_one_column_are_refused() -> None:
    with pytest.raises(InvalidRowError) as caught:
        cell("timestamp_ntz", NAIVE, None, MIDNIGHT, NAIVE)
    assert caught.value.row == 2


def scaled(number: int, exponent: int) -> Decimal:
    return Decimal(number).scaleb(exponent, WIDE)


ZONES: Any = st.sampled_from([UTC, BERLIN, ZoneInfo("America/St_Johns"), timezone(timedelta(hours=14))])
MIDDLE = {"min_value": datetime(2, 1, 1), "max_value": datetime(9998, 1, 1)}  # noqa: DTZ001
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{
        kind: st.integers(0, 2 ** int(kind[4:]) - 1)
        if kind[0] == "u"
        else st.integers(-(2 ** (int(kind[3:]) - 1)), 2 ** (int(kind[3:]) - 1) - 1)
        for kind in INTS
    },
    "float32": st.floats(width=32, allow_nan=False),
    "float64": st.floats(allow_nan=False) | st.integers(),
    "decimal(9,3)": st.decimals() | st.integers(-(10**7), 10**7),
    "decimal(38,10)": st.decimals(allow_nan=False, allow_infinity=False, places=10),
    "decimal(38,0)": st.integers(-(10**39), 10**39) | st.builds(scaled, st.integers(), st.integers(-90, 30)),
    "bool": st.booleans(),
    "string": st.text(st.characters()),
    "binary": st.binary(),
    "date": st.dates(),
    "timestamp": st.datetimes(**MIDDLE, timezones=ZONES),
    "timestamp_ntz": st.datetimes(),
}
ANYTHING = st.one_of(st.none(), *VALUES.values())


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_whatever_is_accepted_reads_back_equal(kind: str, data: st.DataObject) -> None:
    """Values of the column's own kind, now and then one of any other."""
    values = data.draw(st.lists(st.one_of(st.none(), VALUES[kind], VALUES[kind], ANYTHING), min_size=1, max_size=20))
    bad = refused_row(kind, *values)
    if bad is not None:
        assert refused_row(kind, values[bad]) == 0
        values = values[:bad]
    for back, said in zip(cell(kind, *values), values, strict=True):
        # Python calls no two datetimes of different zones equal where one of them is an hour that comes twice.
        value = said.astimezone(UTC) if isinstance(said, datetime) and said.tzinfo else said
        if kind == "float32" and isinstance(value, float):
            assert back == struct.unpack("f", struct.pack("f", value))[0]
        else:
            assert back == value or (back != back and value != value)  # noqa: PLR0124 - NaN
        assert isinstance(back, bool) == isinstance(value, bool)
        assert isinstance(back, datetime) == isinstance(value, datetime)


def test_the_hour_that_comes_twice_is_told_by_its_fold() -> None:
    twice = datetime(1998, 10, 25, 2, tzinfo=BERLIN)
    assert cell("timestamp", twice, twice.replace(fold=1)) == [datetime(1998, 10, 25, n, tzinfo=UTC) for n in (0, 1)]


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_values_of_the_right_kind_are_never_refused(kind: str, data: st.DataObject) -> None:
    value: Any
    if kind.startswith("decimal"):
        precision, scale = map(int, kind[8:-1].split(","))
        value = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1).map(lambda n: scaled(n, -scale)))
    elif kind == "float64":
        value = data.draw(st.floats())
    elif kind == "string":
        value = data.draw(st.text())
    else:
        value = data.draw(VALUES[kind])
    assert len(cell(kind, value)) == 1
