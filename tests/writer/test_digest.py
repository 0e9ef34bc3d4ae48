"""`digest`: equal for equal rows however they are cut, different for anything else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.schema import declared_columns
from openmirror_writer.writer.digest import DIGEST_ROWS, digest, digest_rows, last_rows

Rows = list[tuple[Any, ...]]

_NAIVE = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))  # noqa: DTZ001 - columns without a zone
_MILLISECONDS = _NAIVE.map(lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000))
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{f"int{bits}": st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64)},
    "float32": st.floats(allow_nan=False, width=32),
    "float64": st.floats(allow_nan=False),
    "decimal(9,2)": st.decimals(-10_000, 10_000, places=2),
    "decimal(38,0)": st.integers(-(10**37), 10**37).map(Decimal),
    "bool": st.booleans(),
    "string": st.text(max_size=5),
    "binary": st.binary(max_size=5),
    "date": st.dates(date(1700, 1, 1), date(2200, 1, 1)),
    "timestamp": _NAIVE.map(lambda value: value.replace(tzinfo=UTC)),
    "timestamp_ntz": _NAIVE,
}
COLUMNS = declared_columns({**dict(zip(_VALUES, _VALUES, strict=True)), "millis": pa.timestamp("ms")})
_ROW = st.tuples(*(st.none() | values for values in [*_VALUES.values(), _MILLISECONDS]))
_MARKER = st.sampled_from([0, 1, 2, 4])


def batch_of(rows: Rows, markers: Sequence[int] | None = None, columns: pa.Schema = COLUMNS) -> ChangeBatch:
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [pa.array(column, field.type) for column, field in zip(values, columns, strict=True)]
    marked = None if markers is None else pa.array(markers, pa.int32())
    return ChangeBatch(pa.RecordBatch.from_arrays(arrays, schema=columns), marked)


def cut_at(batch: ChangeBatch, cuts: Sequence[int]) -> list[ChangeBatch]:
    edges = [0, *sorted(cut % (batch.num_rows + 1) for cut in cuts), batch.num_rows]
    return [batch.slice(start, end - start) for start, end in pairwise(edges)]


@given(
    rows=st.lists(st.tuples(_ROW, _MARKER), min_size=1, max_size=9),
    before=st.lists(_ROW, max_size=9),
    cuts=st.lists(st.integers(0, 100), max_size=4),
)
def test_equal_rows_have_one_digest_however_they_are_cut_sliced_or_offset(
    rows: list[tuple[Any, int]], before: Rows, cuts: list[int]
) -> None:
    values, markers = [row for row, _ in rows], [marker for _, marker in rows]
    plain = batch_of(values, markers)
    behind_others = batch_of([*before, *values, *before], [4] * len(before) + markers + [4] * len(before))
    sliced = behind_others.slice(len(before), len(values))
    assert digest(cut_at(plain, cuts)) == digest([plain]) == digest(cut_at(sliced, cuts))


@given(rows=st.lists(_ROW, min_size=1, max_size=6), data=st.data())
def test_one_changed_cell_changes_the_digest(rows: Rows, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(rows) - 1), label="row")
    index, values = data.draw(st.sampled_from(list(enumerate([*_VALUES.values(), _MILLISECONDS]))), label="column")
    old = rows[at][index]
    new = data.draw((st.none() | values).filter(lambda value: value != old), label="new value")
    changed = [*rows]
    changed[at] = (*rows[at][:index], new, *rows[at][index + 1 :])
    assert digest([batch_of(changed)]) != digest([batch_of(rows)])


@pytest.mark.parametrize(
    ("kind", "empty"),
    [("int64", 0), ("float64", 0.0), ("decimal(9,2)", Decimal(0)), ("bool", False), ("string", ""), ("binary", b"")],
)
def test_null_differs_from_the_value_that_stands_under_it_in_memory(kind: str, empty: object) -> None:
    columns = declared_columns({"v": kind})
    assert digest([batch_of([(None,)], columns=columns)]) != digest([batch_of([(empty,)], columns=columns)])


def test_where_a_null_stands_matters() -> None:
    columns = declared_columns({"v": "int64"})
    assert digest([batch_of([(None,), (7,)], columns=columns)]) != digest([batch_of([(7,), (None,)], columns=columns)])


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_where_one_text_ends_and_the_next_begins_matters(kind: str) -> None:
    columns = declared_columns({"v": kind})
    one, other = (("ab",), ("c",)), (("a",), ("bc",))
    if kind == "binary":
        one, other = ((b"ab",), (b"c",)), ((b"a",), (b"bc",))  # type: ignore[assignment] # the same in bytes
    assert digest([batch_of([*one], columns=columns)]) != digest([batch_of([*other], columns=columns)])


@given(
    markers=st.lists(_MARKER, min_size=1, max_size=5),
    others=st.lists(_MARKER, min_size=1, max_size=5) | st.none(),
)
def test_other_markers_and_none_at_all_change_the_digest(markers: list[int], others: list[int] | None) -> None:
    columns = declared_columns({"v": "int64"})
    if others is not None:
        others = [*others, *markers][: len(markers)]
    rows = [(1,)] * len(markers)
    same = digest([batch_of(rows, markers, columns)]) == digest([batch_of(rows, others, columns)])
    assert same == (markers == others)


@pytest.mark.parametrize("other", [{"w": "int64"}, {"v": "uint64"}, {"v": "int32"}])
def test_another_name_or_type_of_a_column_changes_the_digest(other: dict[str, str]) -> None:
    assert digest([batch_of([(1,)], columns=declared_columns({"v": "int64"}))]) != digest(
        [batch_of([(1,)], columns=declared_columns(other))]
    )


def test_rows_without_a_column_equal_rows_with_null_in_it_wherever_they_are_cut() -> None:
    narrow, wide = declared_columns({"v": "int64"}), declared_columns({"v": "int64", "w": "string"})
    old, new = batch_of([(1,), (2,)], columns=narrow), batch_of([(3, "x")], columns=wide)
    old_in_wide = batch_of([(1, None), (2, None)], columns=wide)
    assert digest([old]) == digest([old_in_wide])
    assert digest([old, new]) == digest([old_in_wide, new]) == digest([*cut_at(old, [1]), new])
    assert digest([old, new]) != digest([batch_of([(1, "x"), (2, None)], columns=wide), new])


def test_the_order_of_rows_changes_the_digest() -> None:
    columns = declared_columns({"v": "int64"})
    assert digest([batch_of([(1,), (2,)], columns=columns)]) != digest([batch_of([(2,), (1,)], columns=columns)])


def test_a_digest_tells_how_many_rows_it_covers() -> None:
    columns = declared_columns({"v": "int64"})
    assert digest_rows(digest([batch_of([(1,), (2,), (3,)], columns=columns)])) == 3


@given(sizes=st.lists(st.integers(0, 9), max_size=6), most=st.integers(0, 30))
def test_last_rows_are_the_last_ones_in_order(sizes: list[int], most: int) -> None:
    columns = declared_columns({"v": "int64"})
    values = iter(range(1000))
    batches = [batch_of([(next(values),) for _ in range(size)], columns=columns) for size in sizes]
    kept = last_rows(batches, most)
    got = [value for batch in kept for value in batch.rows.column("v").to_pylist()]
    assert got == list(range(sum(sizes)))[max(sum(sizes) - most, 0) :]
    assert all(batch.num_rows for batch in kept)


def test_a_digest_covers_a_thousand_rows_at_most() -> None:
    columns = declared_columns({"v": "int64"})
    rows = last_rows([batch_of([(value,) for value in range(2500)], columns=columns)])
    assert DIGEST_ROWS == 1000
    assert rows[0].rows.column("v").to_pylist() == list(range(1500, 2500))
