"""Landing files for the tests of the mirror, written past the writer."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.layout import GENERATION, METADATA, data_file
from openmirror_writer.metadata import Generation, TableMetadata
from openmirror_writer.record import Record
from openmirror_writer.schema import ROW_MARKER
from openmirror_writer.storage import Storage
from openmirror_writer.zone import LandingTable, LandingZone


def schema(**types: pa.DataType) -> pa.Schema:
    """Return nullable columns."""
    return schema_of(types)


def schema_of(types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return nullable columns, of any names."""
    return pa.schema([pa.field(name, kind) for name, kind in types.items()])


COLUMNS = schema(id=pa.int64(), v=pa.string())
Row = tuple[Any, ...]
"""``(marker, id, v)``; marker None in every row of a file: a file without markers."""


class Folder:
    """A table folder that a test fills file by file."""

    def __init__(
        self,
        zone: LandingZone,
        name: str = "orders",
        *,
        schema_name: str | None = None,
        keys: Sequence[str] = ("id",),
        columns: pa.Schema = COLUMNS,
        generation: str | None = "g1",
        upsert: bool = False,
    ) -> None:
        self.storage: Storage = zone.storage
        self.generation = generation
        self.columns = columns
        self.table: LandingTable = zone.table(
            name,
            schema_name=schema_name,
            key_columns=list(keys),
            columns=columns,
            unmarked_rows="upsert" if upsert else "insert",
        )
        self.folder = self.table.folder
        if generation is not None:
            self.put(GENERATION, Generation(generation=generation).to_bytes())
        metadata = TableMetadata(key_columns=tuple(keys), is_upsert_default_row_marker=upsert)
        self.put(METADATA, metadata.to_bytes())

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def put(self, name: str, data: bytes) -> None:
        assert self.storage.create(self.path(name), data) is not None

    def remove(self, name: str) -> None:
        assert self.storage.delete(self.path(name))

    def names(self, place: str = "") -> set[str]:
        return set(self.storage.names(self.path(place) if place else self.folder).files)

    def numbers(self, place: str = "") -> list[int]:
        return sorted(int(n.split(".")[0]) for n in self.names(place) if n.endswith(".parquet"))

    def write(self, number: int, *rows: Row, **record: Any) -> None:
        """Write a file with a record, in the chain unless ``record`` says otherwise."""
        self.put(data_file(number), self.encode(number, *rows, **record))

    def encode(self, number: int, *rows: Row, **record: Any) -> bytes:
        generation = record.pop("generation", self.generation)
        told = {
            "generation": generation,
            "number": number,
            "previous": None if number == 1 else f"{generation}-{number - 1}",
            "batch": f"{generation}-{number}",
            "writer": "w",
            "phase": "following",
            "by": "tests",
        }
        arrays = [pa.array([row[i + 1] for row in rows], f.type) for i, f in enumerate(self.columns)]
        data = pa.RecordBatch.from_arrays(arrays, schema=self.columns)
        marked = any(row[0] is not None for row in rows)
        markers = pa.array([row[0] for row in rows], pa.int32()) if marked else None
        return self.table.format.begin(self.columns, [ChangeBatch(data, markers)]).finish(Record(**{**told, **record}))

    def write_foreign(self, number: int, *rows: Row, marker_type: pa.DataType | None = None) -> None:
        """Write a file as another publisher does: without a record."""
        self.put(data_file(number), foreign_file(self.columns, rows, marker_type or pa.int32()))


def foreign_file(columns: pa.Schema, rows: Sequence[Row], marker_type: pa.DataType) -> bytes:
    table = pa.table({f.name: pa.array([row[i + 1] for row in rows], f.type) for i, f in enumerate(columns)}, columns)
    if any(row[0] is not None for row in rows):
        table = table.append_column(ROW_MARKER, pa.array([row[0] for row in rows], marker_type))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()
