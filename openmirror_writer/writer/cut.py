"""Which rows go into which file, and what the file says of them. Pure: no storage, no clock.

A call that fits a file is never split. Of a longer one, the part that stands in files before its position is reached
is *pending*: upserts, updates and deletes can simply be published again (``safe``); inserts and initial loads cannot,
so the next writer skips those rows, after comparing a digest of the last of them (``exact``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from openmirror_writer.changes import ChangeBatch
from openmirror_writer.errors import OpenMirrorError, ResumeMismatchError
from openmirror_writer.position import Position, same_position
from openmirror_writer.record import SINGLE_PARTITION, Pending, Phase
from openmirror_writer.writer.digest import DIGEST_ROWS, digest, digest_rows, last_rows

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
        return replace(self, rows=self.rows + batch.num_rows, exact=self.exact or exact, tail=tail, tail_rows=tail_rows)

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

    @classmethod
    def of(cls, pending: Mapping[str, Pending]) -> Skip | None:
        """Return what a record counts as pending and not to be published again; None if nothing, or ``safe``."""
        rows = pending.get(SINGLE_PARTITION)
        return None if rows is None or rows.digest is None else cls(rows.rows, rows.at, rows.digest)

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
                "initial loads must come again in the same order; make the source repeatable, or drop_table and load "
                "again"
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
        self._without_buffer = (progress, skip)  # where to go on if the buffer is lost
        self._buffer = _Gathered()
        self._cut_rows = 0
        self.rows_in_hand = 0  # of files that were cut, and not yet handed over to be published
        self._is_ending = False  # the rows of a call are on their way into the buffer
        self._call: Call | None = None
        self._call_rows = _Gathered()
        self._call_base = progress  # behind those rows of the call that are cut or skipped
        self._call_exact = self._call_cut_exact = False
        self._call_cut_rows = self.skipped_rows = 0
        self._skip_before = skip

    @property
    def buffered_rows(self) -> int:
        """Rows that wait for a file."""
        return self._buffer.rows

    @property
    def is_whole(self) -> bool:
        """Whether each row stands in one place; an interrupt can leave some in none, or in two."""
        return not self.rows_in_hand and not self._is_ending

    @property
    def rows_taken(self) -> int:
        """Rows of all calls that ended, in files or buffered; those skipped or discarded are not counted."""
        return self._cut_rows + self._buffer.rows

    def begin(self, call: Call) -> None:
        """Begin a call; end it with `end` or `abort`.

        Raises:
            OpenMirrorError: Another call is under way in this thread.
        """
        self._refuse_inside_call()
        self._call = call
        self._call_rows = _Gathered()
        state: State = "loading" if call.load else "following"
        self._call_base = replace(self.progress, state=state)
        self._call_exact = self._call_cut_exact = False
        self._call_cut_rows = self.skipped_rows = 0
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
        self._is_ending = True
        for batch in self._call_rows.batches:
            self._buffer.add(batch)
        if not self._buffer.rows and not call.load and self.progress.state == "new" and not progress.rows:
            progress = replace(progress, state="new")  # an empty call begins nothing
        self.progress = progress
        if call.position is not None and not self._buffer.rows:
            self._without_buffer = (progress, self.skip)
        self._call = None
        self._call_rows = _Gathered()
        self._is_ending = False
        if call.load or self._buffer.rows >= self._roll.rows or self._buffer.bytes >= self._roll.bytes:
            return [self._cut_buffer()]
        return []

    def abort(self) -> int:
        """Give up the call: the calls before it stay as they are.

        Those of its rows that stand in files and must not be published twice have to come again, with the whole call;
        they are compared and skipped, as after a restart.

        Returns:
            How many of its rows stand in files; 0 behind `end`.
        """
        if self._call is None:
            return 0
        if self._call_cut_rows:
            self.progress = replace(self.progress, state=self._call_base.state)
            self.skip = self._skip_of_call(self._call)
        else:
            self.skip = self._skip_before
        self._call = None
        self._call_rows = _Gathered()
        return self._call_cut_rows + self.skipped_rows

    def advance(self, position: Position) -> None:
        """Take note that nothing happened up to a position.

        Raises:
            ResumeMismatchError: It is the position whose published rows have not all come again.
            OpenMirrorError: The position is None; or a call is under way in this thread.
        """
        self._refuse_inside_call()
        if position is None:
            msg = "advance got None, which would go back to the beginning of the source: give the position reached"
            raise OpenMirrorError(msg, table=self._table)
        self._check_skip_at_end(Call(position))
        self.progress = self.progress.at(position)
        if not self._buffer.rows:
            self._without_buffer = (self.progress, self.skip)

    def take(self) -> FileContent | None:
        """Return what is buffered as a file to be published; None if nothing is.

        Raises:
            OpenMirrorError: A call is under way in this thread.
        """
        self._refuse_inside_call()
        return self._cut_buffer() if self._buffer.rows else None

    def handed_over(self, content: FileContent) -> None:
        """Take note that a file is published, or somebody else takes care that it is."""
        self.rows_in_hand -= content.rows

    def discard(self) -> int:
        """Forget what is buffered, and go on as a new writer would that finds the last file; return how many rows.

        Raises:
            OpenMirrorError: A call is under way in this thread.
        """
        self._refuse_inside_call()
        rows = self.buffered_rows
        self._buffer = _Gathered()
        self.progress, self.skip = self._without_buffer
        return rows

    def _refuse_inside_call(self) -> None:
        if self._call is not None:
            msg = "the rows of a call use its own writer while they are read: make the calls one after the other"
            raise OpenMirrorError(msg, table=self._table)

    def _skip_of_call(self, call: Call) -> Skip | None:
        """Return what must be skipped when the call comes again, some of whose rows are in files."""
        is_exact = self._call_cut_exact or self.skipped_rows
        if not is_exact or not self._call_base.pending(call.position):
            return None
        rows = self._call_cut_rows + self.skipped_rows
        return Skip(rows, call.position, digest(last_rows(self._call_base.tail, min(rows, DIGEST_ROWS))))

    def _skipped(self, batch: ChangeBatch) -> ChangeBatch:
        if self.skip is None or not batch.num_rows:
            return batch
        known = min(self.skip.rows, batch.num_rows)
        self.skip = self.skip.over(batch.slice(0, known), table=self._table)
        self._call_base = self._call_base.with_rows(batch.slice(0, known), exact=True)
        self.skipped_rows += known
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
        rows = min(batch.num_rows, self._roll.rows - self._call_rows.rows)
        fitting = _rows_within(batch.slice(0, rows), self._roll.bytes - self._call_rows.bytes)
        return fitting or (0 if self._call_rows.rows else 1)  # a file holds one row, however large

    def _behind_call(self) -> Progress:
        progress = self._call_base
        for batch in self._call_rows.batches:
            progress = progress.with_rows(batch, exact=self._call_exact)
        return progress

    def _cut_call(self) -> FileContent:
        assert self._call is not None  # noqa: S101 - only a call is cut
        base = self._behind_call()
        content = self._cut(self._call_rows, base, self._call.position)
        self._call_base = base  # not before: an interrupt of the cut leaves the call as it was
        self._call_cut_rows += content.rows
        self._call_cut_exact = self._call_exact
        self._call_rows = _Gathered()
        return content

    def _cut_buffer(self) -> FileContent:
        content = self._cut(self._buffer, self.progress, None)
        self._buffer = _Gathered()
        return content

    def _cut(self, rows: _Gathered, progress: Progress, at: Position) -> FileContent:
        content = _file(rows.batches, progress, at)
        behind = (Progress(progress.state, progress.position), Skip.of(content.pending))
        count = content.rows
        self.rows_in_hand += count  # first: from here on an interrupt loses them
        self._cut_rows += count
        self._without_buffer = behind
        return content


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
            self.batches[self._merged :] = _merge(self.batches[self._merged :])
            self._merged = len(self.batches)


def _merge(batches: Sequence[ChangeBatch]) -> Sequence[ChangeBatch]:
    """Make one batch of many; leave them where one cannot hold them, for its text is more than 2 GiB."""
    rows = pa.Table.from_batches([b.rows for b in batches]).combine_chunks().to_batches()
    if len(rows) != 1:
        return batches
    if batches[0].markers is None:
        return [ChangeBatch(rows[0])]
    return [ChangeBatch(rows[0], pa.concat_arrays([b.markers for b in batches if b.markers is not None]))]


def _rows_within(batch: ChangeBatch, most: int) -> int:
    """Return how many of its first rows take at most so many bytes, by halves."""
    if batch.nbytes <= most:
        return batch.num_rows
    low, high = 0, batch.num_rows
    while low < high:
        middle = (low + high + 1) // 2
        if batch.slice(0, middle).nbytes <= most:
            low = middle
        else:
            high = middle - 1
    return low
