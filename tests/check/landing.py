"""Landing zones that tests of `check` break: one that our writer made, and one of another publisher."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from openmirror_writer import LandingZone, Writer
from openmirror_writer.changes import ChangeBatch
from openmirror_writer.formats import DelimitedText, Parquet, footer_of, sha256_of, sidecar_of
from openmirror_writer.layout import METADATA, PROCESSED, data_file, sort_names
from openmirror_writer.record import Record, new_id, parse_record
from openmirror_writer.schema import ROW_MARKER, declared_columns
from openmirror_writer.storage.memory import MemoryStorage
from openmirror_writer.zone import LandingTable

COLUMNS = declared_columns({"id": "int64", "v": "string"})


class Landing:
    """A zone in memory, and what can be done to it by hand."""

    extension = "parquet"

    def __init__(self) -> None:
        self.zone = LandingZone(f"memory://{uuid4().hex}")
        self.storage = self.zone.storage

    def put(self, path: str, data: bytes | str | Mapping[str, Any]) -> None:
        """Put a file, in the place of what stands there."""
        text = json.dumps(data) if isinstance(data, Mapping) else data
        self.storage.delete(path)
        assert self.storage.create(path, text.encode() if isinstance(text, str) else text) is not None

    def get(self, path: str) -> bytes:
        content = self.storage.read(path)
        assert content is not None, path
        return content.data

    def delete(self, path: str) -> None:
        assert self.storage.delete(path)

    def move(self, source: str, target: str) -> None:
        assert self.storage.rename(source, target)

    def copy(self, source: str, target: str) -> None:
        """Copy the files of a folder."""
        for name in self.storage.names(source).files:
            self.put(f"{target}/{name}", self.get(f"{source}/{name}"))

    def age(self, path: str, by: timedelta) -> None:
        """Make a file older."""
        self._stored(path).modified -= by

    def same_time(self, *paths: str) -> None:
        for path in paths:
            self._stored(path).modified = self._stored(paths[0]).modified

    def _stored(self, path: str) -> Any:
        assert isinstance(self.storage, MemoryStorage)
        return self.storage._fs.store[self.storage._full(path)]

    def process(self, number: int, folder: str = "orders") -> None:
        """Move a file away, as the service does."""
        name = data_file(number, self.extension)
        self.move(f"{folder}/{name}", f"{folder}/{PROCESSED}/{name}")


class OurZone(Landing):
    """The table ``orders``, written by our writer: a load, an upsert, a delete, an insert."""

    def __init__(self) -> None:
        super().__init__()
        self.table: LandingTable = self.zone.table("orders", key_columns=["id"], columns=COLUMNS)
        publish_four(self.table)

    def record(self, number: int) -> Record:
        path = self.table.path(data_file(number))
        record = footer_of(self.storage.read(path), path).record  # type: ignore[arg-type]
        assert record is not None
        return record

    def file(self, base: int, columns: Mapping[str, pa.Array[Any]] | None = None, **changes: Any) -> bytes:
        """A file of one row with the record of file ``base``, another batch and what else is changed."""
        record = self.record(base).model_copy(update={"batch": new_id(), **changes})
        arrays = {"id": pa.array([9], pa.int64()), "v": pa.array(["z"]), **(columns or {})}
        batch = pa.record_batch(arrays)
        return Parquet().encode(batch.schema, [ChangeBatch(batch, pa.array([4], pa.int32()))], record)


class OurText(Landing):
    """The same as CSV."""

    extension = "csv"

    def __init__(self) -> None:
        super().__init__()
        self.table: LandingTable = self.zone.table(
            "orders", key_columns=["id"], columns=COLUMNS, format=DelimitedText()
        )
        publish_four(self.table)

    def sidecar(self, number: int) -> str:
        """The path of the record of a file that the writer has published."""
        names = sort_names(self.storage.names("orders").files).sidecars.items()
        (name,) = [name for (n, _), some in names if n == number for name in some]
        return self.table.path(name)

    def publish(self, number: int, base: int, row: str = "9,z,4", **changes: Any) -> str:
        """Put a file of one row, and its record: that of file ``base``, and what is changed. Returns its path."""
        standing = parse_record(self.get(self.sidecar(base)), file="")
        record = standing.model_copy(update={"number": number, "batch": new_id(), **changes})
        content = csv(row)
        name, data = sidecar_of(record, sha256_of(content))
        self.put(self.table.path(name), data)
        path = self.table.path(data_file(number, "csv"))
        self.put(path, content)
        return path


def publish_four(table: LandingTable) -> None:
    writer = Writer(table)
    writer.initial_load([{"id": 1, "v": "a"}, {"id": 2, "v": None}], position=1)
    writer.upsert([{"id": 3, "v": "c"}], position=2)
    writer.delete([{"id": 1}], position=3)
    writer.insert([{"id": 4, "v": "d"}], position=4)


class ForeignZone(Landing):
    """The table ``orders`` of another publisher: three files with markers."""

    def __init__(self, metadata: Mapping[str, Any] | None = None, files: int = 3) -> None:
        super().__init__()
        self.put(f"orders/{METADATA}", {"keyColumns": ["id"]} if metadata is None else metadata)
        for number in range(1, files + 1):
            self.rows(number)

    def metadata(self, **properties: Any) -> None:
        """Replace ``_metadata.json``; the key stays unless it is given."""
        self.put(f"orders/{METADATA}", {"keyColumns": ["id"], **properties})

    def rows(self, number: int, table: pa.Table | None = None, **options: Any) -> None:
        self.put(f"orders/{data_file(number)}", parquet(rows() if table is None else table, **options))


def csv(*rows_below: str, header: str = f"id,v,{ROW_MARKER}") -> bytes:
    return "".join(f"{row}\r\n" for row in (header, *rows_below)).encode()


def rows(
    columns: Mapping[str, Any] | None = None,
    markers: Sequence[Any] | None = (4, 2),
    marker_type: pa.DataType = pa.int32(),  # noqa: B008 - an immutable value
    required: Sequence[str] = (),
) -> pa.Table:
    """Two rows; columns may be replaced, added, or left out with None."""
    arrays: dict[str, Any] = {"id": pa.array([1, 2], pa.int64()), "v": pa.array(["a", "b"])} | dict(columns or {})
    if markers is not None:
        arrays[ROW_MARKER] = pa.array(markers, marker_type)
    kept = {name: array for name, array in arrays.items() if array is not None}
    fields = [pa.field(name, array.type, nullable=name not in required) for name, array in kept.items()]
    return pa.table(list(kept.values()), schema=pa.schema(fields))


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()
