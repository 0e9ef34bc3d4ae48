"""What a pass looks at: the table's name, what its Delta table says of itself, the files that landed. Pure.

The version that stands in every commit of ours is ``incarnation (13 bits) | number of the last file applied (30) |
check (20)``. The check is a hash of that file's identity: the batch id of its record, for foreign files what the
storage says of it. The incarnation grows with every rebuild or drop, so that each stale statement of an earlier life is
below the stored version, and Delta skips it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from openmirror_writer.errors import ApplyError
from openmirror_writer.formats import Footer, is_parquet
from openmirror_writer.layout import DEFAULT_SCHEMA, SCHEMA_SUFFIX, claim_file, schema_of, table_folder, table_label
from openmirror_writer.spark.mirror.columns import Column
from openmirror_writer.storage import Entry

Status = Literal["Initialized", "Snapshotting", "Replicating", "Reseeding", "Stopped", "Failed"]
"""The service's words for the state of a table."""

_NUMBER_BITS = 30
_CHECK_BITS = 20
_INCARNATIONS = 1 << 13


@dataclass(frozen=True)
class TableName:
    """A table of the zone, and where it lands.

    Attributes:
        name: The folder's name.
        schema_name: Its schema, None = the default one.
        schema_suffix: Of the schema's folder, as it stands.
    """

    name: str
    schema_name: str | None = None
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

    @property
    def target(self) -> str:
        """The folder of the Delta table below the target's root."""
        return f"{self.schema_name or DEFAULT_SCHEMA}/{self.name}"


def is_table(folder: str) -> bool:
    """Tell whether a folder of the zone's root is a table's."""
    return not folder.startswith("_") and schema_of(folder) is None


@dataclass(frozen=True)
class TargetState:
    """What the Delta table says of itself.

    Attributes:
        exists: Whether there is a Delta table.
        version: The packed version of our last commit; None if there was none.
        generation: The generation whose files it holds.
        dropped: When the mirror dropped it; None: it is live.
        columns: Its columns; empty if it does not exist or was dropped.
        keys: Its key columns.
        folder: The zone's folder that it mirrors.
        commit: Delta's own version number of the table.
    """

    exists: bool = False
    version: int | None = None
    generation: str | None = None
    dropped: datetime | None = None
    columns: tuple[Column, ...] = ()
    keys: tuple[str, ...] = ()
    folder: str | None = None
    commit: int | None = None


@dataclass(frozen=True)
class Unreadable:
    """A file whose footer cannot be read, and why."""

    reason: str


@dataclass(frozen=True)
class LandedFile:
    """A data file that stands in the table folder.

    Attributes:
        number: From its name.
        name: In the folder.
        entry: From the listing.
        footer: What its end tells.
    """

    number: int
    name: str
    entry: Entry
    footer: Footer | Unreadable

    @property
    def identity(self) -> str:
        """What the chain names; for foreign files the storage's identity."""
        return self.entry.identity if self.batch is None else self.batch

    @property
    def batch(self) -> str | None:
        """What the next file's record names as ``previous``; None if this one has no record."""
        return self.footer.batch if isinstance(self.footer, Footer) else None

    @property
    def is_text(self) -> bool:
        """Whether it is delimited text."""
        return not is_parquet(self.name)

    @property
    def generation(self) -> str | None:
        """The generation in its record; None if it has none."""
        return self.footer.record.generation if isinstance(self.footer, Footer) and self.footer.record else None

    @property
    def previous(self) -> str | None:
        """What its record names as the file before; None for a first file and for a foreign one."""
        return self.footer.record.previous if isinstance(self.footer, Footer) and self.footer.record else None


Files: TypeAlias = Mapping[int, LandedFile]


def check_of(identity: str) -> int:
    """Return the 20-bit check of a file's identity."""
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:4], "big") >> (32 - _CHECK_BITS)


def pack(incarnation: int, number: int, identity: str) -> int:
    """Return the version of a commit whose last file is ``number``; number 0 (an emptied table) has check 0.

    Raises:
        ApplyError: The table was rebuilt more often than 13 bits count.

    >>> unpack(pack(2, 5, "batch")) == (2, 5, check_of("batch"))
    True
    """
    if incarnation >= _INCARNATIONS or number >= 1 << _NUMBER_BITS:
        msg = "this table was rebuilt too often, or has too many files, to be counted: mirror it into another target"
        raise ApplyError(msg)
    return (incarnation << _NUMBER_BITS | number) << _CHECK_BITS | (check_of(identity) if number else 0)


def unpack(version: int) -> tuple[int, int, int]:
    """Return incarnation, number of the last file applied, and check."""
    rest, check = divmod(version, 1 << _CHECK_BITS)
    incarnation, number = divmod(rest, 1 << _NUMBER_BITS)
    return incarnation, number, check


def claim_name(first: LandedFile) -> str:
    """Return the name of the claim on the batch that starts with this file."""
    return claim_file(first.number, hashlib.sha256(first.identity.encode()).hexdigest()[:16])
