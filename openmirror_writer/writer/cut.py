"""Which rows go into which file, and what the file says of them. Pure: no storage, no clock.

A call that fits a file is never split. Of a longer one, the part that stands in files before its position is reached is
*pending*: upserts, updates and deletes can simply be published again (``safe``); inserts and initial loads cannot, so the
next writer skips those rows, after comparing a digest of the last of them (``exact``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import OpenMirrorError, ResumeMismatchError
from openmirror_writer.position import Position, same_position
from openmirror_writer.record import SINGLE_PARTITION, Pending, Phase

DIGEST_ROWS = 1000
"""How many of the last pending rows a digest covers."""

State = Literal["new", "loading", "following"]


@dataclass(frozen=True)
class Roll:
    """When a file is full.

    Attributes:
        rows: Most rows of a file, at least 1.
        bytes: Most bytes that its rows take in memory, before encoding and compression, at least 1.
        age: Seconds after which rows that wait are published at the end of the call under way; None = no limit.
    """

    rows: int = 1_000_000
    bytes: int = 64 * 1024 * 1024
    age: float | None = 60.0

    def __post_init__(self) -> None:
        """Refuse limits that no file could keep.

        Raises:
            OpenMirrorError: A limit is not positive.
        """
        if self.rows < 1 or self.bytes < 1 or (self.age is not None and self.age <= 0):
            msg = f"{self} cannot be kept: every limit must be positive"
            raise OpenMirrorError(msg)


@dataclass(frozen=True)
class Progress:
    """How far the rows taken so far go.

    Attributes:
        state: Of the table, with these rows.
        position: The last position reached.
        rows: Rows taken since.
        exact: Whether one of them must not be published twice.
        tail: At least the last `DIGEST_ROWS` of them, as slices; cut back when it holds twice as many, so that many
            calls of one row do not cost a thousand steps each.
    """

    state: State
    position: Position = None
    rows: int = 0
    exact: bool = False
    tail: tuple[ChangeBatch, ...] = ()
    tail_rows: int = 0

    def with_rows(self, batch: ChangeBatch, *, exact: bool) -> Progress:
        """Return the progress behind these rows."""
        tail, tail_rows = (*self.tail, batch), self.tail_rows + batch.num_rows
        if tail_rows > 2 * DIGEST_ROWS:
            tail, tail_rows = last_rows(tail), DIGEST_ROWS
        return replace(
            self, rows=self.rows + batch.num_rows, exact=self.exact or exact, tail=tail, tail_rows=tail_rows
        )

    def at(self, position: Position, *, state: State | None = None) -> Progress:
        """Return the progress when a position is reached."""
        return Progress(state or self.state, position)

    def pending(self, at: Position) -> dict[str, Pending]:
        """Return what the record of a file says that ends here, inside the call that leads to ``at``.

        Where no position was ever told, a restart cannot find its place anyway: nothing is pending, delivery is at
        least once.
        """
        if not self.rows or (self.position is None and at is None and self.state != "loading"):
            return {}
        replay: Literal["exact", "safe"] = "exact" if self.exact else "safe"
        mark = digest(last_rows(self.tail)) if self.exact else None
        return {SINGLE_PARTITION: Pending(at=at, rows=self.rows, replay=replay, digest=mark)}


@dataclass(frozen=True)
class FileContent:
    """The rows of one file to be published, and what its record says of them.

    Attributes:
        batches: In order; all marked or all marker-free; empty for the zero-row file of an empty load.
        phase: See `Record`.
        position: See `Record`.
        pending: See `Record`.
    """

    batches: tuple[ChangeBatch, ...]
    phase: Phase
    position: Position
    pending: dict[str, Pending] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows."""
        return sum(batch.num_rows for batch in self.batches)


@dataclass(frozen=True)
class Skip:
    """Rows that stand in files already, and that the source will give again.

    Attributes:
        rows: How many are still to come.
        at: The position of the call that was cut; None if it was not told.
        digest: Of the last of them.
        tail: The last of those that came, as slices.
    """

    rows: int
    at: Position
    digest: str
    tail: tuple[ChangeBatch, ...] = ()

    def over(self, batch: ChangeBatch, *, table: str) -> Skip | None:
        """Skip a batch of at most ``rows`` rows; None when all have come.

        Raises:
            ResumeMismatchError: They are not the rows that were published.
        """
        tail = last_rows((*self.tail, batch), digest_rows(self.digest))
        if batch.num_rows < self.rows:
            return replace(self, rows=self.rows - batch.num_rows, tail=tail)
        if digest(tail) != self.digest:
            msg = (
                "the source was read again and gave other rows than those that stand in published files: inserts and "
                "initial loads must come again in the same order; make the source repeatable, or drop_table and load again"
            )
            raise ResumeMismatchError(msg, table=table, position=self.at)
        return None


@dataclass(frozen=True)
class Call:
    """One call of a verb.

    Attributes:
        position: What it leads to; None = not told.
        load: Whether it is the initial load.
        whole: Whether it must stand in one file, however long it is.
    """

    position: Position = None
    load: bool = False
    whole: bool = False


