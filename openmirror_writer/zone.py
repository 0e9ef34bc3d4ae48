"""A landing zone, its tables, and what stands in a table's folder now."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import pyarrow as pa

from openmirror_writer.errors import OpenMirrorError, SchemaRefusedError, StorageError
from openmirror_writer.formats import DelimitedText, Parquet, Surroundings, with_text
from openmirror_writer.layout import (
    DROPPING,
    GENERATION,
    METADATA,
    MOVED,
    PARTNER_EVENTS,
    SCHEMA_SUFFIX,
    Folder,
    check_name,
    data_number,
    schema_of,
    sort_names,
    table_folder,
    table_label,
)
from openmirror_writer.metadata import BY_TIME, SEQUENTIAL, Generation, PartnerEvents, TableMetadata, parse
from openmirror_writer.schema import Columns, check_keys, declared_columns
from openmirror_writer.storage import Created, Entry, Steps, Storage, creating, listing, open_storage, perform, reading

_LEFTOVER_AGE = timedelta(hours=1)
_LOOKS = 20
"""How often a folder is looked at before it counts as never quiet: others work in it between two requests."""


class LandingZone:
    """Where a mirrored database takes its files from.

    Nothing is read or written before a `Writer`, `replay` or a mirror uses it.
    """

    def __init__(
        self,
        url: str | os.PathLike[str] | Storage,
        *,
        credential: Any = None,  # noqa: ANN401 - azure-identity, text or a callable, as soon as a storage needs one
        storage_options: Mapping[str, Any] | None = None,
        partner: PartnerEvents | None = None,
        replace_partner: bool = False,
    ) -> None:
        """Name a landing zone.

        Args:
            url: A local folder, ``file://`` or ``memory://``; or an implementation of `Storage`.
            credential: For storages that ask for one; local folders and memory do not.
            storage_options: As ``credential``.
            partner: Content of ``_partnerEvents.json``, written once at the root by the first writer that opens.
            replace_partner: Replace a ``_partnerEvents.json`` of other content; default: it is an error.

        Raises:
            StorageError: The URL is of an unknown kind, or options were given that its storage does not take.
        """
        self._storage = open_storage(url)
        if credential is not None or storage_options:
            msg = f"{self._storage.url} takes neither credential= nor storage_options=: leave them out"
            raise StorageError(msg)
        self._partner = partner
        self._replace_partner = replace_partner

    @property
    def url(self) -> str:
        """Where the zone is, without secrets."""
        return self._storage.url

    @property
    def storage(self) -> Storage:
        """The storage that holds the zone."""
        return self._storage

    def __repr__(self) -> str:
        """Name the zone."""
        return f"LandingZone({self.url!r})"

    def table(
        self,
        name: str,
        *,
        schema_name: str | None = None,
        key_columns: Sequence[str] | None = None,
        columns: Columns | None = None,
        format: Parquet | DelimitedText = Parquet(),  # noqa: B008 - an immutable value
        file_order: Literal["sequential"] = "sequential",
        unmarked_rows: Literal["insert", "upsert"] = "insert",
    ) -> LandingTable:
        """Name a table of this zone; no storage call is made.

        Args:
            name: The folder's name; the table's name in the mirrored database.
            schema_name: Its schema; None: the database's default schema.
            key_columns: The columns of the unique key, ``[]`` for a table that takes inserts only; required when the
                table is made, later None means: as in the folder. A table made with ``[]`` may get a key later, of
                columns that all its files have; a key never changes.
            columns: Column to type (docs/types.md), or an Arrow schema; None: as in the folder, else inferred once from
                the first rows. A file does not tell which text is ``json``, ``uuid`` or ``time``: declare it each time.
                Where files stand, new columns may come, if they may be NULL, and stand behind the others. Columns that
                stand and are not declared any more stay in the files: NULL where a row does not bring them; give the
                same columns at each opening then. See `Writer.change_columns`.
            format: How files are encoded: `Parquet` or `DelimitedText`; it cannot change while the table stands.
            file_order: ``sequential``: by file number.
            unmarked_rows: What rows without a marker mean to the mirror: ``insert`` or ``upsert``.

        Raises:
            SchemaRefusedError: A name, type or key that the service would refuse, an option that is none of these, or
                upserts without key columns.
        """
        check_name("table", name)
        if schema_name is not None:
            check_name("schema", schema_name)
        label = table_label(name, schema_name)
        try:
            schema = None if columns is None else declared_columns(columns)
        except SchemaRefusedError as error:
            error.table = label
            raise
        if isinstance(key_columns, str):
            msg = f"key_columns={key_columns!r} is text; give a list of names"
            raise SchemaRefusedError(msg, table=label)
        keys = None if key_columns is None else tuple(key_columns)
        if keys is not None:
            check_keys(keys, schema, table=label)
        _refuse_unknown(label, "file_order", file_order, ("sequential",))
        _refuse_unknown(label, "unmarked_rows", unmarked_rows, ("insert", "upsert"))
        if keys == () and unmarked_rows == "upsert":
            msg = 'unmarked_rows="upsert" needs key columns, and key_columns is []: leave it out, or name the key'
            raise SchemaRefusedError(msg, table=label)
        _check_format(format, schema, label)
        return LandingTable(self, name, schema_name, keys, schema, format, unmarked_rows == "upsert")

    def tables(self) -> list[LandingTable]:
        """List the tables that stand in the zone, by schema and name; one or two levels of folders are listed.

        Every folder of the root, and of the ``.schema`` folders there (in any casing), counts, whatever it holds,
        unless its name begins with ``_``: also one that `table` would refuse to name, so that it can be looked at, told
        of and dropped.

        Returns:
            Tables without declared keys and columns.

        Raises:
            StorageError: The storage failed.
        """
        root = perform(self._storage, listing(""))
        seen = sorted(name for name in root.folders if not name.startswith("_"))
        found = [self._standing(name, None) for name in seen if schema_of(name) is None]
        for folder in seen:
            if (schema := schema_of(folder)) is not None:
                inside = perform(self._storage, listing(folder))
                found += [self._standing(name, *schema) for name in sorted(inside.folders) if not name.startswith("_")]
        return found

    def _standing(self, name: str, schema_name: str | None, suffix: str = SCHEMA_SUFFIX) -> LandingTable:
        return LandingTable(
            self, name, schema_name, None, None, Parquet(), unmarked_are_upserts=False, schema_suffix=suffix
        )

    def ensure_partner_events(self) -> None:
        """Write ``_partnerEvents.json`` at the root, if this zone was given one and it does not stand there yet.

        Raises:
            OpenMirrorError: Other content stands there, and ``replace_partner`` is not set.
            StorageError: The storage failed.
        """
        if self._partner is None:
            return
        data = self._partner.to_bytes()
        for _ in range(3):  # another writer may create or replace it between two of our calls
            standing = perform(self._storage, reading(PARTNER_EVENTS))
            if standing is None:
                if isinstance(perform(self._storage, creating(PARTNER_EVENTS, data)), Created):
                    return
                continue  # made by another writer, or by us and the answer was lost: look
            if _same_partner(standing.data, self._partner):
                return
            if not self._replace_partner:
                msg = (
                    f"{PARTNER_EVENTS} at the root holds other content than partner=; give the same, "
                    "or LandingZone(replace_partner=True)"
                )
                raise OpenMirrorError(msg, file=PARTNER_EVENTS, value=standing.data.decode(errors="replace"))
            if self._storage.replace(PARTNER_EVENTS, data, if_identity=standing.identity) is not None:
                return
        msg = f"{PARTNER_EVENTS} is being changed by others all the time, or the storage does not answer; try again"
        raise StorageError(msg, file=PARTNER_EVENTS, retryable=True)


@dataclass(frozen=True)
class LandingTable:
    """One table of a landing zone, as the caller declares it; made by `LandingZone.table`.

    Attributes:
        zone: The zone.
        name: The table's name.
        schema_name: Its schema, None = the default one.
        key_columns: None = as in the folder.
        columns: In file types; None = as in the folder, else inferred.
        format: How files are encoded.
        unmarked_are_upserts: What rows without a marker mean to the mirror.
        schema_suffix: Of the schema's folder; another casing than the documented one only where it stands so.
    """

    zone: LandingZone
    name: str
    schema_name: str | None
    key_columns: tuple[str, ...] | None
    columns: pa.Schema | None
    format: Parquet | DelimitedText
    unmarked_are_upserts: bool
    schema_suffix: str = SCHEMA_SUFFIX

    @property
    def folder(self) -> str:
        """The table's folder below the zone's root."""
        return table_folder(self.name, self.schema_name, self.schema_suffix)

    @property
    def parent(self) -> str:
        """The folder that holds the table's folder; ``""`` is the zone's root."""
        return self.folder.rpartition("/")[0]

    @property
    def label(self) -> str:
        """``"orders"`` or ``"sales.orders"``."""
        return table_label(self.name, self.schema_name)

    def path(self, name: str) -> str:
        """Return the path of a file of this table below the zone's root."""
        return f"{self.folder}/{name}"

    def metadata(self, keys: Sequence[str], columns: pa.Schema) -> TableMetadata:
        """Return the ``_metadata.json`` of this declaration with these keys and, for text, these columns."""
        metadata = TableMetadata(
            key_columns=tuple(keys),
            file_detection_strategy=SEQUENTIAL,
            is_upsert_default_row_marker=self.unmarked_are_upserts,
        )
        return with_text(metadata, self.format, columns) if isinstance(self.format, DelimitedText) else metadata


