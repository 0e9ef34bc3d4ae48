"""Rules that one text file breaks by itself. Pure, over its bytes, by the reader that the mirror uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.check.content import AGAIN, bad_marker, marker_not_last, marker_spelled, markers_twice, null_key
from openmirror_writer.check.facts import BadMarker, first_bad_marker
from openmirror_writer.check.findings import Finding
from openmirror_writer.errors import ApplyError, UnknownPositionError, shorten
from openmirror_writer.footers import TextTable
from openmirror_writer.formats.text.columns import data_type
from openmirror_writer.formats.text.reader import MARKER_FIELD, Header, column_values, decoded, read_cells, read_header
from openmirror_writer.schema import ROW_MARKER

_EMPTY = Finding("error", "4.8", "the file has no row below its header, which latches the table in error", AGAIN)


@dataclass(frozen=True)
class TextContent:
    """What one text file tells.

    Attributes:
        findings: What it breaks by itself.
        columns: The names in its header, without the marker's; none if it has no header.
        marked: Whether it has a column of markers, however it is spelled.
        rows: How many; 0 where they cannot be read.
        greatest_marker: None if it has none that can be read.
    """

    findings: tuple[Finding, ...]
    columns: tuple[str, ...] = ()
    marked: bool = False
    rows: int = 0
    greatest_marker: int | None = None


def judge_text(table: TextTable, data: bytes, keys: Sequence[str], path: str) -> TextContent:
    """Judge one file; what its header has in common with those of other files is not looked at.

    Args:
        table: How it is read.
        data: The whole file.
        keys: The table's key columns.
        path: Below the zone's root.
    """
    try:
        text = decoded(table.text, data, path)
    except UnknownPositionError as error:
        return TextContent((_unreadable("4.1", error),))
    try:
        header = read_header(table.text, text, path)
    except UnknownPositionError as error:
        return TextContent((_unreadable("5.1", error),))
    has_rows = header.end < len(text)
    fault = _header_fault(header, table.columns.names, has_rows=has_rows)
    if fault is not None:
        return TextContent((fault,))
    columns = tuple(name for name in header.names if not _is_marker(name))
    marked = len(columns) < len(header.names)
    if not has_rows:
        return TextContent((_EMPTY,), columns, marked)
    try:
        cells = read_cells(table.text, text, header, path)
    except ApplyError as error:
        return TextContent((_malformed(error),), columns, marked)
    markers, greatest = _judged_markers(cells, path)
    findings = (*markers, *_value_findings(table.columns, cells, keys, path))
    return TextContent(findings, columns, marked, cells.num_rows, greatest)


def _unreadable(rule: str, error: UnknownPositionError) -> Finding:
    message, _, remedy = error.message.rpartition(": ")
    return Finding("error", rule, message, remedy)


def _malformed(error: ApplyError) -> Finding:
    message, _, remedy = error.message.rpartition(": ")
    where = f"row {error.row}" if error.column is None else f"row {error.row}, column {error.column!r}"
    return Finding("error", "4.1", message if error.row is None else f"{where}: {message}", remedy)


def _is_marker(name: str) -> bool:
    return name.casefold() == ROW_MARKER.casefold()


def _header_fault(header: Header, described: Sequence[str], *, has_rows: bool) -> Finding | None:
    """Return why a file cannot be read by its first row; None if it can."""
    names = header.names
    if names == ("",) and not has_rows:
        return _EMPTY
    if not set(names) & set(described):
        message = f"the first row {shorten(list(names))} is no header: it names none of the columns of SchemaDefinition"
        return Finding("error", "5.1", message, f"{AGAIN}, with the header as its first row")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if ROW_MARKER in repeated:
        return markers_twice(names.count(ROW_MARKER))
    if repeated:
        message = f"the header names {repeated[0]!r} {names.count(repeated[0])} times"
        return Finding("error", "5.1", message, f"{AGAIN}, with each name once")
    return None


def _judged_markers(cells: pa.Table, path: str) -> tuple[list[Finding], int | None]:
    """Return what is wrong with the markers, and the greatest of them."""
    names = cells.column_names
    found = [marker_spelled(name) for name in names if _is_marker(name) and name != ROW_MARKER]
    if ROW_MARKER not in names:
        return found, None
    try:
        markers = column_values(cells, MARKER_FIELD, path)
    except ApplyError as error:  # no integer; one of the rows before it may mean nothing too
        row = error.row or 0
        before = first_bad_marker(column_values(cells.slice(0, row), MARKER_FIELD, path))
        return [*found, bad_marker(before or BadMarker(row, error.value))], None
    bad = first_bad_marker(markers)
    if bad is not None:
        found.append(bad_marker(bad))
    elif names[-1] != ROW_MARKER:
        found.append(marker_not_last())
    return found, pc.max(markers).as_py()


def _value_findings(columns: pa.Schema, cells: pa.Table, keys: Sequence[str], path: str) -> Iterator[Finding]:
    """Yield the first bad value of each column, and the NULLs in keys."""
    for column in columns:
        if column.name not in cells.column_names:
            continue  # the rules of headers tell
        try:
            nulls = column_values(cells, column, path).null_count
        except ApplyError as error:
            yield _bad_value(column, error)
            continue
        if column.name in keys and nulls:
            yield null_key(column.name, nulls)


def _bad_value(column: pa.Field[pa.DataType], error: ApplyError) -> Finding:
    where = f"row {error.row} of the column {column.name!r}"
    if error.value is None:
        message = f"{where} is NULL, and its IsNullable is false"
        return Finding("error", "2.16", message, "publish a value, or say true")
    message = f"{where} is {shorten(error.value)}, which is no {data_type(column)}"
    return Finding("error", "5.11", message, AGAIN)
