"""A new writer behind what an earlier one left: what it skips, what it publishes again, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from openmirror_writer import ConcurrentWriterError, OpenMirrorError, ResumeMismatchError, Roll, Writer
from openmirror_writer.zone import LandingTable
from tests.writer.landing import all_landed, failing, mirrored, names, record

ROWS = [{"id": i, "v": f"v{i}"} for i in range(7)]


def killed(table: LandingTable, verb: str, rows: list[dict[str, Any]], position: Any, roll: Roll) -> None:
    """The source breaks in the middle of a call, and nobody goes on with that writer."""
    with pytest.raises(ValueError, match="the source broke"):
        getattr(Writer(table, roll=roll), verb)(failing(*rows), position=position)


@pytest.mark.parametrize("rows_a_file", [1, 2, 3, 5])
@pytest.mark.parametrize("again", [1, 2, 4, 100])
def test_a_load_goes_on_behind_what_stands(orders: LandingTable, rows_a_file: int, again: int) -> None:
    killed(orders, "initial_load", ROWS, 1, Roll(rows=rows_a_file))
    standing = sum(map(len, all_landed(orders)))
    writer = Writer(orders, roll=Roll(rows=again))
    assert (writer.state, writer.position) == (("loading", None))
    writer.initial_load(ROWS, position=1)
    assert mirrored(orders.zone) == ROWS
    assert standing == 6 // rows_a_file * rows_a_file
    assert (writer.state, writer.published_position) == ("following", 1)


@pytest.mark.parametrize("rows_a_file", [1, 2, 3])
def test_an_insert_goes_on_behind_what_stands(orders: LandingTable, rows_a_file: int) -> None:
    Writer(orders).initial_load([], position=0)
    killed(orders, "insert", ROWS, 1, Roll(rows=rows_a_file))
    writer = Writer(orders)
    assert writer.position == 0
    writer.insert(ROWS, position=1)
    assert mirrored(orders.zone) == ROWS
    assert record(orders, len(all_landed(orders))).pending == {}


def test_an_upsert_is_published_again_whole(orders: LandingTable) -> None:
    Writer(orders).initial_load([], position=0)
    killed(orders, "upsert", ROWS, 1, Roll(rows=3))
    assert record(orders, 3).pending[""].replay == "safe"
    Writer(orders).upsert(ROWS, position=1)
    assert [len(rows) for rows in all_landed(orders)] == [0, 3, 3, 7]
    assert mirrored(orders.zone) == ROWS


@pytest.mark.parametrize("verb", ["insert", "initial_load"])
@pytest.mark.parametrize(
    "other",
    [
        [*ROWS[1::-1], *ROWS[2:]],
        [{"id": 0, "v": "other"}, *ROWS[1:]],
        [{"id": 0, "v": None}, *ROWS[1:]],
        ROWS[1:],
        ROWS[:1],
    ],
    ids=["order", "value", "null", "first missing", "too few"],
)
def test_a_source_that_gives_other_rows_is_a_mismatch_and_nothing_is_published(
    orders: LandingTable, verb: str, other: list[dict[str, Any]]
) -> None:
    if verb == "insert":
        Writer(orders).initial_load([], position=0)
    killed(orders, verb, ROWS, 1, Roll(rows=2))
    before = names(orders)
    writer = Writer(orders)
    with pytest.raises(ResumeMismatchError, match="make the source repeatable, or drop_table") as caught:
        getattr(writer, verb)(other, position=1)
    assert (caught.value.table, caught.value.position) == ("orders", 1)
    assert names(orders) == before
    getattr(writer, verb)(ROWS, position=1)
    assert mirrored(orders.zone) == ROWS


def test_only_the_last_thousand_rows_are_compared(orders: LandingTable) -> None:
    rows = [{"id": i, "v": "x"} for i in range(2500)]
    table = pa.Table.from_pylist(rows)
    writer = Writer(orders, roll=Roll(rows=1500))
    with pytest.raises(RuntimeError):
        writer.initial_load(
            pa.RecordBatchReader.from_batches(table.schema, _then_killed(table.to_batches())), position=1
        )
    assert len(all_landed(orders)[0]) == 1500
    rows[499]["v"] = "changed"
    Writer(orders).initial_load(rows, position=1)
    drifted = [{**row, "v": "drifted"} for row in rows]
    assert len(mirrored(orders.zone)) == 2500
    assert drifted[500] not in mirrored(orders.zone)


def test_the_first_of_the_last_thousand_rows_is_compared(orders: LandingTable) -> None:
    rows = [{"id": i, "v": "x"} for i in range(2500)]
    table = pa.Table.from_pylist(rows)
    with pytest.raises(RuntimeError):
        Writer(orders, roll=Roll(rows=1500)).initial_load(
            pa.RecordBatchReader.from_batches(table.schema, _then_killed(table.to_batches())), position=1
        )
    rows[500]["v"] = "changed"
    with pytest.raises(ResumeMismatchError):
        Writer(orders).initial_load(rows, position=1)


def _then_killed(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    raise RuntimeError("killed")


def test_rows_without_a_position_that_stand_are_skipped_too(orders: LandingTable) -> None:
    first = Writer(orders)
    first.insert(ROWS[:1], position=1)
    first.insert(ROWS[1:3])
    writer = Writer(orders)
    assert writer.position == 1
    writer.insert(ROWS[1:2])
    writer.insert(ROWS[2:4], position=2)
    assert mirrored(orders.zone) == ROWS[:4]


def test_where_no_position_is_ever_told_delivery_is_at_least_once(orders: LandingTable) -> None:
    for _ in range(2):
        Writer(orders).insert(ROWS[:1])
    assert mirrored(orders.zone) == [ROWS[0], ROWS[0]]


def test_a_position_that_is_reached_by_skipping_alone_is_recorded(orders: LandingTable) -> None:
    """All its rows stand, only the word that they are all is missing."""
    first = Writer(orders)
    first.insert(ROWS[:1], position=1)
    first.insert(ROWS[1:3])
    writer = Writer(orders)
    writer.insert(ROWS[1:3], position=2)
    assert writer.published_position == 2
    assert (Writer(orders).position, mirrored(orders.zone)) == (2, ROWS[:3])


def test_nothing_is_recorded_while_rows_are_still_to_be_skipped(orders: LandingTable) -> None:
    first = Writer(orders, roll=Roll(rows=2))
    first.insert(ROWS[:1], position=1)
    killed(orders, "insert", ROWS[1:4], 3, Roll(rows=2))
    with Writer(orders) as writer:
        writer.insert(ROWS[1:2], position=2)
        assert writer.position == 2
    assert writer.published_position == 1
    assert Writer(orders).position == 1
    with Writer(orders) as writer:
        writer.insert(ROWS[1:4], position=3)
    assert mirrored(orders.zone) == ROWS[:4]


def test_an_older_writer_is_refused_when_a_newer_one_has_published(orders: LandingTable) -> None:
    older, newer = Writer(orders), Writer(orders)
    newer.insert(ROWS[:1], position=1)
    with pytest.raises(ConcurrentWriterError, match="stop one of them"):
        older.insert(ROWS[:1], position=1)
    with pytest.raises(OpenMirrorError, match="open a new one"):
        older.insert(ROWS[:1], position=1)
    assert mirrored(orders.zone) == ROWS[:1]


def test_a_newer_writer_that_only_looked_refuses_nobody(orders: LandingTable) -> None:
    older = Writer(orders)
    older.insert(ROWS[:1])
    Writer(orders)
    older.insert(ROWS[1:2])
    assert mirrored(orders.zone) == ROWS[:2]
