"""Columns that change: what the mirror follows, and what is refused before a file of it is published. Pure.

The mirror adds columns that come, and writes NULL for those that stay away; both only where NULL is allowed. A column
keeps its type, and its name to the letter. So each file holds all columns that an earlier one had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.schema import declared_type


@dataclass(frozen=True)
class FileColumns:
    """The columns of the next files.

    Attributes:
        schema: All of them: those of the published files first, in their order, the new ones behind.
        left_out: Those that the source no longer has: NULL where a row does not bring them.
    """

    schema: pa.Schema
    left_out: frozenset[str] = frozenset()


def follow(
    standing: pa.Schema, declared: pa.Schema, keys: Sequence[str], *, table: str, file: str | None = None
) -> FileColumns:
    """Return the columns of the next files, where the source's columns may have changed.

    Args:
        standing: Those of the last published file.
        declared: Those that the source has, in any order.
        keys: The key columns.
        table: For the error.
        file: Path of the last published file, for the error.

    Raises:
        SchemaRefusedError: The mirror would stop at such a file. The message names the rule (section and item of the
            landing zone's rules): 7.3 a column that is not null came or went; 7.4 a type, or whether NULL is allowed,
            changed; 7.5 a name changed by case only; 7.6 a key column went.
    """
    spelled = {name.casefold(): name for name in standing.names}
    for field in declared:
        twin = spelled.get(field.name.casefold())
        fault = _added_fault(field) if twin is None else _kept_fault(standing.field(twin), field)
        if fault is not None:
            raise SchemaRefusedError(fault, table=table, file=file, column=field.name, type=_words(field))
    left_out = [field for field in standing if field.name not in declared.names]
    for field in left_out:
        fault = _left_out_fault(field, keys)
        if fault is not None:
            raise SchemaRefusedError(fault, table=table, file=file, column=field.name, type=_words(field))
    added = [field for field in declared if field.name not in standing.names]
    kept = [declared.field(f.name) if f.name in declared.names else f for f in standing]  # which know the forms of text
    return FileColumns(pa.schema([*kept, *added]), frozenset(field.name for field in left_out))


def _added_fault(field: pa.Field[Any]) -> str | None:
    if field.nullable:
        return None
    return (
        f"the column {field.name!r} is new and not null: the mirror adds only columns that may be NULL, for the rows "
        "that stand have no value there (rule 7.3). Declare it without not null, or drop_table and load again"
    )


def _kept_fault(standing: pa.Field[Any], declared: pa.Field[Any]) -> str | None:
    if standing.name != declared.name:
        return (
            f"the column {declared.name!r} is {standing.name!r} in the published files: the mirror does not tell names "
            "apart that differ by case only (rule 7.5). Keep the old spelling, or drop_table and load again"
        )
    if (standing.type, standing.nullable) != (declared.type, declared.nullable):
        return (
            f"the column {declared.name!r} is declared as {_words(declared)} and is {_words(standing)} in the last "
            "published file: the mirror stops at a changed type (rule 7.4). Declare what is published, give the new "
            "values in a new column, or drop_table and load again"
        )
    return None


def _left_out_fault(field: pa.Field[Any], keys: Sequence[str]) -> str | None:
    if field.name in keys:
        return (
            f"the column {field.name!r} is a key column and cannot be left out (rule 7.6): "
            "go on giving it, or drop_table and load again with other keys"
        )
    if not field.nullable:
        return (
            f"the column {field.name!r} is not null, so the mirror stops where it is left out (rule 7.3): "
            "go on giving it some value, or drop_table and load again"
        )
    return None


def _words(field: pa.Field[Any]) -> str:
    return declared_type(field) + ("" if field.nullable else " not null")
