"""Source positions: what they may be, and their order.

A single writer takes any JSON value and only compares for equality. Where an order is needed (a keyless table, later
the publisher), a position is an int, a list of ints and strings compared in order, text, or a map of partition to such
a position, compared per entry.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from openmirror_writer.errors import OpenMirrorError

Position: TypeAlias = Any
"""A JSON value; None = no position yet."""


def checked_position(position: Position) -> Position:
    """Return a private copy of the position, or refuse it if JSON does not keep it as it is.

    Raises:
        OpenMirrorError: The position does not survive a JSON round trip (tuples, dates, NaN, int keys and so on).

    >>> checked_position({"0": [12, "a"]})
    {'0': [12, 'a']}
    >>> checked_position((1, 2))
    Traceback (most recent call last):
    ...
    openmirror_writer.errors.OpenMirrorError: this position does not survive a JSON round trip; use ints, text, lists and maps with text keys [position=(1, 2)]
    """
    try:
        text = json.dumps(position, allow_nan=False)
        copy = json.loads(text.encode())  # encode: a lone surrogate is refused here, not in the file
        same = _same(copy, position)
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        msg = "this position does not survive a JSON round trip; use ints, text, lists and maps with text keys"
        raise OpenMirrorError(msg, position=position)
    try:
        json.dumps(position, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        msg = "this position holds a lone surrogate, which UTF-8 cannot hold"
        raise OpenMirrorError(msg, position=position) from error
    return copy


def same_position(left: Position, right: Position) -> bool:
    """Tell whether two positions are the same JSON value (1 and true differ, 1 and 1.0 too)."""
    return _same(left, right)


def compare(left: Position, right: Position) -> int | None:
    """Compare two positions: -1, 0, 1, or None where they have no order.

    Maps are compared per entry: below or above only if no entry says otherwise; an absent entry is below any other.

    >>> compare(1, 2), compare([1, "b"], [1, "a"]), compare({"0": 1, "1": 5}, {"0": 2, "1": 4}), compare(1, "1")
    (-1, 1, None, None)
    >>> compare({"0": 1}, {"0": 1, "1": 0})
    -1
    """
    if isinstance(left, dict) and isinstance(right, dict):
        return _compare_maps(left, right)
    for kind in (int, str):
        if _is(left, kind) and _is(right, kind):
            return (left > right) - (left < right)
    if isinstance(left, list) and isinstance(right, list):
        for one, other in zip(left, right, strict=False):
            order = compare(one, other) if not isinstance(one, dict | list) else None
            if order != 0:
                return order
        return (len(left) > len(right)) - (len(left) < len(right))
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


def _same(left: object, right: object) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_same(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)
