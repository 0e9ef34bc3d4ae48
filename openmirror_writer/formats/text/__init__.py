"""Delimited text: landing files in CSV, TSV and their kin."""

from openmirror_writer.formats.text.columns import columns_of, definition_of
from openmirror_writer.formats.text.delimited import DelimitedText
from openmirror_writer.formats.text.properties import text_of, with_text

__all__ = ["DelimitedText", "columns_of", "definition_of", "text_of", "with_text"]
