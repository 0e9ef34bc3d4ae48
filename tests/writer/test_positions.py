"""`Writer`: positions, advances, and calls without rows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openmirror_writer import (
    LandingZone,
    OpenMirrorError,
    Writer,
)
from openmirror_writer.zone import LandingTable
from tests.writer.landing import (
    advances,
    names,
    record,
)

A, B, C, D = ({"id": i, "v": v} for i, v in enumerate("abcd"))


# --------------------------------------------------------------------------------------------------- empty and advance


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


def test_an_advance_to_nowhere_is_refused(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.upsert([A], position=1)
    with pytest.raises(OpenMirrorError, match="advance got None"):
        writer.advance(None)
    assert writer.position == 1


def test_one_and_true_are_two_positions(orders: LandingTable) -> None:
    writer = Writer(orders)
    writer.upsert([A], position=1)
    writer.advance(True)  # noqa: FBT003 - a JSON value as any other
    assert [a.position for a in advances(orders)] == [True]


# ----------------------------------------------------------------------------------------------------------- positions


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
