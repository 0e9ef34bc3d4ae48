"""What this package needs of a storage, and the requests in which protocols ask for it.

Paths are relative to the storage's root, with ``/`` between folders. An *identity* is text that changes whenever the
object under a path is another one (an ETag, or inode, time and size); it never repeats within a path, and a rename may
keep it or change it.

Protocols (the writer's fence, opening, dropping, the mirror's pass) are generators: they yield a `Request` and are sent
its answer, or are thrown the `StorageError` that came instead. They do no I/O, so a simulation can drive them through
every interleaving, and `perform` drives them for real.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

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
    """What was read.

    Attributes:
        data: The bytes, or those of them that were asked for.
        identity: Of the object they came from.
    """

    data: bytes
    identity: str


@runtime_checkable
class Storage(Protocol):
    """One tree of files.

    Only files count: a path that is a folder, or that leads through a file, is one where nothing stands. Every method
    raises `StorageError` when the storage fails, and `AuthenticationError` when it refuses the caller. Methods may be
    called from several threads.
    """

    @property
    def url(self) -> str:
        """Where the tree stands, without secrets."""

    def create(self, path: str, data: bytes) -> str | None:
        """Create an object whole or not at all, only if none stands there; folders come into being by themselves.

        Returns:
            Its identity; None if one stands there.
        """

    def rename(self, source: str, target: str, *, if_identity: str | None = None) -> bool:
        """Move an object, only if nothing stands at the target.

        Args:
            source: Where it stands.
            target: Where it shall stand.
            if_identity: Only the object of this identity; None: any.

        Returns:
            False if something stands at the target, or the source is gone or another.
        """

    def replace(self, path: str, data: bytes, *, if_identity: str) -> str | None:
        """Replace the object of that identity, whole or not at all.

        Returns:
            The new identity; None if the object is gone or another.
        """

    def names(self, folder: str) -> Listing:
        """List one folder, not those in it ("" = the root); an absent folder is an empty listing."""

    def read(self, path: str, start: int = 0, end: int | None = None) -> Content | None:
        """Read bytes ``start`` to ``end``, as a slice does (``end`` exclusive; None: to the end).

        Returns:
            Fewer bytes where the object ends earlier; None if nothing stands there.
        """

    def identity(self, path: str) -> Entry | None:
        """Look at one object; None if nothing stands there."""

    def delete(self, path: str, *, if_identity: str | None = None) -> bool:
        """Delete an object, only the one of that identity if one is given; False if it is gone or another."""

    def remove_folder(self, folder: str) -> None:
        """Remove a folder and the empty folders in it; files keep it alive, silently."""

    def location(self, path: str) -> str:
        """Return the URL under which Spark reads the path; `StorageError` where Spark cannot."""


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
    """Answered by `Created`, `Exists` or `Lost`."""

    path: str
    data: bytes


@dataclass(frozen=True)
class ReplaceFile:
    """Answered by the new identity, or None; None too where an earlier answer was lost, so None proves nothing."""

    path: str
    data: bytes
    if_identity: str


@dataclass(frozen=True)
class DeleteFile:
    """Answered by whether it was deleted; False too where an earlier answer was lost, so False proves nothing."""

    path: str
    if_identity: str | None


@dataclass(frozen=True)
class RenameFile:
    """Answered by whether it was moved; False too where an earlier answer was lost, so False proves nothing."""

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
    """No answer came: the request may have been carried out, or may yet be.

    Attributes:
        reason: What the storage said, for messages.
    """

    reason: str = ""


CreateAnswer: TypeAlias = Created | Exists | Lost
Request: TypeAlias = ListFolder | ReadFile | CreateFile | ReplaceFile | DeleteFile | RenameFile | RemoveFolder
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


def replacing(path: str, data: bytes, if_identity: str) -> Steps[str | None]:
    """Ask for the file of that identity to be replaced."""
    answer = yield ReplaceFile(path, data, if_identity)
    assert answer is None or isinstance(answer, str)  # noqa: S101
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
