"""What stands in a zone and in a table's folder, read for `check`: one file at a time, nothing judged but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import pyarrow as pa

from openmirror_writer.check.content import content_findings, empty_file, unreadable_file
from openmirror_writer.check.facts import ParquetFacts, Unreadable, read_facts
from openmirror_writer.check.findings import Finding, at
from openmirror_writer.check.metadata_rules import ABSENT, MetadataView, read_metadata
from openmirror_writer.errors import StorageError, UnknownPositionError
from openmirror_writer.layout import DROPPING, GENERATION, METADATA, MOVED, SCHEMA_SUFFIX, data_number, is_advance
from openmirror_writer.record import Record, parse_record
from openmirror_writer.schema import ROW_MARKER
from openmirror_writer.storage import Entry, Listing, Steps, listing, reading

_LOOKS = 20
"""How often a folder is looked at before it counts as never quiet."""
_PARQUET = ".parquet"
_NO_COLUMNS = pa.schema([])


@dataclass(frozen=True, eq=False)
class SeenFile:
    """One data file; compared by being the same object.

    Attributes:
        number: From its name; 0 if the name has none, which only files ordered by time may do without.
        path: Below the zone's root.
        moved: Whether the service moved it away.
        entry: From the listing.
        findings: What it breaks by itself.
        readable: Whether its record, or that it has none, is known.
        columns: Its data columns, as Spark sees them; none if it is text or unreadable.
        marked: Whether it has markers.
        rows: How many; 0 in text or where it is unreadable.
        greatest_marker: None if it has none that can be read.
        record: None if a foreign publisher wrote the file.
    """

    number: int
    path: str
    moved: bool
    entry: Entry
    findings: tuple[Finding, ...] = ()
    readable: bool = True
    columns: pa.Schema = _NO_COLUMNS
    marked: bool = False
    rows: int = 0
    greatest_marker: int | None = None
    record: Record | None = None

    @property
    def name(self) -> str:
        """The file's name."""
        return PurePosixPath(self.path).name

    @property
    def extension(self) -> str:
        """Of its name, without the dot."""
        return PurePosixPath(self.path).suffix.removeprefix(".")

    @property
    def batch(self) -> str:
        """What tells this file's content from any other under its number."""
        return self.record.batch if self.record else self.entry.identity

    @property
    def is_text(self) -> bool:
        """Whether it is no Parquet."""
        return not self.path.lower().endswith(_PARQUET)


@dataclass(frozen=True)
class SeenTable:
    """A table's folder.

    Attributes:
        label: ``"orders"`` or ``"sales.orders"``.
        folder: Its path below the zone's root.
        files: What stands in it, by name.
        folders: Names of the folders in it.
        metadata: What ``_metadata.json`` says.
        metadata_findings: What is wrong with it.
        generation: Content of ``_generation.json``; None without one.
        data: The data files, moved ones too, in the order in which they apply.
        damaged_records: Paths of advance records that cannot be read, with the reason.
    """

    label: str
    folder: str
    files: Mapping[str, Entry]
    folders: frozenset[str]
    metadata: MetadataView
    metadata_findings: tuple[Finding, ...]
    generation: bytes | None
    data: tuple[SeenFile, ...]
    damaged_records: Mapping[str, str]

    def path(self, name: str) -> str:
        """Return the path of a file in the folder."""
        return f"{self.folder}/{name}"


def look_at_root() -> Steps[dict[str, Listing]]:
    """List the zone's root and the folders in it: ``""`` is the root."""
    root = yield from listing("")
    listings = {"": root}
    for folder in sorted(root.folders):
        listings[folder] = yield from listing(folder)
        if is_schema_folder(folder):
            for name in sorted(listings[folder].folders):
                if name.startswith("_"):
                    listings[f"{folder}/{name}"] = yield from listing(f"{folder}/{name}")
    return listings


def is_schema_folder(name: str) -> bool:
    """Return whether a folder at the root holds the tables of a schema, in whatever casing the suffix is."""
    return not name.startswith("_") and name.lower().endswith(SCHEMA_SUFFIX)


def look_at_table(folder: str, label: str) -> Steps[SeenTable]:
    """Read what a table's folder tells.

    Raises:
        StorageError: It changed at each of 20 looks.
    """
    for _ in range(_LOOKS):
        seen = yield from _look(folder, label)
        if seen is not None:
            return seen
    msg = "the folder changes at every look; try again"
    raise StorageError(msg, table=label, file=folder, retryable=True)


