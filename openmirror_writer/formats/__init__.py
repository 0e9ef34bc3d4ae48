"""File formats of the landing zone."""

from openmirror_writer.formats.parquet import Encoding, Footer, Parquet, footer_of, read_rows

__all__ = ["Encoding", "Footer", "Parquet", "footer_of", "read_rows"]
