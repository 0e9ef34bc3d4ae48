"""The delimited text format of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import SchemaRefusedError, shorten
from openmirror_writer.formats.text.cells import Rows, refuse_unwritable
from openmirror_writer.formats.text.columns import data_type
from openmirror_writer.formats.text.compression import TextCompression, check_compression, compressed
from openmirror_writer.formats.text.dialect import Dialect
from openmirror_writer.formats.text.reader import read_text
from openmirror_writer.formats.text.writer import encode_rows, markers_of
from openmirror_writer.layout import data_file, data_number
from openmirror_writer.record import Record

CSV = "csv"
"""The extension that ``FileFormat`` CSV has."""


@dataclass(frozen=True)
class EncodedText:
    """A file whose rows are encoded.

    Attributes:
        data: Its bytes.
    """

    data: bytes

    def finish(self, record: Record) -> bytes:  # noqa: ARG002 - it stands beside the file
        """Return the file's bytes."""
        return self.data


@dataclass(frozen=True)
class DelimitedText(Dialect):
    """The delimited text format of a table; bare it is CSV as the service expects it.

    A file has a header, then its rows, each with ``__rowMarker__`` as its last cell. See `Dialect` for the options that
    are not listed here, `openmirror_writer.formats.text.columns` for how values are written.

    Attributes:
        extension: Of its files' names, letters and digits without a dot; ``csv`` by default. Any other one makes the
            table's ``FileFormat`` DelimitedText.
        compression: ``none`` (default), ``gzip`` or ``zstd``. The extension stays: how the service expects compressed
            text to be named is not documented, a reader tells by the first bytes.
        carries_record: False: a file's record stands beside the file.
        can_be_empty: False: the service stops a table at a text file without rows.
    """

    extension: str = CSV
    compression: TextCompression = "none"

    carries_record = False
    can_be_empty = False

    def __post_init__(self) -> None:
        """Refuse options that the service does not read, and such as could not be read back.

        Raises:
            SchemaRefusedError: As said.
        """
        super().__post_init__()
        extension: object = self.extension
        if not isinstance(extension, str) or data_number(data_file(1, extension)) is None or extension == "parquet":
            msg = (
                f"extension={shorten(extension)} must be letters and digits without a dot, such as 'tsv', not 'parquet'"
            )
            raise SchemaRefusedError(msg)
        check_compression(self.compression)

    def check_columns(self, columns: pa.Schema) -> None:
        """Refuse columns that ``SchemaDefinition`` has no type for, and names that these options cannot write.

        Args:
            columns: In the types of `openmirror_writer.schema`.

        Raises:
            SchemaRefusedError: Decimals, uint64, or such a name; with the ways out.
        """
        for column in columns:
            data_type(column)
        self.header(columns.names)

    def check_rows(
        self, batch: ChangeBatch, *, table: str | None = None, keys: Sequence[str] = (), first_row: int = 0
    ) -> None:
        """Refuse rows that `encode` would refuse; for the moment when they are accepted, long before they are encoded.

        Args:
            batch: Of columns that passed `check_columns`.
            table: For the error.
            keys: The key columns, for the error.
            first_row: What the first row counts as in the error.

        Raises:
            InvalidRowError: A value cannot be written as it is: NaN or an infinity, a year outside of 0001 to 9999, a
                character that the encoding lacks; without a quote the text of NULL; without an escape a quote, or
                without both a separator or a newline.
        """
        refuse_unwritable(self, Rows(batch.rows, markers_of(batch), table, keys, first_row))

    def encode(
        self, columns: pa.Schema, batches: Sequence[ChangeBatch], *, table: str | None = None, keys: Sequence[str] = ()
    ) -> bytes:
        """Return a whole file.

        Args:
            columns: The table's columns; every batch has exactly these.
            batches: One row at least. Text never goes without markers: rows without them get 0.
            table: For errors.
            keys: The key columns, for errors.

        Returns:
            The file's bytes: the same rows give the same bytes.

        Raises:
            SchemaRefusedError: As `check_columns`; or the file would begin as a compressed one does.
            InvalidRowError: As `check_rows`, ``row`` counted over all batches; or there is no row.
        """
        self.check_columns(columns)
        return compressed(encode_rows(self, columns, batches, table=table, keys=keys), self.compression)

    def begin(self, columns: pa.Schema, batches: Sequence[ChangeBatch]) -> EncodedText:
        """Encode the rows of a file; see `encode`."""
        return EncodedText(self.encode(columns, batches))

    def read(self, data: bytes, columns: pa.Schema, path: str) -> pa.Table:
        """Return the rows of a file.

        Columns are found by their names in the header, in any order. Those that the header lacks are NULL. A lacking
        row separator behind the last row is forgiven.

        Args:
            data: The whole file, compressed or not, whatever ``compression`` says.
            columns: Of the table, as `columns_of` gives them; others are read as the type of their ``DataType``.
            path: Below the zone's root, for errors.

        Returns:
            The columns in this order; behind them ``__rowMarker__`` (int32) if the header has it.

        Raises:
            UnknownPositionError: The file is damaged, of another encoding, has no header that can be read, a name
                twice, or no row.
            ApplyError: A cell is malformed or no value of its column's type, a row has more or less cells than the
                header, a column that is not nullable has a NULL or is lacking, or a column is not among ``columns``.
        """
        return read_text(self, data, columns, path)
