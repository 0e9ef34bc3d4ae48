"""Opening a table: what its folder says about where to go on. Decisions and the protocol that feeds them; no I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from openmirror_writer.errors import SchemaRefusedError, StorageError, TableGoneError, UnknownPositionError
from openmirror_writer.footers import read_footer
from openmirror_writer.formats import Footer, read_record
from openmirror_writer.layout import METADATA, advance_file, case_twin, replacement_record
from openmirror_writer.metadata import TableMetadata
from openmirror_writer.position import Position
from openmirror_writer.record import FOREIGN, SINGLE_PARTITION, Record, parse_record
from openmirror_writer.schema import check_keys, declared_columns, landed_type
from openmirror_writer.storage import Steps, deleting, listing, reading
from openmirror_writer.writer.cut import Progress, Skip
from openmirror_writer.writer.drift import FileColumns, follow
from openmirror_writer.writer.file_format import check_format, declared_text, refuse_other_text
from openmirror_writer.zone import FolderState, LandingTable, leftovers, look, moved_files, old_sidecars

_LOOKS = 20
"""How often the folder is looked at before it counts as never quiet: the service moves files between two requests."""


@dataclass(frozen=True)
class Resumed:
    """Where a writer goes on.

    Attributes:
        generation: The life of the folder; None = it has none yet.
        generation_identity: The identity of ``_generation.json``.
        last: Number of the last file, 0 = none.
        previous: What the next file's record names as ``previous``.
        has_metadata: Whether ``_metadata.json`` stands.
        keys: The key columns.
        columns: Of the next file; None = not known yet.
        progress: State and position.
        skip: Rows that stand in files and will come again.
        next_advance: The first number that no advance record behind the last file has.
        proof_at: When the look began that all this was read from.
        keys_came: Whether ``_metadata.json`` stands without key columns, and is to get ``keys``.
    """

    generation: str | None
    generation_identity: str | None
    last: int
    previous: str | None
    has_metadata: bool
    keys: tuple[str, ...]
    columns: FileColumns | None
    progress: Progress
    skip: Skip | None
    next_advance: int
    proof_at: float
    keys_came: bool = False


def open_table(
    table: LandingTable, start_at: Position, clock: Callable[[], float], *, for_writing: bool = False
) -> Steps[Resumed]:
    """Look at the table's folder and decide where a writer goes on.

    Args:
        table: As the caller declares it.
        start_at: The position of files that carry no record; not looked at where one does.
        clock: Seconds that go on while a process is paused.
        for_writing: Whether files will be published: then temporary files of killed processes and records of text
            files that are gone are deleted, and the declared meaning of rows without markers must be the folder's.
            Default: only look.

    Raises:
        TableGoneError: A drop or a replacement is under way, or only processed files are left.
        UnknownPositionError: The last file carries no record, a damaged one, or one of another generation.
        SchemaRefusedError: Keys or columns do not go on with those that stand, or none are known.
        StorageError: The folder never stands still.
    """
    for _ in range(_LOOKS):
        proof_at = clock()
        state = yield from look(table.folder)
        _refuse_dropping(state, table)
        if for_writing:
            _refuse_other_meaning(table, state.metadata)
            check_format(table, state)
            yield from _clear_leftovers(state)
        keys = _keys(state, table)
        if not state.names.data:
            return (yield from _open_empty(state, table, keys, proof_at))
        last = state.names.last
        footer = yield from read_footer(state, last, declared_text(table))
        if footer is None or footer.identity != state.names.data[last].identity:
            continue  # moved away, or replaced by a repair, between the two calls
        columns = _columns(footer, keys, table, state.data_path(last))
        if footer.record is None:
            return _behind_foreign(state, columns, table, keys, start_at, proof_at)
        yield from _refuse_other_generation(footer.record, state, table)
        record, next_advance = yield from _with_advances(footer.record, footer.batch, state)
        return Resumed(
            state.generation,
            state.generation_identity,
            last,
            footer.batch,
            state.metadata is not None,
            keys,
            columns,
            Progress(record.phase, record.position),
            skip_of(record),
            next_advance,
            proof_at,
            _keys_came(state, keys),
        )
    msg = "the folder changes at every look; try again"
    raise StorageError(msg, table=table.label, retryable=True)


def skip_of(record: Record) -> Skip | None:
    """Return the rows of a record that must not be published again, None if there are none.

    Raises:
        UnknownPositionError: They can be counted but not compared, for their digest is missing.
    """
    pending = record.pending.get(SINGLE_PARTITION)
    if pending is not None and pending.replay == "exact" and pending.digest is None:
        msg = "the record counts rows that are not to be published again, but has no digest to compare them with"
        raise UnknownPositionError(msg, position=record.position)
    return Skip.of(record.pending)


def refuse_replacement(table: LandingTable) -> Steps[None]:
    """Refuse to begin a life of the folder before the mirrored database has dropped the last one; see `replace_table`.

    Raises:
        TableGoneError: The table is being replaced.
    """
    path = replacement_record(table.label)
    if (yield from reading(path)) is not None:
        msg = (
            "this table is being replaced, and nobody has said yet that the mirrored database dropped the old one: "
            "call replace_table again, which waits for it"
        )
        raise TableGoneError(msg, table=table.label, file=path)


def _clear_leftovers(state: FolderState) -> Steps[None]:
    """Delete temporary files of killed processes, and records of text files that nobody needs any more."""
    names, files = state.names, list(state.names.known())
    old = leftovers(names.staged, files)
    if old_sidecars(names.sidecars, names.data.keys(), (), files):  # else there is no need to list more folders
        moved = yield from moved_files(state.folder)
        old |= old_sidecars(names.sidecars, names.data.keys(), moved.keys(), files)
    for name, entry in old.items():
        yield from deleting(f"{state.folder}/{name}", entry.identity)


def _refuse_dropping(state: FolderState, table: LandingTable) -> None:
    if state.dropping:
        msg = "a drop of this table has begun and not ended: run drop_table, then load again"
        raise TableGoneError(msg, table=table.label, file=state.folder)


def _keys(state: FolderState, table: LandingTable) -> tuple[str, ...]:
    if state.metadata is None:
        if table.key_columns is None:
            msg = "key_columns= is needed when a table is made; give [] for a table that only takes inserts"
            raise SchemaRefusedError(msg, table=table.label)
        return table.key_columns
    standing = state.metadata.key_columns
    if table.key_columns is None:
        return standing
    if standing and table.key_columns != standing:
        msg = (
            f"the key columns {list(table.key_columns)} differ from {list(standing)} in _metadata.json; they cannot be "
            "changed (rule 7.6): give the same, or drop_table and load again"
        )
        raise SchemaRefusedError(msg, table=table.label, file=f"{state.folder}/_metadata.json")
    return table.key_columns


def _keys_came(state: FolderState, keys: tuple[str, ...]) -> bool:
    return state.metadata is not None and state.metadata.key_columns != keys


def _refuse_other_meaning(table: LandingTable, standing: TableMetadata | None) -> None:
    """Refuse a writer that takes rows without a marker for something else than the folder does."""
    if standing is not None and standing.is_upsert_default_row_marker != table.unmarked_are_upserts:
        meaning = "upsert" if standing.is_upsert_default_row_marker else "insert"
        msg = f'rows without a marker mean "{meaning}" in _metadata.json: give unmarked_rows="{meaning}" to zone.table'
        raise SchemaRefusedError(msg, table=table.label, file=table.path(METADATA))


def _open_empty(state: FolderState, table: LandingTable, keys: tuple[str, ...], proof_at: float) -> Steps[Resumed]:
    history = yield from _history(state)
    if history is not None:
        msg = "the folder has a history but no data file, so nothing tells the next number: run drop_table, load again"
        raise TableGoneError(msg, table=table.label, file=history)
    yield from refuse_replacement(table)
    yield from _refuse_case_twins(table)
    if table.columns is not None:
        check_keys(keys, table.columns, table=table.label)
    return Resumed(
        state.generation,
        state.generation_identity,
        0,
        None,
        state.metadata is not None,
        keys,
        None if table.columns is None else FileColumns(table.columns),
        Progress("new"),
        None,
        0,
        proof_at,
        _keys_came(state, keys),
    )


def _history(state: FolderState) -> Steps[str | None]:
    """Return what tells that files were published in this life of the folder; None if nothing does."""
    moved = yield from moved_files(state.folder)
    if moved:
        return moved[max(moved)][0]
    for number, k in sorted(state.names.advances, reverse=True):
        path = f"{state.folder}/{advance_file(number, k)}"
        content = yield from reading(path)
        # One of another generation was sent before a drop and came late.
        if content is not None and parse_record(content.data, file=path).generation == state.generation:
            return path
    return None


def _refuse_case_twins(table: LandingTable) -> Steps[None]:
    """Refuse a new folder whose name differs from another's by case only: Delta and the service take them for one."""
    path = table.folder.split("/")
    for depth, name in enumerate(path):
        parent = yield from listing("/".join(path[:depth]))
        twin = case_twin(name, parent.folders)
        if twin is not None:
            msg = f"the folder {twin!r} stands in the zone and differs from {name!r} by case only; use its spelling"
            raise SchemaRefusedError(msg, table=table.label, file=twin)


