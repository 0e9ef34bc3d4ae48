"""The mirror: plays the service, and applies the files of a landing zone to Delta tables."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from openmirror_writer.errors import ApplyError, OpenMirrorError, SchemaRefusedError, UnknownPositionError
from openmirror_writer.footers import read_footer
from openmirror_writer.formats import Footer
from openmirror_writer.spark.mirror.commit import DeltaTable, run_commit
from openmirror_writer.spark.mirror.discover import landed_tables, mirrored_tables
from openmirror_writer.spark.mirror.log import read_target, remove_table
from openmirror_writer.spark.mirror.report import MirrorReport, TableReport
from openmirror_writer.spark.mirror.state import TableName, Unreadable
from openmirror_writer.spark.mirror.steps import (
    FILES_PER_COMMIT,
    Bad,
    Commit,
    CommitAnswer,
    Conflict,
    Done,
    PassResult,
    ReadFooters,
    ReadTarget,
    RemoveTarget,
    Skipped,
    table_pass,
)
from openmirror_writer.storage import Steps, answer_to, listing, open_storage, perform
from openmirror_writer.zone import FolderState, LandingZone

_FOOTER_THREADS = 16
"""Footers are waited for, not computed; 16 reads at a time are what one storage account answers gladly."""

_logger = logging.getLogger(__name__)


class Mirror:
    """Applies a landing zone to Delta tables, exactly once, however often it is stopped.

    A table lands in ``<target>/<schema or "dbo">/<table>``. A zone has one target; several mirrors may run on the two
    at once, of one process: on a local disk Delta's log does not keep two processes from overwriting each other's
    commit (it checks, then renames). Never run one on a zone that a service reads: either would move the other's files.

    The session must know Delta. Its settings are left as they are, but for the two of Delta's transaction and the
    number of shuffle partitions, which are put back. A session serves one mirror at a time.
    """

    def __init__(
        self,
        spark: SparkSession,
        zone: LandingZone,
        target: str | os.PathLike[str],
        *,
        deletion_vectors: bool = True,
        files_per_commit: int = FILES_PER_COMMIT,
    ) -> None:
        """Name zone and target; nothing is read or written yet.

        Args:
            spark: A session with Delta Lake, such as `openmirror_writer.spark.local_session`; Spark Connect too.
            zone: The landing zone.
            target: The folder below which the Delta tables stand: a local path.
            deletion_vectors: Whether new tables have deletion vectors, as the service's have.
            files_per_commit: The most files of one table that are applied at once; a longer backlog takes several
                commits.

        Raises:
            StorageError: The target is of a kind that this version does not know.
        """
        self._spark = spark
        self._zone = zone
        self._target = open_storage(target)
        self._deletion_vectors = deletion_vectors
        self._files_per_commit = files_per_commit
        self._stopping = threading.Event()

    def __repr__(self) -> str:
        """Name zone and target."""
        return f"Mirror({self._zone.url!r} -> {self._target.url!r})"

    def run_once(self) -> MirrorReport:
        """Apply all new files of all tables, move those that are applied, and drop tables whose folder is gone.

        A table that fails does not stop the others: everything before its bad file is applied, and the report says why
        it stands.

        Returns:
            How each table stands.

        Raises:
            StorageError: The zone or the target cannot be listed.
        """
        began = time.monotonic()
        reports: dict[str, TableReport] = {}
        for table, fault in self._tables().items():
            reports[table.label] = self._run_table(table, fault)
        return MirrorReport(reports, time.monotonic() - began)

    def run(self, interval: float = 10.0, *, on_report: Callable[[MirrorReport], None] | None = None) -> None:
        """Run again and again until `stop` is called, from another thread, a signal handler or ``on_report``.

        Args:
            interval: Seconds to wait between the end of a run and the next one.
            on_report: Called with the report of each run. Default: failures are logged.

        Raises:
            StorageError: As `run_once`; one that may pass (``retryable``) is logged, and the loop goes on.
        """
        self._stopping.clear()
        while not self._stopping.is_set():
            try:
                report = self.run_once()
            except OpenMirrorError as error:
                if not getattr(error, "retryable", False):
                    raise
                _logger.warning("the mirror could not run: %s", error)
            else:
                (on_report or _log_failures)(report)
            self._stopping.wait(interval)

    def stop(self) -> None:
        """End `run` after the run that is under way."""
        self._stopping.set()

    def _tables(self) -> Mapping[TableName, str | None]:
        """Return the tables of zone and target, each with what forbids it to be mirrored, if anything does."""
        landed = perform(self._zone.storage, landed_tables())
        return perform(self._target, mirrored_tables(landed))

    def _run_table(self, table: TableName, fault: str | None) -> TableReport:
        began = time.monotonic()
        if fault is not None:
            return TableReport(table.label, "Failed", fault, table.folder, 0, {}, 0, None, (), 0.0)
        steps = table_pass(table, now=datetime.now(UTC), limit=self._files_per_commit)
        result = self._drive(steps)
        rows: Counter[int | None] = Counter()
        for batch in result.applied:
            rows.update(batch.rows)
        return TableReport(
            table=table.label,
            status=result.status,
            reason=result.reason,
            file=result.file,
            files=sum(batch.last - batch.first + 1 for batch in result.applied),
            rows=dict(rows),
            last_file=result.last_file,
            version=result.commit,
            stale=result.stale,
            seconds=time.monotonic() - began,
        )

    def _drive(self, steps: Steps[PassResult]) -> PassResult:
        """Carry out a pass: each request as it comes; an error of ours is the pass's to judge."""
        answer: Any = None
        error: OpenMirrorError | None = None
        while True:
            try:
                request = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            error = None
            try:
                answer = self._answer(request)
            except OpenMirrorError as raised:
                error = raised

    def _answer(self, request: object) -> Any:  # noqa: ANN401 - one type per request, see steps
        match request:
            case ReadTarget(table):
                return perform(self._target, read_target(table.target))
            case ReadFooters(folder, numbers):
                with ThreadPoolExecutor(min(_FOOTER_THREADS, len(numbers))) as pool:
                    return list(pool.map(partial(self._read_footer, folder), numbers))
            case Commit():
                return self._commit(request)
            case RemoveTarget(table, version):
                return perform(self._target, remove_table(table.target, version))
            case _:
                return answer_to(self._zone.storage, request)  # type: ignore[arg-type]

    def _read_footer(self, folder: FolderState, number: int) -> Footer | Unreadable | None:
        path, entry = folder.data_path(number), folder.names.data[number]
        try:
            footer = perform(self._zone.storage, read_footer(folder, number))
        except (UnknownPositionError, ApplyError, SchemaRefusedError) as error:
            standing = self._zone.storage.identity(path)
            return Unreadable(error.message) if standing is not None and standing.identity == entry.identity else None
        return footer if footer is not None and footer.identity == entry.identity else None

    def _commit(self, commit: Commit) -> CommitAnswer:
        """Run the statement if the table is as it was planned on, and ask the log what became of it."""
        before = perform(self._target, read_target(commit.table.target))
        if before.version != commit.expected:
            return Skipped()
        there = perform(self._target, listing(commit.table.target))
        littered = not before.exists and bool(there.files or there.folders)
        table = DeltaTable(self._target.location(commit.table.target), self._deletion_vectors, littered)
        locations = [self._zone.storage.location(f"{commit.table.folder}/{file.name}") for file in commit.files]
        outcome = run_commit(self._spark, commit, table, locations)
        state = perform(self._target, read_target(commit.table.target))
        if state.version == commit.version:  # even behind an error: it may have come after the commit
            return Done(outcome if isinstance(outcome, dict) else {})
        return outcome if isinstance(outcome, Conflict | Bad) else Skipped()


def _log_failures(report: MirrorReport) -> None:
    for table in report.failures:
        _logger.warning("table %s failed: %s (file %s)", table.table, table.reason, table.file)
