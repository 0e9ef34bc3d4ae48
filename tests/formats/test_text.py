"""Delimited text: what is written comes back, other parsers read it the same, and options are checked."""

from __future__ import annotations

import csv
import io
import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import InvalidRowError, SchemaRefusedError
from openmirror_writer.formats import DelimitedText
from openmirror_writer.formats.text import columns_of, definition_of
from openmirror_writer.schema import ROW_MARKER, declared_columns
from tests.formats.dialects import DIALECTS, ENCODINGS, SPECIAL, VALUES, can_be_read_back

TEXTS = declared_columns({"id": "int64", "v": "string"})


def _batch(columns: pa.Schema, rows: Sequence[dict[str, Any]], markers: Sequence[int] | None = None) -> ChangeBatch:
    batch = pa.RecordBatch.from_pylist(list(rows), schema=columns)
    return ChangeBatch(batch, None if markers is None else pa.array(markers, pa.int32()))


def _texts(values: Sequence[str | None]) -> list[ChangeBatch]:
    return [_batch(TEXTS, [{"id": n, "v": value} for n, value in enumerate(values)])]


def _values(text: DelimitedText, data: bytes) -> list[str | None]:
    return text.read(data, TEXTS, "t/1").column("v").to_pylist()


# --------------------------------------------------------------------------------------------------- the round trip


@pytest.mark.rule("5.3", "5.4", "5.5", "5.6", "5.7", "L21", "L22", "L23", "L24", "L25", on=("producer", "mirror"))
@settings(max_examples=200)
@given(
    DIALECTS,
    st.lists(VALUES, min_size=1, max_size=5),
)
@example(DelimitedText(), ["", None, '"', "\\", '\\"', "a\r\nb", "\r", "\n"])
@example(DelimitedText(quote="", null_value="\\\\"), ["\\"])
@example(DelimitedText(quote="", escape='"', null_value="x"), ['"', ",", None, '",\r\n"'])
@example(DelimitedText(quote="", encoding="ascii"), ["¥", ""])
def test_every_value_comes_back_or_is_refused(text: DelimitedText, values: list[str | None]) -> None:
    refused = [row for row, value in enumerate(values) if not can_be_read_back(value, text)]
    null_id = text.null_value in {"0", "4"} and not text.quote  # then the ids or markers are the text of NULL
    assume(not null_id)
    if refused:
        with pytest.raises(InvalidRowError) as caught:
            text.encode(TEXTS, _texts(values), table="t", keys=["id"])
        error = caught.value
        assert (error.row, error.column, error.value) == (refused[0], "v", values[refused[0]])
        assert (error.table, error.key, error.type) == ("t", {"id": refused[0]}, "string")
    else:
        assert _values(text, text.encode(TEXTS, _texts(values))) == values


def _round_trips(char: str, encoding: str) -> bool:
    try:
        return char.encode(encoding).decode(encoding) == char
    except UnicodeError:
        return False


@pytest.mark.rule("5.8", "L26", on=("producer", "mirror"))
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("options", [{}, {"quote": "", "null_value": "-"}], ids=["quoted", "escaped"])
def test_the_characters_of_an_encoding_come_back(encoding: str, options: dict[str, Any]) -> None:
    every = [
        chr(code) for code in [*range(0x180), *range(0x180, 0xD800, 7), 0x1F600] if _round_trips(chr(code), encoding)
    ]
    assert len(every) >= 128
    values = ["".join(every[n : n + 50]) for n in range(0, len(every), 50)]
    text = DelimitedText(encoding=encoding, **options)
    assert _values(text, text.encode(TEXTS, _texts(values))) == values


COLUMNS = declared_columns(
    {
        **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")},
        "float32": "float32",
        "float64": "float64",
        "bool": "bool",
        "binary": "binary",
        "date": "date",
        "timestamp_ntz": "timestamp_ntz",
        "timestamp": "timestamp",
        "ms": pa.timestamp("ms"),
        "string": "string",
    }
)
AWARE = st.datetimes(timezones=st.just(UTC))
ROW = st.fixed_dictionaries(
    {
        **{f"int{bits}": st.none() | st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)},
        **{f"uint{bits}": st.none() | st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32)},
        "float32": st.none() | st.floats(width=32, allow_nan=False, allow_infinity=False),
        "float64": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "bool": st.none() | st.booleans(),
        "binary": st.none() | st.binary(max_size=5),
        "date": st.none() | st.dates(),
        "timestamp_ntz": st.none() | st.datetimes(),
        "timestamp": st.none() | AWARE,
        "ms": st.none()
        | st.datetimes().map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
        "string": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    }
)