@dataclass(frozen=True)
class FolderState:
    """What stands in a table folder.

    Attributes:
        folder: Its path.
        names: Its files, sorted into what they are, with what the listing tells of each.
        generation: The id of this life, from ``_generation.json``; None if there is no such file.
        generation_identity: The identity of that file.
        metadata: Content of ``_metadata.json``; None if there is no such file.
    """

    folder: str
    names: Folder[Entry]
    generation: str | None
    generation_identity: str | None
    metadata: TableMetadata | None

    @property
    def dropping(self) -> bool:
        """Whether a drop has begun and not ended."""
        return DROPPING in self.names.special

    @property
    def surroundings(self) -> Surroundings:
        """What the records of data files need to know of the folder."""
        return Surroundings(self.folder, self.names, self.generation)

    def data_path(self, number: int) -> str:
        """Return the path of the data file with this number."""
        return f"{self.folder}/{number:020d}.{self.names.extensions[number]}"


def look(folder: str) -> Steps[FolderState]:
    """Look at a table folder: one listing, then its generation and its metadata, as they belong to that listing.

    Args:
        folder: Its path below the zone's root; an absent one is empty.

    Raises:
        SchemaRefusedError: ``_metadata.json`` or ``_generation.json`` is not readable, or asks for what this version
            does not support.
        ConcurrentWriterError: Two data files have the same number.
        StorageError: One of these files was another one at each of 20 looks.
    """
    for _ in range(_LOOKS):
        names = sort_names((yield from listing(folder)).files)
        read: dict[str, bytes] = {}
        for name in (GENERATION, METADATA):
            entry = names.special.get(name)
            content = (yield from reading(f"{folder}/{name}")) if entry else None
            if entry and content and content.identity == entry.identity:
                read[name] = content.data
        if read.keys() == names.special.keys() & {GENERATION, METADATA}:
            return _state(folder, names, read)
    msg = "the folder changes at every look; try again"
    raise StorageError(msg, file=folder, retryable=True)


