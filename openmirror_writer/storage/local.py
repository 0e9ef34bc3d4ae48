"""A landing zone in a local folder."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from openmirror_writer.errors import AuthenticationError, StorageError
from openmirror_writer.storage.contract import Content, Entry, Listing

try:
    import fcntl
except ImportError:  # Windows: no advisory locks on folders, see `_removing`
    fcntl = None  # type: ignore[assignment]

_RETRYABLE = {
    errno.EAGAIN,
    errno.EBUSY,
    errno.EINTR,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOENT,  # the folder was removed under us, by a drop
    errno.ESTALE,
    errno.ETIMEDOUT,
}
_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)

STAGED = ".staged"
"""How a temporary file ends; one that a killed process left is deleted after an hour, see `layout.Folder.staged`."""


class LocalStorage:
    """Files below one local folder.

    A file appears whole: its bytes go to a temporary ``_`` file in the same folder, are synced, and get their name by
    ``link``, which fails where the name is taken; then the folder is synced. A process that is killed meanwhile leaves
    at most the temporary file. An identity is inode, modification time and size.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Use a folder.

        Args:
            root: Its path; it is made when the first file is created.
        """
        self._root = Path(root).absolute()

    @property
    def url(self) -> str:
        """The absolute path of the folder."""
        return str(self._root)

    def location(self, path: str) -> str:
        """Return the path as a ``file:`` URL without escapes: Spark takes every character of it as it is."""
        absolute = (self._root / path).as_posix()
        return f"file://{absolute}" if absolute.startswith("/") else f"file:///{absolute}"

    def create(self, path: str, data: bytes) -> str | None:
        """Create a file whole, only if the name is free; its identity, None if the name is taken."""
        target = self._root / path
        with _mapped(path):
            _make_folder(target.parent)
            with _staged(target, data) as (staged, identity):
                try:
                    os.link(staged, target)
                except FileExistsError:
                    return None
            _sync_folder(target.parent)
        return identity

    def rename(self, source: str, target: str, *, if_identity: str | None = None) -> bool:
        """Move a file to a free name; False if the name is taken or the source is gone or another."""
        old, new = self._root / source, self._root / target
        with _mapped(source), _removing(old.parent):
            if not _stands(old, if_identity):
                return False
            _make_folder(new.parent)
            try:
                os.link(old, new)
            except FileExistsError:
                if not _are_two_names(old, new):
                    return False  # else: a mover was killed between link and unlink; finish its work
            except FileNotFoundError:
                return False
            old.unlink()
            _sync_folder(new.parent)
            _sync_folder(old.parent)
        return True

    def replace(self, path: str, data: bytes, *, if_identity: str) -> str | None:
        """Replace the file of that identity; the new identity, None if it is gone or another."""
        target = self._root / path
        with _mapped(path), _removing(target.parent):
            if not _stands(target, if_identity):
                return None
            with _staged(target, data) as (staged, identity):
                staged.replace(target)
            _sync_folder(target.parent)
        return identity

    def names(self, folder: str) -> Listing:
        """List one folder; an absent one is empty."""
        files: dict[str, Entry] = {}
        folders: set[str] = set()
        with _mapped(folder):
            try:
                with os.scandir(self._root / folder) as scanned:
                    entries = list(scanned)
            except (FileNotFoundError, NotADirectoryError):
                return Listing({}, frozenset())
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # moved away while we looked
                    if entry.is_dir():
                        folders.add(entry.name)
                    else:
                        files[entry.name] = _entry(entry.stat())
        return Listing(files, frozenset(folders))

    def read(self, path: str, start: int = 0, end: int | None = None) -> Content | None:
        """Read a range of bytes; None if there is no such file."""
        with _mapped(path):
            try:
                file = (self._root / path).open("rb")
            except _NO_FILE:
                return None
            with file:
                identity = _identity(os.fstat(file.fileno()))
                file.seek(start)
                return Content(file.read(None if end is None else max(end - start, 0)), identity)

    def identity(self, path: str) -> Entry | None:
        """Look at one file; None if there is none."""
        with _mapped(path):
            found = _look(self._root / path)
            return None if found is None else _entry(found)

    def delete(self, path: str, *, if_identity: str | None = None) -> bool:
        """Delete a file; False if it is gone or another."""
        target = self._root / path
        with _mapped(path), _removing(target.parent):
            if not _stands(target, if_identity):
                return False
            target.unlink()
            _sync_folder(target.parent)
        return True

    def remove_folder(self, folder: str) -> None:
        """Remove a folder and the empty ones in it; one that holds a file stays."""
        top = self._root / folder
        with _mapped(folder):
            for parent, _, _ in os.walk(top, topdown=False):
                try:
                    Path(parent).rmdir()
                except OSError as error:
                    if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
                        raise


@contextlib.contextmanager
def _mapped(path: str) -> Iterator[None]:
    """Turn what the operating system raises into ours: the one place that does it for local files."""
    try:
        yield
    except PermissionError as error:
        msg = f"no permission ({error.strerror}): mend the rights of the folder"
        raise AuthenticationError(msg, file=path or ".") from error
    except OSError as error:
        msg = f"the file system failed: {error.strerror or error}"
        raise StorageError(msg, file=path or ".", retryable=error.errno in _RETRYABLE) from error


@contextlib.contextmanager
def _removing(folder: Path) -> Iterator[None]:
    """Hold the folder's advisory lock while a name is checked and removed.

    A create never puts a file under a name that is taken, so it is enough that those who remove names exclude each
    other: between the check and the removal the name cannot come to mean another file. The lock goes with its process.
    """
    if fcntl is None:
        yield
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):  # then there is no name to remove either
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _look(path: Path) -> os.stat_result | None:
    try:
        found = path.stat()
    except _NO_FILE:
        return None
    return None if stat.S_ISDIR(found.st_mode) else found


def _stands(path: Path, identity: str | None) -> bool:
    found = _look(path)
    return found is not None and (identity is None or _identity(found) == identity)


def _are_two_names(old: Path, new: Path) -> bool:
    """Tell whether two names lead to one file, and are not one name, perhaps spelled in two ways."""
    found, other = _look(old), _look(new)
    if old == new or found is None or other is None:
        return False
    return os.path.samestat(found, other) and found.st_nlink > 1


@contextlib.contextmanager
def _staged(target: Path, data: bytes) -> Iterator[tuple[Path, str]]:
    """Write the bytes to a temporary file beside the target; its path and identity. It is gone in the end."""
    staged = target.with_name(f"_{target.stem.lstrip('_')[:64]}.{uuid4().hex}{STAGED}")
    try:
        with staged.open("xb") as file:
            file.write(data)
            file.flush()
            # The kernel's own times may move in steps of milliseconds, and a freed inode is used again at once.
            now = time.time_ns()
            os.utime(staged, ns=(now, now))
            os.fsync(file.fileno())
        yield staged, _identity(staged.stat())
    finally:
        staged.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that each of them outlives a loss of power."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:  # dropped meanwhile: nothing to keep
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _entry(found: os.stat_result) -> Entry:
    return Entry(_identity(found), found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))


def _identity(found: os.stat_result) -> str:
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"
