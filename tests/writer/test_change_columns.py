"""A source whose columns change: within one writer, and between two."""

from __future__ import annotations

from typing import Any

import pytest

from openmirror_writer.errors import InvalidRowError, OpenMirrorError, ResumeMismatchError, SchemaRefusedError
from openmirror_writer.replay import replay
from openmirror_writer.schema import declared_columns
from openmirror_writer.writer import Roll, Writer
from openmirror_writer.zone import LandingTable, LandingZone
from tests.writer.landing import all_landed, failing, identities, inside, landed, mirrored, record

NARROW = {"id": "int64", "v": "string"}
WIDE = {"id": "int64", "v": "string", "w": "int32"}


def table_of(zone: LandingZone, columns: dict[str, str] | None) -> LandingTable:
    return zone.table("orders", key_columns=["id"], columns=columns)


@pytest.mark.rule("7.1", "L56", "L59")
def test_a_column_that_came_stands_behind_the_others_and_is_null_before(
    zone: LandingZone, orders: LandingTable
) -> None:
    writer = Writer(orders)
    writer.upsert([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], position=1)
    writer.change_columns({"w": "int32", **NARROW})
    writer.upsert([{"id": 2, "v": "b", "w": 7}], position=2)
    assert writer.columns == declared_columns(WIDE)
    assert mirrored(zone) == [{"id": 1, "v": "a", "w": None}, {"id": 2, "v": "b", "w": 7}]


def test_what_is_buffered_is_published_before_the_columns_change(orders: LandingTable) -> None:
    writer = Writer(orders)
    inside(
        writer,
        lambda: writer.upsert([{"id": 1, "v": "a"}], position=1),
        lambda: writer.change_columns(WIDE),
        lambda: writer.upsert([{"id": 2, "v": "b", "w": 7}], position=2),
    )
    assert all_landed(orders) == [[(4, 1, "a")], [(4, 2, "b", 7)]]
    assert record(orders, 1).position == 1


def test_the_same_columns_again_publish_nothing(orders: LandingTable) -> None:
    writer = Writer(orders)
    with writer:
        writer.upsert([{"id": 1, "v": "a"}], position=1)
        writer.change_columns(NARROW)
        writer.upsert([{"id": 2, "v": "b"}], position=2)
    assert len(all_landed(orders)) == 1


@pytest.mark.rule("7.2", "L57", "L59")
def test_a_column_that_went_is_written_as_null_and_may_come_back(zone: LandingZone) -> None:
    writer = Writer(table_of(zone, WIDE))
    writer.upsert([{"id": 1, "v": "a", "w": 7}, {"id": 2, "v": "b", "w": 8}], position=1)
    writer.change_columns(NARROW)
    writer.upsert([{"id": 1, "v": "A"}], position=2)
    assert mirrored(zone) == [{"id": 1, "v": "A", "w": None}, {"id": 2, "v": "b", "w": 8}]
    writer.change_columns(WIDE)
    with pytest.raises(InvalidRowError, match="w"):
        writer.upsert([{"id": 1, "v": "A"}], position=3)


def test_what_a_row_brings_of_a_column_that_went_is_not_lost(zone: LandingZone) -> None:
    writer = Writer(table_of(zone, WIDE))
    writer.upsert([{"id": 1, "v": "a", "w": 7}], position=1)
    writer.change_columns(NARROW)
    writer.upsert([{"id": 1, "v": "b", "w": 9}, {"id": 2, "v": "c"}], position=2)
    assert mirrored(zone) == [{"id": 1, "v": "b", "w": 9}, {"id": 2, "v": "c", "w": None}]


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({**NARROW, "w": "int32 not null"}, "7.3"),
        ({"id": "int32", "v": "string"}, "7.4"),
        ({"id": "int64", "V": "string"}, "7.5"),
        ({"v": "string"}, "7.6"),
        ({"id": "int64", "v": "datetime"}, "known: decimal"),
    ],
)
def test_a_refused_change_leaves_writer_and_zone_as_they_were(
    orders: LandingTable, columns: dict[str, str], rule: str
) -> None:
    writer = Writer(orders)
    writer.upsert([{"id": 1, "v": "a"}], position=1)
    before = identities(orders)
    with writer:
        writer.upsert([{"id": 2, "v": "b"}], position=2)
        with pytest.raises(SchemaRefusedError, match=rule) as caught:
            writer.change_columns(columns)
        assert caught.value.table == "orders"
        assert (identities(orders), writer.columns) == (before, declared_columns(NARROW))
    assert landed(orders, 2) == [(4, 2, "b")]


def test_before_the_first_row_any_columns_may_be_given(zone: LandingZone, orders: LandingTable) -> None:
    writer = Writer(orders)
    with pytest.raises(SchemaRefusedError, match="key column 'id'"):
        writer.change_columns({"other": "int64"})
    writer.change_columns({"w": "int32 not null", "id": "int32"})
    writer.upsert([{"w": 7, "id": 1}], position=1)
    assert replay(zone)["orders"].schema == declared_columns({"w": "int32 not null", "id": "int32"})


def test_columns_that_nothing_told_can_be_told(zone: LandingZone) -> None:
    writer = Writer(table_of(zone, None))
    writer.change_columns(NARROW)
    writer.delete([{"id": 1}], position=1)
    assert landed(table_of(zone, None), 1) == [(2, 1, None)]


def test_columns_cannot_change_while_a_call_is_under_way(orders: LandingTable) -> None:
    writer = Writer(orders)

    def rows() -> Any:
        writer.change_columns(WIDE)
        yield {"id": 1, "v": "a"}

    with pytest.raises(OpenMirrorError, match="use its own writer"):
        writer.upsert(rows(), position=1)
    assert writer.columns == declared_columns(NARROW)


