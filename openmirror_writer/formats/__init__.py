"""File formats of the landing zone."""

from openmirror_writer.formats.parquet import (
    Encoding,
    Footer,
    Parquet,
    footer_of,
    marker_statistics,
    null_count,
    read_metadata,
    read_rows,
    read_tail,
)

__all__ = [
    "Encoding",
    "Footer",
    "Parquet",
    "footer_of",
    "marker_statistics",
    "null_count",
    "read_metadata",
    "read_rows",
    "read_tail",
]
