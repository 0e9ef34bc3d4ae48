"""What a pass over one table has to do, told from names, footers and the target's own record. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from openmirror_writer.errors import SchemaRefusedError
from openmirror_writer.formats import Footer
from openmirror_writer.layout import METADATA, data_file
from openmirror_writer.record import FOREIGN
from openmirror_writer.spark.mirror.columns import Column, columns_behind, columns_of, marker_fault
from openmirror_writer.spark.mirror.state import Files, LandedFile, Status, TargetState, Unreadable, check_of, unpack
from openmirror_writer.zone import FolderState

Algebra = Literal["append", "upsert_only", "merge"]
"""How the rows of a batch become changes: no keyed row at all, no insert among them, or anything."""

_FOREIGN_GENERATION = "foreign-"
_HIGHEST_MARKER = 4


@dataclass(frozen=True)
class Stop:
    """Why a table does not go on.

    Attributes:
        status: In the service's words.
        reason: What is wrong and what to do; None if nothing is to be told.
        file: Name of the file in the table folder that it is about, or None.
        absent: Whether it is because a file was not seen; then the target is read again before it is believed.
    """

    status: Status
    reason: str | None = None
    file: str | None = None
    absent: bool = False


@dataclass(frozen=True)
class Life:
    """Where applying goes on.

    Attributes:
        rebuild: Whether the table is made, or made anew, from file 1.
        incarnation: Of the versions of its commits.
        start: Number of the next file.
        generation: Of the files that may be applied.
        files: The files of this life, by number.
    """

    rebuild: bool
    incarnation: int
    start: int
    generation: str
    files: Files


@dataclass(frozen=True)
class Batch:
    """The files that can be applied next.

    Attributes:
        files: In order.
        stop: Why it goes no further; None: the limit.
        columns: Of the table when they are applied: those that it has come first, in their order.
    """

    files: tuple[LandedFile, ...]
    stop: Stop | None
    columns: tuple[Column, ...] = ()


# ------------------------------------------------------------------------------------------------- where to go on


def footers_wanted(target: TargetState, folder: FolderState, limit: int) -> list[int]:
    """Return the numbers whose footers a decision needs, lowest first.

    These are the next ``limit`` files, the unbroken run that ends with the highest one at or below the mark (it tells
    the life and what may be moved), and, where file 1 stands there, the first ``limit`` for a rebuild.
    """
    mark = unpack(target.version or 0)[1]
    numbers = folder.names.data.keys()
    wanted = {n for n in numbers if mark < n <= mark + limit}
    top = max((n for n in numbers if n <= mark), default=0)
    while top in numbers:
        wanted.add(top)
        top -= 1
    if 1 in numbers:
        wanted |= {n for n in numbers if n <= limit}
    return sorted(wanted)


def where_to_go_on(target: TargetState, folder: FolderState, files: Files) -> Life | Stop:
    """Tell which life of the folder is to be applied from where.

    Args:
        target: Read before the folder was listed.
        folder: Its listing.
        files: Those with a footer that was read, see `footers_wanted`.
    """
    if fault := _not_ours(target, folder):
        return fault
    fresh = _fresh(files, folder)
    incarnation, mark, check = unpack(target.version or 0)
    live = target.exists and target.dropped is None and mark > 0
    if not live:
        return _first_life(max(incarnation, 1), folder, files, live=False)
    old = [n for n in fresh if n <= mark]
    if not old:
        if folder.generation is not None and folder.generation != target.generation and not _is_foreign(target):
            return _first_life(incarnation + 1, folder, files, live=True)
        name = data_file(mark)
        msg = f"file {mark}, the last one applied, is missing: publish it, or drop_table and load again"
        return Stop("Failed", msg, name, absent=True)
    top = fresh[max(old)]
    if isinstance(top.footer, Unreadable):
        return Stop("Failed", top.footer.reason, top.name)
    if _is_new_life(top, target, mark, check):
        return _first_life(incarnation + 1, folder, files, live=True)
    generation = target.generation or ""
    if not _is_foreign(target):
        fresh = {n: f for n, f in fresh.items() if f.generation in {None, generation}}
        if mark not in fresh:
            msg = f"file {mark}, the last one applied, is missing: publish it, or drop_table and load again"
            return Stop("Failed", msg, data_file(mark), absent=True)
    metadata = folder.metadata
    if metadata is not None and (fault := _other_keys(target, metadata.key_columns)):
        return fault
    return Life(rebuild=False, incarnation=incarnation, start=mark + 1, generation=generation, files=fresh)


def _not_ours(target: TargetState, folder: FolderState) -> Stop | None:
    if target.exists and target.version is None:
        msg = (
            "a Delta table that no mirror made stands where this one would land: move it away, or choose another target"
        )
        return Stop("Failed", msg)
    if target.exists and target.dropped is None and target.folder not in {None, folder.folder}:
        msg = f"the Delta table there mirrors the folder {target.folder!r}: two tables of one name need two targets"
        return Stop("Failed", msg)
    if folder.metadata is None:
        if target.exists and target.dropped is None:
            return Stop("Failed", "_metadata.json is gone: publish it again", absent=True)
        return Stop("Initialized", "there is no _metadata.json: the folder is not applied before it is there")
    return None


def _other_keys(target: TargetState, keys: Sequence[str]) -> Stop | None:
    """Refuse other key columns than the table has; a table without any may get some later."""
    if not target.keys or set(target.keys) == set(keys):
        return None
    msg = f"keyColumns were {list(target.keys)} and are {list(keys)}: they cannot change; drop_table and load again"
    return Stop("Failed", msg, METADATA)


def _fresh(files: Files, folder: FolderState) -> Files:
    """Leave out the files of another generation than ``_generation.json`` names."""
    marker = folder.generation
    return {n: f for n, f in files.items() if marker is None or f.generation in {None, marker}}


def _is_foreign(target: TargetState) -> bool:
    return (target.generation or "").startswith(_FOREIGN_GENERATION)


def _is_new_life(top: LandedFile, target: TargetState, mark: int, check: int) -> bool:
    """Tell whether the highest file at or below the mark proves that the folder was made again.

    Clocks and absence prove nothing: only another generation does, or, without one, another file under the number of
    the last one applied, which the mirror never moves.
    """
    if top.generation is not None and not _is_foreign(target):
        return top.generation != target.generation
    return top.number < mark or check_of(top.identity) != check


def _first_life(incarnation: int, folder: FolderState, files: Files, *, live: bool) -> Life | Stop:
    """Return the life that begins with file 1: the table is created or rebuilt."""
    fresh = _fresh(files, folder)
    first = fresh.get(1)
    if first is None:
        if any(n in fresh or n not in files for n in folder.names.data):
            msg = "file 1 is missing: publish it, or drop_table and load again"
            return Stop("Failed", msg, data_file(1), absent=True)
        return Stop("Reseeding" if live else "Snapshotting", "waiting for the first data file")
    if isinstance(first.footer, Unreadable):
        return Stop("Failed", first.footer.reason, first.name)
    generation = first.generation
    if generation is None:
        digest = hashlib.sha256(first.identity.encode()).hexdigest()[:16]
        generation = f"{_FOREIGN_GENERATION}{digest}"
    else:
        fresh = {n: f for n, f in fresh.items() if f.generation in {None, generation}}
    return Life(rebuild=True, incarnation=incarnation, start=1, generation=generation, files=fresh)


# ------------------------------------------------------------------------------------------------------- the batch


def next_batch(life: Life, target: TargetState, folder: FolderState, limit: int, claimed: int | None) -> Batch:
    """Return the files to apply in one commit, from ``life.start`` on.

    Args:
        life: From `where_to_go_on`.
        target: As there.
        folder: As there; its metadata tells keys and the meaning of rows without markers.
        limit: At most so many files.
        claimed: The last number that a claim on this batch names; then it is all of them, or none.
    """
    files: list[LandedFile] = []
    columns = None if life.rebuild else target.columns
    end = life.start + limit - 1 if claimed is None else claimed
    while life.start + len(files) <= end:
        number = life.start + len(files)
        found = _columns_with(number, life, target, folder, files, columns)
        if not isinstance(found, Stop):
            files.append(life.files[number])
            columns = found
        elif claimed is None:
            return Batch(tuple(files), found, columns or ())
        elif found.status == "Failed":
            return Batch((), found)
        else:
            msg = f"file {number} of a batch that was begun is missing: publish it, or drop_table and load again"
            return Batch((), Stop("Failed", msg, data_file(number), absent=True))
    return Batch(tuple(files), None, columns or ())


def _columns_with(  # noqa: PLR0917 - all that speaks for or against a file
    number: int,
    life: Life,
    target: TargetState,
    folder: FolderState,
    before: Sequence[LandedFile],
    columns: tuple[Column, ...] | None,
) -> tuple[Column, ...] | Stop:
    """Return the columns of the table behind a file that can be applied, else why it cannot.

    Args:
        number: Of the file.
        life: From `where_to_go_on`.
        target: As there.
        folder: As there.
        before: The files of the batch before it.
        columns: Of the table behind those; None: the file makes the table.
    """
    file = life.files.get(number)
    if file is None:
        higher = sorted(n for n in life.files if n > number)
        if not higher:
            return Stop("Replicating")
        span = f"{higher[0]}" if len(higher) == 1 else f"{higher[0]} to {higher[-1]}"
        return Stop("Replicating", f"file {number} is missing, {span} wait for it", data_file(number), absent=True)
    if isinstance(file.footer, Unreadable):
        return Stop("Failed", file.footer.reason, file.name)
    fault = _fork(file, life, target, before)
    if fault is not None:
        return Stop("Failed", fault, file.name)
    try:
        own = columns_of(file.footer.columns)
        behind = own if columns is None else columns_behind(columns, own)
    except SchemaRefusedError as error:
        return Stop("Failed", error.message, file.name)
    fault = _footer_fault(file.footer, own, folder)
    return behind if fault is None else Stop("Failed", fault, file.name)


def _fork(file: LandedFile, life: Life, target: TargetState, before: Sequence[LandedFile]) -> str | None:
    """Tell in words why a file does not follow the one before; None if it does.

    A foreign file follows any. Text without a record behind a file with one may come from a life of the folder that was
    dropped, which took the record along.
    """
    if not isinstance(file.footer, Footer):
        return None
    record = file.footer.record
    if record is None:
        last = before[-1] if before else life.files.get(file.number - 1)
        if not file.is_text or last is None or last.batch is None:
            return None
        return (
            f"this file has no record, and file {last.number} has one: it came late, after a drop of the table, or "
            "somebody deleted the record beside it; delete the file, or drop_table and load again"
        )
    if record.number != file.number:
        return f"the record in this file says that it is number {record.number}: delete it and publish the right one"
    if file.number == 1:
        follows = record.previous is None
    elif before:
        follows = record.previous == (before[-1].batch or FOREIGN)
    elif record.previous == FOREIGN:
        last = life.files.get(file.number - 1)
        follows = last is not None and last.batch is None
    else:
        check = unpack(target.version or 0)[2]
        follows = record.previous is not None and check_of(record.previous) == check
    if follows:
        return None
    return (
        f"a fork: this file follows another file {file.number - 1} than the one applied, "
        "two writers were at work; drop_table, load again, and run one of them"
    )


def _footer_fault(footer: Footer, columns: Sequence[Column], folder: FolderState) -> str | None:
    """Tell in words what of keys and markers is against a file; None if nothing is."""
    metadata = folder.metadata
    keys = metadata.key_columns if metadata else ()
    upsert = metadata is not None and metadata.is_upsert_default_row_marker
    return (
        _key_fault(footer, keys, columns, upsert=upsert)
        or marker_fault(footer.marker_type)
        or _marker_values_fault(footer)
    )


def _key_fault(footer: Footer, keys: Sequence[str], columns: Sequence[Column], *, upsert: bool) -> str | None:
    missing = [key for key in keys if key not in {column.name for column in columns}]
    if missing:
        return f"the key column {missing[0]!r} of _metadata.json is not among the columns of this file: mend keyColumns"
    if keys:
        return None
    if footer.marked and footer.markers is not None and footer.markers[1] > 0:
        return "the table has no keyColumns and takes inserts (marker 0) only: add keyColumns, or publish inserts"
    if not footer.marked and upsert:
        return "isUpsertDefaultRowMarker is set, but the table has no keyColumns: add them"
    return None


def _marker_values_fault(footer: Footer) -> str | None:
    if footer.null_markers:
        return f"{footer.null_markers} rows have no row marker: publish the file again with 0, 1, 2 or 4 in each"
    if footer.markers is not None and not (footer.markers[0] >= 0 and footer.markers[1] <= _HIGHEST_MARKER):
        low, high = footer.markers
        return f"row markers run from {low} to {high}: only 0, 1, 2 and 4 are allowed; publish the file again"
    return None


def algebra_of(files: Sequence[LandedFile], keys: Sequence[str], *, upsert: bool) -> Algebra:
    """Return the cheapest way that is right for a batch, told from the footers.

    Args:
        files: The batch.
        keys: The key columns; without any only inserts are allowed, and each row is checked for that.
        upsert: Whether rows without markers are upserts.
    """
    ranges = [r for f in files if isinstance(f.footer, Footer) and (r := _marker_range(f.footer, upsert=upsert))]
    if not keys or all(high == 0 for _, high in ranges):
        return "append"
    return "upsert_only" if all(low > 0 for low, _ in ranges) else "merge"


def _marker_range(footer: Footer, *, upsert: bool) -> tuple[int, int] | None:
    """Return the least and greatest marker of a file's rows; None if it has no rows."""
    if footer.rows == 0:
        return None
    if not footer.marked:
        return (_HIGHEST_MARKER, _HIGHEST_MARKER) if upsert else (0, 0)
    return footer.markers or (0, _HIGHEST_MARKER)


