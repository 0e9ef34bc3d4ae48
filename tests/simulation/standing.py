"""The data files of the simulated zone, with their records and rows, whatever their format."""

from __future__ import annotations

from dataclasses import dataclass

from openmirror_writer.formats import Parquet, footer_of, read_rows, sha256_of
from openmirror_writer.layout import data_number, sort_names
from openmirror_writer.record import Record, parse_record
from openmirror_writer.storage import Content
from openmirror_writer.zone import LandingTable
from tests.simulation.source import COLUMNS, Row
from tests.simulation.store import SimStore, Stored


@dataclass(frozen=True)
class StandingFile:
    """One data file.

    Attributes:
        number: Of the file.
        path: Where it stands.
        records: Of the folder's life if there are such, else all. Two writers that sent the same text left two of them,
            the furthest stands first; a file that came after the folder was dropped has none left.
        follower: What the record of the next file names as ``previous``.
        rows: What it holds.
    """

    number: int
    path: str
    records: tuple[Record, ...]
    follower: str
    rows: list[Row]

    @property
    def record(self) -> Record | None:
        return self.records[0] if self.records else None

    def is_of(self, generation: str | None) -> bool:
        return self.record is not None and self.record.generation == generation


class DataFiles:
    """Reads data files; what was read of an object is remembered, for an object never changes."""

    def __init__(self, store: SimStore, table: LandingTable) -> None:
        self._store, self._table = store, table
        self._inside: dict[str, tuple[str, Record | None, list[Row]]] = {}
        self._beside: dict[str, Record] = {}

    def standing(self, generation: str | None) -> dict[int, StandingFile]:
        """Return the files in the table's folder, by number."""
        folder = self._table.folder
        found = {}
        for name in self._store.names(folder).files:
            number = data_number(name)
            if number is not None:
                path = f"{folder}/{name}"
                found[number] = self.read(number, path, self._store.objects[path], generation)
        return found

    def read(self, number: int, path: str, stored: Stored, generation: str | None) -> StandingFile:
        """Return one file, as it stands or as it is about to be made."""
        follower, record, rows = self._content(path, stored)
        records = self._sidecars(number, follower) if record is None else [record]
        records.sort(key=lambda r: -(r.position or 0))
        own = [r for r in records if r.generation == generation]
        return StandingFile(number, path, tuple(own or records), follower, rows)

    def rows(self, path: str, stored: Stored) -> list[Row]:
        return self._content(path, stored)[2]

    def _content(self, path: str, stored: Stored) -> tuple[str, Record | None, list[Row]]:
        if stored.identity not in self._inside:
            self._inside[stored.identity] = self._opened(path, stored)
        return self._inside[stored.identity]

    def _opened(self, path: str, stored: Stored) -> tuple[str, Record | None, list[Row]]:
        content = Content(stored.data, stored.identity)
        if isinstance(self._table.format, Parquet):
            record = footer_of(content, path).record
            assert record is not None
            return record.batch, record, _landing(read_rows(content, path).to_pylist())
        rows = self._table.format.read(stored.data, COLUMNS, path).to_pylist()
        return sha256_of(stored.data), None, _landing(rows)

    def _sidecars(self, number: int, sha256: str) -> list[Record]:
        folder = self._table.folder
        found = []
        for name in sort_names(self._store.names(folder).files).sidecars.get((number, sha256), ()):
            stored = self._store.objects[f"{folder}/{name}"]
            if stored.identity not in self._beside:
                self._beside[stored.identity] = parse_record(stored.data, file=name)
            found.append(self._beside[stored.identity])
        return found


def _landing(rows: list[dict[str, object]]) -> list[Row]:
    return [(row.get("__rowMarker__", 0), row["k"], row["v"]) for row in rows]  # type: ignore[misc]
