"""Arrow rows: columns by name, casts without loss only, the place of a fault in the whole stream."""

import mmap
import random
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmirror_writer.errors import InvalidRowError, SchemaRefusedError
from openmirror_writer.rows import (
    CHUNK_ROWS,
    Needs,
    check_batch,
    encode,
    encode_keys,
    is_arrow,
    marked_stream,
)
from openmirror_writer.schema import declared_columns

COLUMNS = declared_columns({"id": "int64", "name": "string"})
UPSERT = Needs(COLUMNS, ("id",), frozenset(COLUMNS.names), "orders")
DELETE = Needs(COLUMNS, ("id",), frozenset({"id"}), "orders")
NAIVE = datetime(2024, 5, 6, 7, 8, 9, 123456)  # noqa: DTZ001
DAY_MS = 86_400_000


def table(**columns: Any) -> pa.Table:
    return pa.table({"id": [1, 2], "name": ["a", None]} | columns)


def encoded(rows: object, needs: Needs = UPSERT) -> list[dict[str, Any]]:
    return [line for batch in encode(rows, needs) for line in batch.to_pylist()]


def refusal(rows: object, needs: Needs = UPSERT) -> InvalidRowError:
    with pytest.raises(InvalidRowError) as caught:
        encoded(rows, needs)
    assert caught.value.table == "orders"
    return caught.value


def cast(array: Any, kind: str | pa.DataType) -> list[Any]:
    """Return what an array becomes in a column of this type."""
    columns = declared_columns({"v": kind})
    needs = Needs(columns, (), frozenset({"v"}), "orders")
    return [line["v"] for line in encoded(pa.table({"v": array}), needs)]


class Capsules:
    """Another library's table: it has the C interface and nothing else."""

    def __init__(self, inner: pa.Table) -> None:
        self.inner = inner

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.inner.__arrow_c_stream__(requested_schema)


class Capsule:
    """Another library's batch."""

    def __init__(self, inner: pa.RecordBatch) -> None:
        self.inner = inner

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.inner.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t,
        Capsules,
        lambda t: t.to_reader(),
        lambda t: t.to_batches()[0],
        lambda t: Capsule(t.to_batches()[0]),
        lambda t: t.to_struct_array(),
        lambda t: t.to_pandas(),
    ],
    ids=["table", "stream", "reader", "batch", "array", "structs", "pandas"],
)
def test_whatever_speaks_arrow_is_taken(make: Any) -> None:
    rows = make(table())
    assert is_arrow(rows)
    assert encoded(rows) == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


@pytest.mark.parametrize("rows", [[], {}, None, pa.Table, iter(())], ids=["list", "dict", "None", "type", "iterator"])
def test_dicts_are_not_arrow(rows: object) -> None:
    assert not is_arrow(rows)


def test_a_single_column_is_no_table() -> None:
    assert "not a table" in refusal(pa.chunked_array([[1]])).message
    assert "not a table" in refusal(pa.array([1])).message


def test_batches_have_the_tables_columns_and_at_most_a_chunk_of_rows() -> None:
    count = 2 * CHUNK_ROWS + 5
    rows = pa.table({"name": pa.nulls(count), "id": pa.array(range(count), pa.uint16())})
    batches = list(encode(rows, UPSERT))
    assert [batch.num_rows for batch in batches] == [CHUNK_ROWS, CHUNK_ROWS, 5]
    assert all(batch.schema == COLUMNS for batch in batches)
    assert [n for batch in batches for n in batch.column("id").to_pylist()] == list(range(count))


def test_empty_batches_are_skipped() -> None:
    assert list(encode(COLUMNS.empty_table(), UPSERT)) == []


def test_an_error_of_a_readers_source_passes_through() -> None:
    mistake = KeyError("theirs")

    def source() -> Iterator[pa.RecordBatch]:
        yield table().to_batches()[0]
        raise mistake

    reader = pa.RecordBatchReader.from_batches(table().schema, source())
    with pytest.raises(KeyError) as caught:
        encoded(reader)
    assert caught.value is mistake


def test_an_unknown_column_is_named_with_the_known_ones() -> None:
    error = refusal(table(colour=["red", "blue"]))
    assert error.column == "colour"
    assert "id, name" in error.message


