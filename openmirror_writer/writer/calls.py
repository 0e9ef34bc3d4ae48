"""What a call has to bring before a row of it is taken: columns, key columns, a position that fits. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import InvalidRowError, SchemaRefusedError, UnknownPositionError
from openmirror_writer.position import Position, compare, same_position
from openmirror_writer.rows import Needs, is_arrow, peek_columns
from openmirror_writer.schema import check_keys
from openmirror_writer.zone import LandingTable

Rows: TypeAlias = Any
"""Rows of a call: an iterable of mappings (column to value), or anything with ``__arrow_c_stream__``."""


def inferred_columns(rows: Rows, keys: tuple[str, ...], table: LandingTable) -> tuple[pa.Schema | None, Rows]:
    """Find the columns of a table that nothing told yet.

    Args:
        rows: Of the first call that has some.
        keys: The key columns.
        table: The table; its format may lack a type.

    Returns:
        The columns, None if there is no row; and rows to go on with in place of ``rows``.

    Raises:
        InvalidRowError: ``rows`` are no rows.
        SchemaRefusedError: A type would be a guess, a name or a type would be refused, or a key column is missing.
    """
    some = some_rows(rows)
    if some is None and rows is not None:
        return None, []
    columns, source = peek_columns(some, table.label)
    check_keys(keys, columns, table=table.label)
    try:
        table.format.check_columns(columns)
    except SchemaRefusedError as error:
        error.table = table.label
        raise
    return columns, source


def some_rows(rows: Rows) -> Rows | None:
    """Return the rows, None if there are none; odd inputs go on to `rows`, which says what is wrong with them."""
    if is_arrow(rows) or isinstance(rows, Mapping | str | bytes | type) or not isinstance(rows, Iterable):
        return rows
    iterator = iter(rows)
    for first in iterator:
        return itertools.chain([first], iterator)
    return None


def no_changes(changes: object, table: str) -> InvalidRowError:
    """Return the error for what `Writer.write` does not take."""
    msg = "write() takes ChangeBatches with markers, or Arrow whose last column is __rowMarker__"
    return InvalidRowError(msg, table=table, value=changes)


def full_rows(columns: pa.Schema, keys: tuple[str, ...], table: str, left_out: frozenset[str] = frozenset()) -> Needs:
    """Return what rows need that bring every column, but for those that the source no longer has."""
    return Needs(columns=columns, keys=keys, required=frozenset(columns.names) - left_out, table=table)


def delete_rows(columns: pa.Schema, keys: tuple[str, ...], table: str) -> Needs:
    """Return what rows of a delete need: the keys, and the columns that are never NULL."""
    required = frozenset(keys) | {f.name for f in columns if not f.nullable}
    return Needs(columns=columns, keys=keys, required=required, table=table)


def check_keyless_position(position: Position, last: Position, table: str) -> None:
    """Refuse a position that goes back: rows of a keyless table cannot be published twice without harm.

    Args:
        position: Of the call.
        last: The last one that was accepted.
        table: Label for errors.

    Raises:
        UnknownPositionError: The position has no order, or goes back.
    """
    if compare(position, position) is None:
        msg = (
            "a table without key columns needs positions that have an order: ints, text, lists of them, "
            "or a map of partitions"
        )
        raise UnknownPositionError(msg, table=table, position=position)
    order = 0 if last is None else compare(last, position)
    if order is None or order > 0:
        msg = f"the position goes back behind {last!r}: in a table without keys its rows would stand twice"
        raise UnknownPositionError(msg, table=table, position=position)


def accepted(
    batches: Iterator[tuple[ChangeBatch, bool]],
    table: LandingTable,
    keys: tuple[str, ...],
    position: Position,
    last: Position,
) -> Iterator[tuple[ChangeBatch, bool]]:
    """Pass the rows of a call through that may stand in files of the table, see `refuse_repeated`, `refuse_unwritable`.

    Args:
        batches: Rows of the call, each batch with a flag that is passed through.
        table: The table.
        keys: The key columns.
        position: Of the call; None = not told.
        last: The last one that was accepted.

    Raises:
        OpenMirrorError: As these two.
    """
    if not keys:
        batches = refuse_repeated(batches, position, last, table.label)
    return refuse_unwritable(batches, table, keys)


def refuse_repeated(
    batches: Iterator[tuple[ChangeBatch, bool]], position: Position, last: Position, table: str
) -> Iterator[tuple[ChangeBatch, bool]]:
    """Pass the rows of a call on a keyless table through, if it leads on: those of a position reached were all given.

    Args:
        batches: Rows of the call, each batch with a flag that is passed through.
        position: Of the call; None = not told.
        last: The last one that was accepted.
        table: Label for errors.

    Yields:
        The same pairs.

    Raises:
        UnknownPositionError: There are rows, and the position is the last one.
    """
    is_repeated = position is not None and same_position(position, last)
    for batch, exact in batches:
        if is_repeated and batch.num_rows:
            msg = (
                "this position was reached already, and rows came again with it: in a table without keys they would "
                "stand twice; give all rows of a position in one call, or in several of which only the last tells it"
            )
            raise UnknownPositionError(msg, table=table, position=position)
        yield batch, exact


def refuse_unwritable(
    batches: Iterator[tuple[ChangeBatch, bool]], table: LandingTable, keys: tuple[str, ...]
) -> Iterator[tuple[ChangeBatch, bool]]:
    """Pass the rows of a call through, if the format of the table's files can hold each value.

    Args:
        batches: Rows of the call, each batch with a flag that is passed through.
        table: The table.
        keys: The key columns.

    Yields:
        The same pairs.

    Raises:
        InvalidRowError: A value cannot be written as it is; the row is counted over the whole call.
    """
    first_row = 0
    for batch, exact in batches:
        table.format.check_rows(batch, table=table.label, keys=keys, first_row=first_row)
        first_row += batch.num_rows
        yield batch, exact
