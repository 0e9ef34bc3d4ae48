"""File formats of the landing zone."""

from openmirror_writer.formats.parquet import Encoding, Footer, Parquet, footer_of, read_rows
from openmirror_writer.formats.text import DelimitedText

__all__ = ["DelimitedText", "Encoding", "Footer", "Parquet", "footer_of", "read_rows"]
