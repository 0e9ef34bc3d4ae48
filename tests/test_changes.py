"""The narrow waist: batches and their markers."""

from typing import Any

import pyarrow as pa
import pytest

from openmirror_writer.changes import ChangeBatch, RowMarker
from openmirror_writer.errors import InvalidRowError

ROWS = pa.RecordBatch.from_pydict({"id": [1, 2, 3, 4], "v": ["a", "b", None, "d"]})


def _markers(*values: int | None) -> pa.Int32Array:
    return pa.array(values, pa.int32())


def test_the_markers_are_those_of_the_service() -> None:
    assert {marker.name: marker.value for marker in RowMarker} == {"INSERT": 0, "UPDATE": 1, "DELETE": 2, "UPSERT": 4}


def test_a_batch_takes_every_marker() -> None:
    batch = ChangeBatch(ROWS, _markers(0, 1, 2, 4))
    assert (batch.num_rows, batch.position) == (4, None)


def test_a_batch_may_have_no_markers_and_no_rows() -> None:
    assert ChangeBatch(ROWS).markers is None
    assert ChangeBatch(ROWS.slice(0, 0), _markers()).num_rows == 0


@pytest.mark.parametrize(("marker", "row"), [(3, 0), (5, 1), (-1, 2), (None, 3)])
def test_a_marker_that_means_nothing_is_refused_with_its_row(marker: int | None, row: int) -> None:
    values: list[int | None] = [0, 1, 2, 4]
    values[row] = marker
    with pytest.raises(InvalidRowError, match=f"{marker} is no row marker") as caught:
        ChangeBatch(ROWS, _markers(*values))
    assert (caught.value.row, caught.value.column, caught.value.value) == (row, "__rowMarker__", marker)


def test_the_number_of_markers_is_that_of_the_rows() -> None:
    with pytest.raises(InvalidRowError, match="got 3 for 4 rows"):
        ChangeBatch(ROWS, _markers(0, 1, 2))


@pytest.mark.parametrize(
    ("markers", "named"),
    [
        (pa.array([0, 1, 2, 4], pa.int64()), "int64"),
        (pa.array(["0", "1", "2", "4"]), "string"),
        (pa.chunked_array([_markers(0, 1), _markers(2, 4)]), "ChunkedArray"),
        ([0, 1, 2, 4], "list"),
    ],
    ids=["int64", "text", "chunks", "a list"],
)
def test_markers_are_one_array_of_int32(markers: Any, named: str) -> None:
    with pytest.raises(InvalidRowError, match=f"one pyarrow array of int32, got {named}"):
        ChangeBatch(ROWS, markers)


def test_the_rows_are_one_record_batch() -> None:
    table: Any = pa.Table.from_batches([ROWS])
    with pytest.raises(InvalidRowError, match="got Table"):
        ChangeBatch(table)


def test_a_slice_takes_rows_and_markers_and_leaves_the_position() -> None:
    batch = ChangeBatch(ROWS, _markers(0, 1, 2, 4), position=7)
    part = batch.slice(1, 2)
    assert part.rows.column("id").to_pylist() == [2, 3]
    assert part.markers is not None
    assert part.markers.to_pylist() == [1, 2]
    assert part.position is None
    assert batch.slice(3).rows.column("id").to_pylist() == [4]


def test_a_slice_of_rows_without_markers_has_none() -> None:
    assert ChangeBatch(ROWS).slice(1, 2).markers is None


def test_the_size_counts_rows_and_markers() -> None:
    assert ChangeBatch(ROWS, _markers(0, 1, 2, 4)).nbytes == ROWS.nbytes + 16