# ------------------------------------------------------------------------------------- below the mark, and stale files


def applied_files(target: TargetState, life: Life) -> tuple[LandedFile, ...]:
    """Return the files in the folder that are proved to be applied, the last one first.

    The last one fits the check in the version; each one below is named by the one above. Files are moved away from the
    lowest on, so what is still there is an unbroken run: a file below a hole is none of them.
    """
    mark, check = unpack(target.version or 0)[1:]
    last = life.files.get(mark)
    if life.rebuild or last is None or check_of(last.identity) != check:
        return ()
    proved = [last]
    while below := life.files.get(proved[-1].number - 1):
        above = proved[-1]
        if above.batch is not None and above.previous != (below.batch or FOREIGN):
            break
        proved.append(below)
    return tuple(proved)


def stale_files(target: TargetState, folder: FolderState, files: Files, life: Life | None) -> list[int]:
    """Return the numbers of the files that are never applied: reported, neither moved nor deleted.

    These are the files of another generation than the one to be applied, and those at or below the mark that are not
    the ones applied.

    Args:
        target: As above.
        folder: As above.
        files: Those with a footer that was read.
        life: None if it cannot be told.
    """
    fresh = _fresh(files, folder) if life is None else life.files
    stale = {n for n in files if n not in fresh}
    if life is not None and not life.rebuild:
        mark = unpack(target.version or 0)[1]
        proved = {file.number for file in applied_files(target, life)}
        stale |= {n for n in folder.names.data if n <= mark and n not in proved}
    return sorted(stale)