# -------------------------------------------------------------------------------------------------------- opened again


def test_a_writer_opened_with_more_columns_goes_on_with_them(zone: LandingZone, orders: LandingTable) -> None:
    Writer(orders).upsert([{"id": 1, "v": "a"}], position=1)
    writer = Writer(table_of(zone, {"w": "int32", **NARROW}))
    assert (writer.position, writer.columns) == (1, declared_columns(WIDE))
    writer.upsert([{"id": 1, "v": "a", "w": 7}], position=2)
    assert mirrored(zone) == [{"id": 1, "v": "a", "w": 7}]


def test_a_writer_opened_with_fewer_columns_writes_null_in_the_others(zone: LandingZone) -> None:
    Writer(table_of(zone, WIDE)).upsert([{"id": 1, "v": "a", "w": 7}], position=1)
    writer = Writer(table_of(zone, NARROW))
    writer.upsert([{"id": 2, "v": "b"}], position=2)
    assert mirrored(zone) == [{"id": 1, "v": "a", "w": 7}, {"id": 2, "v": "b", "w": None}]
    assert Writer(table_of(zone, None)).columns == declared_columns(WIDE)


def test_a_writer_opened_without_columns_asks_for_all_of_them(zone: LandingZone) -> None:
    Writer(table_of(zone, WIDE)).upsert([{"id": 1, "v": "a", "w": 7}], position=1)
    with pytest.raises(InvalidRowError, match="w"):
        Writer(table_of(zone, None)).upsert([{"id": 2, "v": "b"}], position=2)


# -------------------------------------------------------------------------------- rows that must not be published twice


def interrupted(table: LandingTable, rows: list[dict[str, Any]]) -> None:
    """Insert rows, a file each, and be killed before the position they lead to is reached."""
    with pytest.raises(ValueError, match="the source broke"):
        Writer(table, roll=Roll(rows=1)).insert(failing(*rows), position=1)


def test_rows_published_before_a_column_came_are_skipped_when_they_come_again(
    zone: LandingZone, orders: LandingTable
) -> None:
    interrupted(orders, [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    stood = len(all_landed(orders))
    assert stood > 0
    rows = [{"id": key, "v": v, "w": None} for key, v in ((1, "a"), (2, "b"))]
    Writer(table_of(zone, WIDE)).insert([*rows, {"id": 3, "v": "c", "w": 7}], position=1)
    assert mirrored(zone) == [*rows, {"id": 3, "v": "c", "w": 7}]


def test_a_value_in_a_column_that_came_is_not_the_row_that_was_published(
    zone: LandingZone, orders: LandingTable
) -> None:
    interrupted(orders, [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    before = identities(orders)
    with pytest.raises(ResumeMismatchError):
        Writer(table_of(zone, WIDE)).insert(
            [{"id": key, "v": v, "w": 5} for key, v in ((1, "a"), (2, "b"))], position=1
        )
    assert identities(orders) == before


def test_rows_published_with_a_column_that_went_are_skipped_when_they_bring_it(zone: LandingZone) -> None:
    rows = [{"id": 1, "v": "a", "w": 7}, {"id": 2, "v": "b", "w": 8}]
    interrupted(table_of(zone, WIDE), rows)
    Writer(table_of(zone, NARROW)).insert([*rows, {"id": 3, "v": "c"}], position=1)
    assert mirrored(zone) == [*rows, {"id": 3, "v": "c", "w": None}]


def test_rows_of_one_position_before_and_behind_a_change_are_skipped_when_they_come_again(
    zone: LandingZone, orders: LandingTable
) -> None:
    writer = Writer(orders)
    writer.insert([{"id": 0, "v": "z"}], position=1)
    writer.insert([{"id": 1, "v": "a"}])
    writer.change_columns(WIDE)
    writer.insert([{"id": 2, "v": "b", "w": 7}])
    rows = [{"id": 1, "v": "a", "w": None}, {"id": 2, "v": "b", "w": 7}, {"id": 3, "v": "c", "w": None}]
    again = Writer(table_of(zone, None))
    assert again.position == 1
    again.insert(rows, position=2)
    assert mirrored(zone) == [{"id": 0, "v": "z", "w": None}, *rows]


def test_a_discarded_buffer_behind_a_change_comes_again_in_the_new_columns(
    zone: LandingZone, orders: LandingTable
) -> None:
    writer = Writer(orders)
    with writer:
        writer.insert([{"id": 1, "v": "a"}], position=1)
        writer.insert([{"id": 2, "v": "b"}])
        writer.change_columns(WIDE)  # publishes the row that no position covers yet
        writer.insert([{"id": 3, "v": "c", "w": 7}])
        assert (writer.discard(), writer.position) == (1, 1)
        writer.insert([{"id": 2, "v": "b", "w": None}, {"id": 3, "v": "c", "w": 7}], position=2)
    assert mirrored(zone) == [
        {"id": 1, "v": "a", "w": None},
        {"id": 2, "v": "b", "w": None},
        {"id": 3, "v": "c", "w": 7},
    ]


def test_a_call_that_failed_before_a_change_is_given_again_behind_it(zone: LandingZone, orders: LandingTable) -> None:
    writer = Writer(orders, roll=Roll(rows=1))
    with pytest.raises(ValueError, match="the source broke"):
        writer.insert(failing({"id": 1, "v": "a"}, {"id": 2, "v": "b"}), position=1)
    writer.change_columns(WIDE)
    rows = [{"id": 1, "v": "a", "w": None}, {"id": 2, "v": "b", "w": None}, {"id": 3, "v": "c", "w": 7}]
    writer.insert(rows, position=1)
    assert mirrored(zone) == rows