def _look(folder: str, label: str) -> Steps[SeenTable | None]:
    """Look once; None if something went away meanwhile."""
    inside = yield from listing(folder)
    content: dict[str, bytes] = {}
    for name in (METADATA, GENERATION):
        if name in inside.files:
            read = yield from reading(f"{folder}/{name}")
            if read is None:
                return None
            content[name] = read.data
    view, findings = read_metadata(content[METADATA]) if METADATA in content else (ABSENT, [])
    data: list[SeenFile] = []
    if DROPPING not in inside.files:
        candidates = yield from _data_files(folder, inside, by_time=bool(view.by_time))
        for number, path, moved, entry in candidates:
            file = yield from _seen_file(number, path, view.keys or (), moved=moved, entry=entry)
            if file is None:
                return None
            if not (yield from _is_copy(file, data)):
                data.append(file)
    if view.by_time:
        data.sort(key=lambda file: file.entry.modified)
    return SeenTable(
        label=label,
        folder=folder,
        files=inside.files,
        folders=inside.folders,
        metadata=view,
        metadata_findings=tuple(at(f"{folder}/{METADATA}", findings)),
        generation=content.get(GENERATION),
        data=tuple(data),
        damaged_records=(yield from _damaged_advances(folder, inside)),
    )


def _data_files(folder: str, inside: Listing, *, by_time: bool) -> Steps[list[tuple[int, str, bool, Entry]]]:
    """Return number, path, whether it was moved, and entry of the data files; by number, the moved ones first."""
    found: list[tuple[int, str, bool, Entry]] = []
    for place in (*sorted(inside.folders & set(MOVED)), ""):
        names = (yield from listing(f"{folder}/{place}")).files if place else inside.files
        for name, entry in names.items():
            number = data_number(name) or 0
            if number or (by_time and not name.startswith("_")):
                path = f"{folder}/{place}/{name}" if place else f"{folder}/{name}"
                found.append((number, path, bool(place), entry))
    return sorted(found, key=lambda file: (file[0], not file[2], file[1]))


def _seen_file(number: int, path: str, keys: Sequence[str], *, moved: bool, entry: Entry) -> Steps[SeenFile | None]:
    if entry.size == 0:
        return SeenFile(number, path, moved, entry, (empty_file(),), readable=False)
    if not path.lower().endswith(_PARQUET):
        return SeenFile(number, path, moved, entry)
    facts = yield from read_facts(path, entry.size, keys)
    if facts is None:
        return None
    if isinstance(facts, Unreadable):
        return SeenFile(number, path, moved, entry, (unreadable_file(facts),), readable=False)
    return _read_file(number, path, facts, moved=moved, entry=entry)


def _read_file(number: int, path: str, facts: ParquetFacts, *, moved: bool, entry: Entry) -> SeenFile:
    findings = list(content_findings(facts))
    record, readable = None, True
    if facts.record is not None:
        try:
            record = parse_record(facts.record, file=path)
        except UnknownPositionError as error:
            message, _, remedy = error.message.rpartition(": ")
            findings.append(Finding("error", "record.7", message, remedy))
            readable = False
    return SeenFile(
        number=number,
        path=path,
        moved=moved,
        entry=entry,
        findings=tuple(findings),
        readable=readable,
        columns=pa.schema([field for field in facts.columns if field.name != ROW_MARKER]),
        marked=ROW_MARKER in facts.columns.names,
        rows=facts.rows,
        greatest_marker=facts.greatest_marker,
        record=record,
    )


def _is_copy(file: SeenFile, before: Sequence[SeenFile]) -> Steps[bool]:
    """Return whether a file stands in a folder of moved ones already: a mover that was killed leaves one file twice."""
    twin = before[-1] if before else None
    if twin is None or not file.number or (twin.number, twin.name, twin.moved) != (file.number, file.name, True):
        return False
    if twin.batch == file.batch:
        return True
    if file.record is not None or twin.record is not None or file.entry.size != twin.entry.size:
        return False
    ours, theirs = (yield from reading(file.path)), (yield from reading(twin.path))
    return ours is not None and theirs is not None and ours.data == theirs.data


def _damaged_advances(folder: str, inside: Listing) -> Steps[dict[str, str]]:
    """Read the advance records behind the last file, the only ones that count."""
    last = max((data_number(name) or 0 for name in inside.files), default=0)
    damaged: dict[str, str] = {}
    for name in inside.files:
        if is_advance(name, last):
            content = yield from reading(f"{folder}/{name}")
            try:
                if content is not None:
                    parse_record(content.data, file=name)
            except UnknownPositionError as error:
                damaged[f"{folder}/{name}"] = error.message
    return damaged
