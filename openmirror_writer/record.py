"""The record v1: what every published file says of itself, so that a writer resumes without a state store.

Parquet carries it in the footer under the key `FOOTER_KEY`. Unknown fields are ignored, a higher version is refused.
"""

from __future__ import annotations

from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from openmirror_writer.errors import UnknownPositionError
from openmirror_writer.position import Position

FOOTER_KEY = b"openmirror"
FOREIGN = "foreign"
"""``previous`` of the first file behind one that carries no record."""
SINGLE_PARTITION = ""
"""The partition of a single `Writer` in `Record.pending`: it has only this one."""

Phase = Literal["loading", "following"]


class Pending(BaseModel):
    """Rows beyond the record's position that stand in published files already: a call that was cut.

    Attributes:
        at: The position that the cut call leads to; None if it was not told yet.
        rows: How many rows.
        replay: ``safe``: publish all of them again; ``exact``: skip them, after comparing with the digest.
        digest: ``exact`` only: see `openmirror_writer.writer.digest.digest`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    at: Position = None
    rows: int = Field(ge=1)
    replay: Literal["safe", "exact"]
    digest: str | None = None


class Record(BaseModel):
    """What a file, or an advance behind it, says of itself.

    Attributes:
        v: Version of this model, 1.
        generation: The life of the folder, from ``_generation.json``.
        number: Of this file; of an advance: of the file it stands behind.
        previous: Batch id of the file before; None for the first, ``"foreign"`` behind a file without a record.
            Of an advance: the batch id of the file it stands behind.
        batch: Identity of this file's content, new for each encoding.
        writer: The writer object that made it.
        phase: ``loading`` until the file that ends the initial load, then ``following``.
        position: Every row up to it is in this file or an earlier one; None = none yet.
        pending: Per partition, see `Pending`.
        by: Name and version of the software.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    v: Literal[1] = 1
    generation: str
    number: int = Field(ge=1)
    previous: str | None
    batch: str
    writer: str
    phase: Phase
    position: Position = None
    pending: dict[str, Pending] = Field(default_factory=dict)
    by: str

    def to_bytes(self) -> bytes:
        """Return the record as JSON in UTF-8."""
        return self.model_dump_json().encode()


def parse_record(data: bytes, *, file: str) -> Record:
    """Read a record.

    Args:
        data: JSON in UTF-8.
        file: The path it was read from, for errors.

    Raises:
        UnknownPositionError: It is damaged, or of a newer version of the record.
    """
    try:
        return Record.model_validate_json(data)
    except ValidationError as error:
        version = _version_of(data)
        if isinstance(version, int) and version > 1:
            msg = f"the record in this file has version {version}, we read version 1: upgrade openmirror-writer"
        else:
            first: Any = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            msg = (
                f"the record in this file is damaged ({where + ': ' if where else ''}{first['msg']}): "
                "drop the table and load it again"
            )
        raise UnknownPositionError(msg, file=file) from error


def new_id() -> str:
    """Return a new random id (uuid4) for a batch, a writer or a generation."""
    return str(uuid4())


class _Version(BaseModel):
    v: Any = None


def _version_of(data: bytes) -> object:
    try:
        return _Version.model_validate_json(data).v
    except ValidationError:
        return None