def test_the_index_of_a_data_frame_is_named_as_such() -> None:
    frame = pd.DataFrame({"id": [1, 2], "name": ["a", "b"]}, index=[5, 7])
    error = refusal(pa.Table.from_pandas(frame))
    assert error.column == "__index_level_0__"
    assert "reset_index" in error.message


def test_a_row_marker_points_to_write() -> None:
    assert "write()" in refusal(table(__rowMarker__=[4, 4])).message


def test_a_column_that_is_there_twice_is_refused() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array(["a"]), pa.array(["b"])], names=["id", "name", "name"])
    error = refusal(twice)
    assert error.column == "name"
    assert "2 times" in error.message


def test_a_missing_column_is_refused_unless_a_delete_may_lack_it() -> None:
    keys = table().select(["id"])
    assert refusal(keys).column == "name"
    assert encoded(keys, DELETE) == [{"id": 1, "name": None}, {"id": 2, "name": None}]
    assert refusal(table().select(["name"]), DELETE).column == "id"


def test_old_keys_are_the_key_columns_and_nothing_else() -> None:
    [batch] = encode_keys(table().select(["id"]), UPSERT)
    assert batch.to_pydict() == {"id": [1, 2]}
    with pytest.raises(InvalidRowError, match="not one of this table"):
        list(encode_keys(table(), UPSERT))


def test_a_null_key_is_named_by_its_row_in_the_stream() -> None:
    ids = [*range(CHUNK_ROWS + 10), None]
    error = refusal(pa.table({"id": ids, "name": pa.nulls(len(ids))}))
    assert (error.row, error.column, error.key) == (CHUNK_ROWS + 10, "id", {"id": None})


def test_a_column_of_the_null_type_goes_in_only_where_null_may() -> None:
    assert encoded(table(name=pa.nulls(2)))[0] == {"id": 1, "name": None}
    assert refusal(table(id=pa.nulls(2))).row == 0


def test_large_text_beyond_two_gib_of_its_column_is_cast() -> None:
    """The bytes before it are never touched, so they take no memory."""
    start = 2**31
    memory = mmap.mmap(-1, start + 10)
    memory[start : start + 2] = b"ab"
    offsets = pa.py_buffer(struct.pack("<3q", start, start + 1, start + 2))
    names = pa.LargeStringArray.from_buffers(2, offsets, pa.py_buffer(memory))
    assert encoded(table(name=names)) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def int64(*values: int | None) -> Any:
    return pa.array(values, pa.int64())


def stamps(unit: Any, tz: str | None, *values: int) -> Any:
    return pa.array(values, pa.timestamp(unit, tz))


VIEWS = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.uint8()), pa.array(["a", "b"], pa.string_view()))


@pytest.mark.parametrize(
    ("array", "kind", "expected"),
    [
        (pa.array([255, None], pa.uint64()), "uint8", [255, None]),
        (pa.array([-128], pa.int32()), "int8", [-128]),
        (int64(2**60, None), "float64", [float(2**60), None]),
        (pa.array([2**64 - 2048], pa.uint64()), "float64", [float(2**64 - 2048)]),
        (int64(2**24), "float32", [float(2**24)]),
        (pa.array([1.5], pa.float16()), "float32", [1.5]),
        (pa.array([1.5], pa.float32()), "float64", [1.5]),
        (pa.array([0.1, float("-inf")]), "float32", [pa.scalar(0.1).cast(pa.float32()).as_py(), float("-inf")]),
        (pa.array([Decimal("1.50")], pa.decimal256(40, 2)), "decimal(3,1)", [Decimal("1.5")]),
        (pa.array([Decimal("1.5")], pa.decimal32(3, 1)), "decimal(9,3)", [Decimal("1.500")]),
        (pa.array([2**64 - 1], pa.uint64()), "decimal(22,2)", [Decimal(2**64 - 1)]),
        (pa.array([Decimal("9" * 38), None]), "decimal(38,0)", [Decimal("9" * 38), None]),
        (pa.array([Decimal("-9.5"), None], pa.decimal128(38, 1)), "decimal(38,37)", [Decimal("-9.5"), None]),
        (pa.array([Decimal("9.5")], pa.decimal32(3, 1)), "decimal(38,37)", [Decimal("9.5")]),
        (pa.array(["é"], pa.large_string()), "string", ["é"]),
        (pa.array(["é"], pa.string_view()), "string", ["é"]),
        (pa.array([b"x"], pa.large_binary()), "binary", [b"x"]),
        (pa.array([b"xy"], pa.binary(2)), "binary", [b"xy"]),
        (pa.array([b"x"], pa.binary_view()), "binary", [b"x"]),
        (pa.array(["b", None, "a", "b"]).dictionary_encode(), "string", ["b", None, "a", "b"]),
        (VIEWS, "string", ["b", "a", None]),
        (int64(7, 7).dictionary_encode(), "int8", [7, 7]),
        (pa.DictionaryArray.from_arrays([0], int64(7, 300)), "int8", [7]),
        (pa.array([date(2024, 1, 1)], pa.date64()), "date", [date(2024, 1, 1)]),
        (stamps("ns", None, 1000), "timestamp_ntz", [datetime(1970, 1, 1, 0, 0, 0, 1)]),  # noqa: DTZ001
        (stamps("s", "Europe/Berlin", 0), "timestamp", [datetime(1970, 1, 1, tzinfo=UTC)]),
        (stamps("us", "+02:00", 1000), pa.timestamp("ms", "UTC"), [datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)]),
        (pa.array([True, None]), "bool", [True, None]),
    ],
    ids=str,
)
def test_what_loses_nothing_is_cast(array: Any, kind: str | pa.DataType, expected: list[Any]) -> None:
    assert cast(array, kind) == expected


