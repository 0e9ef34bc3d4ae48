"""Reading delimited text that others wrote, whole, cut off or wrong."""

from __future__ import annotations

import gzip
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import ApplyError, OpenMirrorError, UnknownPositionError
from openmirror_writer.formats import DelimitedText
from openmirror_writer.schema import ROW_MARKER, declared_columns

COLUMNS = declared_columns({"id": "int32", "v": "string"})
PLAIN = DelimitedText()
DOUBLING = DelimitedText(escape='"', null_value="NULL")
BARE = DelimitedText(quote="", null_value="\\N", row_separator="\n")
LITERAL = DelimitedText(quote="", escape="", null_value="-", row_separator="\n")


def _rows(data: bytes, text: DelimitedText = PLAIN, columns: pa.Schema = COLUMNS) -> list[dict[str, Any]]:
    return text.read(data, columns, "t/1").to_pylist()


def _values(data: bytes, text: DelimitedText = PLAIN) -> list[str | None]:
    end = text.row_separator.encode()
    return text.read(b"v" + end + data, pa.schema([pa.field("v", pa.string())]), "t/1")["v"].to_pylist()


# ---------------------------------------------------------------------------------------------------------- columns


@pytest.mark.rule("5.1", "6.1", "L19", "L33", "L35")
def test_columns_are_found_by_name_and_come_in_the_order_of_the_definition() -> None:
    read = PLAIN.read(b"__rowMarker__,v,id\r\n4,a,1\r\n", COLUMNS, "t/1")
    assert read.schema == pa.schema([*COLUMNS, pa.field(ROW_MARKER, pa.int32())])
    assert read.to_pylist() == [{"id": 1, "v": "a", ROW_MARKER: 4}]


def test_a_file_without_markers_has_none() -> None:
    assert _rows(b"id,v\r\n1,a\r\n") == [{"id": 1, "v": "a"}]


@pytest.mark.rule("7.2", "L57")
def test_a_column_that_the_header_lacks_is_null() -> None:
    assert _rows(b"id\r\n1\r\n") == [{"id": 1, "v": None}]


@pytest.mark.rule("2.16", "7.3")
def test_a_column_that_may_not_be_null_may_not_be_lacking() -> None:
    with pytest.raises(ApplyError, match="its IsNullable is false") as caught:
        _rows(b"v\r\na\r\n", columns=declared_columns({"id": "int32 not null", "v": "string"}))
    assert (caught.value.file, caught.value.row, caught.value.column) == ("t/1", 0, "id")


def test_a_null_where_none_may_be_is_refused_with_its_row() -> None:
    with pytest.raises(ApplyError, match="its IsNullable is false") as caught:
        _rows(b"id,v\r\n1,a\r\n,b\r\n", columns=declared_columns({"id": "int32 not null", "v": "string"}))
    assert (caught.value.row, caught.value.column) == (1, "id")


@pytest.mark.rule("5.13", "7.7", "L27")
def test_a_column_that_the_definition_lacks_is_refused() -> None:
    with pytest.raises(ApplyError, match="'extra' is not in SchemaDefinition") as caught:
        _rows(b"id,v,extra\r\n1,a,x\r\n")
    assert (caught.value.file, caught.value.column) == ("t/1", "extra")


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(UnknownPositionError, match="'id' 2 times"):
        _rows(b"id,v,id\r\n1,a,2\r\n")


# ------------------------------------------------------------------------------------------------------------ cells


def test_quoted_numbers_are_numbers() -> None:
    assert _rows(b'"id","v"\r\n"1","a"\r\n') == [{"id": 1, "v": "a"}]


def test_a_last_row_without_a_separator_is_read() -> None:
    assert _rows(b"id,v\r\n1,a") == [{"id": 1, "v": "a"}]


def test_a_byte_order_mark_is_skipped() -> None:
    assert _rows(b"\xef\xbb\xbfid,v\r\n1,a\r\n") == [{"id": 1, "v": "a"}]


def test_an_empty_line_of_a_table_of_one_column_is_a_row() -> None:
    assert _values(b"\r\na\r\n") == [None, "a"]


@pytest.mark.rule("5.7", "L25")
def test_a_quoted_null_text_is_no_null() -> None:
    assert _values(b'NULL\r\n"NULL"\r\n""\r\n', DOUBLING) == [None, "NULL", ""]


def test_an_empty_cell_is_empty_text_where_null_has_another_text() -> None:
    assert _values(b"\r\n", DOUBLING) == [""]


def test_an_escape_outside_of_quotes_is_an_ordinary_character() -> None:
    assert _values(b'C:\\temp\\new\r\n\\N\r\n"a\\\\b"\r\n') == ["C:\\temp\\new", "\\N", "a\\b"]


def test_newlines_in_quotes_belong_to_the_value() -> None:
    assert _values(b'"a\nb\rc\r\nd"\r\n"\r\n"\r\n') == ["a\nb\rc\r\nd", "\r\n"]


def test_the_null_text_may_hold_the_escape() -> None:
    assert _values(b"\\N\n\\\\N\na\\,b\nc\\\nd\n", BARE) == [None, "\\N", "a,b", "c\nd"]


