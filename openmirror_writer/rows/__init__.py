"""Dicts and Arrow to batches, strictly: nothing is converted in silence, and the bad cell is located."""

from openmirror_writer.rows.arrow import check_batch, is_arrow, marked_stream
from openmirror_writer.rows.encoding import encode, encode_keys, peek_columns
from openmirror_writer.rows.needs import CHUNK_ROWS, Needs

__all__ = [
    "CHUNK_ROWS",
    "Needs",
    "check_batch",
    "encode",
    "encode_keys",
    "is_arrow",
    "marked_stream",
    "peek_columns",
]
