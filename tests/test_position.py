"""Positions: which are kept, and the laws of their order."""

from datetime import date
from decimal import Decimal
from enum import IntEnum
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmirror_writer.errors import OpenMirrorError
from openmirror_writer.position import checked_position, compare, same_position
from openmirror_writer.record import Pending, Record, parse_record


class Color(IntEnum):
    RED = 1


def _nested(depth: int) -> Any:
    position: Any = 1
    for level in range(depth):
        position = [position] if level % 2 else {"a": position}
    return position


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


REFUSED: dict[str, Any] = {
    "a tuple": (1, 2),
    "a tuple inside": {"0": [1, (2,)]},
    "a map with int keys": {0: 1},
    "a map whose keys collide as text": {1: 1, "1": 2},
    "a date": date(2026, 1, 1),
    "a decimal": Decimal(1),
    "bytes": b"0",
    "a set": {1},
    "NaN": float("nan"),
    "infinity": [float("inf")],
    "an enum, which comes back as an int": Color.RED,
    "text with a lone surrogate": "a\ud800",
    "a key with a lone surrogate": {"\udfff": 1},
    "an object": object(),
    "a list in itself": _circle(),
    "101 levels": _nested(101),
    "100,000 levels": _nested(100_000),
}
KEPT: dict[str, Any] = {
    "None": None,
    "true": True,
    "an int beyond 64 bits": 2**200,
    "an int of 4,000 digits": 10**4_000,
    "a float": 0.1 + 0.2,
    "the least float": 5e-324,
    "text": "0/16B3748 \u2028 \0 \U0001f600",
    "a map": {"0": [12, "a"], "": []},
    "100 levels": _nested(100),
}

_any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def _record(position: Any) -> Record:
    pending = {"": Pending(at=position, rows=1, replay="exact", digest="d")}
    return Record(
        generation="g",
        number=1,
        previous=None,
        batch="b",
        writer="w",
        phase="following",
        position=position,
        pending=pending,
        by="x",
    )


# ---------------------------------------------------------------------------------------------------- which are kept


@pytest.mark.parametrize("position", REFUSED.values(), ids=REFUSED)
def test_a_position_that_json_does_not_keep_is_refused(position: Any) -> None:
    with pytest.raises(OpenMirrorError, match="JSON round trip|nested") as caught:
        checked_position(position)
    assert caught.value.position is position
    assert str(caught.value)


@pytest.mark.parametrize("position", KEPT.values(), ids=KEPT)
def test_a_position_comes_back_from_a_record_as_it_was(position: Any) -> None:
    kept = parse_record(_record(checked_position(position)).to_bytes(), file="f")
    assert same_position(kept.position, position)
    assert same_position(kept.pending[""].at, position)


@given(_any_json)
def test_every_json_value_comes_back_from_a_record_as_it_was(position: Any) -> None:
    kept = parse_record(_record(checked_position(position)).to_bytes(), file="f")
    assert same_position(kept.position, position)


def test_the_copy_is_private() -> None:
    position = {"0": [1]}
    copy = checked_position(position)
    position["0"].append(2)
    assert copy == {"0": [1]}


@pytest.mark.parametrize(
    ("left", "right"), [(1, True), (1, 1.0), (0, None), ("1", 1), ([], {}), ([1], [True]), ({"a": 1}, {"a": 1.0})]
)
def test_values_of_two_json_types_are_not_the_same(left: Any, right: Any) -> None:
    assert not same_position(left, right)
    assert same_position(left, left)
    assert same_position(right, right)


# ------------------------------------------------------------------------------------------------------- their order

_scalars = st.integers(0, 2) | st.sampled_from(["", "a", "b"])
_lists = st.lists(_scalars, max_size=2)
_ordered = _scalars | _lists | st.dictionaries(st.sampled_from("01"), _scalars | _lists, max_size=2)
_odd = st.sampled_from([None, True, False, 1.0, [True], [[1]], [1, None], {"0": 1.5}, {"0": {"0": 1}}])
_positions = _ordered | _odd


@given(_ordered)
def test_a_position_is_equal_to_itself(position: Any) -> None:
    assert compare(position, position) == 0


@given(_positions, _positions)
def test_the_other_way_round_the_answer_is_the_opposite(left: Any, right: Any) -> None:
    there, back = compare(left, right), compare(right, left)
    assert back == (None if there is None else -there)


@given(_positions, _positions)
def test_equal_in_order_means_the_same_value(left: Any, right: Any) -> None:
    if compare(left, right) == 0:
        assert same_position(left, right)


@given(st.lists(_positions, max_size=8))
def test_the_order_is_transitive(positions: list[Any]) -> None:
    for low, middle, high in permutations(positions, 3):
        steps = {compare(low, middle), compare(middle, high)}
        if steps <= {-1, 0}:
            assert compare(low, high) == (-1 if -1 in steps else 0)


@given(st.lists(st.integers(), max_size=3), st.lists(st.integers(), max_size=3))
def test_lists_are_ordered_as_python_orders_them(left: list[int], right: list[int]) -> None:
    assert compare(left, right) == (left > right) - (left < right)


@given(st.dictionaries(st.sampled_from("012"), st.integers(0, 3)), st.integers())
def test_a_map_with_one_more_partition_is_above(position: dict[str, Any], offset: int) -> None:
    assert compare(position, {**position, "new": offset}) == -1


@given(st.dictionaries(st.sampled_from("012"), st.integers(0, 3), min_size=2))
def test_maps_that_go_on_in_different_partitions_have_no_order(position: dict[str, int]) -> None:
    one, other, *_ = sorted(position)
    assert compare({**position, one: position[one] + 1}, {**position, other: position[other] + 1}) is None


@pytest.mark.parametrize(("left", "right"), [(1, "1"), (1, [1]), ([1], ["a"]), ("a", {"a": 1}), ({"0": 1}, {"0": "1"})])
def test_positions_of_different_kinds_have_no_order(left: Any, right: Any) -> None:
    assert compare(left, right) is None


@pytest.mark.parametrize("position", [None, True, 1.5, [True], [[1]], [{}], {"0": None}])
def test_what_is_no_int_text_list_or_map_has_no_order_even_with_itself(position: Any) -> None:
    assert compare(position, position) is None


def test_big_ints_are_compared_exactly() -> None:
    assert compare(2**80, 2**80 + 1) == -1
