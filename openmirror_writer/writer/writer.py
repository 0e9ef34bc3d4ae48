"""The public class. Only wiring: `rows` encodes, `cut` gathers, `publish` and `fence` publish."""

from __future__ import annotations

import itertools
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn, Self

import pyarrow as pa

from openmirror_writer.changes import ChangeBatch, RowMarker
from openmirror_writer.errors import InvalidRowError, OpenMirrorError, SchemaRefusedError, UnknownPositionError
from openmirror_writer.position import Position, checked_position, compare
from openmirror_writer.rows import Needs, check_batch, encode, encode_keys, is_arrow, marked_stream, peek_columns
from openmirror_writer.schema import check_keys
from openmirror_writer.writer.cut import Call, Cutter, FileContent, Roll, State
from openmirror_writer.writer.fence import PublishedFile
from openmirror_writer.writer.publish import FilePublisher
from openmirror_writer.writer.statement import Resets, key_change, marked
from openmirror_writer.writer.worker import Worker
from openmirror_writer.zone import LandingTable

Rows = Any
"""Rows of a call: an iterable of mappings (column to value), or anything with ``__arrow_c_stream__``."""


class Writer:
    """Publishes rows of one table as landing files, exactly once in effect.

    Outside ``with`` each call is published before it returns. Inside, calls are gathered into files (`Roll`); leaving it
    publishes the rest; an exception that leaves it discards what is buffered and says so in a note on the exception.

    Feed the source from `position`; acknowledge to it what `published_position` says. Rows given without a position belong
    to the next position that is given. Where no position is ever given, delivery is at least once.

    Calls of several threads follow each other. After a failed publish the writer is of no more use: open a new one, which
    finds out what stands. A writer cannot be pickled, and not be used in a forked child.
    """

    def __init__(
        self, table: LandingTable, *, roll: Roll = Roll(), start_at: Position = None, advance_interval: float = 600.0  # noqa: B008 - an immutable value
    ) -> None:
        """Look at the table's folder and go on behind its last file.

        Args:
            table: From `LandingZone.table`.
            roll: When a file is full.
            start_at: The position of files that this software did not write; only looked at where the folder does not tell.
            advance_interval: Seconds after which a position is recorded though no row came; inside ``with`` only.

        Raises:
            SchemaRefusedError: Keys or columns differ from those that stand, or ``key_columns`` is missing for a new table.
            UnknownPositionError: The last file does not tell its position, and ``start_at`` is not given.
            TableGoneError: The table is being dropped, or its last file is gone.
            StorageError: The storage failed.
        """
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._table = table
        self._roll = roll
        self._advance_interval = advance_interval
        self._worker: Worker | None = None
        self._failure: BaseException | None = None
        self._publisher = FilePublisher(table, None if start_at is None else checked_position(start_at))
        table.zone.ensure_partner_events()
        resumed = self._publisher.resumed
        self._keys = resumed.keys
        self._cutter = Cutter(roll, resumed.progress, resumed.skip, table=table.label)
        self._oldest_row_at: float | None = None
        self._recorded_at = time.monotonic()

    # ------------------------------------------------------------------------------------------------------ where it is

    @property
    def state(self) -> State:
        """``new``: nothing was written yet; ``loading``: the initial load has not ended; ``following``: changes follow."""
        return self._cutter.progress.state

    @property
    def position(self) -> Position:
        """The last accepted position: read the source after this. None = from its beginning."""
        return self._cutter.progress.position

    @property
    def published_position(self) -> Position:
        """The position up to which everything is durable in the zone: acknowledge this to the source."""
        return self._publisher.published_position

    @property
    def columns(self) -> pa.Schema | None:
        """The table's columns; None while they are not known."""
        return self._publisher.columns

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
            rows: All rows, or none: then a file of no rows is published, for which the columns must be known.
            position: Where changes go on.

        Raises:
            OpenMirrorError: The table is ``following`` already.
            InvalidRowError: A row cannot be written as it is; nothing of the file that would hold it is published.
            ResumeMismatchError: The rows are not those that stand in files of an interrupted load.
        """
        with self._call(position):
            if self.state == "following":
                msg = "the initial load has ended already: use upsert, or drop_table and load again"
                raise OpenMirrorError(msg, table=self._table.label)
            with self._columns_known(rows) as source:
                batches = (ChangeBatch(b) for b in encode(source, self._needs(self._names()))) if self.columns else None
                if batches is None:
                    msg = "an initial load of no rows needs its columns declared: give columns= to zone.table"
                    raise SchemaRefusedError(msg, table=self._table.label)
                self._take(Call(checked_position(position), load=True), ((b, True) for b in batches))

    def insert(self, rows: Rows, *, position: Position = None) -> None:
        """Add rows (marker 0). The mirror does not look for duplicates; prefer `upsert` where the source may repeat.

        Args:
            rows: Full rows.
            position: Every row of the source up to it has been given, with these.

        Raises:
            InvalidRowError: A row cannot be written as it is; ``published_rows`` tells how many of this call stand in files.
            ResumeMismatchError: The rows are not those that stand in files beyond the position after a restart.
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
            old_keys: The key of each row before the change, in the order of the rows: mappings of exactly the key columns, or
                Arrow. The call is then one statement in one file: all deletes of old keys come before all rows.
            position: See `insert`.

        Raises:
            SchemaRefusedError: The table has no key columns.
            InvalidRowError: See `insert`; or old keys that do not fit the rows.
            OpenMirrorError: See the class.
        """
        if old_keys is None:
            self._rows_with(RowMarker.UPDATE, rows, position)
            return
        with self._changes_call(position), self._columns_known(rows) as source:
            self._refuse_keyless("update")
            batches: list[ChangeBatch] = []
            if self.columns is not None:
                new = list(encode(source, self._needs(self._names())))
                old = list(encode_keys(old_keys, self._needs(frozenset(self._keys))))
                batches = key_change(new, old, self.columns, self._keys, self._table.label)
            self._take(Call(checked_position(position), whole=True), ((b, False) for b in batches))

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
            with self._changes_call(position), self._columns_known(changes, has_marker=True) as source:
                pairs = marked_stream(source, self._needs(self._names()))
                self._take(Call(checked_position(position)), self._judged(ChangeBatch(*pair) for pair in pairs))
            return
        for batch in changes:
            if not isinstance(batch, ChangeBatch) or batch.markers is None:
                msg = "write() takes ChangeBatches with markers, or Arrow whose last column is __rowMarker__"
                raise InvalidRowError(msg, table=self._table.label, value=batch)
            with self._changes_call(batch.position), self._columns_known(batch.rows) as source:
                rows = check_batch(source, self._needs(self._names()), 0)
                judged = self._judged(iter([ChangeBatch(rows, batch.markers)]))
                self._take(Call(checked_position(batch.position)), judged)
        if position is not None:
            self.advance(position)

    def advance(self, position: Position) -> None:
        """Tell that nothing happened up to a position.

        It is recorded with the next file, else after ``advance_interval``, when ``with`` is left, or at once outside ``with``.
        Before the first file it is only remembered.

        Args:
            position: See `insert`.

        Raises:
            OpenMirrorError: The position does not survive JSON, or see the class.
        """
        with self._changes_call(position):
            self._cutter.advance(checked_position(position))
            if self._worker is None:
                self._record_advance()
                self._publisher.confirm()

    def flush(self) -> list[PublishedFile]:
        """Publish what is buffered and prove that all files stand in the chain.

        Returns:
            The files published since the last flush, in order.

        Raises:
            ConcurrentWriterError: Another writer published to this table.
            TableGoneError: The table was dropped meanwhile.
            StorageError: The storage failed.
        """
        with self._entered():
            self._publish_rest()
            return self._publisher.take_files()

    def discard(self) -> int:
        """Forget the rows that are buffered and go back to the position before them; return how many rows."""
        with self._entered():
            self._oldest_row_at = None
            return self._cutter.discard()

    # ------------------------------------------------------------------------------------------------- with, and the end

    def __enter__(self) -> Self:
        """Gather calls into files from here on; a thread encodes and publishes them."""
        with self._entered():
            if self._worker is not None:
                msg = "this writer is inside a with block already"
                raise OpenMirrorError(msg, table=self._table.label)
            self._worker = Worker(self._publisher.publish, _weak_call(weakref.WeakMethod(self._tick)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Publish the rest, or, on an exception, discard it; wait for the file in flight either way."""
        worker = self._worker
        try:
            if error is None:
                with self._entered():
                    self._publish_rest()
                    self._record_advance()
                    self._publisher.confirm()
        finally:
            if worker is not None:
                worker.stop()
            self._worker = None
            if error is not None:
                self._note(error, worker)

    def __del__(self) -> None:
        """Warn about rows that were never published."""
        cutter: Cutter | None = getattr(self, "_cutter", None)
        if cutter is not None and cutter.buffered_rows:
            msg = f"{cutter.buffered_rows} rows of {self._table.label} were never published: leave the with block, or call flush()"
            warnings.warn(msg, ResourceWarning, source=self, stacklevel=1)

    def __reduce__(self) -> NoReturn:
        """Refuse pickling: two copies would be two writers.

        Raises:
            OpenMirrorError: Always.
        """
        msg = "a writer cannot be pickled: pickle the LandingTable and open a writer where it is used"
        raise OpenMirrorError(msg, table=self._table.label)

    # ---------------------------------------------------------------------------------------------------------- internals

    def _rows_with(self, marker: RowMarker, rows: Rows, position: Position) -> None:
        with self._changes_call(position):
            if marker != RowMarker.INSERT:
                self._refuse_keyless(marker.name.lower())
            if marker == RowMarker.DELETE and self.columns is None:
                msg = "the columns are not known yet, and a delete does not tell them: give columns= to zone.table"
                raise SchemaRefusedError(msg, table=self._table.label)
            with self._columns_known(rows) as source:
                required = self._delete_names() if marker == RowMarker.DELETE else self._names()
                batches = marked(encode(source, self._needs(required)), marker) if self.columns else iter(())
                exact = marker == RowMarker.INSERT
                self._take(Call(checked_position(position)), ((b, exact) for b in batches))

    def _take(self, call: Call, batches: Iterator[tuple[ChangeBatch, bool]]) -> None:
        self._cutter.begin(call)
        try:
            for batch, exact in batches:
                self._publish_all(self._cutter.add(batch, exact=exact))
            last = self._cutter.end()
        except BaseException as error:
            published = self._cutter.abort()
            if isinstance(error, OpenMirrorError):
                error.published_rows = published
            elif published:
                error.add_note(f"{published} rows of this call stand in published files of {self._table.label}")
            raise
        self._publish_all(last)
        if not self._cutter.buffered_rows:
            self._oldest_row_at = None
        elif self._oldest_row_at is None:
            self._oldest_row_at = time.monotonic()
        if self._worker is None:
            self._publish_rest()
        elif call.load:
            self._publish_rest()
        else:
            self._roll_by_age()

    def _judged(self, batches: Iterable[ChangeBatch]) -> Iterator[tuple[ChangeBatch, bool]]:
        resets = Resets(self._keys)
        for batch in batches:
            if not self._keys and batch.markers is not None and set(batch.markers.to_pylist()) - {0}:
                self._refuse_keyless("write of another marker than 0")
            yield batch, resets.holds_exact(batch)

    def _publish_all(self, files: list[FileContent]) -> None:
        for content in files:
            if self._worker is not None:
                self._worker.submit(content)
            else:
                self._guarded(self._publisher.publish, content)
            self._recorded_at = time.monotonic()

    def _publish_rest(self) -> None:
        content = self._cutter.take()
        self._oldest_row_at = None
        self._publish_all([] if content is None else [content])
        if self._worker is not None:
            self._worker.wait()
        self._guarded(self._publisher.confirm)

    def _record_advance(self) -> None:
        """Record the position behind the last file, if it is not recorded and passes no row."""
        progress = self._cutter.progress
        unrecorded = progress.position != self._publisher.recorded_position
        if unrecorded and self._publisher.last and not self._cutter.buffered_rows and self._cutter.skip is None:
            self._guarded(self._publisher.advance, progress)
            self._recorded_at = time.monotonic()

    def _roll_by_age(self) -> None:
        oldest, age = self._oldest_row_at, self._roll.age
        if oldest is not None and age is not None and time.monotonic() - oldest >= age:
            content = self._cutter.take()
            self._oldest_row_at = None
            self._publish_all([] if content is None else [content])

    def _tick(self) -> None:
        """Called by the idle worker: what has waited long enough is published, at a call boundary only."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            age_due = self._roll.age is not None and self._oldest_row_at is not None
            if age_due and time.monotonic() - (self._oldest_row_at or 0.0) >= (self._roll.age or 0.0):
                content = self._cutter.take()
                self._oldest_row_at = None
                if content is not None:
                    self._publisher.publish(content)
                    self._publisher.confirm()
            elif time.monotonic() - self._recorded_at >= self._advance_interval:
                self._recorded_at = time.monotonic()
                self._record_advance()
                self._publisher.confirm()
        finally:
            self._lock.release()

    def _guarded(self, publish: Callable[..., None], *args: Any) -> None:  # noqa: ANN401
        try:
            publish(*args)
        except BaseException as error:
            self._failure = error
            raise

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Let one thread in, and only where this writer may still be used."""
        if os.getpid() != self._pid:
            msg = "this writer was opened in another process: open one in each process"
            raise OpenMirrorError(msg, table=self._table.label)
        with self._lock:
            if self._failure is None and self._worker is not None and self._worker.failure is not None:
                self._failure = self._worker.failure
                raise self._failure
            if self._failure is not None:
                msg = f"this writer failed before ({self._failure}): open a new one, which finds out what stands"
                raise OpenMirrorError(msg, table=self._table.label) from self._failure
            try:
                yield
            finally:
                if self._worker is not None and self._worker.failure is not None:
                    self._failure = self._worker.failure

    @contextmanager
    def _call(self, position: Position) -> Iterator[None]:
        with self._entered():
            checked_position(position)
            if not self._keys and position is not None:
                self._check_keyless_position(position)
            yield

    @contextmanager
    def _changes_call(self, position: Position) -> Iterator[None]:
        with self._call(position):
            if self.state == "loading":
                msg = "the initial load was interrupted: call initial_load again with the same rows first"
                raise OpenMirrorError(msg, table=self._table.label)
            yield

    def _check_keyless_position(self, position: Position) -> None:
        """Rows of a keyless table cannot be published twice without harm, so its positions must only go up."""
        if compare(position, position) is None:
            msg = "a table without key columns needs positions that have an order: ints, text, lists of them, or a map of partitions"
            raise UnknownPositionError(msg, table=self._table.label, position=position)
        order = 0 if self.position is None else compare(self.position, position)
        if order is None or order > 0:
            msg = f"the position goes back behind {self.position!r}: in a table without keys its rows would stand twice"
            raise UnknownPositionError(msg, table=self._table.label, position=position)

    @contextmanager
    def _columns_known(self, rows: Rows, *, has_marker: bool = False) -> Iterator[Rows]:
        """Infer the columns from the first rows, if nothing told them; forget them again if the call fails."""
        if self.columns is not None:
            yield rows
            return
        rows = _peeked(rows)
        if rows is None:
            yield []
            return
        columns, source = peek_columns(rows, self._table.label)
        if has_marker:
            columns = columns.remove(len(columns) - 1)
        check_keys(self._keys, columns, table=self._table.label)
        self._publisher.columns = columns
        try:
            yield source
        except BaseException:
            if not self._publisher.last:
                self._publisher.columns = None
            raise

    def _needs(self, required: frozenset[str]) -> Needs:
        columns = self.columns if self.columns is not None else pa.schema([])
        return Needs(columns=columns, keys=self._keys, required=required, table=self._table.label)

    def _names(self) -> frozenset[str]:
        return frozenset(self.columns.names if self.columns is not None else ())

    def _delete_names(self) -> frozenset[str]:
        columns = self.columns if self.columns is not None else pa.schema([])
        return frozenset(self._keys) | {f.name for f in columns if not f.nullable}

    def _refuse_keyless(self, verb: str) -> None:
        if not self._keys:
            msg = f"{verb} needs key columns, and this table has none: use insert, or make the table with key_columns="
            raise SchemaRefusedError(msg, table=self._table.label)

    def _note(self, error: BaseException, worker: Worker | None) -> None:
        rows = self._cutter.discard()
        self._oldest_row_at = None
        if rows:
            error.add_note(f"{rows} buffered rows of {self._table.label} were discarded; go on from position {self.position!r}")
        if worker is not None and worker.failure is not None:
            self._failure = worker.failure
            if worker.failure is not error:
                error.add_note(f"the file in flight of {self._table.label} failed too: {worker.failure}")


def _weak_call(method: weakref.WeakMethod[Callable[[], None]]) -> Callable[[], None]:
    """Call a method while its object lives: the worker's thread must not keep a forgotten writer alive."""

    def call() -> None:
        bound = method()
        if bound is not None:
            bound()

    return call


def _peeked(rows: Rows) -> Rows | None:
    """Return the rows, None if there are none; odd inputs go on to `rows`, which says what is wrong with them."""
    if is_arrow(rows) or isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        return rows
    iterator = iter(rows)
    for first in iterator:
        return itertools.chain([first], iterator)
    return None
