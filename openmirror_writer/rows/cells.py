"""Errors that name row, key, column, value and type, and say what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from openmirror_writer.errors import InvalidRowError, SchemaRefusedError
from openmirror_writer.rows.needs import Needs
from openmirror_writer.schema import ROW_MARKER, declared_type


def cell_error(
    reason: str, needs: Needs, *, row: int, column: str, value: object, key: Mapping[str, Any]
) -> InvalidRowError:
    """Return the error for a value that does not fit its column.

    Args:
        reason: What is wrong with it and what to hand over instead.
        needs: What the verb asks.
        row: Index in the call, from 0.
        column: Its name.
        value: As the caller gave it.
        key: The row's key, as far as it is known.
    """
    kind = declared_type(needs.columns.field(column))
    msg = f"this value does not go into the column {column!r}: {reason}"
    return InvalidRowError(
        msg, table=needs.table, row=row, key=dict(key) or None, column=column, value=value, type=kind
    )


def null_error(needs: Needs, *, row: int, column: str, key: Mapping[str, Any]) -> InvalidRowError:
    """Return the error for NULL in a key column, or in one that is declared ``not null``."""
    if column in needs.keys:
        msg = (
            f"the key column {column!r} is NULL; give every row its key, or choose key columns that always have a value"
        )
    else:
        msg = f"the column {column!r} is declared not null and is NULL; give it a value, or declare it nullable"
    kind = declared_type(needs.columns.field(column))
    return InvalidRowError(msg, table=needs.table, row=row, key=dict(key) or None, column=column, type=kind)


def first_null(array: pa.Array[Any] | pa.ChunkedArray[Any]) -> int:
    """Return the index of the first NULL of an array that has one."""
    return int(array.is_null().index(pa.scalar(value=True)).as_py())


def unknown_column(
    needs: Needs, column: object, *, row: int | None = None, key: Mapping[str, Any] | None = None
) -> InvalidRowError:
    """Return the error for a column that the table does not have."""
    known = f"the columns here are {', '.join(needs.names)}"
    if not isinstance(column, str):
        msg = f"a column name must be text, got {column!r}; {known}"
    elif column == ROW_MARKER:
        msg = (
            f"{column} is the writer's own column; call insert, update, upsert or delete, "
            "or hand Arrow with it as last column to write()"
        )
    elif column.startswith("__index_level_"):
        msg = f"{column!r} is the index of a pandas data frame, not a column; reset_index(drop=True) first; {known}"
    else:
        msg = f"the column {column!r} is not one of this table; leave it out, or add it with change_columns(); {known}"
    name = column if isinstance(column, str) else repr(column)
    return InvalidRowError(msg, table=needs.table, row=row, key=dict(key or {}) or None, column=name)


def missing_column(
    needs: Needs, column: str, *, row: int | None = None, key: Mapping[str, Any] | None = None
) -> InvalidRowError:
    """Return the error for a column that the verb needs and that is not there."""
    needed = [name for name in needs.names if name in needs.required]
    msg = (
        f"the column {column!r} is missing; every row must bring {', '.join(needed)} "
        "(None where a value is NULL: what was not captured is not NULL)"
    )
    return InvalidRowError(msg, table=needs.table, row=row, key=dict(key or {}) or None, column=column)


def key_of(row: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return the key columns of a row, without those that it lacks."""
    return {name: row[name] for name in keys if name in row}


@contextmanager
def naming(table: str) -> Iterator[None]:
    """Give the table's name to a `SchemaRefusedError` of the body: the schema's own checks do not know it."""
    try:
        yield
    except SchemaRefusedError as error:
        error.table = table
        raise
