"""Every error that this package raises, as one tree.

* ``OpenMirrorError``: the root; catch it to catch all of them.

  * ``InvalidRowError``: a row cannot be written as it is. Mend the row or declare another column type.
  * ``SchemaRefusedError``: names, types, keys or metadata that the mirror would refuse. Mend the declaration.
  * ``ResumeMismatchError``: the source did not repeat the rows that were already published. Mend the source or start
    again.
  * ``UnknownPositionError``: the folder does not tell where to go on. Give ``start_at=`` or start again.
  * ``ConcurrentWriterError``: another writer publishes to this table. Stop one of them.
  * ``TableGoneError``: the folder was dropped or lost its last file. Run ``drop_table`` and load again.
  * ``StorageError``: the storage failed; ``retryable`` says whether the same call may succeed later.

    * ``AuthenticationError``: the storage does not accept the credential.

  * ``ApplyError``: the mirror could not apply a table.
"""

from __future__ import annotations

from typing import Any


class OpenMirrorError(Exception):
    """The root of all errors; also raised itself where a call is not possible in the state the object is in.

    Attributes:
        table: Name of the table as the zone spells it (``"orders"``, ``"sales.orders"``), or None.
        file: Path of the file below the landing zone, or None.
        row: Index of the row in the call, counted from 0, or None.
        key: The key of that row as a mapping of key column to value, or None.
        column: Name of the column, or None.
        value: The value that was refused, or None.
        type: The type that was expected, as text, or None.
        position: The source position, or None.
        published_rows: Rows of the failed call that stand in published files already (0: none).
    """

    def __init__(
        self,
        message: str,
        *,
        table: str | None = None,
        file: str | None = None,
        row: int | None = None,
        key: dict[str, Any] | None = None,
        column: str | None = None,
        value: object = None,
        type: str | None = None,  # noqa: A002 - the attribute is read as `error.type`
        position: object = None,
    ) -> None:
        """Keep the parts; ``message`` says what is wrong and what to do next."""
        super().__init__(message)
        self.message = message
        self.table = table
        self.file = file
        self.row = row
        self.key = key
        self.column = column
        self.value: Any = value
        self.type = type
        self.position: Any = position
        self.published_rows = 0

    def __str__(self) -> str:
        """Return the message, behind it the parts that are known."""
        parts = [
            f"{name}={shorten(value)}"
            for name in ("table", "file", "row", "key", "column", "value", "type", "position")
            if (value := getattr(self, name)) is not None
        ]
        if self.published_rows:
            parts.append(f"published_rows={self.published_rows}")
        return f"{self.message} [{', '.join(parts)}]" if parts else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the attributes when the error crosses a process border."""
        return (_rebuild, (type(self), self.message, self.__dict__))


class InvalidRowError(OpenMirrorError):
    """A row cannot be written as it is: wrong shape, a value that does not fit its column, or a NULL key."""


class SchemaRefusedError(OpenMirrorError):
    """Names, types, keys or metadata that the mirroring service would refuse, or that differ from what is published."""


class ResumeMismatchError(OpenMirrorError):
    """The source was read again and did not give the rows that stand in published files."""


class UnknownPositionError(OpenMirrorError):
    """The folder holds files that do not tell up to which source position they go."""


class ConcurrentWriterError(OpenMirrorError):
    """Another writer publishes to the same table."""


class TableGoneError(OpenMirrorError):
    """The table's folder was dropped, is being dropped, or lost the last file that proves where it stands."""


class StorageError(OpenMirrorError):
    """The storage failed.

    Attributes:
        retryable: Whether the same call may succeed later.
    """

    def __init__(self, message: str, *, retryable: bool = False, **parts: Any) -> None:  # noqa: ANN401 - as they are
        """Keep the parts of `OpenMirrorError` and ``retryable``."""
        super().__init__(message, **parts)
        self.retryable = retryable


class AuthenticationError(StorageError):
    """The storage does not accept the credential."""


class ApplyError(OpenMirrorError):
    """The mirror could not apply the files of a table."""


def shorten(value: object, limit: int = 200) -> str:
    """Return ``repr(value)`` cut to ``limit`` characters: a large value cannot flood a log; never raises."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - a huge int, too deep a list, a broken class: the message must still be told
        text = f"<{type(value).__name__} that cannot be printed: {type(error).__name__}>"
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _rebuild(kind: type[OpenMirrorError], message: str, state: dict[str, Any]) -> OpenMirrorError:
    error = kind(message)
    error.__dict__.update(state)
    return error
