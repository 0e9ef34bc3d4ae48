"""`Writer`: what a call or a file that fails leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from openmirror_writer import (
    ConcurrentWriterError,
    InvalidRowError,
    LandingZone,
    OpenMirrorError,
    Roll,
    StorageError,
    Writer,
)
from openmirror_writer.writer import cut
from openmirror_writer.zone import LandingTable
from tests.writer.landing import (
    all_landed,
    failing,
    inside,
    mirrored,
    record,
    refuse_file,
    tapped,
    until,
)

A, B, C, D = ({"id": i, "v": v} for i, v in enumerate("abcd"))
BAD = {"id": 9, "v": 9}


# -------------------------------------------------------------------------------------------------------- failed calls


def test_a_failed_call_leaves_the_buffer_as_it_was(orders: LandingTable) -> None:
    with Writer(orders) as writer:
        writer.upsert([A], position=1)
        with pytest.raises(InvalidRowError) as caught:
            writer.upsert([B, BAD], position=2)
        assert (caught.value.published_rows, writer.position) == (0, 1)
        writer.upsert([C], position=2)
    assert all_landed(orders) == [[(4, 0, "a"), (4, 2, "c")]]


@pytest.mark.parametrize("inside", [True, False])
def test_a_failed_call_says_how_many_of_its_rows_stand_in_files(orders: LandingTable, inside: bool) -> None:  # noqa: FBT001
    writer = Writer(orders, roll=Roll(rows=2))
    if inside:
        writer.__enter__()
    writer.upsert([D], position=1)
    with pytest.raises(InvalidRowError) as caught:
        writer.upsert(failing(A, B, C, {"id": None, "v": "x"}), position=2)
    assert caught.value.published_rows == 2
    assert (caught.value.row, caught.value.column) == (3, "id")
    assert writer.position == 1
    if inside:
        writer.__exit__(None, None, None)
    assert all_landed(orders) == [[(4, 3, "d")], [(4, 0, "a"), (4, 1, "b")]]
    assert record(orders, 2).position == 1


def test_a_failed_insert_comes_again_whole_and_no_row_stands_twice(orders: LandingTable) -> None:
    with Writer(orders, roll=Roll(rows=2)) as writer:
        writer.insert([D], position=1)
        with pytest.raises(InvalidRowError):
            writer.insert(failing(A, B, C, {"id": None, "v": "x"}), position=2)
        writer.insert([A, B, C, D], position=2)
    assert mirrored(orders.zone) == [A, B, C, D, D]
    assert Writer(orders).position == 2


def test_a_failed_load_comes_again_whole_and_no_row_stands_twice(orders: LandingTable) -> None:
    writer = Writer(orders, roll=Roll(rows=1))
    with pytest.raises(ValueError, match="broke") as caught:
        writer.initial_load(failing(A, B, C), position=1)
    assert caught.value.__notes__ == ["2 rows of this call stand in published files of orders"]
    assert writer.state == "loading"
    writer.initial_load([A, B, C], position=1)
    assert mirrored(orders.zone) == [A, B, C]


def test_rows_of_a_file_that_was_refused_are_not_called_published(zone: LandingZone) -> None:
    table = tapped(zone, before=refuse_file(3))
    writer = Writer(table, roll=Roll(rows=1))
    writer.upsert([D], position=1)
    with pytest.raises(StorageError, match="forbidden") as caught:
        writer.upsert(failing(A, B, C), position=2)
    assert caught.value.published_rows == 1


# ---------------------------------------------------------------------------------------------------- failed publishes


def test_what_a_file_raises_in_the_worker_comes_as_it_is_at_the_next_call(zone: LandingZone) -> None:
    writer = Writer(tapped(zone, before=refuse_file(1)), roll=Roll(rows=1))
    writer.__enter__()
    writer.upsert([A], position=1)
    until(lambda: writer._gate.failure is not None)
    with pytest.raises(StorageError, match="forbidden"):
        writer.upsert([B], position=2)
    with pytest.raises(OpenMirrorError, match="failed before"):
        writer.__exit__(None, None, None)


def test_what_a_file_raises_in_the_worker_comes_as_it_is_at_the_end_of_with(zone: LandingZone) -> None:
    writer = Writer(tapped(zone, before=refuse_file(1)), roll=Roll(rows=1))
    with pytest.raises(StorageError, match="forbidden"), writer:
        writer.upsert([A], position=1)
    with pytest.raises(OpenMirrorError, match="failed before"):
        writer.flush()


@pytest.mark.parametrize("act", ["upsert", "advance", "flush", "discard", "write"])
def test_a_writer_that_failed_is_of_no_more_use(zone: LandingZone, act: str) -> None:
    writer = Writer(tapped(zone, before=refuse_file(1)))
    with pytest.raises(StorageError):
        writer.upsert([A], position=1)
    arguments = {"upsert": ([A],), "advance": (1,), "write": ([],)}.get(act, ())
    with pytest.raises(OpenMirrorError, match="failed before.*open a new one, which finds out what stands"):
        getattr(writer, act)(*arguments)
    assert (writer.published_position, mirrored(zone)) == (None, [])


def test_no_file_is_published_behind_one_that_failed(zone: LandingZone) -> None:
    writer = Writer(tapped(zone, before=refuse_file(2)), roll=Roll(rows=1))
    calls = [partial(writer.upsert, [{"id": number, "v": "x"}], position=number) for number in range(50)]
    with pytest.raises(StorageError):
        inside(writer, *calls)
    assert all_landed(tapped(zone)) == [[(4, 0, "x")]]


def test_an_error_of_the_idle_worker_comes_as_it_is_at_the_next_call(orders: LandingTable) -> None:
    Writer(orders).upsert([A], position=1)
    other = Writer(orders)
    writer = Writer(orders, roll=Roll(age=0.01))
    writer.__enter__()
    other.upsert([B], position=2)
    writer.upsert([C], position=2)
    until(lambda: writer._gate.failure is not None)
    with pytest.raises(ConcurrentWriterError):
        writer.upsert([D], position=3)
    with pytest.raises(OpenMirrorError, match="failed before"):
        writer.__exit__(None, None, None)
    assert all_landed(orders) == [[(4, 0, "a")], [(4, 1, "b")]]


def test_an_interrupt_in_the_middle_of_a_publish_ends_the_writer(zone: LandingZone) -> None:
    def interrupt(operation: str, path: str) -> None:
        if operation == "create" and path.endswith(".parquet"):
            raise KeyboardInterrupt

    writer = Writer(tapped(zone, before=interrupt))
    with pytest.raises(KeyboardInterrupt):
        writer.upsert([A], position=1)
    with pytest.raises(OpenMirrorError, match="failed before"):
        writer.upsert([A], position=1)


def test_an_interrupt_that_loses_a_file_before_it_is_handed_over_ends_the_writer(
    orders: LandingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_within = cut._rows_within
    calls = []

    def interrupt(batch: Any, most: int) -> int:
        calls.append(batch)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return rows_within(batch, most)

    writer = Writer(orders, roll=Roll(rows=1))
    monkeypatch.setattr(cut, "_rows_within", interrupt)
    with pytest.raises(KeyboardInterrupt):
        writer.upsert([A, B], position=1)
    with pytest.raises(OpenMirrorError, match="failed before"):
        writer.upsert([A, B], position=1)


def test_an_interrupt_of_the_source_leaves_the_writer_as_it_was(orders: LandingTable) -> None:
    def interrupted() -> Iterator[dict[str, Any]]:
        yield A
        raise KeyboardInterrupt

    writer = Writer(orders)
    with pytest.raises(KeyboardInterrupt):
        writer.upsert(interrupted(), position=1)
    writer.upsert([A, B], position=1)
    assert mirrored(orders.zone) == [A, B]
