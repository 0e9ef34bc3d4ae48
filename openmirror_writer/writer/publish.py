"""Publishes files of one table for real: drives the fence's protocols against the zone's storage."""

from __future__ import annotations

import copy
import logging
import time
from dataclasses import replace
from importlib.metadata import version

from openmirror_writer.errors import OpenMirrorError
from openmirror_writer.formats import EncodedFile
from openmirror_writer.position import Position
from openmirror_writer.record import Record, new_id
from openmirror_writer.storage import perform
from openmirror_writer.writer.cut import FileContent, Progress
from openmirror_writer.writer.fence import Fence, PublishedFile
from openmirror_writer.writer.known import KnownColumns
from openmirror_writer.writer.resume import Resumed, open_table
from openmirror_writer.zone import LandingTable

_LOG = logging.getLogger("openmirror_writer.writer")


def seconds() -> float:
    """Return seconds that go on while the process is paused and, where the system can tell, the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class FilePublisher:
    """Publishes one file after the other; used by one thread at a time.

    Attributes:
        resumed: What the folder said at the opening.
        columns: What is known of the table's columns; told before the first file.
        rows: How many rows it has published since it was opened.
    """

    def __init__(self, table: LandingTable, start_at: Position) -> None:
        """Look at the folder.

        Args:
            table: The table.
            start_at: See `Writer`.

        Raises:
            OpenMirrorError: See `openmirror_writer.writer.resume.open_table`.
        """
        self._table = table
        self._storage = table.zone.storage
        self.resumed: Resumed = perform(self._storage, open_table(table, start_at, seconds, for_writing=True))
        self.columns = KnownColumns(self.resumed.columns, self.resumed.keys, table)
        by = f"openmirror-writer {version('openmirror-writer')}"
        self._fence = Fence(table, self.resumed, writer=new_id(), by=by, clock=seconds)
        self._files: list[PublishedFile] = []
        self.rows = 0

    @property
    def published_position(self) -> Position:
        """The position that is durable: a proof followed its file."""
        return self._fence.published_position

    @property
    def recorded_position(self) -> Position:
        """The position of the last record that was created."""
        return self._fence.recorded

    @property
    def last(self) -> int:
        """Number of the last file, 0 = none."""
        return self._fence.last

    def encode(self, content: FileContent) -> EncodedFile:
        """Encode the rows of a file; any thread may do so while another file is published.

        Raises:
            OpenMirrorError: The columns are not known.
        """
        if self.columns.schema is None:
            msg = "nothing tells the columns of this table: give columns= to zone.table"
            raise OpenMirrorError(msg, table=self._table.label)
        return self._table.format.begin(self.columns.schema, content.batches)

    @property
    def proof_is_due(self) -> bool:
        """Whether something was created that no proof confirmed, and the last proof is old."""
        return self._fence.has_unproved and not self._fence.is_fresh

    def publish(self, content: FileContent, encoding: EncodedFile | None = None) -> None:
        """Publish one file.

        Args:
            content: Its rows.
            encoding: Them encoded; None: to be done here.

        Raises:
            OpenMirrorError: See `Fence.publish`.
        """

        def finished(content: FileContent, record: Record) -> bytes:
            return (encoding or self.encode(content)).finish(record)

        started = time.perf_counter()
        file = perform(self._storage, self._fence.publish(content, finished))
        self._files.append(replace(file, position=copy.deepcopy(file.position)))  # the caller may change a map
        self.rows += file.rows
        took = time.perf_counter() - started
        _LOG.info("published %s: %d rows, %d bytes, %.3f s", file.path, file.rows, file.bytes, took)

    def advance(self, progress: Progress) -> None:
        """Record an advance behind the last file.

        Raises:
            OpenMirrorError: See `Fence.advance`.
        """
        perform(self._storage, self._fence.advance(progress))
        _LOG.info("advanced %s behind file %d", self._table.label, self._fence.last)

    def confirm(self) -> None:
        """Prove that what was created is durable and in the chain.

        Raises:
            OpenMirrorError: See `Fence.confirm`.
        """
        perform(self._storage, self._fence.confirm())

    def take_files(self) -> list[PublishedFile]:
        """Return the files published since this was asked last."""
        files, self._files = self._files, []
        return files
