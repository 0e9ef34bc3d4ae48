"""`Writer`: what each verb leaves in the zone, and how far it says that it is."""

from __future__ import annotations

import json
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
    PartnerEvents,
    Roll,
    RowMarker,
    SchemaRefusedError,
    SourceInfo,
    TableGoneError,
    UnknownPositionError,
    Writer,
    drop_table,
)
from openmirror_writer.layout import GENERATION, METADATA, PARTNER_EVENTS, data_file
from openmirror_writer.schema import declared_columns
from openmirror_writer.zone import LandingTable
from tests.writer.landing import (
    advances,
    all_landed,
    content,
    identities,
    landed,
    mirrored,
    move_processed,
    names,
    record,
)

A, B, C, D = ({"id": i, "v": v} for i, v in enumerate("abcd"))


def changes(*rows: tuple[int, int, str | None], position: Any = None) -> ChangeBatch:
    """A batch of (marker, id, v)."""
    batch = pa.record_batch(
        {"id": pa.array([r[1] for r in rows], pa.int64()), "v": pa.array([r[2] for r in rows], pa.string())}
    )
    return ChangeBatch(batch, pa.array([r[0] for r in rows], pa.int32()), position)


def failing(*rows: dict[str, Any]) -> pa.RecordBatchReader:
    """Arrow that gives its rows one by one and then breaks."""

    def batches() -> Iterator[pa.RecordBatch]:
        for row in rows:
            yield pa.RecordBatch.from_pylist([row])
        raise ValueError("the source broke")

    return pa.RecordBatchReader.from_batches(pa.RecordBatch.from_pylist([rows[0]]).schema, batches())


# ---------------------------------------------------------------------------------------------------------------- verbs


@pytest.mark.parametrize("verb", ["insert", "update", "upsert", "delete"])
def test_each_verb_marks_its_rows_and_is_published_before_it_returns(orders: LandingTable, verb: str) -> None:
    getattr(Writer(orders), verb)([A, B], position=1)
    marker = int(RowMarker[verb.upper()])
    assert landed(orders, 1) == [(marker, 0, "a"), (marker, 1, "b")]
    assert (record(orders, 1).position, record(orders, 1).phase) == (1, "following")


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


def test_an_initial_load_is_marker_free_and_ends_loading(orders: LandingTable) -> None:
    writer = Writer(orders)
    assert writer.state == "new"
    writer.initial_load([A, B], position=5)
    assert (writer.state, writer.position, writer.published_position) == ("following", 5, 5)
    assert landed(orders, 1) == [(None, 0, "a"), (None, 1, "b")]
    assert record(orders, 1).phase == "following"


def test_an_initial_load_of_no_rows_is_a_file_of_no_rows(orders: LandingTable) -> None:
    Writer(orders).initial_load([], position=5)
    assert landed(orders, 1) == []
    assert (record(orders, 1).position, record(orders, 1).phase) == (5, "following")
    assert Writer(orders).state == "following"


def test_an_initial_load_of_no_rows_needs_its_columns(zone: LandingZone) -> None:
    with pytest.raises(SchemaRefusedError, match="give columns="):
        Writer(zone.table("orders", key_columns=["id"])).initial_load([])


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


# ---------------------------------------------------------------------------------------------------------------- write


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


# ---------------------------------------------------------------------------------------------------- empty and advance


@pytest.mark.parametrize("verb", ["insert", "update", "upsert", "delete", "write"])
@pytest.mark.parametrize("declared", [True, False])
def test_an_empty_batch_only_advances(zone: LandingZone, verb: str, declared: bool) -> None:  # noqa: FBT001
    columns = {"id": "int64", "v": "string"} if declared else None
    writer = Writer(zone.table("orders", key_columns=["id"], columns=columns))
    getattr(writer, verb)([], position=4)
    assert (writer.state, writer.position, writer.published_position) == ("new", 4, None)
    assert names(zone.table("orders")) == []


