"""The record of a data file, whatever its format: in Parquet inside, of text beside the file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Protocol

from openmirror_writer.errors import UnknownPositionError
from openmirror_writer.formats.parquet import Parquet, is_parquet
from openmirror_writer.layout import Folder, sidecar_file
from openmirror_writer.position import compare
from openmirror_writer.record import Record, parse_record
from openmirror_writer.storage import Steps, reading


class EncodedFile(Protocol):
    """A file whose rows are encoded, and whose record is still to come."""

    def finish(self, record: Record) -> bytes:
        """Return the file's bytes, with the record in them if the format carries it; once only."""


@dataclass(frozen=True)
class Surroundings:
    """What stands around a table's data files.

    Attributes:
        folder: Of the table, below the zone's root.
        names: What stands in it.
        generation: The life of the folder; None = none yet.
    """

    folder: str
    names: Folder[Any]
    generation: str | None


@dataclass(frozen=True)
class FileRecord:
    """What a data file that stands in the zone says of itself.

    Attributes:
        record: None if another publisher wrote the file.
        batch: What the next file's record names as ``previous``; None if another publisher wrote the file.
        sha256: Of the whole content, hexadecimal; None of Parquet, which carries its record inside.
    """

    record: Record | None
    batch: str | None
    sha256: str | None


def sha256_of(data: bytes) -> str:
    """Return the hash by which the chain names a text file."""
    return hashlib.sha256(data).hexdigest()


def sidecar_of(record: Record, sha256: str) -> tuple[str, bytes]:
    """Return name and content of the record that stands beside a text file.

    Args:
        record: Of the file.
        sha256: Of the file's content.
    """
    return sidecar_file(record.number, sha256, record.batch), record.to_bytes()


def read_record(path: str, size: int, number: int, around: Surroundings) -> Steps[FileRecord | None]:
    """Read the record of a data file: of Parquet the footer, of text the whole file and what stands beside it.

    Args:
        path: Of the file below the zone's root, in the table's folder or where the service moved it.
        size: In bytes, from the listing.
        number: Of the file.
        around: The folder of its table.

    Returns:
        None if the file is gone, or stands there with another size (list again).

    Raises:
        UnknownPositionError: It is no file of its format, or its record is damaged or of a newer version.
    """
    if is_parquet(path):
        footer = yield from Parquet().read_footer(path, size)
        return None if footer is None else FileRecord(footer.record, footer.batch, None)
    content = yield from reading(path)
    if content is None or len(content.data) != size:
        return None
    sha256 = sha256_of(content.data)
    record = yield from read_sidecar(number, sha256, around)
    return FileRecord(record, sha256 if record else None, sha256)


def read_sidecar(number: int, sha256: str, around: Surroundings) -> Steps[Record | None]:
    """Read the record that stands beside a text file.

    Two writers that publish the same rows under one number leave two records of one content. One of an earlier life of
    the folder says nothing of this one. Those that name the same file before are all true, and the furthest counts: the
    writer that made the file may have called its position durable.

    Args:
        number: Of the file.
        sha256: Of its content.
        around: The folder of its table; records of its generation come first.

    Returns:
        None if there is none: another publisher wrote the file. Of positions without an order, any.

    Raises:
        UnknownPositionError: A record is damaged, or of a newer version; or two of this life name different files
            before, as after a writer that was paused over several files: one of them is not true.
    """
    own: Record | None = None
    other: Record | None = None
    for name in around.names.sidecars.get((number, sha256), ()):
        path = f"{around.folder}/{name}"
        content = yield from reading(path)
        if content is None:
            continue
        record = parse_record(content.data, file=path)
        if record.generation == around.generation:
            _refuse_other_predecessor(own, record, path)
            own = _further(own, record)
        other = other or record
    return own or other


def _refuse_other_predecessor(one: Record | None, other: Record, path: str) -> None:
    if one is not None and one.previous != other.previous:
        msg = (
            "two records of one text file name different files before it: a writer that was paused has published the "
            "same rows late, and which record is true nobody can tell here: stop one of the writers, then drop_table "
            "and load again"
        )
        raise UnknownPositionError(msg, file=path)


def _further(one: Record | None, other: Record) -> Record:
    if one is None or one.position is None or compare(one.position, other.position) == -1:
        return other
    return one