DECIMALS = {pa.decimal32: 9, pa.decimal64: 18, pa.decimal128: 38, pa.decimal256: 76}


@st.composite
def decimal_arrays(draw: st.DrawFn) -> Any:
    """One value of any Arrow decimal type, negative scales included."""
    make: Any = draw(st.sampled_from(list(DECIMALS)))
    precision = draw(st.integers(1, DECIMALS[make]))
    scale = draw(st.integers(-DECIMALS[make], DECIMALS[make]))
    digits = draw(st.integers(0, precision))
    trailing = draw(st.integers(0, precision - digits))
    number = draw(st.integers(-(10**digits) + 1, 10**digits - 1)) * 10**trailing
    unscaled = number.to_bytes(make(precision, scale).byte_width, "little", signed=True)
    return pa.Array.from_buffers(make(precision, scale), 1, [None, pa.py_buffer(unscaled)])


@given(array=decimal_arrays(), data=st.data())
def test_a_decimal_comes_out_equal_or_is_refused(array: Any, data: st.DataObject) -> None:
    """What fits is worked out with fractions, which share no code with pyarrow."""
    precision = data.draw(st.just(38) | st.integers(1, 38))
    scale = data.draw(st.integers(0, precision))
    value = Fraction(array[0].as_py())
    fits = abs(value) < 10 ** (precision - scale) and (value * 10**scale).denominator == 1
    try:
        (back,) = cast(array, f"decimal({precision},{scale})")
    except InvalidRowError:
        assert not fits
    else:
        assert fits
        assert Fraction(back) == value


@pytest.mark.parametrize(
    ("array", "kind", "row"),
    [
        (int64(1, 256), "uint8", 1),
        (int64(-1), "uint64", 0),
        (pa.array([2**63], pa.uint64()), "int64", 0),
        (int64(1, 2**53 + 1), "float64", 1),
        (int64(2**63 - 1), "float64", 0),
        (pa.array([2**64 - 1], pa.uint64()), "float64", 0),
        (int64(2**24 + 1), "float32", 0),
        (pa.array([1.0, float("inf"), 1e300]), "float32", 2),
        (pa.array([Decimal("1.25")]), "decimal(9,1)", 0),
        (pa.array([Decimal("1.5"), Decimal("100.0")]), "decimal(3,1)", 1),
        (pa.array([Decimal("9" * 40)], pa.decimal256(40, 0)), "decimal(38,0)", 0),
        (int64(5, 1000), "decimal(4,1)", 1),
        # pyarrow's own checked cast makes other numbers of these: 0.78 of 14,000,000, for one.
        (int64(1, 14_000_000), "decimal(38,37)", 1),
        (pa.array([Decimal("14000000.0")], pa.decimal64(14, 1)), "decimal(38,37)", 0),
        (pa.array([Decimal("9200.000")], pa.decimal32(8, 3)), "decimal(38,36)", 0),
        (pa.array([Decimal(0), None, Decimal("-9.9E+27")], pa.decimal128(3, -26)), "decimal(34,32)", 2),
        (pa.array([Decimal("7.68375E+74")], pa.decimal256(14, -69)), "decimal(37,37)", 0),
        (pa.array([0, DAY_MS + 1], pa.int64()).view(pa.date64()), "date", 1),
        (stamps("ns", None, 1000, 1001), "timestamp_ntz", 1),
        (stamps("us", "UTC", 1), pa.timestamp("ms", "UTC"), 0),
        (stamps("s", None, 2**60), "timestamp_ntz", 0),
        (int64(7, 300).dictionary_encode(), "int8", 1),
    ],
    ids=str,
)
def test_a_value_that_would_change_is_refused_and_named(array: Any, kind: str | pa.DataType, row: int) -> None:
    with pytest.raises(InvalidRowError) as caught:
        cast(array, kind)
    assert (caught.value.row, caught.value.column) == (row, "v")
    assert str(caught.value)


