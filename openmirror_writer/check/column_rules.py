"""Rules of the columns, keys and markers of a table's files together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from openmirror_writer.check.content import type_fault
from openmirror_writer.check.findings import Finding, Severity
from openmirror_writer.check.look import SeenTable
from openmirror_writer.check.seen import SeenFile
from openmirror_writer.check.text_rules import is_text
from openmirror_writer.layout import METADATA
from openmirror_writer.schema import file_type, type_text

_AS_SPARK_READS: Mapping[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.timestamp("ms"): pa.timestamp("us"),
    pa.timestamp("ms", tz="UTC"): pa.timestamp("us", tz="UTC"),
}
_REBUILD = "publish it as it was; for a new form drop_table and load again"


def keyless_findings(seen: SeenTable, files: Sequence[SeenFile]) -> Iterator[Finding]:
    """Yield what a table without keys cannot do.

    Args:
        seen: The table's folder.
        files: Those that count.
    """
    keyed = next((file for file in files if file.greatest_marker), None)
    if seen.metadata.keys == () and keyed is not None:
        message = f"the table has no keyColumns, and rows have the marker {keyed.greatest_marker}"
        yield Finding("error", "2.15", message, "add keyColumns, or publish inserts (0) only", file=keyed.path)
    elif seen.metadata.properties and seen.metadata.properties.get("keyColumns") is None:
        message = "keyColumns is absent: the table takes inserts only"
        yield Finding("note", "2.1", message, "write the keys, or [] to say so", file=seen.path(METADATA))


def key_findings(seen: SeenTable, files: Sequence[SeenFile]) -> Iterator[Finding]:
    """Yield what is wrong between the keys of the metadata and the columns of Parquet files.

    Args:
        seen: The table's folder.
        files: Its Parquet files that count, in the order in which they apply.
    """
    path = seen.path(METADATA)
    for key in seen.metadata.keys or ():
        has = [key in file.columns.names for file in files]
        if all(has):
            continue
        if not any(has):
            message = f"the key column {key!r} is none of the files' columns {files[0].columns.names}"
            yield Finding("error", "2.1", message, "mend keyColumns; the spelling counts", file=path)
        elif not has[0]:
            message = f"the key column {key!r} is not in {files[0].name}: the key was another one then"
            yield Finding("error", "7.6", message, "drop_table and load again with the new key", file=path)
        else:
            message = f"the key column {key!r} is missing"
            for file, there in zip(files, has, strict=True):
                if not there:
                    yield Finding("error", "6.2", message, "publish the file again with it", file=file.path)


def marker_findings(seen: SeenTable, files: Iterable[SeenFile]) -> Iterator[Finding]:
    """Yield the files without markers: text, and Parquet behind files with them, where its rows are inserts.

    Args:
        seen: The table's folder.
        files: Those that count, in the order in which they apply.
    """
    upserts = seen.metadata.unmarked_are_upserts
    marked: SeenFile | None = None
    for file in files:
        if file.marked:
            marked = marked or file
        elif file.rows and is_text(file.extension):
            message = f"the text file has no markers: its rows are {'upserts' if upserts else 'inserts, unchecked'}"
            yield Finding("warning", "6.5", message, "publish text with __rowMarker__ always", file=file.path)
        elif file.rows and marked is not None and not upserts:
            message = f"the file has no markers, behind {marked.name} that has them: its rows are inserts, unchecked"
            yield Finding(
                "warning", "6.5", message, "publish with __rowMarker__ from the first change on", file=file.path
            )


def drift_findings(files: Iterable[SeenFile], keys: Sequence[str]) -> Iterator[Finding]:
    """Yield the changes of columns that stop the table, compared with how each column first came.

    Args:
        files: The Parquet files that count, in the order in which they apply.
        keys: The key columns: a missing one is told by `key_findings`.
    """
    table: dict[str, pa.Field[pa.DataType]] = {}
    before: set[str] = set()
    for file in files:
        columns = {field.name: field for field in file.columns if type_fault(field.type) is None}
        if table:
            both = [name for name in columns if name in table]
            yield from (_changed(file, columns[n], table[n]) for n in both if _words(columns[n]) != _words(table[n]))
            gone = [table[name] for name in sorted(before - set(file.columns.names) - set(keys))]
            new = [columns[name] for name in sorted(columns.keys() - table.keys() - set(keys))]
            yield from _gone_and_new(file, gone, new)
        before = set(columns)
        table = columns | table


def _gone_and_new(
    file: SeenFile, gone: list[pa.Field[pa.DataType]], new: list[pa.Field[pa.DataType]]
) -> Iterator[Finding]:
    """Yield what is wrong with columns that a file leaves out or adds; a pair of one type may be a renamed one."""
    for old in list(gone):
        same = next((field for field in new if _type(field) == _type(old)), None)
        if same is not None:
            gone.remove(old)
            new.remove(same)
            severity: Severity = "warning" if old.nullable and same.nullable else "error"
            message = f"the column {old.name!r} is gone as {same.name!r} comes: renamed, it is a new column with NULLs"
            remedy = "keep the old name; to rename it, drop_table and load again"
            yield Finding(severity, "7.5", message, remedy, file=file.path)
    for field, verb in [*((field, "left out") for field in gone), *((field, "added") for field in new)]:
        if not field.nullable:
            message = f"the column {field.name!r} is {verb}, and declared as required"
            remedy = "publish it" if verb == "left out" else "add it as nullable"
            yield Finding("error", "7.3", message, f"{remedy}, or drop_table and load again", file=file.path)


def _changed(file: SeenFile, now: pa.Field[pa.DataType], before: pa.Field[pa.DataType]) -> Finding:
    message = f"the column {now.name!r} is {_words(now)}, and {_words(before)} in the files before"
    return Finding("error", "7.4", message, _REBUILD, file=file.path)


def _words(field: pa.Field[pa.DataType]) -> str:
    return _type(field) + ("" if field.nullable else " not null")


def _type(field: pa.Field[pa.DataType]) -> str:
    kind = file_type(field.name, field.type)
    return type_text(_AS_SPARK_READS.get(kind, kind))
