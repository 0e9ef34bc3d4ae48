"""The pass over one table as a protocol: it yields requests, is sent their answers, and does no I/O itself.

Besides the storage requests of `openmirror_writer.storage`, which go to the landing zone, it yields `ReadTarget`,
`ReadFooters`, `Commit` and `RemoveTarget`. A pass works in rounds. Each round reads the target's version first, then
lists the folder, and does one thing at most: one commit. Whatever happens between two requests, the next round starts
from what stands there, so a pass can be given up anywhere and begun again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from openmirror_writer.errors import OpenMirrorError, SchemaRefusedError
from openmirror_writer.footers import TextTable, text_table
from openmirror_writer.formats import Footer, is_parquet
from openmirror_writer.layout import GENERATION, MOVED, data_file, drop_record, sort_names
from openmirror_writer.metadata import Claim, Dropped, parse, parse_claim
from openmirror_writer.spark.mirror.columns import Column
from openmirror_writer.spark.mirror.plan import (
    Algebra,
    Batch,
    Life,
    Stop,
    algebra_of,
    applied_files,
    footers_wanted,
    next_batch,
    stale_files,
    where_to_go_on,
)
from openmirror_writer.spark.mirror.state import (
    LandedFile,
    Status,
    TableName,
    TargetState,
    Unreadable,
    claim_name,
    is_table,
    pack,
    unpack,
)
from openmirror_writer.spark.mirror.tidy import RETENTION, clean_up, move_applied
from openmirror_writer.storage import Created, Steps, creating, deleting, listing, reading
from openmirror_writer.zone import FolderState, look

FILES_PER_COMMIT = 1000
"""Footers of so many small files take a tenth of a second; a longer backlog is cut, which changes nothing."""
_FRUITLESS_ROUNDS = 10
"""After so many rounds in a row without a commit of ours, others change the table faster than we can follow."""


# ------------------------------------------------------------------------------------------------ requests and answers


@dataclass(frozen=True)
class ReadTarget:
    """Answered by a `TargetState`, read now."""

    table: TableName


@dataclass(frozen=True)
class ReadFooters:
    """Answered by one of ``Footer | Unreadable | None`` per file, in order; None: gone, or another file by now.

    Attributes:
        folder: The listing that shows the files.
        numbers: Of the files.
    """

    folder: FolderState
    numbers: tuple[int, ...]


Kind: TypeAlias = Literal["rebuild", "append", "upsert_only", "merge", "drop"]
"""``rebuild``: create or replace the table with the rows of the batch; ``drop``: the same with none."""


@dataclass(frozen=True)
class Commit:
    """One Delta statement with this version. Answered by `Done`, `Skipped`, `Conflict` or `Bad`.

    It is not begun where the table's stored version is not ``expected``. It has no effect where that version is not
    below ``version``, and fails where a file is not the one that was planned, by size and time of change. Where
    ``expected`` is None it fails if there is a table.

    Attributes:
        table: Which table.
        kind: Which statement.
        algebra: How the rows become changes; as ``kind`` but for ``rebuild``.
        version: Packed, see `openmirror_writer.spark.mirror.state`.
        expected: The stored version that this was planned on; None: there is no table.
        files: The batch, in order; empty for ``drop``.
        generation: The generation of the files.
        keys: The key columns.
        keys_came: Whether the table was made without key columns, and is to keep these from now on.
        columns: The columns of the table behind the batch, in its order; a file may lack some, which is NULL.
        added: Those of them, the last ones, that the table has not yet; the statement adds them.
        upsert: Whether rows without markers are upserts.
        dropped: The time of a drop, else None.
        text: How text files are read; None where the metadata describe none.
    """

    table: TableName
    kind: Kind
    algebra: Algebra
    version: int
    expected: int | None
    files: tuple[LandedFile, ...]
    generation: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    added: tuple[Column, ...] = ()
    keys_came: bool = False
    upsert: bool = False
    dropped: datetime | None = None
    text: TextTable | None = None


@dataclass(frozen=True)
class RemoveTarget:
    """Remove the directory of a table that still says it was dropped, with this version. Answered by None."""

    table: TableName
    version: int


@dataclass(frozen=True)
class Done:
    """The version stands in the table's log.

    Attributes:
        rows: Landing rows by marker; None: rows of files without markers.
    """

    rows: Mapping[int | None, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Skipped:
    """The table has this version or a higher one already, or not the one expected; nothing was changed."""


@dataclass(frozen=True)
class Conflict:
    """Somebody else changed the table or moved a file meanwhile; nothing was changed."""

    reason: str


@dataclass(frozen=True)
class Bad:
    """The batch cannot be applied as it is; nothing was changed.

    Attributes:
        file: Name of the file that is to blame, None if it is not known.
        reason: Why.
    """

    file: str | None
    reason: str


CommitAnswer: TypeAlias = Done | Skipped | Conflict | Bad


@dataclass(frozen=True)
class AppliedBatch:
    """One commit: numbers of its first and last file, landing rows by marker (None: without marker)."""

    first: int
    last: int
    rows: Mapping[int | None, int]


@dataclass(frozen=True)
class PassResult:
    """What a pass did, and how it left the table.

    Attributes:
        table: Which.
        status: In the service's words.
        reason: Why it does not go on, where there is something to tell.
        file: The path below the zone's root of the file that is to blame, or None.
        stale: Paths of files that are never applied.
        applied: The commits of this pass.
        last_file: Number of the last file applied, by this pass or before; 0: none.
        commit: Delta's version of the table when it was last read; None: there is no table.
    """

    table: TableName
    status: Status
    reason: str | None
    file: str | None
    stale: tuple[str, ...]
    applied: tuple[AppliedBatch, ...]
    last_file: int
    commit: int | None


# ------------------------------------------------------------------------------------------------------------- the pass


@dataclass
class _Memory:
    """What a pass remembers between its rounds: never what it acts on, but footers that it need not read again."""

    table: TableName
    now: datetime
    limit: int
    target: TargetState = field(default_factory=TargetState)
    footers: dict[tuple[int, str], Footer | Unreadable] = field(default_factory=dict)
    applied: list[AppliedBatch] = field(default_factory=list)
    stale: tuple[str, ...] = ()
    trouble: str = ""

    def result(self, stop: Stop, file: str | None) -> PassResult:
        return PassResult(
            self.table,
            stop.status,
            stop.reason,
            file,
            self.stale,
            tuple(self.applied),
            unpack(self.target.version or 0)[1],
            self.target.commit,
        )


def table_pass(table: TableName, *, now: datetime, limit: int = FILES_PER_COMMIT) -> Steps[PassResult]:
    """Apply all new files of a table, move those that were applied, and say how it stands.

    Args:
        table: Which; its folder, or its Delta table, or both may be absent.
        now: The time, with a time zone; for the clean-up after seven days only.
        limit: The most files of one commit.

    Returns:
        The result. An `OpenMirrorError` thrown into the protocol as an answer becomes status ``Failed``.
    """
    memory = _Memory(table, now, limit)
    try:
        stop = yield from _rounds(memory)
    except OpenMirrorError as error:
        return memory.result(Stop("Failed", error.message), error.file)
    return memory.result(stop, f"{table.folder}/{stop.file}" if stop.file else None)


def _rounds(memory: _Memory) -> Steps[Stop]:
    fruitless = 0
    while fruitless < _FRUITLESS_ROUNDS:
        outcome = yield from _round(memory)
        if isinstance(outcome, Stop):
            return outcome
        fruitless = 0 if outcome else fruitless + 1
    why = f" ({memory.trouble})" if memory.trouble else ""
    return Stop("Failed", f"others changed this table or its folder all the time{why}: run the mirror again")


def _round(memory: _Memory) -> Steps[Stop | bool]:
    """Do one thing at most; returns why there is nothing more to do, or whether a commit was made."""
    table = memory.table
    target = yield from _read_target(memory)
    folder = yield from look(table.folder)
    if not (folder.names.data or folder.names.special):
        gone = yield from _vanished(memory, target)
        if gone is not None:
            return gone
    if folder.dropping:
        return Stop("Stopped", "the folder is being dropped: if nobody does so now, drop_table finishes it")
    files = yield from _landed(memory, folder, footers_wanted(target, folder, memory.limit))
    if files is None:
        return False
    life = where_to_go_on(target, folder, files)
    if isinstance(life, Life):
        mark = life.start - 1
        yield from move_applied(folder.folder, applied_files(target, life), mark)
        outcome = yield from _apply(memory, target, folder, life)
        if not isinstance(outcome, Stop):
            return outcome
        if not life.rebuild:
            yield from clean_up(folder, mark, memory.now)
    else:
        outcome = life
    if outcome.absent and (yield from _read_target(memory)).version != target.version:
        return False  # somebody applied and moved what we did not see
    stale = stale_files(target, folder, files, life if isinstance(life, Life) else None)
    memory.stale = yield from _still_there(folder, stale)
    return outcome


def _apply(memory: _Memory, target: TargetState, folder: FolderState, life: Life) -> Steps[Stop | bool]:
    """Claim the next batch and commit it; returns why there is none, or whether a commit was made."""
    claimed = yield from _claimed_end(folder, life)
    if claimed is False:
        return False
    if claimed is not None:
        life = yield from _with_claimed(memory, target, folder, life, claimed)
    batch = next_batch(life, target, folder, memory.limit, claimed)
    if not batch.files:
        return batch.stop or Stop("Replicating")
    if claimed is None:
        claim = Claim(last=batch.files[-1].number).to_bytes()
        answer = yield from creating(f"{folder.folder}/{claim_name(batch.files[0])}", claim)
        if not isinstance(answer, Created):
            return False  # another mirror was first, or the answer was lost: the next listing tells
    if not (yield from _unchanged(folder, batch.files)):
        memory.trouble = "files were replaced"
        return False
    answered = yield _statement(memory.table, target, folder, life, batch)
    match answered:
        case Done(rows):
            memory.applied.append(AppliedBatch(life.start, batch.files[-1].number, rows))
            return True
        case Bad(file, reason):
            return Stop("Failed", reason, file)
        case Conflict(reason):
            memory.trouble = reason
    return False


def _with_claimed(memory: _Memory, target: TargetState, folder: FolderState, life: Life, claimed: int) -> Steps[Life]:
    """Add the files that the claim covers and the limit left out."""
    more = [n for n in folder.names.data if life.start <= n <= claimed and n not in life.files]
    files = yield from _landed(memory, folder, more)
    if not files:
        return life  # what changed since the listing is missing then, and looked for again
    again = where_to_go_on(target, folder, {**files, **life.files})
    return again if isinstance(again, Life) else life


def _statement(table: TableName, target: TargetState, folder: FolderState, life: Life, batch: Batch) -> Commit:
    metadata = folder.metadata
    upsert = metadata is not None and metadata.is_upsert_default_row_marker
    keys = metadata.key_columns if metadata else ()
    algebra = algebra_of(batch.files, keys, upsert=upsert)
    return Commit(
        table=table,
        kind="rebuild" if life.rebuild else algebra,
        algebra=algebra,
        version=pack(life.incarnation, batch.files[-1].number, batch.files[-1].identity),
        expected=target.version,
        files=batch.files,
        generation=life.generation,
        keys=keys,
        columns=batch.columns,
        added=() if life.rebuild else batch.columns[len(target.columns) :],
        keys_came=bool(keys) and not target.keys and not life.rebuild,
        upsert=upsert,
        text=None if all(is_parquet(file.name) for file in batch.files) else text_table(metadata, folder.folder),
    )


def _claimed_end(folder: FolderState, life: Life) -> Steps[int | Literal[False] | None]:
    """Return where the claim on the next batch ends; None: there is no claim; False: look again."""
    first = life.files.get(life.start)
    if first is None or isinstance(first.footer, Unreadable):
        return None
    name = claim_name(first)
    if name not in folder.names.claims:
        return None
    content = yield from reading(f"{folder.folder}/{name}")
    if content is None:
        return False
    last = parse_claim(content.data, file=f"{folder.folder}/{name}").last
    return max(last, life.start)


def _read_target(memory: _Memory) -> Steps[TargetState]:
    answer = yield ReadTarget(memory.table)
    assert isinstance(answer, TargetState)  # noqa: S101 - narrows the type of what the driver sent
    memory.target = answer
    return answer


def _landed(memory: _Memory, folder: FolderState, numbers: Sequence[int]) -> Steps[dict[int, LandedFile] | None]:
    """Return the files with their footers; None if one of them changed since the listing."""
    entries = folder.names.data
    unread = [n for n in numbers if (n, entries[n].identity) not in memory.footers]
    if unread:
        answers = yield ReadFooters(folder, tuple(unread))
        for number, footer in zip(unread, answers, strict=True):
            if footer is None:
                return None
            memory.footers[number, entries[number].identity] = footer
    return {
        n: LandedFile(n, data_file(n, folder.names.extensions[n]), entries[n], memory.footers[n, entries[n].identity])
        for n in numbers
    }


def _unchanged(folder: FolderState, files: Sequence[LandedFile]) -> Steps[bool]:
    """Tell whether the folder still has the life and the files that were planned."""
    names = (yield from listing(folder.folder)).files
    life = names[GENERATION].identity if GENERATION in names else None
    return life == folder.generation_identity and all(
        file.name in names and names[file.name].identity == file.entry.identity for file in files
    )


def _still_there(folder: FolderState, numbers: Sequence[int]) -> Steps[tuple[str, ...]]:
    """Return the paths of those files that a second listing shows as well: another mirror may be moving."""
    if not numbers:
        return ()
    names = (yield from listing(folder.folder)).files
    planned = [(data_file(n, folder.names.extensions[n]), folder.names.data[n].identity) for n in numbers]
    return tuple(f"{folder.folder}/{n}" for n, identity in planned if n in names and names[n].identity == identity)


# ------------------------------------------------------------------------------------------------- a folder is gone


def _vanished(memory: _Memory, target: TargetState) -> Steps[Stop | bool | None]:
    """Drop the table of a folder that is gone, if that is proved; None: something of the publisher's is there."""
    table = memory.table
    if not target.exists or target.dropped is not None:
        return (yield from _not_live(memory, target))
    parent = yield from listing(table.parent)
    others = [name for name in parent.folders - {table.name} if is_table(name)]
    if not others and not (yield from _dropped_on_purpose(table, target)):
        where = table.parent or "the landing zone"
        msg = (
            f"every table folder of {where} is gone at once: wrong URL, or no rights? "
            "If it was dropped on purpose, drop_table says so"
        )
        return Stop("Failed", msg)
    left = yield from _left_behind(table)
    if left is None:
        return None
    incarnation = unpack(target.version or 0)[0] + 1
    answered = yield Commit(
        table=table,
        kind="drop",
        algebra="append",
        version=pack(incarnation, 0, ""),
        expected=target.version,
        files=(),
        generation=target.generation or "",
        keys=target.keys,
        columns=target.columns,
        dropped=memory.now,
    )
    match answered:
        case Bad(file, reason):
            return Stop("Failed", reason, file)
        case Conflict(reason):
            memory.trouble = reason
    return False


