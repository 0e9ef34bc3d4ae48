"""What a call has to bring before a row of it is taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import InvalidRowError, SchemaRefusedError, UnknownPositionError
from openmirror_writer.schema import declared_columns
from openmirror_writer.writer.calls import (
    check_keyless_position,
    delete_rows,
    full_rows,
    inferred_columns,
    refuse_repeated,
    some_rows,
)
from openmirror_writer.zone import LandingZone

TABLE = LandingZone("memory://calls").table("t", key_columns=["id"])


def test_columns_are_inferred_and_no_row_is_lost() -> None:
    rows = [{"id": 1, "v": "a"}, {"id": 2, "v": None}]
    columns, source = inferred_columns(iter(rows), ("id",), TABLE)
    assert columns == declared_columns({"id": "int64", "v": "string"})
    assert list(source) == rows


def test_arrow_tells_its_columns_without_a_row() -> None:
    columns, _ = inferred_columns(pa.table({"id": pa.array([], pa.int32())}), ("id",), TABLE)
    assert columns == declared_columns({"id": "int32"})


def test_the_marker_of_arrow_is_no_column() -> None:
    table = pa.table({"id": [1], "v": ["a"], "__rowMarker__": [4]})
    columns, _ = inferred_columns(table, ("id",), TABLE)
    assert columns is not None
    assert columns.names == ["id", "v"]


def test_no_row_tells_no_column() -> None:
    assert inferred_columns(iter([]), ("id",), TABLE) == (None, [])


def test_a_key_that_the_rows_do_not_have_is_refused() -> None:
    with pytest.raises(SchemaRefusedError, match="'id' is none of the table's columns") as caught:
        inferred_columns([{"v": 1}], ("id",), TABLE)
    assert (caught.value.table, caught.value.column) == ("t", "id")


@pytest.mark.parametrize("odd", [None, 7, "text", b"bytes", {"id": 1}, dict])
def test_what_are_no_rows_is_refused(odd: Any) -> None:
    with pytest.raises(InvalidRowError):
        inferred_columns(odd, ("id",), TABLE)


def test_looking_for_rows_takes_one_at_most() -> None:
    taken = []

    def rows() -> Iterator[dict[str, int]]:
        for i in range(3):
            taken.append(i)
            yield {"id": i}

    some = some_rows(rows())
    assert taken == [0]
    assert some is not None
    assert list(some) == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_a_delete_needs_keys_and_what_is_never_null() -> None:
    columns = declared_columns({"id": "int64", "v": "string", "n": "int64 not null"})
    assert delete_rows(columns, ("id",), "t").required == {"id", "n"}
    assert full_rows(columns, ("id",), "t").required == {"id", "v", "n"}


@pytest.mark.parametrize(("last", "position"), [(None, 1), (1, 1), (1, 2), ([1, "a"], [1, "b"]), ({"0": 1}, {"0": 2})])
def test_positions_of_a_keyless_table_may_stay_or_go_up(last: Any, position: Any) -> None:
    check_keyless_position(position, last, "t")


@pytest.mark.parametrize("position", [1.5, True, [None], [[1]]])
def test_a_position_of_a_keyless_table_needs_an_order(position: Any) -> None:
    with pytest.raises(UnknownPositionError, match="order"):
        check_keyless_position(position, None, "t")


@pytest.mark.parametrize(("last", "position"), [(2, 1), ("1", 1), ({"0": 1}, {"0": 0}), ({"0": 1}, {"1": 1})])
def test_a_position_of_a_keyless_table_never_goes_back(last: Any, position: Any) -> None:
    with pytest.raises(UnknownPositionError, match="goes back") as caught:
        check_keyless_position(position, last, "t")
    assert (caught.value.table, caught.value.position) == ("t", position)


ONE_ROW = (ChangeBatch(pa.record_batch({"v": [1]})), True)
NO_ROW = (ONE_ROW[0].slice(0, 0), True)


@pytest.mark.parametrize(
    ("last", "position"), [(1, 2), (None, 1), (1, None), (None, None), ({"0": 1}, {"0": 1, "1": 1})]
)
def test_rows_of_a_keyless_table_come_with_a_new_position_or_none(last: Any, position: Any) -> None:
    assert list(refuse_repeated(iter([NO_ROW, ONE_ROW]), position, last, "t")) == [NO_ROW, ONE_ROW]


def test_a_position_that_was_reached_may_come_again_without_rows() -> None:
    assert list(refuse_repeated(iter([NO_ROW]), 1, 1, "t")) == [NO_ROW]


def test_rows_of_a_position_that_was_reached_are_refused() -> None:
    passed = refuse_repeated(iter([NO_ROW, ONE_ROW]), {"0": 1}, {"0": 1}, "t")
    assert next(passed) == NO_ROW
    with pytest.raises(UnknownPositionError, match="stand twice") as caught:
        next(passed)
    assert (caught.value.table, caught.value.position) == ("t", {"0": 1})
