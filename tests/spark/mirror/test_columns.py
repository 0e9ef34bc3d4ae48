"""Columns of files and of the Delta table."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.spark.mirror.columns import Column, columns_behind, columns_of, delta_type, marker_fault


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


@pytest.mark.rule("4.9", "L55")
@pytest.mark.parametrize(
    "arrow", [pa.timestamp("ns"), pa.time64("us"), pa.list_(pa.int8()), pa.float16(), pa.duration("us"), pa.null()]
)
def test_a_type_that_spark_or_delta_cannot_hold_is_refused(arrow: pa.DataType) -> None:
    with pytest.raises(SchemaRefusedError, match="'c'"):
        delta_type("c", arrow)


@pytest.mark.rule("4.9")
@pytest.mark.parametrize(
    "names", [["a", "A"], ["_Metadata"], ["a", "__ROWMARKER__"], ["__om_act"], ["__OM_act"], ["a", "a"]]
)
def test_names_that_cannot_stand_in_the_table_are_refused(names: list[str]) -> None:
    with pytest.raises(SchemaRefusedError):
        columns_of(pa.schema([pa.field(name, pa.int32()) for name in names]))


TABLE = (Column("a", "long"), Column("n", "date", nullable=False))


def test_the_order_of_columns_is_free() -> None:
    assert columns_behind(TABLE, TABLE[::-1]) == TABLE


def test_a_column_that_came_stands_behind_the_others_and_one_that_went_stays() -> None:
    assert columns_behind(TABLE, [Column("z", "date"), TABLE[1]]) == (*TABLE, Column("z", "date"))


@pytest.mark.rule("7.3", "7.4", "7.5", "8.3", "L61")
@pytest.mark.parametrize(
    ("file", "column", "words"),
    [
        ([Column("a", "integer"), TABLE[1]], "a", "Incoming type integer, existing type long (rule 7.4)"),
        ([Column("a", "long", nullable=False), TABLE[1]], "a", "Incoming type long not null, existing type long"),
        ([TABLE[0], Column("n", "date")], "n", "Incoming type date, existing type date not null"),
        ([TABLE[0]], "n", "Column 'n' (date not null) is missing in this file (rule 7.3)"),
        ([*TABLE, Column("b", "date", nullable=False)], "b", "not in the table and not nullable (rule 7.3)"),
        ([Column("A", "long"), TABLE[1]], "A", "Column 'A' is 'a' in the table"),
    ],
)
def test_a_change_that_cannot_be_followed_is_told_in_the_words_of_the_service(
    file: list[Column], column: str, words: str
) -> None:
    with pytest.raises(SchemaRefusedError, match=re.escape(words)) as caught:
        columns_behind(TABLE, file)
    assert caught.value.message.startswith("SchemaMergeFailure: Failed to write table due to schema mismatch.")
    assert "publish the file again" in caught.value.message
    assert caught.value.column == column


@pytest.mark.rule("6.1")
def test_markers_are_integers() -> None:
    assert marker_fault(pa.int64()) is None
    assert marker_fault(None) is None
    assert "string" in (marker_fault(pa.string()) or "")
