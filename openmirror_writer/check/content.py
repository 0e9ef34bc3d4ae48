"""Rules that one Parquet file breaks by itself, and how both formats tell of markers and keys. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from openmirror_writer.check.facts import MARKER_TYPES, BadMarker, ParquetFacts, Unreadable
from openmirror_writer.check.findings import Finding
from openmirror_writer.errors import shorten
from openmirror_writer.schema import ROW_MARKER

_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"})
AGAIN = "delete it and publish a mended file under the same name"
"""What to do with most bad files."""


def empty_file() -> Finding:
    """Return what is wrong with a file of zero bytes."""
    return Finding("error", "4.8", "the file has zero bytes, which latches the table in error", AGAIN)


def unreadable_file(facts: Unreadable) -> Finding:
    """Return what is wrong with a file that is no Parquet."""
    return Finding("error", "4.1", f"this is no readable Parquet file ({facts.reason})", AGAIN)


def content_findings(facts: ParquetFacts) -> Iterator[Finding]:
    """Yield what is wrong with a file, whatever the others hold."""
    yield from _codec_findings(facts)
    if facts.columns.names in ([], [ROW_MARKER]):
        yield Finding("error", "4.9", "the file has no column", f"{AGAIN}, with the table's columns")
    yield from _name_findings(facts.columns)
    for field in facts.columns:
        if field.name != ROW_MARKER and (fault := type_fault(field.type)):
            reason, way_out = fault
            yield Finding("error", "4.9", f"the column {field.name!r} is {field.type}, {reason}", way_out)
    yield from _marker_findings(facts)
    for key, count in facts.null_keys.items():
        yield null_key(key, count)


def null_key(key: str, count: int) -> Finding:
    """Return that rows have NULL in a key column."""
    message = f"{count} rows have NULL in the key column {key!r}: what NULL matches is not documented"
    return Finding("warning", "2.1", message, "publish a value that stands for no value")


def marker_spelled(name: str) -> Finding:
    """Return that a column looks like that of the markers, and is none."""
    message = f"the column {name!r} is spelled otherwise than {ROW_MARKER}, and is no marker"
    return Finding("error", "6.1", message, f"publish it as {ROW_MARKER}")


def markers_twice(count: int) -> Finding:
    """Return that a file has several columns of markers."""
    return Finding("error", "6.1", f"the file has {count} columns {ROW_MARKER}", f"{AGAIN}, with one, the last")


def marker_not_last() -> Finding:
    """Return that the markers do not stand where they should."""
    message = f"{ROW_MARKER} is not the last column; the service is seen to read it all the same"
    return Finding("note", "6.1", message, "publish it as the last column")


def bad_marker(bad: BadMarker) -> Finding:
    """Return that a row has a marker that means nothing."""
    value = "NULL" if bad.value is None else shorten(bad.value)
    message = f"row {bad.row} has the marker {value}, which means nothing"
    return Finding("error", "6.1", message, f"{AGAIN}, with 0, 1, 2 or 4 in each row")


def type_fault(kind: pa.DataType) -> tuple[str, str] | None:
    """Return why a type cannot be mirrored and the way out, None if it can.

    Args:
        kind: As `ParquetFacts.columns` has it.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return "which Spark cannot read", "publish it as text in a string column"
    if pa.types.is_nested(kind):
        return "and only simple types are allowed", "publish it as JSON text in a string column"
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return "which Spark cannot read", "publish microseconds"
    if pa.types.is_time(kind):
        return "which Delta has no type for", "publish it as text HH:MM:SS.ffffff in a string column"
    if pa.types.is_float16(kind):
        return "which Spark cannot read", "publish float32"
    if pa.types.is_decimal256(kind):
        return "and Delta holds 38 digits", "publish decimal(38,s), or text"
    if pa.types.is_null(kind):
        return "which tells no type", "publish the column in the type that it shall have"
    return None


def _codec_findings(facts: ParquetFacts) -> Iterator[Finding]:
    others = facts.codecs - _CODECS
    if others:
        message = f"the file is compressed with {', '.join(sorted(others))}"
        yield Finding("error", "4.1", message, "publish it with Snappy, GZIP, ZSTD or uncompressed")


def _name_findings(columns: pa.Schema) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name in columns.names:
        if name == ROW_MARKER:
            continue  # the rules of the marker say more
        if name.casefold() == ROW_MARKER.casefold():
            yield marker_spelled(name)
        elif not name:
            yield Finding("error", "4.9", "a column has an empty name", "name it")
        elif name.casefold() in seen:
            message = f"the columns {seen[name.casefold()]!r} and {name!r} are one: Delta does not tell case apart"
            yield Finding("error", "4.9", message, "rename one")
        seen[name.casefold()] = name


def _marker_findings(facts: ParquetFacts) -> Iterator[Finding]:
    names = facts.columns.names
    count = names.count(ROW_MARKER)
    if count > 1:
        yield markers_twice(count)
    if count != 1:
        return
    kind = facts.columns.field(ROW_MARKER).type
    if kind not in MARKER_TYPES:
        yield Finding("error", "6.1", f"{ROW_MARKER} is {kind}, and must be an integer", f"{AGAIN}, with int32")
    elif facts.bad_marker is not None:
        yield bad_marker(facts.bad_marker)
    elif names[-1] != ROW_MARKER:
        yield marker_not_last()