def with_payload(kind: Any, payload: bytes, count: int = 1) -> Any:
    """Return an array over bytes that its library should never have made."""
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(payload)])


BROKEN_TEXT = pa.StringArray.from_buffers(1, pa.py_buffer(struct.pack("<2i", 0, 1)), pa.py_buffer(b"\xff"))
LAST_DAY = 2_932_896


# pyarrow takes each of these, and shows or writes something else, or what nobody can read.
TRAPS: list[tuple[str, Any, str]] = [
    ("text that is no UTF-8", BROKEN_TEXT, "string"),
    ("text that is no UTF-8 in JSON", BROKEN_TEXT, "json"),
    ("text that is no UTF-8 in a UUID", BROKEN_TEXT, "uuid"),
    ("text that is no UTF-8 inside a struct", pa.StructArray.from_arrays([BROKEN_TEXT], names=["a"]), "json"),
    ("six digits in five", with_payload(pa.decimal128(5, 2), (10**5).to_bytes(16, "little")), "decimal(5,2)"),
    ("a time after midnight", with_payload(pa.time64("us"), struct.pack("<q", 86_400_000_000)), "time"),
    ("a time before midnight", with_payload(pa.time32("s"), struct.pack("<i", -1)), "time"),
    ("a time of a half microsecond", with_payload(pa.time64("ns"), struct.pack("<q", 1_500)), "time"),
    ("a date after year 9999", with_payload(pa.date32(), struct.pack("<i", LAST_DAY + 1)), "date"),
    ("a date64 after year 9999", with_payload(pa.date64(), struct.pack("<q", (LAST_DAY + 1) * DAY_MS)), "date"),
    ("a date before year 1", with_payload(pa.date32(), struct.pack("<i", -719_163)), "date"),
    ("an instant after year 9999", stamps("us", "UTC", (LAST_DAY + 1) * DAY_MS * 1000), "timestamp"),
    ("a timestamp after year 9999", stamps("s", None, (LAST_DAY + 1) * 86_400), "timestamp_ntz"),
    ("a timestamp before year 1", stamps("ms", None, -719_163 * DAY_MS), "timestamp_ntz"),
    ("a nanosecond in a zone that nobody knows", stamps("ns", "No/Where", 1), "timestamp"),
    ("a key twice in a map", pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())), "json"),
    ("NaN in a struct", pa.array([{"a": float("nan")}]), "json"),
    ("infinity in a list", pa.array([[float("inf")]]), "json"),
    ("text that is no JSON", pa.array(["{"]), "json"),
    ("a JSON type that holds none", pa.array(["{"], pa.json_()), "json"),
    ("a UUID in braces", pa.array(["{00112233-4455-6677-8899-aabbccddeeff}"]), "uuid"),
    ("a UUID and a line", pa.array(["00112233-4455-6677-8899-aabbccddeeff\n"]), "uuid"),
    ("a time without a fraction", pa.array(["01:02:03"]), "time"),
    ("a time and a line", pa.array(["01:02:03.000000\n"]), "time"),
]


