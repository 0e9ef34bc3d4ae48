"""The documented semantics in memory, by brute force: one landing row after the other, without Spark.

It shares no apply logic with the mirror, so that either can be tested against the other. It reads what stands in a
table's folder and what the service moved to ``_ProcessedFiles`` and ``_FilesReadyToDelete``; those are deleted after
seven days, and a table whose first file is gone cannot be replayed any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from openmirror_writer.chain import Chain, follow, is_of_generation
from openmirror_writer.changes import RowMarker
from openmirror_writer.errors import ApplyError, SchemaRefusedError
from openmirror_writer.footers import read_file
from openmirror_writer.formats import Footer, is_parquet
from openmirror_writer.layout import MOVED, data_number
from openmirror_writer.metadata import TableMetadata
from openmirror_writer.record import Record
from openmirror_writer.schema import ROW_MARKER, landed_type, name_fault
from openmirror_writer.storage import Steps, listing, perform, reading
from openmirror_writer.zone import FolderState, LandingTable, LandingZone, look

State = Literal["applied", "stale", "waiting"]
"""``applied``: in the chain of records. ``stale``: of another generation, or not the chain's file of its number; never
applied. ``waiting``: above a gap or a fork."""


@dataclass(frozen=True, eq=False)
class LandingFile:
    """One data file of a table, read whole; compared by being the same object.

    Attributes:
        number: From its name.
        path: Below the zone's root.
        moved: Whether the service moved it away, which it does with what it has applied.
        size: In bytes.
        footer: What the file says of itself.
        rows: All rows, with ``__rowMarker__`` where the file has it.
    """

    number: int
    path: str
    moved: bool
    size: int
    footer: Footer
    rows: pa.Table

    @property
    def record(self) -> Record | None:
        """The record in the footer; None if a foreign publisher wrote the file."""
        return self.footer.record

    @property
    def batch(self) -> str:
        """What tells this file's content from any other under its number: what the chain names, else the identity."""
        return self.footer.batch or self.footer.identity

    @property
    def is_text(self) -> bool:
        """Whether it is delimited text."""
        return not is_parquet(self.path)


@dataclass(frozen=True)
class LandingFiles:
    """The data files of one table, sorted into what they mean.

    Attributes:
        folder: What else stands in the folder.
        metadata: The table's ``_metadata.json``.
        files: All files with their state, by number.
        fault: Why files are waiting, where that is an error: a fork, a first file that is gone, a lost
            ``_generation.json``; None if there is nothing wrong. A gap above the chain is no error: the rest may come.
    """

    folder: FolderState
    metadata: TableMetadata
    files: tuple[tuple[State, LandingFile], ...]
    fault: ApplyError | None

    @property
    def applied(self) -> list[LandingFile]:
        """The files of the chain, in order."""
        return [file for state, file in self.files if state == "applied"]


@dataclass(frozen=True)
class LandingRow:
    """One row of one landing file.

    Attributes:
        file: Path of the file below the zone's root.
        number: Of the file.
        row: Index of the row in the file, counted from 0.
        marker: As it stands in the file; None in a file without markers.
        values: Data column to value.
        state: What becomes of the file.
        moved: Whether the service moved the file away.
    """

    file: str
    number: int
    row: int
    marker: int | None
    values: dict[str, Any]
    state: State
    moved: bool


def replay(zone: LandingZone) -> dict[str, pa.Table]:
    """Apply all landing files of a zone in memory: what every mirrored table holds when the service has caught up.

    The files of a folder with a ``_generation.json`` are followed along the chain of their records: files of another
    generation, and files that are not the chain's at their number, are skipped. Foreign folders go by number. Files
    above a gap are not applied yet. A table without ``_metadata.json`` or without any applied file, and one that is
    being dropped, is left out.

    Args:
        zone: The landing zone; nothing is written to it.

    Returns:
        One Arrow table per table, by label (``"orders"``, ``"sales.orders"``): the data columns, without the marker.
        The order of the rows means nothing.

    Raises:
        ApplyError: A table cannot be applied: a fork in the chain, a first file that is gone, a record of another
            number than its file, a marker that means nothing or needs key columns that the table does not have, a
            column name that cannot be mirrored, columns that changed as the mirror does not follow: another type,
            another spelling, or one that is not null and came or went. Or two folders are one table: their schemas'
            suffixes differ by case.
        SchemaRefusedError: ``_metadata.json`` or ``_generation.json`` is not readable; a column has a type that cannot
            be mirrored.
        UnknownPositionError: A file is no Parquet, or its record is damaged.
        StorageError: The storage failed.
    """
    folders: dict[str, str] = {}
    tables: dict[str, pa.Table] = {}
    for table in zone.tables():
        first = folders.setdefault(table.label, table.folder)
        if first != table.folder:
            msg = f"the folders {first} and {table.folder} are one table: rename one of the two"
            raise ApplyError(msg, table=table.label, file=table.folder)
        rows = replay_table(table)
        if rows is not None:
            tables[table.label] = rows
    return tables


