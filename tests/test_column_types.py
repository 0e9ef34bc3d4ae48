"""docs/types.md is the list of types, and each of its lines is true: Python, Arrow, Parquet, text, refusals."""

from __future__ import annotations

import io
import re
from datetime import date, time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.column_types import COLUMN_TYPES, DECIMAL, ColumnType, column_type, text_type
from openmirror_writer.errors import InvalidRowError, SchemaRefusedError
from openmirror_writer.formats import Parquet
from openmirror_writer.record import Record
from openmirror_writer.rows import Needs, encode
from openmirror_writer.schema import declared_columns, declared_type
from tests import type_samples, types_page
from tests.type_samples import AWARE, NAIVE, SAMPLES, SOME_UUID, column_name, declared

RECORD = Record(generation="g", number=1, previous=None, batch="b", writer="w", phase="loading", by="x", position=None)
_FLAGS = re.compile(r", is_from_converted_type=false, force_set_converted_type=false")


def _name(column: ColumnType) -> str:
    return column.name


def needs(kind: str | pa.DataType) -> Needs:
    columns = declared_columns({"id": "int64", "v": kind})
    return Needs(columns, ("id",), frozenset(columns.names), "orders")


def stored(rows: Any, kind: str | pa.DataType) -> list[Any]:
    return [line["v"] for batch in encode(rows, needs(kind)) for line in batch.to_pylist()]


def test_the_page_is_the_list_of_types() -> None:
    assert types_page.PAGE.read_text(encoding="utf-8") == types_page.page(), "run python -m tests.types_page"


def test_every_line_has_samples() -> None:
    assert list(SAMPLES) == [column.name for column in COLUMN_TYPES]


@pytest.mark.parametrize("column", COLUMN_TYPES, ids=_name)
def test_a_type_is_declared_by_each_of_its_names_and_printed_by_the_first(column: ColumnType) -> None:
    for name in column.synonyms:
        assert declared_type(declared_columns({"v": name}).field("v")) == column.name
    if column is not DECIMAL:
        assert declared_type(declared_columns({"v": column.name}).field("v")) == column.name


@pytest.mark.parametrize("column", COLUMN_TYPES, ids=_name)
def test_the_python_values_of_a_line_go_in_and_read_back_equal(column: ColumnType) -> None:
    pairs = SAMPLES[column.name].stored
    back = stored([{"id": n, "v": value} for n, (value, _) in enumerate(pairs)], declared(column))
    assert len(back) == len(pairs)
    assert [
        (got, wanted) for got, (_, wanted) in zip(back, pairs, strict=True) if not type_samples.is_equal(got, wanted)
    ] == []


REFUSED = [(column, *case) for column in COLUMN_TYPES for case in SAMPLES[column.name].refused]


@pytest.mark.parametrize(("column", "value", "way_out"), REFUSED, ids=lambda each: getattr(each, "name", repr(each)))
def test_what_a_line_refuses_is_named_with_the_way_out(column: ColumnType, value: Any, way_out: str) -> None:
    good = SAMPLES[column.name].stored[0][0]
    with pytest.raises(InvalidRowError, match=re.escape(way_out)) as caught:
        stored([{"id": 7, "v": good}, {"id": 8, "v": value}], declared(column))
    error = caught.value
    assert (error.table, error.row, error.column, error.key) == ("orders", 1, "v", {"id": 8})
    assert error.value is value
    assert error.type == ("decimal(18,2)" if column is DECIMAL else column.name)


# --------------------------------------------------------------------------------------------------------------- Arrow


def arrow_value(family: str, kind: Any, column: ColumnType) -> Any:
    """Return a value that an array of the family may hold, and that the column takes."""
    texts = {"json": "{}", "uuid": str(SOME_UUID), "time": "01:02:03.000000"}
    values: dict[str, Any] = {
        "integers": 1,
        "floats": 1.5,
        "decimals": 1,
        "bool": True,
        "strings": texts.get(column.name, "x"),
        "binaries": b"x" * 16,
        "date32, date64": date(2024, 5, 6),
        "timestamps with a zone": AWARE.replace(microsecond=0),
        "timestamps without a zone": NAIVE.replace(microsecond=0),
        "time32, time64": time(1, 2, 3),
        "json": "{}",
        "uuid": SOME_UUID.bytes,
    }
    if family == "nested":
        return {"a": 1, "b": "x"} if pa.types.is_struct(kind) else []
    return values[family]