@pytest.mark.rule("5.5", "L23")
def test_quotes_are_ordinary_characters_where_there_is_no_quote() -> None:
    assert _values(b'"a"\n"\n""\n-\n', LITERAL) == ['"a"', '"', '""', None]


@pytest.mark.rule("5.3", "L21")
def test_rows_may_end_in_carriage_returns() -> None:
    assert _values(b'a\r"b\nc"\r', DelimitedText(row_separator="\r")) == ["a", "b\nc"]


# ---------------------------------------------------------------------------------------------------- what is refused

MALFORMED = [
    (PLAIN, b'1,"a"b\r\n', "text behind the closing quote"),
    (PLAIN, b'1,a"b\r\n', "a quote inside a bare cell"),
    (PLAIN, b'1,"a""b"\r\n', "a doubled quote where the escape is another character"),
    (PLAIN, b'1,"a\\tb"\r\n', "an escape before a character that needs none"),
    (PLAIN, b'1,"a\r\n', "a quote that is not closed"),
    (PLAIN, b"1,a\nb\r\n", "a bare newline that does not separate rows"),
    (PLAIN, b"1,a\rb\r\n", "a bare carriage return that does not separate rows"),
    (DOUBLING, b'1,"a\\"b"\r\n', "an escaped quote where quotes are doubled"),
    (DelimitedText(escape=""), b'1,"a""b"\r\n', "a doubled quote without an escape"),
    (BARE, b"1,a\\tb\n", "an escape before a character that needs none, without quotes"),
    (LITERAL, b"1,a\rb\n", "a carriage return without quotes"),
]


@pytest.mark.parametrize(("text", "row", "what"), MALFORMED, ids=[what for _, _, what in MALFORMED])
def test_a_malformed_cell_is_refused_with_file_row_and_column(text: DelimitedText, row: bytes, what: str) -> None:
    end = text.row_separator.encode()
    with pytest.raises(ApplyError, match="mend FileFormatTypeProperties") as caught:
        _rows(b"id,v" + end + b"7,x" + end + row + b"8,y" + end, text)
    assert (caught.value.file, caught.value.row, caught.value.column) == ("t/1", 1, "v")
    assert caught.value.value.startswith(row.split(b",", 1)[1].decode()[:3])


def test_pyarrow_takes_malformed_cells_without_a_word() -> None:
    """The reason for a grammar of our own in front of its parser."""
    taken = [row for text, row, _ in MALFORMED if text is PLAIN and _pyarrow_takes(row)]
    assert len(taken) >= 4


def _pyarrow_takes(row: bytes) -> bool:
    try:
        options = pcsv.ParseOptions(escape_char="\\", newlines_in_values=True)
        pcsv.read_csv(pa.BufferReader(b"id,v\r\n" + row), parse_options=options)  # type: ignore[arg-type] # it does
    except pa.ArrowInvalid:
        return False
    return True


@pytest.mark.rule("5.1", "L19")
@pytest.mark.parametrize("data", [b"id,v\n1,a\n", b'id,"v"x\r\n1,a\r\n', b'"id\r\n'])
def test_a_header_that_cannot_be_read_is_refused(data: bytes) -> None:
    with pytest.raises(UnknownPositionError, match="in the header a cell cannot be read") as caught:
        _rows(data)
    assert caught.value.file == "t/1"


@pytest.mark.parametrize(("row", "cells"), [(b"2\r\n", 1), (b"2,b,c\r\n", 3), (b"\r\n", 1), (b'2,"b\r\nc",d\r\n', 3)])
def test_a_row_of_another_width_is_refused(row: bytes, cells: int) -> None:
    with pytest.raises(ApplyError, match=f"has {cells} cells and the header 2") as caught:
        _rows(b'id,v\r\n1,"a\r\n,b"\r\n' + row + b"3,d\r\n")
    assert (caught.value.file, caught.value.row) == ("t/1", 1)


@pytest.mark.parametrize(
    ("kind", "data_type", "good", "bad"),
    [
        ("int16", "Int16", b"-32768", b"32768"),
        ("int32", "Int32", b"007", b"0x10"),
        ("int64", "Int64", b"9223372036854775807", b"9223372036854775808"),
        ("int32", "Int32", b"1", b"1.0"),
        ("int32", "Int32", b"1", b" 1"),
        ("int32", "Int32", b"1", b'""'),
        ("float64", "Double", b"1e300", b"1e999"),
        ("float64", "Double", b"-1.5", b"NaN"),
        ("float32", "Single", b"3.14", b"1e39"),
        ("float32", "Single", b"1", b"-Infinity"),
        ("bool", "Boolean", b"TRUE", b"yes"),
        ("date", "IDate", b"2025-06-17", b"2025-02-29"),
        ("date", "IDate", b"2025-06-17", b"2025-06-17 00:00:00"),
        ("timestamp_ntz", "DateTime", b"2025-06-17T14:30:00", b"2025-06-17 14:30:00Z"),
        ("timestamp_ntz", "DateTime", b"2025-06-17 14:30:00.123456", b"2025-06-17 14:30:00.1234567"),
        ("binary", "ByteArray", b"00FFaB", b"abc"),
        ("binary", "ByteArray", b"", b"zz"),
    ],
)
def test_a_text_that_is_no_value_of_its_type_is_refused(kind: str, data_type: str, good: bytes, bad: bytes) -> None:
    columns = declared_columns({"a": kind})
    PLAIN.read(b"a\r\n" + good + b"\r\n", columns, "t/1")
    cells = [good] * 9 + [bad] + [good] * 3 + [bad]
    with pytest.raises(ApplyError, match="this text is no value of the column 'a'") as caught:
        PLAIN.read(b"a\r\n" + b"\r\n".join(cells) + b"\r\n", columns, "t/1")
    error = caught.value
    assert (error.file, error.row, error.column, error.type) == ("t/1", 9, "a", data_type)
    assert error.value == bad.decode().strip('"')