def test_an_empty_batch_behind_files_is_an_advance_record(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.upsert([A], position=1)
    writer.upsert([], position=2)
    writer.update([], old_keys=[], position=3)
    assert [a.position for a in advances(orders)] == [2, 3]
    assert Writer(orders).position == 3


def test_before_the_first_file_an_advance_is_only_remembered(orders: LandingTable) -> None:
    with Writer(orders) as writer:
        writer.advance(4)
        assert writer.position == 4
    assert names(orders) == []
    assert Writer(orders).position is None
    writer.upsert([A])
    assert record(orders, 1).position == 4


@pytest.mark.parametrize("inside", [True, False])
def test_an_advance_is_recorded_when_with_is_left_or_at_once_outside(orders: LandingTable, inside: bool) -> None:  # noqa: FBT001
    writer = Writer(orders)
    writer.upsert([A], position=1)
    if inside:
        with writer:
            for position in range(2, 6):
                writer.advance(position)
            assert advances(orders) == []
    else:
        writer.advance(5)
    (advance,) = advances(orders)
    last = record(orders, 1)
    assert (advance.number, advance.previous, advance.position) == (1, last.batch, 5)
    assert (advance.generation, advance.phase, advance.pending) == (last.generation, "following", {})
    assert writer.published_position == 5


def test_an_advance_never_passes_a_buffered_row(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.__enter__()
    writer.upsert([A], position=1)
    writer.flush()
    writer.upsert([B], position=2)
    writer.advance(3)
    writer.__exit__(ValueError, ValueError(), None)
    assert writer.position == 1
    assert advances(orders) == []
    assert Writer(orders).position == 1


def test_a_position_that_was_recorded_is_not_recorded_again(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.upsert([A], position={"0": 1})
    for _ in range(3):
        writer.advance({"0": 1})
    assert advances(orders) == []


def test_one_and_true_are_two_positions(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.upsert([A], position=1)
    writer.advance(True)  # noqa: FBT003 - a JSON value as any other
    assert [a.position for a in advances(orders)] == [True]


# ------------------------------------------------------------------------------------------------------------ positions


@pytest.mark.parametrize("position", [7, "abc", [1, "a", None], {"p": {"q": [1.5, True]}}, 0, False, ""])
def test_a_single_writer_takes_any_json_value_as_position(orders: LandingTable, position: Any) -> None:
    Writer(orders).upsert([A], position=position)
    assert json.dumps(Writer(orders).position) == json.dumps(position)


@pytest.mark.parametrize("position", [(1, 2), {1: 2}, float("nan"), b"x", {"a": {3}}, "\ud800"])
@pytest.mark.parametrize("verb", ["upsert", "initial_load", "write", "advance", "start_at"])
def test_a_position_that_json_does_not_keep_is_refused(orders: LandingTable, position: Any, verb: str) -> None:
    act = {
        "start_at": lambda: Writer(orders, start_at=position),
        "advance": lambda: Writer(orders).advance(position),
    }.get(verb, lambda: getattr(Writer(orders), verb)([], position=position))
    with pytest.raises(OpenMirrorError, match="position"):
        act()
    assert names(orders) == []


def test_rows_without_a_position_belong_to_the_next_one(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.upsert([A], position=1)
    writer.insert([B])
    assert (record(orders, 2).position, record(orders, 2).pending[""].rows) == (1, 1)
    assert Writer(orders).position == 1
    writer.insert([C], position=2)
    assert (record(orders, 3).position, record(orders, 3).pending) == (2, {})


def test_who_changes_a_position_that_he_was_given_or_gave_changes_nothing(orders: LandingTable) -> None:
    writer = Writer(orders)
    given = {"0": 1}
    writer.upsert([A], position=given)
    given["0"] = 99
    writer.position["0"] = 99
    writer.published_position["0"] = 99
    writer.flush()[0].position["0"] = 99
    assert (writer.position, writer.published_position) == ({"0": 1}, {"0": 1})
    moved = writer.position
    moved["0"] = 2
    writer.advance(moved)
    assert Writer(orders).position == {"0": 2}


# ----------------------------------------------------------------------------------------------------- columns and keys


def test_columns_left_out_are_inferred_once_from_the_first_rows(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"])
    writer = Writer(table)
    assert writer.columns is None
    writer.upsert({"id": i, "v": None if i < 5 else "x"} for i in range(9))
    assert writer.columns == declared_columns({"id": "int64", "v": "string"})
    with pytest.raises(InvalidRowError, match="'v'"):
        writer.upsert([{"id": 1, "v": 7}])
    assert Writer(zone.table("orders")).columns == writer.columns


def test_columns_that_were_inferred_for_a_call_that_failed_are_forgotten(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"])
    writer = Writer(table)
    with pytest.raises(ValueError, match="broke"):
        writer.upsert(failing({"id": "text", "w": 1}))
    assert writer.columns is None
    writer.upsert([A])
    assert landed(table, 1) == [(4, 0, "a")]


@pytest.mark.parametrize("inside", [False, True])
def test_columns_stay_where_a_call_that_failed_had_filled_files(zone: LandingZone, inside: bool) -> None:  # noqa: FBT001
    table = zone.table("orders", key_columns=["id"])
    writer = Writer(table, roll=Roll(rows=1))
    if inside:
        writer.__enter__()
    with pytest.raises(ValueError, match="broke") as caught:
        writer.upsert(failing(A, B, C))
    assert caught.value.__notes__ == ["2 rows of this call stand in published files of orders"]
    if inside:
        writer.__exit__(None, None, None)
    assert writer.columns == declared_columns({"id": "int64", "v": "string"})
    assert all_landed(table) == [[(4, 0, "a")], [(4, 1, "b")]]


def test_a_delete_does_not_tell_the_columns_of_a_new_table(zone: LandingZone) -> None:
    with pytest.raises(SchemaRefusedError, match="a delete does not tell them"):
        Writer(zone.table("orders", key_columns=["id"])).delete([{"id": 1}])


def test_keys_are_frozen(orders: LandingTable) -> None:
    Writer(orders).upsert([A])
    before = identities(orders)
    with pytest.raises(SchemaRefusedError, match="cannot be changed"):
        Writer(orders.zone.table("orders", key_columns=["v"]))
    with pytest.raises(SchemaRefusedError, match="cannot be changed"):
        Writer(orders.zone.table("orders", key_columns=[]))
    assert identities(orders) == before
    assert Writer(orders.zone.table("orders")).key_columns == ("id",)


def test_columns_are_frozen(orders: LandingTable) -> None:
    Writer(orders).upsert([A])
    with pytest.raises(SchemaRefusedError, match="declare what is published"):
        Writer(orders.zone.table("orders", columns={"id": "int64", "v": "binary"}))


def test_the_order_of_columns_in_rows_is_free(orders: LandingTable) -> None:
    Writer(orders).upsert([{"v": "a", "id": 1}])
    assert landed(orders, 1) == [(4, 1, "a")]


def test_columns_are_nullable_in_files_unless_declared_otherwise(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": "string not null"})
    Writer(table).upsert([A])
    columns = Writer(zone.table("orders")).columns
    assert columns is not None
    assert [f.nullable for f in columns] == [True, False]


def test_metadata_holds_the_keys_and_the_default_marker(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id", "v"], unmarked_rows="upsert")
    Writer(table).upsert([A])
    assert json.loads(content(table, METADATA).data) == {"keyColumns": ["id", "v"], "isUpsertDefaultRowMarker": True}


def test_a_table_of_a_schema_stands_in_its_folder(zone: LandingZone) -> None:
    table = zone.table("orders", schema_name="sales", key_columns=["id"])
    Writer(table).upsert([A])
    assert zone.storage.read(f"sales.schema/orders/{data_file(1)}") is not None
    assert mirrored(zone, "sales.orders") == [A]


# ------------------------------------------------------------------------------------------------------- keyless tables


@pytest.fixture
def log(zone: LandingZone) -> LandingTable:
    return zone.table("orders", key_columns=[], columns={"id": "int64", "v": "string"})


def test_a_table_without_keys_takes_inserts_and_loads(log: LandingTable) -> None:
    writer = Writer(log)
    writer.initial_load([A], position=1)
    writer.insert([A], position=2)
    writer.write(changes((0, 0, "a")), position=3)
    assert mirrored(log.zone) == [A, A, A]


@pytest.mark.parametrize("verb", ["upsert", "update", "delete"])
def test_a_table_without_keys_takes_nothing_else(log: LandingTable, verb: str) -> None:
    with pytest.raises(SchemaRefusedError, match=f"{verb} needs key columns"):
        getattr(Writer(log), verb)([A])
    with pytest.raises(SchemaRefusedError, match="write of another marker than 0 needs key columns"):
        Writer(log).write(changes((4, 0, "a")))
    with pytest.raises(SchemaRefusedError, match="update needs key columns"):
        Writer(log).update([A], old_keys=[{}])
    assert names(log) == []


@pytest.mark.parametrize("position", [1.5, [None]])
def test_a_table_without_keys_needs_positions_with_an_order(log: LandingTable, position: Any) -> None:
    with pytest.raises(UnknownPositionError, match="order"):
        Writer(log).insert([A], position=position)
    assert names(log) == []


def test_positions_of_a_table_without_keys_never_go_back_not_even_behind_a_restart(log: LandingTable) -> None:
    Writer(log).insert([A], position={"0": 5, "1": 1})
    for act in (
        lambda w: w.insert([B], position={"0": 4, "1": 9}),
        lambda w: w.advance({"0": 4}),
        lambda w: w.write(changes((0, 1, "b"), position={"0": 1})),
    ):
        with pytest.raises(UnknownPositionError, match="goes back"):
            act(Writer(log))
    assert mirrored(log.zone) == [A]


# ---------------------------------------------------------------------------------------------------- what stands there


def test_start_at_goes_on_behind_the_files_of_another_publisher(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"], columns={"id": "int64", "v": "string"})
    foreign = zone.table("orders")
    zone.storage.create(foreign.path(METADATA), b'{"keyColumns":["id"]}')
    zone.storage.create(foreign.path(data_file(1)), _foreign_file())
    with pytest.raises(UnknownPositionError, match="start_at"):
        Writer(table)
    writer = Writer(table, start_at=12)
    assert (writer.state, writer.position) == ("following", 12)
    writer.upsert([B], position=13)
    assert (record(table, 2).previous, record(table, 2).position) == ("foreign", 13)
    assert GENERATION in names(table)
    assert Writer(table).position == 13
    assert mirrored(zone) == [A, B]


def _foreign_file() -> bytes:
    import pyarrow.parquet as pq  # noqa: PLC0415 - one test writes a file of somebody else

    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": pa.array([0], pa.int64()), "v": ["a"]}), sink)
    return sink.getvalue().to_pybytes()


def test_a_writer_goes_on_behind_files_that_the_service_moved(orders: LandingTable) -> None:
    writer = Writer(orders)
    for number, row in enumerate((A, B, C)):
        writer.upsert([row], position=number)
    move_processed(orders, [1, 2])
    again = Writer(orders)
    again.upsert([D], position=3)
    assert record(orders, 4).previous == record(orders, 3).batch
    assert mirrored(orders.zone) == [A, B, C, D]


def test_a_writer_that_was_not_stopped_before_a_drop_is_told_so(orders: LandingTable) -> None:
    """Its file may land in the empty folder; a second drop removes it."""
    writer = Writer(orders)
    writer.upsert([A], position=1)
    drop_table(orders)
    with pytest.raises(TableGoneError, match="was dropped"):
        writer.upsert([B], position=2)
    assert writer.published_position == 1
    with pytest.raises(UnknownPositionError, match="run drop_table"):
        Writer(orders)
    drop_table(orders)
    assert Writer(orders).state == "new"


def test_a_new_generation_has_another_id(orders: LandingTable) -> None:
    Writer(orders).upsert([A])
    first = record(orders, 1).generation
    drop_table(orders)
    Writer(orders).upsert([A])
    assert record(orders, 1).generation != first


# ------------------------------------------------------------------------------------------------------- partner events


def partner(name: str = "us") -> PartnerEvents:
    return PartnerEvents(partner_name=name, source_info=SourceInfo(source_type="SQL"))


def zone_like(zone: LandingZone, **options: Any) -> LandingTable:
    return LandingZone(zone.storage, **options).table("orders", key_columns=["id"])


def test_the_first_writer_writes_the_partner_events_and_the_next_ones_leave_them(zone: LandingZone) -> None:
    Writer(zone_like(zone, partner=partner()))
    first = zone.storage.identity(PARTNER_EVENTS)
    assert json.loads(zone.storage.read(PARTNER_EVENTS).data) == {  # type: ignore[union-attr] # it stands
        "partnerName": "us",
        "sourceInfo": {"sourceType": "SQL"},
    }
    Writer(zone_like(zone, partner=partner()))
    Writer(zone_like(zone))
    assert zone.storage.identity(PARTNER_EVENTS) == first


def test_other_partner_events_are_an_error_unless_they_may_be_replaced(zone: LandingZone) -> None:
    Writer(zone_like(zone, partner=partner()))
    with pytest.raises(OpenMirrorError, match="replace_partner=True") as caught:
        Writer(zone_like(zone, partner=partner("others")))
    assert caught.value.file == PARTNER_EVENTS
    Writer(zone_like(zone, partner=partner("others"), replace_partner=True))
    assert b"others" in zone.storage.read(PARTNER_EVENTS).data  # type: ignore[union-attr] # it stands


def test_a_zone_without_partner_events_gets_none(orders: LandingTable) -> None:
    Writer(orders).upsert([A])
    assert orders.zone.storage.read(PARTNER_EVENTS) is None


# --------------------------------------------------------------------------------------------------------------- itself


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