class Cutter:
    """Gathers the rows of calls into files."""

    def __init__(self, roll: Roll, progress: Progress, skip: Skip | None, *, table: str) -> None:
        """Start behind what is published.

        Args:
            roll: When a file is full.
            progress: What the last record says.
            skip: Rows that stand in files beyond it.
            table: Label for errors.
        """
        self._roll = roll
        self._table = table
        self.skip = skip
        self.progress = progress  # behind the buffered rows
        self._in_files = progress  # behind the last file that was cut
        self._buffer = _Gathered()
        self._call: Call | None = None
        self._call_rows = _Gathered()
        self._call_base = progress  # behind those rows of the call that are cut or skipped
        self._call_exact = False
        self._call_cut_rows = self._call_skipped_rows = 0
        self._skip_before = skip

    @property
    def buffered_rows(self) -> int:
        """Rows that wait for a file."""
        return self._buffer.rows

    def begin(self, call: Call) -> None:
        """Begin a call; end it with `end` or `abort`."""
        self._call = call
        self._call_rows = _Gathered()
        state: State = "loading" if call.load else "following"
        self._call_base = replace(self.progress, state=state)
        self._call_exact = False
        self._call_cut_rows = self._call_skipped_rows = 0
        self._skip_before = self.skip

    def add(self, batch: ChangeBatch, *, exact: bool) -> list[FileContent]:
        """Take rows of the call.

        Args:
            batch: The next rows.
            exact: Whether one of them must not be published twice.

        Returns:
            Files that are full now, to be published in this order.

        Raises:
            ResumeMismatchError: See `Skip.over`.
        """
        assert self._call is not None  # noqa: S101 - the writer begins every call
        batch = self._skipped(batch)
        files: list[FileContent] = []
        while batch.num_rows:
            if self._buffer.rows and not self._fits_behind_buffer(batch):
                files.append(self._cut_buffer())
            room = batch.num_rows if self._call.whole else self._room(batch)
            if room:
                self._call_rows.add(batch.slice(0, room))
                self._call_exact = self._call_exact or exact
                batch = batch.slice(room)
            if batch.num_rows:
                files.append(self._cut_call())
        return files

    def end(self) -> list[FileContent]:
        """End the call: all its rows are accepted.

        Returns:
            Files to be published: the one that ends a load, or one that is full.

        Raises:
            ResumeMismatchError: The position came again with fewer rows than were published of it. Abort the call then.
        """
        call = self._call
        assert call is not None  # noqa: S101 - the writer begins every call
        self._check_skip_at_end(call)
        progress = self._behind_call()
        if call.load:
            progress = progress.at(progress.position if call.position is None else call.position, state="following")
        elif call.position is not None:
            progress = progress.at(call.position)
        for batch in self._call_rows.batches:
            self._buffer.add(batch)
        if not self._buffer.rows and not call.load and self.progress.state == "new" and not progress.rows:
            progress = replace(progress, state="new")  # an empty call begins nothing
        self.progress = progress
        self._call = None
        self._call_rows = _Gathered()
        if call.load or self._buffer.rows >= self._roll.rows or self._buffer.bytes >= self._roll.bytes:
            return [self._cut_buffer()]
        return []

    def abort(self) -> int:
        """Give up the call: its rows that are not in files are forgotten.

        Returns:
            How many of its rows are in files for good: a next call has to go on behind them. 0: it starts anew.
        """
        cut = self._call_cut_rows
        if cut:
            cut += self._call_skipped_rows
            self.progress = self._in_files = self._call_base
        else:
            self.skip = self._skip_before
        self._call = None
        self._call_rows = _Gathered()
        return cut

    def advance(self, position: Position) -> None:
        """Take note that nothing happened up to a position.

        Raises:
            ResumeMismatchError: It is the position whose published rows have not all come again.
        """
        self._check_skip_at_end(Call(position))
        self.progress = self.progress.at(position)
        if not self._buffer.rows:
            self._in_files = self.progress

    def take(self) -> FileContent | None:
        """Return what is buffered as a file to be published; None if nothing is."""
        return self._cut_buffer() if self._buffer.rows else None

    def discard(self) -> int:
        """Forget what is buffered, go back to the position before it; return how many rows."""
        rows = self.buffered_rows
        self._buffer = _Gathered()
        if rows:
            self.progress = self._in_files
        return rows

    def _skipped(self, batch: ChangeBatch) -> ChangeBatch:
        if self.skip is None or not batch.num_rows:
            return batch
        known = min(self.skip.rows, batch.num_rows)
        self.skip = self.skip.over(batch.slice(0, known), table=self._table)
        self._call_base = self._call_base.with_rows(batch.slice(0, known), exact=True)
        self._call_skipped_rows += known
        return batch.slice(known)

    def _check_skip_at_end(self, call: Call) -> None:
        if self.skip is None:
            return
        if call.load or (self.skip.at is not None and same_position(self.skip.at, call.position)):
            msg = (
                f"the source was read again and gave {self.skip.rows} rows fewer than stand in published files; "
                "make the source repeatable, or drop_table and load again"
            )
            raise ResumeMismatchError(msg, table=self._table, position=call.position)

    def _fits_behind_buffer(self, batch: ChangeBatch) -> bool:
        rows = self._buffer.rows + self._call_rows.rows + batch.num_rows
        return rows <= self._roll.rows and self._buffer.bytes + self._call_rows.bytes + batch.nbytes <= self._roll.bytes

    def _room(self, batch: ChangeBatch) -> int:
        """How many rows of the batch go into the file that the call fills; 0 if it is full."""
        if self._call_rows.rows and self._call_rows.bytes + batch.nbytes > self._roll.bytes:
            return 0
        return min(batch.num_rows, self._roll.rows - self._call_rows.rows)

    def _behind_call(self) -> Progress:
        progress = self._call_base
        for batch in self._call_rows.batches:
            progress = progress.with_rows(batch, exact=self._call_exact)
        return progress

    def _cut_call(self) -> FileContent:
        assert self._call is not None  # noqa: S101
        self._call_base = self._in_files = self._behind_call()
        content = _file(self._call_rows.batches, self._call_base, self._call.position)
        self._call_cut_rows += content.rows
        self._call_rows = _Gathered()
        return content

    def _cut_buffer(self) -> FileContent:
        self._in_files = self.progress
        content = _file(self._buffer.batches, self.progress, None)
        self._buffer = _Gathered()
        return content