def replay_table(table: LandingTable) -> pa.Table | None:
    """Apply the landing files of one table, see `replay`; None where `replay` leaves the table out.

    Raises:
        OpenMirrorError: As `replay`.
    """
    landed = landing_files(table)
    if landed is None:
        return None
    if landed.fault is not None:
        raise landed.fault
    return _apply_all(landed, table.label) if landed.applied else None


def trace(landed: LandingFiles, key: Mapping[str, Any]) -> list[LandingRow]:
    """List every landing row of one key, stale and waiting files included, in the order of the files and rows.

    Args:
        landed: From `landing_files`.
        key: Column to value, as Arrow gives it back as a Python value. NULL matches NULL and NaN matches NaN; columns
            that are left out match anything.
    """
    wanted = {name: _comparable(value) for name, value in key.items()}
    return [
        row
        for state, file in landed.files
        for row in landing_rows(file, state)
        if wanted.items() <= {name: _comparable(row.values[name]) for name in wanted if name in row.values}.items()
    ]


def landing_rows(file: LandingFile, state: State) -> Iterator[LandingRow]:
    """Yield the rows of one file from top to bottom."""
    for row, values in enumerate(file.rows.to_pylist()):
        marker = values.pop(ROW_MARKER, None)
        yield LandingRow(file.path, file.number, row, marker, values, state, file.moved)


def landing_files(table: LandingTable) -> LandingFiles | None:
    """Read all data files of a table, whole, and tell which of them count.

    Returns:
        None if the folder is not ingested: no ``_metadata.json``, or a drop has begun.

    Raises:
        SchemaRefusedError: ``_metadata.json`` or ``_generation.json`` is not readable.
        UnknownPositionError: A file is no Parquet, or its record is damaged.
        StorageError: The storage failed.
    """
    return perform(table.zone.storage, _landing_files(table))


# ------------------------------------------------------------------------------------------------ reading


def _landing_files(table: LandingTable) -> Steps[LandingFiles | None]:
    while True:
        folder = yield from look(table.folder)
        if folder.dropping or folder.metadata is None:
            return None
        files = yield from _read_all(folder)
        if files is not None:
            return _sort(folder, folder.metadata, files, table.label)


def _read_all(folder: FolderState) -> Steps[list[LandingFile] | None]:
    """Read the data files, the moved ones first; None if one went away meanwhile: a mirror is at work, look again."""
    paths: list[tuple[int, str, bool]] = []
    for moved_to in MOVED:
        inside = yield from listing(f"{folder.folder}/{moved_to}")
        paths += [(data_number(name) or 0, f"{folder.folder}/{moved_to}/{name}", True) for name in inside.files]
    paths += [(number, folder.data_path(number), False) for number in folder.names.data]
    files: list[LandingFile] = []
    for number, path, moved in sorted(paths, key=lambda found: (found[0], not found[2])):
        if not number:
            continue  # no data file
        content = yield from reading(path)
        if content is None:
            return None
        footer, rows = yield from read_file(folder, number, path, content)
        file = LandingFile(number, path, moved, len(content.data), footer, rows)
        twin = files[-1] if files else None
        if twin is None or (twin.number, twin.batch) != (number, file.batch):  # a killed mover leaves one file twice
            files.append(file)
    return files


# ------------------------------------------------------------------------------------------------ what counts


