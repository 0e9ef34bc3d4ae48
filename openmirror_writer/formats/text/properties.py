"""Delimited text in ``_metadata.json``: from the options to the properties, and back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.formats.text.columns import definition_of
from openmirror_writer.formats.text.delimited import CSV, DelimitedText
from openmirror_writer.metadata import FileFormatTypeProperties, TableMetadata

_CSV_FORMAT = "CSV"
_OTHER_TEXT = "DelimitedText"


def with_text(metadata: TableMetadata, text: DelimitedText, columns: pa.Schema) -> TableMetadata:
    """Return a table's metadata with all that describes its text files; the compression has no property.

    Args:
        metadata: What it says besides; properties that we do not know are kept, but a ``SchemaDefinition`` that stands
            there is replaced.
        text: The format of the files.
        columns: The table's columns.

    Raises:
        SchemaRefusedError: As `DelimitedText.check_columns`.
    """
    text.check_columns(columns)
    is_csv = text.extension == CSV
    options = {
        "first_row_as_header": True,
        "row_separator": text.row_separator,
        "column_separator": text.column_separator,
        "quote_character": text.quote,
        "escape_character": text.escape,
        "null_value": text.null_value,
        "encoding": text.encoding,
    }
    standing = metadata.file_format_type_properties or FileFormatTypeProperties()
    return metadata.model_copy(
        update={
            "schema_definition": definition_of(columns),
            "file_format": _CSV_FORMAT if is_csv else _OTHER_TEXT,
            "file_extension": None if is_csv else text.extension,
            "file_format_type_properties": standing.model_copy(update=options),
        }
    )


def text_of(metadata: TableMetadata, *, file: str) -> DelimitedText | None:
    """Return the text format that a table's metadata describe; properties that are absent have their defaults.

    Args:
        metadata: Of a table.
        file: Path of the metadata, for errors.

    Returns:
        None if neither ``FileFormat`` nor ``SchemaDefinition`` is there, or if it is ``Parquet``. With a
        ``SchemaDefinition`` alone it is CSV, as documented; yet a Parquet table may carry one: the extension of the
        files tells. ``compression`` is ``none``: only the first bytes of a file tell it.

    Raises:
        SchemaRefusedError: ``FileFormat`` is unknown, ``DelimitedText`` has no ``FileExtension``, or an option is none
            that the service reads.
    """
    kind = metadata.file_format or (_CSV_FORMAT if metadata.schema_definition else "Parquet")
    if kind == "Parquet":
        return None
    extension = CSV
    if kind == _OTHER_TEXT:
        extension = (metadata.file_extension or "").removeprefix(".")
        if not extension:
            msg = "FileFormat is DelimitedText, and there is no FileExtension; add it, such as 'tsv'"
            raise SchemaRefusedError(msg, file=file)
    elif kind != _CSV_FORMAT:
        msg = f"the FileFormat {kind!r} is not known; use 'CSV', or 'DelimitedText' with a FileExtension"
        raise SchemaRefusedError(msg, file=file)
    given = metadata.file_format_type_properties or FileFormatTypeProperties()
    options: dict[str, Any] = {
        "row_separator": given.row_separator,
        "column_separator": given.column_separator,
        "quote": given.quote_character,
        "escape": given.escape_character,
        "null_value": given.null_value,
        "encoding": given.encoding,
    }
    try:
        return DelimitedText(
            extension=extension, **{name: value for name, value in options.items() if value is not None}
        )
    except SchemaRefusedError as error:
        error.file = file
        raise
