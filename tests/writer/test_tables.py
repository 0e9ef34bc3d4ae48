"""`Writer`: columns, keys, and what it finds in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import time
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openmirror_writer import (
    InvalidRowError,
    LandingZone,
    OpenMirrorError,
    PartnerEvents,
    Roll,
    SchemaRefusedError,
    SourceInfo,
    TableGoneError,
    UnknownPositionError,
    Writer,
    drop_table,
)
from openmirror_writer.formats.parquet import footer_of
from openmirror_writer.layout import GENERATION, METADATA, PARTNER_EVENTS, data_file
from openmirror_writer.schema import declared_columns
from openmirror_writer.zone import LandingTable
from tests.writer.landing import (
    all_landed,
    changes,
    content,
    failing,
    identities,
    landed,
    mirrored,
    move_processed,
    names,
    record,
)

A, B, C, D = ({"id": i, "v": v} for i, v in enumerate("abcd"))


# ---------------------------------------------------------------------------------------------------- columns and keys


def test_columns_left_out_are_inferred_once_from_the_first_rows(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id"])
    writer = Writer(table)
    assert writer.columns is None
    writer.upsert({"id": i, "v": None if i < 5 else "x"} for i in range(9))
    assert writer.columns == declared_columns({"id": "int64", "v": "string"})
    with pytest.raises(InvalidRowError, match="'v'"):
        writer.upsert([{"id": 1, "v": 7}])
    assert Writer(zone.table("orders")).columns == writer.columns


def test_columns_stored_as_text_take_their_values_again_behind_a_restart(zone: LandingZone) -> None:
    """The file says string only; the declaration says what goes in."""
    columns = {"id": "uuid", "at": "time", "tags": "json"}
    orders = zone.table("orders", key_columns=["id"], columns=columns)
    key, other = UUID(int=1), UUID(int=2)
    Writer(orders).insert([{"id": key, "at": time(1, 2), "tags": {"b": [1], "a": None}}], position=1)
    with Writer(orders) as writer:
        writer.update([{"id": other, "at": time(3), "tags": []}], [{"id": str(key).upper()}], position=2)
        nested = pa.table({"id": pa.array([key.bytes], pa.uuid()), "at": ["00:00:00.000000"], "tags": [[1.5]]})
        writer.upsert(nested, position=3)
        writer.delete([{"id": other}], position=4)
    assert landed(orders, 1) == [(0, str(key), "01:02:00.000000", '{"b":[1],"a":null}')]
    assert mirrored(zone) == [{"id": str(key), "at": "00:00:00.000000", "tags": "[1.5]"}]
    assert footer_of(content(orders, data_file(2)), "").columns == declared_columns(dict.fromkeys(columns, "string"))


def test_rows_with_json_that_come_again_are_known_by_their_text(zone: LandingZone) -> None:
    orders = zone.table("orders", key_columns=["id"], columns={"id": "int64", "tags": "json"})
    rows: list[dict[str, Any]] = [{"id": n, "tags": {"n": n}} for n in range(3)]

    def breaking() -> Iterator[dict[str, Any]]:
        yield from rows
        raise KeyError

    with pytest.raises(KeyError):
        Writer(orders, roll=Roll(rows=2)).insert(breaking(), position=1)
    Writer(orders, roll=Roll(rows=2)).insert(rows, position=1)
    assert mirrored(zone) == [{"id": n, "tags": f'{{"n":{n}}}'} for n in range(3)]


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


@pytest.mark.rule("7.6", "L11")
def test_keys_are_frozen(orders: LandingTable) -> None:
    Writer(orders).upsert([A])
    before = identities(orders)
    with pytest.raises(SchemaRefusedError, match="cannot be changed"):
        Writer(orders.zone.table("orders", key_columns=["v"]))
    with pytest.raises(SchemaRefusedError, match="cannot be changed"):
        Writer(orders.zone.table("orders", key_columns=[]))
    assert identities(orders) == before
    assert Writer(orders.zone.table("orders")).key_columns == ("id",)


@pytest.mark.rule("7.4", "L61")
def test_the_type_of_a_column_is_frozen(orders: LandingTable) -> None:
    Writer(orders).upsert([A])
    with pytest.raises(SchemaRefusedError, match="Declare what is published"):
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


@pytest.mark.rule("2.1", "2.3", "L8")
def test_metadata_holds_the_keys_and_the_default_marker(zone: LandingZone) -> None:
    table = zone.table("orders", key_columns=["id", "v"], unmarked_rows="upsert")
    Writer(table).upsert([A])
    assert json.loads(content(table, METADATA).data) == {"keyColumns": ["id", "v"], "isUpsertDefaultRowMarker": True}


def test_the_meaning_of_rows_without_a_marker_is_frozen(zone: LandingZone) -> None:
    Writer(zone.table("orders", key_columns=["id"], unmarked_rows="upsert")).upsert([A])
    with pytest.raises(SchemaRefusedError, match='give unmarked_rows="upsert"'):
        Writer(zone.table("orders"))
    assert Writer(zone.table("orders", unmarked_rows="upsert")).state == "following"


@pytest.mark.rule("1.2", "L53")
def test_a_table_of_a_schema_stands_in_its_folder(zone: LandingZone) -> None:
    table = zone.table("orders", schema_name="sales", key_columns=["id"])
    Writer(table).upsert([A])
    assert zone.storage.read(f"sales.schema/orders/{data_file(1)}") is not None
    assert mirrored(zone, "sales.orders") == [A]


# ------------------------------------------------------------------------------------------------------ keyless tables


@pytest.fixture
def log(zone: LandingZone) -> LandingTable:
    return zone.table("orders", key_columns=[], columns={"id": "int64", "v": "string"})


def test_a_table_without_keys_takes_inserts_and_loads(log: LandingTable) -> None:
    writer = Writer(log)
    writer.initial_load([A], position=1)
    writer.insert([A], position=2)
    writer.write(changes((0, 0, "a")), position=3)
    assert mirrored(log.zone) == [A, A, A]


@pytest.mark.rule("2.14", "2.15", "L10")
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


@pytest.mark.parametrize("in_with", [False, True])
def test_rows_of_a_table_without_keys_do_not_come_twice_with_one_position(log: LandingTable, in_with: bool) -> None:  # noqa: FBT001
    again: tuple[Callable[[Writer], None], ...] = (
        lambda w: w.insert([B], position=5),
        lambda w: w.write(changes((0, 1, "b"), position=5)),
        lambda w: w.write(pa.table({"id": [1], "v": ["b"], "__rowMarker__": [0]}), position=5),
    )
    with Writer(log) if in_with else nullcontext(Writer(log)) as writer:
        writer.insert([A], position=5)
        for act in again:
            with pytest.raises(UnknownPositionError, match="in a table without keys they would stand twice"):
                act(writer)
        writer.insert([], position=5)
        writer.advance(5)
    for act in again:
        with pytest.raises(UnknownPositionError, match="in a table without keys they would stand twice"):
            act(Writer(log))
    assert mirrored(log.zone) == [A]


# --------------------------------------------------------------------------------------------------- what stands there


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
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": pa.array([0], pa.int64()), "v": ["a"]}), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.rule("4.2", "4.3", "4.4", "L38", "L63")
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


@pytest.mark.rule("7.9", "record.1", "L50")
def test_a_new_generation_has_another_id(orders: LandingTable) -> None:
    Writer(orders).upsert([A])
    first = record(orders, 1).generation
    drop_table(orders)
    Writer(orders).upsert([A])
    assert record(orders, 1).generation != first


# ------------------------------------------------------------------------------------------------------ partner events


def partner(name: str = "us") -> PartnerEvents:
    return PartnerEvents(partner_name=name, source_info=SourceInfo(source_type="SQL"))


def zone_like(zone: LandingZone, **options: Any) -> LandingTable:
    return LandingZone(zone.storage, **options).table("orders", key_columns=["id"])


@pytest.mark.rule("3.1")
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


@pytest.mark.rule("3.1", "L14")
def test_a_zone_without_partner_events_gets_none(orders: LandingTable) -> None:
    Writer(orders).upsert([A])
    assert orders.zone.storage.read(PARTNER_EVENTS) is None
