"""Source positions: what they may be, and their order.

A single writer takes any JSON value and only compares for equality. Where an order is needed (a keyless table, later
the publisher), a position is an int, a list of ints and strings compared in order, text, or a map of partition to such
a position, compared per entry.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pydantic_core

from openmirror_writer.errors import OpenMirrorError

Position: TypeAlias = Any
"""A JSON value; None = no position yet."""

_MAX_DEPTH = 100
"""Lists and maps inside each other; the reader of records stops at 200 of them."""


def checked_position(position: Position) -> Position:
    """Return a private copy of the position, or refuse it if JSON in UTF-8 does not keep it as it is.

    Raises:
        OpenMirrorError: The position does not survive a JSON round trip (tuples, dates, NaN, int keys, lone surrogates
            and so on), or is nested more than 100 deep.

    >>> checked_position({"0": [12, "a"]})
    {'0': [12, 'a']}
    >>> checked_position((1, 2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    openmirror_writer.errors.OpenMirrorError: this position does not survive a JSON round trip... [position=(1, 2)]
    """
    msg = "this position does not survive a JSON round trip; use ints, text in UTF-8, lists and maps with text keys"
    try:
        # The library that writes and reads records: what it keeps here it keeps there.
        copy = pydantic_core.from_json(pydantic_core.to_json(position), allow_inf_nan=False)
    except ValueError as error:
        raise OpenMirrorError(msg, position=position) from error
    if not _same(copy, position):
        raise OpenMirrorError(msg, position=position)
    if _depth(copy) > _MAX_DEPTH:
        msg = f"this position is nested {_depth(copy)} deep, at most {_MAX_DEPTH} are allowed; make it flatter"
        raise OpenMirrorError(msg, position=position)
    return copy


def same_position(left: Position, right: Position) -> bool:
    """Tell whether two positions are the same JSON value (1 and true differ, 1 and 1.0 too).

    >>> same_position({"a": [1, "x"]}, {"a": [1, "x"]}), same_position(1, True)
    (True, False)
    """
    return _same(left, right)


def compare(left: Position, right: Position) -> int | None:
    """Compare two positions: -1, 0, 1, or None where they have no order.

    Ints by value, text by code point, lists of those item by item with a shorter one first. Maps are compared per
    entry: below or above only if no entry says otherwise; an absent entry is below any other. Anything else has no
    order, not even with itself: booleans, floats, None, lists in lists.

    >>> compare(1, 2), compare([1, "b"], [1, "a"]), compare({"0": 1, "1": 5}, {"0": 2, "1": 4}), compare(1, "1")
    (-1, 1, None, None)
    >>> compare({"0": 1}, {"0": 1, "1": 0})
    -1
    """
    if isinstance(left, dict) and isinstance(right, dict):
        return _compare_maps(left, right)
    for kind in (int, str):
        if _is(left, kind) and _is(right, kind):
            return int(left > right) - int(left < right)
    if isinstance(left, list) and isinstance(right, list):
        for one, other in zip(left, right, strict=False):
            order = compare(one, other) if not isinstance(one, dict | list) else None
            if order != 0:
                return order
        return int(len(left) > len(right)) - int(len(left) < len(right))
    return None


def _compare_maps(left: dict[str, Position], right: dict[str, Position]) -> int | None:
    signs = set()
    for partition in left.keys() | right.keys():
        if partition not in left:
            signs.add(-1)
        elif partition not in right:
            signs.add(1)
        else:
            order = compare(left[partition], right[partition])
            if order is None:
                return None
            signs.add(order)
    signs.discard(0)
    return None if len(signs) > 1 else next(iter(signs), 0)


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _depth(value: object) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inside)) if inside else 0


def _same(left: object, right: object) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_same(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)