def digest(batches: Sequence[ChangeBatch]) -> str:
    """Return ``"<rows>:<sha256>"`` over rows: the same for equal rows, however they are cut into batches.

    Hashed are, column by column: its name and type, one byte per row for "not NULL", then the values that are not NULL
    in Arrow's layout (little endian; text and binary: lengths as int32, then the bytes); at last the markers.
    """
    table = pa.Table.from_batches([b.rows for b in batches])
    markers = pa.chunked_array([b.markers for b in batches if b.markers is not None], pa.int32())
    hashed = hashlib.sha256()
    for name, column in [*zip(table.column_names, table.columns, strict=True), ("", markers)]:
        hashed.update(f"{name}\0{column.type}\0".encode())
        _hash_values(hashed, column.combine_chunks())
    return f"{table.num_rows}:{hashed.hexdigest()}"


def digest_rows(mark: str) -> int:
    """Return how many rows a digest covers.

    >>> digest_rows("12:ab")
    12
    """
    return int(mark.partition(":")[0])


def last_rows(batches: Sequence[ChangeBatch], most: int = DIGEST_ROWS) -> tuple[ChangeBatch, ...]:
    """Return the last ``most`` rows of some batches, as slices."""
    kept: list[ChangeBatch] = []
    for batch in reversed(batches):
        if most <= 0:
            break
        part = batch if batch.num_rows <= most else batch.slice(batch.num_rows - most)
        if part.num_rows:
            kept.append(part)
            most -= part.num_rows
    return tuple(reversed(kept))


def _hash_values(hashed: hashlib._Hash, column: pa.Array) -> None:
    hashed.update(_fixed_bytes(pc.cast(pc.is_valid(column), pa.uint8())))
    values = column.drop_null()
    if pa.types.is_boolean(values.type):
        values = pc.cast(values, pa.uint8())
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        hashed.update(_fixed_bytes(pc.binary_length(values)))
        hashed.update(_text_bytes(values))
    else:
        hashed.update(_fixed_bytes(values))


def _fixed_bytes(values: pa.Array) -> bytes:
    if not len(values):
        return b""
    width = values.type.bit_width // 8
    return values.buffers()[1].slice(values.offset * width, len(values) * width).to_pybytes()


def _text_bytes(values: pa.Array) -> bytes:
    _, offsets, data = values.buffers()
    if not len(values) or data is None:
        return b""
    ends = pa.Array.from_buffers(pa.int32(), len(values) + 1, [None, offsets], offset=values.offset)
    first, last = ends[0].as_py(), ends[-1].as_py()
    return data.slice(first, last - first).to_pybytes()


def _file(batches: Sequence[ChangeBatch], progress: Progress, at: Position) -> FileContent:
    phase: Phase = "loading" if progress.state == "loading" else "following"
    return FileContent(tuple(batches), phase, progress.position, progress.pending(at))


_MERGE_BATCHES = 1024
"""So many small batches become one: a batch of one row and 12 columns takes about 3 kB around its values."""


class _Gathered:
    """Batches with their sums, kept as they grow."""

    def __init__(self) -> None:
        self.batches: list[ChangeBatch] = []
        self.rows = 0
        self.bytes = 0
        self._merged = 0

    def add(self, batch: ChangeBatch) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        if len(self.batches) - self._merged >= _MERGE_BATCHES:
            self.batches[self._merged :] = [_merge(self.batches[self._merged :])]
            self._merged += 1


def _merge(batches: Sequence[ChangeBatch]) -> ChangeBatch:
    rows = pa.Table.from_batches([b.rows for b in batches]).combine_chunks().to_batches()[0]
    if batches[0].markers is None:
        return ChangeBatch(rows)
    return ChangeBatch(rows, pa.concat_arrays([b.markers for b in batches if b.markers is not None]))
