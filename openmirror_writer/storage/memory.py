"""A landing zone in memory (``memory://``), for tests: one store per process, that of fsspec's memory file system."""

from __future__ import annotations

import threading
from datetime import UTC
from pathlib import PurePosixPath
from uuid import uuid4

from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

from openmirror_writer.errors import StorageError
from openmirror_writer.storage.contract import Content, Entry, Listing

_LOCK = threading.RLock()
"""Guards fsspec's store, which every MemoryFileSystem of the process shares."""


class MemoryStorage:
    """Files below ``memory://<root>``.

    An identity is a random id that each object gets here (its address, where others put it into fsspec's store), its
    time and its size.
    """

    def __init__(self, root: str) -> None:
        """Use a part of fsspec's memory store.

        Args:
            root: The folder in it, ``""`` for all of it.
        """
        self._root = "/" + root.strip("/")
        self._fs = MemoryFileSystem()

    @property
    def url(self) -> str:
        """The URL of the root."""
        return f"memory:/{self._root}"

    def location(self, path: str) -> str:
        """Refuse: another process cannot read this memory.

        Raises:
            StorageError: Always.
        """
        msg = f"Spark cannot read {self.url}, which is the memory of this process: use a local folder"
        raise StorageError(msg, file=path)

    def create(self, path: str, data: bytes) -> str | None:
        """Create an object if none stands there; its identity, None if one does."""
        full = self._full(path)
        with _LOCK:
            return None if full in self._fs.store else self._put(full, data)

    def rename(self, source: str, target: str, *, if_identity: str | None = None) -> bool:
        """Move an object to a free name; False if the name is taken or the source is gone or another."""
        with _LOCK:
            if self._full(target) in self._fs.store or not self._stands(source, if_identity):
                return False
            self._fs.store[self._full(target)] = self._fs.store.pop(self._full(source))
            return True

    def replace(self, path: str, data: bytes, *, if_identity: str) -> str | None:
        """Replace the object of that identity; the new identity, None if it is gone or another."""
        with _LOCK:
            return self._put(self._full(path), data) if self._stands(path, if_identity) else None

    def names(self, folder: str) -> Listing:
        """List one folder; an absent one is empty."""
        prefix = self._full(folder).rstrip("/") + "/"
        files: dict[str, Entry] = {}
        folders: set[str] = set()
        with _LOCK:
            for full, file in self._fs.store.items():
                if full.startswith(prefix):
                    name, *below = full[len(prefix) :].split("/", 1)
                    if below:
                        folders.add(name)
                    else:
                        files[name] = _entry(file)
        return Listing(files, frozenset(folders))

    def read(self, path: str, start: int = 0, end: int | None = None) -> Content | None:
        """Read a range of bytes; None if nothing stands there."""
        with _LOCK:
            file = self._fs.store.get(self._full(path))
            return None if file is None else Content(file.getvalue()[start:end], _entry(file).identity)

    def identity(self, path: str) -> Entry | None:
        """Look at one object; None if nothing stands there."""
        with _LOCK:
            file = self._fs.store.get(self._full(path))
            return None if file is None else _entry(file)

    def delete(self, path: str, *, if_identity: str | None = None) -> bool:
        """Delete an object; False if it is gone or another."""
        with _LOCK:
            if not self._stands(path, if_identity):
                return False
            del self._fs.store[self._full(path)]
            return True

    def remove_folder(self, folder: str) -> None:
        """Do nothing: folders exist only as parts of names here."""

    def _full(self, path: str) -> str:
        return str(PurePosixPath(self._root, path))

    def _put(self, full: str, data: bytes) -> str:
        file = MemoryFile(self._fs, full, bytes(data))
        file.serial = uuid4().hex  # an address is used again as soon as its object is gone
        self._fs.store[full] = file
        return _entry(file).identity

    def _stands(self, path: str, identity: str | None) -> bool:
        file = self._fs.store.get(self._full(path))
        return file is not None and (identity is None or _entry(file).identity == identity)


def _entry(file: MemoryFile) -> Entry:
    size = file.getbuffer().nbytes
    modified = file.modified.replace(tzinfo=file.modified.tzinfo or UTC)
    serial = getattr(file, "serial", f"{id(file):x}")
    return Entry(f"{serial}-{modified.timestamp():.6f}-{size:x}", size, modified)
