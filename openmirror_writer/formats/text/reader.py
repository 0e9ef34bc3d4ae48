"""Delimited text to typed rows: decompressed, decoded, matched against its grammar, parsed by pyarrow, cast."""

from __future__ import annotations

import codecs
from collections import Counter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from openmirror_writer.errors import ApplyError, OpenMirrorError, UnknownPositionError
from openmirror_writer.formats.text.columns import ARROW_TYPES, data_type, from_text
from openmirror_writer.formats.text.compression import decompressed
from openmirror_writer.formats.text.dialect import Dialect
from openmirror_writer.formats.text.grammar import Grammar, MalformedTextError, grammar_of
from openmirror_writer.schema import ROW_MARKER

_BLOCK_BYTES = 1 << 30
"""A block of pyarrow's parser: a whole file; a larger one is cut, as its blocks and their texts stay below 2 GiB."""
_SHOWN = 100
MARKER_FIELD: pa.Field[Any] = pa.field(ROW_MARKER, pa.int32())
"""The column of row markers, as it is read."""


class Header(NamedTuple):
    """The first row of a text file.

    Attributes:
        names: Of its columns, ``__rowMarker__`` too, as they stand there.
        end: The offset behind it; the text's length if no row follows.
    """

    names: tuple[str, ...]
    end: int


def read_text(dialect: Dialect, data: bytes, columns: pa.Schema, path: str) -> pa.Table:
    """Return the rows of a file, see `DelimitedText.read`."""
    text = decoded(dialect, data, path)
    header = read_header(dialect, text, path)
    _refuse_header(header, len(text), path)
    return _typed(read_cells(dialect, text, header, path), columns, path)


def decoded(dialect: Dialect, data: bytes, path: str) -> bytes:
    """Return a file in UTF-8 without a byte order mark, its last row with a row separator.

    Args:
        dialect: Its options.
        data: The whole file, compressed or not.
        path: For errors, here and below.

    Raises:
        UnknownPositionError: It is damaged, or of another encoding.
    """
    encoding = dialect.encoding
    try:
        text = codecs.decode(decompressed(data, path), encoding).removeprefix("\ufeff").encode()
    except UnicodeError as error:
        msg = f"this file is no text in {encoding} ({error}): delete it and publish it again, or mend Encoding"
        raise UnknownPositionError(msg, file=path) from error
    end = dialect.row_separator.encode()
    return text if text.endswith(end) else text + end


def read_header(dialect: Dialect, text: bytes, path: str) -> Header:
    """Return the first row.

    Args:
        dialect: See `decoded`.
        text: From `decoded`.
        path: See `decoded`.

    Raises:
        UnknownPositionError: A cell of it cannot be read.
    """
    grammar = grammar_of(dialect)
    try:
        values, end = grammar.first_row(text)
    except MalformedTextError as error:
        raise _refused(text, grammar, dialect, path) from error
    return Header(tuple(value.decode() for value in values), end)


def read_cells(dialect: Dialect, text: bytes, header: Header, path: str) -> pa.Table:
    """Return all cells below the header as text, NULL where the bare text of NULL stands.

    Args:
        dialect: See `decoded`.
        text: From `decoded`.
        header: From `read_header`; no name stands in it twice, and a row stands below it.
        path: See `decoded`.

    Raises:
        ApplyError: A cell is malformed, or a row has more or less cells than the header; with the row.
    """
    try:
        return _parsed(text, header, dialect)
    except (MalformedTextError, pa.ArrowInvalid) as error:
        raise _refused(text, grammar_of(dialect), dialect, path) from error