def _sort(folder: FolderState, metadata: TableMetadata, files: list[LandingFile], label: str) -> LandingFiles:
    ours = [file for file in files if is_of_generation(file, folder.generation)]
    chain = follow(ours)
    fault = _fault(folder, files, ours, chain, label)
    in_chain, stale = set(chain.files), set(chain.stale)
    states: list[tuple[State, LandingFile]] = []
    for file in files:
        if file in in_chain:
            states.append(("applied", file))
        elif file in stale or not is_of_generation(file, folder.generation):
            states.append(("stale", file))
        else:
            states.append(("waiting", file))
    return LandingFiles(folder, metadata, tuple(states), fault)


def _fault(
    folder: FolderState, files: list[LandingFile], ours: list[LandingFile], chain: Chain[LandingFile], label: str
) -> ApplyError | None:
    recorded = next((file for file in files if file.record), None)
    if folder.generation is None and recorded is not None:
        msg = "this file has a record, but its folder's _generation.json is gone: drop the table and load it again"
        return ApplyError(msg, table=label, file=recorded.path)
    if chain.fork is not None:
        before = chain.files[-1].path if chain.files else "the beginning of the table"
        if chain.fork.record is None:
            msg = (
                f"this file has no record, and {before} has one: it came late, after a drop of the table, or somebody "
                "deleted the record beside it; delete the file, or drop the table and load it again"
            )
            return ApplyError(msg, table=label, file=chain.fork.path)
        msg = f"this file does not continue {before}: two writers have published; delete the file that is not yours"
        return ApplyError(msg, table=label, file=chain.fork.path)
    other = next((file for file in chain.files if file.record and file.record.number != file.number), None)
    if other is not None and other.record is not None:
        number = other.record.number
        msg = f"the record in this file says that it is number {number}: delete it and publish the right one"
        return ApplyError(msg, table=label, file=other.path)
    if ours and not chain.files:
        msg = (
            "file 1 is gone (processed files are deleted after seven days), so the table cannot be replayed from its "
            "beginning: replay earlier, or drop the table and load it again"
        )
        return ApplyError(msg, table=label, file=ours[0].path)
    return None


# ------------------------------------------------------------------------------------------------ the semantics


def _apply_all(landed: LandingFiles, label: str) -> pa.Table:
    keys = landed.metadata.key_columns
    unmarked = RowMarker.UPSERT if landed.metadata.is_upsert_default_row_marker else RowMarker.INSERT
    files = landed.applied
    standing: dict[Any, list[int]] = {}
    first = 0
    columns = _table_columns(files, label)
    for file in files:
        _check_keys(file, keys, label)
        for row, (key, marker) in enumerate(zip(_keys(file, keys), _markers(file, unmarked, label), strict=True)):
            if marker is not RowMarker.INSERT and not keys:
                msg = f"{marker.name.lower()} ({marker.value}) in a table without key columns, which takes inserts only"
                raise ApplyError(msg, table=label, file=file.path, row=row, column=ROW_MARKER, value=marker.value)
            _apply(standing, key, marker, first + row)
        first += file.rows.num_rows
    all_rows = pa.concat_tables([_in_columns(file, columns) for file in files], promote_options="none")
    return all_rows.take(pa.array([row for rows in standing.values() for row in rows], pa.int64()))


def _apply(standing: dict[Any, list[int]], key: object, marker: RowMarker, row: int) -> None:
    """Apply one landing row; ``standing`` is key to the landing rows that the table holds for it now."""
    if marker is RowMarker.DELETE:
        standing.pop(key, None)
    elif marker is RowMarker.INSERT:
        standing.setdefault(key, []).append(row)
    else:
        standing[key] = [row] * max(len(standing.get(key, ())), 1)


def _keys(file: LandingFile, keys: tuple[str, ...]) -> list[tuple[Any, ...]]:
    if not keys:
        return [()] * file.rows.num_rows
    columns = [file.rows.column(key).to_pylist() for key in keys]
    return [tuple(_comparable(value) for value in values) for values in zip(*columns, strict=True)]


def _comparable(value: Any) -> Any:  # noqa: ANN401 - any value that a column holds
    """Make NaN equal to NaN, as Spark compares keys; -0.0 and 0.0 are equal in Python already."""
    return ("NaN",) if isinstance(value, float) and value != value else value  # noqa: PLR0124 - only NaN differs


