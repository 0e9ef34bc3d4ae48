"""Rules of the headers of a table's text files together. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from openmirror_writer.check.findings import Finding, Severity
from openmirror_writer.check.seen import SeenFile
from openmirror_writer.errors import shorten


def header_findings(described: pa.Schema, keys: Sequence[str], files: Sequence[SeenFile]) -> Iterator[Finding]:
    """Yield what is wrong between the headers of files and ``SchemaDefinition``, and between one header and another.

    Args:
        described: The columns of ``SchemaDefinition``.
        keys: The key columns.
        files: The text files that count and have a header, at least one, in the order in which they apply.
    """
    # The header to which the others are compared: if none is as described, one finding tells it for all of them.
    usual = next((file for file in files if set(file.columns.names) == set(described.names)), files[0])
    for file in files:
        if set(file.columns.names) == set(usual.columns.names):
            yield from _undescribed(file, described, keys)
        if file.columns.names != usual.columns.names:
            yield _changed(file, usual, keys)


def _undescribed(file: SeenFile, described: pa.Schema, keys: Sequence[str]) -> Iterator[Finding]:
    """Yield what is wrong between one header and ``SchemaDefinition``."""
    names = file.columns.names
    lacking = [field for field in described if field.name not in names]
    unknown = [name for name in names if name not in described.names]
    instead = f", and names {shorten(unknown)}, which it does not describe" if unknown else ""
    if lacking:
        needed = any(field.name in keys or not field.nullable for field in lacking)
        severity: Severity = "error" if needed else "warning"
        message = (
            f"the header does not name the columns {shorten([f.name for f in lacking])} of SchemaDefinition{instead}"
        )
        remedy = "publish the file again with all columns, or mend SchemaDefinition; the spelling counts"
        yield Finding(severity, "5.1", message, remedy, file=file.path)
    elif unknown:
        message = f"SchemaDefinition lacks the columns {shorten(unknown)}, which arrive as NULL"
        yield Finding("warning", "5.13", message, "list them there, or do not publish them", file=file.path)


def _changed(file: SeenFile, usual: SeenFile, keys: Sequence[str]) -> Finding:
    """Return how a header differs from that of another file."""
    gone = [name for name in usual.columns.names if name not in file.columns.names]
    new = [name for name in file.columns.names if name not in usual.columns.names]
    key = next((name for name in gone if name in keys), None)
    if key is not None:
        message = f"the key column {key!r} is missing"
        return Finding("error", "6.2", message, "publish the file again with it", file=file.path)
    if not gone and not new:
        message = f"the header has its columns in another order than {usual.name}"
        return Finding("warning", "7.7", message, "publish all files with one header", file=file.path)
    differs = " and ".join(f"{verb} {shorten(names)}" for verb, names in (("lacks", gone), ("adds", new)) if names)
    message = f"the header {differs}, compared with {usual.name}: the columns of text files cannot change"
    return Finding("error", "7.7", message, "publish it with one header; to change it, drop_table", file=file.path)
