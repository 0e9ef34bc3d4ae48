"""The format of a table's files: that of the folder and that of the declaration must be the same. Pure."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.footers import TextTable
from openmirror_writer.formats import DelimitedText, Parquet, columns_of, definition_of, is_parquet, text_of
from openmirror_writer.layout import METADATA
from openmirror_writer.zone import FolderState, LandingTable

_NO_PROPERTY = "compression"
"""The option that no property of the metadata tells."""


def check_format(table: LandingTable, state: FolderState) -> None:
    """Refuse a declaration whose format is not that of the files and metadata that stand.

    Args:
        table: As the caller declares it.
        state: What stands in its folder.

    Raises:
        SchemaRefusedError: It is another format, or another option of text: neither can change while the table stands
            (rule 7.7 of the landing zone: no change of a text format is supported).
    """
    if state.names.data:
        path = state.data_path(state.names.last)
        if is_parquet(path) != isinstance(table.format, Parquet):
            raise _other_format(table, path, "Parquet()" if is_parquet(path) else "DelimitedText(...)")
    if state.metadata is None:
        return
    standing = text_of(state.metadata, file=table.path(METADATA))
    if not isinstance(table.format, DelimitedText):
        if standing is not None and not state.names.data:
            raise _other_format(table, table.path(METADATA), "DelimitedText(...)")
        return
    if standing is None:
        raise _other_format(table, table.path(METADATA), "Parquet()")
    for option in dataclasses.fields(DelimitedText):
        given, stands = getattr(table.format, option.name), getattr(standing, option.name)
        if given != stands and option.name != _NO_PROPERTY:
            msg = (
                f"the option {option.name} of the text files is {stands!r} in _metadata.json and {given!r} in format=; "
                "it cannot change (7.7): give the same, or drop_table and load again"
            )
            raise SchemaRefusedError(msg, table=table.label, file=table.path(METADATA))


def declared_text(table: LandingTable) -> TextTable | None:
    """Return how text files are read by the declaration, where no metadata stand yet; None if it does not tell."""
    if not isinstance(table.format, DelimitedText) or table.columns is None:
        return None
    return TextTable(table.format, columns_of(definition_of(table.columns), file=table.path(METADATA)))


def as_read_back(columns: pa.Schema, table: LandingTable) -> pa.Schema:
    """Return the types in which files of the table give its columns back: text has fewer of them than Parquet."""
    if isinstance(table.format, Parquet):
        return columns
    return columns_of(definition_of(columns), file=table.path(METADATA))


def refuse_other_text(table: LandingTable, declared: pa.Schema, standing: pa.Schema, file: str) -> None:
    """Refuse columns that differ from those of the text files that stand: they cannot change (rule 7.7).

    Args:
        table: The table.
        declared: The columns that the source has.
        standing: Those of ``SchemaDefinition``.
        file: Path of the last file, for the error.

    Raises:
        SchemaRefusedError: A column, its type, whether NULL is allowed, or the order differs.
    """
    wanted = as_read_back(declared, table)
    if wanted.equals(standing):
        return
    differing = [f.name for f in wanted if f.name not in standing.names or not f.equals(standing.field(f.name))]
    differing += [name for name in standing.names if name not in wanted.names]
    column = differing[0] if differing else None
    what = "their order differs" if column is None else f"{column!r} differs"
    msg = (
        f"the columns of a table of text files cannot change (rule 7.7), and {what} from SchemaDefinition: declare the "
        "columns that stand, or drop_table and load again"
    )
    raise SchemaRefusedError(msg, table=table.label, file=file, column=column)


def _other_format(table: LandingTable, file: str, standing: str) -> SchemaRefusedError:
    msg = (
        f"the table's files are {standing} and format= says {type(table.format).__name__}: give format={standing} to "
        "zone.table, or drop_table and load again"
    )
    return SchemaRefusedError(msg, table=table.label, file=file)
