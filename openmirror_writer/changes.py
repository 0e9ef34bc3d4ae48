"""The narrow waist: what adapters hand over and everything below them carries."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.errors import InvalidRowError
from openmirror_writer.position import Position
from openmirror_writer.schema import ROW_MARKER


class RowMarker(IntEnum):
    """The value of ``__rowMarker__``: what a landing row does to the rows of its key."""

    INSERT = 0
    """Adds a row; never checked for duplicates."""
    UPDATE = 1
    """Replaces the rows of its key; inserts if there is none."""
    DELETE = 2
    """Removes the rows of its key; only key columns are needed."""
    UPSERT = 4
    """As `UPDATE`."""


@dataclass(frozen=True)
class Change:
    """One change of one row, as an adapter makes it; it lives only at the adapter's edge.

    Attributes:
        marker: What to do.
        row: Column to value; a delete needs the key columns only.
        old_key: Key column to value before the change, where the key itself changed; else None.
    """

    marker: RowMarker
    row: dict[str, Any]
    old_key: dict[str, Any] | None = None


@dataclass(frozen=True)
class ChangeBatch:
    """Rows with their markers, in order.

    Attributes:
        rows: The data columns, without ``__rowMarker__``.
        markers: int32, one per row, values of `RowMarker`, no nulls; None for the marker-free rows of an initial load.
        position: Every row of the source up to this position is in this batch or an earlier one; None = not told.
    """

    rows: pa.RecordBatch
    markers: pa.Int32Array | None = None
    position: Position = None

    def __post_init__(self) -> None:
        """Refuse markers that do not fit the rows.

        Raises:
            InvalidRowError: The rows are no RecordBatch, the markers no array of int32, their number differs, one of
                them is NULL, or none of 0, 1, 2 and 4.
        """
        rows: object = self.rows
        if not isinstance(rows, pa.RecordBatch):
            msg = f"rows must be a pyarrow.RecordBatch, got {type(rows).__name__}; of a table take to_batches()"
            raise InvalidRowError(msg)
        if self.markers is None:
            return
        markers: object = self.markers
        if not isinstance(markers, pa.Int32Array):
            kind = markers.type if isinstance(markers, pa.Array) else type(markers).__name__
            msg = f"markers must be one pyarrow array of int32, got {kind}: cast or combine them"
            raise InvalidRowError(msg)
        if len(markers) != rows.num_rows:
            msg = f"markers must be one per row, got {len(markers)} for {rows.num_rows} rows"
            raise InvalidRowError(msg)
        for row, marker in enumerate(self.markers.to_pylist() if _has_odd_marker(self.markers) else ()):
            if marker not in _MARKERS:
                msg = f"{marker!r} is no row marker; use 0 (insert), 1 (update), 2 (delete) or 4 (upsert)"
                raise InvalidRowError(msg, row=row, column=ROW_MARKER, value=marker, type="int32")

    @property
    def num_rows(self) -> int:
        """How many rows."""
        return self.rows.num_rows

    @property
    def nbytes(self) -> int:
        """Bytes that the Arrow columns take in memory."""
        return self.rows.nbytes + (0 if self.markers is None else self.markers.nbytes)

    def slice(self, offset: int, length: int | None = None) -> ChangeBatch:
        """Return some of the rows without copying; the position stays with the whole.

        Args:
            offset: The first row, counted from 0.
            length: How many rows; None: to the end.
        """
        markers = None if self.markers is None else self.markers.slice(offset, length)
        return ChangeBatch(self.rows.slice(offset, length), markers)


_MARKERS = frozenset(int(marker) for marker in RowMarker)


def _has_odd_marker(markers: pa.Int32Array) -> bool:
    return bool(markers.null_count) or not set(pc.unique(markers).to_pylist()) <= _MARKERS
