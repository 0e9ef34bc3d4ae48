"""The fence: publishing the next file so that two writers never both succeed, however long one of them was paused.

A create-if-absent proves only that nobody holds the number *now*: the service moves processed files away and frees
their names. A *proof* is one listing that shows our generation marker, no tombstone, and our last file as the highest.
It is taken before any create or resend that comes more than `PROOF_SECONDS` after the last one, and after the last
create before anything is called durable. Protocols only; no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from openmirror_writer.errors import (
    ConcurrentWriterError,
    OpenMirrorError,
    SchemaRefusedError,
    StorageError,
    TableGoneError,
    UnknownPositionError,
)
from openmirror_writer.formats import FileRecord, Surroundings, read_record, sha256_of, sidecar_of
from openmirror_writer.layout import (
    DROPPING,
    GENERATION,
    METADATA,
    Folder,
    advance_file,
    data_file,
    sidecar_file,
    sort_names,
)
from openmirror_writer.metadata import Generation, TableMetadata, parse
from openmirror_writer.position import Position
from openmirror_writer.record import Pending, Phase, Record, new_id, parse_record
from openmirror_writer.storage import Created, Entry, Exists, Steps, creating, listing, reading, replacing
from openmirror_writer.writer.cut import FileContent, Progress
from openmirror_writer.writer.resume import Resumed, refuse_replacement
from openmirror_writer.zone import FolderState, LandingTable, look, moved_files

PROOF_SECONDS = 5.0
"""How long a proof holds; a single request has a time-out below it."""
_RESENDS = 5
"""How often a create whose answer was lost is sent again before the writer gives up."""


@dataclass(frozen=True)
class PublishedFile:
    """A file that stands in the zone.

    Attributes:
        table: Label of the table.
        path: Below the landing zone.
        number: Of the file.
        rows: How many rows.
        bytes: Its size.
        position: Every row up to it is in this file or an earlier one.
        batch: The id in its record.
        sha256: Of its content, hexadecimal; only of text, whose record stands beside the file.
    """

    table: str
    path: str
    number: int
    rows: int
    bytes: int
    position: Position
    batch: str
    sha256: str | None = None


class Fence:
    """What one writer knows of its folder, and the protocols that publish to it."""

    def __init__(
        self, table: LandingTable, resumed: Resumed, *, writer: str, by: str, clock: Callable[[], float]
    ) -> None:
        """Go on where `open_table` says.

        Args:
            table: The table.
            resumed: What the folder says.
            writer: Id of the writer object, for the records.
            by: Name and version of the software, for the records.
            clock: Seconds that go on while a process is paused.
        """
        self._table = table
        self._clock = clock
        self._writer = writer
        self._by = by
        self._generation = resumed.generation
        self._generation_identity = resumed.generation_identity
        self._keys = resumed.keys
        self._columns = resumed.columns.schema if resumed.columns else pa.schema([])
        self._has_metadata = resumed.has_metadata
        self._keys_came = resumed.keys_came
        self._last = resumed.last
        self._previous = resumed.previous
        self._next_advance = resumed.next_advance
        self._proof_at = resumed.proof_at
        self._sent: PublishedFile | None = None  # the create whose answer is missing
        self._unproved: list[PublishedFile] = []  # files since the last proof
        self._unconfirmed = False
        self.recorded: Position = resumed.progress.position
        self.published_position: Position = resumed.progress.position

    @property
    def last(self) -> int:
        """Number of the last file, 0 = none."""
        return self._last

    @property
    def has_unproved(self) -> bool:
        """Whether something was created that no proof confirmed yet, or the metadata is missing behind a file."""
        return self._unconfirmed or bool(self._last and not self._has_metadata)

    def publish(self, content: FileContent, encode: Callable[[FileContent, Record], bytes]) -> Steps[PublishedFile]:
        """Publish the next file.

        Args:
            content: Its rows and what its record says.
            encode: Makes the file's bytes.

        Raises:
            ConcurrentWriterError: Another writer published to this table.
            TableGoneError: The table was dropped, or its last file is gone.
            SchemaRefusedError: ``_metadata.json`` came to stand with other keys than ours.
            StorageError: The storage does not answer; whether the file stands is not known, a new writer will see.
        """
        if self._keys_came:
            yield from self._add_keys()
        if self._generation is None:
            yield from self._begin_generation()
        record = self._record(self._last + 1, content.phase, content.position, content.pending)
        data = encode(content, record)
        path = self._table.path(data_file(record.number, self._table.format.extension))
        sha256 = None if self._table.format.carries_record else sha256_of(data)
        file = PublishedFile(
            self._table.label, path, record.number, content.rows, len(data), content.position, record.batch, sha256
        )
        if sha256 is not None:
            yield from self._create_sidecar(*sidecar_of(record, sha256))
        if content.batches:
            self._columns = content.batches[0].rows.schema
        yield from self._create(file, data)
        yield from self._ensure_metadata()
        return file

    def confirm(self) -> Steps[None]:
        """Take a proof for all that was created: it is durable and in the chain when this returns.

        Raises:
            ConcurrentWriterError: See `publish`.
            TableGoneError: See `publish`.
            StorageError: See `publish`.
        """
        if self.has_unproved:
            yield from self._ensure_metadata()
            yield from self._prove()

    def advance(self, progress: Progress) -> Steps[None]:
        """Record behind the last file that nothing happened up to a position.

        Args:
            progress: Without buffered rows and without rows that are still to be skipped.

        Raises:
            ConcurrentWriterError: See `publish`.
            TableGoneError: See `publish`.
            StorageError: See `publish`.
        """
        record = self._record(self._last, "following", progress.position, progress.pending(None))
        yield from self._create_advance(record)
        self.recorded = progress.position
        self._unconfirmed = True

    # ------------------------------------------------------------------------------------------------------ the proof

    def _prove(self) -> Steps[None]:
        started = self._clock()
        names = sort_names((yield from listing(self._table.folder)).files)
        if self._sent is not None and names.last == self._sent.number:
            ours = yield from self._is_ours(self._sent, names)
            if ours:
                self._settle(self._sent)
        if not self._is_our_life(names):
            msg = "the table was dropped while this writer was open: load it again with a new writer"
            raise TableGoneError(msg, table=self._table.label, file=self._table.folder)
        if names.last > self._last:
            raise (yield from self._concurrent(names.last))
        if names.last < self._last:
            msg = "the last file that this writer knows is gone: run drop_table, then load again"
            raise TableGoneError(msg, table=self._table.label, file=self._path(self._last))
        self._proof_at = started
        self._unproved.clear()
        self._unconfirmed = False
        self.published_position = self.recorded

    @property
    def is_fresh(self) -> bool:
        """Whether the last proof still holds."""
        return self._clock() - self._proof_at <= PROOF_SECONDS

    def _renewed(self) -> Steps[None]:
        if not self.is_fresh:
            yield from self._prove()

    def _is_our_life(self, names: Folder[Entry]) -> bool:
        marker = names.special.get(GENERATION)
        identity = marker.identity if marker else None
        return DROPPING not in names.special and identity == self._generation_identity

    # ------------------------------------------------------------------------------------------------------ creating

    def _create(self, file: PublishedFile, data: bytes) -> Steps[None]:
        for _ in range(1 + _RESENDS):
            yield from self._renewed()
            if self._last == file.number:
                return  # the proof found it: the answer that was lost was a yes
            self._sent = file
            answer = yield from creating(file.path, data)
            if isinstance(answer, Created):
                self._settle(file)
                return
            if isinstance(answer, Exists):
                yield from self._settle_existing(file)
                return
        msg = "the storage does not answer, so nobody knows whether this file stands: open a new writer, which will see"
        raise StorageError(msg, table=self._table.label, file=file.path, retryable=True)

    def _create_sidecar(self, name: str, data: bytes) -> Steps[None]:
        """Create the record beside a file before the file: its name is ours alone, so "exists" is a yes."""
        path = self._table.path(name)
        for _ in range(1 + _RESENDS):
            yield from self._renewed()
            if isinstance((yield from creating(path, data)), Created | Exists):
                return
        msg = "the storage does not answer, so the record of the next file does not stand: open a new writer"
        raise StorageError(msg, table=self._table.label, file=path, retryable=True)

    def _settle_existing(self, file: PublishedFile) -> Steps[None]:
        """Somebody holds the number: we ourselves, where an answer was lost, or another writer."""
        names = sort_names((yield from listing(self._table.folder)).files)
        ours = yield from self._is_ours(file, names)
        if ours:
            self._settle(file)
            return
        if ours is None:  # moved away between the two calls: only a proof can tell
            yield from self._prove()
            if self._last == file.number:
                return
        self._sent = None
        raise (yield from self._concurrent(file.number))

    def _is_ours(self, file: PublishedFile, names: Folder[Entry]) -> Steps[bool | None]:
        """Compare what stands under the file's name with what was sent; None if nothing stands there."""
        entry = names.data.get(file.number)
        if entry is None:
            return None
        try:
            found = yield from self._read_record(file.number, file.path, entry.size, names)
        except UnknownPositionError:  # not even a file of this format: not ours
            return False
        if found is None:
            return None
        if file.sha256 is None:
            return found.batch == file.batch
        # The same rows may come from two writers; whose file it is, is only sure where one record stands beside it.
        only = {sidecar_file(file.number, file.sha256, file.batch)}
        return found.sha256 == file.sha256 and names.sidecars.get((file.number, file.sha256), {}).keys() == only

    def _read_record(self, number: int, path: str, size: int, names: Folder[Entry]) -> Steps[FileRecord | None]:
        around = Surroundings(self._table.folder, names, self._generation)
        return (yield from read_record(path, size, number, around))

    def _settle(self, file: PublishedFile) -> None:
        self._sent = None
        self._last, self._previous = file.number, file.sha256 or file.batch
        self._next_advance = 0
        self._unproved.append(file)
        self._unconfirmed = True
        self.recorded = file.position

    def _begin_generation(self) -> Steps[None]:
        """Give the folder its ``_generation.json``, or adopt the one that another writer gave it."""
        path = self._table.path(GENERATION)
        for _ in range(1 + _RESENDS):
            yield from refuse_replacement(self._table)
            yield from creating(path, Generation(generation=new_id()).to_bytes())
            started = self._clock()
            state = yield from look(self._table.folder)
            if state.generation is None:
                continue
            self._check_still_first(state)
            yield from refuse_replacement(self._table)  # begun since, it takes the marker for one that it has to drop
            self._has_metadata = state.metadata is not None  # a drop since the opening took it away
            if state.metadata is not None:
                self._check_keys(state.metadata)
            self._generation, self._generation_identity = state.generation, state.generation_identity
            self._proof_at = started
            return
        msg = "the storage does not keep the folder's _generation.json: try again with a new writer"
        raise StorageError(msg, table=self._table.label, file=path, retryable=True)

    def _check_still_first(self, state: FolderState) -> None:
        if state.dropping:
            msg = "a drop of this table has begun: run drop_table, then load again"
            raise TableGoneError(msg, table=self._table.label, file=state.folder)
        if state.names.last != self._last:
            msg = f"another writer has published file {state.names.last} to this table: stop one of them"
            raise ConcurrentWriterError(msg, table=self._table.label, file=state.folder)

    def _add_keys(self) -> Steps[None]:
        """Give the keys to a ``_metadata.json`` that has none, before the first file whose rows need them."""
        for _ in range(1 + _RESENDS):
            yield from self._prove()
            state = yield from look(self._table.folder)
            if state.metadata is None or state.metadata.key_columns:
                if state.metadata is not None:
                    self._check_keys(state.metadata)
                self._has_metadata = state.metadata is not None
                self._keys_came = False
                return
            metadata = state.metadata.model_copy(update={"key_columns": self._keys})
            identity = state.names.special[METADATA].identity
            yield from replacing(self._table.path(METADATA), metadata.to_bytes(), identity)
        msg = "the storage does not keep the key columns in _metadata.json: try again with a new writer"
        raise StorageError(msg, table=self._table.label, file=self._table.path(METADATA), retryable=True)

    def _ensure_metadata(self) -> Steps[None]:
        if self._has_metadata or not self._last:
            return
        path = self._table.path(METADATA)
        metadata = self._table.metadata(self._keys, self._columns)
        for _ in range(1 + _RESENDS):
            yield from self._prove()
            answer = yield from creating(path, metadata.to_bytes())
            if isinstance(answer, Exists):
                yield from self._check_metadata(path)
            if isinstance(answer, Created | Exists):
                self._has_metadata = True
                return
        msg = "the storage does not answer, so nobody knows whether this file stands: open a new writer, which will see"
        raise StorageError(msg, table=self._table.label, file=path, retryable=True)

    def _check_metadata(self, path: str) -> Steps[None]:
        content = yield from reading(path)
        if content is not None:  # else the folder was dropped: the next proof says so
            self._check_keys(parse(TableMetadata, content.data, file=path))

    def _check_keys(self, standing: TableMetadata) -> None:
        if standing.key_columns != self._keys:
            msg = (
                f"_metadata.json came to stand with the keys {list(standing.key_columns)}, ours are "
                f"{list(self._keys)}: open a writer with those that stand, or drop_table and load again"
            )
            raise SchemaRefusedError(msg, table=self._table.label, file=self._table.path(METADATA))

    def _create_advance(self, record: Record) -> Steps[None]:
        losses = 0
        while losses <= _RESENDS:
            yield from self._renewed()
            path = self._table.path(advance_file(self._last, self._next_advance))
            answer = yield from creating(path, record.to_bytes())
            if isinstance(answer, Exists):
                content = yield from reading(path)
                standing = None if content is None else parse_record(content.data, file=path)
                if standing is None or standing.batch != record.batch:
                    if standing is not None and self._is_behind_our_last(standing):
                        raise (yield from self._concurrent(self._last))
                    self._next_advance += 1  # of an earlier file of this number: never valid again
                    continue
            if isinstance(answer, Created | Exists):
                self._next_advance += 1
                return
            losses += 1
        msg = (
            "the storage does not answer, so nobody knows whether the advance stands: open a new writer, which will see"
        )
        raise StorageError(msg, table=self._table.label, position=record.position, retryable=True)

    def _is_behind_our_last(self, advance: Record) -> bool:
        return (advance.generation, advance.previous) == (self._generation, self._previous)

    # ------------------------------------------------------------------------------------------------------ records

    def _record(self, number: int, phase: Phase, position: Position, pending: dict[str, Pending]) -> Record:
        assert self._generation is not None  # noqa: S101 - begun before any record is made
        return Record(
            generation=self._generation,
            number=number,
            previous=self._previous,
            batch=new_id(),
            writer=self._writer,
            phase=phase,
            position=position,
            pending=pending,
            by=self._by,
        )

    def _path(self, number: int) -> str:
        return self._table.path(data_file(number, self._table.format.extension))

    def _concurrent(self, number: int) -> Steps[ConcurrentWriterError]:
        """Make the error, naming those of our files since the last proof that the other writer's chain leaves out."""
        left_out: list[str] = []
        try:
            moved = yield from moved_files(self._table.folder)
            names = sort_names((yield from listing(self._table.folder)).files)
            standing = {number: (path, entry.size) for number, (path, entry) in moved.items()}
            standing |= {number: (self._path(number), entry.size) for number, entry in names.data.items()}
            for file in self._unproved:
                number = file.number + 1
                found = standing.get(number) and (yield from self._read_record(number, *standing[number], names))
                if found and found.record and found.record.previous != (file.sha256 or file.batch):
                    left_out.append(file.path)
        except OpenMirrorError:  # the message is the poorer, the error is the same
            left_out = [file.path for file in self._unproved]
        msg = f"another writer published file {number} of this table: stop one of them, then open a new writer"
        if left_out:
            msg += f"; the table does not contain these files of ours, delete them: {', '.join(left_out)}"
        return ConcurrentWriterError(msg, table=self._table.label, file=self._path(number))
