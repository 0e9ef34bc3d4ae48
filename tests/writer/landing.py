"""What tests of the writer share: what stands in a table's folder, sources and storages that break."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import StorageError
from openmirror_writer.formats import footer_of, read_rows
from openmirror_writer.layout import MOVED, PROCESSED, data_file, data_number
from openmirror_writer.record import Record, parse_record
from openmirror_writer.replay import replay
from openmirror_writer.storage import Content, Storage
from openmirror_writer.writer import Writer
from openmirror_writer.zone import LandingTable, LandingZone
from tests.writer.feeder import Tapped

Landed = tuple[int | None, ...]


def names(table: LandingTable) -> list[str]:
    return sorted(table.zone.storage.names(table.folder).files)


def identities(table: LandingTable) -> dict[str, str]:
    """Name to identity: equal before and after something that wrote nothing."""
    found = {name: entry.identity for name, entry in table.zone.storage.names(table.folder).files.items()}
    root = table.zone.storage.names("")
    return found | {f"/{name}": entry.identity for name, entry in root.files.items()}


def content(table: LandingTable, name: str) -> Content:
    found = table.zone.storage.read(table.path(name))
    assert found is not None, name
    return found


def record(table: LandingTable, number: int) -> Record:
    found = footer_of(content(table, data_file(number)), "").record
    assert found is not None
    return found


def advances(table: LandingTable) -> list[Record]:
    return [parse_record(content(table, n).data, file=n) for n in names(table) if ".advance-" in n]


def landed(table: LandingTable, number: int) -> list[tuple[Any, ...]]:
    """The rows of one file as (marker, values ...); the marker is None in a marker-free file."""
    rows = read_rows(content(table, data_file(number)), "").to_pylist()
    return [(row.pop("__rowMarker__", None), *row.values()) for row in rows]


def all_landed(table: LandingTable) -> list[list[tuple[Any, ...]]]:
    """The rows of all files in the folder, in their order."""
    return [landed(table, number) for number in sorted(filter(None, map(data_number, names(table))))]


def mirrored(zone: LandingZone, label: str = "orders") -> list[dict[str, Any]]:
    """What the mirror's table holds, in a stable order."""
    table = replay(zone).get(label)
    return [] if table is None else sorted(table.to_pylist(), key=lambda row: json.dumps(row, default=str))


def move_processed(table: LandingTable, numbers: Iterable[int], folder: str = PROCESSED) -> None:
    """What the service does with files that it has applied."""
    assert folder in MOVED
    for number in numbers:
        name = data_file(number)
        assert table.zone.storage.rename(table.path(name), table.path(f"{folder}/{name}")), name


def changes(*rows: tuple[int, int, str | None], position: Any = None) -> ChangeBatch:
    """A batch of (marker, id, v)."""
    batch = pa.record_batch(
        {"id": pa.array([r[1] for r in rows], pa.int64()), "v": pa.array([r[2] for r in rows], pa.string())}
    )
    return ChangeBatch(batch, pa.array([r[0] for r in rows], pa.int32()), position)


def failing(*rows: dict[str, Any]) -> pa.RecordBatchReader:
    """Arrow, one batch a row, and then the source breaks."""

    def batches() -> Iterator[pa.RecordBatch]:
        for row in rows:
            yield pa.RecordBatch.from_pylist([row])
        raise ValueError("the source broke")

    return pa.RecordBatchReader.from_batches(pa.RecordBatch.from_pylist([rows[0]]).schema, batches())


def tapped(zone: LandingZone, **taps: Callable[[str, str], None]) -> LandingTable:
    storage: Storage = Tapped(zone.storage, **taps)
    return LandingZone(storage).table("orders", key_columns=["id"], columns={"id": "int64", "v": "string"})


def refuse_file(number: int) -> Callable[[str, str], None]:
    def refuse(operation: str, path: str) -> None:
        if operation == "create" and path.endswith(f"{number:020d}.parquet"):
            raise StorageError("forbidden")

    return refuse


def inside(writer: Writer, *calls: Callable[[], object]) -> None:
    """Make some calls inside ``with``."""
    with writer:
        for call in calls:
            call()


def until(is_so: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)
