"""What stands in a zone and in a table's folder, read for `check`: one file at a time, nothing judged but itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from openmirror_writer.check.findings import Finding, at
from openmirror_writer.check.metadata_rules import ABSENT, MetadataView, read_metadata
from openmirror_writer.check.seen import Reading, SeenFile, is_copy, read_data_file
from openmirror_writer.check.text_rules import condition_findings, is_text, schema_columns, text_findings
from openmirror_writer.errors import SchemaRefusedError, StorageError, UnknownPositionError
from openmirror_writer.footers import TextTable, text_table
from openmirror_writer.layout import DROPPING, GENERATION, METADATA, MOVED, SCHEMA_SUFFIX, data_number, is_advance
from openmirror_writer.metadata import TableMetadata, parse
from openmirror_writer.record import parse_record
from openmirror_writer.storage import Entry, Listing, Steps, listing, reading

_LOOKS = 20
"""How often a folder is looked at before it counts as never quiet."""


@dataclass(frozen=True)
class SeenTable:
    """A table's folder.

    Attributes:
        label: ``"orders"`` or ``"sales.orders"``.
        folder: Its path below the zone's root.
        files: What stands in it, by name.
        folders: Names of the folders in it.
        metadata: What ``_metadata.json`` says.
        metadata_findings: What is wrong with it, the columns of Parquet files apart.
        extension: Of most data files, of several the first one's; None without files.
        text: How its text files are read; None: they are not, or there are none.
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
    extension: str | None
    text: TextTable | None
    generation: bytes | None
    data: tuple[SeenFile, ...]
    damaged_records: Mapping[str, str]

    def path(self, name: str) -> str:
        """Return the path of a file in the folder."""
        return f"{self.folder}/{name}"


def main_extension(files: Iterable[SeenFile]) -> str | None:
    """Return the extension of a table's files: the most frequent, of several the first one's; None without files."""
    counts = Counter(file.extension for file in files)
    return max(counts, key=counts.__getitem__, default=None)


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
    listed: list[SeenFile] = []
    if DROPPING not in inside.files:
        listed = yield from _data_files(folder, inside, by_time=bool(view.by_time))
    extension = main_extension(listed)
    findings += _described(view, extension)
    text = None
    if METADATA in content and not any(finding.severity == "error" for finding in findings):
        text, more = _text_table(content[METADATA], extension, folder)
        findings += more
    data = yield from _read_all(listed, Reading(view.keys or (), text, extension))
    if data is None:
        return None
    if view.by_time:
        data.sort(key=lambda file: file.entry.modified)
    return SeenTable(
        label=label,
        folder=folder,
        files=inside.files,
        folders=inside.folders,
        metadata=view,
        metadata_findings=tuple(at(f"{folder}/{METADATA}", findings)),
        extension=extension,
        text=text,
        generation=content.get(GENERATION),
        data=tuple(data),
        damaged_records=(yield from _damaged_advances(folder, inside)),
    )


def _described(view: MetadataView, extension: str | None) -> list[Finding]:
    """Return what is wrong with the metadata's description of columns and of text."""
    if view.properties is None:
        return []
    findings = list(text_findings(view.properties, extension, view.keys))
    if is_text(extension):  # of Parquet the files tell the columns
        findings += condition_findings(view.properties, schema_columns(view.properties))
    return findings


def _text_table(data: bytes, extension: str | None, folder: str) -> tuple[TextTable | None, list[Finding]]:
    """Return how the text files of a table are read, and why they cannot be; None if there are none."""
    if not is_text(extension):
        return None, []
    try:
        return text_table(parse(TableMetadata, data, file=METADATA), folder), []
    except SchemaRefusedError as error:
        message, _, remedy = error.message.rpartition(": ")
        return None, [Finding("error", "2.10", f"nothing tells how to read the text files: {message}", remedy)]


def _data_files(folder: str, inside: Listing, *, by_time: bool) -> Steps[list[SeenFile]]:
    """Return the data files, not read yet; by number, the moved ones first."""
    found: list[SeenFile] = []
    for place in (*sorted(inside.folders & set(MOVED)), ""):
        names = (yield from listing(f"{folder}/{place}")).files if place else inside.files
        for name, entry in names.items():
            number = data_number(name) or 0
            if number or (by_time and not name.startswith("_")):
                path = f"{folder}/{place}/{name}" if place else f"{folder}/{name}"
                found.append(SeenFile(number, path, bool(place), entry))
    return sorted(found, key=lambda file: (file.number, not file.moved, file.path))


def _read_all(listed: Sequence[SeenFile], how: Reading) -> Steps[list[SeenFile] | None]:
    """Read the files one after the other; None if one of them is gone or another by now."""
    data: list[SeenFile] = []
    for unread in listed:
        file = yield from read_data_file(unread, how)
        if file is None:
            return None
        if not (yield from is_copy(file, data)):
            data.append(file)
    return data


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
