"""A landing zone in a local folder."""

from __future__ import annotations

import contextlib
import errno
import os
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

_RETRYABLE = {errno.EAGAIN, errno.EINTR, errno.EIO, errno.ETIMEDOUT, errno.ESTALE, errno.EBUSY, errno.ENFILE, errno.EMFILE}


class LocalStorage:
    """Files below one local folder.

    A file appears whole: its bytes go to a temporary ``_`` file in the same folder, are synced, and get their name by
    ``link``, which fails where the name is taken; then the folder is synced. An identity is inode, modification time
    and size.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Use ``root``; it is made when the first file is created."""
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
            target.parent.mkdir(parents=True, exist_ok=True)
            staged = target.with_name(f"_{uuid4().hex}.tmp")
            try:
                _write_synced(staged, data)
                identity = _identity(staged.stat())
                try:
                    os.link(staged, target)
                except FileExistsError:
                    return None
            finally:
                staged.unlink(missing_ok=True)
            _sync_folder(target.parent)
        return identity

    def rename(self, source: str, target: str, *, if_identity: str | None = None) -> bool:
        """Move a file to a free name; False if the name is taken or the source is gone or another."""
        old, new = self._root / source, self._root / target
        with _mapped(source), _removing(old.parent):
            if not _stands(old, if_identity):
                return False
            new.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(old, new)
            except FileExistsError:
                if not (new.exists() and old.samefile(new)):
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
            staged = target.with_name(f"_{uuid4().hex}.tmp")
            _write_synced(staged, data)
            identity = _identity(staged.stat())
            staged.replace(target)
            _sync_folder(target.parent)
        return identity

    def names(self, folder: str) -> Listing:
        """List one folder; an absent one is empty."""
        files: dict[str, Entry] = {}
        folders: set[str] = set()
        with _mapped(folder):
            try:
                entries = list(os.scandir(self._root / folder))
            except FileNotFoundError:
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
            except (FileNotFoundError, NotADirectoryError):
                return None
            with file:
                identity = _identity(os.fstat(file.fileno()))
                file.seek(start)
                return Content(file.read(None if end is None else max(end - start, 0)), identity)

    def identity(self, path: str) -> Entry | None:
        """Look at one file; None if there is none."""
        with _mapped(path):
            try:
                return _entry((self._root / path).stat())
            except (FileNotFoundError, NotADirectoryError):
                return None

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
                with contextlib.suppress(FileNotFoundError, OSError):
                    Path(parent).rmdir()


@contextlib.contextmanager
def _mapped(path: str) -> Iterator[None]:
    """Turn what the operating system raises into ours: the one place that does it for local files."""
    try:
        yield
    except PermissionError as error:
        msg = f"no permission for {path!r} ({error.strerror}): mend the rights of the folder"
        raise AuthenticationError(msg, file=path) from error
    except OSError as error:
        msg = f"the file system failed at {path!r}: {error.strerror or error}"
        raise StorageError(msg, file=path, retryable=error.errno in _RETRYABLE) from error


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
    except (FileNotFoundError, NotADirectoryError):
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _stands(path: Path, identity: str | None) -> bool:
    try:
        found = _identity(path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False
    return identity is None or found == identity


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


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


def _entry(stat: os.stat_result) -> Entry:
    return Entry(_identity(stat), stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC))


def _identity(stat: os.stat_result) -> str:
    return f"{stat.st_ino:x}-{stat.st_mtime_ns:x}-{stat.st_size:x}"
