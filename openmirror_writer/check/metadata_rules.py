"""Rules of ``_metadata.json`` and ``_partnerEvents.json``. Pure, over the properties as they stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from openmirror_writer.check.findings import Finding
from openmirror_writer.check.json_text import JsonObject, read_object
from openmirror_writer.errors import shorten
from openmirror_writer.metadata import BY_TIME, SEQUENTIAL

_MANY_KEYS = 5
"""The service advises fewer key columns than this."""
_ORDERS = (None, SEQUENTIAL, BY_TIME)


@dataclass(frozen=True)
class MetadataView:
    """What ``_metadata.json`` says, as far as it can be read; None where it cannot.

    Attributes:
        keys: The key columns.
        by_time: Whether files are ordered by modification time.
        unmarked_are_upserts: Whether rows without a marker are upserts.
        properties: All of them.
    """

    keys: tuple[str, ...] | None
    by_time: bool | None
    unmarked_are_upserts: bool | None
    properties: JsonObject | None


UNREADABLE = MetadataView(None, None, None, None)
ABSENT = MetadataView(None, by_time=False, unmarked_are_upserts=None, properties=None)
"""Nothing is said about keys; files are numbered, as they are by default."""


def read_metadata(data: bytes) -> tuple[MetadataView, list[Finding]]:
    """Read ``_metadata.json``.

    Returns:
        What it says, and what is wrong with the properties that Parquet tables have too.
    """
    read = read_object(data, "2.10")
    if not isinstance(read, JsonObject):
        return UNREADABLE, read
    findings = [*_repeated(read, ""), *_option_findings(read), *_key_findings(read)]
    keys = read.get("keyColumns")
    order = read.get("fileDetectionStrategy")
    upserts = read.get("isUpsertDefaultRowMarker")
    view = MetadataView(
        keys=() if keys is None else tuple(keys) if _is_names(keys) else None,
        by_time=order == BY_TIME if order in _ORDERS else None,
        unmarked_are_upserts=bool(upserts) if upserts is None or isinstance(upserts, bool) else None,
        properties=read,
    )
    return view, findings


def partner_findings(data: bytes) -> list[Finding]:
    """Return what is wrong with ``_partnerEvents.json``."""
    read = read_object(data, "3.1")
    if not isinstance(read, JsonObject):
        return read
    source = read.get("sourceInfo")
    kind = source.get("sourceType") if isinstance(source, JsonObject) else None
    required = {"partnerName": read.get("partnerName"), "sourceInfo.sourceType": kind}
    missing = [name for name, value in required.items() if not isinstance(value, str)]
    if not missing:
        return []
    return [Finding("error", "3.1", f"{' and '.join(missing)} is absent, or no text", "write it, or delete the file")]


def _repeated(read: JsonObject, where: str) -> Iterator[Finding]:
    for name in read.repeated:
        yield Finding("error", "2.9", f"{where}{name} stands there twice, casing apart", "delete one of the two")
    for name, value in read.values.items():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, JsonObject):
                yield from _repeated(inner, f"{where}{name}.")


def _option_findings(read: JsonObject) -> Iterator[Finding]:
    order = read.get("fileDetectionStrategy")
    if order not in _ORDERS:
        message = f"fileDetectionStrategy is {shorten(order)}"
        yield Finding("error", "2.2", message, f'write "{SEQUENTIAL}" or "{BY_TIME}", or leave it out')
    upserts = read.get("isUpsertDefaultRowMarker")
    if upserts is not None and not isinstance(upserts, bool):
        message = f"isUpsertDefaultRowMarker is {shorten(upserts)}"
        yield Finding("error", "2.3", message, "write true or false, without quotes")
    elif upserts and not read.get("keyColumns"):
        message = "isUpsertDefaultRowMarker is true, and there are no keyColumns to find rows by"
        yield Finding("error", "2.3", message, "name the key columns, or leave it out")


def _key_findings(read: JsonObject) -> Iterator[Finding]:
    keys: Any = read.get("keyColumns")
    if keys is None:
        return  # what its absence does to the table depends on the markers
    if not _is_names(keys):
        yield Finding("error", "2.1", f"keyColumns is {shorten(keys)}", 'write a list of names, such as ["id"]')
    elif len({key.casefold() for key in keys}) != len(keys):
        yield Finding("error", "2.1", f"keyColumns names a column twice: {keys}", "name each once")
    elif len(keys) >= _MANY_KEYS:
        message = f"there are {len(keys)} key columns; fewer than {_MANY_KEYS} are advised"
        yield Finding("warning", "2.1", message, "key the table by fewer columns, such as one id")


def _is_names(keys: object) -> bool:
    return isinstance(keys, list) and all(isinstance(key, str) and key for key in keys)