def _columns(footer: Footer, keys: tuple[str, ...], table: LandingTable, path: str) -> FileColumns:
    """Return the columns that follow on those of the last file; of a foreign file, in our types.

    The declared ones where there are some: a file does not tell which text is JSON, a UUID or a time of day.
    """
    standing = footer.columns
    if footer.record is None:
        try:
            found = [field.with_type(landed_type(field.name, field.type)) for field in standing]
            standing = declared_columns(pa.schema(found))
        except SchemaRefusedError as error:
            error.table, error.file = table.label, path
            raise
    check_keys(keys, standing, table=table.label)
    if table.columns is None:
        return FileColumns(standing)
    if footer.sha256 is not None:
        refuse_other_text(table, table.columns, standing, path)
        return FileColumns(table.columns)
    return follow(standing, table.columns, keys, table=table.label, file=path)


def _behind_foreign(  # noqa: PLR0917 - all that was found
    state: FolderState,
    columns: FileColumns,
    table: LandingTable,
    keys: tuple[str, ...],
    start_at: Position,
    proof_at: float,
) -> Resumed:
    path = state.data_path(state.names.last)
    if start_at is None:
        msg = (
            "the last file carries no record of this software, so nothing tells up to which source position the folder "
            "goes: give Writer(table, start_at=position), or drop_table and load again"
        )
        raise UnknownPositionError(msg, table=table.label, file=path)
    return Resumed(
        state.generation,
        state.generation_identity,
        state.names.last,
        FOREIGN,
        state.metadata is not None,
        keys,
        columns,
        Progress("following", start_at),
        None,
        0,
        proof_at,
        _keys_came(state, keys),
    )


