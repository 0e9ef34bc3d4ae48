"""Columns of files and of the Delta table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.spark.mirror.columns import Column, columns_of, delta_type, drift, marker_fault


@pytest.mark.parametrize(
    ("arrow", "delta"),
    [
        (pa.int8(), "byte"),
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.decimal128(9, 2), "decimal(9,2)"),
        (pa.timestamp("ms"), "timestamp_ntz"),
        (pa.timestamp("us", tz="UTC"), "timestamp"),
        (pa.large_string(), "string"),
        (pa.date32(), "date"),
    ],
)
def test_each_type_lands_as_spark_reads_it(arrow: pa.DataType, delta: str) -> None:
    assert delta_type("c", arrow) == delta


@pytest.mark.parametrize(
    "arrow", [pa.timestamp("ns"), pa.time64("us"), pa.list_(pa.int8()), pa.float16(), pa.duration("us"), pa.null()]
)
def test_a_type_that_spark_or_delta_cannot_hold_is_refused(arrow: pa.DataType) -> None:
    with pytest.raises(SchemaRefusedError, match="'c'"):
        delta_type("c", arrow)


@pytest.mark.parametrize("names", [["a", "A"], ["_Metadata"], ["a", "__ROWMARKER__"], ["__om_act"], ["a", "a"]])
def test_names_that_cannot_stand_in_the_table_are_refused(names: list[str]) -> None:
    with pytest.raises(SchemaRefusedError):
        columns_of(pa.schema([pa.field(name, pa.int32()) for name in names]))


def test_the_order_of_columns_is_free() -> None:
    assert drift([Column("a", "long"), Column("b", "string")], [Column("b", "string"), Column("a", "long")]) is None


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ([Column("a", "integer")], "column 'a' is long in the table and integer in this file"),
        ([Column("a", "long", nullable=False)], "column 'a' is long in the table and long not null in this file"),
        ([], "column 'a' \\(long\\) of the table is missing"),
        ([Column("a", "long"), Column("b", "date")], "column 'b' \\(date\\) of this file is not in the table"),
    ],
)
def test_drift_names_the_column_and_both_types(file: list[Column], words: str) -> None:
    said = drift([Column("a", "long")], file)
    assert said is not None
    with pytest.raises(ValueError, match=words):
        raise ValueError(said)


def test_markers_are_integers() -> None:
    assert marker_fault(pa.int64()) is None
    assert marker_fault(None) is None
    assert "string" in (marker_fault(pa.string()) or "")
