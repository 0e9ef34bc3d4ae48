"""Columns taken from the first rows: what is told, and what would be a guess."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from openmirror_writer.errors import InvalidRowError, SchemaRefusedError
from openmirror_writer.rows import CHUNK_ROWS, Needs, encode, peek_columns
from openmirror_writer.schema import declared_columns

NAIVE = datetime(2024, 1, 1)  # noqa: DTZ001
AWARE = datetime(2024, 1, 1, tzinfo=UTC)


def inferred(*values: Any) -> pa.DataType:
    columns, _ = peek_columns([{"v": value} for value in values], "orders")
    found: pa.DataType = columns.field("v").type
    return found


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None], pa.int64()),
        ([np.int8(1), 2], pa.int64()),
        ([1.5], pa.float64()),
        ([1, 1.5], pa.float64()),
        ([np.float32(1)], pa.float64()),
        ([None, "x"], pa.string()),
        ([True, np.bool_(False)], pa.bool_()),  # noqa: FBT003
        ([b"x", bytearray(b"y")], pa.binary()),
        ([date(2024, 1, 1)], pa.date32()),
        ([AWARE, None], pa.timestamp("us", tz="UTC")),
        ([pd.Timestamp(AWARE)], pa.timestamp("us", tz="UTC")),
    ],
    ids=repr,
)
def test_a_type_is_told_by_its_values(values: list[Any], expected: pa.DataType) -> None:
    assert inferred(*values) == expected


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([None, None], "is None in all"),
        ([Decimal("1.5")], "decimal"),
        ([NAIVE], "without a zone"),
        ([pd.NaT], "without a zone"),
        ([date(2024, 1, 1), NAIVE], "mixes date, datetime without a zone"),
        ([date(2024, 1, 1), AWARE], "mixes date, datetime with a zone"),
        ([AWARE, NAIVE], "mixes datetime with a zone, datetime without a zone"),
        ([2**63], "outside of 64 bits"),
        ([-(2**63) - 1, 1], "outside of 64 bits"),
        ([1, True], "mixes bool, int"),
        ([1, "1"], "mixes int, str"),
        ([b"1", "1"], "mixes bytes, str"),
        ([Decimal(1), 1], "mixes Decimal, int"),
        ([time(1)], "declare it with columns= as 'time'"),
        ([[1]], "declare it with columns= as 'json'"),
        ([{}], "declare it with columns= as 'json'"),
        ([UUID(int=1)], "declare it with columns= as 'uuid'"),
        ([timedelta(1)], "declare it with columns= as 'int64'"),
        pytest.param([object()], "no column type", id="an object"),
    ],
    ids=repr,
)
def test_a_guess_is_refused(values: list[Any], reason: str) -> None:
    with pytest.raises(SchemaRefusedError, match=reason) as caught:
        inferred(*values)
    assert (caught.value.table, caught.value.column) == ("orders", "v")


def test_the_first_rows_names_are_the_columns_in_its_order_and_nullable() -> None:
    columns, _ = peek_columns([{"b": 1, "a": "x"}, {"a": "y", "b": 2}], "orders")
    assert columns == declared_columns({"b": "int64", "a": "string"})


def test_nothing_that_was_read_is_lost() -> None:
    def source() -> Iterator[dict[str, int]]:
        for n in range(CHUNK_ROWS + 10):
            yield {"id": n}

    columns, rows = peek_columns(source(), "orders")
    table = pa.Table.from_batches(encode(rows, Needs(columns, ("id",), frozenset({"id"}), "orders")))
    assert table.column("id").to_pylist() == list(range(CHUNK_ROWS + 10))


@pytest.mark.parametrize("other", [{"a": 1}, {"a": 1, "b": 1, "c": 1}, {"a": 1, "c": 1}], ids=str)
def test_a_later_row_with_other_names_is_refused(other: dict[str, int]) -> None:
    with pytest.raises(InvalidRowError) as caught:
        peek_columns([{"a": 1, "b": 1}, other], "orders")
    assert caught.value.row == 1


@pytest.mark.parametrize("rows", [[], iter(())], ids=["list", "iterator"])
def test_no_row_tells_nothing(rows: object) -> None:
    with pytest.raises(SchemaRefusedError, match="columns="):
        peek_columns(rows, "orders")


@pytest.mark.parametrize("row", [{}, {"a": 1, "A": 2}, {"__rowMarker__": 4, "id": 1}, {5: 1}], ids=str)
def test_names_that_cannot_stand_in_a_table_are_refused(row: dict[Any, Any]) -> None:
    with pytest.raises(SchemaRefusedError) as caught:
        peek_columns([row], "orders")
    assert caught.value.table == "orders"


@pytest.mark.parametrize("rows", [None, {"id": 1}, "x", [1]], ids=repr)
def test_what_is_no_rows_is_no_schema_either(rows: object) -> None:
    with pytest.raises(InvalidRowError):
        peek_columns(rows, "orders")


def test_arrow_tells_its_own_types_as_files_have_them() -> None:
    fields: Any = [pa.field("id", pa.uint8(), nullable=False), pa.field("name", pa.dictionary(pa.int32(), pa.string()))]
    arrays = [pa.array([1], pa.uint8()), pa.array(["a"]).dictionary_encode()]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    columns, rows = peek_columns(table, "orders")
    assert columns == declared_columns({"id": "uint8", "name": "string"})
    assert [b.num_rows for b in encode(rows, Needs(columns, (), frozenset(columns.names), "orders"))] == [1]


def test_a_reader_is_not_used_up_by_the_look() -> None:
    columns, rows = peek_columns(pa.table({"id": [1, 2]}).to_reader(), "orders")
    [batch] = encode(rows, Needs(columns, ("id",), frozenset({"id"}), "orders"))
    assert batch.column("id").to_pylist() == [1, 2]


def test_the_marker_column_is_no_column_of_the_table() -> None:
    columns, _ = peek_columns(pa.table({"id": [1], "__rowMarker__": [4]}), "orders")
    assert columns.names == ["id"]


def test_an_extension_type_that_nobody_registered_tells_no_type() -> None:
    field: Any = pa.field("v", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})
    with pytest.raises(SchemaRefusedError, match=r"geoarrow.wkb") as caught:
        peek_columns(pa.table([pa.array([b"x"])], schema=pa.schema([field])), "orders")
    assert (caught.value.table, caught.value.column) == ("orders", "v")


@pytest.mark.parametrize("column", [pa.nulls(1), pa.array([[1]]), pa.array([{"a": 1}])], ids=str)
def test_an_arrow_type_that_cannot_be_mirrored_is_refused(column: Any) -> None:
    with pytest.raises(SchemaRefusedError) as caught:
        peek_columns(pa.table({"v": column}), "orders")
    assert (caught.value.table, caught.value.column) == ("orders", "v")
