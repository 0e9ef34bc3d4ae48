"""The end of a table: dropping its folder so that a crash, a paused writer or a second drop does no harm."""

from __future__ import annotations

from openmirror_writer.errors import SchemaRefusedError, StorageError
from openmirror_writer.layout import DROPPING, GENERATION, drop_record
from openmirror_writer.metadata import Generation, parse
from openmirror_writer.storage import (
    Created,
    Entry,
    Exists,
    Steps,
    creating,
    deleting,
    listing,
    perform,
    reading,
    removing,
)
from openmirror_writer.zone import LandingTable

_ROUNDS = 1000
"""How often the folder is listed before a drop gives up; each round deletes all that was listed."""


def drop_table(table: LandingTable) -> None:
    """Delete a table's folder: the mirror drops the table.

    A tombstone is set first, which no writer passes; files are deleted by identity, until only the tombstone is left,
    and it goes last. If this is killed, call it again. Stop the table's writers before.

    Args:
        table: From `LandingZone.table`; its keys and columns do not matter.

    Raises:
        StorageError: The storage failed, or new files came as fast as they were deleted.
    """
    perform(table.zone.storage, dropping(table))


def dropping(table: LandingTable) -> Steps[None]:
    """Drop a table; a protocol, see `drop_table`.

    Raises:
        StorageError: See `drop_table`.
    """
    tombstone = table.path(DROPPING)
    if not (yield from _standing(table)):
        yield from removing(table.folder)
        return
    yield from _set_tombstone(table, tombstone)
    yield from _note_drop(table)
    for _ in range(_ROUNDS):
        standing = yield from _standing(table)
        if tombstone not in standing:
            return  # another drop of this table ended
        others = {path: entry for path, entry in standing.items() if path != tombstone}
        for path, entry in others.items():
            yield from deleting(path, entry.identity)
        if not others:
            yield from deleting(tombstone, standing[tombstone].identity)
            yield from removing(table.folder)
            return
    msg = "new files came as fast as they were deleted: stop the writers of this table, then drop it again"
    raise StorageError(msg, table=table.label, file=table.folder, retryable=True)


def _standing(table: LandingTable) -> Steps[dict[str, Entry]]:
    """Return every file below the table's folder, also in folders that are none of ours."""
    found: dict[str, Entry] = {}
    folders = [table.folder]
    while folders:
        folder = folders.pop(0)
        inside = yield from listing(folder)
        found |= {f"{folder}/{name}": entry for name, entry in inside.files.items()}
        folders += [f"{folder}/{name}" for name in sorted(inside.folders)]
    return found


def _set_tombstone(table: LandingTable, tombstone: str) -> Steps[None]:
    for _ in range(10):
        answer = yield from creating(tombstone, b"{}")
        if isinstance(answer, Created | Exists):
            return
    msg = "the storage does not answer: call drop_table again"
    raise StorageError(msg, table=table.label, file=tombstone, retryable=True)


def _note_drop(table: LandingTable) -> Steps[None]:
    """Tell the mirror which life of the folder was dropped on purpose; it may be the zone's only table."""
    content = yield from reading(table.path(GENERATION))
    if content is None:
        return  # a foreign folder, or an earlier drop came as far as this
    try:
        generation = parse(Generation, content.data, file=table.path(GENERATION))
    except SchemaRefusedError:
        return  # it names no life; the mirror drops the table all the same where other tables remain
    path = drop_record(table.label)
    for _ in range(10):
        answer = yield from creating(path, generation.to_bytes())
        if isinstance(answer, Created):
            return
        if isinstance(answer, Exists):
            older = yield from reading(path)
            if older is not None and older.data == generation.to_bytes():
                return
            if older is not None:
                yield from deleting(path, older.identity)
    msg = "the storage does not keep the note of the drop: call drop_table again"
    raise StorageError(msg, table=table.label, file=path, retryable=True)