def _not_live(memory: _Memory, target: TargetState) -> Steps[Stop | None]:
    """Say that there is neither folder nor table; remove the directory of a table that was dropped seven days ago."""
    left = yield from _left_behind(memory.table)
    if left is None:
        return None
    for path, identity in left.items():
        yield from deleting(path, identity)
    if not target.exists or target.dropped is None or target.version is None:
        return Stop("Initialized", "the folder is empty: there is nothing to apply")
    if memory.now - target.dropped > RETENTION:
        yield RemoveTarget(memory.table, target.version)
    return Stop("Stopped", "the folder is gone: the table was dropped")


def _left_behind(table: TableName) -> Steps[dict[str, str] | None]:
    """Return the claims, path to identity, in a folder that holds nothing else; None: it holds more.

    A claim that a mirror creates while the folder is being deleted makes the folder anew: such a folder is gone.
    """
    inside = yield from listing(table.folder)
    claims = sort_names(inside.files).claims
    if inside.folders - set(MOVED) or claims.keys() != inside.files.keys():
        return None
    for place in sorted(inside.folders):
        if (yield from listing(f"{table.folder}/{place}")).files:
            return None
    return {f"{table.folder}/{name}": entry.identity for name, entry in claims.items()}


def _dropped_on_purpose(table: TableName, target: TargetState) -> Steps[bool]:
    path = drop_record(table.label)
    content = yield from reading(path)
    if content is None:
        return False
    try:
        return parse(Dropped, content.data, file=path).holds(target.generation)
    except SchemaRefusedError:
        return False
