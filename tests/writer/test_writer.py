"""`Writer`: what each verb leaves in the zone."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from openmirror_writer import (
    ChangeBatch,
    InvalidRowError,
    LandingZone,
    OpenMirrorError,
    Roll,
    RowMarker,
    SchemaRefusedError,
    Writer,
)
from openmirror_writer.zone import LandingTable
from tests.writer.landing import (
    all_landed,
    changes,
    failing,
    landed,
    mirrored,
    names,
    record,
)

A, B, C, D = ({"id": i, "v": v} for i, v in enumerate("abcd"))


# --------------------------------------------------------------------------------------------------------------- verbs


@pytest.mark.rule("6.1", "L34")
@pytest.mark.parametrize("verb", ["insert", "update", "upsert", "delete"])
def test_each_verb_marks_its_rows_and_is_published_before_it_returns(orders: LandingTable, verb: str) -> None:
    getattr(Writer(orders), verb)([A, B], position=1)
    marker = int(RowMarker[verb.upper()])
    assert landed(orders, 1) == [(marker, 0, "a"), (marker, 1, "b")]
    assert (record(orders, 1).position, record(orders, 1).phase) == (1, "following")


@pytest.mark.rule("6.2", "L46")
def test_a_delete_needs_the_keys_only(orders: LandingTable) -> None:
    Writer(orders).delete([{"id": 1}, {"id": 2, "v": "known"}])
    assert landed(orders, 1) == [(2, 1, None), (2, 2, "known")]


def test_a_delete_needs_what_is_never_null_too(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": "string not null"})
    writer = Writer(table)
    with pytest.raises(InvalidRowError, match="'v'"):
        writer.delete([{"id": 1}])
    writer.delete([{"id": 1, "v": "a"}])
    assert landed(table, 1) == [(2, 1, "a")]


@pytest.mark.rule("6.5", "L39", "L40")
def test_an_initial_load_is_marker_free_and_ends_loading(orders: LandingTable) -> None:
    writer = Writer(orders)
    assert writer.state == "new"
    writer.initial_load([A, B], position=5)
    assert (writer.state, writer.position, writer.published_position) == ("following", 5, 5)
    assert landed(orders, 1) == [(None, 0, "a"), (None, 1, "b")]
    assert record(orders, 1).phase == "following"


@pytest.mark.rule("4.8")
def test_an_initial_load_of_no_rows_is_a_file_of_no_rows(orders: LandingTable) -> None:
    Writer(orders).initial_load([], position=5)
    assert landed(orders, 1) == []
    assert (record(orders, 1).position, record(orders, 1).phase) == (5, "following")
    assert Writer(orders).state == "following"


def test_an_initial_load_of_no_rows_needs_its_columns(zone: LandingZone) -> None:
    with pytest.raises(SchemaRefusedError, match="give columns="):
        Writer(zone.table("orders", key_columns=["id"])).initial_load([])


@pytest.mark.rule("6.5", "L42")
def test_an_initial_load_is_refused_once_the_table_is_following(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.upsert([A])
    with pytest.raises(OpenMirrorError, match="has ended already"):
        writer.initial_load([A])
    with pytest.raises(OpenMirrorError, match="has ended already"):
        Writer(orders).initial_load([A])


@pytest.mark.parametrize("verb", ["insert", "upsert", "delete", "update", "write", "advance"])
def test_behind_a_broken_load_only_the_load_goes_on(orders: LandingTable, verb: str) -> None:
    with pytest.raises(ValueError, match="broke"):
        Writer(orders, roll=Roll(rows=1)).initial_load(failing(A, B, C), position=1)
    writer = Writer(orders)
    assert writer.state == "loading"
    with pytest.raises(OpenMirrorError, match="call initial_load again"):
        getattr(writer, verb)([A])
    writer.initial_load([A, B, C], position=1)
    assert mirrored(orders.zone) == [A, B, C]


@pytest.mark.parametrize("inside", [False, True])
def test_an_initial_load_publishes_its_last_file_itself(orders: LandingTable, inside: bool) -> None:  # noqa: FBT001
    writer = Writer(orders)
    if inside:
        writer.__enter__()
    writer.initial_load([A], position=1)
    assert writer.published_position == 1
    if inside:
        writer.__exit__(None, None, None)


@pytest.mark.rule("6.3", "L45")
def test_a_changed_key_is_delete_and_upsert_in_one_file_however_long_the_call(orders: LandingTable) -> None:
    with Writer(orders, roll=Roll(rows=2)) as writer:
        writer.insert([D])
        writer.update([A, B, {"id": 9, "v": "c"}], old_keys=[{"id": 0}, {"id": 7}, {"id": 8}], position=1)
    assert all_landed(orders) == [
        [(0, 3, "d")],
        [(2, 7, None), (2, 8, None), (1, 0, "a"), (4, 1, "b"), (4, 9, "c")],
    ]


def test_swapped_keys_swap_their_rows(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.initial_load([A, B])
    writer.update([{"id": 1, "v": "a"}, {"id": 0, "v": "b"}], old_keys=[{"id": 0}, {"id": 1}])
    assert mirrored(orders.zone) == [{"id": 0, "v": "b"}, {"id": 1, "v": "a"}]


def test_a_key_twice_in_a_key_change_is_an_error_and_nothing_is_published(orders: LandingTable) -> None:
    writer = Writer(orders)
    with pytest.raises(InvalidRowError, match="the new key of row 1 is also that of row 0"):
        writer.update([A, A], old_keys=[{"id": 5}, {"id": 6}])
    with pytest.raises(InvalidRowError, match="the old key of row 1 is also that of row 0"):
        writer.update([A, B], old_keys=[{"id": 5}, {"id": 5}])
    assert names(orders) == []


def test_old_keys_without_rows_are_an_error_even_while_columns_are_unknown(zone: LandingZone) -> None:
    with pytest.raises(InvalidRowError, match="one old key"):
        Writer(zone.table("orders", key_columns=["id"])).update([], old_keys=[{"id": 1}])


def test_old_keys_are_exactly_the_key_columns(orders: LandingTable) -> None:
    with pytest.raises(InvalidRowError, match="'v'"):
        Writer(orders).update([A], old_keys=[B])


# --------------------------------------------------------------------------------------------------------------- write


def test_write_takes_a_batch_of_changes_in_their_order(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.write(changes((2, 1, None), (4, 2, "b"), (0, 3, "c"), (1, 2, "d"), position=6))
    assert landed(orders, 1) == [(2, 1, None), (4, 2, "b"), (0, 3, "c"), (1, 2, "d")]
    assert writer.published_position == 6


def test_write_takes_an_iterable_of_batches_each_a_call_of_its_own(orders: LandingTable) -> None:
    with Writer(orders, roll=Roll(rows=3)) as writer:
        writer.write((changes((4, i, "x"), (4, i + 10, "x"), position=i) for i in range(3)), position=9)
        assert writer.position == 9
    assert [len(rows) for rows in all_landed(orders)] == [2, 2, 2], "a batch that fits is not split"
    assert [record(orders, n).position for n in (1, 2, 3)] == [0, 1, 9]


def test_write_takes_arrow_whose_last_column_is_the_marker(orders: LandingTable) -> None:
    Writer(orders).write(pa.table({"v": ["a", None], "id": [1, 2], "__rowMarker__": [4, 2]}), position=3)
    assert landed(orders, 1) == [(4, 1, "a"), (2, 2, None)]
    assert record(orders, 1).position == 3


@pytest.mark.parametrize(
    "first",
    [
        changes((4, 1, "a")),
        pa.table({"id": [1], "v": ["a"], "__rowMarker__": pa.array([4], pa.int8())}),
        [changes((4, 1, "a"))],
    ],
)
def test_write_infers_the_columns_of_a_new_table(zone: LandingZone, first: Any) -> None:
    table = zone.table("orders", key_columns=["id"])
    Writer(table).write(first)
    assert landed(table, 1) == [(4, 1, "a")]


@pytest.mark.parametrize("odd", [None, 7, [A], A, [7], "text"])
def test_write_refuses_what_are_no_changes(orders: LandingTable, odd: Any) -> None:
    with pytest.raises(InvalidRowError, match="ChangeBatches with markers, or Arrow") as caught:
        Writer(orders).write(odd)
    assert caught.value.table == "orders"
    assert names(orders) == []


def test_write_refuses_marker_free_changes(orders: LandingTable) -> None:
    with pytest.raises(InvalidRowError, match="with markers"):
        Writer(orders).write(ChangeBatch(pa.record_batch({"id": [1], "v": ["a"]})))


@pytest.mark.parametrize("marker", [3, None, 5])
def test_write_refuses_an_unknown_marker_and_names_its_row(orders: LandingTable, marker: int | None) -> None:
    data = pa.table({"id": [1, 2], "v": ["a", "b"], "__rowMarker__": pa.array([4, marker], pa.int32())})
    with pytest.raises(InvalidRowError, match="row marker") as caught:
        Writer(orders).write(data)
    assert (caught.value.row, caught.value.key, caught.value.value) == (1, {"id": 2}, marker)


def test_a_bad_position_of_write_is_refused_before_any_batch_is_taken(orders: LandingTable) -> None:
    with pytest.raises(OpenMirrorError, match="JSON"):
        Writer(orders).write([changes((4, 1, "a"))], position=(1, 2))
    assert names(orders) == []


def test_an_insert_behind_a_delete_of_its_key_in_one_write_is_safe(orders: LandingTable) -> None:
    writer = Writer(orders, roll=Roll(rows=3))
    writer.advance(1)
    with pytest.raises(ValueError, match="broke"):
        writer.write(pa.RecordBatchReader.from_batches(SAFE[0].schema, _broken(SAFE)), position=2)
    assert record(orders, 1).pending[""].replay == "safe"
    with Writer(orders) as again:
        again.write(pa.Table.from_batches(SAFE), position=2)
    assert mirrored(orders.zone) == [{"id": i, "v": v} for i in (1, 2, 3) for v in "xy"]


SAFE = [
    pa.record_batch(
        {"id": [key] * 3, "v": pa.array([None, "x", "y"]), "__rowMarker__": pa.array([2, 0, 0], pa.int32())}
    )
    for key in (1, 2, 3)
]


def _broken(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches[:2]
    raise ValueError("the source broke")


# -------------------------------------------------------------------------------------------------------------- itself


def test_it_says_which_table_it_writes_and_how_far_it_is(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.upsert([A], position=3)
    assert repr(writer) == "Writer('orders', state='following', position=3)"
    assert writer.key_columns == ("id",)


def test_it_cannot_be_pickled_and_its_table_can(orders: LandingTable, tmp_path: Any) -> None:
    with pytest.raises(OpenMirrorError, match="pickle the LandingTable"):
        pickle.dumps(Writer(orders))
    table = LandingZone(tmp_path).table("orders", key_columns=["id"], columns={"id": "int64", "v": "string"})
    Writer(pickle.loads(pickle.dumps(table))).upsert([A])  # noqa: S301 - our own bytes
    assert landed(table, 1) == [(4, 0, "a")]


def test_rows_that_use_their_own_writer_are_refused_and_the_writer_goes_on(orders: LandingTable) -> None:
    writer = Writer(orders)

    def rows() -> Iterator[dict[str, Any]]:
        yield A
        writer.upsert([B])

    with pytest.raises(OpenMirrorError, match="use its own writer"):
        writer.upsert(rows())
    writer.upsert([C])
    assert all_landed(orders) == [[(4, 2, "c")]]