def _markers(file: LandingFile, unmarked: RowMarker, label: str) -> list[RowMarker]:
    if not file.footer.marked:
        return [unmarked] * file.rows.num_rows
    column = file.rows.column(ROW_MARKER)
    known = {int(marker): marker for marker in RowMarker}
    markers = []
    for row, value in enumerate(column.to_pylist()):
        if not pa.types.is_integer(column.type) or value not in known:
            msg = f"{value!r} ({column.type}) is no row marker, which are the integers 0, 1, 2 and 4: publish it again"
            raise ApplyError(msg, table=label, file=file.path, row=row, column=ROW_MARKER, value=value)
        markers.append(known[value])
    return markers


def _columns(file: LandingFile, label: str) -> pa.Schema:
    """Return the data columns in file types: dictionaries and large strings, say, are plain strings."""
    fields = []
    spelled = [name.casefold() for name in file.footer.columns.names]
    for field in file.footer.columns:
        if spelled.count(field.name.casefold()) > 1:
            msg = f"the column {field.name!r} stands twice in this file, by case at most: publish it again with one"
            raise ApplyError(msg, table=label, file=file.path, column=field.name)
        fault = name_fault(field.name)
        if fault is not None:
            raise ApplyError(fault, table=label, file=file.path, column=field.name)
        try:
            fields.append(pa.field(field.name, landed_type(field.name, field.type), nullable=field.nullable))
        except SchemaRefusedError as error:
            error.table, error.file = label, file.path
            raise
    return pa.schema(fields)


def _check_keys(file: LandingFile, keys: tuple[str, ...], label: str) -> None:
    for key in keys:
        if key not in file.footer.columns.names:
            msg = f"the key column {key!r} is not in this file, which has {file.footer.columns.names}"
            raise ApplyError(msg, table=label, file=file.path, column=key)


def _table_columns(files: list[LandingFile], label: str) -> pa.Schema:
    """Return the columns of the table: those of the first file, and behind them each that a later file added."""
    standing: dict[str, pa.Field[Any]] = {}
    for file in files:
        columns = _columns(file, label)
        for field in columns:
            fault = _column_fault(standing.get(field.name.casefold()), field, is_first=file is files[0])
            if fault is not None:
                raise ApplyError(fault, table=label, file=file.path, column=field.name, type=str(field.type))
            standing.setdefault(field.name.casefold(), field)
        for field in standing.values():
            if not field.nullable and field.name not in columns.names:
                msg = f"the column {field.name!r} is not null, and this file leaves it out (rule 7.3): publish it again"
                raise ApplyError(msg, table=label, file=file.path, column=field.name, type=str(field.type))
    return pa.schema(list(standing.values()))


def _column_fault(known: pa.Field[Any] | None, field: pa.Field[Any], *, is_first: bool) -> str | None:
    """Tell in words why a column of a file does not go on with those of the files before; None if it does."""
    if known is None:
        if is_first or field.nullable:
            return None
        return f"the column {field.name!r} is new and not null (rule 7.3): publish the file again with a nullable one"
    if known.name != field.name:
        return f"the columns {known.name!r} and {field.name!r} differ by case only (rule 7.5): keep one spelling"
    if (known.type, known.nullable) != (field.type, field.nullable):
        return (
            f"the column {field.name!r} is {_words(field)} in this file and {_words(known)} before (rule 7.4): "
            "publish the file again with the type before"
        )
    return None


def _words(field: pa.Field[Any]) -> str:
    return f"{field.type}" if field.nullable else f"{field.type} not null"


def _in_columns(file: LandingFile, columns: pa.Schema) -> pa.Table:
    """Return the rows of a file in the columns of the table; a column that it lacks is NULL."""
    rows = file.rows
    arrays = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.chunked_array([_nulls(rows.num_rows, field.type)])
        for field in columns
    ]
    return pa.Table.from_arrays(arrays, schema=columns)


def _nulls(length: int, kind: pa.DataType) -> pa.Array[Any]:
    return pa.nulls(length, kind)  # type: ignore[call-overload,no-any-return] # the stubs list the types one by one
