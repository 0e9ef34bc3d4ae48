"""Rules of the names in a table's folder. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from openmirror_writer.check.findings import REPAIR, Finding
from openmirror_writer.check.look import SeenTable
from openmirror_writer.check.seen import SeenFile
from openmirror_writer.layout import METADATA, data_number, is_staged
from openmirror_writer.storage import Entry
from openmirror_writer.zone import leftovers, old_sidecars

_RETENTION = timedelta(days=7)
"""How long the service keeps a processed file."""
_NUMBERED = re.compile(r"[0-9]{20}\.[A-Za-z0-9]+")
_HIDDEN_DATA = re.compile(r"_[0-9]{20}\.(?!json)[A-Za-z0-9]+")


def second_of_a_number(seen: SeenTable) -> list[SeenFile]:
    """Return the standing files whose number another one has that stands there too, and which look less right."""
    standing: dict[int, list[SeenFile]] = {}
    for file in seen.data:
        if file.number and not file.moved:
            standing.setdefault(file.number, []).append(file)
    seconds: list[SeenFile] = []
    for twins in standing.values():
        seconds += sorted(twins, key=lambda file: file.extension != seen.extension)[1:]
    return seconds


def name_findings(seen: SeenTable, seconds: Collection[SeenFile]) -> Iterator[Finding]:
    """Yield what is wrong with single names.

    Args:
        seen: The table's folder.
        seconds: From `second_of_a_number`.
    """
    for name in sorted(seen.files):
        if _HIDDEN_DATA.fullmatch(name):
            message = "a name that begins with _ is ignored: the file is not applied"
            yield Finding(
                "warning", "1.3", message, "publish it under the next number, or delete it", file=seen.path(name)
            )
    for name in _strangers(seen) if seen.files else ():
        message = "a folder inside a table's folder is ignored"
        yield Finding("warning", "1.4", message, "move it to the zone's root, or delete it", file=seen.path(name))
    if seen.metadata.by_time is not None and not seen.metadata.by_time:
        yield from _sequential_findings(seen)
    for file in seconds:
        message = f"another file has the number {file.number}: which of them counts nobody can tell"
        yield Finding("error", "4.2", message, "stop the other writer, then delete one of the two", file=file.path)
    for file in seen.data:
        if file.extension != seen.extension and file not in seconds:
            message = f"the file is {file.extension}, the others are {seen.extension}"
            yield Finding("error", "4.1", message, f"publish it as {seen.extension}", file=file.path)


def number_findings(files: Sequence[SeenFile], now: datetime) -> Iterator[Finding]:
    """Yield what is wrong with the numbers together.

    Args:
        files: The table's data files, without those that do not count.
        now: To tell what the service cannot have deleted yet.
    """
    first = {file.number: file for file in reversed(files) if file.number}
    numbers = sorted(first)
    if not numbers:
        return
    for below, above in pairwise(numbers):
        if above > below + 1:
            yield _gap(below + 1, above - 1, first[above])
    lowest = first[numbers[0]]
    # What came before is moved away when this one has been processed, and kept for seven days from then on.
    if lowest.number > 1 and not lowest.moved and now - lowest.entry.modified < _RETENTION:
        yield _gap(lowest.number - 1, lowest.number - 1, lowest)
    standing = max((file.number for file in files if not file.moved), default=0)
    if standing < numbers[-1]:
        message = f"the last file, number {numbers[-1]}, was moved away: nothing tells the next number"
        yield Finding(
            "error", "4.3", message, "move it back, or drop_table and load again", file=first[numbers[-1]].path
        )


def tie_findings(files: Iterable[SeenFile]) -> Iterator[Finding]:
    """Yield what is wrong with the order of files that are ordered by modification time."""
    at: dict[datetime, list[SeenFile]] = {}
    for file in files:
        if not file.moved:
            at.setdefault(file.entry.modified, []).append(file)
    for ties in at.values():
        if len(ties) > 1:
            names = ", ".join(file.name for file in ties[1:])
            message = f"the file has the modification time of {names}: their order is not defined"
            yield Finding("warning", "4.7", message, "publish one after the other, or number them", file=ties[0].path)


def leftover_findings(folder: str, files: Mapping[str, Entry]) -> Iterator[Finding]:
    """Yield the temporary files of killed processes in one folder (``""``: the root)."""
    staged = {name: entry for name, entry in files.items() if is_staged(name)}
    for name, entry in leftovers(staged, files.values()).items():
        message = "a temporary file of a process that was killed, more than an hour old"
        path = f"{folder}/{name}" if folder else name
        yield Finding("note", "record.9", message, REPAIR, file=path, identity=entry.identity)


def sidecar_findings(seen: SeenTable) -> Iterator[Finding]:
    """Yield the records of text files that nobody needs any more."""
    standing = {file.number for file in seen.data if not file.moved}
    moved = {file.number for file in seen.data if file.moved}
    for name, entry in old_sidecars(seen.names.sidecars, standing, moved, seen.files.values()).items():
        message = "the record of a text file that is gone or never came, more than an hour old"
        yield Finding("note", "record.9", message, REPAIR, file=seen.path(name), identity=entry.identity)


def metadata_absent(seen: SeenTable) -> Finding:
    """Return what is wrong with a table's folder without ``_metadata.json``."""
    other = next((name for name in seen.files if name.lower() == METADATA.lower()), None)
    if other is not None:
        return Finding(
            "error", "2.11", f"{other} is spelled otherwise than {METADATA}", "rename it", file=seen.path(other)
        )
    if seen.data:
        message = "there is no _metadata.json: the service does not take the files"
        return Finding("error", "2.11", message, "publish it, with the keyColumns", file=seen.folder)
    strangers = _strangers(seen)
    if strangers and not seen.files:
        message = f"the folder holds no files, but folders: if {strangers[0]!r} is a table, this is its schema"
        return Finding("error", "1.2", message, f"name it {seen.folder}.schema", file=seen.folder)
    message = "there is no _metadata.json and no data: nothing is published here"
    return Finding("warning", "2.11", message, "publish both, or delete the folder", file=seen.folder)


def metadata_alone(seen: SeenTable) -> Finding:
    """Return what is wrong with a table's folder that holds ``_metadata.json`` and no data."""
    message = "there is no data file: after about two weeks the service fails and pauses the database"
    return Finding("warning", "2.12", message, "publish data, or delete the folder", file=seen.path(METADATA))


def _strangers(seen: SeenTable) -> list[str]:
    """Return the folders in a table's folder that the service has not made."""
    return sorted(name for name in seen.folders if not name.startswith("_"))


def _sequential_findings(seen: SeenTable) -> Iterator[Finding]:
    for name in sorted(seen.files):
        if name.startswith("_") or data_number(name) is not None:
            continue
        if _NUMBERED.fullmatch(name):
            message, remedy = "the first number is 1", "publish it under the next number"
        else:
            message, remedy = (
                "the name is not 20 digits and an extension",
                "publish it under the next number, or delete it",
            )
        yield Finding("error", "4.2", f"{message}: the file is not applied", remedy, file=seen.path(name))


def _gap(low: int, high: int, above: SeenFile) -> Finding:
    missing = f"file {low} is" if low == high else f"files {low} to {high} are"
    message = f"{missing} missing: this file and all above wait"
    return Finding("error", "4.2", message, "publish what is missing under its number", file=above.path)