def _bits(value: object) -> object:
    return struct.pack("d", value) if isinstance(value, float) else value


@settings(max_examples=25)
@given(
    st.sampled_from([DelimitedText(), DelimitedText(quote="'", escape="/", null_value="NULL", encoding="utf-16")]),
    st.lists(st.tuples(ROW, st.sampled_from([0, 1, 2, 4])), min_size=1, max_size=4),
    st.integers(0, 4),
)
def test_values_of_all_types_come_back_bit_for_bit(
    text: DelimitedText, rows: list[tuple[dict[str, Any], int]], cut: int
) -> None:
    whole = _batch(COLUMNS, [row for row, _ in rows], [marker for _, marker in rows])
    data = text.encode(COLUMNS, [whole.slice(0, cut), whole.slice(min(cut, len(rows)))])  # slices, empty ones too
    read = text.read(data, columns_of(definition_of(COLUMNS), file="m"), "t/1")
    for (row, marker), back in zip(rows, read.to_pylist(), strict=True):
        instant = row["timestamp"]
        expected = {**row, "timestamp": instant and instant.replace(tzinfo=None), ROW_MARKER: marker}
        assert {name: _bits(value) for name, value in back.items()} == {name: _bits(v) for name, v in expected.items()}


def test_extremes_come_back() -> None:
    columns = declared_columns({"i": "int64", "f": "float64", "s": "float32", "d": "date", "t": "timestamp_ntz"})
    low: dict[str, Any] = {"i": -(1 << 63), "f": -1.7976931348623157e308, "s": 1e-45, "d": date.min, "t": datetime.min}  # noqa: DTZ901
    high = {"i": (1 << 63) - 1, "f": 5e-324, "s": 3.4028234663852886e38, "d": date.max, "t": datetime.max}  # noqa: DTZ901
    batch = _batch(columns, [low, high])
    read = DelimitedText().read(DelimitedText().encode(columns, [batch]), columns, "t/1")
    assert read.drop_columns(ROW_MARKER).to_batches() == [batch.rows]


def test_an_instant_comes_back_as_its_date_and_time_in_utc() -> None:
    columns = declared_columns({"at": "timestamp"})
    moment = datetime(2025, 6, 17, 14, 30, tzinfo=UTC)
    data = DelimitedText().encode(columns, [_batch(columns, [{"at": moment}])])
    assert b"2025-06-17 14:30:00.000000," in data
    read = DelimitedText().read(data, columns, "t/1")
    assert (read.schema.field("at").type, read["at"][0].as_py()) == (pa.timestamp("us"), moment.replace(tzinfo=None))


# ---------------------------------------------------------------------------------------------------- the file itself


@pytest.mark.rule("5.1", "6.1", "L19", "L32", "L33", "L35")
def test_the_bytes_of_a_default_file_are_known() -> None:
    columns = declared_columns({"id": "int32 not null", "name": "string", "on": "bool", "at": "timestamp_ntz"})
    rows: list[dict[str, Any]] = [
        {"id": 1, "name": 'say "hi"', "on": True, "at": datetime(2025, 6, 17, 14, 30)},  # noqa: DTZ001
        {"id": 2, "name": "", "on": None, "at": None},
        {"id": 3, "name": None, "on": False, "at": None},
    ]
    data = DelimitedText().encode(columns, [_batch(columns, rows, [4, 1, 2])])
    assert data == (
        b"id,name,on,at,__rowMarker__\r\n"
        b'1,"say \\"hi\\"",true,2025-06-17 14:30:00.000000,4\r\n'
        b'2,"",,,1\r\n'
        b"3,,false,,2\r\n"
    )


def test_rows_without_markers_get_marker_0() -> None:
    text = DelimitedText()
    data = text.encode(TEXTS, _texts(["a"]))
    assert text.read(data, TEXTS, "t/1")[ROW_MARKER].to_pylist() == [0]


@pytest.mark.rule("4.8")
@pytest.mark.parametrize("batches", [[], [_batch(TEXTS, [])]])
def test_text_of_no_rows_is_refused(batches: list[ChangeBatch]) -> None:
    with pytest.raises(InvalidRowError, match="without a row is never published"):
        DelimitedText().encode(TEXTS, batches)