@pytest.mark.parametrize(("array", "kind"), [trap[1:] for trap in TRAPS], ids=[trap[0] for trap in TRAPS])
@pytest.mark.parametrize("encoding", ["plain", "dictionary"])
def test_what_an_array_should_not_hold_is_refused_and_named(array: Any, kind: str, encoding: str) -> None:
    good = pa.nulls(1, array.type)
    if encoding == "dictionary":
        array, good = (pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), each) for each in (array, good))
    columns = declared_columns({"id": "int64", "v": kind})
    needs = Needs(columns, ("id",), frozenset(columns.names), "orders")
    chunks = pa.chunked_array([good, array]) if encoding == "plain" else None
    rows = pa.table({"id": [7, 8], "v": chunks}) if chunks else pa.table({"id": [8], "v": array})
    error = refusal(rows, needs)
    assert (error.row, error.column, error.key, error.type) == (0 if chunks is None else 1, "v", {"id": 8}, kind)
    assert error.value is not None
    assert str(error)


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (with_payload(pa.time64("ns"), struct.pack("<q", 1_500)), "00:00:00.000001500"),
        (with_payload(pa.time64("us"), struct.pack("<q", 86_400_000_000)), "<value out of range: 86400000000>"),
    ],
)
def test_a_time_that_is_refused_is_shown_as_it_is(array: Any, shown: str) -> None:
    """Python's value of it is another one: pyarrow cuts the nanoseconds, and shows midnight."""
    columns = declared_columns({"v": "time"})
    assert refusal(pa.table({"v": array}), Needs(columns, (), frozenset({"v"}), "orders")).value == shown


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date"])
def test_the_first_and_the_last_moment_go_in(kind: str) -> None:
    zone = "UTC" if kind == "timestamp" else None
    first, last = -719_162 * 86_400, (LAST_DAY + 1) * 86_400 - 1
    array = (
        stamps("s", zone, first, last)
        if kind != "date"
        else pa.array([-719_162, LAST_DAY], pa.int32()).view(pa.date32())
    )
    back = cast(array, kind)
    assert [(moment.year, moment.month, moment.day) for moment in back] == [(1, 1, 1), (9999, 12, 31)]


def test_what_stands_below_a_null_is_not_looked_at() -> None:
    """Arrow leaves the bytes of a NULL open; a value that would not fit may stand there."""
    odd = pa.Array.from_buffers(pa.timestamp("ns"), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(struct.pack("<2q", 0, 1))])
    assert cast(odd, "timestamp_ntz") == [datetime(1970, 1, 1), None]  # noqa: DTZ001
    late: Any = pa.Array.from_buffers(
        pa.time32("s"), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(struct.pack("<2i", 0, -1))]
    )
    assert cast(late, "time") == ["00:00:00.000000", None]


def test_a_null_among_the_words_of_a_dictionary_is_null() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["a", None]))
    assert cast(words, "string") == ["a", None, None]
    error = refusal(pa.table({"id": pa.DictionaryArray.from_arrays([1, 0], int64(None, 1)), "name": ["a", "b"]}))
    assert (error.row, error.column) == (1, "id")


@pytest.mark.parametrize(
    "values",
    [pa.array(["a", "b"]), pa.array(["a", "b"], pa.string_view()), pa.array(["a", "b"], pa.large_string())],
    ids=lambda a: str(a.type),
)
@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_runs_are_cast_row_by_row_wherever_a_slice_begins(values: Any, start: int) -> None:
    ends: Any = pa.array([2, 4], pa.int32())
    runs = pa.RunEndEncodedArray.from_arrays(ends, values)
    assert cast(runs.slice(start), "string") == ["a", "a", "b", "b"][start:]


def test_a_struct_that_is_null_is_no_row() -> None:
    rows = pa.array([{"id": 1, "name": "a"}, None])
    for each in (rows, pa.chunked_array([rows])):
        error = refusal(each)
        assert (error.row, "is no row" in error.message) == (1, True)


@pytest.mark.parametrize("kind", ["binary", "string"])
def test_an_extension_type_that_nobody_registered_is_refused_by_its_name(kind: str) -> None:
    """Whether a library is imported that knows the type must not decide what becomes of the rows."""
    field: Any = pa.field("v", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})
    rows = pa.table([pa.array([b"x"])], schema=pa.schema([field]))
    columns = declared_columns({"v": kind})
    with pytest.raises(SchemaRefusedError, match=r"geoarrow.wkb: hand over its storage") as caught:
        encoded(rows, Needs(columns, (), frozenset({"v"}), "orders"))
    assert (caught.value.table, caught.value.column, caught.value.type) == ("orders", "v", "geoarrow.wkb")
    with pytest.raises(SchemaRefusedError, match=r"geoarrow.wkb"):
        declared_columns(rows.schema)


