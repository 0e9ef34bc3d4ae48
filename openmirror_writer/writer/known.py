"""The columns of a table as far as its writer knows them, and what its rows need therefore."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.rows import Needs
from openmirror_writer.schema import Columns, check_keys, declared_columns
from openmirror_writer.writer.calls import Rows, delete_rows, full_rows, inferred_columns
from openmirror_writer.writer.drift import FileColumns, follow
from openmirror_writer.writer.file_format import as_read_back, refuse_other_text
from openmirror_writer.zone import LandingTable


class KnownColumns:
    """What one writer knows of its table's columns; they change between two files only.

    Attributes:
        current: The columns of the next file; None while nothing told them.
    """

    def __init__(self, current: FileColumns | None, keys: tuple[str, ...], table: LandingTable) -> None:
        """Begin with what the folder and the declaration say.

        Args:
            current: See the class.
            keys: The key columns.
            table: The table.
        """
        self.current = current
        self._keys = keys
        self._table = table

    @property
    def schema(self) -> pa.Schema | None:
        """All columns of the next file; None while nothing told them."""
        return None if self.current is None else self.current.schema

    def full_rows(self) -> Needs:
        """Return what rows need that bring every column of the source."""
        return full_rows(self._now.schema, self._keys, self._table.label, self._now.left_out)

    def delete_rows(self) -> Needs:
        """Return what rows of a delete need."""
        return delete_rows(self._now.schema, self._keys, self._table.label)

    @contextmanager
    def told_by(self, rows: Rows, is_new: Callable[[], bool]) -> Iterator[Rows]:
        """Infer the columns from the first rows, if nothing told them; forget them if none of the call was taken.

        Args:
            rows: Of a call.
            is_new: Asked when the call failed: whether no row was ever taken.

        Yields:
            Rows to go on with in place of ``rows``.

        Raises:
            OpenMirrorError: See `inferred_columns`.
        """
        if self.current is not None:
            yield rows
            return
        schema, source = inferred_columns(rows, self._keys, self._table)
        self.current = None if schema is None else FileColumns(schema)
        try:
            yield source
        except BaseException:
            if is_new():
                self.current = None
            raise

    def changed(self, columns: Columns, *, is_new: bool) -> FileColumns:
        """Return what the columns become when the source has these; nothing is changed yet.

        Args:
            columns: See `declared_columns`.
            is_new: Whether no row was ever taken: then they may be any.

        Raises:
            SchemaRefusedError: They cannot be mirrored, lack a key column, or are no change that the mirror follows
                (see `follow`).
        """
        try:
            declared = declared_columns(columns)
            self._table.format.check_columns(declared)
        except SchemaRefusedError as error:
            error.table = self._table.label
            raise
        if is_new or self.current is None:
            check_keys(self._keys, declared, table=self._table.label)
            return FileColumns(declared)
        if not self._table.format.carries_record:
            refuse_other_text(self._table, declared, as_read_back(self.current.schema, self._table), self._table.folder)
            return FileColumns(declared)
        return follow(self.current.schema, declared, self._keys, table=self._table.label)

    @property
    def _now(self) -> FileColumns:
        return self.current or FileColumns(pa.schema([]))