def column_values(cells: pa.Table, column: pa.Field[Any], path: str) -> pa.ChunkedArray[Any]:
    """Return the values of one column.

    Args:
        cells: From `read_cells`; a column that it lacks is NULL.
        column: One of the table, or ``__rowMarker__``.
        path: See `decoded`.

    Raises:
        ApplyError: A text stands for no value of its type, or NULL where none may be (then the error has no ``value``);
            with the first such row.
    """
    if column.name not in cells.column_names:
        texts = pa.chunked_array([pa.nulls(cells.num_rows, pa.string())])
    else:
        texts = cells.column(column.name)
    if not column.nullable and texts.null_count:
        row = pc.index(texts.is_null(), pa.scalar(value=True)).as_py()
        msg = f"the column {column.name!r} is NULL, and its IsNullable is false: publish a value, or say true"
        raise ApplyError(msg, file=path, row=row, column=column.name, type=data_type(column))
    try:
        return from_text(texts, column.type)
    except pa.ArrowInvalid as error:
        row = _first_refused(texts, column.type)
        msg = f"this text is no value of the column {column.name!r}: delete the file and publish it again"
        value = texts[row].as_py()
        raise ApplyError(msg, file=path, row=row, column=column.name, value=value, type=data_type(column)) from error


def _refuse_header(header: Header, length: int, path: str) -> None:
    if header.end == length:
        msg = "this text file has no row below its header: delete it and publish one with rows under the same name"
        raise UnknownPositionError(msg, file=path)
    for name, count in Counter(header.names).items():
        if count > 1:
            msg = f"the header has {name!r} {count} times: publish the file again with each name once"
            raise UnknownPositionError(msg, file=path, column=name)


def _parsed(text: bytes, header: Header, dialect: Dialect) -> pa.Table:
    names = list(header.names)
    grammar = grammar_of(dialect, one_column=len(names) == 1)
    rows = grammar.normalised(text, header.end)
    return pcsv.read_csv(
        pa.BufferReader(rows),  # type: ignore[arg-type] # a file of Arrow does as well
        pcsv.ReadOptions(column_names=names, block_size=min(len(rows), _BLOCK_BYTES)),
        pcsv.ParseOptions(
            delimiter=dialect.column_separator,
            quote_char=grammar.quote.decode(),
            double_quote=True,
            escape_char=False,
            newlines_in_values=True,
            ignore_empty_lines=False,
        ),
        pcsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[dialect.null_value],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _typed(table: pa.Table, columns: pa.Schema, path: str) -> pa.Table:
    unknown = [name for name in table.column_names if name != ROW_MARKER and name not in columns.names]
    if unknown:
        msg = f"the column {unknown[0]!r} is not in SchemaDefinition, so it has no type: list it there, or leave it out"
        raise ApplyError(msg, file=path, column=unknown[0])
    fields = [pa.field(f.name, ARROW_TYPES[data_type(f)], nullable=f.nullable) for f in columns]
    if ROW_MARKER in table.column_names:
        fields.append(MARKER_FIELD)
    return pa.table([column_values(table, field, path) for field in fields], schema=pa.schema(fields))


def _first_refused(texts: pa.ChunkedArray[Any], kind: pa.DataType) -> int:
    """Return the first text that stands for no value, by halving."""
    good, bad = 0, len(texts)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            from_text(texts.slice(0, middle), kind)
            good = middle
        except pa.ArrowInvalid:
            bad = middle
    return good


def _refused(text: bytes, grammar: Grammar, dialect: Dialect, path: str) -> OpenMirrorError:
    """Return the error for text that is malformed, or whose rows are not all as wide as the header."""
    (width, *rows), offset = grammar.scan(text)
    whole_rows = rows if offset is None else rows[:-1]
    uneven = next((row for row, cells in enumerate(whole_rows) if cells != width), None)
    if uneven is not None:
        msg = f"this row has {rows[uneven]} cells and the header {width}: delete the file and publish it again"
        return ApplyError(msg, file=path, row=uneven)
    if offset is None:
        return ApplyError("this file cannot be parsed: publish it again, in smaller files", file=path)
    msg = (
        f"a cell cannot be read with separator {dialect.column_separator!r}, rows ending in {dialect.row_separator!r}, "
        f"quote {dialect.quote!r} and escape {dialect.escape!r}: mend FileFormatTypeProperties, or publish the file "
        "again"
    )
    value = text[offset : offset + _SHOWN].decode(errors="replace")
    if not rows:
        return UnknownPositionError(f"in the header {msg}", file=path, value=value)
    column = grammar.first_row(text)[0][rows[-1] - 1].decode() if rows[-1] <= width else None
    return ApplyError(msg, file=path, row=len(rows) - 1, column=column, value=value)