NEVER = [
    (pa.array([1.0]), "int64"),
    (pa.array([1.0]), "decimal(9,2)"),
    (pa.array([Decimal(1)]), "int64"),
    (pa.array([Decimal(1)]), "float64"),
    (pa.array([True]), "int64"),
    (pa.array([True]), "float64"),
    (pa.array([True]), "decimal(9,2)"),
    (pa.array([True]), "string"),
    (pa.array([1]), "bool"),
    (pa.array([1]), "string"),
    (pa.array([1]), "date"),
    (pa.array([1]), "timestamp"),
    (pa.array(["1"]), "int64"),
    (pa.array(["2024-01-01"]), "date"),
    (pa.array(["x"]), "binary"),
    (pa.array([b"x"]), "string"),
    (pa.array([NAIVE]), "date"),
    (pa.array([NAIVE]), "timestamp"),
    (stamps("us", "UTC", 0), "timestamp_ntz"),
    (pa.array([date(2024, 1, 1)]), "timestamp_ntz"),
    (pa.array([date(2024, 1, 1)]), "int64"),
    (pa.array(["1"]).dictionary_encode(), "int64"),
    (pa.array([b"x" * 16], pa.binary(16)), "uuid"),
    (pa.array([1]), "time"),
    (pa.array([1], pa.duration("us")), "time"),
    (pa.array([NAIVE]), "time"),
    (pa.array([{"a": NAIVE}]), "json"),
    (pa.array([[Decimal(1)]]), "json"),
    (pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64())), "json"),
    (pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), "json"),
    (pa.array([1]), "json"),
]


@pytest.mark.parametrize(("array", "kind"), NEVER, ids=str)
@pytest.mark.parametrize("rows", [0, 1])
def test_a_type_that_means_something_else_is_refused_even_without_rows(array: Any, kind: str, rows: int) -> None:
    with pytest.raises(InvalidRowError, match="not converted in silence") as caught:
        cast(array.slice(0, rows), kind)
    assert (caught.value.column, caught.value.value, caught.value.type) == ("v", str(array.type), kind)


@pytest.mark.parametrize(
    ("array", "way_out"),
    [
        (pa.array([[1]]), "declare it as 'json'"),
        (pa.array([{"a": 1}]), "declare it as 'json'"),
        (pa.array([1], pa.duration("s")), "int64"),
        (pa.array([1], pa.int8()).cast(pa.bool8()), "hand over its storage"),
        (pa.array([b"x" * 16], pa.uuid()), "declare it as 'uuid'"),
        (pa.array([1], pa.int64()).view(pa.time64("us")), "declare it as 'time'"),
    ],
    ids=str,
)
def test_a_type_that_no_column_can_have_is_refused_with_the_way_out(array: Any, way_out: str) -> None:
    with pytest.raises(SchemaRefusedError, match=way_out) as caught:
        cast(array, "string")
    assert caught.value.table == "orders"


@settings(max_examples=40)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_bad_cell_anywhere_in_a_stream_is_found(data: st.DataObject, seed: int) -> None:
    """Across batches of any size."""
    count = data.draw(st.sampled_from([1, 300, CHUNK_ROWS + 1, 2 * CHUNK_ROWS + 100]))
    at = data.draw(st.sampled_from([0, count - 1]) | st.integers(0, count - 1))
    chance = random.Random(seed)
    values = [chance.choice([None, 1000, 2_000_000]) for _ in range(count)]
    values[at] = 1001
    column = pa.array(values, pa.timestamp("ns"))
    rows = pa.table({"when": column, "id": pa.array(range(count), pa.int32())})
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=4)))
    pieces = [rows.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, count], strict=True)]
    columns = declared_columns({"id": "int64", "when": "timestamp_ntz"})
    with pytest.raises(InvalidRowError) as caught:
        encoded(pa.concat_tables(pieces), Needs(columns, ("id",), frozenset(columns.names), "orders"))
    error = caught.value
    assert (error.row, error.column, error.type, error.key) == (at, "when", "timestamp_ntz", {"id": at})


