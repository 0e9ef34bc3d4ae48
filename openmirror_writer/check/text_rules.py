"""Rules of delimited text that ``_metadata.json`` shows. Pure, over the properties as they stand."""

from __future__ import annotations

from collections.abc import Iterator

from openmirror_writer.check.findings import Finding
from openmirror_writer.check.json_text import JsonObject
from openmirror_writer.errors import SchemaRefusedError, shorten
from openmirror_writer.formats.text.columns import ARROW_TYPES
from openmirror_writer.formats.text.dialect import COLUMN_SEPARATORS, ESCAPES, QUOTES, ROW_SEPARATORS, Dialect
from openmirror_writer.schema import ROW_MARKER

_PARQUET = "parquet"
_IN_DIALECT = {
    "RowSeparator": "row_separator",
    "ColumnSeparator": "column_separator",
    "QuoteCharacter": "quote",
    "EscapeCharacter": "escape",
    "NullValue": "null_value",
}
_ALLOWED = {
    "RowSeparator": ("5.3", ROW_SEPARATORS),
    "ColumnSeparator": ("5.4", COLUMN_SEPARATORS),
    "QuoteCharacter": ("5.5", QUOTES),
    "EscapeCharacter": ("5.6", ESCAPES),
}


def is_text(extension: str | None) -> bool:
    """Return whether files with this extension are text; None: there are none."""
    return extension is not None and extension.lower() != _PARQUET


def text_findings(properties: JsonObject, extension: str | None, keys: tuple[str, ...] | None) -> Iterator[Finding]:
    """Yield what is wrong with the properties that describe text; a table of Parquet may have them as well.

    Args:
        properties: Those of ``_metadata.json``.
        extension: That of the table's data files, without the dot; None if there are none.
        keys: The key columns; None if they are not known.
    """
    yield from _format_findings(properties, extension)
    schema = properties.get("SchemaDefinition")
    if schema is not None:
        yield from _schema_findings(schema, keys if is_text(extension) else None)
    elif is_text(extension):
        message = f"the files are {extension}, and no SchemaDefinition tells the types of their columns"
        yield Finding("error", "2.5", message, "add it: Name, DataType and IsNullable of each column")
    options = properties.get("FileFormatTypeProperties")
    if isinstance(options, JsonObject):
        yield from _option_findings(options)
    elif options is not None:
        yield Finding("error", "2.8", f"FileFormatTypeProperties is {shorten(options)}", "write an object of options")


def condition_findings(properties: JsonObject, columns: tuple[str, ...]) -> Iterator[Finding]:
    """Yield what is wrong with ``ConditionalUpdateColumn``.

    Args:
        properties: Those of ``_metadata.json``.
        columns: The columns of the table; empty: not known.
    """
    condition = properties.get("ConditionalUpdateColumn")
    if condition is None:
        return
    if not isinstance(condition, str):
        yield Finding("error", "2.4", f"ConditionalUpdateColumn is {shorten(condition)}", "write the name of a column")
    elif columns and condition not in columns:
        message = f"ConditionalUpdateColumn names {condition!r}, which is none of the columns {list(columns)}"
        yield Finding("error", "2.4", message, "name a column, or leave it out")


def schema_columns(properties: JsonObject) -> tuple[str, ...]:
    """Return the column names of ``SchemaDefinition``, those that can be read."""
    schema = properties.get("SchemaDefinition")
    columns = schema.get("Columns") if isinstance(schema, JsonObject) else None
    listed = [column.get("Name") for column in columns or [] if isinstance(column, JsonObject)]
    return tuple(name for name in listed if isinstance(name, str))


def _format_findings(properties: JsonObject, extension: str | None) -> Iterator[Finding]:
    declared, of_files = properties.get("FileFormat"), properties.get("FileExtension")
    standing = None if extension is None else extension.lower()
    if declared is not None and declared not in ("CSV", "DelimitedText"):
        yield Finding("error", "2.6", f"FileFormat is {shorten(declared)}", 'write "CSV" or "DelimitedText"')
    elif declared == "DelimitedText" and of_files is None:
        yield Finding("error", "2.7", "FileFormat is DelimitedText without FileExtension", 'add it, such as "tsv"')
    elif declared is not None and standing == _PARQUET:
        yield Finding("error", "2.6", f"FileFormat is {declared}, and the files are Parquet", "leave it out")
    elif declared != "DelimitedText" and standing not in {None, "csv", _PARQUET}:
        message = f"FileFormat is {declared or 'absent, which means CSV'}, and the files are {extension}"
        yield Finding("error", "2.6", message, 'write "DelimitedText" with FileExtension')
    elif of_files is not None:
        yield from _extension_findings(of_files, standing)


