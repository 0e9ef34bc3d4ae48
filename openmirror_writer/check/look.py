"""What stands in a zone and in a table's folder, read for `check`: one file at a time, nothing judged but itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from openmirror_writer.check.findings import Finding, at
from openmirror_writer.check.metadata_rules import ABSENT, MetadataView, read_metadata
from openmirror_writer.check.seen import Reading, SeenFile, is_copy, read_data_file
from openmirror_writer.check.text_rules import condition_findings, is_text, schema_columns, text_findings
from openmirror_writer.errors import ApplyError, SchemaRefusedError, StorageError, UnknownPositionError
from openmirror_writer.footers import TextTable, text_table
from openmirror_writer.formats import Surroundings
from openmirror_writer.layout import (
    DROPPING,
    GENERATION,
    METADATA,
    MOVED,
    Folder,
    advance_file,
    data_number,
    schema_of,
    sort_names,
)
from openmirror_writer.metadata import Generation, TableMetadata, parse, parse_claim
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
        generation: The id in ``_generation.json``; None without one, and where it cannot be read.
        data: The data files, moved ones too, in the order in which they apply.
        names: The files in it that begin with ``_``, sorted into what they are.
        damaged: What is wrong with its advances and claims.
    """

    label: str
    folder: str
    files: Mapping[str, Entry]
    folders: frozenset[str]
    metadata: MetadataView
    metadata_findings: tuple[Finding, ...]
    extension: str | None
    text: TextTable | None
    generation: str | None
    data: tuple[SeenFile, ...]
    names: Folder[Entry]
    damaged: tuple[Finding, ...]

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
        if schema_of(folder) is not None:
            for name in sorted(listings[folder].folders):
                if name.startswith("_"):
                    listings[f"{folder}/{name}"] = yield from listing(f"{folder}/{name}")
    return listings


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
    content = yield from _special_files(folder, inside)
    if content is None:
        return None
    view, findings = read_metadata(content[METADATA]) if METADATA in content else (ABSENT, [])
    listed: list[SeenFile] = []
    if DROPPING not in inside.files:
        listed = yield from _data_files(folder, inside, by_time=bool(view.by_time))
    extension = main_extension(listed)
    findings += _described(view, extension)
    text: TextTable | None = None
    if is_text(extension) and METADATA in content and not any(finding.severity == "error" for finding in findings):
        text, more = _text_table(content[METADATA], folder)
        findings += more
    names = sort_names({name: entry for name, entry in inside.files.items() if name.startswith("_")})
    generation = _generation(content.get(GENERATION))
    how = Reading(view.keys or (), text, extension, Surroundings(folder, names, generation))
    data = yield from _read_all(listed, how)
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
        generation=generation,
        data=tuple(data),
        names=names,
        damaged=(yield from _damaged(folder, names, data)),
    )


def _special_files(folder: str, inside: Listing) -> Steps[dict[str, bytes] | None]:
    """Read the metadata and the generation, those that stand there; None if one of them went away."""
    content: dict[str, bytes] = {}
    for name in (METADATA, GENERATION):
        if name in inside.files:
            read = yield from reading(f"{folder}/{name}")
            if read is None:
                return None
            content[name] = read.data
    return content


def _described(view: MetadataView, extension: str | None) -> list[Finding]:
    """Return what is wrong with the metadata's description of columns and of text."""
    if view.properties is None:
        return []
    findings = list(text_findings(view.properties, extension, view.keys))
    if is_text(extension):  # of Parquet the files tell the columns
        findings += condition_findings(view.properties, schema_columns(view.properties))
    return findings


def _text_table(data: bytes, folder: str) -> tuple[TextTable | None, list[Finding]]:
    """Return how the text files of a table are read, and why they cannot be."""
    try:
        return text_table(parse(TableMetadata, data, file=METADATA), folder), []
    except SchemaRefusedError as error:
        message, _, remedy = error.message.rpartition(": ")
        return None, [Finding("error", "2.10", f"nothing tells how to read the text files: {message}", remedy)]


def _data_files(folder: str, inside: Listing, *, by_time: bool) -> Steps[list[SeenFile]]:
    """Return the data files, not read yet; by number, the moved ones first."""
    found: list[SeenFile] = []
    for place in (*(name for name in MOVED if name in inside.folders), ""):
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


def _generation(data: bytes | None) -> str | None:
    try:
        return None if data is None else parse(Generation, data, file=GENERATION).generation
    except SchemaRefusedError:
        return None


def _damaged(folder: str, names: Folder[Entry], data: Iterable[SeenFile]) -> Steps[tuple[Finding, ...]]:
    """Read the advances behind the last file, the only ones that count, and the claims; return what is wrong."""
    last = max((file.number for file in data if not file.moved), default=0)
    found: list[Finding] = []
    for number, k in names.advances:
        path = f"{folder}/{advance_file(number, k)}"
        content = (yield from reading(path)) if number == last else None
        try:
            if content is not None:
                parse_record(content.data, file=path)
        except UnknownPositionError as error:
            message = f"an advance cannot be read: {error.message}"
            found.append(Finding("error", "record.7", message, "delete it", file=path))
    for name in names.claims:
        content = yield from reading(f"{folder}/{name}")
        try:
            if content is not None:
                parse_claim(content.data, file=name)
        except ApplyError as error:
            message, _, remedy = error.message.rpartition(": ")
            found.append(Finding("error", "record.7", message, remedy, file=f"{folder}/{name}"))
    return tuple(found)
