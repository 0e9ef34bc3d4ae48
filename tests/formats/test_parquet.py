"""Parquet files: what is written comes back bit for bit, and what foreign files tell is read with care."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import SchemaRefusedError, UnknownPositionError
from openmirror_writer.formats import Footer, Parquet, footer_of, read_rows
from openmirror_writer.record import Record
from openmirror_writer.schema import ROW_MARKER, declared_columns
from openmirror_writer.storage import Content, ReadFile, Steps

TAIL = 64 * 1024
COLUMNS = declared_columns({"id": "int64 not null", "v": "string"})
RECORD = Record(
    generation="g", number=1, previous=None, batch="b", writer="w", phase="following", position=[1, "é"], by="x"
)


def _content(data: bytes) -> Content:
    return Content(data, "e1")


def _footer(data: bytes) -> Footer:
    return footer_of(_content(data), "orders/1")


def _rows(data: bytes) -> pa.Table:
    return read_rows(_content(data), "orders/1")


def _batch(ids: Sequence[int], markers: Sequence[int] | None) -> ChangeBatch:
    rows = pa.RecordBatch.from_pylist([{"id": i, "v": f"v{i}"} for i in ids], schema=COLUMNS)
    return ChangeBatch(rows, None if markers is None else pa.array(markers, pa.int32()))


def _foreign(columns: dict[str, pa.Array[Any]], **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


# -------------------------------------------------------------------------------------------- every type, bit for bit


def _ints(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)


def _float_bits(bits: int) -> st.SearchStrategy[int]:
    special = [0, 1 << bits - 1, -1, (1 << bits - 1) - 1]  # zeros of both signs, NaNs of both signs with a payload
    return _ints(bits) | st.sampled_from(special).map(lambda value: _signed(value, bits))


def _signed(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    unscaled = st.integers(-(10**precision) + 1, 10**precision - 1)
    return unscaled.map(lambda value: Decimal((int(value < 0), tuple(map(int, str(abs(value)))), -scale)))


# Types whose values Python rounds or limits are drawn as integers and viewed as what they are.
VALUES: dict[str, tuple[st.SearchStrategy[Any], pa.DataType | None]] = {
    **{f"int{bits}": (_ints(bits), None) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (_ints(bits, signed=False), None) for bits in (8, 16, 32, 64)},
    "float32": (_float_bits(32), pa.int32()),
    "float64": (_float_bits(64), pa.int64()),
    **{
        f"decimal({precision},{scale})": (_decimals(precision, scale), None)
        for precision, scale in [(1, 0), (9, 9), (10, 2), (18, 18), (19, 0), (38, 0), (38, 10), (38, 38)]
    },
    "bool": (st.booleans(), None),
    "string": (st.text(), None),
    "binary": (st.binary(), None),
    "date": (_ints(32), pa.int32()),
    "timestamp": (_ints(64), pa.int64()),
    "timestamp_ntz": (_ints(64), pa.int64()),
}


def _array(values: Sequence[Any], kind: pa.DataType, drawn_as: pa.DataType | None) -> pa.Array[Any]:
    return pa.array(values, kind) if drawn_as is None else pa.array(values, drawn_as).view(kind)


def _bits(values: Any, drawn_as: pa.DataType | None) -> list[Any]:
    whole: Any = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return list(whole.to_pylist() if drawn_as is None else whole.view(drawn_as).to_pylist())


@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=15)
@given(data=st.data())
def test_a_column_of_this_type_comes_back_bit_for_bit(name: str, data: st.DataObject) -> None:
    values, drawn_as = VALUES[name]
    columns = declared_columns({"a": name, "b": f"{name} not null"})
    kind = columns.field("a").type
    rows = data.draw(st.lists(st.tuples(st.none() | values, values), max_size=10))
    arrays = [_array([row[at] for row in rows], kind, drawn_as) for at in (0, 1)]
    written = Parquet().encode(columns, [ChangeBatch(pa.RecordBatch.from_arrays(arrays, schema=columns))], RECORD)
    read = _rows(written)
    assert read.schema.equals(columns, check_metadata=True)
    assert [_bits(column, drawn_as) for column in read.columns] == [_bits(array, drawn_as) for array in arrays]
    assert _footer(written).columns == columns


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_timestamps_in_milliseconds_stay_what_they_are(zone: str | None) -> None:
    columns = declared_columns(pa.schema([pa.field("t", pa.timestamp("ms", tz=zone))]))
    rows = pa.RecordBatch.from_arrays(
        [pa.array([0, -1, None], pa.int64()).view(columns.field("t").type)], schema=columns
    )
    assert _rows(Parquet().encode(columns, [ChangeBatch(rows)], RECORD)) == pa.Table.from_batches([rows])


# -------------------------------------------------------------------------------------------------- what a file holds


@pytest.mark.rule("6.1", "L32", "L33", "L35")
def test_the_marker_is_the_last_column_and_int32() -> None:
    data = Parquet().encode(COLUMNS, [_batch([1, 2], [1, 2]), _batch([], []), _batch([3], [4])], RECORD)
    read = _rows(data)
    assert read.column_names == ["id", "v", ROW_MARKER]
    assert read.schema.field(ROW_MARKER).type == pa.int32()
    assert read.column("id").to_pylist() == [1, 2, 3]
    assert read.column(ROW_MARKER).to_pylist() == [1, 2, 4]


def test_the_footer_tells_what_the_file_holds() -> None:
    assert _footer(Parquet().encode(COLUMNS, [_batch([1, 2, 3], [4, 1, 2])], RECORD)) == Footer(
        identity="e1",
        rows=3,
        columns=COLUMNS,
        marked=True,
        markers=(1, 4),
        null_markers=0,
        marker_type=pa.int32(),
        record=RECORD,
    )


def test_marker_free_batches_make_a_file_without_a_marker_column() -> None:
    footer = _footer(Parquet().encode(COLUMNS, [_batch([1], None), _batch([2], None)], RECORD))
    assert (footer.rows, footer.columns, footer.marked, footer.marker_type) == (2, COLUMNS, False, None)
    assert (footer.markers, footer.null_markers) == (None, None)


@pytest.mark.parametrize("batches", [[], [_batch([], None)]], ids=["no batch", "an empty batch"])
def test_a_file_of_no_rows_is_valid_and_has_all_columns(batches: list[ChangeBatch]) -> None:
    data = Parquet().encode(COLUMNS, batches, RECORD)
    footer = _footer(data)
    assert (footer.rows, footer.columns, footer.marked, footer.record) == (0, COLUMNS, False, RECORD)
    assert _rows(data) == COLUMNS.empty_table()


def test_a_marked_file_of_no_rows_has_no_least_and_greatest_marker() -> None:
    footer = _footer(Parquet().encode(COLUMNS, [_batch([], [])], RECORD))
    assert (footer.marked, footer.markers) == (True, None)


def test_the_footer_holds_our_record_and_no_arrow_schema() -> None:
    metadata = pq.read_metadata(io.BytesIO(Parquet().encode(COLUMNS, [_batch([1], [0])], RECORD))).metadata
    assert metadata == {b"openmirror": RECORD.to_bytes()}


@pytest.mark.rule("4.1", "L3", "L4")
@pytest.mark.parametrize(
    ("compression", "codec"), [("snappy", "SNAPPY"), ("zstd", "ZSTD"), ("gzip", "GZIP"), ("none", "UNCOMPRESSED")]
)
def test_a_file_is_compressed_as_declared(compression: Any, codec: str) -> None:
    data = Parquet(compression=compression).encode(COLUMNS, [_batch([1], [0])], RECORD)
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    assert {group.column(at).compression for at in range(3)} == {codec}
    assert _rows(data).column("id").to_pylist() == [1]


@pytest.mark.rule("4.1", "L4")
@pytest.mark.parametrize("compression", ["brotli", "lz4", "SNAPPY", None])
def test_a_compression_that_the_service_does_not_read_is_refused(compression: Any) -> None:
    with pytest.raises(SchemaRefusedError, match="snappy, zstd, gzip, none"):
        Parquet(compression=compression)


# ------------------------------------------------------------------------------------------------------ foreign files

IDS = pa.array([1, 2, 3])


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int64(), pa.uint8(), pa.uint64()], ids=str)
def test_the_marker_of_a_foreign_file_may_be_any_integer(kind: pa.DataType) -> None:
    footer = _footer(_foreign({"id": IDS, ROW_MARKER: pa.array([4, 0, 2], kind)}))
    assert (footer.markers, footer.null_markers, footer.marker_type) == ((0, 4), 0, kind)
    assert footer.columns == pa.schema([("id", pa.int64())])
    assert footer.record is None


def test_the_marker_may_be_the_first_column() -> None:
    footer = _footer(_foreign({ROW_MARKER: pa.array([1, 1, 2], pa.int32()), "id": pa.array([70, 80, 90])}))
    assert (footer.columns.names, footer.markers) == (["id"], (1, 2))


@pytest.mark.parametrize(
    "nested",
    [pa.array([{"x": 70, "y": 80}] * 3), pa.array([[70], [80, 90], None]), pa.array([{ROW_MARKER: 70}] * 3)],
    ids=["two leaves", "a list", "a leaf of the marker's name"],
)
def test_a_nested_column_before_the_marker_does_not_shift_its_statistics(nested: pa.Array[Any]) -> None:
    footer = _footer(_foreign({"nested": nested, "id": IDS, ROW_MARKER: pa.array([1, 1, 2], pa.int32())}))
    assert (footer.columns.names, footer.markers, footer.null_markers) == (["nested", "id"], (1, 2), 0)


def test_the_range_of_the_marker_is_that_of_all_row_groups() -> None:
    markers = pa.array([1, 1, 4, None, None, None, 2], pa.int32())
    footer = _footer(_foreign({"id": pa.array(range(7)), ROW_MARKER: markers}, row_group_size=2))
    assert (footer.rows, footer.markers, footer.null_markers) == (7, (1, 4), 3)


def test_markers_that_are_all_null_have_no_range() -> None:
    footer = _footer(_foreign({"id": IDS, ROW_MARKER: pa.array([None] * 3, pa.int32())}))
    assert (footer.marked, footer.markers, footer.null_markers) == (True, None, 3)


@pytest.mark.parametrize("statistics", [False, ["id"]])
def test_without_statistics_nothing_is_said_about_the_markers(statistics: Any) -> None:
    footer = _footer(_foreign({"id": IDS, ROW_MARKER: pa.array([1, 1, 2])}, write_statistics=statistics))
    assert (footer.marked, footer.markers, footer.null_markers) == (True, None, None)


@pytest.mark.parametrize(
    "markers",
    [pa.array(["1", "1", "2"]), pa.array([1.0, 1.0, 2.0]), pa.array([True, True, False])],
    ids=["text", "float", "bool"],
)
def test_a_marker_that_is_no_integer_has_a_type_and_no_range(markers: pa.Array[Any]) -> None:
    footer = _footer(_foreign({"id": IDS, ROW_MARKER: markers}))
    assert (footer.marked, footer.marker_type, footer.markers, footer.null_markers) == (True, markers.type, None, None)


def test_a_marker_in_another_case_is_a_column() -> None:
    footer = _footer(_foreign({"id": IDS, "__rowmarker__": pa.array([1, 1, 2])}))
    assert (footer.marked, footer.columns.names) == (False, ["id", "__rowmarker__"])


def test_two_marker_columns_are_refused() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=[ROW_MARKER, ROW_MARKER])
    sink = io.BytesIO()
    pq.write_table(table, sink)
    with pytest.raises(UnknownPositionError, match="2 columns __rowMarker__") as caught:
        _footer(sink.getvalue())
    assert caught.value.file == "orders/1"


def test_the_schema_that_arrow_stored_in_a_foreign_file_counts() -> None:
    kinds = [pa.large_string(), pa.timestamp("s", tz="Europe/Berlin"), pa.dictionary(pa.int32(), pa.string())]
    footer = _footer(_foreign({str(kind): pa.array([], kind) for kind in kinds}))
    assert footer.columns.types == [pa.large_string(), pa.timestamp("ms", tz="Europe/Berlin"), kinds[2]]


def test_columns_carry_no_metadata() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [1]}).replace_schema_metadata({"pandas": "{}"}), sink)
    assert _footer(sink.getvalue()).columns.equals(pa.schema([("id", pa.int64())]), check_metadata=True)
    assert _rows(sink.getvalue()).schema.metadata is None


WHOLE = Parquet().encode(COLUMNS, [_batch(range(50), [4] * 50)], RECORD)
BROKEN: dict[str, bytes] = {
    "zero bytes": b"",
    "four bytes": b"PAR1",
    "text": b"id,v\n1,a\n",
    "a truncated file": WHOLE[:-20],
    "half a file": WHOLE[: len(WHOLE) // 2],
    "garbage between the magic numbers": b"PAR1" + bytes(range(200)) + struct.pack("<I", 200) + b"PAR1",
    "a length beyond the file": WHOLE[:-8] + struct.pack("<I", 1 << 31) + b"PAR1",
    "a damaged footer": WHOLE[:-8].replace(b"openmirror", bytes(10)) + bytes(4) + b"PAR1",
    "the name of a column is no UTF-8": WHOLE.replace(b"v", b"\xff"),
    "an encrypted footer": WHOLE[:-4] + b"PARE",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("reader", [footer_of, read_rows])
def test_what_is_no_parquet_file_is_refused_by_name(reader: Callable[[Content, str], object], data: bytes) -> None:
    with pytest.raises(UnknownPositionError, match="no readable Parquet file .*: delete it and publish it") as caught:
        reader(_content(data), "orders/1")
    assert caught.value.file == "orders/1"


def test_damaged_pages_are_refused_by_name() -> None:
    data = Parquet(compression="gzip").encode(COLUMNS, [_batch(range(1_000), None)], RECORD)
    with pytest.raises(UnknownPositionError, match="no readable Parquet file"):
        _rows(data[:100] + bytes(1_000) + data[1_100:])


def test_uuids_of_another_publisher_are_told_from_bytes() -> None:
    """Spark reads fixed bytes, and refuses UUIDs, which pyarrow reads as fixed bytes."""
    some = [b"0123456789abcdef"]
    data = _foreign({"b": pa.array(some, pa.binary(16)), "u": pa.array(some, pa.uuid())}, store_schema=False)
    assert _footer(data).columns.types == [pa.binary(16), pa.uuid()]


@pytest.mark.rule("record.7", on="mirror")
def test_a_record_of_a_newer_version_is_refused_with_its_file() -> None:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, COLUMNS) as writer:
        writer.add_key_value_metadata({"openmirror": '{"v": 2}'})
    with pytest.raises(UnknownPositionError, match="has version 2") as caught:
        _footer(sink.getvalue())
    assert caught.value.file == "orders/1"


# ------------------------------------------------------------------------------------------------------ range reads


def _drive(steps: Steps[Footer | None], *versions: bytes | None) -> tuple[Footer | None, list[ReadFile]]:
    """Answer each request with the next version of the file (None: gone), the last one from then on."""
    requests: list[ReadFile] = []
    answer: Content | None = None
    try:
        while True:
            request = steps.send(answer)
            data = versions[min(len(requests), len(versions) - 1)]
            requests.append(request)
            answer = None if data is None else Content(data[request.start : request.end], "e1")
    except StopIteration as stop:
        return stop.value, requests


def _read(data: bytes | None, size: int, *later: bytes | None) -> tuple[Footer | None, list[ReadFile]]:
    return _drive(Parquet().read_footer("orders/1", size), data, *later)


def _with_long_record(length: int) -> bytes:
    return Parquet().encode(COLUMNS, [_batch([1], [0])], RECORD.model_copy(update={"position": "x" * length}))


BIG = Parquet(compression="none").encode(COLUMNS, [_batch(range(20_000), None)], RECORD)


def test_the_footer_of_a_small_file_takes_one_read() -> None:
    footer, requests = _read(WHOLE, len(WHOLE))
    assert footer == _footer(WHOLE)
    assert [request.start for request in requests] == [0]


def test_of_a_large_file_only_the_end_is_read() -> None:
    footer, requests = _read(BIG, len(BIG))
    assert footer is not None
    assert (footer.rows, footer.record) == (20_000, RECORD)
    assert [request.start for request in requests] == [len(BIG) - TAIL]


@pytest.mark.parametrize("length", [TAIL, 300_000])
def test_a_footer_that_is_larger_than_the_first_read_takes_a_second_one(length: int) -> None:
    data = _with_long_record(length)
    footer, requests = _read(data, len(data))
    assert footer == _footer(data)
    of_footer = struct.unpack("<I", data[-8:-4])[0] + 8
    assert [request.start for request in requests] == [len(data) - TAIL, len(data) - of_footer]


def test_a_footer_that_just_fits_the_first_read_takes_no_second_one() -> None:
    overhead = struct.unpack("<I", _with_long_record(TAIL)[-8:-4])[0] + 8 - TAIL
    data = _with_long_record(TAIL - overhead)
    assert struct.unpack("<I", data[-8:-4])[0] + 8 == TAIL
    footer, requests = _read(data, len(data))
    assert footer == _footer(data)
    assert len(requests) == 1


@pytest.mark.parametrize("data", [WHOLE, BIG, _with_long_record(300_000)], ids=["small", "large", "large footer"])
def test_a_file_that_is_gone_is_none(data: bytes) -> None:
    assert _read(None, len(data))[0] is None


def test_a_file_that_goes_between_two_reads_is_none() -> None:
    data = _with_long_record(300_000)
    assert _read(data, len(data), None)[0] is None


@pytest.mark.parametrize("data", [WHOLE, BIG, _with_long_record(300_000)], ids=["small", "large", "large footer"])
@pytest.mark.parametrize("more", [-1_000, -1, 1, 100_000])
def test_a_file_that_has_another_size_than_listed_is_none(data: bytes, more: int) -> None:
    assert _read(data, len(data) + more)[0] is None


def test_a_file_that_changes_its_size_between_two_reads_is_none() -> None:
    data = _with_long_record(300_000)
    assert _read(data, len(data), _with_long_record(300_001))[0] is None


@pytest.mark.parametrize("data", [*BROKEN.values(), bytes(200_000)], ids=[*BROKEN, "200 kB of zeros"])
def test_a_broken_file_is_refused_after_one_read(data: bytes) -> None:
    with pytest.raises(UnknownPositionError, match="no readable Parquet file"):
        _read(data, len(data))
