"""Rows and a verb become marked batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from openmirror_writer.changes import ChangeBatch, RowMarker
from openmirror_writer.errors import InvalidRowError, SchemaRefusedError
from openmirror_writer.schema import declared_columns
from openmirror_writer.writer.statement import Resets, judged, key_change, marked, refuse_keyless

COLUMNS = declared_columns({"id": "int64", "part": "string", "v": "string", "n": "int64 not null"})
KEYS = ["id", "part"]


def rows_of(*rows: tuple[Any, ...], columns: pa.Schema = COLUMNS) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist([dict(zip(columns.names, r, strict=True)) for r in rows], schema=columns)]


def keys_of(*keys: tuple[Any, ...]) -> list[pa.RecordBatch]:
    return rows_of(*keys, columns=pa.schema([COLUMNS.field(k) for k in KEYS]))


def flat(batches: list[ChangeBatch]) -> list[tuple[Any, ...]]:
    found = []
    for batch in batches:
        assert batch.markers is not None
        found += [(m, *r.values()) for m, r in zip(batch.markers.to_pylist(), batch.rows.to_pylist(), strict=True)]
    return found


def change(new: list[pa.RecordBatch], old: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return flat(key_change(new, old, COLUMNS, KEYS, "t"))


def test_a_verb_marks_every_row() -> None:
    (batch,) = marked(rows_of((1, "a", "x", 1), (2, "a", "y", 2)), RowMarker.DELETE)
    assert batch.markers is not None
    assert batch.markers.to_pylist() == [2, 2]


def test_a_changed_key_is_a_delete_and_an_upsert_and_deletes_come_first() -> None:
    got = change(rows_of((1, "a", "x", 7), (5, "b", "y", 8)), keys_of((3, "a"), (4, "b")))
    assert got == [(2, 3, "a", None, 7), (2, 4, "b", None, 8), (4, 1, "a", "x", 7), (4, 5, "b", "y", 8)]


def test_a_row_whose_key_stayed_is_an_update() -> None:
    got = change(rows_of((1, "a", "x", 7), (2, "b", "y", 8)), keys_of((1, "a"), (9, "b")))
    assert got == [(2, 9, "b", None, 8), (1, 1, "a", "x", 7), (4, 2, "b", "y", 8)]


def test_swapped_keys_delete_both_before_either_comes() -> None:
    got = change(rows_of((2, "a", "was 1", 0), (1, "a", "was 2", 0)), keys_of((1, "a"), (2, "a")))
    assert [(m, key) for m, key, *_ in got] == [(2, 1), (2, 2), (4, 2), (4, 1)]


def test_a_part_of_a_key_that_changed_is_a_changed_key() -> None:
    got = change(rows_of((1, "b", "x", 0)), keys_of((1, "a")))
    assert [(m, key, part) for m, key, part, *_ in got] == [(2, 1, "a"), (4, 1, "b")]


def test_rows_in_several_batches_keep_their_markers() -> None:
    new = rows_of((1, "a", "x", 0)) + rows_of((2, "a", "y", 0), (3, "a", "z", 0))
    got = change(new, keys_of((1, "a"), (2, "b")) + keys_of((3, "a")))
    assert [(m, key) for m, key, *_ in got] == [(2, 2), (1, 1), (4, 2), (1, 3)]


@pytest.mark.parametrize(
    ("new", "old", "which", "row", "key"),
    [
        ([(1, "a", "", 0), (1, "a", "", 0)], [(1, "a"), (2, "a")], "new", 1, {"id": 1, "part": "a"}),
        ([(1, "a", "", 0), (2, "a", "", 0)], [(3, "c"), (3, "c")], "old", 1, {"id": 3, "part": "c"}),
    ],
)
def test_a_key_twice_among_the_old_or_the_new_ones_is_an_error(
    new: list[Any], old: list[Any], which: str, row: int, key: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRowError, match=f"the {which} key of row 1 is also that of row 0") as caught:
        change(rows_of(*new), keys_of(*old))
    assert (caught.value.table, caught.value.row, caught.value.key) == ("t", row, key)


@pytest.mark.parametrize("old", [[], [(1, "a"), (2, "a")]])
def test_each_row_needs_one_old_key(old: list[Any]) -> None:
    with pytest.raises(InvalidRowError, match="one old key a row"):
        change(rows_of((1, "a", "x", 0)), keys_of(*old))


def test_no_rows_and_no_old_keys_are_no_batches() -> None:
    assert key_change([], [], COLUMNS, KEYS, "t") == []


# ------------------------------------------------------------------------------- which inserts may be published again


def holds_exact(*calls: list[tuple[int, int]], keys: list[str] | None = None) -> list[bool]:
    """Markers and ids, batch by batch of one call."""
    resets = Resets(["id"] if keys is None else keys)
    return [
        resets.holds_exact(
            ChangeBatch(
                pa.RecordBatch.from_pydict({"id": pa.array([i for _, i in batch], pa.int64())}),
                pa.array([m for m, _ in batch], pa.int32()),
            )
        )
        for batch in calls
    ]


def test_inserts_behind_a_delete_of_their_key_may_be_published_again() -> None:
    assert holds_exact([(2, 1), (0, 1), (0, 1)]) == [False]


def test_the_delete_may_stand_in_an_earlier_batch_of_the_call() -> None:
    assert holds_exact([(2, 1)], [(0, 1)], [(0, 2)]) == [False, False, True]


@pytest.mark.parametrize("batch", [[(0, 1)], [(2, 1), (0, 2)], [(0, 1), (2, 1)], [(4, 1), (0, 1)], [(1, 1), (0, 1)]])
def test_any_other_insert_must_not_be_published_twice(batch: list[tuple[int, int]]) -> None:
    assert holds_exact(batch) == [True]


@pytest.mark.parametrize("batch", [[], [(4, 1), (1, 2), (2, 3)]])
def test_other_markers_may_be_published_again(batch: list[tuple[int, int]]) -> None:
    assert holds_exact(batch) == [False]


def test_without_keys_every_insert_counts() -> None:
    assert holds_exact([(0, 1)], keys=[]) == [True]


def test_marker_free_rows_must_not_be_published_twice() -> None:
    (batch,) = rows_of((1, "a", "x", 0))
    assert Resets(KEYS).holds_exact(ChangeBatch(batch)) is True
    assert Resets(KEYS).holds_exact(ChangeBatch(batch.slice(0, 0))) is False


def test_a_table_without_keys_takes_marker_0_only() -> None:
    (rows,) = rows_of((1, "a", "x", 0))
    inserts = ChangeBatch(rows, pa.array([0], pa.int32()))
    assert [exact for _, exact in judged([inserts], [], "t")] == [True]
    with pytest.raises(SchemaRefusedError, match="needs key columns"):
        list(judged([ChangeBatch(rows, pa.array([2], pa.int32()))], [], "t"))


def test_a_verb_that_looks_rows_up_needs_keys() -> None:
    refuse_keyless("upsert", ["id"], "t")
    with pytest.raises(SchemaRefusedError, match="upsert needs key columns") as caught:
        refuse_keyless("upsert", [], "t")
    assert caught.value.table == "t"
