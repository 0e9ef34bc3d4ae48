"""What a data file tells without its rows: Parquet in its footer, text only when it is read whole."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.formats import (
    DelimitedText,
    Footer,
    Parquet,
    columns_of,
    footer_of,
    is_parquet,
    read_rows,
    read_sidecar,
    sha256_of,
    text_of,
)
from openmirror_writer.layout import METADATA
from openmirror_writer.metadata import TableMetadata
from openmirror_writer.record import Record
from openmirror_writer.schema import ROW_MARKER
from openmirror_writer.storage import Content, Steps, reading
from openmirror_writer.zone import FolderState


@dataclass(frozen=True)
class TextTable:
    """How the text files of a table are read.

    Attributes:
        text: Separators, quotes, encoding.
        columns: The data columns that ``SchemaDefinition`` gives types to.
    """

    text: DelimitedText
    columns: pa.Schema


def text_table(metadata: TableMetadata | None, folder: str) -> TextTable | None:
    """Return how the text files of a table are read, as its metadata say; None if they describe no text.

    Args:
        metadata: Of the table; None if it has none.
        folder: Of the table, for errors.

    Raises:
        SchemaRefusedError: The metadata describe no text that can be read.
    """
    file = f"{folder}/{METADATA}"
    text = None if metadata is None else text_of(metadata, file=file)
    if metadata is None or text is None:
        return None
    if metadata.schema_definition is None:
        msg = "delimited text has no types of its own: add SchemaDefinition with the name and DataType of each column"
        raise SchemaRefusedError(msg, file=file)
    return TextTable(text, columns_of(metadata.schema_definition, file=file))


def read_footer(folder: FolderState, number: int, declared: TextTable | None = None) -> Steps[Footer | None]:
    """Read what a data file tells without its rows: of Parquet its end, of text the whole file.

    Args:
        folder: Of the table.
        number: Of the file; it stands in the folder.
        declared: How text is read where the folder has no metadata.

    Returns:
        None if the file is gone, or stands there with another size (list again).

    Raises:
        UnknownPositionError: The file, or its record, cannot be read.
        ApplyError: A row of a text file cannot be read.
        SchemaRefusedError: It is a text file, and the metadata do not tell how to read it.
    """
    path, entry = folder.data_path(number), folder.names.data[number]
    if is_parquet(path):
        return (yield from Parquet().read_footer(path, entry.size))
    content = yield from reading(path)
    if content is None or len(content.data) != entry.size:
        return None
    footer, _ = yield from read_file(folder, number, path, content, declared)
    return footer


def read_file(
    folder: FolderState, number: int, path: str, content: Content, declared: TextTable | None = None
) -> Steps[tuple[Footer, pa.Table]]:
    """Read a whole data file.

    Args:
        folder: Of the table.
        number: Of the file.
        path: Where it was read, below the zone's root: in the folder, or where the service moved it.
        content: Its bytes.
        declared: See `read_footer`.

    Returns:
        What it tells, and all rows, the marker column included where there is one.

    Raises:
        OpenMirrorError: As `read_footer`.
    """
    if is_parquet(path):
        return footer_of(content, path), read_rows(content, path)
    table = text_table(folder.metadata, folder.folder) if folder.metadata else declared
    if table is None:
        msg = (
            "this file is no Parquet, and nothing tells how to read it: add FileFormat and SchemaDefinition to "
            "_metadata.json; where it is not there yet, give format= and columns= to zone.table"
        )
        raise SchemaRefusedError(msg, file=path)
    rows = table.text.read(content.data, table.columns, path)
    sha256 = sha256_of(content.data)
    record = yield from read_sidecar(number, sha256, folder.surroundings)
    return _footer(rows, content.identity, record, sha256), rows


def _footer(rows: pa.Table, identity: str, record: Record | None, sha256: str) -> Footer:
    data = [field for field in rows.schema if field.name != ROW_MARKER]
    marked = ROW_MARKER in rows.column_names
    markers = rows.column(ROW_MARKER) if marked else None
    extremes = None if markers is None else pc.min_max(markers)
    low = None if extremes is None else extremes["min"].as_py()
    return Footer(
        identity=identity,
        rows=rows.num_rows,
        columns=pa.schema(data),
        marked=marked,
        markers=None if extremes is None or low is None else (low, extremes["max"].as_py()),
        null_markers=None if markers is None else markers.null_count,
        marker_type=None if markers is None else markers.type,
        record=record,
        sha256=sha256,
    )
