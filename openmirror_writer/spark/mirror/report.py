"""What a run of the mirror says, in the words of the service's status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from openmirror_writer.errors import ApplyError
from openmirror_writer.spark.mirror.state import Status


@dataclass(frozen=True)
class TableReport:
    """How one table stands after a run.

    Attributes:
        table: ``"orders"`` or ``"sales.orders"``.
        status: ``Initialized``: no metadata or no file yet; ``Snapshotting``: waiting for the first file;
            ``Replicating``: all that can be applied is; ``Reseeding``: waiting for the first file of a folder that was
            made again; ``Stopped``: dropped, or being dropped; ``Failed``: see ``reason``.
        reason: What is wrong or waited for, and what to do; None if there is nothing to tell.
        file: Path below the zone's root of the file it is about, or None.
        files: How many files this run applied.
        rows: Landing rows that this run applied, by marker; None: rows of files without markers.
        last_file: Number of the last file applied, by this run or before; 0: none.
        version: Delta's version of the table; None if there is none.
        stale: Paths of files that are never applied: delete them, nothing else does.
        seconds: How long the run took for this table.
    """

    table: str
    status: Status
    reason: str | None
    file: str | None
    files: int
    rows: Mapping[int | None, int]
    last_file: int
    version: int | None
    stale: tuple[str, ...]
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether the table does not go on before somebody acts."""
        return self.status == "Failed"


@dataclass(frozen=True)
class MirrorReport:
    """How all tables stand after a run.

    Attributes:
        tables: By label: those of the zone, and those of the target whose folder is gone.
        seconds: How long the run took.
    """

    tables: Mapping[str, TableReport]
    seconds: float

    @property
    def failures(self) -> list[TableReport]:
        """The tables that failed."""
        return [table for table in self.tables.values() if table.failed]

    def raise_for_failures(self) -> None:
        """Do nothing if no table failed.

        Raises:
            ApplyError: Of the first table that failed; the others are notes of the error.
        """
        if not self.failures:
            return
        first, *others = self.failures
        error = ApplyError(first.reason or "the table failed", table=first.table, file=first.file)
        for other in others:
            error.add_note(f"also failed: {other.table}: {other.reason}")
        raise error