def moved_files(folder: str) -> Steps[dict[int, tuple[str, Entry]]]:
    """List the data files that the service moved away: number to path and entry; they are kept there for seven days."""
    found: dict[int, tuple[str, Entry]] = {}
    for name in MOVED:
        inside = yield from listing(f"{folder}/{name}")
        for file, entry in inside.files.items():
            number = data_number(file)
            if number is not None:
                found[number] = (f"{folder}/{name}/{file}", entry)
    return found


def leftovers(staged: Mapping[str, Entry], files: Iterable[Entry]) -> dict[str, Entry]:
    """Return the temporary files of killed processes: those an hour older than the newest file of the folder.

    Both times are the storage's clock. A younger one may belong to a create that is under way.

    Args:
        staged: The temporary files of one folder.
        files: Its other files; the temporary ones may be among them.
    """
    newest = max((entry.modified for entry in [*files, *staged.values()]), default=None)
    if newest is None:
        return {}
    return {name: entry for name, entry in staged.items() if newest - entry.modified > _LEFTOVER_AGE}


def old_sidecars(
    sidecars: Mapping[tuple[int, str], Mapping[str, Entry]],
    standing: Collection[int],
    moved: Collection[int],
    files: Iterable[Entry],
) -> dict[str, Entry]:
    """Return the records of text files that nobody needs any more.

    Their number is below the last file, no data file has it, and they are an hour older than the newest file of the
    folder, by the storage's clock: a writer creates the record before the file, and may be about to send that.

    Args:
        sidecars: Those of one folder, see `Folder`.
        standing: Numbers of the data files in it.
        moved: Numbers of those that the service has moved away, listed after the others: a file that moves meanwhile is
            in one of the two.
        files: All files of the folder; the sidecars may be among them.
    """
    last = max(standing, default=0)
    gone = {
        name: entry
        for (number, _), records in sidecars.items()
        if number < last and number not in standing and number not in moved
        for name, entry in records.items()
    }
    return leftovers(gone, files)


def _state(folder: str, names: Folder[Entry], read: Mapping[str, bytes]) -> FolderState:
    generation = metadata = None
    if GENERATION in read:
        generation = parse(Generation, read[GENERATION], file=f"{folder}/{GENERATION}").generation
    if METADATA in read:
        file = f"{folder}/{METADATA}"
        metadata = parse(TableMetadata, read[METADATA], file=file)
        if metadata.file_detection_strategy == BY_TIME:
            msg = f"files ordered by modification time ({BY_TIME}) are not supported by this version"
            raise SchemaRefusedError(msg, file=file)
    marker = names.special.get(GENERATION)
    return FolderState(folder, names, generation, marker.identity if marker else None, metadata)


def _refuse_unknown(table: str, option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        msg = f"{option}={value!r} is not supported by this version; use {' or '.join(map(repr, known))}"
        raise SchemaRefusedError(msg, table=table)


def _check_format(format: object, columns: pa.Schema | None, table: str) -> None:
    if not isinstance(format, Parquet | DelimitedText):
        msg = f"format={format!r} is no file format; use Parquet(...) or DelimitedText(...)"
        raise SchemaRefusedError(msg, table=table)
    if columns is not None:
        try:
            format.check_columns(columns)
        except SchemaRefusedError as error:
            error.table = table
            raise


def _same_partner(data: bytes, partner: PartnerEvents) -> bool:
    ours = parse(PartnerEvents, partner.to_bytes(), file=PARTNER_EVENTS)  # as JSON keeps it: a tuple is a list there
    try:
        return parse(PartnerEvents, data, file=PARTNER_EVENTS) == ours
    except SchemaRefusedError:
        return False
