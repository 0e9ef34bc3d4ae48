"""One data file, read for `check`: nothing is judged but the file itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import pyarrow as pa

from openmirror_writer.check.content import content_findings, empty_file, unreadable_file
from openmirror_writer.check.facts import ParquetFacts, Unreadable, read_facts
from openmirror_writer.check.findings import Finding
from openmirror_writer.check.text_content import judge_text
from openmirror_writer.check.text_rules import is_text
from openmirror_writer.errors import UnknownPositionError
from openmirror_writer.footers import TextTable
from openmirror_writer.formats import Surroundings, read_sidecar, sha256_of
from openmirror_writer.record import Record, parse_record
from openmirror_writer.schema import ROW_MARKER
from openmirror_writer.storage import Entry, Steps, reading

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
        columns: Its data columns; of Parquet as Spark sees them, of text the names in the header. None if it is
            unreadable, or text of which nothing tells how to read it.
        marked: Whether it has markers.
        rows: How many; 0 where they cannot be read.
        greatest_marker: None if it has none that can be read.
        record: None if a foreign publisher wrote the file.
        sha256: Of the content of text that was read, hexadecimal.
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
    sha256: str | None = None

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
        """What tells this file's content from any other under its number: what the chain names, else the identity."""
        return self.entry.identity if self.record is None else self.sha256 or self.record.batch

    @property
    def is_text(self) -> bool:
        """Whether it is no Parquet."""
        return is_text(self.extension)


@dataclass(frozen=True)
class Reading:
    """How the data files of a table are read.

    Attributes:
        keys: The key columns.
        text: How text is read; None: only what stands beside it.
        extension: Of the table's files; of text of another one too, only what stands beside it.
        around: What stands beside the files.
    """

    keys: Sequence[str]
    text: TextTable | None
    extension: str | None
    around: Surroundings


def read_data_file(file: SeenFile, how: Reading) -> Steps[SeenFile | None]:
    """Read one data file.

    Args:
        file: As the listing shows it.
        how: How files are read.

    Returns:
        The same with what it tells; None if it is gone or another by now (list again).
    """
    if file.entry.size == 0:
        return replace(file, findings=(empty_file(),), readable=False)
    if is_text(file.extension):
        return (yield from _read_text(file, how))
    facts = yield from read_facts(file.path, file.entry.size, how.keys)
    if facts is None:
        return None
    if isinstance(facts, Unreadable):
        return replace(file, findings=(unreadable_file(facts),), readable=False)
    return _with_facts(file, facts)


def _with_facts(file: SeenFile, facts: ParquetFacts) -> SeenFile:
    findings = list(content_findings(facts))
    record, readable = None, True
    if facts.record is not None:
        try:
            record = parse_record(facts.record, file=file.path)
        except UnknownPositionError as error:
            message, _, remedy = error.message.rpartition(": ")
            findings.append(Finding("error", "record.7", message, remedy))
            readable = False
    return replace(
        file,
        findings=tuple(findings),
        readable=readable,
        columns=pa.schema([field for field in facts.columns if field.name != ROW_MARKER]),
        marked=ROW_MARKER in facts.columns.names,
        rows=facts.rows,
        greatest_marker=facts.greatest_marker,
        record=record,
    )


def _read_text(file: SeenFile, how: Reading) -> Steps[SeenFile | None]:
    text = how.text if file.extension == how.extension else None
    if text is None and not how.around.names.sidecars:
        return file
    content = yield from reading(file.path)
    if content is None or len(content.data) != file.entry.size:
        return None
    read = yield from _with_sidecar(replace(file, sha256=sha256_of(content.data)), how.around)
    if text is None:
        return read
    told = judge_text(text, content.data, how.keys, file.path)
    return replace(
        read,
        findings=(*read.findings, *told.findings),
        columns=pa.schema([pa.field(name, pa.string()) for name in told.columns]),
        marked=told.marked,
        rows=told.rows,
        greatest_marker=told.greatest_marker,
    )


def _with_sidecar(file: SeenFile, around: Surroundings) -> Steps[SeenFile]:
    """Read the record that stands beside a text file; that of another number if there is one of this very content."""
    assert file.sha256 is not None  # noqa: S101 - its content was read
    others = (number for number, sha256 in around.names.sidecars if sha256 == file.sha256)
    for number in (file.number, *sorted(others)):
        try:
            record = yield from read_sidecar(number, file.sha256, around)
        except UnknownPositionError as error:
            message, _, remedy = error.message.rpartition(": ")
            damaged = Finding("error", "record.7", message, remedy, file=error.file)
            return replace(file, findings=(damaged,), readable=False)
        if record is not None:
            return replace(file, record=record)
    return file


def is_copy(file: SeenFile, before: Sequence[SeenFile]) -> Steps[bool]:
    """Return whether a file stands in a folder of moved ones already: a mover that was killed leaves one file twice."""
    twin = before[-1] if before else None
    if twin is None or not file.number or (twin.number, twin.name, twin.moved) != (file.number, file.name, True):
        return False
    if twin.batch == file.batch or (file.sha256 is not None and twin.sha256 == file.sha256):
        return True
    if file.record is not None or twin.record is not None or file.entry.size != twin.entry.size:
        return False
    ours, theirs = (yield from reading(file.path)), (yield from reading(twin.path))
    return ours is not None and theirs is not None and ours.data == theirs.data