def test_rows_are_joined_in_their_order_across_chunks() -> None:
    columns = declared_columns({"id": "int64"})
    batches = [
        ChangeBatch(pa.record_batch({"id": pa.array(range(n, n + 9_000))}, schema=columns))
        for n in range(0, 90_000, 9_000)
    ]
    text = DelimitedText()
    assert text.read(text.encode(columns, batches), columns, "t/1")["id"].to_pylist() == list(range(90_000))


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_the_same_rows_give_the_same_bytes(compression: Any) -> None:
    text = DelimitedText(compression=compression)
    assert text.encode(TEXTS, _texts(["a"])) == text.encode(TEXTS, _texts(["a"]))


@pytest.mark.rule("2.18", "4.1", "L4", on=("producer", "mirror"))
@pytest.mark.parametrize(("compression", "first"), [("gzip", b"\x1f\x8b"), ("zstd", b"\x28\xb5\x2f\xfd")])
def test_the_first_bytes_of_a_compressed_file_tell_its_compression(compression: Any, first: bytes) -> None:
    data = DelimitedText(compression=compression).encode(TEXTS, _texts(["a"]))
    assert data.startswith(first)
    assert _values(DelimitedText(), data) == ["a"]


def test_utf_16_begins_with_one_byte_order_mark() -> None:
    data = DelimitedText(encoding="utf-16").encode(TEXTS, _texts(["a", "b"]))
    assert data[:2] in {b"\xff\xfe", b"\xfe\xff"}
    assert "\ufeff" not in data.decode("utf-16")


# ------------------------------------------------------------------------------------------------------ other parsers

ORDINARY = st.builds(
    DelimitedText,
    column_separator=st.sampled_from([",", ";", "|", "\t"]),
    row_separator=st.sampled_from(["\r\n", "\n", "\r"]),
    quote=st.sampled_from(['"', "'"]),
    escape=st.sampled_from(["\\", "/", '"']),
    null_value=st.just("NULL"),  # with "N/A" and the escape "/" pyarrow itself reads the text NA
)
CELLS = st.lists(
    st.text(st.sampled_from(SPECIAL.replace("\0", "").replace("\ufeff", "")), max_size=6), min_size=1, max_size=4
)


@settings(max_examples=50)
@given(ORDINARY, CELLS)
def test_the_csv_module_of_python_reads_the_same(text: DelimitedText, values: list[str]) -> None:
    file = io.StringIO(text.encode(TEXTS, _texts(values)).decode(), newline="")
    options: dict[str, Any] = (
        {"doublequote": True} if text.doubles_quotes else {"doublequote": False, "escapechar": text.escape}
    )
    rows = list(csv.reader(file, delimiter=text.column_separator, quotechar=text.quote, strict=True, **options))
    assert rows == [["id", "v", ROW_MARKER], *([str(n), value, "0"] for n, value in enumerate(values))]


@settings(max_examples=50)
@given(ORDINARY, CELLS)
def test_pyarrow_reads_the_same(text: DelimitedText, values: list[str]) -> None:
    data = text.encode(TEXTS, _texts([None, *values]))
    escape: Any = False if text.doubles_quotes else text.escape
    table = pcsv.read_csv(
        pa.BufferReader(data),  # type: ignore[arg-type] # a file of Arrow does as well
        parse_options=pcsv.ParseOptions(
            delimiter=text.column_separator, quote_char=text.quote, escape_char=escape, newlines_in_values=True
        ),
        convert_options=pcsv.ConvertOptions(
            null_values=["NULL"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            column_types={"v": pa.string()},
        ),
    )
    assert table.column_names == ["id", "v", ROW_MARKER]
    assert table["v"].to_pylist() == [None, *values]


# ------------------------------------------------------------------------------------------------------------ options


@pytest.mark.rule("5.3", "5.4", "5.5", "5.6", "5.7", "5.8")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"column_separator": ":"}, "column_separator=':' is not one that the service reads"),
        ({"row_separator": "\n\r"}, "row_separator='\\\\n\\\\r' is not one"),
        ({"quote": "`"}, "quote='`' is not one"),
        ({"quote": None}, "quote=None is not one"),
        ({"escape": "'"}, 'escape="\'" is not one'),
        ({"null_value": None}, "null_value=None must be text"),
        ({"null_value": "a,b"}, "null_value='a,b' must be text without separators"),
        ({"null_value": "a\nb"}, "without separators, newlines and quotes"),
        ({"null_value": '"'}, "without separators, newlines and quotes"),
        ({"null_value": "'", "quote": "'"}, "without separators, newlines and quotes"),
        ({"null_value": '""', "quote": ""}, "without separators, newlines and quotes"),
        ({"null_value": "N\\", "quote": ""}, "ends in the escape"),
        ({"encoding": "utf-9"}, "encoding='utf-9' is no known encoding"),
        ({"encoding": "hex"}, "encoding='hex' is no known encoding"),
        ({"encoding": "unicode_escape"}, "is no known encoding"),
        ({"encoding": "idna"}, "is no known encoding"),
        ({"encoding": "a\0"}, "is no known encoding"),
        ({"encoding": None}, "encoding=None is no known encoding"),
        ({"encoding": "ascii", "null_value": "größe"}, "encoding='ascii' cannot hold the characters"),
        ({"extension": ".tsv"}, "extension='.tsv' must be letters and digits"),
        ({"extension": ""}, "extension='' must be letters"),
        ({"extension": None}, "extension=None must be letters"),
        ({"extension": "parquet"}, "not 'parquet'"),
        ({"compression": "snappy"}, "has no documented form for text"),
        ({"compression": "brotli"}, "compression='brotli' is not one of text; use one of: none, gzip, zstd"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaRefusedError, match=message):
        DelimitedText(**options)


