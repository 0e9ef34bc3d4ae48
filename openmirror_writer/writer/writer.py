"""The public class. Only wiring: `rows` encodes, `cut` gathers, `publish` and `fence` publish."""

from __future__ import annotations

import copy
import time
import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Self

import pyarrow as pa

from openmirror_writer.changes import ChangeBatch, RowMarker
from openmirror_writer.errors import InvalidRowError, OpenMirrorError, SchemaRefusedError
from openmirror_writer.position import Position, checked_position, same_position
from openmirror_writer.rows import check_batch, encode, encode_keys, is_arrow, marked_stream
from openmirror_writer.schema import Columns
from openmirror_writer.writer.calls import Rows, accepted, check_keyless_position, no_changes, some_rows
from openmirror_writer.writer.cut import Call, Cutter, FileContent, Roll, State
from openmirror_writer.writer.fence import PublishedFile
from openmirror_writer.writer.gate import Gate
from openmirror_writer.writer.publish import FilePublisher
from openmirror_writer.writer.schedule import Schedule
from openmirror_writer.writer.statement import judged, key_change, marked, refuse_keyless
from openmirror_writer.writer.worker import Worker
from openmirror_writer.zone import LandingTable


class Writer:
    """Publishes rows of one table as landing files, exactly once in effect.

    Outside ``with`` each call is published before it returns. Inside, calls are gathered into files (`Roll`); leaving
    it publishes the rest; an exception that leaves it discards what is buffered and says so in a note on the exception.

    Feed the source from `position`; acknowledge to it what `published_position` says. Rows given without a position
    belong to the next position that is given. Where no position is ever given, delivery is at least once.

    A call that fails over a row leaves all calls before it as they are. Mend the row and give the whole call again:
    where it had filled files (``error.published_rows``), those of its rows that must not be published twice are
    compared and skipped.

    Calls of several threads follow each other. After a failed publish the writer is of no more use: open a new one,
    which finds out what stands. A writer cannot be pickled, and not be used in a forked child.
    """

    def __init__(
        self,
        table: LandingTable,
        *,
        roll: Roll = Roll(),  # noqa: B008 - an immutable value
        start_at: Position = None,
        advance_interval: float = 600.0,
    ) -> None:
        """Look at the table's folder and go on behind its last file.

        Args:
            table: From `LandingZone.table`.
            roll: When a file is full.
            start_at: The position of files that this software did not write; only looked at where the folder does not
                tell.
            advance_interval: Seconds after which a position is recorded though no row came; inside ``with`` only.

        Raises:
            SchemaRefusedError: Keys or columns do not go on with those that stand (see `change_columns`), or
                ``key_columns`` is missing for a new table.
            UnknownPositionError: The last file does not tell its position, and ``start_at`` is not given.
            TableGoneError: The table is being dropped or replaced, or its last file is gone.
            StorageError: The storage failed.
        """
        self._table = table
        self._worker: Worker | None = None
        self._publisher = FilePublisher(table, None if start_at is None else checked_position(start_at))
        table.zone.ensure_partner_events()
        resumed = self._publisher.resumed
        self._keys = resumed.keys
        self._columns = self._publisher.columns
        self._cutter = Cutter(roll, resumed.progress, resumed.skip, table=table.label)
        cutter = self._cutter
        self._gate = Gate(table.label, lambda: cutter.is_whole)
        self._schedule = Schedule(age=roll.age, advance_interval=advance_interval, clock=time.monotonic)

    # ------------------------------------------------------------------------------------------------------ where it is

    @property
    def state(self) -> State:
        """``new``: nothing written yet; ``loading``: the initial load has not ended; ``following``: changes follow."""
        return self._cutter.progress.state

    @property
    def position(self) -> Position:
        """The last accepted position: read the source after this. None = from its beginning."""
        return copy.deepcopy(self._cutter.progress.position)

    @property
    def published_position(self) -> Position:
        """The position up to which everything is durable in the zone: acknowledge this to the source."""
        return copy.deepcopy(self._publisher.published_position)

    @property
    def columns(self) -> pa.Schema | None:
        """The columns of the next file, those that the source no longer has included; None while they are not known."""
        return self._columns.schema

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The table's key columns; empty if it takes inserts only."""
        return self._keys

    def __repr__(self) -> str:
        """Name table, state and position."""
        return f"Writer({self._table.label!r}, state={self.state!r}, position={self.position!r})"

    # ------------------------------------------------------------------------------------------------------------ verbs

    def initial_load(self, rows: Rows, *, position: Position = None) -> None:
        """Write the table's first content, without markers; this call publishes its last file.

        After a crash call it again with the same rows in the same order: those that stand are compared and skipped.

        Args:
            rows: All rows, or none: then a Parquet file of no rows is published, for which the columns must be known;
                of text no file is.
            position: Where changes go on.

        Raises:
            OpenMirrorError: The table is ``following`` already.
            InvalidRowError: A row cannot be written as it is; nothing of the file that would hold it is published.
            ResumeMismatchError: The rows are not those that stand in files of an interrupted load.
        """
        with self._call(position) as at:
            if self.state == "following":
                msg = "the initial load has ended already: use upsert, or drop_table and load again"
                raise OpenMirrorError(msg, table=self._table.label)
            with self._columns_known(rows) as source:
                if self.columns is None:
                    msg = "an initial load of no rows needs its columns declared: give columns= to zone.table"
                    raise SchemaRefusedError(msg, table=self._table.label)
                batches = encode(source, self._columns.full_rows())
                self._take(Call(at, load=True), ((ChangeBatch(b), True) for b in batches))

    def insert(self, rows: Rows, *, position: Position = None) -> None:
        """Add rows (marker 0). The mirror does not look for duplicates; prefer `upsert` where the source may repeat.

        Args:
            rows: Full rows.
            position: Every row of the source up to it has been given, with these.

        Raises:
            InvalidRowError: A row cannot be written as it is; ``published_rows`` tells how many of this call stand in
                files.
            ResumeMismatchError: After a restart, or a call that failed: the rows are not those that stand in files
                beyond the position.
            OpenMirrorError: See the class.
        """
        self._rows_with(RowMarker.INSERT, rows, position)

    def upsert(self, rows: Rows, *, position: Position = None) -> None:
        """Replace the rows of these keys, or add them (marker 4).

        Args:
            rows: Full rows.
            position: See `insert`.

        Raises:
            SchemaRefusedError: The table has no key columns.
            InvalidRowError: See `insert`.
            OpenMirrorError: See the class.
        """
        self._rows_with(RowMarker.UPSERT, rows, position)

    def delete(self, rows: Rows, *, position: Position = None) -> None:
        """Remove the rows of these keys (marker 2).

        Args:
            rows: At least the key columns and those that are declared not null.
            position: See `insert`.

        Raises:
            SchemaRefusedError: The table has no key columns, or its columns are not known yet.
            InvalidRowError: See `insert`.
            OpenMirrorError: See the class.
        """
        self._rows_with(RowMarker.DELETE, rows, position)

    def update(self, rows: Rows, old_keys: Rows = None, *, position: Position = None) -> None:
        """Replace the rows of these keys, or add them (marker 1); with ``old_keys``, also where the key itself changed.

        Args:
            rows: Full rows.
            old_keys: The key of each row before the change, in the order of the rows: mappings of exactly the key
                columns, or Arrow. The call is then one statement in one file: all deletes of old keys come before all
                rows.
            position: See `insert`.

        Raises:
            SchemaRefusedError: The table has no key columns.
            InvalidRowError: See `insert`; or old keys that do not fit the rows.
            OpenMirrorError: See the class.
        """
        if old_keys is None:
            self._rows_with(RowMarker.UPDATE, rows, position)
            return
        with self._changes_call(position) as at, self._columns_known(rows) as source:
            refuse_keyless("update", self._keys, self._table.label)
            batches: list[ChangeBatch] = []
            if self.columns is not None:
                needs = self._columns.full_rows()
                new, old = list(encode(source, needs)), list(encode_keys(old_keys, needs))
                batches = key_change(new, old, self.columns, self._keys, self._table.label)
            elif some_rows(old_keys) is not None:
                msg = "update got old_keys and no rows: give one old key for each row, in the same order"
                raise InvalidRowError(msg, table=self._table.label)
            self._take(Call(at, whole=True), ((b, False) for b in batches))

    def write(self, changes: Any, *, position: Position = None) -> None:  # noqa: ANN401 - see Args
        """Write mixed changes in their order.

        Args:
            changes: A `ChangeBatch`, an iterable of them (each is a call of its own), or Arrow whose last column is
                ``__rowMarker__`` (one call).
            position: See `insert`; what a `ChangeBatch` carries holds for that batch.

        Raises:
            InvalidRowError: See `insert`; or a marker that is none of 0, 1, 2 and 4.
            SchemaRefusedError: A table without key columns got another marker than 0.
            OpenMirrorError: See the class.
        """
        if isinstance(changes, ChangeBatch):
            changes = [changes]
        if is_arrow(changes):
            with self._changes_call(position) as at, self._columns_known(changes) as source:
                pairs = marked_stream(source, self._columns.full_rows())
                self._take(Call(at), judged((ChangeBatch(*pair) for pair in pairs), self._keys, self._table.label))
            return
        with self._changes_call(position):  # refuses before the first batch is taken
            if not isinstance(changes, Iterable):
                raise no_changes(changes, self._table.label)
        for batch in changes:
            if not isinstance(batch, ChangeBatch) or batch.markers is None:
                raise no_changes(batch, self._table.label)
            with self._changes_call(batch.position) as at, self._columns_known(batch.rows):
                rows = check_batch(batch.rows, self._columns.full_rows(), 0)
                self._take(Call(at), judged([ChangeBatch(rows, batch.markers)], self._keys, self._table.label))
        if position is not None:
            self.advance(position)

    def change_columns(self, columns: Columns) -> None:
        """Go on with the columns that the source has now; what is buffered is published first.

        New columns stand behind the others, and are NULL in all rows before. A column that is not among ``columns``
        stays in the files: NULL where a row does not bring it. Before the first row any columns may be given.

        Args:
            columns: All columns of the source, as for `LandingZone.table`; a column that stays is declared as it was.

        Raises:
            SchemaRefusedError: The mirror would stop at the change; nothing was published for it. By the rules of the
                landing zone: 7.3 a column that is not null came or went, 7.4 a type or ``not null`` changed, 7.5 a name
                changed by case only, 7.6 a key column went.
            OpenMirrorError: See the class.
        """
        with self._gate.entered():
            changed = self._columns.changed(columns, is_new=self.state == "new")
            if changed != self._columns.current:
                self._publish_rest()
                self._columns.current = changed

    def advance(self, position: Position) -> None:
        """Tell that nothing happened up to a position.

        It is recorded with the next file, else after ``advance_interval``, when ``with`` is left, or at once outside
        ``with``. Before the first file it is only remembered.

        Args:
            position: See `insert`.

        Raises:
            OpenMirrorError: The position is None or does not survive JSON, or see the class.
        """
        with self._changes_call(position) as at:
            self._cutter.advance(at)
            if self._worker is None:
                self._settle()

    def flush(self) -> list[PublishedFile]:
        """Publish what is buffered and prove that all files stand in the chain.

        Returns:
            The files published since the last flush, in order.

        Raises:
            ConcurrentWriterError: Another writer published to this table.
            TableGoneError: The table was dropped meanwhile.
            StorageError: The storage failed.
        """
        with self._gate.entered():
            self._publish_rest()
            self._gate.guarded(self._publisher.confirm)
            return self._publisher.take_files()

    def discard(self) -> int:
        """Forget the rows that are buffered and go back to the position before them.

        Go on as after a restart: read the source after `position`. Rows beyond it that stand in files and must not be
        published twice are compared and skipped.

        Returns:
            How many rows were buffered.

        Raises:
            OpenMirrorError: See the class.
        """
        with self._gate.entered():
            self._schedule.buffer_left()
            return self._cutter.discard()

    # ------------------------------------------------------------------------------------------------ with, and the end

    def __enter__(self) -> Self:
        """Gather calls into files from here on; a thread encodes and publishes them."""
        with self._gate.entered():
            if self._worker is not None:
                msg = "this writer is inside a with block already"
                raise OpenMirrorError(msg, table=self._table.label)
            publish = partial(self._gate.guarded, self._publisher.publish)
            self._worker = Worker(self._publisher.encode, publish, weakref.WeakMethod(self._tick))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Publish the rest, or, on an exception, discard it; wait for the file in flight either way."""
        if error is not None and self._gate.is_forked:
            return  # the worker's thread and the rows are the parent's
        with self._gate.entered_at_the_end():
            try:
                if error is None:
                    self._gate.refuse_failed()
                    self._settle()
            finally:
                if self._worker is not None:
                    self._worker.stop()
                self._worker = None
                if error is not None:
                    self._note(error)

    def __del__(self) -> None:
        """Warn about rows that were never published."""
        cutter: Cutter | None = getattr(self, "_cutter", None)
        if cutter is not None and cutter.buffered_rows and not self._gate.is_forked:
            msg = (
                f"{cutter.buffered_rows} rows of {self._table.label} were never published: "
                "leave the with block, or call flush()"
            )
            warnings.warn(msg, ResourceWarning, source=self, stacklevel=1)

    def __reduce__(self) -> NoReturn:
        """Refuse pickling: two copies would be two writers.

        Raises:
            OpenMirrorError: Always.
        """
        msg = "a writer cannot be pickled: pickle the LandingTable and open a writer where it is used"
        raise OpenMirrorError(msg, table=self._table.label)

    # ------------------------------------------------------------------------------------------------------- internals

    def _rows_with(self, marker: RowMarker, rows: Rows, position: Position) -> None:
        with self._changes_call(position) as at:
            if marker != RowMarker.INSERT:
                refuse_keyless(marker.name.lower(), self._keys, self._table.label)
            if marker == RowMarker.DELETE and self.columns is None and some_rows(rows) is not None:
                msg = "the columns are not known yet, and a delete does not tell them: give columns= to zone.table"
                raise SchemaRefusedError(msg, table=self._table.label)
            with self._columns_known(rows) as source:
                needs = self._columns.delete_rows() if marker == RowMarker.DELETE else self._columns.full_rows()
                batches = marked(encode(source, needs) if self.columns else (), marker)
                self._take(Call(at), ((b, marker == RowMarker.INSERT) for b in batches))

    def _take(self, call: Call, batches: Iterator[tuple[ChangeBatch, bool]]) -> None:
        """Cut the rows of a call into files; the errors of this call say how many of its rows stand in files."""
        batches = accepted(batches, self._table, self._keys, call.position, self._cutter.progress.position)
        rows_before = self._cutter.rows_taken
        self._cutter.begin(call)
        try:
            for batch, exact in batches:
                self._publish_all(self._cutter.add(batch, exact=exact))
            self._publish_all(self._cutter.end())
            self._schedule.call_ended(rows_wait=self._cutter.buffered_rows > 0)
            if self._worker is None or call.load:
                self._settle()
            elif self._schedule.is_file_due:
                self._publish_all(self._taken())
        except BaseException as error:
            published = self._cutter.abort()
            if self._gate.failure is not None:  # not all that was cut stands; what stands is first in, first out
                published = self._cutter.skipped_rows + max(self._publisher.rows - rows_before, 0)
            if isinstance(error, OpenMirrorError):
                error.published_rows = published
            elif published:
                error.add_note(f"{published} rows of this call stand in published files of {self._table.label}")
            raise

    def _publish_all(self, files: list[FileContent]) -> None:
        for content in files:
            if not content.rows and not self._table.format.can_be_empty:
                pass  # an initial load of no rows: there is nothing to publish
            elif self._worker is not None:
                self._gate.guarded(self._worker.submit, content)
            else:
                self._gate.guarded(self._publisher.publish, content)
            self._handed_over(content)

    def _handed_over(self, content: FileContent) -> None:
        self._cutter.handed_over(content)
        self._schedule.buffer_left()
        self._schedule.recorded()

    def _publish_rest(self) -> None:
        self._publish_all(self._taken())
        if self._worker is not None:
            self._worker.wait()

    def _settle(self) -> None:
        """Make durable all that was accepted: rows in files, a position without rows in a record behind them."""
        self._publish_rest()
        self._record_advance()
        self._gate.guarded(self._publisher.confirm)

    def _record_advance(self) -> None:
        """Record the position behind the last file, if it is not recorded and passes no row."""
        progress = self._cutter.progress
        is_recorded = same_position(progress.position, self._publisher.recorded_position)
        if not is_recorded and self._publisher.last and not self._cutter.buffered_rows and self._cutter.skip is None:
            self._gate.guarded(self._publisher.advance, progress)
            self._schedule.recorded()

    def _taken(self) -> list[FileContent]:
        content = self._cutter.take()
        return [] if content is None else [content]

    def _tick(self) -> None:
        """Called by the idle worker: what has waited long enough is published, at a call boundary only."""
        with self._gate.entered_if_free() as is_free:
            if is_free:
                self._gate.guarded(self._publish_what_waited)

    def _publish_what_waited(self) -> None:
        for content in self._taken() if self._schedule.is_file_due else []:
            self._publisher.publish(content)
            self._handed_over(content)
            self._publisher.confirm()
        if self._schedule.is_record_due:
            self._schedule.recorded()
            self._record_advance()
            self._publisher.confirm()
        if self._publisher.proof_is_due:  # the feed went quiet: what stands is durable, so say so
            self._publisher.confirm()

    @contextmanager
    def _call(self, position: Position) -> Iterator[Position]:
        """Enter with a private copy of the call's position, if it may be one."""
        with self._gate.entered():
            at = checked_position(position)
            if not self._keys and at is not None:
                check_keyless_position(at, self._cutter.progress.position, self._table.label)
            yield at

    @contextmanager
    def _changes_call(self, position: Position) -> Iterator[Position]:
        with self._call(position) as at:
            if self.state == "loading":
                msg = "the initial load was interrupted: call initial_load again with the same rows first"
                raise OpenMirrorError(msg, table=self._table.label)
            yield at

    def _columns_known(self, rows: Rows) -> AbstractContextManager[Rows]:
        return self._columns.told_by(rows, lambda: self.state == "new")

    def _note(self, error: BaseException) -> None:
        """Say on an exception that leaves the block what becomes of the rows."""
        rows = self._cutter.discard()
        self._schedule.buffer_left()
        if rows:
            error.add_note(
                f"{rows} buffered rows of {self._table.label} were discarded; go on from position {self.position!r}"
            )
        self._gate.note_failure(error)