@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=30), st.sampled_from(["int16", "uint64", "float64"])
)
def test_whatever_is_cast_reads_back_equal(values: list[int | None], kind: str) -> None:
    try:
        got = cast(pa.array(values, pa.int64()), kind)
    except InvalidRowError as error:
        values = values[: error.row]
        got = cast(pa.array(values, pa.int64()), kind)
    assert got == values


def test_a_marked_stream_gives_rows_and_markers() -> None:
    rows = table(__rowMarker__=pa.array([4, 2], pa.uint8())).select(["name", "id", "__rowMarker__"])
    [(batch, markers)] = marked_stream(rows, UPSERT)
    assert batch.schema == COLUMNS
    assert batch.to_pydict() == {"id": [1, 2], "name": ["a", None]}
    assert markers.type == pa.int32()
    assert markers.to_pylist() == [4, 2]


def test_markers_stay_with_their_rows_across_chunks() -> None:
    ids = list(range(CHUNK_ROWS + 3))
    codes = [(0, 1, 2, 4)[n % 4] for n in ids]
    pairs = marked_stream(pa.table({"id": ids, "name": pa.nulls(len(ids)), "__rowMarker__": codes}), UPSERT)
    got = [(n, m) for batch, marks in pairs for n, m in zip(batch["id"].to_pylist(), marks.to_pylist(), strict=True)]
    assert got == list(zip(ids, codes, strict=True))


def test_markers_stay_with_the_rows_that_come_before_a_fault() -> None:
    """The rows are cut in halves until the bad one stands alone."""
    rows = pa.table({"id": pa.array([0, 1, 2, 2**63], pa.uint64()), "name": pa.nulls(4), "__rowMarker__": [0, 1, 2, 4]})
    stream = marked_stream(rows, UPSERT)
    pairs = [next(stream), next(stream)]
    assert [n for batch, _ in pairs for n in batch["id"].to_pylist()] == [0, 1, 2]
    assert [m for _, markers in pairs for m in markers.to_pylist()] == [0, 1, 2]
    with pytest.raises(InvalidRowError) as caught:
        next(stream)
    assert (caught.value.row, caught.value.key) == (3, {"id": 2**63})


@pytest.mark.parametrize(
    ("rows", "way_out"),
    [
        (table(), "the last column must be __rowMarker__"),
        (table(__rowMarker__=[1, 1]).select(["__rowMarker__", "id", "name"]), "number 1 of 3"),
        (table(__rowMarker__=[1.0, 1.0]), "must be an integer"),
        (table(__rowMarker__=["1", "1"]), "must be an integer"),
        ([{"id": 1}], "got list"),
    ],
    ids=["missing", "first", "float", "text", "dicts"],
)
def test_a_marker_column_that_is_not_last_or_no_integer_is_refused(rows: object, way_out: str) -> None:
    with pytest.raises(InvalidRowError, match=way_out) as caught:
        list(marked_stream(rows, UPSERT))
    assert caught.value.table == "orders"


@pytest.mark.parametrize("bad", [3, 5, -1, None])
def test_a_marker_that_is_none_of_the_four_is_named_by_its_row(bad: int | None) -> None:
    ids = list(range(CHUNK_ROWS + 3))
    codes: list[int | None] = [4] * len(ids)
    codes[-1] = bad
    with pytest.raises(InvalidRowError, match="no row marker") as caught:
        list(marked_stream(pa.table({"id": ids, "name": pa.nulls(len(ids)), "__rowMarker__": codes}), UPSERT))
    error = caught.value
    assert (error.row, error.value, error.key) == (CHUNK_ROWS + 2, bad, {"id": CHUNK_ROWS + 2})


def test_a_ready_made_batch_is_cast_whole() -> None:
    count = CHUNK_ROWS + 5
    batch = pa.record_batch({"name": pa.nulls(count), "id": pa.array(range(count), pa.int32())})
    checked = check_batch(batch, UPSERT, 0)
    assert (checked.schema, checked.num_rows) == (COLUMNS, count)
    assert check_batch(batch.slice(0, 0), UPSERT, 0).schema == COLUMNS


def test_a_fault_in_a_ready_made_batch_counts_from_its_first_row() -> None:
    batch = pa.record_batch({"id": pa.array([1, 2**63], pa.uint64()), "name": ["a", "b"]})
    with pytest.raises(InvalidRowError) as caught:
        check_batch(batch, UPSERT, 100)
    assert (caught.value.row, caught.value.column, caught.value.value) == (101, "id", 2**63)