def test_the_escape_may_end_the_null_text_where_it_is_not_read_as_one() -> None:
    text = DelimitedText(null_value="N\\")
    assert _values(text, text.encode(TEXTS, _texts([None, "N\\"]))) == [None, "N\\"]


# ------------------------------------------------------------------------------------------------------------ columns


@pytest.mark.parametrize(
    ("kind", "way_out"),
    [("decimal(18,2)", "use Parquet, or declare it string"), ("uint64", "declare it int64 if its values fit")],
)
def test_types_without_a_data_type_are_refused_with_the_ways_out(kind: str, way_out: str) -> None:
    columns = declared_columns({"id": "int64", "a": kind})
    with pytest.raises(SchemaRefusedError, match=way_out) as caught:
        DelimitedText().check_columns(columns)
    assert (caught.value.column, caught.value.type) == ("a", kind)


NAMES = [
    "id",
    "a,b",
    'say "x"',
    "it's",
    "a\\b",
    "a/b",
    "two\r\nlines",
    " space",
    "\ufefffirst",
    "größe",
    "N/A",
    "a;b|c\td",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quote", ['"', "'", ""])
@pytest.mark.parametrize("escape", ["\\", "/", '"', ""])
def test_a_header_name_comes_back_or_is_refused(name: str, quote: str, escape: str) -> None:
    text = DelimitedText(quote=quote, escape=escape, null_value="N/A")
    columns = declared_columns({name: "int64"})
    unwritable = set(quote) if quote else {",", "\r", "\n"}
    refused = (not escape and unwritable & set(name)) or (not quote and name in {" space", "\ufefffirst", "N/A"})
    batch = [_batch(columns, [{name: 7}])]
    if refused:
        with pytest.raises(SchemaRefusedError) as caught:
            text.encode(columns, batch)
        assert caught.value.column == name
    else:
        assert text.read(text.encode(columns, batch), columns, "t/1")[name].to_pylist() == [7]


def test_a_header_name_outside_of_the_encoding_is_refused() -> None:
    with pytest.raises(SchemaRefusedError, match="characters that shift_jis lacks") as caught:
        DelimitedText(encoding="shift_jis").check_columns(declared_columns({"¥": "int64"}))
    assert caught.value.column == "¥"


def test_a_header_that_looks_like_a_compressed_file_is_refused() -> None:
    columns = declared_columns({"(µ/ý": "int64"})
    with pytest.raises(SchemaRefusedError, match="begins with the bytes of a compressed file"):
        DelimitedText(encoding="windows-1252").encode(columns, [_batch(columns, [{"(µ/ý": 1}])])


# --------------------------------------------------------------------------------------------------------- bad values


def _refused(text: DelimitedText, kind: str, value: object, array: Any = None) -> InvalidRowError:
    columns = declared_columns({"id": "int64", "v": kind})
    values = array if array is not None else pa.array([None, value], columns.field("v").type)
    rows = pa.RecordBatch.from_arrays([pa.array([6, 7]), values], schema=columns)
    first = _batch(columns, [{"id": 5}])
    with pytest.raises(InvalidRowError) as caught:
        text.encode(columns, [first, ChangeBatch(rows)], table="t", keys=["id"])
    error = caught.value
    assert (error.table, error.row, error.key, error.column, error.type) == ("t", 2, {"id": 7}, "v", kind)
    with pytest.raises(InvalidRowError) as early:
        text.check_rows(ChangeBatch(rows), table="t", keys=["id"], first_row=1)
    assert str(early.value) == str(error)
    return error


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinities_are_refused(kind: str, value: float) -> None:
    assert "no form for NaN and infinities" in _refused(DelimitedText(), kind, value).message


@pytest.mark.parametrize("value", [date.min, date.max, None])
def test_years_of_four_digits_come_back(value: date | None) -> None:
    columns = declared_columns({"v": "date"})
    data = DelimitedText().encode(columns, [_batch(columns, [{"v": value}])])
    assert DelimitedText().read(data, columns, "t/1").column("v").to_pylist() == [value]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("date", -719_163),
        ("date", 2_932_897),
        ("timestamp", 253_402_300_800_000_000),
        ("timestamp_ntz", -62_135_596_800_000_001),
        ("timestamp_ntz", (1 << 63) - 1),
    ],
)
def test_years_beyond_four_digits_are_refused(kind: str, value: int) -> None:
    arrow = declared_columns({"v": kind}).field("v").type
    array = pa.array([None, value], pa.int32() if kind == "date" else pa.int64()).view(arrow)
    assert "years 0001 to 9999" in _refused(DelimitedText(), kind, None, array).message