@pytest.mark.parametrize("column", COLUMN_TYPES, ids=_name)
@pytest.mark.parametrize("family", types_page.ARROW)
def test_arrow_goes_in_where_the_line_says_so_and_nowhere_else(family: str, column: ColumnType) -> None:
    for kind in types_page.ARROW[family]:
        array = pa.array([arrow_value(family, kind, column), None], kind)
        for form in (array, array.slice(0, 1), pa.nulls(2)):
            table = pa.table({"id": range(len(form)), "v": form})
            if family in types_page.takes(column) or form.type == pa.null():
                assert [value is None for value in stored(table, declared(column))] == [
                    value is None for value in form.to_pylist()
                ]
            else:
                with pytest.raises((InvalidRowError, SchemaRefusedError)):
                    stored(table, declared(column))


FORMS: list[tuple[pa.Array[Any], str, list[Any]]] = [
    (pa.array([SOME_UUID.bytes, None], pa.uuid()), "uuid", [str(SOME_UUID), None]),
    (pa.array([str(SOME_UUID).upper()], pa.string_view()), "uuid", [str(SOME_UUID)]),
    (pa.array([0, 86_399], pa.int32()).view(pa.time32("s")), "time", ["00:00:00.000000", "23:59:59.000000"]),
    (pa.array([1_000], pa.int64()).view(pa.time64("ns")), "time", ["00:00:00.000001"]),
    (pa.array(['{ "a": 1.10}'], pa.json_()), "json", ['{ "a": 1.10}']),
    (pa.array([{"b": [0.5, None], "a": {"c": True}}, None]), "json", ['{"b":[0.5,null],"a":{"c":true}}', None]),
    (pa.array([[("k", 1), ("l", None)]], pa.map_(pa.string(), pa.int64())), "json", ['{"k":1,"l":null}']),
]


@pytest.mark.rule("4.9", "L55")
@pytest.mark.parametrize(("array", "kind", "expected"), FORMS, ids=str)
def test_arrows_own_uuids_times_and_nested_values_become_text(array: Any, kind: str, expected: list[Any]) -> None:
    assert stored(pa.table({"id": range(len(array)), "v": array}), kind) == expected


def test_json_text_may_hold_a_number_of_any_size() -> None:
    """Python refuses to read an int of so many digits; JSON does not bound them."""
    text = "[" + "1" * 5_000 + "]"
    assert stored([{"id": 1, "v": text}], "json") == [text]


# ------------------------------------------------------------------------------------------------- Parquet and text


def test_the_parquet_file_has_the_physical_and_the_logical_type_of_each_line() -> None:
    columns = declared_columns(type_samples.columns())
    (rows,) = encode(type_samples.rows(), Needs(columns, ("id",), frozenset(columns.names), "orders"))
    file = pq.ParquetFile(io.BytesIO(Parquet().encode(columns, [ChangeBatch(rows)], RECORD)))
    found = [file.schema.column(n + 1) for n in range(len(COLUMN_TYPES))]
    said = [(column_name(each.name), each.physical, _digits(each.logical)) for each in COLUMN_TYPES]
    assert [(leaf.name, leaf.physical_type, _FLAGS.sub("", str(leaf.logical_type))) for leaf in found] == said
    assert [leaf.converted_type for leaf in found if leaf.name in {"c_json", "c_uuid", "c_time"}] == ["UTF8"] * 3


def _digits(logical: str) -> str:
    return logical.replace("precision=p, scale=s", "precision=18, scale=2")


@pytest.mark.rule("5.9", "5.11", "5.12", "L13")
def test_delimited_text_declares_each_type_as_the_landing_zone_has_it() -> None:
    assert {each.name: each.text for each in COLUMN_TYPES} == {
        **dict.fromkeys(["int8", "int16", "uint8"], "Int16"),
        **dict.fromkeys(["int32", "uint16"], "Int32"),
        **dict.fromkeys(["int64", "uint32"], "Int64"),
        **dict.fromkeys(["uint64", "decimal(p,s)"]),
        "float32": "Single",
        "float64": "Double",
        "bool": "Boolean",
        **dict.fromkeys(["string", "json", "uuid", "time"], "String"),
        "binary": "ByteArray",
        "date": "IDate",
        **dict.fromkeys(["timestamp", "timestamp_ntz", "timestamp[ms, tz=UTC]", "timestamp[ms]"], "DateTime"),
    }
    assert all(text_type(each.arrow) == each.text for each in COLUMN_TYPES)


def test_a_type_that_no_file_has_is_on_no_line() -> None:
    kinds: list[Any] = [
        pa.float16(),
        pa.date64(),
        pa.large_string(),
        pa.timestamp("ns"),
        pa.uuid(),
        pa.null(),
        pa.time64("us"),
    ]
    assert [column_type(kind) for kind in kinds] == [None] * len(kinds)
    assert [text_type(kind) for kind in kinds] == [None] * len(kinds)
