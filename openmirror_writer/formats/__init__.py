"""File formats of the landing zone."""

from openmirror_writer.formats.parquet import (
    Encoding,
    Footer,
    Parquet,
    footer_of,
    is_parquet,
    marker_statistics,
    null_count,
    read_metadata,
    read_rows,
    read_tail,
)
from openmirror_writer.formats.records import (
    EncodedFile,
    FileRecord,
    Surroundings,
    read_record,
    read_sidecar,
    sha256_of,
    sidecar_of,
)
from openmirror_writer.formats.text import DelimitedText, columns_of, definition_of, text_of, with_text

__all__ = [
    "DelimitedText",
    "EncodedFile",
    "Encoding",
    "FileRecord",
    "Footer",
    "Parquet",
    "Surroundings",
    "columns_of",
    "definition_of",
    "footer_of",
    "is_parquet",
    "marker_statistics",
    "null_count",
    "read_metadata",
    "read_record",
    "read_rows",
    "read_sidecar",
    "read_tail",
    "sha256_of",
    "sidecar_of",
    "text_of",
    "with_text",
]
