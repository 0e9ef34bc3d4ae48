"""`check`: what a landing zone shows of broken rules; `repair`: deletes what is proved stale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from openmirror_writer.check.chain_rules import judge_records
from openmirror_writer.check.column_rules import drift_findings, key_findings, keyless_findings, marker_findings
from openmirror_writer.check.findings import Finding, at, fold
from openmirror_writer.check.header_rules import header_findings
from openmirror_writer.check.look import SeenTable, look_at_root, look_at_table
from openmirror_writer.check.metadata_rules import partner_findings
from openmirror_writer.check.name_rules import (
    leftover_findings,
    metadata_absent,
    metadata_alone,
    name_findings,
    number_findings,
    second_of_a_number,
    sidecar_findings,
    tie_findings,
)
from openmirror_writer.check.root_rules import root_findings, table_folders
from openmirror_writer.check.rules import RULES
from openmirror_writer.check.seen import SeenFile
from openmirror_writer.check.text_rules import condition_findings, is_text, schema_columns
from openmirror_writer.layout import DROPPING, METADATA, OPENMIRROR, PARTNER_EVENTS
from openmirror_writer.storage import Steps, deleting, perform, reading
from openmirror_writer.zone import LandingZone

_ORDER = {number: index for index, number in enumerate(RULES)}


@dataclass(frozen=True)
class Repaired:
    """What became of one finding that `repair` was given.

    Attributes:
        finding: As it was given.
        deleted: Whether its file was deleted; False: it is gone, or another file stands there by now.
    """

    finding: Finding
    deleted: bool


def check(zone: LandingZone, *, now: datetime | None = None) -> list[Finding]:
    """Look for broken rules in a landing zone, whoever publishes to it; nothing is changed.

    All tables, and in them the files that stand there and those that the service has moved away. Of a Parquet file the
    footer is read; all of it only where no statistics tell the row markers or NULLs in a key. Text is read whole, one
    file at a time, by the options and columns of ``_metadata.json``; where these are broken, only they are told. One
    broken rule is one finding, however many others would follow from it, and however many files have it. Which rules a
    folder cannot show is told in docs/rules.md.

    Args:
        zone: The landing zone.
        now: With a time zone; default: this moment. It tells what the service cannot have deleted yet.

    Returns:
        The findings: those of the zone's root first, then by table, file and rule. None is an empty list.

    Raises:
        StorageError: The storage failed, or a folder changed at each of 20 looks.
    """
    moment = now or datetime.now(UTC)
    findings, folders = perform(zone.storage, _check_root())
    for folder, label in folders:
        seen = perform(zone.storage, look_at_table(folder, label))
        findings += [replace(finding, table=label) for finding in table_findings(seen, moment)]
    return findings


def repair(zone: LandingZone, findings: Iterable[Finding]) -> list[Repaired]:
    """Delete the files that are stale, and the temporary files of killed processes.

    A file is deleted only if it is the very object that `check` looked at. Findings of other rules are left alone.

    Args:
        zone: The landing zone.
        findings: From `check` of this zone.

    Returns:
        One entry for each finding whose file could be deleted.

    Raises:
        StorageError: The storage failed; what was deleted before stays deleted.
    """
    return [
        Repaired(finding, perform(zone.storage, deleting(finding.file, finding.identity)))
        for finding in findings
        if finding.file is not None and finding.identity is not None
    ]


def table_findings(seen: SeenTable, now: datetime) -> list[Finding]:
    """Return what is wrong with one table. Pure.

    Args:
        seen: Its folder.
        now: With a time zone.
    """
    if DROPPING in seen.files:
        message = "a drop of this table was begun and has not ended: writers are refused"
        return [Finding("error", "record.8", message, "run drop_table again", file=seen.path(DROPPING))]
    found = fold(_table_findings(seen, now))
    return sorted(found, key=lambda finding: (finding.file or "", _ORDER[finding.rule]))


def _table_findings(seen: SeenTable, now: datetime) -> Iterator[Finding]:
    seconds = second_of_a_number(seen)
    records = judge_records(seen, [file for file in seen.data if file not in seconds])
    counted = [file for file in seen.data if file not in seconds and file not in records.rejected]
    if METADATA not in seen.files:
        yield metadata_absent(seen)
    elif not seen.data:
        yield metadata_alone(seen)
    yield from seen.metadata_findings
    yield from name_findings(seen, seconds)
    yield from records.findings
    if seen.metadata.by_time:
        yield from tie_findings(counted)
    elif seen.metadata.by_time is not None:
        yield from number_findings(counted, now)
    for file in counted:
        yield from at(file.path, file.findings)
    yield from _column_findings(seen, [f for f in counted if f.columns.names and f.extension == seen.extension])
    yield from seen.damaged
    yield from leftover_findings(seen.folder, seen.files)
    yield from sidecar_findings(seen)


def _column_findings(seen: SeenTable, files: list[SeenFile]) -> Iterator[Finding]:
    """Yield what is wrong with the columns of the files together, and with the names of columns in the metadata."""
    keys, properties = seen.metadata.keys or (), seen.metadata.properties
    if files:
        yield from keyless_findings(seen, files)
    yield from marker_findings(seen, files)
    if is_text(seen.extension):
        if seen.text is not None and files:
            yield from header_findings(seen.text.columns, keys, files)
        return
    if files:
        yield from key_findings(seen, files)
    yield from drift_findings(files, keys)
    if properties is not None:
        known = tuple(dict.fromkeys(name for file in files for name in file.columns.names))
        yield from at(seen.path(METADATA), condition_findings(properties, known or schema_columns(properties)))


def _check_root() -> Steps[tuple[list[Finding], list[tuple[str, str]]]]:
    """Return what is wrong outside of the tables, and path and label of each table."""
    listings = yield from look_at_root()
    findings = list(root_findings(listings))
    if PARTNER_EVENTS in listings[""].files:
        content = yield from reading(PARTNER_EVENTS)
        if content is not None:
            findings += at(PARTNER_EVENTS, partner_findings(content.data))
    for folder in ("", OPENMIRROR):
        if folder in listings:
            findings += leftover_findings(folder, listings[folder].files)
    return findings, [(table.folder, table.label) for table in table_folders(listings)]