def _extension_findings(declared: object, standing: str | None) -> Iterator[Finding]:
    if not isinstance(declared, str) or not declared:
        yield Finding("error", "2.7", f"FileExtension is {shorten(declared)}", 'write text, such as "tsv"')
    elif declared.startswith("."):
        message = f"FileExtension is {declared!r}; the documents write it without the dot"
        yield Finding("warning", "2.7", message, f'write "{declared[1:]}"')
    elif standing is not None and declared.lower() != standing:
        message = f"FileExtension is {declared!r}, and the files are {standing}"
        yield Finding("error", "2.7", message, f'write "{standing}"')


def _schema_findings(schema: object, keys: tuple[str, ...] | None) -> Iterator[Finding]:
    columns = schema.get("Columns") if isinstance(schema, JsonObject) else None
    if not isinstance(columns, list) or not columns:
        yield Finding("error", "2.5", "SchemaDefinition has no Columns", "list Name, DataType and IsNullable of each")
        return
    seen: set[str] = set()
    for index, column in enumerate(columns):
        name = column.get("Name") if isinstance(column, JsonObject) else None
        if not isinstance(name, str) or not name:
            yield Finding("error", "2.5", f"column {index} of SchemaDefinition has no Name", "name it")
        elif name.casefold() in seen:
            yield Finding("error", "2.5", f"SchemaDefinition lists {name!r} twice, casing apart", "delete one")
        elif name == ROW_MARKER:
            yield Finding("error", "2.17", f"SchemaDefinition lists {ROW_MARKER}", "take it out")
        else:
            yield from _column_findings(name, column)
        seen.add(str(name).casefold())
    for key in keys or ():
        if key.casefold() not in seen:
            message = f"the key column {key!r} is not in SchemaDefinition"
            yield Finding("error", "2.1", message, "list it there, or mend keyColumns")


def _column_findings(name: str, column: JsonObject) -> Iterator[Finding]:
    kind, nullable = column.get("DataType"), column.get("IsNullable")
    if isinstance(kind, str) and kind.lower().startswith(("decimal", "numeric")):
        message = f"the column {name!r} is {kind}, and text has no decimal"
        yield Finding("error", "5.10", message, "publish Parquet, or declare String or Double")
    elif kind not in ARROW_TYPES:
        message = f"the DataType of the column {name!r} is {shorten(kind)}"
        yield Finding("error", "5.9", message, f"write one of {', '.join(ARROW_TYPES)}")
    if nullable is not None and not isinstance(nullable, bool):
        message = f"IsNullable of the column {name!r} is {shorten(nullable)}"
        yield Finding("error", "2.16", message, "write true or false, without quotes")


def _option_findings(options: JsonObject) -> Iterator[Finding]:
    found = [*_single_option_findings(options)]
    yield from found
    if not found:
        yield from _joint_option_findings(options)


def _single_option_findings(options: JsonObject) -> Iterator[Finding]:
    header = options.get("FirstRowAsHeader")
    if header is not None and header is not True:
        message = f"FirstRowAsHeader is {shorten(header)}; the first row must be the header"
        yield Finding("error", "5.2", message, "write true, and a header in each file")
    for name, (rule, allowed) in _ALLOWED.items():
        value = options.get(name)
        if value is not None and value not in allowed:
            message = f"{name} is {shorten(value)}"
            yield Finding("error", rule, message, f"use one of {', '.join(map(repr, allowed))}")
    null = options.get("NullValue")
    if null is not None and not isinstance(null, str):
        yield Finding("error", "5.7", f"NullValue is {shorten(null)}", "write it as text")
    encoding = options.get("Encoding")
    if encoding is not None and (not isinstance(encoding, str) or _refusal(encoding=encoding) is not None):
        yield Finding("error", "5.8", f"Encoding is {shorten(encoding)}", 'write the name of one, such as "UTF-8"')


def _joint_option_findings(options: JsonObject) -> Iterator[Finding]:
    """Yield what makes options, each of them legal, ambiguous together."""
    given = {option: options.get(name) for name, option in _IN_DIALECT.items() if options.get(name) is not None}
    encoding = options.get("Encoding")
    if refusal := _refusal(**given):
        yield Finding("error", "5.7", f"NullValue cannot be told from other text: {refusal}", "write another text")
    elif encoding is not None and (refusal := _refusal(**given, encoding=encoding)):
        yield Finding("error", "5.8", f"Encoding does not fit the other options: {refusal}", 'write "UTF-8"')


def _refusal(**options: str) -> str | None:
    """Return why text with these options cannot be read; None if it can."""
    try:
        Dialect(**options)
    except SchemaRefusedError as error:
        return error.message
    return None
