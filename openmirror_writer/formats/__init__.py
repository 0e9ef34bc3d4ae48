"""File formats of the landing zone."""

from openmirror_writer.formats.parquet import Footer, Parquet, footer_of, read_rows

__all__ = ["Footer", "Parquet", "footer_of", "read_rows"]
