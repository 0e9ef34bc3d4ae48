"""What this package needs of a storage, and the requests in which protocols ask for it.

Paths are relative to the storage's root, with ``/`` between folders. An *identity* is text that changes whenever the
object under a path is another one (an ETag, or inode, time and size); it never repeats within a path.

Protocols (the writer's fence, opening, dropping, the mirror's pass) are generators: they yield a `Request` and are sent its
answer. They do no I/O, so a simulation can drive them through every interleaving, and `perform` drives them for real.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """What a listing tells of one object.

    Attributes:
        identity: See the module.
        size: In bytes.
        modified: When its content was last changed, by the storage's clock, with a time zone.
    """

    identity: str
    size: int
    modified: datetime


@dataclass(frozen=True)
class Listing:
    """One folder, not recursive.

    Attributes:
        files: Name to entry.
        folders: Names of sub-folders.
    """

    files: Mapping[str, Entry]
    folders: frozenset[str]


@dataclass(frozen=True)
class Content:
    """Bytes that were read, and the identity of the object they came from."""

    data: bytes
    identity: str


class Storage(Protocol):
    """One tree of files. Every method raises `StorageError` when the storage fails."""

    @property
    def url(self) -> str:
        """Where the tree stands, without secrets."""

    def create(self, path: str, data: bytes) -> str | None:
        """Create an object whole or not at all, only if none stands there; its identity, None if one stands there."""

    def rename(self, source: str, target: str, *, if_identity: str | None = None) -> bool:
        """Move an object if nothing stands at the target; False if something does or the source is gone or another."""

    def replace(self, path: str, data: bytes, *, if_identity: str) -> str | None:
        """Replace the object of that identity; the new identity, None if it is gone or another."""

    def names(self, folder: str) -> Listing:
        """List one folder ("" = the root); an absent folder is an empty listing."""

    def read(self, path: str, start: int = 0, end: int | None = None) -> Content | None:
        """Read bytes ``start`` to ``end`` (exclusive; None: to the end); None if nothing stands there."""

    def identity(self, path: str) -> Entry | None:
        """Look at one object; None if nothing stands there."""

    def delete(self, path: str, *, if_identity: str | None = None) -> bool:
        """Delete an object; False if it is gone or another."""

    def remove_folder(self, folder: str) -> None:
        """Remove a folder and the empty folders in it; files keep it alive, silently."""

    def location(self, path: str) -> str:
        """Return the URL under which Spark reads the path."""


# ------------------------------------------------------------------------------------------------ requests and answers


@dataclass(frozen=True)
class ListFolder:
    """Answered by a `Listing`."""

    folder: str


@dataclass(frozen=True)
class ReadFile:
    """Answered by `Content` or None."""

    path: str
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class CreateFile:
    """Answered by `Created`, `EXISTS` or `LOST`."""

    path: str
    data: bytes


@dataclass(frozen=True)
class DeleteFile:
    """Answered by whether it was deleted."""

    path: str
    if_identity: str | None


@dataclass(frozen=True)
class RenameFile:
    """Answered by whether it was moved."""

    source: str
    target: str
    if_identity: str | None


@dataclass(frozen=True)
class RemoveFolder:
    """Answered by None."""

    folder: str


@dataclass(frozen=True)
class Created:
    """The object was created, with this identity."""

    identity: str


@dataclass(frozen=True)
class Exists:
    """Something stands there already; perhaps our own, where an earlier answer was lost."""


@dataclass(frozen=True)
class Lost:
    """No answer came: the request may have been carried out, or may yet be."""

    reason: str = ""


CreateAnswer: TypeAlias = Created | Exists | Lost
Request: TypeAlias = ListFolder | ReadFile | CreateFile | DeleteFile | RenameFile | RemoveFolder
Steps: TypeAlias = Generator[Any, Any, T]
"""A protocol that returns T: yields requests, is sent their answers."""


def listing(folder: str) -> Steps[Listing]:
    """Ask for the names of one folder."""
    answer = yield ListFolder(folder)
    assert isinstance(answer, Listing)  # noqa: S101 - narrows the type of what the driver sent
    return answer


def reading(path: str, start: int = 0, end: int | None = None) -> Steps[Content | None]:
    """Ask for bytes of one file."""
    answer = yield ReadFile(path, start, end)
    assert answer is None or isinstance(answer, Content)  # noqa: S101
    return answer


def creating(path: str, data: bytes) -> Steps[CreateAnswer]:
    """Ask for a create-if-absent."""
    answer = yield CreateFile(path, data)
    assert isinstance(answer, Created | Exists | Lost)  # noqa: S101
    return answer


def deleting(path: str, if_identity: str | None) -> Steps[bool]:
    """Ask for a delete, by identity."""
    answer = yield DeleteFile(path, if_identity)
    return bool(answer)


def renaming(source: str, target: str, if_identity: str | None) -> Steps[bool]:
    """Ask for a move to a name that is free."""
    answer = yield RenameFile(source, target, if_identity)
    return bool(answer)


def removing(folder: str) -> Steps[None]:
    """Ask for an empty folder to be removed."""
    yield RemoveFolder(folder)