@pytest.mark.parametrize("rows", [b"\n1,a\n", b"1,a\n\n", b"1,a\\\n\n\n2,b\n"])
def test_an_empty_row_is_refused(rows: bytes) -> None:
    with pytest.raises(ApplyError, match="has 1 cells and the header 2"):
        _rows(b"id,v\n" + rows, BARE)


def test_an_empty_line_at_the_end_of_a_value_is_no_empty_row() -> None:
    assert _rows(b"id,v\n1,a\\\n\n2,b\n", BARE) == [{"id": 1, "v": "a\n"}, {"id": 2, "v": "b"}]
    assert _rows(b'id,v\r\n1,"\r\n\r\n"\r\n') == [{"id": 1, "v": "\r\n\r\n"}]


def test_a_marker_that_is_no_integer_is_refused() -> None:
    with pytest.raises(ApplyError, match="no value of the column '__rowMarker__'") as caught:
        _rows(b"id,__rowMarker__\r\n1,U\r\n")
    assert (caught.value.row, caught.value.column, caught.value.value) == (0, ROW_MARKER, "U")


@pytest.mark.rule("4.8")
@pytest.mark.parametrize("data", [b"", b"id,v", b"id,v\r\n"])
def test_text_without_a_row_is_refused(data: bytes) -> None:
    with pytest.raises(UnknownPositionError, match="no row below its header") as caught:
        _rows(data)
    assert caught.value.file == "t/1"


@pytest.mark.rule("5.8", "L26")
@pytest.mark.parametrize(("encoding", "data"), [("UTF-8", b"id,v\r\n1,\xff\r\n"), ("utf-16", b"\xff\xfei\x00d\x00v")])
def test_text_of_another_encoding_is_refused(encoding: str, data: bytes) -> None:
    with pytest.raises(UnknownPositionError, match=f"no text in {encoding}") as caught:
        _rows(data, DelimitedText(encoding=encoding))
    assert caught.value.file == "t/1"


SNAPPY_FRAMES = b"\xff\x06\x00\x00sNaPpY" + b"\x01\x05\x00\x00abcda"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(b"id,v\r\n1,a\r\n", mtime=0)[:-4], "this gzip file is damaged"),
        (pa.Codec("zstd").compress(b"id,v\r\n1,a\r\n", asbytes=True)[:-4], "this zstd file is damaged"),
        (SNAPPY_FRAMES, "compressed with Snappy"),
    ],
)
def test_damaged_compression_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(UnknownPositionError, match=message) as caught:
        _rows(data)
    assert caught.value.file == "t/1"


# ------------------------------------------------------------------------------------------------------- any damage


@given(st.sampled_from([PLAIN, DOUBLING, BARE, LITERAL]), st.data())
def test_a_file_that_is_cut_off_before_its_last_row_never_loses_a_row_in_silence(
    text: DelimitedText, data: st.DataObject
) -> None:
    rows = pa.RecordBatch.from_pylist([{"id": n, "v": f"v{n}"} for n in range(3)], schema=COLUMNS)
    whole = text.encode(COLUMNS, [ChangeBatch(rows)])
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    try:
        read = text.read(cut, COLUMNS, "t/1")
    except OpenMirrorError:
        return
    ends = cut.count(text.row_separator.encode()) - 1
    assert read.num_rows == ends + (not cut.endswith(text.row_separator.encode()))
    assert read.to_pylist()[:-1] == text.read(whole, COLUMNS, "t/1").to_pylist()[: read.num_rows - 1]


@given(st.sampled_from([PLAIN, DOUBLING, BARE]), st.text('a1",\\\r\n-N', max_size=12))
def test_whatever_stands_in_a_file_is_a_typed_error_or_is_read_and_written_back(text: DelimitedText, body: str) -> None:
    try:
        values = _values(body.encode(), text)
    except OpenMirrorError:
        return
    columns = pa.schema([pa.field("v", pa.string())])
    again = text.encode(columns, [ChangeBatch(pa.RecordBatch.from_pydict({"v": values}, schema=columns))])
    assert text.read(again, columns, "t/1")["v"].to_pylist() == values
