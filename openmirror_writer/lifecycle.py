"""The end of a table: dropping or replacing it so that a crash, a paused writer or a second drop does no harm."""

from __future__ import annotations

import time
from collections.abc import Callable

from openmirror_writer.errors import ConcurrentWriterError, OpenMirrorError, SchemaRefusedError, StorageError
from openmirror_writer.layout import DROPPING, GENERATION, data_number, drop_record, replacement_record
from openmirror_writer.metadata import Dropped, Generation, Replacement, parse
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
    replacing,
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
        SchemaRefusedError: The note of earlier drops in the zone cannot be read.
        StorageError: The storage failed, or new files came as fast as they were deleted.
    """
    perform(table.zone.storage, dropping(table))


def dropping(table: LandingTable) -> Steps[None]:
    """Drop a table; a protocol, see `drop_table`.

    Raises:
        SchemaRefusedError: See `drop_table`.
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


def replace_table(
    table: LandingTable, *, is_dropped: Callable[[], bool], poll: float = 30.0, timeout: float | None = None
) -> None:
    """Drop a table and wait until the mirrored database has dropped it too: then load it again with a new `Writer`.

    It is the way to change key columns, types or nullability, and to rename: drop and wait under the old name, load
    under the new one. Until the wait has ended the zone remembers it and writers of the table are refused. If this is
    killed or fails, call it again: it goes on where it was. Stop the table's writers before.

    Args:
        table: From `LandingZone.table`; its keys and columns do not matter.
        is_dropped: Whether the mirrored database has dropped the table, such as a look at its list of tables. What it
            raises passes through.
        poll: Seconds between two questions.
        timeout: Seconds after which it gives up; None = never.

    Raises:
        OpenMirrorError: The mirrored database has not dropped the table within ``timeout``.
        ConcurrentWriterError: Somebody has begun to load the table anew meanwhile; nothing of that is dropped.
        SchemaRefusedError: The note of the replacement, or of earlier drops, in the zone cannot be read.
        StorageError: The storage failed, or new files came as fast as they were deleted.
    """
    perform(table.zone.storage, beginning_replacement(table))
    ends = None if timeout is None else time.monotonic() + timeout
    while not is_dropped():
        if ends is not None and time.monotonic() + poll > ends:
            msg = (
                f"the mirrored database has not dropped the table within {timeout} s: look at its status, then call "
                "replace_table again"
            )
            raise OpenMirrorError(msg, table=table.label)
        time.sleep(poll)
    perform(table.zone.storage, ending_replacement(table))


def beginning_replacement(table: LandingTable) -> Steps[None]:
    """Note that a table is being replaced, and drop it; a protocol, see `replace_table`.

    Raises:
        ConcurrentWriterError: See `replace_table`.
        SchemaRefusedError: See `replace_table`.
        StorageError: See `replace_table`.
    """
    standing = yield from _generation(table)
    path = replacement_record(table.label)
    for _ in range(10):
        content = yield from reading(path)
        if content is not None:
            noted = parse(Replacement, content.data, file=path).generation
            if standing is not None and standing != noted and (yield from _has_data(table)):
                msg = (
                    "the table is being replaced, and a writer has begun to load it anew: drop_table it if that is to "
                    "go, then call replace_table again"
                )
                raise ConcurrentWriterError(msg, table=table.label, file=path)
            yield from dropping(table)
            return
        yield from creating(path, Replacement(generation=standing).to_bytes())
    msg = "the storage does not keep the note of the replacement: call replace_table again"
    raise StorageError(msg, table=table.label, file=path, retryable=True)


def ending_replacement(table: LandingTable) -> Steps[None]:
    """Let writers in again; a protocol, see `replace_table`.

    Raises:
        StorageError: The storage failed.
    """
    path = replacement_record(table.label)
    content = yield from reading(path)
    if content is not None:
        yield from deleting(path, content.identity)


def _generation(table: LandingTable) -> Steps[str | None]:
    """Return the id of the folder's life; None if there is none or it cannot be read."""
    path = table.path(GENERATION)
    content = yield from reading(path)
    try:
        return None if content is None else parse(Generation, content.data, file=path).generation
    except SchemaRefusedError:
        return None


def _has_data(table: LandingTable) -> Steps[bool]:
    """Return whether a data file stands in the folder: a writer that was refused may leave all else there."""
    names = (yield from listing(table.folder)).files
    return any(data_number(name) is not None for name in names)


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
    standing = yield from _generation(table)
    if standing is None:
        # A foreign folder, or an earlier drop came as far as this, or the file names no life: the mirror drops the
        # table all the same where other tables remain.
        return
    path = drop_record(table.label)
    for _ in range(10):
        content = yield from reading(path)
        if content is None:
            yield from creating(path, Dropped(generation=standing).to_bytes())
            continue
        noted = parse(Dropped, content.data, file=path)
        if noted.holds(standing):
            return
        more = Dropped(generation=standing, earlier=(*noted.earlier, noted.generation))
        yield from replacing(path, more.to_bytes(), content.identity)
    msg = "the storage does not keep the note of the drop: call drop_table again"
    raise StorageError(msg, table=table.label, file=path, retryable=True)