def test_milliseconds_beyond_the_range_of_microseconds_are_refused() -> None:
    columns = declared_columns({"v": pa.timestamp("ms")})
    array = pa.array([(1 << 63) - 1]).view(pa.timestamp("ms"))
    with pytest.raises(InvalidRowError, match="years 0001 to 9999"):
        DelimitedText().encode(columns, [ChangeBatch(pa.RecordBatch.from_arrays([array], schema=columns))])


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        (DelimitedText(encoding="ascii"), "ä", "ascii lacks a character"),
        (DelimitedText(encoding="shift_jis"), "¥", "shift_jis lacks a character"),  # it would become a backslash
        (DelimitedText(quote="", null_value="N/A"), "N/A", "without a quote the text 'N/A' is NULL"),
        (DelimitedText(quote="", null_value=""), "", "without a quote the text '' is NULL"),
        (DelimitedText(quote="", null_value="\\\\"), "\\", "without a quote the text"),
        (DelimitedText(quote="", escape="", null_value="-"), "a,b", "neither quote= nor escape= protects"),
        (DelimitedText(quote="", escape="", null_value="-"), "a\nb", "neither quote= nor escape= protects"),
        (DelimitedText(quote="", escape="", row_separator="\n", null_value="-"), "a\rb", "neither quote="),
        (DelimitedText(escape=""), 'a"b', "there is no escape="),
    ],
)
def test_texts_that_cannot_be_told_apart_are_refused(text: DelimitedText, value: str, reason: str) -> None:
    assert reason in _refused(text, "string", value).message


@pytest.mark.parametrize(("kind", "value", "null"), [("int64", 12, "12"), ("bool", True, "true"), ("binary", b"", "")])
def test_other_values_that_are_the_null_text_are_refused_without_a_quote_and_quoted_with_one(
    kind: str, value: object, null: str
) -> None:
    assert "is NULL" in _refused(DelimitedText(quote="", null_value=null), kind, value).message
    columns = declared_columns({"v": kind})
    text = DelimitedText(null_value=null)
    data = text.encode(columns, [_batch(columns, [{"v": value}, {"v": None}])])
    assert text.read(data, columns, "t/1")["v"].to_pylist() == [value, None]


def test_a_marker_that_is_the_null_text_is_refused_without_a_quote() -> None:
    with pytest.raises(InvalidRowError) as caught:
        DelimitedText(quote="", null_value="4").encode(TEXTS, [_batch(TEXTS, [{"id": 1}], [4])])
    assert (caught.value.column, caught.value.value) == (ROW_MARKER, 4)


def test_the_first_bad_row_is_named_whatever_its_column() -> None:
    columns = declared_columns({"a": "float64", "b": "string"})
    batch = _batch(columns, [{"a": 1.0, "b": '"'}, {"a": float("nan"), "b": "a"}])
    with pytest.raises(InvalidRowError) as caught:
        DelimitedText(escape="").encode(columns, [batch])
    assert (caught.value.row, caught.value.column) == (0, "b")
