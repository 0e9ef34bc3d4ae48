"""What is done with files that were applied: moved by identity, the last one kept; deleted after seven days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from openmirror_writer.layout import MOVED, PROCESSED, data_number
from openmirror_writer.metadata import parse_claim
from openmirror_writer.spark.mirror.state import LandedFile
from openmirror_writer.storage import Entry, Steps, deleting, listing, reading, renaming
from openmirror_writer.zone import FolderState, old_sidecars

RETENTION = timedelta(days=7)
"""How long moved files, and the directory of a dropped table, are kept."""


def move_applied(folder: str, applied: Iterable[LandedFile], mark: int) -> Steps[None]:
    """Move the files below the mark, lowest first, each only if it is the very file that was applied.

    Args:
        folder: The table's folder.
        applied: Files that are proved to be applied.
        mark: Number of the last one, which stays.
    """
    for file in sorted(applied, key=lambda f: f.number):
        if file.number < mark:
            yield from renaming(f"{folder}/{file.name}", f"{folder}/{PROCESSED}/{file.name}", file.entry.identity)


def clean_up(folder: FolderState, mark: int, now: datetime) -> Steps[None]:
    """Delete what was moved seven days ago, and the claims and records of text whose files have left.

    A file keeps its time of change when it is moved, so the claim that covers it tells when it was applied.

    Args:
        folder: A listing that belongs to the life whose ``mark`` is given.
        mark: Number of the last file applied.
        now: With a time zone.
    """
    claims = folder.names.claims
    old = {name: entry for name, entry in claims.items() if now - entry.modified > RETENTION}
    if not old:
        return
    begun = {_first_number(name): entry.modified for name, entry in claims.items()}
    kept: set[int] = set()
    for place in MOVED:
        inside = yield from listing(f"{folder.folder}/{place}")
        for name, number in sorted(_numbered(inside.files).items()):
            entry = inside.files[name]
            if now - max(entry.modified, _applied_at(number, begun, entry.modified)) > RETENTION:
                yield from deleting(f"{folder.folder}/{place}/{name}", entry.identity)
            else:
                kept.add(number)
    for name, entry in old.items():
        path = f"{folder.folder}/{name}"
        content = yield from reading(path)
        if content is None:
            continue
        last = parse_claim(content.data, file=path).last
        if last <= mark and last not in folder.names.data and last not in kept:
            yield from deleting(path, entry.identity)
    names = folder.names
    for name, entry in old_sidecars(names.sidecars, names.data.keys(), kept, names.known()).items():
        yield from deleting(f"{folder.folder}/{name}", entry.identity)


def _applied_at(number: int, begun: Mapping[int, datetime], otherwise: datetime) -> datetime:
    first = max((n for n in begun if n <= number), default=None)
    return otherwise if first is None else begun[first]


def _numbered(files: Mapping[str, Entry]) -> dict[str, int]:
    return {name: number for name in files if (number := data_number(name)) is not None}


def _first_number(claim: str) -> int:
    return int(claim[1 : claim.index(".")])