def _refuse_other_generation(record: Record, state: FolderState, table: LandingTable) -> Steps[None]:
    if record.generation == state.generation:
        return
    if state.generation is None:
        msg = "the folder's _generation.json is gone, files of a dropped life are left: run drop_table, then load again"
    else:
        late = yield from _late_files(state)
        msg = (
            f"the last file belongs to generation {record.generation}, the folder to {state.generation}: it was on its "
            "way when the table was dropped and came late; these files are not in the table, delete them: "
            f"{', '.join(late)}"
        )
    raise UnknownPositionError(msg, table=table.label, file=state.data_path(state.names.last))


def _late_files(state: FolderState) -> Steps[list[str]]:
    """Return the files from the last one down that belong to another generation than the folder."""
    late: list[str] = []
    for number in sorted(state.names.data, reverse=True):
        path, size = state.data_path(number), state.names.data[number].size
        found = yield from read_record(path, size, number, state.surroundings)
        if found is None or found.record is None or found.record.generation == state.generation:
            break
        late.append(state.data_path(number))
    return late


def _with_advances(record: Record, batch: str | None, state: FolderState) -> Steps[tuple[Record, int]]:
    """Return the record, or the newest valid advance behind it, and the next free number of an advance."""
    numbers = sorted((k for number, k in state.names.advances if number == record.number), reverse=True)
    free = numbers[0] + 1 if numbers else 0
    for k in numbers:
        path = f"{state.folder}/{advance_file(record.number, k)}"
        content = yield from reading(path)
        if content is None:
            continue
        advance = parse_record(content.data, file=path)
        if (advance.generation, advance.previous) == (record.generation, batch):
            return advance, free
    return record, free
